//! Contracts and their versions: what a reader requires when it binds, and the errors for runtimes that do not meet the requirement.
//!
//! A reader declares its contract (`Threads::CONTRACT`) and checks it when it binds. Each layer lists its contracts (`clr::CONTRACTS`,
//! `gc::CONTRACTS`, `stack::CONTRACTS`, [`CONTRACTS`]); `gcdump contracts` prints these lists.

use super::descriptor::{ContractError, Descriptor};

/// A contract, with the versions that its reader supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// Name in the descriptor.
    pub name: &'static str,
    /// The supported versions, normalized: `1` for both `1` and `c1`.
    pub versions: &'static [&'static str],
    /// Whether commands need the contract. `gcdump contracts` reports the absence of a needed contract.
    pub needed: bool,
}

impl Contract {
    /// A contract without which commands fail.
    pub const fn needed(name: &'static str, versions: &'static [&'static str]) -> Contract {
        Contract { name, versions, needed: true }
    }

    /// A contract that may be missing: older runtimes have the structures that it describes but do not advertise it.
    pub const fn optional(name: &'static str, versions: &'static [&'static str]) -> Contract {
        Contract { name, versions, needed: false }
    }

    /// Checks that the runtime advertises the contract in a supported version.
    ///
    /// # Errors
    /// [`ContractError::NotAdvertised`], [`ContractError::UnrecognizedVersion`] or [`ContractError::Unsupported`].
    pub fn require(&self, descriptor: &Descriptor) -> Result<(), ContractError> {
        let version = descriptor.contract(self.name);
        let read = version.is_some_and(|v| self.versions.contains(&v.as_str()));
        if read { Ok(()) } else { Err(refusal(descriptor, self.name)) }
    }

    /// Like [`Contract::require`], but also succeeds if the contract is not advertised. The layouts then decide whether the reader can bind.
    ///
    /// # Errors
    /// [`ContractError::UnrecognizedVersion`] or [`ContractError::Unsupported`].
    pub fn permit(&self, descriptor: &Descriptor) -> Result<(), ContractError> {
        match self.require(descriptor) {
            Err(ContractError::NotAdvertised { .. } | ContractError::Mono { .. }) => Ok(()),
            other => other,
        }
    }
}

/// The error for a contract whose advertised version no reader supports.
pub fn refusal(descriptor: &Descriptor, contract: &str) -> ContractError {
    let name = contract.to_string();
    if let Err(e) = descriptor.contract_usable(contract) {
        return e;
    }
    let Some(info) = descriptor.contracts.get(contract) else {
        if descriptor.is_mono() {
            return ContractError::Mono { contract: name };
        }
        return ContractError::NotAdvertised { contract: name };
    };
    let (normalized, version) = (super::json::contract_version(&info.version), info.version.clone());
    if UNSUPPORTED.iter().any(|(known, versions)| *known == contract && versions.contains(&normalized.as_str())) {
        ContractError::Unsupported { contract: name, version }
    } else {
        ContractError::UnrecognizedVersion { contract: name, version }
    }
}

/// Whether `contract` is one of the known contracts without a reader.
pub fn is_known(contract: &str) -> bool {
    UNSUPPORTED.iter().any(|(known, _)| *known == contract)
}

/// Contracts of this layer. They describe the runtime as a whole and are optional; no reader binds to them.
pub const CONTRACTS: &[Contract] = &[Contract::optional("RuntimeInfo", &["1"]), Contract::optional("FeatureFlags", &["1"])];

/// Contracts of .NET 9 to 11, with versions that gcdump does not read.
const UNSUPPORTED: &[(&str, &[&str])] = &[
    ("AuxiliarySymbols", &["1"]),
    ("CallingConvention", &["1"]),
    ("CodeNotifications", &["1"]),
    // Version n1 is for NativeAOT: the structure does not exist there, or NativeAOT has its own tables.
    ("CodeVersions", &["n1"]),
    ("ConditionalWeakTable", &["1"]),
    ("DacStreams", &["1"]),
    ("Debugger", &["1"]),
    // Memory outside of the heap that holds references. Answers about roots state that this memory is not read.
    ("ExternalMemoryHandles", &["1"]),
    ("ExecutionManager", &["n1"]),
    ("Loader", &["n1"]),
    ("ManagedTypeSource", &["1", "n1"]),
    ("Notifications", &["1"]),
    ("ObjectiveCMarshal", &["1"]),
    ("PlatformMetadata", &["1", "n1"]),
    ("PrecodeStubs", &["n1"]),
    ("ReJIT", &["1", "n1"]),
    ("RuntimeMutableTypeSystem", &["1"]),
    ("SHash", &["1"]),
    ("Signature", &["1"]),
    ("StressLog", &["1", "2"]),
    ("SyncBlock", &["n1"]),
    ("WindowsErrorReporting", &["1"]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::descriptor::ContractInfo;

    const GC: Contract = Contract::needed("GC", &["1"]);

    fn with(contract: &str, version: &str) -> Descriptor {
        let mut d = Descriptor::default();
        std::sync::Arc::make_mut(&mut d.contracts).insert(contract.into(), ContractInfo { version: version.into(), origin: 0 });
        d
    }

    #[test]
    fn each_kind_of_failure_has_its_error() {
        assert_eq!(GC.require(&with("GC", "c1")), Ok(()));
        assert_eq!(GC.require(&with("GC", "1")), Ok(()));
        assert!(matches!(GC.require(&with("X", "1")), Err(ContractError::NotAdvertised { .. })));
        assert!(matches!(GC.require(&with("GC", "c99")), Err(ContractError::UnrecognizedVersion { .. })));
        let log = Contract::optional("StressLog", &["1"]);
        assert!(matches!(log.require(&with("StressLog", "c2")), Err(ContractError::Unsupported { .. })));
        let message = GC.require(&with("GC", "c99")).unwrap_err().to_string();
        assert!(message.contains("c99") && message.contains("newer gcdump"), "{message}");
    }

    #[test]
    fn permit_accepts_an_absent_contract_but_no_unknown_version() {
        assert_eq!(GC.permit(&Descriptor::default()), Ok(()));
        assert_eq!(GC.permit(&with("GC", "c1")), Ok(()));
        assert!(GC.permit(&with("GC", "c99")).is_err());
    }
}
