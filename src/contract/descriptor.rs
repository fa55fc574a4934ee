//! The merged descriptor: one namespace of types, globals and contracts, each with its origin.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use super::inferred_types::InferredTypes;
use super::json::{self, DescriptorItem, RawDescriptor, RawType, RawValue};
use crate::base::{Addr, NoteKind, Notes};
use crate::model::OriginKind;

/// Where a part of the merged descriptor came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Kind of the source.
    pub kind: OriginKind,
    /// Name for display: `descriptor`, `GC sub-descriptor`, `overlay net10.0-linux-x64`.
    pub name: String,
    /// Address of the descriptor, or of the structure that the descriptor was synthesized from.
    pub address: Option<Addr>,
    /// `version` of the JSON.
    pub version: u64,
}

/// A type of the target.
#[derive(Clone, Debug, Default)]
pub struct TypeInfo {
    /// Size in bytes, where published.
    pub size: Option<u64>,
    /// Fields by name.
    pub fields: BTreeMap<String, FieldInfo>,
    /// Index into [`Descriptor::origins`] of the source that was merged last.
    pub origin: usize,
}

/// A field of a type of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Offset in bytes.
    pub offset: u64,
    /// Type as written in the JSON; usually absent, because the contract specifies the type.
    pub type_name: Option<String>,
    /// Index into [`Descriptor::origins`].
    pub origin: usize,
}

/// A global of the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GlobalInfo {
    /// Value of the global.
    pub value: GlobalValue,
    /// Type as written.
    pub type_name: Option<String>,
    /// Index into [`Descriptor::origins`].
    pub origin: usize,
}

/// Value of a global.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GlobalValue {
    /// A literal in the JSON.
    Literal {
        /// The number, if the literal is numeric or a numeric string.
        number: Option<u64>,
        /// The text, if the literal is a string.
        text: Option<String>,
    },
    /// The content of a slot: the address of a variable in the runtime.
    Pointer(Addr),
    /// A slot whose content is not in the dump.
    Unreadable {
        /// Slot number.
        slot: u64,
    },
}

/// A contract that the descriptor advertises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractInfo {
    /// Version as written: `1`, `c1`, `n1`.
    pub version: String,
    /// Index into [`Descriptor::origins`].
    pub origin: usize,
}

/// Reason why a contract cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// The runtime does not advertise the contract.
    #[error("the runtime does not advertise the contract {contract}")]
    NotAdvertised {
        /// Name of the contract.
        contract: String,
    },
    /// NativeAOT programs have no such structures.
    #[error("NativeAOT programs do not describe {what}")]
    NativeAot {
        /// The missing structures.
        what: &'static str,
    },
    /// The unwinding information of NativeAOT programs is not read.
    #[error("stacks of NativeAOT programs are not walked")]
    NativeAotStacks,
    /// Mono has no such structures, or they are not read.
    #[error("of Mono, gcdump reads types, objects, handles and roots, but not the contract {contract}")]
    Mono {
        /// Name of the contract.
        contract: String,
    },
    /// A version that this edition of gcdump does not know.
    #[error("the runtime advertises the contract {contract} in version {version}, which this gcdump does not know; try a newer gcdump")]
    UnrecognizedVersion {
        /// Name of the contract.
        contract: String,
        /// Version as written.
        version: String,
    },
    /// A known version that no reader supports.
    #[error("the runtime advertises the contract {contract} in version {version}, which gcdump knows but does not support")]
    Unsupported {
        /// Name of the contract.
        contract: String,
        /// Version as written.
        version: String,
    },
    /// The descriptor contains the item, but its value is invalid.
    #[error("the {item} of the descriptor cannot be used: {why}")]
    Unusable {
        /// The item: `field Thread.State`.
        item: String,
        /// Reason why the value is invalid.
        why: String,
    },
    /// No such type.
    #[error("the descriptor has no type {name}")]
    NoType {
        /// Name of the type.
        name: String,
    },
    /// No such field.
    #[error("the descriptor has no field {type_name}.{field}")]
    NoField {
        /// Name of the type.
        type_name: String,
        /// Name of the field, aliases separated by `|`.
        field: String,
    },
    /// No such global.
    #[error("the descriptor has no global {name}")]
    NoGlobal {
        /// Name of the global, aliases separated by `|`.
        name: String,
    },
    /// The global exists, but its slot is not in the dump.
    #[error("the global {name} is in slot {slot} of the pointer data, which is not in the dump")]
    UnreadableGlobal {
        /// Name of the global.
        name: String,
        /// Slot number.
        slot: u64,
    },
    /// The global is not of the kind that the contract specifies.
    #[error("the global {name} is not {wanted}")]
    WrongKind {
        /// Name of the global.
        name: String,
        /// The expected kind: a number, a pointer, text.
        wanted: &'static str,
    },
}

/// The version of `RuntimeTypeSystem` in overlays of Mono.
const MONO: &str = "m1";
/// Versions of `RuntimeTypeSystem` that only NativeAOT advertises.
const NATIVE_AOT: [&str; 2] = ["n1", "1001"];

/// Variables that the runtime never changes.
const CONSTANTS: [&str; 1] = ["MaxGeneration"];
/// Variables that show the phase of the GC. Readers work without any of them.
const WITNESSES: [&str; 3] = ["StructureInvalidCount", "CurrentGCState", "GCThread"];

/// The merged descriptor of one runtime.
///
/// Unusable items are set aside. A reader that binds to an unusable item gets [`ContractError::Unusable`]. A reader for which the item is optional
/// binds in a separate [scope](Descriptor::scope), whose [losses](Descriptor::losses) are added to the notes of its answers.
#[derive(Debug, Default)]
pub struct Descriptor {
    /// Types by name.
    pub types: Arc<BTreeMap<String, TypeInfo>>,
    /// Globals by name.
    pub globals: Arc<BTreeMap<String, GlobalInfo>>,
    /// Contracts by name.
    pub contracts: Arc<BTreeMap<String, ContractInfo>>,
    /// Sources, in the order in which they were merged.
    pub origins: Vec<Origin>,
    /// Unusable items, with the reason. No other map contains these items.
    pub unusable: Arc<BTreeMap<DescriptorItem, String>>,
    /// Items that two sources of the same kind define; the later definition is used.
    disputed: Arc<BTreeSet<DescriptorItem>>,
    /// NativeAOT: the release, such as `10.0`, whose measured layouts supplement the program's own.
    pub(super) release: Option<String>,
    /// Types whose method tables are lost.
    pub(crate) inferred: Option<Arc<InferredTypes>>,
    /// The unusable and disputed items that were requested.
    asked: Mutex<BTreeSet<DescriptorItem>>,
}

impl Clone for Descriptor {
    /// Returns a copy with an empty record of requested items.
    fn clone(&self) -> Descriptor {
        Descriptor {
            types: self.types.clone(),
            globals: self.globals.clone(),
            contracts: self.contracts.clone(),
            origins: self.origins.clone(),
            unusable: self.unusable.clone(),
            disputed: self.disputed.clone(),
            release: self.release.clone(),
            inferred: self.inferred.clone(),
            asked: Mutex::default(),
        }
    }
}

impl Descriptor {
    /// Returns this descriptor with a separate record of the unusable and disputed items that are requested.
    pub fn scope(self: &Arc<Self>) -> Arc<Descriptor> {
        // Without unusable or disputed items there is nothing to record.
        if self.unusable.is_empty() && self.disputed.is_empty() { Arc::clone(self) } else { Arc::new(Descriptor::clone(self)) }
    }

    /// Notes about the unusable and disputed items that were requested in this scope.
    pub fn losses(&self) -> Notes {
        let mut notes = Notes::new();
        for item in self.asked.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            match self.usable(item) {
                Err(e) => notes.add(NoteKind::Invalid, None, e.to_string()),
                Ok(()) => notes.add(NoteKind::Descriptor, None, format!("two descriptors define the {item}; using the later one")),
            }
        }
        notes
    }

    /// Records the request for `item` if two sources define it.
    fn dispute(&self, item: impl FnOnce() -> DescriptorItem) {
        if self.disputed.is_empty() {
            return;
        }
        let item = item();
        if self.disputed.contains(&item) {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(item);
        }
    }

    fn usable(&self, item: &DescriptorItem) -> Result<(), ContractError> {
        match self.unusable.get(item) {
            Some(why) => Err(ContractError::Unusable { item: item.to_string(), why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Records the request for `item`, and fails if the item is unusable.
    fn check(&self, item: impl FnOnce() -> DescriptorItem) -> Result<(), ContractError> {
        if self.unusable.is_empty() {
            return Ok(());
        }
        let item = item();
        self.usable(&item).inspect_err(|_| {
            self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(item);
        })
    }

    /// Records as unusable the globals of `raw` whose slots cannot be read. `raw` has already been merged.
    pub(super) fn lose_slots(&mut self, raw: &RawDescriptor, slot: impl Fn(u64) -> Option<Addr>) {
        for (name, global) in &raw.globals {
            if let RawValue::Slot(i) = global.value
                && slot(i).is_none()
            {
                self.lose(DescriptorItem::Global(name.clone()), &format!("slot {i} of its pointer data is not in the dump"));
            }
        }
    }

    /// Records that `item`, which no source has defined so far, cannot be read. An earlier reason is kept.
    pub(super) fn lose(&mut self, item: DescriptorItem, why: &str) {
        Arc::make_mut(&mut self.unusable).entry(item).or_insert_with(|| why.into());
    }

    /// Sets an item aside, and removes its definitions by weaker sources.
    fn set_aside(&mut self, item: &DescriptorItem, why: &str) {
        match item {
            DescriptorItem::Type(name) => drop(Arc::make_mut(&mut self.types).remove(name)),
            DescriptorItem::Size(name) => drop(Arc::make_mut(&mut self.types).get_mut(name).map(|t| t.size = None)),
            DescriptorItem::Field(name, field) => drop(Arc::make_mut(&mut self.types).get_mut(name).and_then(|t| t.fields.remove(field))),
            DescriptorItem::Global(name) => drop(Arc::make_mut(&mut self.globals).remove(name)),
            DescriptorItem::Contract(name) => drop(Arc::make_mut(&mut self.contracts).remove(name)),
        }
        Arc::make_mut(&mut self.unusable).insert(item.clone(), why.into());
    }

    /// Clears the marks of unusable items of the type `name` that `raw`, from a stronger source, defines.
    fn restore(&mut self, name: &str, raw: &RawType) {
        if self.unusable.is_empty() {
            return;
        }
        Arc::make_mut(&mut self.unusable).remove(&DescriptorItem::Type(name.into()));
        if raw.size.is_some() {
            Arc::make_mut(&mut self.unusable).remove(&DescriptorItem::Size(name.into()));
        }
        for (field, ..) in &raw.fields {
            Arc::make_mut(&mut self.unusable).remove(&DescriptorItem::Field(name.into(), field.clone()));
        }
    }

    /// Adds a source and returns its index.
    pub fn add_origin(&mut self, origin: Origin) -> usize {
        self.origins.push(origin);
        self.origins.len().saturating_sub(1)
    }

    /// Merges `raw`. Its items replace existing items, so callers merge the weakest source first. `slot` resolves a slot of `raw`'s own pointer data.
    /// An item that two sources of the same kind define is disputed.
    pub fn merge(&mut self, raw: &RawDescriptor, origin: usize, slot: impl Fn(u64) -> Option<Addr>) {
        let kind = |o: usize, d: &Descriptor| d.origins.get(o).map(|o| o.kind);
        let own = kind(origin, self);
        for (name, raw) in &raw.types {
            if self.types.get(name).is_some_and(|t| kind(t.origin, self) == own) {
                Arc::make_mut(&mut self.disputed).insert(DescriptorItem::Type(name.clone()));
            }
            self.restore(name, raw);
            let info = Arc::make_mut(&mut self.types).entry(name.clone()).or_default();
            info.size = raw.size.or(info.size);
            info.origin = origin;
            for (field, offset, type_name) in &raw.fields {
                let new = FieldInfo { offset: *offset, type_name: type_name.clone(), origin };
                info.fields.insert(field.clone(), new);
            }
        }
        for (name, raw) in &raw.globals {
            let value = match &raw.value {
                RawValue::Literal { number, text } => GlobalValue::Literal { number: *number, text: text.clone() },
                RawValue::Slot(i) => slot(*i).map_or(GlobalValue::Unreadable { slot: *i }, GlobalValue::Pointer),
            };
            let old = self.globals.get(name);
            if old.is_some_and(|g| kind(g.origin, self) == own) {
                Arc::make_mut(&mut self.disputed).insert(DescriptorItem::Global(name.clone()));
            }
            // An unreadable slot does not override the value from a weaker source.
            if matches!(value, GlobalValue::Unreadable { .. }) && old.is_some_and(|g| matches!(g.value, GlobalValue::Pointer(_))) {
                continue;
            }
            Arc::make_mut(&mut self.unusable).remove(&DescriptorItem::Global(name.clone()));
            Arc::make_mut(&mut self.globals).insert(name.clone(), GlobalInfo { value, type_name: raw.type_name.clone(), origin });
        }
        for (name, version) in &raw.contracts {
            if self.contracts.get(name).is_some_and(|c| kind(c.origin, self) == own) {
                Arc::make_mut(&mut self.disputed).insert(DescriptorItem::Contract(name.clone()));
            }
            Arc::make_mut(&mut self.unusable).remove(&DescriptorItem::Contract(name.clone()));
            Arc::make_mut(&mut self.contracts).insert(name.clone(), ContractInfo { version: version.clone(), origin });
        }
        for (item, why) in &raw.unusable {
            self.set_aside(item, why);
        }
    }

    /// Sets a pointer global.
    pub fn set_pointer(&mut self, name: &str, address: Addr, origin: usize) {
        let value = GlobalValue::Pointer(address);
        Arc::make_mut(&mut self.unusable).remove(&DescriptorItem::Global(name.into()));
        Arc::make_mut(&mut self.globals).insert(name.into(), GlobalInfo { value, type_name: Some("pointer".into()), origin });
    }

    /// Removes the pointer globals whose variables have only the initial values in the module file. `is_initial` determines this from the address of
    /// a variable ([`Memory::is_initial`](crate::memory::Memory)).
    pub(super) fn forget_initial(&mut self, is_initial: impl Fn(Addr) -> bool) {
        let gone = |(name, global): &(&String, &GlobalInfo)| match global.value {
            GlobalValue::Pointer(at) => !CONSTANTS.contains(&name.as_str()) && is_initial(at),
            _ => false,
        };
        let names: Vec<String> = self.globals.iter().filter(gone).map(|(name, _)| name.clone()).collect();
        for name in names {
            if WITNESSES.contains(&name.as_str()) {
                Arc::make_mut(&mut self.globals).remove(&name);
            } else {
                let why = "the page of the variable is not in the dump, and the module file has only its initial value";
                self.set_aside(&DescriptorItem::Global(name), why);
            }
        }
    }

    /// Sets a numeric global.
    pub fn set_number(&mut self, name: &str, number: u64, origin: usize) {
        let value = GlobalValue::Literal { number: Some(number), text: None };
        Arc::make_mut(&mut self.globals).insert(name.into(), GlobalInfo { value, type_name: None, origin });
    }

    /// Sets a text global.
    pub fn set_text(&mut self, name: &str, text: &str, origin: usize) {
        let value = GlobalValue::Literal { number: None, text: Some(text.into()) };
        Arc::make_mut(&mut self.globals).insert(name.into(), GlobalInfo { value, type_name: Some("string".into()), origin });
    }

    /// Sets the offset of a field.
    pub fn set_field(&mut self, type_name: &str, field: &str, offset: u64, origin: usize) {
        let info = Arc::make_mut(&mut self.types).entry(type_name.into()).or_default();
        info.origin = origin;
        info.fields.insert(field.into(), FieldInfo { offset, type_name: None, origin });
    }

    /// Whether this is the descriptor of a NativeAOT program, whose method tables and threads have their own layouts.
    pub fn is_native_aot(&self) -> bool {
        self.contract("RuntimeTypeSystem").is_some_and(|v| NATIVE_AOT.contains(&v.as_str()))
    }

    /// Whether this is the description of Mono, whose types have their own structures.
    pub fn is_mono(&self) -> bool {
        self.contract("RuntimeTypeSystem").as_deref() == Some(MONO)
    }

    /// Whether the runtime compiles methods while the process runs. All code of a NativeAOT program is in its image.
    pub(crate) fn has_jit(&self) -> bool {
        !self.is_native_aot()
    }

    /// Whether the runtime has tables with the methods of addresses of code, which the walk of stacks needs. NativeAOT programs do not have them.
    pub(crate) fn has_code_tables(&self) -> bool {
        !self.is_native_aot()
    }

    /// Whether the runtime keeps locks and hash codes of objects in a table of sync blocks. NativeAOT programs keep them in objects of .NET's library.
    pub(crate) fn has_sync_table(&self) -> bool {
        !self.is_native_aot()
    }

    /// NativeAOT: the release of .NET, such as `10.0`, whose measured layouts are used.
    pub(crate) fn native_aot_release(&self) -> Option<&str> {
        self.release.as_deref()
    }

    /// The type `name`, which may be a list of aliases separated by `|`. The first alias that exists is used.
    ///
    /// # Errors
    /// [`ContractError::NoType`], [`ContractError::Unusable`].
    pub fn type_info(&self, name: &str) -> Result<&TypeInfo, ContractError> {
        self.named_type(name).map(|(_, info)| info)
    }

    fn named_type(&self, name: &str) -> Result<(&str, &TypeInfo), ContractError> {
        let found = name.split('|').find_map(|n| self.types.get_key_value(n));
        if let Some((name, info)) = found {
            self.dispute(|| DescriptorItem::Type(name.clone()));
            return Ok((name, info));
        }
        name.split('|').try_for_each(|n| self.check(|| DescriptorItem::Type(n.into())))?;
        Err(ContractError::NoType { name: name.into() })
    }

    /// Size of a type in bytes.
    ///
    /// # Errors
    /// [`ContractError::NoType`], `NoField` if the size is not published, [`ContractError::Unusable`].
    pub fn size_of(&self, name: &str) -> Result<u64, ContractError> {
        let (name, info) = self.named_type(name)?;
        if let Some(size) = info.size {
            return Ok(size);
        }
        self.check(|| DescriptorItem::Size(name.into()))?;
        Err(ContractError::NoField { type_name: name.into(), field: "! (size)".into() })
    }

    /// Offset of a field in bytes. Both names may be lists of aliases separated by `|`.
    ///
    /// # Errors
    /// [`ContractError::NoType`], [`ContractError::NoField`], [`ContractError::Unusable`].
    pub fn offset(&self, type_name: &str, field: &str) -> Result<u64, ContractError> {
        let (type_name, info) = self.named_type(type_name)?;
        if let Some(found) = field.split('|').find_map(|f| info.fields.get(f)) {
            return Ok(found.offset);
        }
        field.split('|').try_for_each(|f| self.check(|| DescriptorItem::Field(type_name.into(), f.into())))?;
        Err(ContractError::NoField { type_name: type_name.into(), field: field.into() })
    }

    fn global(&self, name: &str) -> Result<(&str, &GlobalInfo), ContractError> {
        if let Some((name, global)) = name.split('|').find_map(|n| self.globals.get_key_value(n)) {
            self.dispute(|| DescriptorItem::Global(name.clone()));
            return Ok((name, global));
        }
        name.split('|').try_for_each(|n| self.check(|| DescriptorItem::Global(n.into())))?;
        Err(ContractError::NoGlobal { name: name.into() })
    }

    /// The error for a global whose slot is not in the dump. Records the global if its absence is a loss.
    fn unreadable(&self, name: &str, slot: u64) -> ContractError {
        let plain = ContractError::UnreadableGlobal { name: name.into(), slot };
        self.check(|| DescriptorItem::Global(name.into())).map_or_else(|lost| lost, |()| plain)
    }

    /// Value of a pointer global: the address of a variable or structure of the runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no such global exists, or its slot is not in the dump.
    pub fn pointer(&self, name: &str) -> Result<Addr, ContractError> {
        let (name, global) = self.global(name)?;
        match &global.value {
            GlobalValue::Pointer(a) => Ok(*a),
            GlobalValue::Literal { number: Some(n), .. } => Ok(Addr(*n)),
            GlobalValue::Literal { .. } => Err(ContractError::WrongKind { name: name.into(), wanted: "a pointer" }),
            GlobalValue::Unreadable { slot } => Err(self.unreadable(name, *slot)),
        }
    }

    /// Value of a numeric global.
    ///
    /// # Errors
    /// [`ContractError`] if no such global exists.
    pub fn number(&self, name: &str) -> Result<u64, ContractError> {
        let (name, global) = self.global(name)?;
        match &global.value {
            GlobalValue::Literal { number: Some(n), .. } => Ok(*n),
            GlobalValue::Unreadable { slot } => Err(self.unreadable(name, *slot)),
            _ => Err(ContractError::WrongKind { name: name.into(), wanted: "a number" }),
        }
    }

    /// Value of a text global.
    ///
    /// # Errors
    /// [`ContractError`] if no such global exists.
    pub fn text(&self, name: &str) -> Result<&str, ContractError> {
        let (name, global) = self.global(name)?;
        match &global.value {
            GlobalValue::Literal { text: Some(t), .. } => Ok(t),
            _ => Err(ContractError::WrongKind { name: name.into(), wanted: "text" }),
        }
    }

    /// Checks that the descriptor's entry for a contract is usable.
    ///
    /// # Errors
    /// [`ContractError::Unusable`].
    pub(super) fn contract_usable(&self, name: &str) -> Result<(), ContractError> {
        self.dispute(|| DescriptorItem::Contract(name.into()));
        self.check(|| DescriptorItem::Contract(name.into()))
    }

    /// The normalized version of a contract, where advertised.
    pub fn contract(&self, name: &str) -> Option<String> {
        // The request is recorded even if the caller only tests whether the contract is advertised.
        let _ = self.contract_usable(name);
        self.contracts.get(name).map(|c| json::contract_version(&c.version))
    }
}
