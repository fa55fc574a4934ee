use serde::Serialize;

use crate::base::{Addr, named_enum};

named_enum! {
    /// Kinds of descriptor sources, lowest precedence first.
    pub enum OriginKind {
        /// A bundled overlay or one given with `--overlay`.
        Overlay = "overlay",
        /// Synthesized at run time from `GcDacVars`.
        Synthesized = "synthesized",
        /// The runtime's own descriptor, in the dump or in its matching file.
        InMemory = "in-memory",
    }
}

named_enum! {
    /// Outcome of a self-check.
    pub enum CheckOutcome {
        /// As expected.
        Passed = "passed",
        /// Not as expected.
        Failed = "failed",
        /// The dump or the descriptor lacks the data to check.
        Unknown = "unknown",
    }
}

/// `contracts`: the data contracts of the runtime, and which of them gcdump supports.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ContractsReport {
    /// Sources, lowest precedence first.
    pub origins: Vec<OriginModel>,
    /// Contracts, advertised or required.
    pub contracts: Vec<ContractModel>,
    /// Types with their fields.
    pub types: Vec<TypeModel>,
    /// Globals.
    pub globals: Vec<GlobalModel>,
    /// Types, fields, globals and contracts that are in the descriptor but cannot be used.
    pub unusable: Vec<UnusableModel>,
    /// Self-checks of the descriptor against the dump.
    pub checks: Vec<CheckModel>,
}

/// An item that is in the descriptor but cannot be used.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct UnusableModel {
    /// What it is: `field Thread.State`.
    pub item: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A source of the merged descriptor.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct OriginModel {
    /// Kind of source.
    pub kind: OriginKind,
    /// Name.
    pub name: String,
    /// Address of the structure it was read from, if any.
    pub address: Option<Addr>,
    /// Format version of its JSON.
    pub version: u64,
}

named_enum! {
    /// Support for a contract.
    pub enum SupportKind {
        /// Supported.
        Supported = "supported",
        /// Not advertised by the runtime.
        NotAdvertised = "not-advertised",
        /// Unknown version.
        UnrecognizedVersion = "unrecognized-version",
        /// Known version that is not supported.
        KnownButUnsupported = "known-but-unsupported",
        /// A contract that this gcdump does not know: no command needs it.
        NotNeeded = "not-needed",
        /// What the descriptor says of it cannot be used.
        Unusable = "unusable",
    }
}

/// A contract.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct ContractModel {
    /// Name.
    pub name: String,
    /// Version as advertised.
    pub version: Option<String>,
    /// Whether gcdump supports it.
    pub support: SupportKind,
    /// The same as text.
    pub message: String,
    /// Source.
    pub origin: Option<String>,
}

/// A type.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct TypeModel {
    /// Name.
    pub name: String,
    /// Size in bytes, if published.
    pub size: Option<u64>,
    /// Fields by offset.
    pub fields: Vec<FieldModel>,
}

/// A field.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct FieldModel {
    /// Name.
    pub name: String,
    /// Offset in bytes.
    pub offset: u64,
    /// Type, if given.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Source.
    pub origin: String,
}

/// A global.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct GlobalModel {
    /// Name.
    pub name: String,
    /// Type, if given.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Numeric value.
    pub number: Option<u64>,
    /// Text value.
    pub text: Option<String>,
    /// Address of the variable or structure it designates.
    pub address: Option<Addr>,
    /// The word at that address; `null` if it is not in the dump.
    pub content: Option<Addr>,
    /// Why the value is missing.
    pub missing: Option<String>,
    /// Source.
    pub origin: String,
}

/// A self-check.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CheckModel {
    /// Name of the check.
    pub name: String,
    /// Its outcome.
    pub outcome: CheckOutcome,
    /// The values compared.
    pub facts: String,
}
