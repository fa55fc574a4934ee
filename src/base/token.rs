//! Metadata tokens (ECMA-335 II.22; `corhdr.h`).

use std::fmt;

use serde::{Serialize, Serializer};

/// Number of low bits of a token that contain the row.
const ROW_BITS: u32 = 24;
const LAST_ROW: u32 = (1 << ROW_BITS) - 1;

/// Table of a token. Only the tables to which structures of the runtime and signatures refer are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
#[repr(u8)]
pub enum TokenTable {
    /// References to types of other modules.
    TypeRef = 0x01,
    /// Types that the module defines.
    TypeDef = 0x02,
    /// Fields that the module defines.
    FieldDef = 0x04,
    /// Methods that the module defines.
    MethodDef = 0x06,
    /// Signatures of locals and of indirect calls.
    StandAloneSig = 0x11,
    /// Types built from other types: arrays, generic instances.
    TypeSpec = 0x1b,
}

/// A metadata token: a table of a module, and a row in it. Rows count from 1; a nil token has row 0.
///
/// A token prints and serializes in the form that the runtime's tools use: `0x06000001`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token(u32);

impl Token {
    /// The nil token (`mdTokenNil`).
    pub const NIL: Token = Token(0);

    /// The token of row `rid`; `None` if the row exceeds 24 bits.
    pub const fn new(table: TokenTable, rid: u32) -> Option<Token> {
        if rid <= LAST_ROW { Some(Token::in_low_bits(table, rid)) } else { None }
    }

    /// The token of the row in the low 24 bits of `word`. The high bits are ignored, because field and method descriptors keep flags there.
    pub(crate) const fn in_low_bits(table: TokenTable, word: u32) -> Token {
        Token((table as u32) << ROW_BITS | word & LAST_ROW)
    }

    /// The token with these bits, of any table.
    pub const fn from_bits(bits: u32) -> Token {
        Token(bits)
    }

    /// The bits of the token.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The table; `None` if it is not a [`TokenTable`].
    pub const fn table(self) -> Option<TokenTable> {
        Some(match self.0 >> ROW_BITS {
            0x01 => TokenTable::TypeRef,
            0x02 => TokenTable::TypeDef,
            0x04 => TokenTable::FieldDef,
            0x06 => TokenTable::MethodDef,
            0x11 => TokenTable::StandAloneSig,
            0x1b => TokenTable::TypeSpec,
            _ => return None,
        })
    }

    /// The row number (RID); 0 for a nil token.
    pub const fn rid(self) -> u32 {
        self.0 & LAST_ROW
    }

    /// Whether the row number is 0.
    pub const fn is_nil(self) -> bool {
        self.rid() == 0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#010x}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Token {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(feature = "cli")]
impl schemars::JsonSchema for Token {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Token".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        String::json_schema(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_keep_their_table_and_row() {
        let tables = [0x01, 0x02, 0x04, 0x06, 0x11, 0x1b].map(|number: u32| Token::from_bits(number << 24 | 7));
        for token in tables {
            let table = token.table().unwrap();
            assert_eq!((Token::new(table, 7), token.rid(), token.bits() >> 24), (Some(token), 7, table as u32));
            assert_eq!(Token::in_low_bits(table, 0x8000_0007), token);
            assert_eq!((Token::new(table, LAST_ROW + 1), Token::new(table, 0).map(Token::is_nil)), (None, Some(true)));
        }
        assert_eq!((Token::from_bits(0x0a00_0001).table(), Token::NIL.table(), Token::NIL.is_nil()), (None, None, true));
    }

    #[test]
    fn texts_have_eight_digits() {
        let token = Token::new(TokenTable::MethodDef, 1).unwrap();
        assert_eq!((token.to_string(), format!("{token:?}")), ("0x06000001".into(), "0x06000001".into()));
        assert_eq!(serde_json::to_value(Token::NIL).unwrap(), "0x00000000");
    }
}
