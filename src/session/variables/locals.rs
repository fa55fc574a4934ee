//! Local variables of frames. Their types come from the signature in the metadata, and their names from the PDB. Their values are found in the
//! same way as the values of arguments.

use std::sync::Arc;

use super::arguments::{ArgumentReader, FoundVariable, Signature, Variable};
use crate::base::{Addr, Collector, Count, Missing, Remedy, plural};
use crate::clr::methods::{GenericContext, MethodName, Parameters};
use crate::session::NamedLocals;
use crate::stack::walked::{ManagedFrame, Walk};

impl ArgumentReader<'_> {
    /// The locals of `frame`, a frame of `method`, in slot order. A local whose name is valid only in other scopes is left out. `None` if the types
    /// are unknown.
    pub(crate) fn locals(
        &mut self,
        walk: &Walk,
        frame: &ManagedFrame,
        method: &MethodName,
        named: Option<NamedLocals>,
    ) -> Option<Vec<FoundVariable>> {
        let (context, parameters) = self.signature(walk, frame)?;
        let desc = frame.code.method_desc;
        let body = self.body(desc, method)?;
        let row = named.as_ref().and_then(|named| named.signature).or_else(|| self.row(desc, method, body));
        let Some(types) = row.and_then(|row| self.types(desc, context, method, row)) else {
            self.untyped.bump();
            self.module.get_or_insert_with(|| method.module.clone().unwrap_or_default());
            return None;
        };
        let before = u32::try_from(parameters.len()).ok()?;
        let variables: Vec<(u32, Variable)> = (0u32..)
            .zip(types.iter())
            .filter_map(|(slot, variable)| {
                let name = match named.as_ref().and_then(|named| named.names.get(&slot)) {
                    Some(named) => named.clone()?,
                    None => format!("local_{slot}"),
                };
                Some((before.checked_add(slot)?, Variable { name: Some(name), typed: variable.typed.clone() }))
            })
            .collect();
        let numbered: Vec<(u32, &Variable)> = variables.iter().map(|(number, variable)| (*number, variable)).collect();
        Some(self.list(walk, frame, &numbered))
    }

    /// RVA of the IL from which the code of the method at `desc` was compiled. `None` if the code may not come from IL in the image: either the
    /// runtime implements the method itself, or hot reload may have replaced the IL.
    fn body(&self, desc: Addr, method: &MethodName) -> Option<u32> {
        let (names, home) = (self.namer.names()?, method.home?);
        let module = names.module(home);
        let metadata = module.metadata.as_ref().filter(|_| !names.modules().is_editable(home) && !self.thunks.is_thunk(desc))?;
        metadata.method_body(method.token?.rid()).filter(|rva| *rva != 0)
    }

    /// Row of the locals' signature in StandAloneSig, from the header of the method's IL.
    fn row(&mut self, desc: Addr, method: &MethodName, body: u32) -> Option<u32> {
        let namer = self.namer;
        *self.rows.entry(desc).or_insert_with(|| namer.names()?.modules().local_signature(method.home?, body))
    }

    /// The types of a method's locals, as variables without names. `row` is the row in StandAloneSig, or 0 if the method has no locals.
    fn types(&mut self, desc: Addr, context: Option<GenericContext>, method: &MethodName, row: u32) -> Signature {
        if row == 0 {
            return Some(Arc::default());
        }
        let key = (desc, context, row);
        if let Some(known) = self.local_signatures.get(&key) {
            return known.clone();
        }
        let read = || {
            let (names, home) = (self.namer.names()?, method.home?);
            let types = names.module(home).metadata.as_ref()?.local_types(row)?;
            let parameters = self.methods.parameters(names, desc, context)?;
            let typed = self.values.types().parameters(&Parameters { this: None, types, names: Vec::new(), ..parameters });
            Some(Arc::new(typed.into_iter().map(|typed| Variable { name: None, typed }).collect()))
        };
        let signature: Signature = read();
        if self.keeps(&signature) {
            self.local_signatures.insert(key, signature.clone());
        }
        signature
    }

    /// Adds a note on frames whose locals are not listed.
    pub(super) fn note_untyped(&self, notes: &Collector) {
        if let Some(module) = &self.module {
            let what = format!(
                "local variables of {} are not listed: the IL with their types, of {module} and others, is not in the dump",
                plural(self.untyped, "frame")
            );
            notes.add(Missing::DebugInfo.supplied_by(Remedy::ProgramFiles), None, what);
        }
    }
}
