//! The optimization tier of a method's code.
//!
//! Source: contract `CodeVersions`; `codeversion.h`, `callcounting.h`, `tieredcompilation.cpp` (`GetInitialOptimizationTier`).
//! A method's first code is its default version, which has no node. Each later version has a `NativeCodeVersionNode` with its tier.
//! `docs/internals/stacks.md#tiers` describes the rules and the measurements.

use std::collections::HashSet;
use std::sync::Arc;

use super::methods::Methods;
use super::type_names::TypeNames;
use crate::base::Addr;
use crate::contract::{Contract, ContractError, Descriptor};
use crate::data::{
    AppDomain, Bound, CallCountingInfo, CallCountingManager, EEConfig, Field, LoaderAllocator, MethodDesc, MethodDescCodeData,
    MethodDescVersioningState, Module, NativeCodeVersion, NativeCodeVersionNode, SHash, bind, globals,
};
use crate::memory::{Memory, ReadError};
use crate::model::CodeTier;

/// Bit of `MethodDesc.Flags3AndTokenRemainder`: the method is eligible for tiered compilation. `method.hpp`, since .NET 8.
const ELIGIBLE: u16 = 0x8000;
/// Bit of `Module.Flags`: the assembly's `DebuggableAttribute` does not disable optimization. `ceeload.h`.
const ALLOW_OPTIMIZATION: u32 = 0x800;
/// Bits of a method's `MethodImplAttributes`.
const NO_OPTIMIZATION: u32 = 0x40;
const AGGRESSIVE_OPTIMIZATION: u32 = 0x200;
/// `NativeCodeVersion.StorageKind` of a default version.
const SYNTHETIC: u32 = 2;
/// `CallCountingInfo.Stage` of a default version that is optimized and final.
const DISABLED: u8 = 4;
/// Maximum number of versions of a method's code.
const MAX_VERSIONS: usize = 1 << 12;
/// Maximum number of slots that are probed in a hash table of the runtime. The runtime keeps a quarter of the slots free.
const MAX_PROBES: u32 = 1 << 12;

/// Settings of the process that determine tiers.
#[derive(Clone, Copy, Debug)]
struct Config {
    /// `JITMinOpts`: optimization is disabled.
    min_opts: bool,
    /// Whether a method's first code is instrumented.
    instrument_first: Option<bool>,
}

/// Where the versioning state of a method is found.
#[derive(Clone, Debug)]
enum States {
    /// In the method's code data.
    OfMethod(Bound<MethodDescCodeData>),
    /// In a hash table of the application domain. `variable` is the address of the runtime's pointer to the application domain.
    OfDomain { variable: Addr, domain: Bound<AppDomain> },
}

/// The structures that show whether the calls of a default version are counted.
#[derive(Clone, Debug)]
struct Counting {
    allocator: Bound<LoaderAllocator>,
    manager: Bound<CallCountingManager>,
    info: Bound<CallCountingInfo>,
    version: Bound<NativeCodeVersion>,
}

/// Reader of code versions.
#[derive(Clone, Debug)]
pub(crate) struct CodeVersions {
    memory: Arc<Memory>,
    desc: Bound<MethodDesc>,
    states: Option<States>,
    state: Option<Bound<MethodDescVersioningState>>,
    node: Option<Bound<NativeCodeVersionNode>>,
    hash: Option<Bound<SHash>>,
    module: Bound<Module>,
    counting: Option<Counting>,
    config: Option<(Addr, Bound<EEConfig>)>,
}

impl CodeVersions {
    /// The contract that is read.
    pub(crate) const CONTRACT: Contract = Contract::optional("CodeVersions", &["1"]);

    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the advertised version of the contract is not supported, or the layout of methods is missing.
    pub(crate) fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<CodeVersions, ContractError> {
        Self::CONTRACT.permit(d)?;
        let desc = bind!(d, MethodDesc { Flags3AndTokenRemainder, CodeData? })?;
        let of_method = || {
            desc.has(MethodDesc::CodeData).then_some(())?;
            Some(States::OfMethod(bind!(d, MethodDescCodeData { VersioningState, OptimizationTier? }).ok()?))
        };
        let of_domain = || {
            let variable = globals::AppDomain.of(d).ok()?;
            Some(States::OfDomain { variable, domain: bind!(d, AppDomain { MethodDescVersioningStates }).ok()? })
        };
        let counting = || {
            Some(Counting {
                allocator: bind!(d, LoaderAllocator { CallCountingManager }).ok()?,
                manager: bind!(d, CallCountingManager { CallCountingHash }).ok()?,
                info: bind!(d, CallCountingInfo { CodeVersion, Stage }).ok()?,
                version: bind!(d, NativeCodeVersion { StorageKind, MethodDescOrNode }).ok()?,
            })
        };
        let config = bind!(d, EEConfig { JitMinOpts, TieredPGO?, TieredPGO_InstrumentOnlyHotCode? });
        Ok(CodeVersions {
            memory: Arc::clone(memory),
            states: of_method().or_else(of_domain),
            desc,
            state: bind!(d, MethodDescVersioningState { MethodDesc?, NativeCodeVersionNode }).ok(),
            node: bind!(d, NativeCodeVersionNode { Next, MethodDesc, NativeCode, OptimizationTier }).ok(),
            hash: bind!(d, SHash { Table, TableSize }).ok(),
            module: bind!(d, Module { Flags?, LoaderAllocator? })?,
            counting: counting(),
            config: d.pointer("EEConfig").ok().zip(config.ok()),
        })
    }

    /// The tier of the JIT-compiled code that starts at `start`, of the method at `desc`. `None` if the data is not in the dump, unknown
    /// for this runtime, or contradictory.
    pub(crate) fn tier(&self, methods: &Methods, names: &TypeNames, desc: Addr, start: Addr) -> Option<CodeTier> {
        let flags = self.desc.get(&self.memory, desc, MethodDesc::Flags3AndTokenRemainder)?;
        if flags & ELIGIBLE == 0 {
            return self.untiered(methods, names, desc);
        }
        match self.node(desc, start).ok()? {
            Node::Of(tier) => tier_of(tier),
            Node::None => self.first(methods, names, desc),
            Node::Unknown => None,
        }
    }

    /// The tier of code that is not eligible for tiered compilation.
    fn untiered(&self, methods: &Methods, names: &TypeNames, desc: Addr) -> Option<CodeTier> {
        // .NET 11 does not describe this setting, which only developers of the runtime use.
        if self.config.is_some() && self.config()?.min_opts {
            return Some(CodeTier::MinOpts);
        }
        let (home, attributes) = methods.implementation(names, desc)?;
        let module_flags = self.module.get(&self.memory, home, Module::Flags)?;
        let minimal = module_flags & ALLOW_OPTIMIZATION == 0 || attributes? & NO_OPTIMIZATION != 0;
        Some(if minimal { CodeTier::MinOpts } else { CodeTier::Optimized })
    }

    /// The tier of the default version of a method that is eligible for tiered compilation.
    fn first(&self, methods: &Methods, names: &TypeNames, desc: Addr) -> Option<CodeTier> {
        if let Some(States::OfMethod(data)) = &self.states
            && data.has(MethodDescCodeData::OptimizationTier)
        {
            let at = self.desc.pointer(&self.memory, desc, MethodDesc::CodeData)?;
            return match data.get(&self.memory, at, MethodDescCodeData::OptimizationTier)? {
                // The runtime's own list of tiers calls this code `QuickJitted`.
                UNDECIDED => Some(CodeTier::Tier0),
                tier => tier_of(tier),
            };
        }
        let (home, attributes) = methods.implementation(names, desc)?;
        if self.is_counting_disabled(home, desc)? {
            let aggressive = attributes? & AGGRESSIVE_OPTIMIZATION != 0;
            return Some(if aggressive { CodeTier::Tier1 } else { CodeTier::Optimized });
        }
        Some(if self.config()?.instrument_first? { CodeTier::Tier0Instrumented } else { CodeTier::Tier0 })
    }

    fn config(&self) -> Option<Config> {
        let (variable, l) = self.config.as_ref()?;
        let config = self.memory.ptr(*variable).ok().filter(|a| !a.is_null())?;
        let flag = |field: Field<EEConfig, u8>| match l.get(&self.memory, config, field) {
            Some(value @ (0 | 1)) => Some(value == 1),
            _ => None,
        };
        let first = || Some(flag(EEConfig::TieredPGO)? && !flag(EEConfig::TieredPGO_InstrumentOnlyHotCode)?);
        Some(Config { min_opts: flag(EEConfig::JitMinOpts)?, instrument_first: first() })
    }

    /// Looks up the code at `start` in the version nodes of the method.
    fn node(&self, desc: Addr, start: Addr) -> Result<Node, ReadError> {
        let (Some(states), Some(l), Some(node)) = (&self.states, &self.state, &self.node) else { return Ok(Node::Unknown) };
        let of_method = |state| l.read(&self.memory, state, MethodDescVersioningState::MethodDesc);
        let state = match states {
            States::OfMethod(data) => match self.desc.read(&self.memory, desc, MethodDesc::CodeData)? {
                at if at.is_null() => Addr::NULL,
                at => data.read(&self.memory, at, MethodDescCodeData::VersioningState)?,
            },
            States::OfDomain { variable, domain } => {
                if !l.has(MethodDescVersioningState::MethodDesc) {
                    return Ok(Node::Unknown);
                }
                let Some(hash) = domain.place(self.memory.ptr(*variable)?, AppDomain::MethodDescVersioningStates) else {
                    return Ok(Node::Unknown);
                };
                match self.look_up(hash, desc, |state| Ok(of_method(state)? == desc))? {
                    Some(state) => state.unwrap_or(Addr::NULL),
                    None => return Ok(Node::Unknown),
                }
            }
        };
        if state.is_null() {
            return Ok(Node::None);
        }
        if l.has(MethodDescVersioningState::MethodDesc) && of_method(state)? != desc {
            return Ok(Node::Unknown);
        }
        let mut seen = HashSet::new();
        let mut at = l.read(&self.memory, state, MethodDescVersioningState::NativeCodeVersionNode)?;
        while !at.is_null() {
            // A list with a cycle or with a node of another method is invalid.
            if !seen.insert(at) || seen.len() > MAX_VERSIONS || node.read(&self.memory, at, NativeCodeVersionNode::MethodDesc)? != desc {
                return Ok(Node::Unknown);
            }
            if node.read(&self.memory, at, NativeCodeVersionNode::NativeCode)? == start {
                return Ok(Node::Of(node.read(&self.memory, at, NativeCodeVersionNode::OptimizationTier)?));
            }
            at = node.read(&self.memory, at, NativeCodeVersionNode::Next)?;
        }
        Ok(Node::None)
    }

    /// Whether the default version of the method is optimized and final; `None` if unknown.
    fn is_counting_disabled(&self, home: Addr, desc: Addr) -> Option<bool> {
        let c = self.counting.as_ref()?;
        let allocator = self.module.pointer(&self.memory, home, Module::LoaderAllocator)?;
        let manager = c.allocator.pointer(&self.memory, allocator, LoaderAllocator::CallCountingManager)?;
        let is_first = |info: Addr| -> Result<bool, ReadError> {
            let Some(version) = c.info.place(info, CallCountingInfo::CodeVersion) else { return Ok(false) };
            let synthetic = c.version.read(&self.memory, version, NativeCodeVersion::StorageKind)? == SYNTHETIC;
            Ok(synthetic && c.version.read(&self.memory, version, NativeCodeVersion::MethodDescOrNode)? == desc)
        };
        match self.look_up(c.manager.place(manager, CallCountingManager::CallCountingHash)?, desc, is_first).ok()?? {
            Some(info) => match c.info.get(&self.memory, info, CallCountingInfo::Stage)? {
                DISABLED => Some(true),
                stage if stage < DISABLED => Some(false),
                _ => None,
            },
            None => Some(false),
        }
    }

    /// The element for the address `key` in the hash table at `hash`; `is` decides whether an element is for `key`. The outer `None` means that
    /// the table is invalid. The inner `None` means that the table has no such element.
    ///
    /// The table has open addressing, with a step derived from the same hash (`shash.h`); 0 is a free slot, 1 a deleted element.
    fn look_up(&self, hash: Addr, key: Addr, is: impl Fn(Addr) -> Result<bool, ReadError>) -> Result<Option<Option<Addr>>, ReadError> {
        let Some(l) = &self.hash else { return Ok(None) };
        let table = l.read(&self.memory, hash, SHash::Table)?;
        let size = l.read(&self.memory, hash, SHash::TableSize)?;
        if table.is_null() || size < 2 {
            return Ok((table.is_null() && size == 0).then_some(None));
        }
        // The hash is the lower half of the address.
        let number = u32::try_from(key.0 & u64::from(u32::MAX)).unwrap_or(0);
        let step = u64::from((number % size.saturating_sub(1)).saturating_add(1));
        let mut slot = u64::from(number % size);
        for _ in 0..size.min(MAX_PROBES) {
            let element = self.memory.ptr(table.element(slot, self.memory.ptr_bytes()))?;
            match element.0 {
                0 => return Ok(Some(None)),
                1 => {}
                _ if is(element)? => return Ok(Some(Some(element))),
                _ => {}
            }
            slot = slot.saturating_add(step).checked_rem(u64::from(size)).unwrap_or(0);
        }
        Ok(None)
    }
}

/// Result of looking up code in the version nodes of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    /// The code has a node with this tier.
    Of(u32),
    /// The code has no node: it is the default version.
    None,
    /// The nodes cannot be read.
    Unknown,
}

/// The tier in .NET 11 of a method's first code until the runtime decides on a tier.
const UNDECIDED: u32 = u32::MAX;

/// `NativeCodeVersion::OptimizationTier`.
fn tier_of(value: u32) -> Option<CodeTier> {
    Some(match value {
        0 => CodeTier::Tier0,
        1 => CodeTier::Tier1,
        2 => CodeTier::Tier1Osr,
        3 => CodeTier::Optimized,
        4 => CodeTier::Tier0Instrumented,
        5 => CodeTier::Tier1Instrumented,
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
