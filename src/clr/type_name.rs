//! The name of a type.

use crate::base::{Addr, Name, Token, len64};

/// Quality of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NameQuality {
    /// Neither the name nor the token is known: `<unknown 0x7f…>`.
    Unknown,
    /// The name, or a part of it, is replaced by module and token: `Module!0x02000123`.
    ModuleToken,
    /// The full name is known.
    Exact,
}

/// The name of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeName {
    /// Name as in ClrMD and SOS.
    pub name: String,
    /// Display form, if different: `async Lab.Service.Fetch` for the box of an async method.
    pub source: Option<String>,
    /// Name of the defining module; for arrays, the module of the element type.
    pub module: Option<String>,
    /// TypeDef token in that module; `None` for arrays.
    pub token: Option<Token>,
    /// Quality of the name.
    pub quality: NameQuality,
}

/// Whether `name`, or a part of it, is the label of a type whose metadata or method table is not in the dump: `Module!0x02000123`,
/// `<type at 0x7f0012345678>[]`.
pub(crate) fn has_label(name: &str) -> bool {
    name.contains("!0x02") || name.contains("<type at 0x")
}

impl TypeName {
    /// The placeholder name of a type that is not read.
    pub(super) fn unknown(mt: Addr) -> TypeName {
        TypeName { name: format!("<unknown {mt}>"), source: None, module: None, token: None, quality: NameQuality::Unknown }
    }

    /// The placeholder name of a type whose method table is lost. Strings are known by their text.
    pub(super) fn lost(mt: Addr, is_string: bool) -> TypeName {
        let (name, quality) = match is_string {
            true => ("System.String".into(), NameQuality::Exact),
            false => (format!("<type at {mt}>"), NameQuality::ModuleToken),
        };
        TypeName { name, source: None, module: None, token: None, quality }
    }

    /// The name in both forms.
    pub fn to_name(&self) -> Name {
        Name::shown_as(self.name.as_str(), self.source.clone())
    }

    /// Memory in bytes for the cached name, its copy in the answer, and its printed form.
    pub(super) fn bytes(&self) -> u64 {
        let more = [&self.source, &self.module].into_iter().flatten().fold(0, |n: usize, text| n.saturating_add(text.len()));
        let text = self.name.len().saturating_add(more);
        len64(text.saturating_mul(3).saturating_add(size_of::<TypeName>()))
    }
}
