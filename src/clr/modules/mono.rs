//! Modules of Mono: a `MonoImage`, which has the MVID of its file as text.

use std::fmt::Write;
use std::sync::Arc;

use super::module::MetadataOrigin;
use super::{MAX_IMAGE, Module, Reader};
use crate::base::missed::tried;
use crate::base::{Addr, file_name};
use crate::clr::metadata::{Metadata, Source};
use crate::clr::pe;
use crate::data::{Bound, MonoImage};
use crate::memory::ModuleFile;

/// Maximum length of an MVID as text.
const MAX_GUID: u64 = 64;

impl Reader {
    pub(super) fn read_mono(&self, images: &Bound<MonoImage>, address: Addr) -> Module {
        let memory = &self.memory;
        let text = |field, most| images.pointer(memory, address, field).and_then(|at| memory.text(at, most).ok()).filter(|t| !t.is_empty());
        let path = text(MonoImage::name, self.string_bytes);
        let name = path.as_deref().map(file_name).filter(|n| !n.is_empty()).map(Into::into);
        let mut module = Module { name, path, ..self.blank(address) };
        // The size of the metadata is not stored. The end of the file's mapping limits the reads.
        let mapped = || {
            let base = images.pointer(memory, address, MonoImage::raw_metadata)?;
            Metadata::open(Source::Memory { memory: Arc::clone(memory), base, len: MAX_IMAGE }).ok()
        };
        if let Some(metadata) = tried(mapped) {
            module.metadata = Some(Box::new(metadata));
            module.origin = MetadataOrigin::Image;
            return module;
        }
        let wanted = text(MonoImage::guid, MAX_GUID);
        for file in module.path.as_deref().zip(self.search.as_ref()).map_or_else(Vec::new, |(path, s)| s.candidates(path, None, self.os)) {
            let path = file.path().to_path_buf();
            match metadata_of(&file) {
                Ok(metadata) if wanted.is_some() && metadata.mvid().map(|id| as_text(&id)) == wanted => {
                    module.metadata = Some(Box::new(metadata));
                    module.origin = MetadataOrigin::File(path);
                    return module;
                }
                _ if file.place().is_shared() => {}
                Ok(_) if wanted.is_some() => module.rejected.push((path, "its MVID is not that of the loaded image".into())),
                Ok(_) => module.rejected.push((path, "the dump does not have the MVID of the loaded image".into())),
                Err(why) => module.rejected.push((path, why.into())),
            }
        }
        module
    }
}

fn metadata_of(file: &ModuleFile) -> Result<Metadata, String> {
    let bytes = file.open()?;
    let source = Source::File { bytes: Arc::clone(&bytes), offset: 0, len: crate::base::len64(bytes.len()) };
    let headers = pe::Headers::read(&source).ok_or("not a PE file")?;
    let place = headers.metadata(&source).ok_or("not a managed assembly")?;
    Metadata::open(Source::File { bytes, offset: place.offset, len: place.len }).map_err(|e| e.to_string())
}

/// A GUID as Mono writes it: `12B418A7-818C-4CA0-893F-EEAAF67F1E7F`.
fn as_text(guid: &[u8; 16]) -> String {
    // The first three numbers are stored in little-endian order.
    const ORDER: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    const DASHES: [usize; 4] = [4, 6, 8, 10];
    let mut out = String::new();
    for (i, from) in ORDER.into_iter().enumerate() {
        if DASHES.contains(&i) {
            out.push('-');
        }
        let _ = write!(out, "{:02X}", guid.get(from).copied().unwrap_or(0));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::as_text;

    #[test]
    fn guids_are_written_as_mono_writes_them() {
        let id = [0xa7, 0x18, 0xb4, 0x12, 0x8c, 0x81, 0xa0, 0x4c, 0x89, 0x3f, 0xee, 0xaa, 0xf6, 0x7f, 0x1e, 0x7f];
        assert_eq!(as_text(&id), "12B418A7-818C-4CA0-893F-EEAAF67F1E7F");
    }
}
