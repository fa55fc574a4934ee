//! Readers shared by the handles of the library.

use std::sync::Arc;

use super::{Namer, Runtime, Texts};
use crate::base::Collector;
use crate::clr::fields::Types;
use crate::clr::methods::Methods;
use crate::clr::statics::Statics;
use crate::clr::values::{ValueLimits, Values};
use crate::contract::ContractError;

/// Readers of types, values and static fields, bound once per runtime and shared by all handles. Answers use their own
/// [`Namer`], which reports what is missing from that answer.
#[derive(Debug)]
pub(super) struct Readers {
    pub(super) namer: Namer,
    pub(super) values: Values,
    pub(super) statics: Statics,
    /// `None` if the runtime does not describe methods.
    pub(super) methods: Option<Methods>,
}

impl Readers {
    pub(super) fn bind(runtime: &Runtime) -> Result<Readers, ContractError> {
        let namer = runtime.namer();
        let types = namer.types()?;
        let texts = Arc::new(Texts::bind(runtime, types, &Collector::new()));
        let values = Values::new(types, ValueLimits::default()).with_texts(texts);
        let statics = Statics::new(runtime.memory(), runtime.descriptor(), types);
        let methods = Methods::bind(runtime.memory(), &runtime.descriptor().scope(), runtime.limits()).ok();
        Ok(Readers { namer, values, statics, methods })
    }

    pub(super) fn types(&self) -> &Types {
        self.values.types()
    }
}
