//! Texts that describe objects to people, shown where a value refers to one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::delegates::Delegates;
use super::library::Library;
use super::net::EndPoints;
use super::tasks::status;
use crate::base::{Addr, Collector};
use crate::clr::fields::Types;
use crate::clr::library::{Classifier, FieldAt, library_types};
use crate::clr::values::ObjectTexts;
use crate::session::Runtime;
use crate::session::continuations::{ContinuationFields, Suspended, SuspendedMethods, named};

/// Maximum number of characters of a text.
const LONGEST: usize = 100;

library_types! {
    /// Types whose objects have a special text.
    enum TextType {
        in "System.Private.CoreLib" {
            Task = "System.Threading.Tasks.Task",
            Continuation = "System.Runtime.CompilerServices.Continuation",
            StringBuilder = "System.Text.StringBuilder",
        }
        in "System.Private.Uri" {
            Uri = "System.Uri",
        }
        in "System.Net.Primitives" {
            EndPoint = "System.Net.IPEndPoint",
            Address = "System.Net.IPAddress",
        }
    }
}

/// Texts of delegates, tasks, addresses and the like.
#[derive(Debug)]
pub(crate) struct Texts {
    library: Library,
    delegates: Delegates,
    delegates_met: AtomicBool,
    types: Classifier<TextType>,
    task: Option<FieldAt>,
    uri: Option<FieldAt>,
    suspended: SuspendedMethods,
}

impl Texts {
    /// Binds to the types of an answer. Layouts that the descriptor does not have are added to `notes`.
    pub(crate) fn bind(runtime: &Runtime, types: &Arc<Types>, notes: &Collector) -> Texts {
        let texts = Classifier::<TextType>::bind(types);
        let field = |kind, name| types.field_at(texts.table(kind)?, name).ok();
        Texts {
            library: Library::of(runtime, types, notes),
            delegates: Delegates::bind(runtime, types, notes),
            delegates_met: AtomicBool::new(false),
            task: field(TextType::Task, "m_stateFlags"),
            uri: field(TextType::Uri, "_string"),
            suspended: SuspendedMethods::new(runtime.bindings(), ContinuationFields::bind(types).ok().flatten()),
            types: texts,
        }
    }

    /// The reader of delegates.
    pub(crate) fn delegates(&self) -> &Delegates {
        &self.delegates
    }

    /// The reader of suspended methods.
    pub(crate) fn suspended_methods(&self) -> &SuspendedMethods {
        &self.suspended
    }

    /// Adds notes on fields that this runtime does not have, for the kinds of objects met so far.
    pub(crate) fn note(&self, notes: &Collector) {
        if self.delegates_met.load(Ordering::Relaxed) {
            self.delegates.note(notes);
        }
        self.suspended.note(notes);
    }

    /// The method of runtime async that is suspended in the continuation at `object`.
    fn suspended(&self, object: Addr) -> Option<String> {
        match self.suspended.of(self.library.types().names(), object) {
            Suspended::Method(name) => Some(format!("({})", named(name.shown()))),
            Suspended::InFile(module) => Some(format!("(continuation of a method of {module}: --modules names it)")),
            Suspended::Unknown => None,
        }
    }
}

impl ObjectTexts for Texts {
    fn text(&self, method_table: Addr, object: Addr) -> Option<String> {
        if self.delegates.is_delegate(method_table) {
            self.delegates_met.store(true, Ordering::Relaxed);
            return Some(format!("→ {}", self.delegates.text(object)?));
        }
        match self.types.of(method_table).iter().next()? {
            TextType::Task => Some(format!("({})", status(self.library.u32(object, self.task?)?))),
            TextType::Continuation => self.suspended(object),
            TextType::StringBuilder => {
                let contents = self.library.collections().read(object, 0).ok()??;
                // The text read of a long builder is not its beginning.
                if contents.cut { Some("…".into()) } else { Some(quoted(&contents.text?)) }
            }
            TextType::Uri => Some(quoted(&self.library.string(object, self.uri?)?)),
            TextType::EndPoint | TextType::Address => EndPoints::bind(&self.library).text(object),
        }
    }
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(LONGEST).collect();
    format!("{short:?}{}", if short.len() < text.len() { "…" } else { "" })
}
