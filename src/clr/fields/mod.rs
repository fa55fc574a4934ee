//! Fields: offsets from FieldDescs, names and types from metadata.
//!
//! Source: contract `RuntimeTypeSystem` (FieldDesc); `docs/internals/types.md#fields`, measured on .NET 8 to 10.

use std::sync::Arc;

mod definition;
mod index;
mod list;
mod mono;
mod names;
mod native_aot;
mod net8;
mod net9;
mod resolve;
mod typed;

pub use definition::Definition;
pub use list::Field;
pub(crate) use resolve::CORE;
pub use resolve::Types;
pub(crate) use typed::Typed;

use super::method_table::{MethodTableInfo, MethodTables};
use super::type_names::TypeNames;
use crate::base::{Addr, CorElementType, Token, TokenTable};
use crate::contract::{ContractError, Descriptor};
use crate::data::{self, Bound, EEClass, Structure, bind};
use crate::memory::Memory;
pub use crate::model::Storage;
use net8::Net8;
use net9::Net9;

// Bits of DWord1 above the metadata row of the field.
const IS_STATIC: u32 = 0x0100_0000;
const IS_THREAD_STATIC: u32 = 0x0200_0000;
const IS_RVA: u32 = 0x0400_0000;
/// Mask of the offset, from the end of the method table pointer or from the base of the statics.
const OFFSET_MASK: u32 = 0x07ff_ffff;
/// Shift of the element type, which is in the five high bits.
const TYPE_SHIFT: u32 = 27;
/// Maximum number of fields that a type declares; more indicate corruption. Since .NET 9 the runtime has 16-bit counts.
const MAX_FIELDS: u32 = 65_535;

/// A decoded field descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldDesc {
    /// Token in the defining module.
    pub(super) token: Token,
    pub(super) storage: Storage,
    /// Offset as stored, which excludes the method table pointer.
    pub(super) offset: u64,
    /// `Class` for references, the underlying type for enums.
    pub(super) element: CorElementType,
}

/// The descriptors of the fields declared by a type.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnFields {
    pub(super) instance: Vec<FieldDesc>,
    pub(super) statics: Vec<FieldDesc>,
}

/// Encoding of an EEClass's field counts.
#[derive(Clone, Debug)]
enum Counts {
    Net8(Net8),
    Net9(Net9),
}

impl Counts {
    fn bind(d: &Descriptor) -> Option<Counts> {
        Net9::bind(d).map(Counts::Net9).or_else(|| Net8::bind(d).map(Counts::Net8))
    }
}

/// Reader of FieldDescs.
#[derive(Clone, Debug)]
pub struct Fields {
    memory: Arc<Memory>,
    desc: Bound<data::FieldDesc>,
    desc_bytes: u64,
    class: Bound<EEClass>,
    counts: Option<Counts>,
}

impl Fields {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if no supported version of contract `RuntimeTypeSystem` is advertised, or the descriptor does not have the
    /// layouts.
    /// .NET 9 and 10 do not publish FieldDesc; the overlays add it.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Fields, ContractError> {
        use data::FieldDesc as Desc;
        MethodTables::CONTRACT.require(d)?;
        Ok(Fields {
            memory: Arc::clone(memory),
            desc: bind!(d, Desc { DWord1, DWord2 })?,
            desc_bytes: Desc::size(d)?,
            class: bind!(d, EEClass { FieldDescList, InternalCorElementType? })?,
            counts: Counts::bind(d),
        })
    }

    /// Number of instance fields of a type, including inherited ones, and number of static fields that it declares.
    fn counts(&self, class: Addr) -> Option<(u32, u32)> {
        match self.counts.as_ref()? {
            Counts::Net8(net8) => net8.counts(&self.memory, class),
            Counts::Net9(net9) => net9.counts(&self.memory, class),
        }
    }

    /// Element type of the type as a value: the underlying type of an enum, `ValueType` for other structures.
    pub(super) fn element_type(&self, class: Addr) -> Option<CorElementType> {
        CorElementType::of(self.class.get(&self.memory, class, EEClass::InternalCorElementType)?)
    }

    fn desc(&self, at: Addr) -> Option<FieldDesc> {
        let word = |field| self.desc.get(&self.memory, at, field);
        let (word, place) = (word(data::FieldDesc::DWord1)?, word(data::FieldDesc::DWord2)?);
        let storage = match word {
            t if t & IS_STATIC == 0 => Storage::Instance,
            t if t & IS_THREAD_STATIC != 0 => Storage::ThreadStatic,
            t if t & IS_RVA != 0 => Storage::Rva,
            _ => Storage::Static,
        };
        Some(FieldDesc {
            token: Token::in_low_bits(TokenTable::FieldDef, word),
            storage,
            offset: u64::from(place & OFFSET_MASK),
            element: CorElementType::of(u8::try_from(place >> TYPE_SHIFT).ok()?)?,
        })
    }

    /// The fields that a type declares, instance fields first, as stored by the runtime.
    pub(super) fn own(&self, names: &TypeNames, info: &MethodTableInfo) -> Option<OwnFields> {
        let tables = names.method_tables();
        let class = tables.class(info.address).ok()?;
        let inherited = if info.parent.is_null() { 0 } else { self.counts(tables.class(info.parent).ok()?)?.0 };
        let (all, statics) = self.counts(class)?;
        let own = all.checked_sub(inherited)?.min(MAX_FIELDS);
        let statics = statics.min(MAX_FIELDS);
        let list = self.class.get(&self.memory, class, EEClass::FieldDescList)?;
        let read = |list: Addr, from: u32, count: u32| {
            let places = (u64::from(from)..).take(usize::try_from(count).unwrap_or(0));
            places.map_while(|i| self.desc(list.element(i, self.desc_bytes))).collect::<Vec<_>>()
        };
        let instance = read(list, 0, own);
        // .NET 8: generic instances have their own copies of the FieldDescs of static fields.
        let statics = match tables.generic_statics(info) {
            Some((list, _)) => read(list, 0, statics),
            None => read(list, own, statics),
        };
        Some(OwnFields { instance, statics })
    }

    /// Offset from the start of the object of the field `name` that the type itself declares.
    pub fn offset(&self, names: &TypeNames, mt: Addr, name: &str) -> Option<u64> {
        let tables = names.method_tables();
        let info = tables.read(mt).ok()?;
        let module = names.module(tables.module(&info).ok()?);
        let metadata = module.metadata.as_ref()?;
        let own = self.own(names, &info)?.instance;
        let field = own.iter().find(|f| metadata.field_name(f.token.rid()).is_some_and(|n| n == name))?;
        Some(self.memory.ptr_bytes().saturating_add(field.offset))
    }
}
