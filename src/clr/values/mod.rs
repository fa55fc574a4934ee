//! Values of fields and array elements.
//!
//! Offsets within structures come from the type's fields. Values of unknown layout are shown as bytes.

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

/// Limits for a value. A value that exceeds a limit is marked as `truncated`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLimits {
    /// Maximum number of characters of a string.
    pub string_chars: u32,
    /// Maximum depth of nested structures.
    pub depth: u32,
    /// Maximum number of fields of all structures in a value.
    pub fields: u32,
    /// Maximum number of bytes of a value of unknown layout.
    pub raw_bytes: u64,
    /// Maximum number of characters of the text of a structure.
    pub text_chars: usize,
}

impl Default for ValueLimits {
    fn default() -> ValueLimits {
        ValueLimits { string_chars: 4096, depth: 8, fields: 4096, raw_bytes: 256, text_chars: 200 }
    }
}
