//! Losses of a dump file, and of the original of a trimmed copy: `gcdump trim` writes the latter into the copy, so that answers about the copy report them,
//! too.

use super::fields::Fields;
use super::{DumpFacts, LostLists};
use crate::base::{len64, plural};

/// Maximum number of irregularities that are listed. The remaining ones are only counted.
const MAX_ODDITIES: usize = 50;
/// Maximum number of bytes of a text that is read from a copy. Texts that gcdump writes are shorter.
const MAX_TEXT: usize = 1000;

/// Limits a list of irregularities. Each broken note or segment adds a sentence, and a hostile file may have millions of them.
pub(super) fn bounded(mut oddities: Vec<String>) -> Vec<String> {
    let more = oddities.len().saturating_sub(MAX_ODDITIES);
    if more > 0 {
        oddities.truncate(MAX_ODDITIES);
        oddities.push(format!("{} of the file left out", plural(len64(more), "more problem")));
    }
    oddities
}

/// Losses of the original of a trimmed copy.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Original {
    truncated: u64,
    undescribed: u64,
    lost: LostLists,
    damage: Option<String>,
    oddities: Vec<String>,
}

impl Original {
    /// The losses of the dump with these facts; `None` for a whole dump.
    pub(super) fn of(facts: &DumpFacts) -> Option<Original> {
        let (damage, oddities) = (facts.damage.clone(), facts.oddities.clone());
        let original =
            Original { truncated: facts.truncated_bytes, undescribed: facts.undescribed_bytes, lost: facts.lost, damage, oddities };
        (original != Original::default()).then_some(original)
    }

    /// Numbers of missing bytes of the original, [`DumpFacts::truncated_bytes`] and [`DumpFacts::undescribed_bytes`], and the lists that it has lost.
    pub(super) fn numbers(&self) -> [u64; 3] {
        [self.truncated, self.undescribed, self.lost.bits()]
    }

    /// Returns the texts as they are in the file, each with a NUL at its end: the damage of the compressed data, which is empty if the data is whole, and
    /// the irregularities. The numbers precede them, each as 64 bits in the byte order of the file.
    pub(super) fn texts(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for text in [self.damage.as_deref().unwrap_or_default()].into_iter().chain(self.oddities.iter().map(String::as_str)) {
            all.extend(text.bytes().filter(|b| *b != 0));
            all.push(0);
        }
        all
    }

    /// Reads what a copy has. The number and the length of the texts are limited, because the file may be forged.
    pub(super) fn read(from: Fields<'_>) -> Option<Original> {
        let (truncated, undescribed, lost) = (from.u64(0)?, from.u64(8)?, LostLists::of_bits(from.u64(16)?));
        let mut texts = from.clamped(24, from.len()).split(|b| *b == 0).map(|text| {
            let text = text.get(..MAX_TEXT).unwrap_or(text);
            String::from_utf8_lossy(text).into_owned()
        });
        let damage = texts.next().filter(|text| !text.is_empty());
        let oddities = texts.take_while(|text| !text.is_empty()).take(MAX_ODDITIES.saturating_add(1)).collect();
        Some(Original { truncated, undescribed, lost, damage, oddities })
    }

    /// Adds the losses to the facts about the copy, which may itself be cut off.
    pub(super) fn add_to(self, facts: &mut DumpFacts) {
        let Some(trimmed) = &mut facts.trimmed else { return };
        trimmed.truncated_bytes = self.truncated;
        facts.truncated_bytes = facts.truncated_bytes.saturating_add(self.truncated);
        facts.undescribed_bytes = facts.undescribed_bytes.saturating_add(self.undescribed);
        facts.lost = facts.lost.or(self.lost);
        facts.damage = self.damage;
        // The copy has the lists of the original, so reading them may find the same irregularities again.
        let own = std::mem::replace(&mut facts.oddities, self.oddities);
        let new: Vec<String> = own.into_iter().filter(|own| !facts.oddities.contains(own)).collect();
        facts.oddities.extend(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Endian;

    #[test]
    fn losses_are_read_as_they_are_written() {
        let some = |damage: Option<&str>, oddities: &[&str]| Original {
            truncated: 77,
            undescribed: 77,
            lost: LostLists::of_bits(77),
            damage: damage.map(str::to_owned),
            oddities: oddities.iter().map(|o| (*o).to_owned()).collect(),
        };
        for original in [some(None, &[]), some(Some("wrong"), &[]), some(None, &["a", "b"]), some(Some("wrong"), &["a"])] {
            for endian in [Endian::Little, Endian::Big] {
                let number = if endian == Endian::Little { 77u64.to_le_bytes() } else { 77u64.to_be_bytes() };
                let lost = original.lost.bits();
                let lost = if endian == Endian::Little { lost.to_le_bytes() } else { lost.to_be_bytes() };
                let bytes = [&number[..], &number[..], &lost[..], &original.texts()].concat();
                assert_eq!(Original::read(Fields::new(&bytes, endian)).as_ref(), Some(&original));
            }
        }
    }

    #[test]
    fn forged_losses_are_bounded() {
        let bytes = [&[0; 24][..], &[b'x'; 5000], &b"\0y".repeat(5000)].concat();
        let read = Original::read(Fields::new(&bytes, Endian::Little)).unwrap();
        assert_eq!((read.damage.map(|d| d.len()), read.oddities.len()), (Some(MAX_TEXT), MAX_ODDITIES + 1));
        assert_eq!(Original::read(Fields::new(&[0; 23], Endian::Little)), None);
    }
}
