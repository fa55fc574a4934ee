use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// Kinds of sources of a descriptor, weakest first.
    pub enum OriginKind {
        /// A bundled overlay or one given with `--overlay`.
        Overlay = "overlay",
        /// Made at run time from `GcDacVars`.
        Synthesised = "synthesised",
        /// The runtime's own descriptor, in the dump or in its matching file.
        InMemory = "in-memory",
    }
}

named_enum! {
    /// What came out of a self-check.
    pub enum CheckOutcome {
        /// As expected.
        Passed = "passed",
        /// Not as expected.
        Failed = "failed",
        /// The dump or the descriptor lacks what the check needs.
        Unknown = "unknown",
    }
}

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
    /// What kind of source.
    pub kind: OriginKind,
    /// Name.
    pub name: String,
    /// Address of the structure it was read from.
    pub address: Option<Addr>,
    /// Format version of its JSON.
    pub version: u64,
}

named_enum! {
    /// Whether gcdump reads a contract.
    pub enum SupportKind {
        /// It is read.
        Supported = "supported",
        /// The runtime does not advertise it.
        NotAdvertised = "not-advertised",
        /// A version that this gcdump does not know.
        UnrecognisedVersion = "unrecognised-version",
        /// A known version without a reader.
        KnownButUnsupported = "known-but-unsupported",
    }
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
    /// What came out.
    pub outcome: CheckOutcome,
    /// The facts.
    pub facts: String,
}
