//! Modules of a core without a list of mapped files (NT_FILE), which old kernels and emulators do not write.

use super::{Image, Memory, elf_image};
use crate::base::{Addr, AddrRange, Limits, PAGE, len64, ranges};
use crate::dump::{DumpFile, Module};

/// Types of auxiliary vector entries (`elf.h`): the program's headers in memory, and the path that it was started with.
const AT_PHDR: u64 = 3;
const AT_EXECFN: u64 = 31;

/// ELF images whose headers are in captured memory that is not writable, by address. Their names come from their dynamic sections; the
/// program is named by its path.
pub(crate) fn unlisted_modules(dump: &DumpFile, memory: &Memory, limits: &Limits) -> Vec<Module> {
    let writable = ranges::union(dump.regions.iter().filter(|r| r.write).map(|r| r.range).collect(), 0);
    let captured = ranges::union(dump.ranges.iter().map(|r| AddrRange::new(r.start, r.start.plus(r.len))).collect(), 0);
    let aux = |wanted: u64| dump.auxv.iter().find(|(key, _)| *key == wanted).map(|(_, value)| Addr(*value));
    let program = || {
        let at = aux(AT_EXECFN)?;
        let path = memory.text(at, limits.string_bytes).ok().filter(|path| !path.is_empty())?;
        memory.spare(AddrRange::new(at, at.plus(len64(path.len()))));
        Some(path)
    };
    let mut out = Vec::new();
    for range in ranges::subtract(&captured, &writable) {
        let mut at = range.start.plus(PAGE.saturating_sub(1)).align_down(PAGE);
        while at < range.end && out.len() < limits.modules && memory.afford_steps(1) {
            // The signature is checked without recording a read, so that a trimmed copy need not contain pages without an image.
            let is_elf = memory.contiguous(at).is_some_and(|bytes| bytes.starts_with(b"\x7fELF"));
            if let Some(image) = is_elf.then(|| Image::at(memory, at)).flatten() {
                let is_program = aux(AT_PHDR).is_some_and(|headers| image.range.contains(headers));
                let path = if is_program { program() } else { None };
                let path = path.or_else(|| elf_image::own_name(&image, memory, limits.string_bytes));
                let (base, size) = (at, image.range.len());
                let path = path.unwrap_or_else(|| format!("[image at {at}]"));
                out.push(Module { path, base, size, timestamp: None, version: None, build_id: None });
            }
            at = at.plus(PAGE);
        }
    }
    out
}
