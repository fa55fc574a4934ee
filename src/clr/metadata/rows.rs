//! Rows of Field, MethodDef, TypeRef, TypeSpec and Constant.

use super::Metadata;
use super::schema::{ASSEMBLY_REF, CONSTANT, FIELD, FIELD_RVA, METHOD_DEF, STAND_ALONE_SIG, TYPE_DEF, TYPE_REF, TYPE_SPEC};
use super::signature::{self, MethodSig, TypeSig, compressed, type_def_or_ref};
use crate::base::{CorElementType, Token};

/// Maximum size in bytes of a signature or a constant. Signatures have a few dozen bytes; a constant is as long as its literal.
const MAX_BLOB: u32 = 1 << 16;

/// A row of the Field table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRow {
    /// `FieldAttributes`: 0x10 static, 0x40 literal (a constant without storage), 0x100 has an RVA.
    pub flags: u32,
    /// Name.
    pub name: String,
    /// Type; `None` if the signature cannot be read.
    pub signature: Option<TypeSig>,
}

/// A row of the MethodDef table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodRow {
    /// `MethodAttributes`: 0x10 static.
    pub flags: u32,
    /// Name.
    pub name: String,
    /// Parameters and return type; `None` if the signature cannot be read.
    pub signature: Option<MethodSig>,
}

/// A row of the TypeRef table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeRef {
    /// ResolutionScope, a coded index. The low two bits select the table: 0 Module, 1 ModuleRef, 2 AssemblyRef, 3 TypeRef (the enclosing
    /// type). The other bits are the row.
    pub scope: u32,
    /// Namespace; empty for nested types.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// The value of a literal field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constant {
    /// Type of the value; `None` if the element type is invalid.
    pub kind: Option<CorElementType>,
    /// The value in little-endian order.
    pub bytes: Vec<u8>,
}

impl Metadata {
    /// The blob at `offset` in `#Blob`.
    fn blob(&self, offset: u32) -> Option<Vec<u8>> {
        let offset = u64::from(offset);
        let room = self.blobs.len.checked_sub(offset).filter(|n| *n > 0)?;
        let at = self.blobs.at.checked_add(offset)?;
        let head = self.source.bytes(at, room.min(4))?;
        let (len, used) = compressed(&head)?;
        (len <= MAX_BLOB).then_some(())?;
        Some(self.source.bytes(at.checked_add(u64::try_from(used).ok()?)?, u64::from(len))?.into_owned())
    }

    /// The signature at `offset` in `#Blob`, which `read` decodes.
    fn signature<T>(&self, offset: u32, read: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let decoded = read(&self.blob(offset)?);
        if decoded.is_none() && offset != 0 {
            let at = self.blobs.at.saturating_add(u64::from(offset));
            self.source.deny(at, "a signature in the metadata of a module is empty or invalid");
        }
        decoded
    }

    /// Row `rid` of Field.
    pub fn field(&self, rid: u32) -> Option<FieldRow> {
        let signature = self.cell(FIELD, rid, 2).and_then(|b| self.signature(b, signature::field));
        Some(FieldRow { flags: self.cell(FIELD, rid, 0)?, name: self.field_name(rid)?, signature })
    }

    /// Row `rid` of MethodDef.
    pub fn method(&self, rid: u32) -> Option<MethodRow> {
        let signature = self.cell(METHOD_DEF, rid, 4).and_then(|b| self.signature(b, signature::method));
        Some(MethodRow { flags: self.cell(METHOD_DEF, rid, 2)?, name: self.method_name(rid)?, signature })
    }

    /// `MethodImplAttributes` of row `rid` of MethodDef.
    pub fn method_implementation(&self, rid: u32) -> Option<u32> {
        self.cell(METHOD_DEF, rid, 1)
    }

    /// RVA of the body of the method in row `rid` of MethodDef; 0 if the method has no body.
    pub(crate) fn method_body(&self, rid: u32) -> Option<u32> {
        self.cell(METHOD_DEF, rid, 0)
    }

    /// Types of the locals whose signature is in row `rid` of StandAloneSig.
    pub(crate) fn local_types(&self, rid: u32) -> Option<Vec<TypeSig>> {
        self.signature(self.cell(STAND_ALONE_SIG, rid, 0)?, signature::locals)
    }

    /// Row `rid` of TypeRef.
    pub fn type_ref(&self, rid: u32) -> Option<TypeRef> {
        let name = self.name_in_row(TYPE_REF, rid, 1, &[0])?;
        Some(TypeRef { scope: self.cell(TYPE_REF, rid, 0)?, name, namespace: self.name(TYPE_REF, rid, 2)? })
    }

    /// Row `rid` of TypeSpec.
    pub fn type_spec(&self, rid: u32) -> Option<TypeSig> {
        self.signature(self.cell(TYPE_SPEC, rid, 0)?, signature::type_spec)
    }

    /// Name in row `rid` of AssemblyRef.
    pub fn assembly_ref(&self, rid: u32) -> Option<String> {
        self.name_in_row(ASSEMBLY_REF, rid, 6, &[6])
    }

    /// Token of the base type of TypeDef `rid`: a TypeDef, TypeRef or TypeSpec; `None` without a base type.
    #[cfg(any(test, feature = "internals"))]
    pub fn base_type(&self, rid: u32) -> Option<Token> {
        type_def_or_ref(self.cell(TYPE_DEF, rid, 3)?).filter(|token| !token.is_nil())
    }

    /// The value of the literal field `rid`.
    pub fn constant(&self, rid: u32) -> Option<Constant> {
        // The parent is a HasConstant coded index: two tag bits, which are 0 for Field.
        let row = self.find(CONSTANT, 1, rid.checked_mul(4)?)?;
        let kind = u8::try_from(self.cell(CONSTANT, row, 0)? & 0xff).ok().and_then(CorElementType::of);
        Some(Constant { kind, bytes: self.blob(self.cell(CONSTANT, row, 2)?)? })
    }

    /// RVA of the initial value of field `rid`.
    pub fn field_rva(&self, rid: u32) -> Option<u32> {
        self.cell(FIELD_RVA, self.find(FIELD_RVA, 1, rid)?, 0)
    }
}
