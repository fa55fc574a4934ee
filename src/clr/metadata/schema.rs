//! Schema of the metadata tables (ECMA-335 II.22, II.24.2.6; the pointer and edit-and-continue tables from the runtime's
//! `metamodelcolumndefs.h`). All tables are listed, because the offset of a table depends on the sizes of the tables before it.

/// Kind of a column.
#[derive(Clone, Copy)]
pub(super) enum Column {
    /// A 16-bit number.
    U16,
    /// A 32-bit number.
    U32,
    /// An offset into `#Strings`.
    Strings,
    /// A 1-based index into `#GUID`.
    Guid,
    /// An offset into `#Blob`.
    Blob,
    /// A row index of a table.
    Row(usize),
    /// The first row of a list. The list is in the second table (pointers to rows) if the second table has rows, otherwise in the first table.
    List(usize, usize),
    /// A coded index: the row of one of several tables. The given number of low bits selects the table.
    Coded(u32, &'static [usize]),
}

use Column::{Blob, Coded, Guid, List, Row, Strings, U16, U32};

/// Number of tables with a known schema.
pub(super) const TABLES: usize = 0x2d;

pub(super) const MODULE: usize = 0x00;
pub(super) const TYPE_REF: usize = 0x01;
pub(super) const TYPE_DEF: usize = 0x02;
pub(super) const FIELD_PTR: usize = 0x03;
pub(super) const FIELD: usize = 0x04;
pub(super) const METHOD_PTR: usize = 0x05;
pub(super) const METHOD_DEF: usize = 0x06;
pub(super) const PARAM_PTR: usize = 0x07;
pub(super) const PARAM: usize = 0x08;
const INTERFACE_IMPL: usize = 0x09;
pub(super) const MEMBER_REF: usize = 0x0a;
pub(super) const CONSTANT: usize = 0x0b;
pub(super) const STAND_ALONE_SIG: usize = 0x11;
pub(super) const FIELD_RVA: usize = 0x1d;
const EVENT_PTR: usize = 0x13;
const EVENT: usize = 0x14;
const PROPERTY_PTR: usize = 0x16;
const PROPERTY: usize = 0x17;
const MODULE_REF: usize = 0x1a;
pub(super) const TYPE_SPEC: usize = 0x1b;
pub(super) const ASSEMBLY: usize = 0x20;
pub(super) const ASSEMBLY_REF: usize = 0x23;
const FILE: usize = 0x26;
const EXPORTED_TYPE: usize = 0x27;
const MANIFEST_RESOURCE: usize = 0x28;
pub(super) const NESTED_CLASS: usize = 0x29;
pub(super) const GENERIC_PARAM: usize = 0x2a;
const METHOD_SPEC: usize = 0x2b;
const GENERIC_PARAM_CONSTRAINT: usize = 0x2c;

const TYPE_DEF_OR_REF: Column = Coded(2, &[TYPE_DEF, TYPE_REF, TYPE_SPEC]);
const HAS_CONSTANT: Column = Coded(2, &[FIELD, PARAM, PROPERTY]);
const HAS_CUSTOM_ATTRIBUTE: Column = Coded(
    5,
    &[
        METHOD_DEF,
        FIELD,
        TYPE_REF,
        TYPE_DEF,
        PARAM,
        INTERFACE_IMPL,
        MEMBER_REF,
        MODULE,
        0x0e,
        PROPERTY,
        EVENT,
        0x11,
        MODULE_REF,
        TYPE_SPEC,
        ASSEMBLY,
        ASSEMBLY_REF,
        FILE,
        EXPORTED_TYPE,
        MANIFEST_RESOURCE,
        GENERIC_PARAM,
        GENERIC_PARAM_CONSTRAINT,
        METHOD_SPEC,
    ],
);
const HAS_FIELD_MARSHAL: Column = Coded(1, &[FIELD, PARAM]);
const HAS_DECL_SECURITY: Column = Coded(2, &[TYPE_DEF, METHOD_DEF, ASSEMBLY]);
const MEMBER_REF_PARENT: Column = Coded(3, &[TYPE_DEF, TYPE_REF, MODULE_REF, METHOD_DEF, TYPE_SPEC]);
const HAS_SEMANTICS: Column = Coded(1, &[EVENT, PROPERTY]);
const METHOD_DEF_OR_REF: Column = Coded(1, &[METHOD_DEF, MEMBER_REF]);
const MEMBER_FORWARDED: Column = Coded(1, &[FIELD, METHOD_DEF]);
const IMPLEMENTATION: Column = Coded(2, &[FILE, ASSEMBLY_REF, EXPORTED_TYPE]);
const CUSTOM_ATTRIBUTE_TYPE: Column = Coded(3, &[METHOD_DEF, MEMBER_REF]);
const RESOLUTION_SCOPE: Column = Coded(2, &[MODULE, MODULE_REF, ASSEMBLY_REF, TYPE_REF]);
const TYPE_OR_METHOD_DEF: Column = Coded(1, &[TYPE_DEF, METHOD_DEF]);

/// Columns of each table, by table number.
pub(super) const SCHEMA: [&[Column]; TABLES] = [
    &[U16, Strings, Guid, Guid, Guid],     // 00 Module
    &[RESOLUTION_SCOPE, Strings, Strings], // 01 TypeRef
    &[U32, Strings, Strings, TYPE_DEF_OR_REF, List(FIELD, FIELD_PTR), List(METHOD_DEF, METHOD_PTR)], // 02 TypeDef
    &[Row(FIELD)],                         // 03 FieldPtr
    &[U16, Strings, Blob],                 // 04 Field
    &[Row(METHOD_DEF)],                    // 05 MethodPtr
    &[U32, U16, U16, Strings, Blob, List(PARAM, PARAM_PTR)], // 06 MethodDef
    &[Row(PARAM)],                         // 07 ParamPtr
    &[U16, U16, Strings],                  // 08 Param
    &[Row(TYPE_DEF), TYPE_DEF_OR_REF],     // 09 InterfaceImpl
    &[MEMBER_REF_PARENT, Strings, Blob],   // 0a MemberRef
    &[U16, HAS_CONSTANT, Blob],            // 0b Constant
    &[HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, Blob], // 0c CustomAttribute
    &[HAS_FIELD_MARSHAL, Blob],            // 0d FieldMarshal
    &[U16, HAS_DECL_SECURITY, Blob],       // 0e DeclSecurity
    &[U16, U32, Row(TYPE_DEF)],            // 0f ClassLayout
    &[U32, Row(FIELD)],                    // 10 FieldLayout
    &[Blob],                               // 11 StandAloneSig
    &[Row(TYPE_DEF), List(EVENT, EVENT_PTR)], // 12 EventMap
    &[Row(EVENT)],                         // 13 EventPtr
    &[U16, Strings, TYPE_DEF_OR_REF],      // 14 Event
    &[Row(TYPE_DEF), List(PROPERTY, PROPERTY_PTR)], // 15 PropertyMap
    &[Row(PROPERTY)],                      // 16 PropertyPtr
    &[U16, Strings, Blob],                 // 17 Property
    &[U16, Row(METHOD_DEF), HAS_SEMANTICS], // 18 MethodSemantics
    &[Row(TYPE_DEF), METHOD_DEF_OR_REF, METHOD_DEF_OR_REF], // 19 MethodImpl
    &[Strings],                            // 1a ModuleRef
    &[Blob],                               // 1b TypeSpec
    &[U16, MEMBER_FORWARDED, Strings, Row(MODULE_REF)], // 1c ImplMap
    &[U32, Row(FIELD)],                    // 1d FieldRVA
    &[U32, U32],                           // 1e ENCLog
    &[U32],                                // 1f ENCMap
    &[U32, U16, U16, U16, U16, U32, Blob, Strings, Strings], // 20 Assembly
    &[U32],                                // 21 AssemblyProcessor
    &[U32, U32, U32],                      // 22 AssemblyOS
    &[U16, U16, U16, U16, U32, Blob, Strings, Strings, Blob], // 23 AssemblyRef
    &[U32, Row(ASSEMBLY_REF)],             // 24 AssemblyRefProcessor
    &[U32, U32, U32, Row(ASSEMBLY_REF)],   // 25 AssemblyRefOS
    &[U32, Strings, Blob],                 // 26 File
    &[U32, U32, Strings, Strings, IMPLEMENTATION], // 27 ExportedType
    &[U32, U32, Strings, IMPLEMENTATION],  // 28 ManifestResource
    &[Row(TYPE_DEF), Row(TYPE_DEF)],       // 29 NestedClass
    &[U16, U16, TYPE_OR_METHOD_DEF, Strings], // 2a GenericParam
    &[METHOD_DEF_OR_REF, Blob],            // 2b MethodSpec
    &[Row(GENERIC_PARAM), TYPE_DEF_OR_REF], // 2c GenericParamConstraint
];

/// Parameters that determine the widths of indices.
pub(super) struct Widths {
    /// Row counts of all 64 tables.
    pub rows: [u32; 64],
    /// Bits 0, 1, 2: indices into `#Strings`, `#GUID`, `#Blob` have four bytes.
    pub heaps: u8,
    /// Whether all indices have four bytes: in a minimal delta of edit and continue, which has a `#JTD` stream.
    pub all_large: bool,
}

impl Widths {
    fn rows(&self, table: usize) -> u32 {
        self.rows.get(table).copied().unwrap_or(0)
    }

    fn index(&self, large: bool) -> u64 {
        if large || self.all_large { 4 } else { 2 }
    }

    /// Width of a column in bytes.
    pub(super) fn column(&self, column: Column) -> u64 {
        match column {
            U16 => 2,
            U32 => 4,
            Strings => self.index(self.heaps & 1 != 0),
            Guid => self.index(self.heaps & 2 != 0),
            Blob => self.index(self.heaps & 4 != 0),
            Row(table) => self.index(self.rows(table) > 0xffff),
            List(table, pointers) => {
                let table = if self.rows(pointers) > 0 { pointers } else { table };
                self.index(self.rows(table) > 0xffff)
            }
            Coded(bits, tables) => {
                let most = tables.iter().map(|t| self.rows(*t)).max().unwrap_or(0);
                self.index(most >= 1 << (16 - bits))
            }
        }
    }

    /// Size of a row in bytes.
    pub(super) fn row(&self, table: usize) -> u64 {
        SCHEMA.get(table).map_or(0, |columns| columns.iter().map(|c| self.column(*c)).fold(0, u64::saturating_add))
    }
}
