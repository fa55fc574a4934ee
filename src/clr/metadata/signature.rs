//! Signatures: types of fields and method parameters (ECMA-335 II.23.2).
//!
//! Signatures are untrusted. Fixed limits and the size of the blob bound all counts; a depth limit bounds nesting.

use crate::base::{CorElementType, Token, TokenTable};

/// Maximum nesting of types in a signature.
const MAX_DEPTH: u32 = 32;
/// Maximum number of parameters or generic arguments of a signature.
const MAX_ITEMS: u32 = 4096;
/// Maximum number of dimensions of an array. The runtime has the same limit.
const MAX_RANK: u32 = 32;

/// A type in a signature. Tokens refer to TypeDef, TypeRef or TypeSpec of the module that contains the signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeSig {
    /// A type that its element type identifies: a primitive, `string`, `object`, `void`.
    Primitive(CorElementType),
    /// A class or interface.
    Class(Token),
    /// A structure or enum.
    ValueType(Token),
    /// A generic parameter of the type, by position.
    Var(u32),
    /// A generic parameter of the method, by position.
    MethodVar(u32),
    /// A generic instance.
    Generic {
        /// Token of the generic type.
        token: Token,
        /// Whether the generic type is a structure.
        value_type: bool,
        /// Generic arguments.
        arguments: Vec<TypeSig>,
    },
    /// A one-dimensional, zero-based array.
    SzArray(Box<TypeSig>),
    /// Any other array: element and rank.
    Array(Box<TypeSig>, u32),
    /// A pointer.
    Pointer(Box<TypeSig>),
    /// A managed pointer (`ref`).
    ByRef(Box<TypeSig>),
    /// A function pointer.
    Function(Box<MethodSig>),
    /// A method table address, in signatures synthesized by the runtime (`ELEMENT_TYPE_INTERNAL`).
    Internal(u64),
}

/// The signature of a method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodSig {
    /// Number of generic parameters.
    pub generic_parameters: u32,
    /// Whether there is a `this`, which `parameters` does not include.
    pub has_this: bool,
    /// Return type.
    pub result: TypeSig,
    /// Types of the parameters.
    pub parameters: Vec<TypeSig>,
}

/// Reads the type of a field from its signature. Custom modifiers are dropped.
pub fn field(blob: &[u8]) -> Option<TypeSig> {
    let mut reader = Reader { rest: blob };
    (reader.byte()? & 0x0f == 0x06).then_some(())?;
    reader.type_sig(0)
}

/// Reads the signature of a method.
pub fn method(blob: &[u8]) -> Option<MethodSig> {
    Reader { rest: blob }.method(0)
}

/// Reads the signature of a TypeSpec.
pub fn type_spec(blob: &[u8]) -> Option<TypeSig> {
    Reader { rest: blob }.type_sig(0)
}

/// Reads the types of a method's locals (II.23.2.6). Pinned modifiers are dropped.
pub(crate) fn locals(blob: &[u8]) -> Option<Vec<TypeSig>> {
    let mut reader = Reader { rest: blob };
    (reader.byte()? == 0x07).then_some(())?;
    let count = reader.number()?;
    reader.list(count, 0)
}

struct Reader<'b> {
    rest: &'b [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// Reads a compressed number (II.23.2) of one, two or four bytes.
    fn number(&mut self) -> Option<u32> {
        let (n, used) = compressed(self.rest)?;
        self.rest = self.rest.get(used..)?;
        Some(n)
    }

    /// Reads one byte as an element type. Modifiers and constraints (`PINNED`, `SENTINEL`) are encoded as element types, too.
    fn element(&mut self) -> Option<CorElementType> {
        CorElementType::of(self.byte()?)
    }

    /// Reads a TypeDefOrRef coded index.
    fn token(&mut self) -> Option<Token> {
        type_def_or_ref(self.number()?)
    }

    fn type_sig(&mut self, depth: u32) -> Option<TypeSig> {
        if depth > MAX_DEPTH {
            return None;
        }
        let inner = depth.saturating_add(1);
        loop {
            let element = self.element()?;
            if element.type_name().is_some() {
                return Some(TypeSig::Primitive(element));
            }
            return Some(match element {
                CorElementType::Ptr => TypeSig::Pointer(Box::new(self.type_sig(inner)?)),
                CorElementType::ByRef => TypeSig::ByRef(Box::new(self.type_sig(inner)?)),
                CorElementType::ValueType => TypeSig::ValueType(self.token()?),
                CorElementType::Class => TypeSig::Class(self.token()?),
                CorElementType::Var => TypeSig::Var(self.number()?),
                CorElementType::Array => self.array(inner)?,
                CorElementType::GenericInst => {
                    let value_type = self.byte()? == CorElementType::ValueType.byte();
                    let token = self.token()?;
                    let count = self.number()?;
                    TypeSig::Generic { token, value_type, arguments: self.list(count, inner)? }
                }
                CorElementType::FnPtr => TypeSig::Function(Box::new(self.method(inner)?)),
                CorElementType::SzArray => TypeSig::SzArray(Box::new(self.type_sig(inner)?)),
                CorElementType::MVar => TypeSig::MethodVar(self.number()?),
                CorElementType::Internal => {
                    let (bytes, rest) = self.rest.split_first_chunk::<8>()?;
                    self.rest = rest;
                    TypeSig::Internal(u64::from_le_bytes(*bytes))
                }
                CorElementType::CModReqd | CorElementType::CModOpt => {
                    self.token()?;
                    continue;
                }
                CorElementType::Sentinel | CorElementType::Pinned => continue,
                _ => return None,
            });
        }
    }

    fn array(&mut self, depth: u32) -> Option<TypeSig> {
        let element = self.type_sig(depth)?;
        let rank = self.number().filter(|r| *r <= MAX_RANK)?;
        // Skip the sizes and the lower bounds, which type names do not show.
        for _ in 0..2 {
            let count = self.number().filter(|n| *n <= MAX_RANK)?;
            for _ in 0..count {
                self.number()?;
            }
        }
        Some(TypeSig::Array(Box::new(element), rank))
    }

    fn list(&mut self, count: u32, depth: u32) -> Option<Vec<TypeSig>> {
        if count > MAX_ITEMS {
            return None;
        }
        // Each item has at least one byte in the blob, which bounds the memory.
        (0..count).map(|_| self.type_sig(depth)).collect()
    }

    fn method(&mut self, depth: u32) -> Option<MethodSig> {
        if depth > MAX_DEPTH {
            return None;
        }
        let convention = self.byte()?;
        let generic_parameters = if convention & 0x10 != 0 { self.number()? } else { 0 };
        let count = self.number()?;
        let inner = depth.saturating_add(1);
        let result = self.type_sig(inner)?;
        let has_this = convention & 0x60 == 0x20;
        Some(MethodSig { generic_parameters, has_this, result, parameters: self.list(count, inner)? })
    }
}

/// Decodes a TypeDefOrRef coded index (II.24.2.6) to a token.
pub(super) fn type_def_or_ref(coded: u32) -> Option<Token> {
    let table = match coded & 3 {
        0 => TokenTable::TypeDef,
        1 => TokenTable::TypeRef,
        2 => TokenTable::TypeSpec,
        _ => return None,
    };
    Token::new(table, coded >> 2)
}

/// The compressed number at the start of `bytes`, and its length in bytes.
pub(in crate::clr) fn compressed(bytes: &[u8]) -> Option<(u32, usize)> {
    let at = |i: usize| bytes.get(i).map(|b| u32::from(*b));
    let first = at(0)?;
    if first & 0x80 == 0 {
        Some((first, 1))
    } else if first & 0x40 == 0 {
        Some(((first & 0x3f) << 8 | at(1)?, 2))
    } else if first & 0x20 == 0 {
        Some(((first & 0x1f) << 24 | at(1)? << 16 | at(2)? << 8 | at(3)?, 4))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_methods_are_read() {
        assert_eq!(field(&[6, 8]), Some(TypeSig::Primitive(CorElementType::I4)));
        assert_eq!(field(&[6, 0x1d, 0x0e]), Some(TypeSig::SzArray(Box::new(TypeSig::Primitive(CorElementType::String)))));
        // `Dictionary<string, T[]>` of TypeRef row 5.
        let generic = field(&[6, 0x15, 0x12, 0x15, 2, 0x0e, 0x1d, 0x13, 0]);
        let arguments = vec![TypeSig::Primitive(CorElementType::String), TypeSig::SzArray(Box::new(TypeSig::Var(0)))];
        let token = Token::new(TokenTable::TypeRef, 5).unwrap();
        assert_eq!(generic, Some(TypeSig::Generic { token, value_type: false, arguments }));
        // A row number that does not fit into a token is rejected.
        assert_eq!(field(&[6, 0x12, 0xc4, 0, 0, 0]), None);
        // static void Main(string[])
        let main = method(&[0, 1, 1, 0x1d, 0x0e]).unwrap();
        assert!(!main.has_this && main.parameters.len() == 1 && main.result == TypeSig::Primitive(CorElementType::Void));
        // Locals: a pinned byte&, a string.
        let pinned = TypeSig::ByRef(Box::new(TypeSig::Primitive(CorElementType::U1)));
        assert_eq!(locals(&[7, 2, 0x45, 0x10, 5, 0x0e]), Some(vec![pinned, TypeSig::Primitive(CorElementType::String)]));
        assert_eq!((locals(&[6, 1, 8]), locals(&[7, 2, 8])), (None, None));
        // int[,] preceded by modifiers.
        assert_eq!(field(&[6, 0x1f, 5, 0x14, 8, 2, 0, 0]), Some(TypeSig::Array(Box::new(TypeSig::Primitive(CorElementType::I4)), 2)));
    }

    #[test]
    fn malformed_signatures_are_rejected() {
        assert_eq!(field(&[]), None);
        assert_eq!(field(&[6]), None);
        assert_eq!(field(&[7; 1000]), None);
        let mut deep = vec![6u8];
        deep.extend(std::iter::repeat_n(0x1d, 100_000));
        assert_eq!(field(&deep), None);
        assert_eq!(method(&[0, 0xdf, 0xff, 0xff, 0xff, 1]), None);
        let mut seed = 1u32;
        for _ in 0..100_000 {
            let bytes: Vec<u8> = (0..12)
                .map(|_| {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (seed >> 24) as u8 & 0x3f
                })
                .collect();
            let _ = (field(&bytes), method(&bytes), type_spec(&bytes));
        }
    }
}
