//! Whether types are generic.

use crate::base::named_enum;

named_enum! {
    /// Genericity of a type.
    pub enum Generics {
        /// Not generic.
        None = "none",
        /// Instantiated: `List<string>`.
        Instance = "instance",
        /// Type definition: `List<>`.
        Definition = "definition",
    }
}
