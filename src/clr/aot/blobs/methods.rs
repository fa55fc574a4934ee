//! Methods by the address of their code.

use super::Blobs;
use super::stack_trace::Methods;
use crate::base::Addr;
use crate::base::missed::Kept;
use crate::clr::aot::unwind;

/// A method of the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Method {
    /// Full name of the declaring type, without generic arguments.
    pub owner: String,
    /// Name, without generic arguments and parameters.
    pub name: String,
    /// Address of the first instruction.
    pub start: Addr,
    /// Whether stack traces omit the method: `[StackTraceHidden]`.
    pub hidden: bool,
}

impl Blobs {
    /// Number of methods in the stack trace table.
    #[cfg(feature = "internals")]
    pub fn method_count(&self) -> usize {
        self.methods().rows.len()
    }

    /// Start addresses of the methods, ascending.
    #[cfg(feature = "internals")]
    pub fn method_starts(&self) -> impl Iterator<Item = Addr> {
        self.methods().rows.iter().map(|row| row.start)
    }

    /// The method whose body or funclets contain `code`. `None` if the tables do not have the method: `code` is in a function of the native
    /// runtime or in a stub, or the module has no stack trace data.
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
