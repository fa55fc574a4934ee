//! Distinguishes executable images from other files that are mapped.

use std::cell::LazyCell;

use super::Runtime;
use crate::base::hash::Set;
use crate::base::missed::{tried, watched};
use crate::base::{Addr, AddrRange, ranges};
use crate::dump::{Container, DumpFile, Module};
use crate::memory::Memory;

/// Images among the modules of a container: executables, libraries, assemblies.
///
/// An ELF core lists every file that is mapped from its beginning. Such a file is an image if it begins with the magic of ELF or PE. If its
/// headers were not captured, it is an image if a part of it is executable, if it is the program or its loader, if the runtime lists it, or
/// if its extension is that of an image. The last rule is needed because createdump does not capture the headers of an assembly that the
/// runtime has mapped but not listed yet. A file that is mapped several times is an image in each mapping. Minidumps list only images.
#[derive(Debug)]
pub(crate) struct Images<'f> {
    /// The images, in the order of the container.
    pub(crate) modules: Vec<&'f Module>,
    /// The modules in `modules` that may not be images: the page with their headers is lost, and no other rule decides.
    pub(crate) lost: Vec<&'f Module>,
}

/// Keys of the auxiliary vector entries (`elf.h`) that point into the program, `AT_PHDR` and `AT_ENTRY`, and into its loader, `AT_BASE`.
const STARTED: [u64; 3] = [3, 7, 9];

/// The kind of a mapped file according to its first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Headers {
    Image,
    Other,
    Absent,
    Lost,
}

impl<'f> Images<'f> {
    /// The images among the modules of `file`. The modules that `runtime` lists are read only if the other rules do not decide.
    pub(crate) fn of(file: &'f DumpFile, memory: &Memory, runtime: Option<&Runtime>) -> Images<'f> {
        let executable = ranges::union(file.regions.iter().filter(|r| r.execute).map(|r| r.range).collect(), 0);
        let is_executable = |range: AddrRange| {
            let first = executable.partition_point(|r| r.end <= range.start);
            executable.get(first).is_some_and(|r| r.start < range.end)
        };
        let with_code: Set<&str> = file.files.iter().filter(|f| is_executable(f.range)).map(|f| f.path.as_str()).collect();
        let listed = LazyCell::new(|| runtime.map(listed_by_runtime).unwrap_or_default());
        let is_listed = |module: &Module| listed.0.contains(&module.base) || listed.1.contains(&module.path);
        let is_started = |module: &Module| {
            let all = module.range();
            file.auxv.iter().any(|(key, value)| STARTED.contains(key) && all.contains(Addr(*value)))
        };
        let only_images = file.facts.container == Container::Minidump;
        let judged: Vec<(&Module, Headers)> = file.modules.iter().map(|m| (m, headers(memory, m.base))).collect();
        let of_images: Set<&str> = judged
            .iter()
            .filter(|(m, headers)| match headers {
                Headers::Image => true,
                Headers::Other => false,
                Headers::Absent | Headers::Lost => {
                    only_images || with_code.contains(m.path.as_str()) || is_named_so(m) || is_started(m) || is_listed(m)
                }
            })
            .map(|(m, _)| m.path.as_str())
            .collect();
        let is_image = |m: &Module| of_images.contains(m.path.as_str());
        let lost = judged.iter().filter(|(m, headers)| *headers == Headers::Lost && !is_image(m)).map(|(m, _)| *m).collect();
        let modules = judged.iter().filter(|(m, headers)| *headers == Headers::Lost || is_image(m)).map(|(m, _)| *m).collect();
        Images { modules, lost }
    }
}

fn headers(memory: &Memory, base: Addr) -> Headers {
    let (magic, missed) = watched(|| memory.bytes(base, 4).ok());
    match magic.as_deref() {
        Some([0x7f, b'E', b'L', b'F'] | [b'M', b'Z', ..]) => Headers::Image,
        Some(_) => Headers::Other,
        None if memory.has_lost(&missed) => Headers::Lost,
        None => Headers::Absent,
    }
}

/// Whether the file name ends like that of an image: `.dll`, `.exe`, `.so`, `.so.1.2`.
fn is_named_so(module: &Module) -> bool {
    let name = module.file_name().to_ascii_lowercase();
    let version = |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || c == '.');
    name.ends_with(".dll") || name.ends_with(".exe") || name.rsplit_once(".so").is_some_and(|(_, rest)| version(rest))
}

/// The base addresses and the paths of the images that the runtime lists.
fn listed_by_runtime(runtime: &Runtime) -> (Set<Addr>, Set<String>) {
    let namer = runtime.namer();
    let (Some(names), Ok(types)) = (namer.names(), namer.types()) else { return Default::default() };
    let modules = names.modules();
    tried(|| {
        let bases = types.modules().iter().filter_map(|module| modules.image_base(*module)).collect();
        (bases, types.modules().iter().filter_map(|module| modules.path(*module)).collect())
    })
}
