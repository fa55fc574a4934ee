//! Values of fields and array elements.
//!
//! Offsets within structures come from the fields of the type, found by name. Values of unknown layout are shown as bytes.

mod arrays;
mod decode;
mod enums;
mod known;
mod plain;

pub use arrays::{ArrayShape, Dimension};
pub(crate) use decode::ObjectTexts;
pub use decode::{Place, Values};
pub use plain::Text;
pub(crate) use plain::{TICKS_PER_MILLISECOND, utc, utc_ticks};

/// Limits per value; a value that exceeds one is `truncated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLimits {
    /// Characters shown of a string.
    pub string_chars: u32,
    /// Depth of structure expansion.
    pub depth: u32,
    /// Total fields of all structures in a value.
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
