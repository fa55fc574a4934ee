//! Detects a file's format from its first bytes. File names are never considered.

use super::fields::Fields;
use crate::base::Endian;

/// Number of leading bytes that [`sniff`] looks at.
pub(super) const SNIFF_BYTES: usize = 4096;

/// A file's format, as detected from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileKind {
    /// ELF file of type `ET_CORE`. Supported.
    ElfCore,
    /// Minidump of either byte order. Supported.
    Minidump,
    /// Zstandard frame. Decompressed, then sniffed again.
    Zstd,
    /// gzip member. Decompressed, then sniffed again.
    Gzip,
    /// Mach-O file of type `MH_CORE`.
    MachoCore,
    /// Any other Mach-O file.
    Macho,
    /// ELF file that is not a core.
    ElfOther {
        /// `e_type`: 1 relocatable, 2 executable, 3 shared library or position-independent executable.
        object_type: u16,
    },
    /// Windows executable or library, or a managed assembly.
    PeImage,
    /// Heap snapshot of `dotnet-gcdump` or PerfView. Supported by the commands that need types, sizes and references only.
    GcdumpTrace,
    /// Output of `dotnet-trace`.
    Nettrace,
    /// Zip archive.
    Zip,
    /// xz file.
    Xz,
    /// bzip2 file.
    Bzip2,
    /// LZ4 frame.
    Lz4,
    /// 7-Zip archive.
    SevenZip,
    /// tar archive.
    Tar,
    /// Windows kernel dump.
    WindowsKernelDump,
    /// JSON text.
    Json,
    /// Any other text.
    Text,
    /// An empty file.
    Empty,
    /// Too short to detect the format.
    TooShort,
    /// A directory.
    Directory,
    /// Pipe, socket or device.
    NotRegular,
    /// None of the above.
    Unknown,
}

impl FileKind {
    /// Whether gcdump opens such files.
    pub(crate) fn is_dump(self) -> bool {
        matches!(self, FileKind::ElfCore | FileKind::Minidump)
    }

    /// Whether gcdump decompresses such files and opens their contents.
    pub(crate) fn is_compressed(self) -> bool {
        matches!(self, FileKind::Zstd | FileKind::Gzip)
    }

    /// A predicate that follows the file's name: what the file is, and what to do about it.
    pub(crate) fn describe(self) -> &'static str {
        match self {
            FileKind::ElfCore => "is an ELF core dump",
            FileKind::Minidump if cfg!(feature = "minidump") => "is a minidump",
            FileKind::Minidump => "is a minidump, which this gcdump cannot read: it was built without the feature `minidump`",
            FileKind::Zstd => "is a zstd file",
            FileKind::Gzip => "is a gzip file",
            FileKind::MachoCore => "is a macOS (Mach-O) core, which gcdump does not support yet",
            FileKind::Macho => "is a macOS (Mach-O) executable or library, not a dump of a process",
            FileKind::ElfOther { object_type: 1 } => "is an ELF object file, not a core dump",
            FileKind::ElfOther { object_type: 2 | 3 } => "is an ELF shared library or executable, not a core dump",
            FileKind::ElfOther { .. } => "is an ELF file, but not a core dump",
            FileKind::PeImage => "is a PE image (an .exe or .dll), not a dump; pass the .dmp file that dotnet-dump or the system wrote",
            FileKind::GcdumpTrace => "is a .gcdump file, a heap snapshot",
            FileKind::Nettrace => "is a .nettrace file of dotnet-trace (events, not a process dump); collect one with dotnet-dump instead",
            FileKind::Zip => "is a zip archive; unpack it first",
            FileKind::Xz => "is an xz file; decompress it first (xz -d)",
            FileKind::Bzip2 => "is a bzip2 file; decompress it first (bzip2 -d)",
            FileKind::Lz4 => "is an lz4 file; decompress it first (lz4 -d)",
            FileKind::SevenZip => "is a 7-Zip archive; unpack it first",
            FileKind::Tar => "is a tar archive; unpack it first",
            FileKind::WindowsKernelDump => "is a Windows kernel dump; gcdump needs a dump of a single process",
            FileKind::Json => "is a JSON file, not a dump",
            FileKind::Text => "is a text file, not a dump",
            FileKind::Empty => "is empty; writing the dump did not finish",
            FileKind::TooShort => "is too short to be a dump",
            FileKind::Directory => "is a directory; pass the dump file inside it",
            FileKind::NotRegular => "is a pipe or a device; save the dump to a file first",
            FileKind::Unknown => "is neither an ELF core dump nor a minidump",
        }
    }
}

/// Detects the format of a file of `total_len` bytes from its first bytes; 4 KiB suffice.
pub(crate) fn sniff(first: &[u8], total_len: u64) -> FileKind {
    if total_len == 0 || first.is_empty() {
        return FileKind::Empty;
    }
    if let Some(kind) = by_magic(first) {
        return kind;
    }
    if looks_like_text(first) {
        let start = first.iter().find(|b| !b.is_ascii_whitespace());
        return if matches!(start, Some(b'{')) { FileKind::Json } else { FileKind::Text };
    }
    if total_len < 32 { FileKind::TooShort } else { FileKind::Unknown }
}

fn by_magic(first: &[u8]) -> Option<FileKind> {
    let little = Fields::new(first, Endian::Little);
    let kind = match first {
        [0x7f, b'E', b'L', b'F', rest @ ..] => {
            let endian = if rest.get(1) == Some(&2) { Endian::Big } else { Endian::Little };
            match Fields::new(first, endian).u16(16) {
                Some(4) => FileKind::ElfCore,
                Some(object_type) => FileKind::ElfOther { object_type },
                None => FileKind::TooShort,
            }
        }
        [b'M', b'D', b'M', b'P', ..] | [b'P', b'M', b'D', b'M', ..] => FileKind::Minidump,
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => FileKind::Zstd,
        [0x1f, 0x8b, 0x08, ..] => FileKind::Gzip,
        [0xce | 0xcf, 0xfa, 0xed, 0xfe, ..] => macho(little.u32(12)),
        [0xfe, 0xed, 0xfa, 0xce | 0xcf, ..] => macho(Fields::new(first, Endian::Big).u32(12)),
        // Universal binary. Java class files share the magic but have a version above 40 in place of the slice count.
        [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 1..=32, ..] => FileKind::Macho,
        [b'P', b'A', b'G', b'E', b'D', b'U', b'M', b'P', ..] | [b'P', b'A', b'G', b'E', b'D', b'U', b'6', b'4', ..] => {
            FileKind::WindowsKernelDump
        }
        [b'N', b'e', b't', b't', b'r', b'a', b'c', b'e', ..] => FileKind::Nettrace,
        [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] => FileKind::Zip,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => FileKind::Xz,
        [b'B', b'Z', b'h', b'1'..=b'9', ..] => FileKind::Bzip2,
        [0x04, 0x22, 0x4d, 0x18, ..] => FileKind::Lz4,
        [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => FileKind::SevenZip,
        [b'M', b'Z', ..] if !looks_like_text(first) => FileKind::PeImage,
        // The serializer's signature, preceded by its length.
        [_, _, _, _, rest @ ..] if rest.starts_with(b"!FastSerialization.") => FileKind::GcdumpTrace,
        _ if first.get(257..262) == Some(b"ustar") => FileKind::Tar,
        _ => return None,
    };
    Some(kind)
}

fn macho(file_type: Option<u32>) -> FileKind {
    const MH_CORE: u32 = 4;
    if file_type == Some(MH_CORE) { FileKind::MachoCore } else { FileKind::Macho }
}

/// Valid UTF-8 without control characters (the last character may be cut), or UTF-16 with a byte order mark.
fn looks_like_text(first: &[u8]) -> bool {
    if first.starts_with(&[0xff, 0xfe]) || first.starts_with(&[0xfe, 0xff]) {
        return true;
    }
    let valid = match std::str::from_utf8(first) {
        Ok(text) => text,
        Err(e) if e.error_len().is_none() => std::str::from_utf8(first.get(..e.valid_up_to()).unwrap_or(&[])).unwrap_or(""),
        Err(_) => return false,
    };
    !valid.is_empty() && valid.chars().all(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &[u8]) -> FileKind {
        sniff(bytes, bytes.len() as u64)
    }

    #[test]
    fn recognizes_files_commonly_mistaken_for_dumps() {
        let mut elf = vec![0u8; 64];
        elf[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
        elf[16] = 4;
        assert_eq!(kind(&elf), FileKind::ElfCore);
        elf[16] = 3;
        assert_eq!(kind(&elf), FileKind::ElfOther { object_type: 3 });
        elf[5] = 2;
        elf[16..18].copy_from_slice(&[0, 4]);
        assert_eq!(kind(&elf), FileKind::ElfCore);
        assert_eq!(kind(&elf[..12]), FileKind::TooShort);
        assert_eq!(kind(b"MDMP\x93\xa7"), FileKind::Minidump);
        assert_eq!(kind(b"PMDM"), FileKind::Minidump);
        assert_eq!(kind(b"\x14\0\0\0!FastSerialization.1rest"), FileKind::GcdumpTrace);
        assert_eq!(kind(b"Nettrace\x14\0\0\0!FastSerialization.1"), FileKind::Nettrace);
        assert_eq!(kind(b"MZ\x90\0\x03\0"), FileKind::PeImage);
        assert_eq!(kind(b"MZ is a text too"), FileKind::Text);
        assert_eq!(kind(b"PK\x03\x04"), FileKind::Zip);
        assert_eq!(kind(b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x04\0\0\0"), FileKind::MachoCore);
        assert_eq!(kind(b"\xcf\xfa\xed\xfe\x07\0\0\x01\x03\0\0\0\x06\0\0\0"), FileKind::Macho);
        assert_eq!(kind(b"PAGEDU64\x0f\0\0\0"), FileKind::WindowsKernelDump);
        assert_eq!(kind(b"PAGEDUMP\x0f\0\0\0"), FileKind::WindowsKernelDump);
        assert_eq!(kind(b"\xfd7zXZ\0"), FileKind::Xz);
        assert_eq!(kind(b"BZh9"), FileKind::Bzip2);
        assert_eq!(kind(b"\x04\x22\x4d\x18"), FileKind::Lz4);
        assert_eq!(kind(b"\x28\xb5\x2f\xfd"), FileKind::Zstd);
        assert_eq!(kind(b"\x1f\x8b\x08\0"), FileKind::Gzip);
        assert_eq!(kind(b" {\"a\": 1}"), FileKind::Json);
        assert_eq!(kind(b"hello"), FileKind::Text);
        assert_eq!(kind("häll".as_bytes().split_at(2).0), FileKind::Text);
        assert_eq!(kind(b""), FileKind::Empty);
        assert_eq!(kind(b"\0\x01"), FileKind::TooShort);
        assert_eq!(kind(&[0u8; 100]), FileKind::Unknown);
    }
}
