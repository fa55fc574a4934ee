//! The structures of the GC, bound once, and the locations of the fields of each heap.

use super::heap_id::HeapId;
use crate::base::Addr;
use crate::contract::{ContractError, Descriptor};
use crate::data::{
    Bound, CardTableInfo, Field, GCDynamicData, GCHeap, GCMechanisms, GCRecord, GCRecordedGeneration, GCStaticData, HandleTable,
    HandleTableBucket, HandleTableMap, Structure, TableSegment, bind, globals,
};

/// Binds the header of the bookkeeping memory (`CardTableInfo`).
///
/// # Errors
/// [`ContractError`] if the descriptor does not have all of its fields.
pub(super) fn card_table_info(d: &Descriptor) -> Result<Bound<CardTableInfo>, ContractError> {
    bind!(d, CardTableInfo { Recount, Size, NextCardTable })
}

/// The structures of the GC's records of its collections.
pub(super) struct RecordFields {
    pub(super) dynamic: Bound<GCDynamicData>,
    pub(super) dynamic_size: u64,
    pub(super) static_size: u64,
    pub(super) mechanisms: Bound<GCMechanisms>,
    pub(super) mechanisms_size: u64,
    pub(super) record: Bound<GCRecord>,
    pub(super) record_size: u64,
    pub(super) pauses: u64,
    pub(super) recorded: Bound<GCRecordedGeneration>,
    pub(super) recorded_size: u64,
}

impl RecordFields {
    pub(super) fn bind(d: &Descriptor) -> Result<RecordFields, ContractError> {
        Ok(RecordFields {
            dynamic: GCDynamicData::bind_all(d)?,
            dynamic_size: GCDynamicData::size(d)?,
            static_size: GCStaticData::size(d)?,
            mechanisms: GCMechanisms::bind_all(d)?,
            mechanisms_size: GCMechanisms::size(d)?,
            record: GCRecord::bind_all(d)?,
            record_size: GCRecord::size(d)?,
            pauses: d.number("GCRecordPauses")?.min(2),
            recorded: GCRecordedGeneration::bind_all(d)?,
            recorded_size: GCRecordedGeneration::size(d)?,
        })
    }
}

/// The structures of handle tables, and their constants.
pub(super) struct HandleFields {
    pub(super) map_at: Addr,
    pub(super) map: Bound<HandleTableMap>,
    pub(super) bucket: Bound<HandleTableBucket>,
    pub(super) table: Bound<HandleTable>,
    pub(super) segment: Bound<TableSegment>,
    pub(super) buckets_per_map: u64,
    pub(super) blocks: u64,
    pub(super) per_block: u64,
    pub(super) types: u64,
    pub(super) segment_bytes: u64,
    pub(super) block_invalid: u64,
    pub(super) destroyed: u64,
}

impl HandleFields {
    /// Number of handle types in .NET 8, the internal one included. No later release has fewer.
    const FEWEST_TYPES: u64 = 12;

    pub(super) fn bind(d: &Descriptor) -> Result<HandleFields, ContractError> {
        let types = globals::HandleMaxInternalTypes.of(d)?;
        if types < Self::FEWEST_TYPES {
            let why = format!("{types} handle types are fewer than any runtime has");
            return Err(ContractError::Unusable { item: "global HandleMaxInternalTypes".into(), why });
        }
        Ok(HandleFields {
            map_at: d.pointer("HandleTableMap")?,
            map: bind!(d, HandleTableMap { BucketsPtr, Next })?,
            bucket: bind!(d, HandleTableBucket { Table })?,
            table: bind!(d, HandleTable { SegmentList })?,
            segment: bind!(d, TableSegment { NextSegment, RgAllocation, RgTail, RgUserData, RgValue })?,
            buckets_per_map: globals::InitialHandleTableArraySize.of(d)?,
            blocks: d.number("HandleBlocksPerSegment")?,
            per_block: d.number("HandlesPerBlock")?,
            types,
            segment_bytes: d.number("HandleSegmentSize").unwrap_or(0x10000),
            block_invalid: d.number("BlockInvalid")?,
            destroyed: d.number("DebugDestroyedHandleValue").unwrap_or(0),
        })
    }
}

/// Location of a field of `gc_heap`: a global variable with workstation GC.
#[derive(Clone, Copy, Debug)]
enum HeapField {
    Global(Addr),
    Field(u64),
}

/// The locations of the fields of `gc_heap`.
pub(super) struct Places {
    /// Locations by [`Field::index`]; `None` if this build does not have the field, and an error if the descriptor's entry cannot be used.
    places: Box<[Result<Option<HeapField>, ContractError>]>,
}

impl Places {
    pub(super) fn bind(d: &Descriptor, server: bool) -> Places {
        Places { places: GCHeap::FIELDS.iter().map(|names| place(d, server, names)).collect() }
    }

    fn place<T>(&self, field: Field<GCHeap, T>) -> Option<HeapField> {
        *self.places.get(field.index())?.as_ref().ok()?
    }

    /// Whether this build has a field.
    pub(super) fn has<T>(&self, field: Field<GCHeap, T>) -> bool {
        self.place(field).is_some()
    }

    /// The address of a field of `heap`; `None` if this build does not have the field.
    pub(super) fn at<T>(&self, heap: HeapId, field: Field<GCHeap, T>) -> Option<Addr> {
        match self.place(field)? {
            HeapField::Global(at) => Some(at),
            HeapField::Field(offset) => heap.address.map(|heap| heap.plus(offset)),
        }
    }

    /// Why a field that the descriptor has cannot be used.
    pub(super) fn unusable<T>(&self, field: Field<GCHeap, T>) -> Option<&ContractError> {
        self.places.get(field.index())?.as_ref().err()
    }

    /// The reasons of all fields that cannot be used.
    pub(super) fn all_unusable(&self) -> impl Iterator<Item = &ContractError> {
        self.places.iter().filter_map(|place| place.as_ref().err())
    }
}

/// Finds a field of `gc_heap`. Workstation globals are named like the server fields, with the prefix `GCHeap`. `OomData`, the arrays and
/// the generation table are embedded: their data starts at the address found (contract `GC` reads a pointer there, which is wrong in every
/// dump measured).
///
/// # Errors
/// [`ContractError::Unusable`] if the descriptor has the field in a form that cannot be used.
fn place(d: &Descriptor, server: bool, names: &str) -> Result<Option<HeapField>, ContractError> {
    let found = if server {
        d.offset(GCHeap::NAME, names).map(HeapField::Field)
    } else {
        let globals: Vec<String> = names.split('|').map(|name| format!("{}{name}", GCHeap::NAME)).collect();
        d.pointer(&globals.join("|")).map(HeapField::Global)
    };
    match found {
        Ok(HeapField::Global(a)) if a.is_null() => Ok(None),
        Ok(place) => Ok(Some(place)),
        Err(e @ ContractError::Unusable { .. }) => Err(e),
        Err(_) => Ok(None),
    }
}
