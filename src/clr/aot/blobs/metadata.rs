//! NativeAOT metadata (native format): names of types, namespaces and modules.
//!
//! A record is a sequence of numbers at an offset. A reference is the offset of its target if the kind of the target is fixed. Otherwise
//! the low bits of the reference contain the kind, and the high bits contain the offset. The kind has 7 bits since .NET 10, and 8 before. Source:
//! `SchemaDef.cs` of the runtime's metadata generator.

use std::sync::{Arc, Mutex, PoisonError};

use super::reader::{Cursor, Section};
use crate::base::hash::Map;
use crate::base::missed::Kept;
use crate::base::{Budget, len64};

/// The first four bytes of the metadata.
const SIGNATURE: u32 = 0xdead_dffd;

// Kinds of records.
const NAMESPACE_DEFINITION: u8 = 0x2f;
const NAMESPACE_REFERENCE: u8 = 0x30;
const SCOPE_DEFINITION: u8 = 0x38;
const SCOPE_REFERENCE: u8 = 0x39;
const TYPE_DEFINITION: u8 = 0x3a;
const TYPE_INSTANCE: u8 = 0x3c;
const TYPE_REFERENCE: u8 = 0x3d;
const TYPE_SPECIFICATION: u8 = 0x3e;

/// Maximum nesting of types and of namespaces.
const MAX_NESTING: u32 = 64;
/// Maximum length of a name in bytes. Compilers limit names to 1,023 bytes.
const MAX_NAME: u64 = 4096;

/// The first major version of ReadyToRun headers in which kinds have 7 bits (.NET 10).
const NARROW_SINCE: u16 = 16;

/// The division of a record reference into kind and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Split {
    kind_bits: u32,
}

impl Split {
    pub(super) fn of_version(major: u16) -> Split {
        Split { kind_bits: if major >= NARROW_SINCE { 7 } else { 8 } }
    }

    /// Decodes a reference in metadata.
    fn of_reference(self, n: u32) -> Handle {
        let offset = n >> self.kind_bits;
        Handle { kind: low_byte(n ^ offset << self.kind_bits), offset }
    }

    /// Decodes a token: a reference from outside the metadata, which has the kind in its high bits.
    pub(super) fn of_token(self, n: u32) -> Handle {
        let shift = u32::BITS.saturating_sub(self.kind_bits);
        let kind = n >> shift;
        Handle { kind: low_byte(kind), offset: n ^ kind << shift }
    }
}

fn low_byte(n: u32) -> u8 {
    let [low, ..] = n.to_le_bytes();
    low
}

/// A reference to a record of any kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle {
    kind: u8,
    offset: u32,
}

/// A namespace and its module. The text is empty for the root namespace.
#[derive(Clone, Debug)]
struct Namespace {
    namespace: String,
    module: Arc<str>,
}

/// The name of a type, without generic arguments, and the name of its module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Full name as in metadata: ``System.Collections.Generic.Dictionary`2+Entry``.
    pub name: String,
    /// Simple name of the module: `System.Private.CoreLib`.
    pub module: Arc<str>,
}

/// The metadata of a module.
#[derive(Debug)]
pub(super) struct Metadata {
    section: Section,
    split: Split,
    /// Namespaces by offset. Most types are in a few namespaces, so each is read once.
    places: Mutex<Map<u32, Kept<Option<Arc<Namespace>>>>>,
}

impl Metadata {
    pub(super) fn open(section: Section, split: Split) -> Option<Metadata> {
        (section.u32(0)? == SIGNATURE).then(|| Metadata { section, split, places: Mutex::default() })
    }

    fn at(&self, offset: u32) -> Cursor<'_> {
        self.section.at(offset.into())
    }

    /// The text of a string record.
    pub(super) fn string(&self, offset: u32, budget: &Budget) -> Option<String> {
        let mut cursor = self.at(offset);
        let len = u64::from(cursor.unsigned()?);
        (len <= MAX_NAME && budget.steps(1) && budget.bytes(len)).then_some(())?;
        self.section.text(cursor.at, len)
    }

    /// Name and module of the type that `handle` refers to.
    pub(super) fn type_name(&self, mut handle: Handle, budget: &Budget) -> Option<Definition> {
        // Innermost name first.
        let mut names: Vec<String> = Vec::new();
        for _ in 0..MAX_NESTING {
            budget.steps(1).then_some(())?;
            let mut record = self.at(handle.offset);
            let outer = match handle.kind {
                TYPE_DEFINITION => {
                    let (_flags, _base, namespace) = (record.unsigned()?, record.unsigned()?, record.unsigned()?);
                    let (name, _size, _packing, enclosing) =
                        (record.unsigned()?, record.unsigned()?, record.unsigned()?, record.unsigned()?);
                    names.push(self.string(name, budget)?);
                    if enclosing == 0 {
                        Handle { kind: NAMESPACE_DEFINITION, offset: namespace }
                    } else {
                        Handle { kind: TYPE_DEFINITION, offset: enclosing }
                    }
                }
                TYPE_REFERENCE => {
                    let (parent, name) = (record.unsigned()?, record.unsigned()?);
                    names.push(self.string(name, budget)?);
                    self.split.of_reference(parent)
                }
                // Both records begin with a reference: to the type, or to the generic definition.
                TYPE_SPECIFICATION | TYPE_INSTANCE if names.is_empty() => self.split.of_reference(record.unsigned()?),
                NAMESPACE_DEFINITION | NAMESPACE_REFERENCE if !names.is_empty() => {
                    return Some(named(&*self.place(handle, budget)?, &names)).filter(|d| budget.memory(len64(d.name.len())));
                }
                _ => return None,
            };
            handle = outer;
        }
        None
    }

    /// The namespace that `handle` refers to.
    fn place(&self, handle: Handle, budget: &Budget) -> Option<Arc<Namespace>> {
        let places = || self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let known = places().get(&handle.offset).cloned();
        let known = known.unwrap_or_else(|| {
            let read = Kept::of(|| self.read_place(handle, budget).map(Arc::new));
            places().insert(handle.offset, read.clone());
            read
        });
        known.get().clone()
    }

    fn read_place(&self, mut handle: Handle, budget: &Budget) -> Option<Namespace> {
        // Innermost name first.
        let mut parts: Vec<String> = Vec::new();
        for _ in 0..MAX_NESTING {
            budget.steps(1).then_some(())?;
            let mut record = self.at(handle.offset);
            match handle.kind {
                NAMESPACE_DEFINITION | NAMESPACE_REFERENCE => {
                    let (parent, name) = (record.unsigned()?, record.unsigned()?);
                    // The root namespace has no name.
                    if name != 0 {
                        parts.push(self.string(name, budget)?);
                    }
                    handle = self.split.of_reference(parent);
                }
                SCOPE_DEFINITION | SCOPE_REFERENCE => {
                    let (_flags, name) = (record.unsigned()?, record.unsigned()?);
                    let module = self.string(name, budget)?.into();
                    parts.retain(|part| !part.is_empty());
                    parts.reverse();
                    let namespace = parts.join(".");
                    return budget.memory(len64(namespace.len())).then_some(Namespace { namespace, module });
                }
                _ => return None,
            }
        }
        None
    }
}

/// The definition of a type in the namespace `place`. `names` are the names of the type and its enclosing types, innermost first.
fn named(place: &Namespace, names: &[String]) -> Definition {
    let mut name = place.namespace.clone();
    for (i, part) in names.iter().rev().enumerate() {
        match i {
            0 if name.is_empty() => {}
            0 => name.push('.'),
            _ => name.push('+'),
        }
        name.push_str(part);
    }
    Definition { name, module: Arc::clone(&place.module) }
}
