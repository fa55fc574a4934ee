//! Options that say which objects are meant.

use clap::Args;

use super::args::size;
use crate::analysis::Selection;
use crate::base::Addr;
use crate::model::Generation;
use crate::session::TypePattern;

/// Which objects are meant.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Which objects")]
pub struct Select {
    /// Only objects of this type: its full name, in which * and ? may stand for something else, or its method table
    /// as 0x… (repeatable).
    #[arg(long = "type", value_name = "GLOB|MT", value_parser = type_pattern)]
    types: Vec<TypePattern>,

    /// Only in this generation (repeatable).
    #[arg(long, value_name = "GEN", value_enum, ignore_case = true)]
    generation: Vec<Generation>,

    /// Only in this GC heap, by number (repeatable).
    #[arg(long, value_name = "N")]
    heap: Vec<u64>,

    /// Only in this segment: address of its structure, or any address inside (repeatable).
    #[arg(long, value_name = "ADDR", value_parser = address)]
    segment: Vec<Addr>,

    /// Only objects of at least so many bytes (K, M, G may follow).
    #[arg(long, value_name = "BYTES", default_value = "0", hide_default_value = true, value_parser = size)]
    min_size: u64,

    /// Only objects of at most so many bytes.
    #[arg(long, value_name = "BYTES", value_parser = size)]
    max_size: Option<u64>,
}

impl Select {
    /// As the analysis wants it.
    pub(super) fn selection(&self) -> Selection {
        Selection {
            types: self.types.clone(),
            generations: self.generation.clone(),
            heaps: self.heap.clone(),
            segments: self.segment.clone(),
            min_size: self.min_size,
            max_size: self.max_size,
        }
    }
}

/// A type's name or pattern, or the address of its method table.
pub(super) fn type_pattern(text: &str) -> Result<TypePattern, String> {
    if text.starts_with("0x") || text.starts_with("0X") {
        return address(text).map(TypePattern::MethodTable);
    }
    if text.is_empty() { Err("a type is wanted".into()) } else { Ok(TypePattern::Name(text.into())) }
}

/// An address: hexadecimal, with or without `0x`, with WinDbg's back-tick between its halves or not.
pub(super) fn address(text: &str) -> Result<Addr, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text).replace('`', "");
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    let value = if plain { u64::from_str_radix(&digits, 16).ok() } else { None };
    value.map(Addr).ok_or_else(|| format!("{text:?} is no address; one looks like 0x7f31535a25f8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_types() {
        assert_eq!((address("0x1F"), address("7f31`535a25f8")), (Ok(Addr(31)), Ok(Addr(0x7f31_535a_25f8))));
        assert!(address("").is_err() && address("0x").is_err() && address("+1").is_err() && address("xyz").is_err());
        assert_eq!(type_pattern("0x10"), Ok(TypePattern::MethodTable(Addr(16))));
        assert_eq!(type_pattern("Lab.*"), Ok(TypePattern::Name("Lab.*".into())));
    }
}
