//! ELF files with the symbols or debug information of a module: the module's own file, or the separate debug file.

use std::borrow::Cow;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use goblin::container::{Container, Ctx, Endian as GoblinEndian};
use goblin::elf::section_header::{SHF_COMPRESSED, SHT_NOBITS, SHT_NOTE, SectionHeader};

use crate::base::{Endian, Os, PtrSize, Shape, len64};
use crate::clr::refusal::Refusal;
use crate::dump::{Bytes, Module};
use crate::memory::{FileId, FileSearch, Image, ModuleFile, hex};

/// Maximum number of section headers that are read. Programs have some fifty sections.
const MAX_SECTIONS: usize = 4096;
/// Maximum length of a symbol name or a name in debug information, in bytes. The longest symbol of the lab's program has 436 bytes.
pub(super) const MAX_NAME: usize = 4096;
/// Maximum size of a build ID in bytes. Linkers write 8 to 32 bytes.
const MAX_BUILD_ID: usize = 64;
/// Maximum ratio of the uncompressed size of sections to their size in the file. Real ratios are two to four.
const MAX_RATIO: u64 = 16;
/// Maximum total size in bytes of the uncompressed sections of a file. If the dump is larger, its size is the maximum.
const MAX_UNPACKED: u64 = 256 << 20;
/// Compression types. Source: System V ABI, "Section Compression".
const ZLIB: u64 = 1;
const ZSTD: u64 = 2;
const NT_GNU_BUILD_ID: u64 = 3;

/// A memory-mapped ELF file.
#[derive(Debug)]
pub(super) struct ElfFile {
    bytes: Arc<Bytes>,
    shape: Shape,
    sections: Vec<SectionHeader>,
    /// Index of the section with the section names (`e_shstrndx`).
    names: usize,
}

/// Parameters of the limits on debug information that is read from a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Size of the dump in bytes.
    pub(super) dump: u64,
    pub(super) max_memory: Option<u64>,
}

impl Bounds {
    /// The size that determines a budget, for `bytes` in a file. It is capped, because a sparse file may have any size.
    pub(super) fn counted(self, bytes: u64) -> u64 {
        bytes.min(self.dump.max(MAX_UNPACKED))
    }

    fn unpacked(self, packed: u64) -> u64 {
        self.counted(packed.saturating_mul(MAX_RATIO)).min(self.max_memory.unwrap_or(u64::MAX))
    }
}

/// Uncompressed sections of a file.
pub(super) struct Sections<'f, const N: usize> {
    /// Contents in the order of the requested names. Sections that are missing or corrupt are empty.
    pub(super) contents: [Cow<'f, [u8]>; N],
    /// Size of the sections in the file, in bytes.
    pub(super) packed: u64,
    /// False if a section was omitted because of its size. Missing and corrupt sections do not make it false.
    pub(super) whole: bool,
}

/// Candidate files of a module: the files that belong to the module, and the refused files, each with the reason.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<ElfFile>,
    pub(super) refused: Vec<(PathBuf, Refusal)>,
}

/// Finds the files with symbols or debug information of `module`: the module's own file, and `….dbg` and `….debug` in the same folder.
/// Without a build ID in the image, no file is accepted.
pub(super) fn find(module: &Module, image: &Image, search: &FileSearch, os: Os, shape: Shape) -> Found {
    let mut found = Found::default();
    let beside = [".dbg", ".debug"].map(|ending| format!("{}{ending}", module.path));
    let id = image.build_id.as_deref().and_then(FileId::of_build_id);
    let paths =
        search.candidates(&module.path, id.as_ref(), os).into_iter().chain(beside.iter().flat_map(|p| search.symbol_candidates(p, os)));
    let Some(wanted) = &image.build_id else { return found };
    for candidate in paths {
        let path = candidate.path().to_path_buf();
        match ElfFile::open(&candidate, shape) {
            // The build ID is compared before anything else is read from the file.
            Ok(file) if file.build_id() == Some(wanted) => found.files.push(file),
            _ if candidate.place().is_shared() => {}
            Ok(file) => {
                let has = file.build_id().map_or_else(|| "it has no build id".into(), |id| format!("its build id is {}", hex(id)));
                found.refused.push((path, format!("{has}; the process loaded {}", hex(wanted)).into()));
            }
            Err(why) => found.refused.push((path, why.into())),
        }
    }
    found
}

impl ElfFile {
    fn open(file: &ModuleFile, shape: Shape) -> Result<ElfFile, String> {
        ElfFile::parse(file.open()?, shape).ok_or_else(|| "not a readable ELF file of this architecture".into())
    }

    fn parse(bytes: Arc<Bytes>, shape: Shape) -> Option<ElfFile> {
        let header = goblin::elf::Elf::parse_header(&bytes).ok()?;
        let container = match shape.ptr {
            PtrSize::Four => Container::Little,
            PtrSize::Eight => Container::Big,
        };
        let endian = match shape.endian {
            Endian::Little => GoblinEndian::Little,
            Endian::Big => GoblinEndian::Big,
        };
        (header.container().ok()? == container && header.endianness().ok()? == endian).then_some(())?;
        let count = usize::from(header.e_shnum).min(MAX_SECTIONS);
        let headers = SectionHeader::parse(&bytes, usize::try_from(header.e_shoff).ok()?, count, Ctx::new(container, endian)).ok()?;
        Some(ElfFile { bytes, shape, sections: headers, names: header.e_shstrndx.into() })
    }

    pub(super) fn len(&self) -> u64 {
        len64(self.bytes.len())
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn contents(&self, header: &SectionHeader) -> Option<&[u8]> {
        (header.sh_type != SHT_NOBITS).then_some(())?;
        self.bytes.range(header.sh_offset, header.sh_size)
    }

    fn header(&self, name: &str) -> Option<&SectionHeader> {
        let names = self.contents(self.sections.get(self.names)?)?;
        // Names are compared in place, because the names of a forged file may be long and overlap.
        let is_named = |h: &&SectionHeader| {
            let rest = names.get(h.sh_name..).and_then(|rest| rest.strip_prefix(name.as_bytes()));
            h.sh_type != SHT_NOBITS && rest.and_then(<[u8]>::first) == Some(&0)
        };
        self.sections.iter().find(is_named)
    }

    /// Contents of section `name` as stored, and the header of the section that its `sh_link` names.
    pub(super) fn linked(&self, name: &str) -> Option<(&[u8], &SectionHeader)> {
        let header = self.header(name)?;
        Some((self.contents(header)?, self.sections.get(usize::try_from(header.sh_link).ok()?)?))
    }

    /// The sections with these names, uncompressed. Their total size is limited to [`MAX_RATIO`] times their size in the file. The sections of a
    /// forged file may overlap, so their size in the file counts only up to the size of the file.
    pub(super) fn sections<const N: usize>(&self, names: [&str; N], bounds: Bounds) -> Sections<'_, N> {
        let found = names.map(|name| self.header(name).and_then(|h| Some((h, self.contents(h)?))));
        let packed = found.iter().flatten().fold(0u64, |n, (_, bytes)| n.saturating_add(len64(bytes.len()))).min(self.len());
        let (mut room, mut whole) = (bounds.unpacked(packed), true);
        let mut afford = |size| match room.checked_sub(size) {
            Some(left) => {
                room = left;
                true
            }
            None => {
                whole = false;
                false
            }
        };
        let contents = found.map(|found| found.and_then(|(header, bytes)| self.unpack(header, bytes, &mut afford)).unwrap_or_default());
        Sections { contents, packed, whole }
    }

    /// The contents of a section, uncompressed if necessary. `None` if `afford` refuses the uncompressed size, the compression is unknown,
    /// or the section is corrupt.
    fn unpack<'f>(&self, header: &SectionHeader, contents: &'f [u8], afford: impl FnOnce(u64) -> bool) -> Option<Cow<'f, [u8]>> {
        if header.sh_flags & u64::from(SHF_COMPRESSED) == 0 {
            return Some(Cow::Borrowed(contents));
        }
        // The compression header has type (padded to 8 bytes on 64-bit targets), uncompressed size, and alignment.
        let word = usize::try_from(self.shape.ptr.bytes()).ok()?;
        let head = word.checked_mul(3)?;
        let kind = self.shape.number(contents.get(..4)?);
        let size = self.shape.number(contents.get(word..)?.get(..word)?);
        let packed = contents.get(head..)?;
        afford(size).then_some(())?;
        let room = usize::try_from(size).ok()?;
        let out = match kind {
            ZLIB => {
                let mut out = Vec::with_capacity(room);
                // One byte more than the size is read, so that a wrong size is detected below.
                ZlibDecoder::new(packed).take(size.checked_add(1)?).read_to_end(&mut out).ok()?;
                out
            }
            // The data is decompressed in one call, because a streaming decoder would allocate a window of the size that the frame header declares.
            ZSTD => zstd::bulk::decompress(packed, room).ok()?,
            _ => return None,
        };
        (len64(out.len()) == size).then_some(Cow::Owned(out))
    }

    fn build_id(&self) -> Option<&[u8]> {
        self.sections.iter().filter(|h| h.sh_type == SHT_NOTE).find_map(|h| {
            let note = self.contents(h)?;
            let word = |at: usize| Some(self.shape.number(note.get(at..)?.get(..4)?));
            let (name, len, kind) = (word(0)?, usize::try_from(word(4)?).ok()?, word(8)?);
            (name == 4 && kind == NT_GNU_BUILD_ID && len <= MAX_BUILD_ID && note.get(12..16)? == b"GNU\0").then_some(())?;
            note.get(16..)?.get(..len)
        })
    }
}

/// The error for a name that is longer than [`MAX_NAME`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// The NUL-terminated text at `offset` of `table`; `None` if the text is not terminated.
pub(super) fn text(table: &[u8], offset: usize) -> Result<Option<&[u8]>, TooLong> {
    let rest = table.get(offset..).unwrap_or_default();
    // Names may overlap, so the search is limited to the maximum length.
    let head = rest.get(..=MAX_NAME).unwrap_or(rest);
    match memchr::memchr(0, head) {
        Some(end) => Ok(head.get(..end)),
        None if head.len() > MAX_NAME => Err(TooLong),
        None => Ok(None),
    }
}
