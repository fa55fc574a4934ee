//! A loaded type.

use std::fmt;

use crate::base::{Addr, glob};
use crate::clr::method_table::MethodTableInfo;
use crate::session::{Error, Heap, Runtime, loaded_types};

/// Maximum number of base types: corruption can create cycles.
const MAX_BASES: usize = 256;

/// A loaded type. Generic types are loaded once per set of arguments.
///
/// ```
/// let runtime = gcdump::open("dumps/net10-wks-basics-heap.dmp.zst")?.runtime()?;
/// let dog = runtime.type_named("Lab.Dog")?;
/// assert_eq!(dog.base().map(|b| b.name()).as_deref(), Some("Lab.Animal"));
/// assert_eq!(runtime.static_field("Lab.Program", "n")?.read::<i32>()?, 1000);
/// # Ok::<(), gcdump::Error>(())
/// ```
#[derive(Clone)]
pub struct Type {
    heap: Heap,
    method_table: Addr,
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Type({} {})", self.method_table, self.name())
    }
}

/// Types are equal if they have the same method table in the same heap.
impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        self.method_table == other.method_table && self.heap.is(&other.heap)
    }
}

impl Eq for Type {}

impl Runtime {
    /// The loaded types with a full name that matches `pattern`, where `*` matches any text and `?` one character. Ordered by module, with
    /// generic instances last.
    ///
    /// # Errors
    /// [`Error::Contract`] if the runtime does not describe types.
    pub fn types_of(&self, pattern: &str) -> Result<Vec<Type>, Error> {
        let heap = self.heap()?;
        let types = self.readers()?.types();
        let all = loaded_types(types).into_iter();
        Ok(all.filter(|mt| glob(pattern, &types.names().name(*mt).name)).map(|mt| Type::new(&heap, mt)).collect())
    }

    /// The loaded type with this full name: `Lab.Order`, `System.Collections.Generic.List<System.Int32>`. If several modules define such a type, the
    /// first one.
    ///
    /// # Errors
    /// [`Error::Nothing`] if no such type is loaded, [`Error::Contract`] as for [`Runtime::types_of`].
    pub fn type_named(&self, name: &str) -> Result<Type, Error> {
        let heap = self.heap()?;
        let types = self.readers()?.types();
        let found = loaded_types(types).into_iter().find(|mt| types.names().name(*mt).name == name);
        let found = found.ok_or_else(|| Error::Nothing(format!("no type {name} is loaded")))?;
        Ok(Type::new(&heap, found))
    }
}

impl Type {
    pub(super) fn new(heap: &Heap, method_table: Addr) -> Type {
        Type { heap: heap.clone(), method_table }
    }

    /// Address of the method table.
    pub fn method_table(&self) -> Addr {
        self.method_table
    }

    pub(super) fn heap(&self) -> &Heap {
        &self.heap
    }

    /// Full name as printed by SOS and ClrMD.
    pub fn name(&self) -> String {
        self.heap.type_name(self.method_table)
    }

    /// File name of the module that defines the type or, for an array, its element type.
    pub fn module(&self) -> Option<String> {
        self.heap.runtime().readers().ok()?.namer.module(self.method_table)
    }

    pub(super) fn info(&self) -> Option<MethodTableInfo> {
        self.heap.walker().tables().read(self.method_table).ok()
    }

    /// The base type; `None` for `System.Object` and interfaces, or if the method table is not in the dump.
    pub fn base(&self) -> Option<Type> {
        let parent = self.info()?.parent;
        (!parent.is_null() && self.heap.walker().tables().is_valid(parent) == Ok(true)).then(|| Type::new(&self.heap, parent))
    }

    /// The base types, nearest first.
    pub fn bases(&self) -> impl Iterator<Item = Type> + use<> {
        std::iter::successors(self.base(), Type::base).take(MAX_BASES)
    }

    /// Whether the type or one of its base types has this full name. Interfaces are not considered.
    pub fn is_a(&self, name: &str) -> bool {
        self.name() == name || self.bases().any(|b| b.name() == name)
    }

    /// Whether the type is an array type.
    pub fn is_array(&self) -> bool {
        self.info().is_some_and(|i| i.is_array)
    }

    /// Whether the type is `System.String`.
    pub fn is_string(&self) -> bool {
        self.info().is_some_and(|i| i.is_string)
    }

    /// Whether the type has a finalizer.
    pub fn has_finalizer(&self) -> bool {
        self.info().is_some_and(|i| i.has_finalizer)
    }
}
