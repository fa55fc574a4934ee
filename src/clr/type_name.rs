//! The name of a type.

use crate::base::{Addr, Name, Token, len64};

/// Quality of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameQuality {
    /// Neither name nor token: `<unknown 0x7f…>`.
    Unknown,
    /// Module and token instead of the name, or a part of it: `Module!0x02000123`.
    ModuleToken,
    /// The full name.
    Exact,
}

/// The name of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// Name as printed by ClrMD and SOS.
    pub name: String,
    /// The form for people, where it is another one: `async Lab.Service.Fetch` for the box of an asynchronous method.
    pub source: Option<String>,
    /// Name of the module that defines it; for arrays, the element type.
    pub module: Option<String>,
    /// Its TypeDef token in that module; `None` for arrays.
    pub token: Option<Token>,
    /// Quality of the name.
    pub quality: NameQuality,
}

impl TypeName {
    /// That of a type which is not read.
    pub(super) fn unknown(mt: Addr) -> TypeName {
        TypeName { name: format!("<unknown {mt}>"), source: None, module: None, token: None, quality: NameQuality::Unknown }
    }

    /// Both forms.
    pub fn to_name(&self) -> Name {
        Name::shown_as(self.name.as_str(), self.source.clone())
    }

    /// The memory that it takes, in bytes: here, in the answer, and printed.
    pub(super) fn bytes(&self) -> u64 {
        let more = [&self.source, &self.module].into_iter().flatten().fold(0, |n: usize, text| n.saturating_add(text.len()));
        let text = self.name.len().saturating_add(more);
        len64(text.saturating_mul(3).saturating_add(size_of::<TypeName>()))
    }
}
