//! Binds the readers that the handles share.

use std::sync::Arc;

use crate::base::Collector;
use crate::bcl::Texts;
use crate::clr::fields::Types;
use crate::clr::methods::Methods;
use crate::clr::statics::Statics;
use crate::clr::values::{ValueLimits, Values};
use crate::contract::ContractError;
use crate::session::Runtime;
use crate::session::readers::Readers;

impl Runtime {
    /// The readers of objects, values and types, bound once.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not describe the layouts of types and fields.
    pub(crate) fn readers(&self) -> Result<&Readers, ContractError> {
        self.readers_or(|| bind(self))
    }

    /// The loaded types and their fields.
    ///
    /// # Errors
    /// [`ContractError`] if the descriptor does not describe the layouts of types and fields.
    #[doc(hidden)]
    pub fn types(&self) -> Result<&Arc<Types>, ContractError> {
        self.readers()?.namer.types()
    }
}

fn bind(runtime: &Runtime) -> Result<Readers, ContractError> {
    let namer = runtime.namer();
    let types = namer.types()?;
    let texts = Arc::new(Texts::bind(runtime, types, &Collector::new()));
    let values = Values::new(types, ValueLimits::default()).with_texts(texts);
    let statics = Statics::new(runtime.memory(), runtime.descriptor(), types);
    let methods = Methods::bind(runtime.memory(), &runtime.descriptor().scope(), runtime.limits()).ok();
    Ok(Readers { namer, values, statics, methods })
}
