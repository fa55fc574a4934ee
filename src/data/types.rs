//! Method tables, classes, fields and type descriptors.

use super::{Inline, data};
use crate::base::Addr;

/// Flag of a method table, in `MTFlags` or in `Flags` of NativeAOT: the lower half of the flags is the component size (`enum_flag_HasComponentSize`).
pub(crate) const HAS_COMPONENT_SIZE: u32 = 0x8000_0000;

/// The component size in the flags of a method table, in bytes; `None` if all objects of the type have the base size.
pub(crate) const fn component_size(flags: u32) -> Option<u32> {
    if flags & HAS_COMPONENT_SIZE == 0 { None } else { Some(flags & 0xffff) }
}

data! {
    /// `EEClass` (class.h).
    EEClass {
        /// `EEClassOptionalFields`.
        OptionalFields: Addr,
        /// The first `MethodDescChunk`.
        MethodDescChunk: Addr,
        /// The canonical `MethodTable`.
        MethodTable: Addr,
        /// An array of `FieldDesc`.
        FieldDescList: Addr,
        /// The `CorElementType` of the type as a value; for an enum, the element type of the underlying type.
        InternalCorElementType: u8,
        /// .NET 9 and later: includes the fields of base types.
        NumInstanceFields: u16,
        NumStaticFields: u16,
        /// .NET 8: the size of the fixed part, after which `EEClassPacked` follows.
        FixedSize: u8,
        FieldsArePacked: u8,
    }

    /// .NET 8: `EEClassPackedFields` (class.h), after the fixed part of an `EEClass`.
    EEClassPacked {
        NumInstanceFields: u32,
        NumStaticFields: u32,
    }

    /// `ArrayClass` (class.h).
    ArrayClass {
        Rank: u8,
    }

    /// `FieldDesc` (field.h).
    FieldDesc {
        /// The row of the field, and flags.
        DWord1: u32,
        /// The offset, and the `CorElementType`.
        DWord2: u32,
    }

    /// `MethodTable` (methodtable.h).
    MethodTable {
        MTFlags: u32,
        BaseSize: u32,
        ParentMethodTable: Addr,
        /// The `EEClass`; with bit 0 set, the canonical method table.
        EEClassOrCanonMT: Addr,
        /// The dictionaries of a generic instance, by level of inheritance.
        PerInstInfo: Addr,
        NumInterfaces: u16,
        NumVirtuals: u16,
        /// .NET 9 and later: the row in TypeDef, and flags.
        MTFlags2: u32,
        /// .NET 9 and later.
        Module: Addr,
        AuxiliaryData: Addr,
        /// .NET 8: the row in TypeDef.
        TypeDefRidShort: u16,
        Flags2Short: u16,
        LoaderModule: Addr,
        InterfaceMap: Addr,
        /// NativeAOT only, like the fields that follow.
        Flags: u32,
        RelatedType: Addr,
        NumVtableSlots: u16,
        VTable: Inline,
    }

    /// `MethodTableAuxiliaryData` (methodtable.h), .NET 9 and later.
    MethodTableAuxiliaryData {
        LoaderModule: Addr,
    }

    /// `GenericsDictInfo` (methodtable.h), before the dictionaries.
    GenericsDictInfo {
        NumTypeArgs: u16,
        NumDicts: u16,
    }

    /// `TypeDesc` (typedesc.h).
    TypeDesc {
        /// The `CorElementType` in the lowest byte.
        TypeAndFlags: u32,
    }

    /// `ParamTypeDesc` (typedesc.h): a pointer or byref type.
    ParamTypeDesc {
        TypeArg: Addr,
    }

    /// `TypeVarTypeDesc` (typedesc.h): a type variable.
    TypeVarTypeDesc {
        Module: Addr,
        Token: u32,
    }

    /// `FnPtrTypeDesc` (typedesc.h): a function pointer.
    FnPtrTypeDesc {
        NumArgs: u32,
        /// The return type, then the parameter types.
        RetAndArgTypes: Inline,
    }
}
