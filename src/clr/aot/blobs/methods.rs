//! Methods by the address of their code.

use super::Blobs;
use super::stack_trace::Methods;
use crate::base::Addr;
use crate::base::missed::Kept;
use crate::clr::aot::unwind;

/// A method of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Full name of the type that has it, without generic arguments.
    pub owner: String,
    /// Its name, without generic arguments and parameters.
    pub name: String,
    /// Where its code begins.
    pub start: Addr,
    /// Whether stack traces leave it out: `[StackTraceHidden]`.
    pub hidden: bool,
}

impl Blobs {
    /// Number of methods that the module tells the names of.
    #[cfg(feature = "internals")]
    pub fn method_count(&self) -> usize {
        self.methods().rows.len()
    }

    /// Where the code of each of them begins, ascending.
    #[cfg(feature = "internals")]
    pub fn method_starts(&self) -> impl Iterator<Item = Addr> {
        self.methods().rows.iter().map(|row| row.start)
    }

    /// The method whose code is at `code`, anywhere in its body or in that of one of its handlers. `None` if the module does not tell:
    /// a method of the native runtime, a stub, or a module without stack trace data.
    pub fn method_at(&self, code: Addr) -> Option<Method> {
        let methods = self.methods();
        (!methods.rows.is_empty() && self.image.range.contains(code)).then_some(())?;
        let row = |start: Addr| {
            let index = methods.rows.binary_search_by_key(&start, |row| row.start).ok()?;
            methods.rows.get(index)
        };
        let start = unwind::method_start(&self.memory, &self.image, code)?;
        let row = row(start)?;
        let metadata = methods.metadata.as_ref().or(self.metadata.as_ref())?;
        Some(Method {
            owner: metadata.type_name(row.owner?, &self.budget)?.name,
            name: metadata.string(row.name?, &self.budget)?,
            start: row.start,
            hidden: row.hidden,
        })
    }

    fn methods(&self) -> &Methods {
        &self.methods.get_or_init(|| Kept::of(|| Methods::read(&self.sections, &self.tables, &self.budget))).get().data
    }
}
