//! Intact dumps, and the file offsets worth mutating.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::LazyLock;

use gcdump::internals::dump::{self, OpenOptions};
use serde_json::Value;

use crate::common::{self, commands, full, sample};
use crate::corpus;
use crate::support::{Shape, Spec, Target};

/// xorshift64*: the same numbers on every machine.
#[derive(Clone)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let mut rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        rng.next();
        rng
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 8) as usize % n.max(1)
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> Option<&'a T> {
        if list.is_empty() { None } else { Some(&list[self.below(list.len())]) }
    }
}

/// Command lines besides the examples of the registry. `ANY` is any address.
pub const MORE: &[&[&str]] = &[
    &["heap", "--detail"],
    &["segments", "--free", "--walk"],
    &["stat", "--by", "assembly"],
    &["objects", "--refs", "--count", "0"],
    &["object", "ANY"],
    &["where", "ANY"],
    &["type", "*"],
    &["statics", "--all"],
    &["strings", "--top", "0"],
    &["strings", "--longest"],
    &["handles"],
    &["roots", "--weak"],
    &["finalizers", "--objects"],
    &["path", "ADDR", "--all-roots", "--weak"],
    &["path", "--type", "*"],
    &["retained", "--tree", "--depth", "20", "--stacks", "none"],
    &["unreachable", "--objects"],
    &["bridge", "--bridged", "*", "--all"],
    &["bridge", "--all", "--dot"],
    &["whatif", "--alive", "ADDR", "--dead", "HANDLE"],
    &["simulate", "collect", "--generation", "1"],
];

/// Number of cases after which the command lines change, so that each base is used with each of them.
pub const ROUND: usize = 16;

/// Commands that run most of the others and take most of the time: each case runs one of them, in turn.
pub const COMPOSED: [&str; 7] = ["report", "trim", "analyze", "fleet", "export", "track", "index"];

/// The command lines of each command. Each case runs one per command, in turn.
pub static COMMANDS: LazyLock<Vec<Vec<Vec<String>>>> = LazyLock::new(|| {
    let all = commands::forms(MORE);
    gcdump::cli::COMMANDS.iter().map(|c| all.iter().filter(|f| f[0] == c.name).cloned().collect()).collect()
});

/// Structures in the file that affect answers.
pub struct Group {
    /// File offsets.
    pub places: Vec<usize>,
    /// Size of each in bytes.
    pub reach: usize,
}

/// An intact dump.
pub struct Base {
    pub name: String,
    pub bytes: Vec<u8>,
    pub shape: Shape,
    /// Captured memory: address, size, file offset.
    pub ranges: Vec<(u64, u64, usize)>,
    /// Size of the container's own structures, which precede the memory.
    pub head: usize,
    /// Structures named in the answers of each command, and others.
    pub groups: Vec<Group>,
    /// File offsets of pointers.
    pub pointers: Vec<usize>,
    /// Addresses named in answers.
    pub addresses: Vec<u64>,
    /// Values of `ADDR`, `HANDLE` and `ANY`: few, so that parsed command lines can be cached.
    objects: Vec<u64>,
    handles: Vec<u64>,
    any: Vec<u64>,
}

/// Number of addresses in commands: parsing a command line takes longer than most commands on a small dump.
const POOL: usize = 4;

/// Some of `list`, from all parts of it. One in four is made an interior address.
fn pool(list: &[u64]) -> Vec<u64> {
    let spread = list.iter().step_by(list.len().div_ceil(POOL).max(1)).enumerate();
    spread.map(|(i, at)| if i % 4 == 3 { at.wrapping_add(9) } else { *at }).collect()
}

impl Base {
    /// Copies the dump to a file in `folder`.
    pub fn file(&self, folder: &Path) -> tempfile::NamedTempFile {
        let mut file = tempfile::Builder::new().suffix(".dmp").tempfile_in(folder).unwrap();
        file.write_all(&self.bytes).unwrap();
        file.flush().unwrap();
        file
    }

    /// A command line with placeholders replaced. Output files are next to the dump.
    pub fn command(&self, form: &[String], path: &str, rng: &mut Rng) -> Vec<String> {
        let mut address = |list: &[u64]| Some(format!("{:#x}", rng.pick(list).unwrap_or(&0x1000)));
        commands::filled(form, |word| match word {
            dump if commands::is_dump(dump) => Some(path.into()),
            "OUT" => Some(format!("{path}.trimmed")),
            "ADDR" => address(&self.objects),
            "HANDLE" => address(&self.handles),
            "ANY" => address(&self.any),
            _ => None,
        })
    }

    /// Returns the file offset of an address.
    pub fn offset(&self, address: u64) -> Option<usize> {
        let i = self.ranges.partition_point(|r| r.0 <= address).checked_sub(1)?;
        let (start, len, offset) = self.ranges[i];
        (address - start < len).then(|| offset + (address - start) as usize)
    }

    pub fn word(&self, at: usize) -> Option<u64> {
        let bytes = self.bytes.get(at..at + self.shape.ptr as usize)?;
        let fold = |n: u64, b: &u8| n << 8 | u64::from(*b);
        Some(if self.shape.big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) })
    }

    fn new(name: &str, bytes: Vec<u8>, shape: Shape) -> Base {
        let mut base = Base {
            name: name.into(),
            bytes,
            shape,
            ranges: Vec::new(),
            head: 0,
            groups: Vec::new(),
            pointers: Vec::new(),
            addresses: Vec::new(),
            objects: Vec::new(),
            handles: Vec::new(),
            any: Vec::new(),
        };
        let file = base.file(&std::env::temp_dir());
        let dump = dump::open(file.path(), &OpenOptions::default()).unwrap();
        base.ranges = dump.ranges.iter().map(|r| (r.start.0, r.len, r.offset as usize)).collect();
        base.ranges.sort_unstable();
        base.head = base.ranges.iter().map(|r| r.2).min().unwrap();
        base.harvest(file.path());
        base.find_pointers();
        base
    }

    /// Collects every address named in an answer.
    fn harvest(&mut self, path: &Path) {
        let (mut all, mut rng) = (BTreeSet::new(), Rng::new(1));
        let no_json = |f: &&Vec<String>| ["--dot", "--format", "OUT"].iter().any(|w| f.iter().any(|word| word == w));
        // Commands that supply addresses for others come first.
        let mut forms: Vec<&Vec<String>> = COMMANDS.iter().flatten().filter(|f| !no_json(f)).collect();
        forms.sort_by_key(|f| f[0] != "objects" && f[0] != "handles");
        for form in forms {
            let mut args = self.command(form, path.to_str().unwrap(), &mut rng);
            args.extend(["--json", "--no-local-files"].map(String::from));
            let ran = common::run(&args);
            assert!(matches!(ran.exit.code(), 0 | 1 | 4 | 5), "{}: {args:?}: {:?} {}", self.name, ran.exit, ran.err);
            let Ok(answer) = serde_json::from_str::<Value>(&ran.out) else { continue };
            let mut found = BTreeSet::new();
            addresses(&answer, &mut found);
            let list = |key: &str| {
                let rows = answer["data"][key].as_array().into_iter().flatten();
                rows.filter_map(|r| address(r["address"].as_str()?)).collect::<Vec<u64>>()
            };
            match form[0].as_str() {
                "objects" if form.iter().any(|w| w == "0") => self.objects = pool(&list("objects")),
                "handles" if form.len() == 2 => self.handles = pool(&list("handles")),
                _ => {}
            }
            let places = found.iter().filter_map(|a| self.offset(a & !(self.shape.ptr - 1))).collect();
            self.groups.push(Group { places, reach: 256 });
            all.extend(found);
        }
        self.addresses = all.into_iter().collect();
        self.any = pool(&self.addresses);
        let found = |mark: &[u8]| memchr::memmem::find_iter(&self.bytes, mark).collect::<Vec<usize>>();
        // The metadata header and tables, and the text of the descriptor.
        self.groups.push(Group { places: found(b"BSJB"), reach: 0x4000 });
        self.groups.push(Group { places: found(b"DNCCDAC\0"), reach: 64 });
        self.groups.push(Group { places: found(b"{\"version\""), reach: 0x3000 });
        self.groups.push(Group { places: vec![0], reach: self.head });
        self.groups.retain(|g| !g.places.is_empty());
    }

    fn find_pointers(&mut self) {
        let word = self.shape.ptr as usize;
        let mut found = BTreeSet::new();
        for group in self.groups.iter().filter(|g| g.reach == 256) {
            for place in group.places.iter().take(2000) {
                for at in (place.saturating_sub(64)..place + 256).step_by(word).filter(|at| *at >= self.head) {
                    if self.word(at).and_then(|w| self.offset(w)).is_some() {
                        found.insert(at);
                    }
                }
            }
        }
        self.pointers = found.into_iter().collect();
        assert!(self.pointers.len() > 20, "{}", self.name);
    }
}

fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn addresses(value: &Value, out: &mut BTreeSet<u64>) {
    match value {
        Value::String(text) => out.extend(address(text)),
        Value::Array(list) => list.iter().for_each(|v| addresses(v, out)),
        Value::Object(map) => map.values().for_each(|v| addresses(v, out)),
        _ => {}
    }
}

type Container = (&'static str, fn(&Target) -> Vec<u8>);

/// Synthetic processes of four architectures, in both containers. Every command runs once on each, which takes seconds.
pub static SYNTHETIC: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let containers: [Container; 2] = [("core", Target::to_elf_core), ("minidump", Target::to_minidump)];
    let mut out = Vec::new();
    for shape in Shape::ALL {
        // A short run has one process per architecture, with containers and collectors in turn.
        let turn = if full() { 0 } else { usize::from(shape.big) };
        for (i, (name, make)) in sample(containers.iter().enumerate().skip(turn), 2) {
            for regions in sample([true, false].into_iter().skip(if full() { 0 } else { usize::from(shape.ptr == 4) }), 2) {
                let server = ((i == usize::from(shape.big)) == regions).then_some(2);
                let target = Spec { server, cpus: 3, regions, ..Spec::standard(shape) }.build();
                out.push(Base::new(&format!("{shape:?} {name} regions {regions} server {server:?}"), make(&target), shape));
            }
        }
    }
    out
});

/// Some dumps of the corpus, of both containers, with and without a descriptor, with locks, and of NativeAOT. They are trimmed, so commands
/// read most of the changed bytes.
pub static REAL: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let wanted = sample(["win-net10-wks-basics-mini", "net10-wks-basics-heap", "net8-wks-deadlock-heap", "aot9-"], 3);
    let mut out = Vec::new();
    for path in corpus::dumps() {
        let name = path.file_name().unwrap().to_str().unwrap();
        if wanted.iter().any(|start| name.starts_with(start)) {
            let bytes = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
            out.push(Base::new(name, bytes, Shape { ptr: 8, big: false }));
        }
    }
    out
});
