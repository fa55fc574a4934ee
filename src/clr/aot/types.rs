//! Types of a NativeAOT module from its debug information: fields, and locations of static fields.
//!
//! Type names are mangled like symbols. Offsets of the fields of structures are relative to the unboxed value.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::hash::Map;
use crate::base::{Addr, Budget, CorElementType, len64};

/// Maximum number of base types of a type.
const MAX_BASES: usize = 64;
/// Maximum number of instances of a generic type that are compared.
const MAX_INSTANCES: usize = 256;
/// Mangled name of `System.Object`: the type of a field whose reference type differs between instances of a generic type.
const OBJECT: &str = "Object";
/// Maximum memory in bytes for the fields of one type and its base types, with all names. Every caller gets a copy.
const MAX_FIELD_BYTES: u64 = 16 << 20;
/// Estimated memory in bytes for an item of debug information (type, field, location) without its name.
pub(super) const BYTES_OF_AN_ITEM: u64 = 64;

/// The kind of value in a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldKind {
    /// A primitive.
    Primitive(CorElementType),
    /// An enum: its mangled name, and the element type of its values.
    Enum(Arc<str>, CorElementType),
    /// A structure: its mangled name. The structure's fields are stored inline.
    Structure(Arc<str>),
    /// A reference to an object: the mangled name of its static type.
    Reference(Arc<str>),
    /// An unmanaged or byref pointer.
    Pointer,
}

/// A field of a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugField {
    /// Name as in metadata: `_size`, `<Name>k__BackingField`.
    pub name: String,
    /// Offset in bytes: from the method table in objects, from the start in structures.
    pub offset: u64,
    /// Kind of the value.
    pub kind: FieldKind,
    /// Mangled name of the declaring type.
    pub declared_by: Arc<str>,
}

impl DebugField {
    fn bytes(&self) -> u64 {
        let name = match &self.kind {
            FieldKind::Enum(name, _) | FieldKind::Structure(name) | FieldKind::Reference(name) => name.len(),
            FieldKind::Primitive(_) | FieldKind::Pointer => 0,
        };
        BYTES_OF_AN_ITEM.saturating_add(len64(name)).saturating_add(len64(self.name.len()))
    }
}

/// Location of a static field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaticAt {
    /// An address.
    Address(Addr),
    /// An offset in the block to which a slot points.
    InBlock {
        /// Address of the slot.
        slot: Addr,
        /// Offset in bytes from the method table of the block.
        offset: u64,
    },
}

/// A static field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugStatic {
    /// Name as in metadata.
    pub name: String,
    /// Kind of the value.
    pub kind: FieldKind,
    /// Location of the field; `None` for thread statics.
    pub at: Option<StaticAt>,
}

/// A type that fields, pointers and derived types refer to by the key of its entry.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Primitive(CorElementType),
    Enum { name: Arc<str>, values: usize },
    Class { name: Arc<str> },
    Reference(usize),
    Pointer,
}

#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) name: String,
    /// Offset in bytes; `None` for static fields.
    pub(super) offset: Option<u64>,
    pub(super) entry: usize,
    /// Key of this member's location in [`DebugTypes::places`], if the member is static.
    pub(super) own: usize,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Class {
    pub(super) base: Option<usize>,
    /// Size of an object without its header, or of a structure, in bytes.
    pub(super) size: u64,
    pub(super) members: Vec<Member>,
}

/// The layout that all described instances of a generic type have in common.
#[derive(Clone, Debug)]
enum Agreed {
    /// No described instance has fields.
    None,
    /// The layouts of the instances differ.
    Not,
    /// The common fields, and the key of the base type's entry.
    On(Arc<[DebugField]>, Option<usize>),
}

/// Fields of types by mangled name.
#[derive(Debug)]
pub struct DebugTypes {
    pub(super) entries: Map<usize, Entry>,
    pub(super) classes: Map<Arc<str>, Class>,
    /// Names of the instances of generic types, by the name of the definition.
    instances: Map<String, Vec<Arc<str>>>,
    /// Names and values of the members of enums.
    pub(super) literals: Map<Arc<str>, Vec<(String, i64)>>,
    /// Locations of static fields, by `Member::own`.
    pub(super) places: Map<usize, StaticAt>,
    /// Common layouts, by the definition of a generic type and the size of its instances (`None` if unknown).
    agreed: Mutex<Map<(String, Option<u64>), Agreed>>,
    pub(super) budget: Budget,
    pub(super) whole: bool,
    /// Whether [`DebugTypes::fields_of`] failed because a type has too many fields or base types.
    cut: AtomicBool,
}

impl DebugTypes {
    /// An empty collection for a file with `bytes` of debug information.
    pub(super) fn empty(bytes: u64, max_memory: Option<u64>) -> DebugTypes {
        DebugTypes {
            entries: Map::default(),
            classes: Map::default(),
            instances: Map::default(),
            literals: Map::default(),
            places: Map::default(),
            agreed: Mutex::default(),
            budget: Budget::of_types(bytes, max_memory),
            whole: true,
            cut: AtomicBool::new(false),
        }
    }

    /// Adds a type; `None` if the memory budget is exhausted.
    pub(super) fn insert(&mut self, name: Arc<str>, class: Class) -> Option<()> {
        if let Some((definition, _)) = name.split_once('<') {
            self.budget.memory(len64(name.len())).then_some(())?;
            self.instances.entry(definition.to_string()).or_default().push(Arc::clone(&name));
        }
        self.classes.insert(name, class);
        Some(())
    }

    /// Adds an entry with the key `own`; `None` if the memory budget is exhausted.
    pub(super) fn add(&mut self, own: usize, entry: Entry) -> Option<()> {
        self.budget.memory(BYTES_OF_AN_ITEM).then_some(())?;
        self.entries.insert(own, entry);
        Some(())
    }

    /// Whether all debug information was read within the budget.
    pub fn is_whole(&self) -> bool {
        self.whole && !self.cut.load(Ordering::Relaxed) && !self.budget.met()
    }

    /// Mangled names of the types whose fields are known.
    #[cfg(feature = "internals")]
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.classes.keys().map(|name| &**name)
    }

    /// Number of types whose fields are known.
    #[cfg(feature = "internals")]
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// The instance fields of a type, after the fields of its base types. Arrays and strings have fields for their length and first
    /// element. `None` if debug information does not describe the type, or a limit is exceeded.
    ///
    /// The compiler describes only one instance of a generic type over references. The other instances have the same fields.
    pub fn fields_of(&self, mangled: &str) -> Option<Vec<DebugField>> {
        let (mut fields, mut room) = (Vec::new(), MAX_FIELD_BYTES);
        let mut name = mangled;
        for _ in 0..MAX_BASES {
            let (own, base) = self.own_fields(name)?;
            let bytes = own.iter().map(DebugField::bytes).fold(0, u64::saturating_add);
            let Some(left) = room.checked_sub(bytes) else { break };
            room = left;
            fields.splice(0..0, own);
            match base.and_then(|at| self.entries.get(&at)) {
                Some(Entry::Class { name: base }) => name = base,
                _ => return Some(fields),
            }
        }
        self.cut.store(true, Ordering::Relaxed);
        None
    }

    /// The instance fields that a type declares, and the key of its base type's entry.
    fn own_fields(&self, name: &str) -> Option<(Vec<DebugField>, Option<usize>)> {
        let declared_by: Arc<str> = name.into();
        let fields = |class: &Class| {
            let kinds = class.members.iter().filter_map(|m| Some((m, m.offset?, self.kind(m.entry)?)));
            let declared_by = || Arc::clone(&declared_by);
            let field = |(m, offset, kind): (&Member, _, _)| DebugField { name: m.name.clone(), offset, kind, declared_by: declared_by() };
            kinds.map(field).collect::<Vec<_>>()
        };
        let own = self.classes.get(name);
        let Some((definition, _)) = name.split_once('<').filter(|_| own.is_none_or(|c| c.members.is_empty())) else {
            return own.map(|class| (fields(class), class.base));
        };
        let size = own.map(|class| class.size);
        let known = || self.agreed.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (definition.to_string(), size);
        let found = known().get(&key).cloned();
        // The result depends only on the key, so all instances of one size share it.
        let found = found.unwrap_or_else(|| known().entry(key).or_insert(self.agree(definition, size, fields)).clone());
        match found {
            Agreed::None => own.map(|class| (Vec::new(), class.base)),
            Agreed::Not => None,
            Agreed::On(agreed, base) => {
                let named = |field: DebugField| DebugField { declared_by: Arc::clone(&declared_by), ..field };
                let agreed = agreed.iter().cloned().map(named).collect();
                Some((agreed, own.and_then(|class| class.base).or(base)))
            }
        }
    }

    /// The layout that all described instances of a generic type with this size have in common.
    fn agree(&self, definition: &str, size: Option<u64>, fields: impl Fn(&Class) -> Vec<DebugField>) -> Agreed {
        let same_size = |class: &&Class| !class.members.is_empty() && size.is_none_or(|size| size == class.size);
        let all = self.instances.get(definition).into_iter().flatten().take_while(|_| self.budget.steps(1));
        let others = all.filter_map(|i| self.classes.get(i)).filter(same_size);
        // The steps are charged before fields are copied, because a forged list may contain the same instance many times.
        let others = others.take(MAX_INSTANCES).take_while(|class| self.budget.steps(len64(class.members.len())));
        let mut others = others.map(|class| (fields(class), class.base));
        let Some((mut agreed, base)) = others.next() else { return Agreed::None };
        for (fields, _) in others {
            if fields.len() != agreed.len() {
                return Agreed::Not;
            }
            for (known, other) in agreed.iter_mut().zip(fields) {
                match (&known.kind, &other.kind) {
                    (a, b) if a == b => {}
                    (FieldKind::Reference(_), FieldKind::Reference(_)) => known.kind = FieldKind::Reference(OBJECT.into()),
                    _ => return Agreed::Not,
                }
                if (&known.name, known.offset) != (&other.name, other.offset) {
                    return Agreed::Not;
                }
            }
        }
        Agreed::On(agreed.into(), base)
    }

    /// The static fields that a type declares.
    ///
    /// The compiler sorts the members by kind: fields without references, references, thread statics. It attaches the locations in the
    /// order of declaration, so a location may be attached to the wrong member. The n-th location of a kind belongs to the n-th field of
    /// that kind. If the type of a field contradicts its location, no locations are returned.
    pub fn statics_of(&self, mangled: &str) -> Option<Vec<DebugStatic>> {
        let class = self.classes.get(mangled)?;
        let members = || class.members.iter().filter(|m| m.offset.is_none());
        let (others, blocks): (Vec<StaticAt>, Vec<StaticAt>) =
            members().filter_map(|m| self.places.get(&m.own).copied()).partition(|at| matches!(at, StaticAt::Address(_)));
        let plain = others.len();
        let mut places = others.into_iter().chain(blocks);
        let fields = members().filter_map(|m| {
            let at = places.next();
            Some(DebugStatic { name: m.name.clone(), kind: self.kind(m.entry)?, at })
        });
        let mut fields: Vec<DebugStatic> = fields.collect();
        let is_wrong = |(i, field): (usize, &DebugStatic)| match field.kind {
            FieldKind::Reference(_) => i < plain,
            FieldKind::Primitive(_) | FieldKind::Enum(..) => matches!(field.at, Some(StaticAt::InBlock { .. })),
            FieldKind::Structure(_) | FieldKind::Pointer => false,
        };
        if fields.len() != members().count() || fields.iter().enumerate().any(is_wrong) {
            fields.iter_mut().for_each(|field| field.at = None);
        }
        Some(fields)
    }

    /// Names and values of the members of an enum.
    pub fn literals_of(&self, mangled: &str) -> Option<&[(String, i64)]> {
        self.literals.get(mangled).map(Vec::as_slice)
    }

    fn kind(&self, entry: usize) -> Option<FieldKind> {
        Some(match self.entries.get(&entry)? {
            Entry::Primitive(element) => FieldKind::Primitive(*element),
            Entry::Enum { name, values } => match self.entries.get(values)? {
                Entry::Primitive(element) => FieldKind::Enum(Arc::clone(name), *element),
                _ => return None,
            },
            Entry::Class { name } => FieldKind::Structure(Arc::clone(name)),
            Entry::Reference(to) => match self.entries.get(to) {
                Some(Entry::Class { name }) => FieldKind::Reference(Arc::clone(name)),
                // The target is not a class: the entry is a `ref` field, which points into an object.
                _ => FieldKind::Pointer,
            },
            Entry::Pointer => FieldKind::Pointer,
        })
    }
}
