//! Finds the modules of a core that has no list of mapped files (NT_FILE). Old kernels and emulators do not write this list.

use super::{Image, Memory, elf_image};
use crate::base::{Addr, AddrRange, Limits, PAGE, len64, ranges};
use crate::dump::{DumpFile, Module};

/// Types of auxiliary vector entries (`elf.h`): the address of the program's headers, and the path by which the program was started.
const AT_PHDR: u64 = 3;
const AT_EXECFN: u64 = 31;

/// The ELF images whose headers are in captured memory that is not writable, in address order. The path of the program comes from `AT_EXECFN`,
/// the path of a library from `DT_SONAME`.
pub(crate) fn unlisted_modules(dump: &DumpFile, memory: &Memory, limits: &Limits) -> Vec<Module> {
    let writable = ranges::union(dump.regions.iter().filter(|r| r.write).map(|r| r.range).collect(), 0);
    let captured = ranges::union(dump.ranges.iter().map(|r| r.range()).collect(), 0);
    let aux = |wanted: u64| dump.auxv.iter().find(|(key, _)| *key == wanted).map(|(_, value)| Addr(*value));
    let program = || {
        let at = aux(AT_EXECFN)?;
        let path = memory.text(at, limits.string_bytes).ok().filter(|path| !path.is_empty())?;
        memory.spare(AddrRange::of(at, len64(path.len())));
        Some(path)
    };
    let mut out = Vec::new();
    for range in ranges::subtract(&captured, &writable) {
        let mut at = range.start.plus(PAGE.saturating_sub(1)).align_down(PAGE);
        while at < range.end && out.len() < limits.modules && memory.afford_steps(1) {
            // This read is not recorded, so that a trimmed copy does not contain a part of each page.
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
