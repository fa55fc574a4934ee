//! Which contracts this version of gcdump reads: one table, three different failures.

use super::descriptor::{ContractError, Descriptor};

/// What gcdump does with a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// It is read.
    Read,
    /// gcdump knows it and has no reader for it.
    Unsupported,
}

/// (contract, normalised version, what we do with it). Versions are those of .NET 9 to 11.
const TABLE: &[(&str, &str, Support)] = &[
    ("GC", "1", Support::Read),
    ("Thread", "1", Support::Read),
    ("Thread", "n1", Support::Read),
    ("Object", "1", Support::Read),
    ("RuntimeTypeSystem", "1", Support::Read),
    ("Exception", "1", Support::Read),
    ("RuntimeInfo", "1", Support::Read),
    ("FeatureFlags", "1", Support::Read),
    ("Loader", "1", Support::Read),
    ("EcmaMetadata", "1", Support::Read),
    ("EcmaMetadata", "2", Support::Unsupported),
    ("RuntimeTypeSystem", "n1", Support::Unsupported),
    ("AuxiliarySymbols", "1", Support::Unsupported),
    ("BuiltInCOM", "1", Support::Unsupported),
    ("CallingConvention", "1", Support::Unsupported),
    ("CodeNotifications", "1", Support::Unsupported),
    ("CodeVersions", "1", Support::Unsupported),
    ("ComWrappers", "1", Support::Unsupported),
    ("ConditionalWeakTable", "1", Support::Unsupported),
    ("DacStreams", "1", Support::Unsupported),
    ("DebugInfo", "1", Support::Unsupported),
    ("Debugger", "1", Support::Unsupported),
    ("ExecutionManager", "1", Support::Unsupported),
    ("ExecutionManager", "2", Support::Unsupported),
    ("GCInfo", "1", Support::Unsupported),
    ("ManagedTypeSource", "1", Support::Unsupported),
    ("Notifications", "1", Support::Unsupported),
    ("ObjectiveCMarshal", "1", Support::Unsupported),
    ("PlatformMetadata", "1", Support::Unsupported),
    ("PrecodeStubs", "1", Support::Unsupported),
    ("PrecodeStubs", "2", Support::Unsupported),
    ("PrecodeStubs", "3", Support::Unsupported),
    ("ReJIT", "1", Support::Unsupported),
    ("RuntimeMutableTypeSystem", "1", Support::Unsupported),
    ("SHash", "1", Support::Unsupported),
    ("Signature", "1", Support::Unsupported),
    ("StackWalk", "1", Support::Unsupported),
    ("StressLog", "1", Support::Unsupported),
    ("StressLog", "2", Support::Unsupported),
    ("SyncBlock", "1", Support::Unsupported),
    ("WindowsErrorReporting", "1", Support::Unsupported),
];

/// Contracts whose absence `gcdump contracts` points out, because commands need them.
pub const NEEDED: &[&str] = &["GC", "Thread", "Object", "RuntimeTypeSystem", "Exception"];

/// Checks that `contract` is advertised in a version that gcdump reads.
///
/// # Errors
/// [`ContractError::NotAdvertised`], [`ContractError::UnrecognisedVersion`] or [`ContractError::Unsupported`].
pub fn check(descriptor: &Descriptor, contract: &str) -> Result<(), ContractError> {
    let Some(info) = descriptor.contracts.get(contract) else {
        return Err(ContractError::NotAdvertised { contract: contract.into() });
    };
    let version = super::json::contract_version(&info.version);
    match TABLE.iter().find(|(name, v, _)| *name == contract && *v == version) {
        Some((_, _, Support::Read)) => Ok(()),
        Some((_, _, Support::Unsupported)) => Err(ContractError::Unsupported { contract: contract.into(), version: info.version.clone() }),
        None => Err(ContractError::UnrecognisedVersion { contract: contract.into(), version: info.version.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::descriptor::ContractInfo;

    fn with(contract: &str, version: &str) -> Descriptor {
        let mut d = Descriptor::default();
        d.contracts.insert(contract.into(), ContractInfo { version: version.into(), origin: 0 });
        d
    }

    #[test]
    fn three_failures_are_three_messages() {
        assert_eq!(check(&with("GC", "c1"), "GC"), Ok(()));
        assert_eq!(check(&with("GC", "1"), "GC"), Ok(()));
        assert!(matches!(check(&with("X", "1"), "GC"), Err(ContractError::NotAdvertised { .. })));
        assert!(matches!(check(&with("GC", "c99"), "GC"), Err(ContractError::UnrecognisedVersion { .. })));
        assert!(matches!(check(&with("StressLog", "c2"), "StressLog"), Err(ContractError::Unsupported { .. })));
        let message = check(&with("GC", "c99"), "GC").unwrap_err().to_string();
        assert!(message.contains("c99") && message.contains("newer gcdump"), "{message}");
    }
}
