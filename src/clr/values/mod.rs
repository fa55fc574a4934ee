//! Values of fields and array elements.
//!
//! Offsets of the parts of structures come from the type's own fields, found by name: nothing is known by position. A
//! value whose layout cannot be found is shown as bytes.

mod arrays;
mod decode;
mod enums;
mod known;
mod plain;

pub use arrays::{ArrayShape, Dimension};
pub use decode::{Place, Values};
pub use plain::Text;

/// Caps of one value; a value that hits one is `truncated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLimits {
    /// Characters of a string that are shown.
    pub string_chars: u32,
    /// Depth to which structures are expanded.
    pub depth: u32,
    /// Fields of all structures of one value.
    pub fields: u32,
    /// Bytes of a value of unknown layout.
    pub raw_bytes: u64,
    /// Characters of the text of one structure.
    pub text_chars: usize,
}

impl Default for ValueLimits {
    fn default() -> ValueLimits {
        ValueLimits { string_chars: 4096, depth: 8, fields: 4096, raw_bytes: 256, text_chars: 200 }
    }
}
