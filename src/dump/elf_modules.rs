//! Derives the modules of an ELF core from its file mappings.

use super::{FileMapping, Module};
use crate::base::Limits;
use crate::base::hash::Map;

/// Maximum gap in bytes between two mappings of one image. PE sections are mapped 64 KiB apart, and ELF segments up to 2 MiB apart (the alignment
/// of old linkers). Mappings with a larger gap are separate copies, or parts of a single-file program that the host maps one by one.
const MAX_GAP: u64 = 4 << 20;

/// Maximum distance in bytes from the headers of a PE image to its first section in loaded layout: coreclr on Linux aligns sections to
/// 64 KiB. The first section starts in the first page of the file, so its mapping also has file offset 0.
const PE_FIRST_SECTION: u64 = 64 << 10;

/// Groups file mappings into modules, in the order of their first mappings.
///
/// One path may yield several modules: the runtime maps a managed assembly flat to inspect it, and again in loaded layout to run it. A module
/// starts at file offset 0 and takes further mappings of its path while addresses and offsets increase together. Other mappings, such as
/// those of assemblies in a single-file program, do not become modules.
pub(super) fn modules(files: &[FileMapping], limits: &Limits) -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    // Path → the module that its next mapping may extend.
    let mut open: Map<&str, Open> = Map::default();
    for file in files.iter().filter(|f| !f.range.is_empty() && !is_pseudo(&f.path)) {
        if let Some(last) = open.get_mut(file.path.as_str())
            && last.takes(file)
        {
            last.extend(file);
            if let Some(module) = modules.get_mut(last.index) {
                module.size = file.range.end.since(module.base).unwrap_or(module.size);
            }
            continue;
        }
        if file.file_offset != 0 {
            continue;
        }
        if modules.len() >= limits.modules {
            break;
        }
        open.insert(&file.path, Open::new(modules.len(), file));
        modules.push(Module {
            path: file.path.clone(),
            base: file.range.start,
            size: file.range.len(),
            timestamp: None,
            version: None,
            build_id: None,
        });
    }
    modules
}

/// The largest page size in bytes that segments are aligned to.
const LARGEST_PAGE: u64 = 1 << 16;

/// A module that further mappings may extend.
struct Open {
    /// Index in the list of modules.
    index: usize,
    start: u64,
    /// End of the last mapping.
    end: u64,
    /// File offset of the last mapping.
    offset: u64,
    /// Number of mappings.
    mappings: u64,
}

impl Open {
    fn new(index: usize, file: &FileMapping) -> Open {
        Open { index, start: file.range.start.0, end: file.range.end.0, offset: file.file_offset, mappings: 1 }
    }

    /// Whether `file`, a mapping of the same path, belongs to this module.
    fn takes(&self, file: &FileMapping) -> bool {
        let start = file.range.start.0;
        let Some(gap) = start.checked_sub(self.end) else { return false };
        let Some(from_base) = start.checked_sub(self.start) else { return false };
        if file.file_offset == 0 {
            // In loaded layout, the first section of a PE image follows the headers. A second flat mapping may follow as well, without a gap,
            // but then both mappings have the same size.
            let first = self.end.saturating_sub(self.start);
            let differs = first < from_base || file.range.len() != first;
            return self.mappings == 1 && from_base <= PE_FIRST_SECTION && differs;
        }
        // An image is at least as large in memory as in the file, so the file offset is at most the distance from the base. A difference of one
        // page, up to 64 KiB on arm64, is allowed, because a page that two segments share is mapped twice.
        file.file_offset.saturating_add(LARGEST_PAGE) > self.offset
            && gap <= MAX_GAP
            && from_base.saturating_add(LARGEST_PAGE) >= file.file_offset
    }

    fn extend(&mut self, file: &FileMapping) {
        self.end = file.range.end.0;
        self.offset = file.file_offset;
        self.mappings = self.mappings.saturating_add(1);
    }
}

/// Whether the path is a name by which the kernel lists memory that is not backed by a regular file.
fn is_pseudo(path: &str) -> bool {
    let device = path.starts_with("/dev/") && !path.starts_with("/dev/shm/");
    device
        || path.starts_with('[')
        || ["/memfd:", "/SYSV", "/anon_hugepage", "/[aio]", "anon_inode:", "socket:", "pipe:"].iter().any(|p| path.starts_with(p))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Addr, AddrRange};

    fn map(start: u64, end: u64, file_offset: u64, path: &str) -> FileMapping {
        FileMapping { range: AddrRange::new(Addr(start), Addr(end)), file_offset, path: path.to_owned() }
    }

    fn bases(files: &[FileMapping]) -> Vec<(u64, u64)> {
        modules(files, &Limits::default()).iter().map(|m| (m.base.0, m.size)).collect()
    }

    #[test]
    fn flat_and_loaded_layout_are_two_modules() {
        // System.Private.CoreLib of net10-wks-basics-heap.
        let p = "/app/System.Private.CoreLib.dll";
        let files = [
            map(0x7f3d_3680_0000, 0x7f3d_376d_b000, 0, p),
            map(0x7f3d_4608_0000, 0x7f3d_4608_1000, 0, p),
            map(0x7f3d_4609_0000, 0x7f3d_46bd_c000, 0, p),
            map(0x7f3d_46bf_c000, 0x7f3d_46f7_e000, 0xb4_c000, p),
            map(0x7f3d_46f9_d000, 0x7f3d_46fa_9000, 0xec_d000, p),
        ];
        assert_eq!(bases(&files), [(0x7f3d_3680_0000, 0xed_b000), (0x7f3d_4608_0000, 0xf2_9000)]);
    }

    #[test]
    fn a_library_is_one_module_and_pseudo_files_are_not_modules() {
        let files = [
            map(0x1000_0000, 0x100b_d000, 0, "/app/lib.so"),
            map(0x100b_d000, 0x100b_e000, 0xb_d000, "/app/lib.so"),
            map(0x100b_e000, 0x101c_9000, 0xb_e000, "/app/lib.so"),
            map(0x101c_9000, 0x101d_0000, 0xb_e000, "/app/lib.so"),
            map(0x2000_0000, 0x2000_1000, 0, "/memfd:doublemapper"),
            map(0x3000_0000, 0x3000_1000, 0, "/dev/zero"),
            map(0x4000_0000, 0x4000_1000, 0, "[heap]"),
        ];
        assert_eq!(bases(&files), [(0x1000_0000, 0x1d_0000)]);
    }

    #[test]
    fn a_single_file_host_stays_one_module() {
        let p = "/app/single";
        let mut files = vec![map(0x5500_0000_0000, 0x5500_0010_0000, 0, p), map(0x5500_0010_0000, 0x5500_0090_0000, 0x10_0000, p)];
        // Assemblies of the bundle, each mapped from its offset in the host, in arbitrary order.
        for i in 0..50u64 {
            files.push(map(0x7f00_0000_0000 + i * 0x10_0000, 0x7f00_0000_8000 + i * 0x10_0000, (99 - i) * 0x10_0000, p));
        }
        assert_eq!(bases(&files), [(0x5500_0000_0000, 0x90_0000)]);
    }

    #[test]
    fn segments_aligned_to_large_pages_are_one_module() {
        // libcoreclr.so of 10.0 on arm64: the page before the code is mapped twice, with the larger offset first.
        let files = [
            map(0x1000_0000, 0x101d_8000, 0, "/app/lib.so"),
            map(0x101d_8000, 0x101e_7000, 0x1d_8000, "/app/lib.so"),
            map(0x101e_7000, 0x1067_0000, 0x1d_7000, "/app/lib.so"),
        ];
        assert_eq!(bases(&files), [(0x1000_0000, 0x67_0000)]);
    }

    #[test]
    fn small_files_mapped_twice_are_two_modules() {
        let files = [map(0x1000, 0x2000, 0, "/a.dll"), map(0x2000, 0x3000, 0, "/a.dll"), map(0x90_0000, 0x90_1000, 0, "/a.dll")];
        assert_eq!(bases(&files).len(), 3);
    }
}
