//! Texts of objects for people, shown where a value refers to one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::Runtime;
use super::delegates::Delegates;
use crate::base::{Addr, Collector};
use crate::clr::fields::Types;
use crate::clr::values::ObjectTexts;

/// Texts of delegates and of other objects with one.
#[derive(Debug)]
pub(crate) struct Texts {
    delegates: Delegates,
    delegates_met: AtomicBool,
}

impl Texts {
    /// Binds to the types of an answer. What the descriptor lacks goes to `notes`.
    pub(crate) fn bind(runtime: &Runtime, types: &Arc<Types>, notes: &Collector) -> Texts {
        Texts { delegates: Delegates::bind(runtime, types, notes), delegates_met: AtomicBool::new(false) }
    }

    /// The reader of delegates.
    pub(crate) fn delegates(&self) -> &Delegates {
        &self.delegates
    }

    /// Notes what the objects met so far lack in this runtime.
    pub(crate) fn note(&self, notes: &Collector) {
        if self.delegates_met.load(Ordering::Relaxed) {
            self.delegates.note(notes);
        }
    }
}

impl ObjectTexts for Texts {
    fn text(&self, method_table: Addr, object: Addr) -> Option<String> {
        self.delegates.is_delegate(method_table).then_some(())?;
        self.delegates_met.store(true, Ordering::Relaxed);
        Some(format!("→ {}", self.delegates.text(object)?))
    }
}
