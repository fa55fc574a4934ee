//! Identities of module files, and the files that were found.

use std::sync::Arc;

use super::{Modules, Reader};
use crate::base::missed::tried;
use crate::base::{Addr, AddrRange};
use crate::clr::metadata::{Metadata, Source};
use crate::clr::pdb::Pdb;
use crate::clr::pe;
use crate::dump::Bytes;
use crate::memory::{FileId, ModuleFile};

impl Modules {
    /// The identity of the file of the module at `address`, if the dump has it.
    pub(crate) fn file_id(&self, address: Addr) -> Option<FileId> {
        let reader = &self.reader;
        tried(|| reader.image_id(reader.image_of(address)?))
    }

    /// The address range of the module's image, from the loader's structures or the headers of the image.
    pub(crate) fn extent(&self, address: Addr) -> Option<AddrRange> {
        let base = self.image_base(address)?;
        let by_headers = || match self.file_id(address)? {
            FileId::Stamp { size, .. } => Some(AddrRange::of(base, u64::from(size))),
            _ => None,
        };
        tried(|| self.image_range(address)).or_else(by_headers)
    }

    /// The module's file. `None` unless a file was found that is proven to be the loaded file, or that the user specified.
    pub(crate) fn file(&self, address: Addr) -> Option<ModuleFile> {
        let reader: &Reader = &self.reader;
        tried(|| reader.usable_file(address, reader.image_of(address)?))
    }
}

/// The MVID of a managed image in file layout; `None` if `bytes` is not such an image.
#[cfg_attr(not(feature = "fetch"), allow(dead_code))]
pub(crate) fn mvid_of(bytes: &Arc<Bytes>) -> Option<[u8; 16]> {
    let file = Source::File { bytes: Arc::clone(bytes), offset: 0, len: crate::base::len64(bytes.len()) };
    let place = pe::Headers::read(&file)?.metadata(&file)?;
    Metadata::open(Source::File { bytes: Arc::clone(bytes), offset: place.offset, len: place.len }).ok()?.mvid()
}

/// The id of a portable PDB; `None` if `bytes` is not such a file.
#[cfg_attr(not(feature = "fetch"), allow(dead_code))]
pub(crate) fn pdb_id_of(bytes: &Arc<Bytes>) -> Option<[u8; 20]> {
    let file = Source::File { bytes: Arc::clone(bytes), offset: 0, len: crate::base::len64(bytes.len()) };
    Some(Pdb::open(file).ok()?.id())
}
