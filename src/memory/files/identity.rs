//! Identities of files: the values that show that a file is the right one, and the keys under which symbol servers and caches store it.
//!
//! Source: "Simple Symbol Query Protocol" (SSQP) and the SSQP key conventions (dotnet/symstore). `Microsoft.SymbolStore` writes the caches.

use std::sync::Arc;

use super::{hex, load_elf};
use crate::base::{Addr, Shape, len64, thousands};
use crate::dump::Bytes;
use crate::memory::pe::PeHeaders;

/// Valid lengths in bytes of a build ID. Build IDs of the style SHA-1 have 20 bytes, MD5 and UUID have 16, and lld's `fast` has 8.
const BUILD_ID: std::ops::RangeInclusive<usize> = 8..=64;
/// The text that replaces the age in the key of a portable PDB.
const PORTABLE: &str = "ffffffff";

/// The identity of a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum FileId {
    /// An ELF image: its GNU build ID.
    BuildId(Vec<u8>),
    /// A PE image: its time stamp and image size.
    Stamp {
        /// `TimeDateStamp`.
        timestamp: u32,
        /// `SizeOfImage`.
        size: u32,
    },
    /// A portable PDB: the 20 bytes of its ID (GUID and stamp).
    Pdb([u8; 20]),
}

impl FileId {
    /// The identity of an ELF image; `None` if the build ID is too short to identify it.
    pub(crate) fn of_build_id(id: &[u8]) -> Option<FileId> {
        BUILD_ID.contains(&id.len()).then(|| FileId::BuildId(id.to_vec()))
    }

    /// The name of the file in gcdump's own cache: a prefix and the identity in hexadecimal digits, without text from a dump.
    pub(crate) fn cache_name(&self) -> String {
        match self {
            FileId::BuildId(id) => format!("elf-{}", hex(id)),
            FileId::Stamp { timestamp, size } => format!("pe-{timestamp:08x}{size:08x}"),
            FileId::Pdb(id) => format!("pdb-{}", hex(id)),
        }
    }

    /// The identity for messages: `build id …`, `time stamp … and size …`, `PDB id …`.
    #[cfg_attr(not(feature = "fetch"), allow(dead_code))]
    pub(crate) fn text(&self) -> String {
        match self {
            FileId::BuildId(id) => format!("build id {}", hex(id)),
            FileId::Stamp { timestamp, size } => format!("time stamp {timestamp:#010x} and size {size:#x}"),
            FileId::Pdb(id) => format!("PDB id {}", hex(id)),
        }
    }

    /// The middle part of symbol-server keys. The published form comes first; some tools write the other forms, with digits in another case.
    fn keys(&self) -> Vec<String> {
        match self {
            FileId::BuildId(id) => vec![format!("elf-buildid-{}", hex(id))],
            FileId::Stamp { timestamp, size } => vec![format!("{timestamp:08x}{size:x}"), format!("{timestamp:08X}{size:x}")],
            FileId::Pdb(id) => {
                let guid = guid(id);
                vec![format!("{guid}{PORTABLE}"), format!("{guid}FFFFFFFF"), format!("{}FFFFFFFF", guid.to_ascii_uppercase())]
            }
        }
    }

    /// The keys of this file, called `name`, on a symbol server or in a cache with the same layout. The published form, with the name in lower
    /// case, comes first. `name` must be [plain](plain_name).
    pub(crate) fn symbol_keys(&self, name: &str) -> Vec<[String; 3]> {
        let lower = name.to_ascii_lowercase();
        let names = if lower == name { vec![lower] } else { vec![lower, name.to_string()] };
        let keys = self.keys();
        names.iter().flat_map(|name| keys.iter().map(move |key| [name.clone(), key.clone(), name.clone()])).collect()
    }

    /// Checks that `bytes` is a complete file with this identity, for a process of this `shape`. Accepts any file for a portable PDB, because the
    /// reader of PDBs checks the ID.
    ///
    /// # Errors
    /// The reason why the file has another identity or is not complete.
    pub(crate) fn check(&self, bytes: &Arc<Bytes>, shape: Shape) -> Result<(), String> {
        match self {
            FileId::BuildId(wanted) => {
                let loaded =
                    load_elf(bytes, shape, Addr(crate::base::PAGE)).ok_or("it is not a readable ELF image of this architecture")?;
                match &loaded.image.build_id {
                    Some(found) if found == wanted => {}
                    Some(found) => return Err(format!("its build id is {}, not {}", hex(found), hex(wanted))),
                    None => return Err("it has no build id".into()),
                }
                let end = loaded.headers.iter().map(|h| h.p_offset.saturating_add(h.p_filesz)).max().unwrap_or(0);
                whole(end, bytes)
            }
            FileId::Stamp { timestamp, size } => {
                let headers = PeHeaders::parse(bytes).ok_or("it is not a readable PE image")?;
                if (headers.timestamp, headers.size_of_image) != (*timestamp, *size) {
                    let (found, image) = (headers.timestamp, headers.size_of_image);
                    return Err(format!("its time stamp and size are {found:#x} and {image:#x}, not {timestamp:#x} and {size:#x}"));
                }
                let end = headers.sections.iter().map(|s| u64::from(s.raw).saturating_add(u64::from(s.raw_size))).max().unwrap_or(0);
                whole(end, bytes)
            }
            FileId::Pdb(_) => Ok(()),
        }
    }
}

/// Fails if a file is shorter than `end`, the end of the last segment or section according to the headers.
fn whole(end: u64, bytes: &Bytes) -> Result<(), String> {
    let len = len64(bytes.len());
    if len < end { Err(format!("it is cut off: it has {} of at least {} bytes", thousands(len), thousands(end))) } else { Ok(()) }
}

/// A GUID as symbol servers write it. The first three parts are stored as little-endian numbers.
fn guid(id: &[u8; 20]) -> String {
    let [a, b, c, d, e, f, g, h, rest @ ..] = id;
    let rest = rest.get(..8).unwrap_or_default();
    format!("{}{}", hex(&[*d, *c, *b, *a, *f, *e, *h, *g]), hex(rest))
}

/// Maximum length in bytes of a plain file name.
const LONGEST_NAME: usize = 128;

/// Returns `name` if it is safe as the name of a file on every system: ASCII letters, digits, `.`, `-`, `_` and `+`, and not the name of a
/// Windows device. Only such text from a dump becomes a part of a path.
pub(crate) fn plain_name(name: &str) -> Option<&str> {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
    let ends = name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.ends_with('.');
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let device = ["con", "prn", "aux", "nul", "clock"].contains(&stem.as_str())
        || ["com", "lpt"].iter().any(|d| stem.strip_prefix(d).is_some_and(|n| n.len() == 1 && n.bytes().all(|b| b.is_ascii_digit())));
    (name.len() <= LONGEST_NAME && name.bytes().all(allowed) && ends && !device).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_and_paths_are_not_plain() {
        for name in ["libcoreclr.so", "System.Private.CoreLib.dll", "libstdc++.so.6", "_x", "lib64.so", "com.dll", "console.dll"] {
            assert_eq!(plain_name(name), Some(name));
        }
        let long = "a".repeat(200);
        for name in [
            "", ".", "..", "a/b", "a\\b", "c:", "a:b", "NUL", "nul.dll", "com1.dll", "LPT9", "a.", "a ", " a", "-a", "a\0b", "~", "$a",
            "%41", "ä", &long,
        ] {
            assert_eq!(plain_name(name), None, "{name:?}");
        }
    }

    #[test]
    fn keys_follow_the_published_conventions() {
        let elf = FileId::BuildId(vec![0xab; 20]);
        let id = "ab".repeat(20);
        let key = format!("elf-buildid-{id}");
        assert_eq!(elf.symbol_keys("libcoreclr.so"), [["libcoreclr.so", key.as_str(), "libcoreclr.so"].map(String::from)]);
        // The example in the published conventions.
        let pe = FileId::Stamp { timestamp: 0x542d_5742, size: 0x32000 };
        assert_eq!(pe.symbol_keys("Foo.exe")[0], ["foo.exe", "542d574232000", "foo.exe"]);
        assert_eq!(pe.cache_name(), "pe-542d574200032000");
        let mut pdb = [0; 20];
        (0u8..).zip(&mut pdb).for_each(|(n, to)| *to = n);
        let keys = FileId::Pdb(pdb).symbol_keys("Foo.pdb");
        assert_eq!(keys[0], ["foo.pdb", "030201000504070608090a0b0c0d0e0fffffffff", "foo.pdb"]);
        assert_eq!(keys.len(), 6);
        assert_eq!(FileId::of_build_id(&[1, 2]), None);
    }
}
