//! Why a file that may belong to a module is not used.

use std::fmt;

use crate::base::Remedy;

/// Why a file is not used, and what would make it usable, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub why: String,
    /// The means to make it usable, if known.
    pub remedy: Option<Remedy>,
}

impl Refusal {
    /// The reason for a PDB of a module whose own file is needed to learn which PDB belongs to it.
    pub(super) fn unidentified() -> Refusal {
        Refusal { remedy: Some(Remedy::ModuleFile), ..Refusal::from("neither the dump nor a file of the module identifies its PDB") }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl From<String> for Refusal {
    fn from(why: String) -> Refusal {
        Refusal { why, remedy: None }
    }
}

impl From<&str> for Refusal {
    fn from(why: &str) -> Refusal {
        why.to_string().into()
    }
}
