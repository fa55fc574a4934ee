//! Runtimes whose method tables are lost: their types are [inferred](crate::contract::inferred) from their objects.

use super::{Opener, Vm};
use crate::base::{Missing, plural};
use crate::contract::descriptor::Descriptor;
use crate::contract::evidence::Tables;
use crate::contract::inferred::infer;
use crate::model::LayoutSource;
use std::sync::Arc;

impl<'a> Opener<'a> {
    /// The objects of a runtime of which nothing else is left.
    pub(super) fn inferred(&self) -> Option<Vm<'a>> {
        if !self.lacks_headers() {
            return None;
        }
        // Objects are alike in all releases.
        let overlay = self.overlays().into_iter().next()?;
        let descriptor = self.with_inferred(self.assemble(Some(overlay), None, &[], None));
        descriptor.inferred.is_some().then_some(Vm {
            descriptor,
            source: LayoutSource::Inferred,
            overlay: None,
            table: None,
            checks: Vec::new(),
            refused: Vec::new(),
        })
    }

    /// `descriptor` with the types whose method tables are lost, if there are any.
    pub(super) fn with_inferred(&self, mut descriptor: Descriptor) -> Descriptor {
        if self.lacks_headers()
            && let Some(types) = infer(self.dump, self.memory, Tables::bind(&descriptor))
        {
            // What a trimmed copy does not have is not all lost: the copy does not have memory that no command reads.
            let memory = match self.memory.is_trimmed() {
                true => String::new(),
                false => format!(", with {} of memory", plural(types.lost_bytes, "byte")),
            };
            let what = format!(
                "the method tables of {} or more are lost{memory}: their names are not known, and their sizes and references are inferred from {}",
                plural(types.seen_types, "type"),
                plural(types.objects, "object"),
            );
            self.notes.add(Missing::Layouts, None, what);
            descriptor.inferred = Some(Arc::new(types));
        }
        descriptor
    }
}
