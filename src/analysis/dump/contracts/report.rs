//! The report of `contracts`.

use serde::Serialize;

use crate::base::{Addr, named_enum};
use crate::model::OriginKind;

named_enum! {
    /// Outcome of a self-check.
    pub enum CheckOutcome {
        /// The result is as expected.
        Passed = "passed",
        /// The result is not as expected.
        Failed = "failed",
        /// The data to check is missing from the dump or the descriptor.
        Unknown = "unknown",
    }
}

/// `contracts`: the data contracts of the runtime, and gcdump's support for them.
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
    /// The item: `field Thread.State`.
    pub item: String,
    /// Why it cannot be used.
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
    /// Address of the structure that the source was read from, if any.
    pub address: Option<Addr>,
    /// Format version of the JSON.
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
        /// Unknown to this version of gcdump. No command needs the contract.
        NotNeeded = "not-needed",
        /// The descriptor's entry for the contract cannot be used.
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
    /// Whether gcdump supports the contract.
    pub support: SupportKind,
    /// The support as text.
    pub message: String,
    /// Source of the contract.
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
    /// Source of the field.
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
    /// Address of the variable or structure that the global designates.
    pub address: Option<Addr>,
    /// The word at that address; `null` if it is not in the dump.
    pub content: Option<Addr>,
    /// Why the value is missing.
    pub missing: Option<String>,
    /// Source of the global.
    pub origin: String,
}

/// A self-check.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct CheckModel {
    /// Name of the check.
    pub name: String,
    /// Outcome.
    pub outcome: CheckOutcome,
    /// The values compared.
    pub facts: String,
}
