use serde::Serialize;

use crate::base::Addr;

/// `contracts`: what the runtime says about itself, and what gcdump can read of it.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ContractsReport {
    /// Where it all comes from, weakest source first.
    pub origins: Vec<OriginModel>,
    /// Contracts, advertised or needed.
    pub contracts: Vec<ContractModel>,
    /// Types with their fields.
    pub types: Vec<TypeModel>,
    /// Globals.
    pub globals: Vec<GlobalModel>,
    /// Self-checks of the descriptor against the dump.
    pub checks: Vec<CheckModel>,
}

/// A source of the merged descriptor.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct OriginModel {
    /// `in-memory`, `overlay` or `synthesised`.
    pub kind: String,
    /// Name.
    pub name: String,
    /// Address of the structure it was read from.
    pub address: Option<Addr>,
    /// Format version of its JSON.
    pub version: u64,
}

/// Whether gcdump reads a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SupportKind {
    /// It is read.
    Supported,
    /// The runtime does not advertise it.
    NotAdvertised,
    /// A version that this gcdump does not know.
    UnrecognisedVersion,
    /// A known version without a reader.
    KnownButUnsupported,
}

/// A contract.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct ContractModel {
    /// Name.
    pub name: String,
    /// Version as advertised.
    pub version: Option<String>,
    /// Whether gcdump reads it.
    pub support: SupportKind,
    /// The same in a sentence.
    pub message: String,
    /// Where it comes from.
    pub origin: Option<String>,
}

/// A type.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct TypeModel {
    /// Name.
    pub name: String,
    /// Bytes, where published.
    pub size: Option<u64>,
    /// Fields by offset.
    pub fields: Vec<FieldModel>,
}

/// A field.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FieldModel {
    /// Name.
    pub name: String,
    /// Offset in bytes.
    pub offset: u64,
    /// Type, where written.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Where it comes from.
    pub origin: String,
}

/// A global.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct GlobalModel {
    /// Name.
    pub name: String,
    /// Type, where written.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// A number.
    pub number: Option<u64>,
    /// A text.
    pub text: Option<String>,
    /// Address of the variable or structure that it names.
    pub address: Option<Addr>,
    /// What the word at that address holds; `null` where it is not in the dump.
    pub content: Option<Addr>,
    /// Why there is no value.
    pub missing: Option<String>,
    /// Where it comes from.
    pub origin: String,
}

/// A self-check.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct CheckModel {
    /// What is checked.
    pub name: String,
    /// `passed`, `failed` or `unknown`.
    pub outcome: String,
    /// The facts.
    pub facts: String,
}
