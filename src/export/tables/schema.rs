//! The columns of the tables. Tables contain the names next to the ids that they belong to, so that queries need no joins. Dictionary encoding
//! makes repeated names cheap.

use std::borrow::Cow;

use super::block::{Column, Kind, Packing};
use crate::model::ExportTable;

const fn column(name: &'static str, kind: Kind, packing: Packing) -> Column {
    Column { name: Cow::Borrowed(name), kind, packing }
}

/// A column of numbers that increase from row to row.
const fn rising(name: &'static str) -> Column {
    column(name, Kind::Int, Packing::Delta)
}

/// A column with few distinct numbers.
const fn few(name: &'static str) -> Column {
    column(name, Kind::Int, Packing::Dictionary)
}

const fn int(name: &'static str) -> Column {
    column(name, Kind::Int, Packing::Plain)
}

const fn text(name: &'static str) -> Column {
    column(name, Kind::Text, Packing::Dictionary)
}

const fn flag(name: &'static str) -> Column {
    column(name, Kind::Flag, Packing::Plain)
}

const fn real(name: &'static str) -> Column {
    column(name, Kind::Real, Packing::Plain)
}

/// Returns the columns of a table, in order.
pub const fn columns(table: ExportTable) -> &'static [Column] {
    match table {
        ExportTable::Dumps => DUMPS,
        ExportTable::Types => TYPES,
        ExportTable::Objects => OBJECTS,
        ExportTable::Refs => REFS,
        ExportTable::Roots => ROOTS,
        ExportTable::Segments => SEGMENTS,
        ExportTable::Handles => HANDLES,
        ExportTable::Suspects => SUSPECTS,
        ExportTable::Strings => STRINGS,
        ExportTable::Statics => STATICS,
        ExportTable::Threads => THREADS,
        ExportTable::Frames => FRAMES,
        ExportTable::Exceptions => EXCEPTIONS,
        ExportTable::Tasks => TASKS,
        ExportTable::Requests => REQUESTS,
        ExportTable::Locks => LOCKS,
        ExportTable::Modules => MODULES,
    }
}

const DUMPS: &[Column] = &[
    text("path"),
    int("file_bytes"),
    int("file_time"),
    text("process_name"),
    int("process_id"),
    int("time"),
    text("os"),
    text("architecture"),
    text("runtime_version"),
    text("runtime_build_id"),
    text("gc_kind"),
    text("gc_layout"),
    int("heap_count"),
    text("app"),
    text("app_build_id"),
    int("types"),
    int("objects"),
    int("bytes"),
    int("free_bytes"),
    int("allocated"),
    int("committed"),
    int("handles"),
    int("pinned_handles"),
    int("finalizer_ready"),
    flag("complete"),
    text("gcdump"),
    text("error"),
    text("command_line"),
];

const TYPES: &[Column] = &[
    rising("type_id"),
    rising("method_table"),
    text("name"),
    text("module"),
    int("base_size"),
    int("component_size"),
    int("count"),
    int("bytes"),
    int("retained"),
    flag("collectible"),
];

const OBJECTS: &[Column] = &[
    rising("object"),
    rising("address"),
    few("type_id"),
    text("name"),
    few("size"),
    text("generation"),
    few("heap"),
    few("segment"),
    few("length"),
    int("retained"),
    int("dominator"),
    few("distance"),
    flag("reachable"),
    int("hash_code"),
];

const REFS: &[Column] = &[rising("from_object"), int("to_object"), few("field_offset"), text("field")];

const ROOTS: &[Column] =
    &[text("kind"), int("address"), int("object"), int("object_address"), text("name"), text("label"), few("thread"), text("flags")];

const SEGMENTS: &[Column] = &[
    int("segment"),
    few("heap"),
    text("generation"),
    int("start"),
    int("allocated_end"),
    int("committed_end"),
    int("reserved_end"),
    int("allocated"),
    int("committed"),
    int("reserved"),
    int("captured"),
    int("objects"),
    int("free_objects"),
    int("free_bytes"),
    flag("walked"),
];

const HANDLES: &[Column] = &[
    int("address"),
    text("kind"),
    int("object"),
    int("object_address"),
    text("name"),
    int("object_size"),
    flag("strong"),
    int("ref_count"),
    int("secondary"),
    text("secondary_name"),
];

const SUSPECTS: &[Column] = &[
    text("signature"),
    text("kind"),
    text("name"),
    int("address"),
    int("object"),
    int("count"),
    int("retained"),
    real("share"),
    text("root_kind"),
    text("root_label"),
    text("accumulation"),
    int("accumulation_address"),
    text("content"),
    int("content_count"),
    int("content_retained"),
];

const STRINGS: &[Column] = &[text("hash"), int("length"), int("count"), int("bytes"), int("waste"), int("address"), text("text")];

const STATICS: &[Column] = &[
    text("declaring_type"),
    text("name"),
    text("type"),
    text("module"),
    text("storage"),
    few("thread"),
    int("address"),
    text("kind"),
    text("value"),
    int("object"),
    int("object_address"),
    text("object_type"),
];

const THREADS: &[Column] = &[
    int("managed_id"),
    int("os_id"),
    int("address"),
    text("name"),
    text("state"),
    text("gc_mode"),
    flag("crashed"),
    flag("finalizer"),
    int("exception_address"),
    text("exception"),
    text("waits_for"),
    int("waits_for_address"),
    text("waits_for_type"),
    int("locks_held"),
];

const FRAMES: &[Column] = &[
    few("managed_id"),
    few("os_id"),
    few("frame"),
    text("kind"),
    text("method"),
    few("method_desc"),
    text("module"),
    few("code_offset"),
    text("file"),
    few("line"),
    int("ip"),
    int("sp"),
    text("frame_type"),
];

const EXCEPTIONS: &[Column] = &[
    int("object"),
    int("address"),
    text("name"),
    text("message"),
    few("hresult"),
    int("inner_address"),
    few("thread"),
    text("thread_role"),
    text("thrown_by"),
    few("frames"),
];

const TASKS: &[Column] = &[
    int("object"),
    int("address"),
    text("name"),
    text("status"),
    text("method"),
    int("exception_address"),
    text("exception"),
    flag("unobserved"),
];

const REQUESTS: &[Column] = &[
    text("direction"),
    int("object"),
    int("address"),
    text("state"),
    text("method"),
    text("uri"),
    text("protocol"),
    text("start_utc"),
    int("age_ms"),
    text("connection_id"),
    text("remote"),
    text("endpoint"),
    few("thread"),
    text("waits_for"),
    int("waits_for_address"),
];

const LOCKS: &[Column] = &[
    text("kind"),
    int("object"),
    int("address"),
    text("name"),
    few("owner"),
    few("owner_os_id"),
    flag("orphaned"),
    few("recursion"),
    few("readers"),
    few("waiters"),
    few("waiting"),
    few("count"),
    int("sync_block"),
];

const MODULES: &[Column] = &[
    text("name"),
    text("kind"),
    text("path"),
    text("version"),
    int("base"),
    int("size"),
    text("mvid"),
    text("build_id"),
    flag("collectible"),
    flag("needed"),
];
