//! Structures of Mono and of its collector, SGen. Only overlays describe them.

use super::{Inline, Word, data};
use crate::base::Addr;

data! {
    /// `MonoObject` (object-internals.h): the vtable and the synchronization word.
    MonoObject {}

    /// `MonoArray` (object-internals.h).
    MonoArray {
        /// Lengths and lower bounds; null for one-dimensional, zero-based arrays.
        bounds: Addr,
    }

    /// `MonoVTable` (class-internals.h), to which the first word of an object points.
    MonoVTable {
        klass: Addr,
        domain: Addr,
        /// The methods, followed by the address of the static fields, if the class has any.
        vtable: Inline,
    }

    /// `MonoClass` (class-private-definition.h), and the structures for each kind of class, which begin with a `MonoClass`.
    MonoClass {
        element_class: Addr,
        rank: u8,
        /// The kind, in the three low bits.
        class_kind: u8,
        /// Size of an object, header included.
        instance_size: u32,
        parent: Addr,
        image: Addr,
        type_token: u32,
        vtable_size: u32,
        /// Arrays only: size of an element.
        element_size: u32,
        /// An array of `MonoClassField`.
        fields: Addr,
        this_arg: Inline,
        byval_arg: Inline,
        runtime_info: Addr,
        /// Generic instances only.
        generic_class: Addr,
        /// Definitions only: `TypeAttributes`.
        flags: u32,
        /// Definitions only: row of the first field, from 0.
        first_field_idx: u32,
        field_count: u32,
    }

    /// `MonoClassRuntimeInfo` (class-internals.h): the vtable of the class in each application domain.
    MonoClassRuntimeInfo {
        max_domain: u16,
        domain_vtables: Inline,
    }

    /// `MonoType` (metadata-internals.h).
    MonoType {
        data: Addr,
        attrs: u16,
        Type = "type": u8,
        /// Flags: among them, whether the type is a managed pointer (`MonoTypeByReference`).
        modifiers: u8,
    }

    /// `MonoArrayType` (metadata.h).
    MonoArrayType {
        eklass: Addr,
        rank: u8,
    }

    /// `MonoClassField` (class-internals.h).
    MonoClassField {
        Type = "type": Addr,
        name: Addr,
        /// Counted from the start of the object; in a structure, from the start of its box.
        offset: i32,
    }

    /// `MonoGenericClass` (metadata-internals.h).
    MonoGenericClass {
        container_class: Addr,
        class_inst: Addr,
        cached_class: Addr,
    }

    /// `MonoGenericInst` (metadata-internals.h).
    MonoGenericInst {
        /// The number of arguments, in the 22 low bits.
        type_argc: u32,
        type_argv: Inline,
    }

    /// `MonoImage` (metadata-internals.h).
    MonoImage {
        name: Addr,
        /// The MVID as text.
        guid: Addr,
        raw_metadata: Addr,
    }

    /// `MonoDefaults` (class-internals.h): well-known classes.
    MonoDefaults {
        object_class: Addr,
        string_class: Addr,
        enum_class: Addr,
        exception_class: Addr,
        nullable_class: Addr,
    }

    /// Variables of the nursery (sgen-nursery-allocator.c).
    SgenNursery {
        size: Word,
        end: Addr,
        start: Addr,
        /// The first `SgenFragment`.
        fragments: Addr,
    }

    /// `SgenFragment` (sgen-gc.h): free memory of the nursery.
    SgenFragment {
        next: Addr,
        start: Addr,
        next_free: Addr,
        end: Addr,
    }

    /// `SgenArrayList` (sgen-array-list.h). For handles, `HandleData` (sgen-gchandles.c), which begins with a `SgenArrayList`.
    SgenArrayList {
        /// Buckets of 32, 64, 128 … slots.
        entries: Inline,
        capacity: u32,
        next_slot: u32,
        handle_type: u8,
    }

    /// `MSBlockInfo` (sgen-marksweep.c), at the start of a block of the major heap.
    SgenBlock {
        obj_size: u16,
        mark_words: Inline,
    }

    /// `SgenHashTable` (sgen-hash-table.c).
    SgenHashTable {
        /// Size of an entry's value in bytes.
        data_size: Word,
        hash: Addr,
        table: Addr,
        Slots = "size": u32,
    }

    /// An entry of the tables of registered roots: `SgenHashTableEntry` with a `RootRecord` (sgen-gc.h).
    SgenRoot {
        next: Addr,
        start: Addr,
        end: Addr,
        /// The GC descriptor, which encodes the words that are references.
        descriptor: Word,
        /// `MonoGCRootSource`.
        source: u32,
    }

    /// `LOSObject` (sgen-los.h), before a large object.
    SgenLargeObject {
        next: Addr,
        Bytes = "size": Word,
    }
}
