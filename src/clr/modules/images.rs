//! Where the images of modules are.

use super::{ImageFile, Modules};
use crate::base::{Addr, AddrRange};

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
