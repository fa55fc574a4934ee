//! Short texts for people that describe an object, shown next to a reference to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::delegates::Delegates;
use super::library::Library;
use super::net::EndPoints;
use super::tasks::status;
use crate::base::{Addr, Collector};
use crate::clr::fields::Types;
use crate::clr::library::{Classifier, FieldAt, library_types};
use crate::clr::type_names::NameQuality;
use crate::clr::values::ObjectTexts;
use crate::session::Runtime;
use crate::session::continuations::{ContinuationFields, Suspended, SuspendedMethods, named};

/// Maximum number of characters of a quoted text.
const LONGEST: usize = 100;

library_types! {
    /// Types whose objects have a short text.
    enum TextType {
        in "System.Private.CoreLib" {
            Task = "System.Threading.Tasks.Task",
            Continuation = "System.Runtime.CompilerServices.Continuation",
            StringBuilder = "System.Text.StringBuilder",
            Type = "System.RuntimeType",
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

/// Makes the texts of delegates, tasks, continuations, strings under construction, types, URIs and network addresses.
#[derive(Debug)]
pub(crate) struct Texts {
    library: Library,
    delegates: Delegates,
    delegates_met: AtomicBool,
    types: Classifier<TextType>,
    task: Option<FieldAt>,
    uri: Option<FieldAt>,
    type_handle: Option<FieldAt>,
    suspended: SuspendedMethods,
}

impl Texts {
    /// Binds to the types of an answer. Adds notes on layouts that the descriptor does not have.
    pub(crate) fn bind(runtime: &Runtime, types: &Arc<Types>, notes: &Collector) -> Texts {
        let texts = Classifier::<TextType>::bind(types);
        let field = |kind, name| types.field_at(texts.table(kind)?, name).ok();
        Texts {
            library: Library::of(runtime, types, notes),
            delegates: Delegates::bind(runtime, types, notes),
            delegates_met: AtomicBool::new(false),
            task: field(TextType::Task, "m_stateFlags"),
            uri: field(TextType::Uri, "_string"),
            // The second name is that of NativeAOT.
            type_handle: field(TextType::Type, "m_handle|_pUnderlyingEEType"),
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

    /// Adds notes on delegates, if any was met so far, and on suspended methods that could not be read.
    pub(crate) fn note(&self, notes: &Collector) {
        if self.delegates_met.load(Ordering::Relaxed) {
            self.delegates.note(notes);
        }
        self.suspended.note(notes);
    }

    /// The text of the object at `object` if it is a value: a type, a URI, or a network address. It does not change while the object is a key of a dictionary.
    pub(crate) fn of_value(&self, method_table: Addr, object: Addr) -> Option<String> {
        match self.types.of(method_table).iter().next()? {
            TextType::Type => self.type_text(object),
            TextType::Uri => Some(quoted(&self.library.string(object, self.uri?)?)),
            TextType::EndPoint | TextType::Address => EndPoints::bind(&self.library).text(object),
            TextType::Task | TextType::Continuation | TextType::StringBuilder => None,
        }
    }

    /// The text of the `Type` at `object`: `typeof(System.String)`. `None` if its name is unknown.
    fn type_text(&self, object: Addr) -> Option<String> {
        let handle = self.library.word(object, self.type_handle?).filter(|handle| *handle != 0)?;
        let name = self.library.types().names().handle_name(Addr(handle));
        (name.quality == NameQuality::Exact).then(|| format!("typeof({})", name.name))
    }

    /// The text of the continuation at `object`: the method of runtime async that is suspended in it.
    fn suspended(&self, object: Addr) -> Option<String> {
        match self.suspended.of(self.library.types().names(), object) {
            Suspended::Method(name) => Some(format!("({})", named(name.shown()))),
            Suspended::InFile(module) => Some(format!("(continuation of a method of {module})")),
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
                // If the builder has too many chunks, the text that was read does not begin with the first chunk, so it is not shown.
                if contents.cut { Some("…".into()) } else { Some(quoted(&contents.text?)) }
            }
            TextType::Type | TextType::Uri | TextType::EndPoint | TextType::Address => self.of_value(method_table, object),
        }
    }
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(LONGEST).collect();
    format!("{short:?}{}", if short.len() < text.len() { "…" } else { "" })
}
