//! ELF files with symbols or debug information: the module itself, or the debug file beside it.

use std::borrow::Cow;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::ZlibDecoder;
use goblin::container::{Container, Ctx, Endian as GoblinEndian};
use goblin::elf::section_header::{SHF_COMPRESSED, SHT_NOBITS, SHT_NOTE, SectionHeader};

use crate::base::{Endian, Os, PtrSize, Shape, len64};
use crate::dump::{Bytes, Module};
use crate::memory::{FileSearch, Image, hex};

/// Most sections that are looked at. Programs have some fifty.
const MAX_SECTIONS: usize = 4096;
/// Bytes that an unpacked section may have for each packed one: the best that zlib can do.
const MAX_RATIO: u64 = 1032;
/// Bytes that an unpacked section may have at all.
const MAX_UNPACKED: u64 = 1 << 30;
/// Types of compression. Source: System V ABI, "Section Compression".
const ZLIB: u64 = 1;
const ZSTD: u64 = 2;
const NT_GNU_BUILD_ID: u64 = 3;

/// An ELF file, mapped.
#[derive(Debug)]
pub(super) struct ElfFile {
    bytes: Arc<Bytes>,
    shape: Shape,
    sections: Vec<(String, SectionHeader)>,
}

/// A file that belongs to a module, and those that were found and do not.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<ElfFile>,
    pub(super) refused: Vec<(PathBuf, String)>,
}

/// The files with the symbols and the debug information of `module`: itself, and `….dbg` and `….debug` beside it.
pub(super) fn find(module: &Module, image: &Image, search: &FileSearch, os: Os, shape: Shape) -> Found {
    let mut found = Found::default();
    let beside = [".dbg", ".debug"].map(|ending| format!("{}{ending}", module.path));
    let paths = search.candidates(&module.path, os).into_iter().chain(beside.iter().flat_map(|p| search.symbol_candidates(p, os)));
    let Some(wanted) = &image.build_id else { return found };
    for path in paths {
        match ElfFile::open(&path, shape) {
            Ok(file) if file.build_id().as_ref() == Some(wanted) => found.files.push(file),
            Ok(file) => {
                let has = file.build_id().map_or_else(|| "it has no build id".into(), |id| format!("its build id is {}", hex(&id)));
                found.refused.push((path, format!("{has}, the process had loaded {}", hex(wanted))));
            }
            Err(why) => found.refused.push((path, why)),
        }
    }
    found
}

impl ElfFile {
    fn open(path: &Path, shape: Shape) -> Result<ElfFile, String> {
        let bytes = Bytes::map_path(path).map_err(|e| e.to_string())?;
        ElfFile::parse(Arc::new(bytes), shape).ok_or_else(|| "not a readable ELF file of this architecture".into())
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
        let file = ElfFile { bytes, shape, sections: Vec::new() };
        let names = file.contents(headers.get(usize::from(header.e_shstrndx))?)?.to_vec();
        let named = headers.into_iter().map(|h| (text(&names, h.sh_name).unwrap_or_default().to_string(), h)).collect();
        Some(ElfFile { sections: named, ..file })
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    fn contents(&self, header: &SectionHeader) -> Option<&[u8]> {
        (header.sh_type != SHT_NOBITS).then_some(())?;
        self.bytes.range(header.sh_offset, header.sh_size)
    }

    fn header(&self, name: &str) -> Option<(usize, &SectionHeader)> {
        let found = self.sections.iter().enumerate().find(|(_, (known, h))| known == name && h.sh_type != SHT_NOBITS);
        found.map(|(i, (_, h))| (i, h))
    }

    /// Section `name` as it is in the file, with the section that it is linked to.
    pub(super) fn linked(&self, name: &str) -> Option<(&[u8], &[u8])> {
        let (_, header) = self.header(name)?;
        let link = self.sections.get(usize::try_from(header.sh_link).ok()?)?;
        Some((self.contents(header)?, self.contents(&link.1)?))
    }

    /// Section `name`, unpacked. `None` if the file has none, or it is corrupt.
    pub(super) fn section(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        let (_, header) = self.header(name)?;
        let contents = self.contents(header)?;
        if header.sh_flags & u64::from(SHF_COMPRESSED) == 0 {
            return Some(Cow::Borrowed(contents));
        }
        // Type, padding on 64 bits, size, alignment.
        let word = usize::try_from(self.shape.ptr.bytes()).ok()?;
        let head = word.checked_mul(3)?;
        let kind = self.shape.number(contents.get(..4)?);
        let size = self.shape.number(contents.get(word..)?.get(..word)?);
        let packed = contents.get(head..)?;
        (size <= MAX_UNPACKED && size <= len64(packed.len()).saturating_mul(MAX_RATIO)).then_some(())?;
        let mut out = Vec::new();
        // One byte more would show a wrong size.
        match kind {
            ZLIB => ZlibDecoder::new(packed).take(size.checked_add(1)?).read_to_end(&mut out).ok()?,
            ZSTD => zstd::stream::Decoder::new(packed).ok()?.take(size.checked_add(1)?).read_to_end(&mut out).ok()?,
            _ => return None,
        };
        (len64(out.len()) == size).then_some(Cow::Owned(out))
    }

    fn build_id(&self) -> Option<Vec<u8>> {
        self.sections.iter().filter(|(_, h)| h.sh_type == SHT_NOTE).find_map(|(_, h)| {
            let note = self.contents(h)?;
            let word = |at: usize| Some(self.shape.number(note.get(at..)?.get(..4)?));
            let (name, len, kind) = (word(0)?, word(4)?, word(8)?);
            (name == 4 && kind == NT_GNU_BUILD_ID && note.get(12..16)? == b"GNU\0").then_some(())?;
            note.get(16..)?.get(..usize::try_from(len).ok()?).map(<[u8]>::to_vec)
        })
    }
}

/// The NUL-terminated text at `offset` of `table`.
pub(super) fn text(table: &[u8], offset: usize) -> Option<&str> {
    let rest = table.get(offset..)?;
    std::str::from_utf8(rest.get(..memchr::memchr(0, rest)?)?).ok()
}
