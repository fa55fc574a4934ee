//! The images of modules: their addresses, and their files.

use std::sync::Arc;

use super::{Modules, Reader};
use crate::base::{Addr, AddrRange, len64};
use crate::data::{Bound, Field, Module as Layout, PEAssembly, PEImage, PEImageLayout, Structure};
use crate::dump::Bytes;
use crate::memory::{Loaded, PeHeaders, ReadError};

/// The file of a module, mapped as in memory.
#[derive(Clone, Debug)]
pub(crate) struct ImageFile {
    /// Address range of the image.
    pub(crate) range: AddrRange,
    /// Read-only parts.
    parts: Vec<Loaded>,
    /// Parts that the process may have modified.
    writable: Vec<Loaded>,
    headers: PeHeaders,
    bytes: Arc<Bytes>,
}

impl ImageFile {
    /// Copies the bytes at `address` into `to`. Returns whether the file has all of them.
    pub(crate) fn read(&self, address: Addr, to: &mut [u8]) -> bool {
        let range = AddrRange::of(address, len64(to.len()));
        let around = self.parts.iter().find(|p| p.range.start <= range.start && range.end <= p.range.end);
        around.map(|part| part.read(&self.bytes, range, to)).is_some()
    }

    /// The initial value of the 32-bit integer at `address`, which is in writable data that nothing writes to.
    pub(crate) fn initial_u32(&self, address: Addr) -> Option<u32> {
        let range = AddrRange::of(address, 4);
        let around = self.writable.iter().find(|p| p.range.start <= range.start && range.end <= p.range.end)?;
        let mut word = [0; 4];
        around.read(&self.bytes, range, &mut word);
        Some(u32::from_le_bytes(word))
    }

    /// The initial value of the pointer of `size` bytes at `address`, which is in writable data that nothing writes to. `None` if the pointer is
    /// neither null nor an address in this image.
    pub(crate) fn initial_pointer(&self, address: Addr, size: u64) -> Option<Addr> {
        let range = AddrRange::of(address, size);
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
    /// The base of the module's image. `None` if a pointer on the way to it is null, or is not described.
    fn base_of(&self, module: Addr) -> Result<Option<Addr>, ReadError> {
        if let Some(base) = self.followed(self.module.as_ref(), module, Layout::Base)? {
            return Ok(Some(base));
        }
        let Some(assembly) = self.followed(self.module.as_ref(), module, Layout::PEAssembly)? else { return Ok(None) };
        let Some(image) = self.followed(self.assembly.as_ref(), assembly, PEAssembly::PEImage)? else { return Ok(None) };
        let leads = |field| self.followed(self.image.as_ref(), image, field);
        let layout = match leads(PEImage::LoadedImageLayout)? {
            Some(layout) => Some(layout),
            None => leads(PEImage::FlatImageLayout)?,
        };
        let Some(layout) = layout else { return Ok(None) };
        self.followed(self.loaded.as_ref(), layout, PEImageLayout::Base)
    }

    fn followed<S: Structure>(&self, layout: Option<&Bound<S>>, at: Addr, field: Field<S, Addr>) -> Result<Option<Addr>, ReadError> {
        let Some(layout) = layout else { return Ok(None) };
        Ok(layout.read_optional(&*self.memory, at, field)?.filter(|to| !to.is_null()))
    }

    fn image_file(&self, address: Addr) -> Option<ImageFile> {
        let image = self.image_of(address)?;
        let bytes = self.usable_file(address, image)?.open().ok()?;
        let headers = PeHeaders::parse(&bytes)?;
        let range = AddrRange::of(image.base, u64::from(headers.size_of_image));
        let (parts, writable) = (headers.loaded(image.base)?, headers.writable(image.base));
        Some(ImageFile { range, parts, writable, headers, bytes })
    }
}

impl Modules {
    /// The file of the module at `address`, mapped as in memory. `None` unless a file is proven to be the loaded file or specified by the user.
    pub(crate) fn image_file(&self, address: Addr) -> Option<ImageFile> {
        self.reader.image_file(address)
    }

    /// Start of the module's image in memory.
    pub fn image_base(&self, module: Addr) -> Option<Addr> {
        self.reader.image_of(module).map(|i| i.base)
    }

    /// Whether the structures of the loader show that the module has no image. A module whose structures are lost may have one; the failed reads are
    /// reported.
    pub(crate) fn has_no_image(&self, module: Addr) -> bool {
        self.reader.base_of(module).is_ok_and(|base| base.is_none())
    }

    /// Path of the module's file in the process, or the module's name.
    pub(crate) fn path(&self, module: Addr) -> Option<String> {
        self.reader.path_of(module).filter(|p| !p.is_empty()).or_else(|| self.reader.simple_name(module))
    }

    /// Address range of the module's image, if the runtime has its size.
    pub(crate) fn image_range(&self, module: Addr) -> Option<AddrRange> {
        let image = self.reader.image_of(module)?;
        image.size.map(|size| AddrRange::of(image.base, u64::from(size)))
    }
}
