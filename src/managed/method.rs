//! Methods.

use std::fmt;

use crate::base::{Addr, Token};
use crate::clr::methods::MethodName;
use crate::managed::Type;
use crate::session::Runtime;

/// A method, identified by its `MethodDesc`.
#[derive(Clone)]
pub struct Method {
    runtime: Runtime,
    address: Addr,
    pub(super) name: MethodName,
}

impl fmt::Debug for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Method({} {})", self.address, self.name())
    }
}

/// Methods are equal if they have the same `MethodDesc`.
impl PartialEq for Method {
    fn eq(&self, other: &Method) -> bool {
        self.address == other.address
    }
}

impl Eq for Method {}

impl Method {
    pub(super) fn at(runtime: &Runtime, address: Addr) -> Option<Method> {
        let readers = runtime.readers().ok()?;
        let name = readers.methods.as_ref()?.name(readers.namer.names()?, address)?;
        Some(Method { runtime: runtime.clone(), address, name })
    }

    /// Address of the `MethodDesc`.
    pub fn address(&self) -> Addr {
        self.address
    }

    /// Declaring type, name and parameters, as the runtime has them: `Lab.Program.Main(System.String[])`.
    pub fn name(&self) -> &str {
        &self.name.name
    }

    /// The name for people: the source method of a compiler-generated method, otherwise the [name](Method::name).
    pub fn display(&self) -> String {
        self.name.shown().into_owned()
    }

    /// File name of the module; `None` for dynamic methods.
    pub fn module(&self) -> Option<&str> {
        self.name.module.as_deref()
    }

    /// MethodDef token in the module; `None` for dynamic methods.
    pub fn token(&self) -> Option<Token> {
        self.name.token
    }

    /// The type that declares the method; `None` if it cannot be read.
    pub fn declaring_type(&self) -> Option<Type> {
        let heap = self.runtime.heap().ok()?;
        (!self.name.declaring_type.is_null()).then(|| Type::new(&heap, self.name.declaring_type))
    }
}
