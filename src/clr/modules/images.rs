//! The images of modules: where they are, and their files.

use std::sync::Arc;

use super::{Modules, Reader};
use crate::base::{Addr, AddrRange, len64};
use crate::dump::Bytes;
use crate::memory::{Loaded, PeHeaders};

/// The file of a module, laid out as in memory.
#[derive(Clone, Debug)]
pub(crate) struct ImageFile {
    /// The image in memory.
    pub(crate) range: AddrRange,
    /// Parts that the process cannot have modified.
    parts: Vec<Loaded>,
    /// Parts that it may have modified.
    writable: Vec<Loaded>,
    headers: PeHeaders,
    bytes: Arc<Bytes>,
}

impl ImageFile {
    /// Copies the bytes at `address` into `to`. Whether the file has them all.
    pub(crate) fn read(&self, address: Addr, to: &mut [u8]) -> bool {
        let range = AddrRange::new(address, address.plus(len64(to.len())));
        let around = self.parts.iter().find(|p| p.range.start <= range.start && range.end <= p.range.end);
        around.map(|part| part.read(&self.bytes, range, to)).is_some()
    }

    /// The pointer of `size` bytes that was at `address` of writable data when the process began, for data that nothing writes to. `None`
    /// if it is neither null nor leads into this image.
    pub(crate) fn initial_pointer(&self, address: Addr, size: u64) -> Option<Addr> {
        let range = AddrRange::new(address, address.plus(size));
        let around = self.writable.iter().find(|p| p.range.start <= range.start && range.end <= p.range.end)?;
        let mut word = [0; 8];
        around.read(&self.bytes, range, word.get_mut(..usize::try_from(size).ok()?)?);
        match u64::from_le_bytes(word) {
            0 => Some(Addr::NULL),
            value => self.headers.relocated(value, self.range.start),
        }
    }
}

impl Reader {
    fn image_file(&self, address: Addr) -> Option<ImageFile> {
        let image = self.image_of(address)?;
        let bytes = self.usable_file(address, image)?.open().ok()?;
        let headers = PeHeaders::parse(&bytes)?;
        let range = AddrRange::new(image.base, image.base.plus(u64::from(headers.size_of_image)));
        let (parts, writable) = (headers.loaded(image.base)?, headers.writable(image.base));
        Some(ImageFile { range, parts, writable, headers, bytes })
    }
}

impl Modules {
    /// The file of the module at `address`, as it lies in memory: parts that the process cannot have modified. `None` if no file
    /// is known to be the one that the process had loaded, nor given as such.
    pub(crate) fn image_file(&self, address: Addr) -> Option<ImageFile> {
        self.reader.image_file(address)
    }

    /// Start of the module's image in memory.
    pub fn image_base(&self, module: Addr) -> Option<Addr> {
        self.reader.image_of(module).map(|i| i.base)
    }

    /// Path of the module's file in the process, or its name.
    pub(crate) fn path(&self, module: Addr) -> Option<String> {
        self.reader.path_of(module).filter(|p| !p.is_empty()).or_else(|| self.reader.simple_name(module))
    }

    /// The module's image in memory, where the runtime tells its size.
    pub(crate) fn image_range(&self, module: Addr) -> Option<AddrRange> {
        let image = self.reader.image_of(module)?;
        image.size.map(|size| AddrRange::new(image.base, image.base.plus(u64::from(size))))
    }
}
