//! Readers shared by the handles of the library.

use super::Namer;
use crate::clr::fields::Types;
use crate::clr::methods::Methods;
use crate::clr::statics::Statics;
use crate::clr::values::Values;

/// Readers of types, values and static fields, bound once per runtime and shared by all handles. Answers use a separate [`Namer`], which
/// reports what is missing from that answer.
#[derive(Debug)]
pub(crate) struct Readers {
    pub(crate) namer: Namer,
    pub(crate) values: Values,
    pub(crate) statics: Statics,
    /// `None` if the runtime does not describe methods.
    pub(crate) methods: Option<Methods>,
}

impl Readers {
    pub(crate) fn types(&self) -> &Types {
        self.values.types()
    }
}
