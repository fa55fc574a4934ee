//! Texts of string objects.
//!
//! Source: contract `Object`.

use std::sync::Arc;

use crate::base::{Addr, AddrRange, drop_split_pair, utf16};
use crate::contract::{ContractError, Descriptor};
use crate::data::{self, Inline, Offset, String as Text};
use crate::memory::Memory;

/// Reader of strings. Lengths are in UTF-16 code units.
#[derive(Clone, Debug)]
pub struct Strings {
    memory: Arc<Memory>,
    length: Offset<data::String, u32>,
    /// The first character.
    first: Offset<data::String, Inline>,
}

impl Strings {
    /// Binds to a runtime.
    ///
    /// # Errors
    /// [`ContractError`] if the advertised version of the contract is not supported, or the descriptor does not have an offset.
    pub fn bind(memory: &Arc<Memory>, d: &Descriptor) -> Result<Strings, ContractError> {
        super::objects::Objects::CONTRACT.permit(d)?;
        Ok(Strings { memory: Arc::clone(memory), length: Text::m_StringLength.bind(d)?, first: Text::m_FirstChar.bind(d)? })
    }

    /// Length of the string at `address` in code units.
    pub fn length(&self, address: Addr) -> Option<u32> {
        self.length.get(&self.memory, address)
    }

    /// Offset of the first character from the start of the object, in bytes.
    pub fn content(&self) -> u64 {
        self.first.bytes()
    }

    /// The text of the string at `address`, of at most `cap` code units, and its full length. Lone surrogates are escaped: see [`utf16`].
    pub fn text(&self, address: Addr, cap: u32) -> Option<(String, u32)> {
        self.units(address, cap).map(|(units, length)| (utf16(units), length))
    }

    /// The text of the string at `address`, of at most `cap` code units, even if contents are hidden. The text is for hashing, and must not be
    /// shown.
    pub(crate) fn text_to_hash(&self, address: Addr, cap: u32) -> Option<String> {
        Some(utf16(self.all_units(address, cap)?.0))
    }

    /// The UTF-16 code units of the string at `address`, at most `cap`, and its full length.
    pub(super) fn units(&self, address: Addr, cap: u32) -> Option<(Vec<u16>, u32)> {
        let (units, length) = self.all_units(address, cap)?;
        Some((if self.hidden(length) { Memory::HIDDEN.encode_utf16().collect() } else { units }, length))
    }

    fn all_units(&self, address: Addr, cap: u32) -> Option<(Vec<u16>, u32)> {
        let length = self.length(address)?;
        let range = self.characters(address, length.min(cap));
        let bytes = self.memory.text_bytes(range).ok()?;
        let shape = self.memory.shape();
        let mut units: Vec<u16> = bytes.as_chunks::<2>().0.iter().filter_map(|c| u16::try_from(shape.number(c)).ok()).collect();
        drop_split_pair(&mut units, length > cap);
        Some((units, length))
    }

    /// Whether a text of this length must be hidden. Empty texts need not be hidden.
    fn hidden(&self, length: u32) -> bool {
        length > 0 && self.memory.hides_contents()
    }

    /// Address range of the first `length` characters of a string.
    fn characters(&self, string: Addr, length: u32) -> AddrRange {
        let first = self.first.place(string);
        AddrRange::new(first, first.plus(u64::from(length).saturating_mul(2)))
    }
}
