//! A real process with replaceable descriptors: only their headers and JSON change in the opened dump.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use super::asked::{Asked, Given};
use super::text::Text;
use gcdump::internals::base::Addr;
use gcdump::internals::contract::Header;
use gcdump::internals::dump::{Bytes, CapturedRange, DumpFile, OpenOptions, open};
use gcdump::{Dump, Limits};

/// Address of the new texts, where nothing else is mapped.
const FREE: u64 = 0x0000_1000_0000_0000;

struct Part {
    /// File offset of the header.
    offset: usize,
    text: Text,
}

pub struct Process {
    file: DumpFile,
    parts: Vec<Part>,
    given: Given,
    whole: OnceLock<Asked>,
}

/// Returns the offsets of metadata names that equal `name`.
fn places(bytes: &[u8], name: &str) -> Vec<usize> {
    let wanted = [b"\0", name.as_bytes(), b"\0"].concat();
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == wanted[1]).map(|(at, _)| at);
    starts.filter(|at| at.checked_sub(1).is_some_and(|before| bytes[before..].starts_with(&wanted))).collect()
}

impl Process {
    /// Opens a dump of the repository with the descriptors of .NET 11: of the runtime, and of the GC.
    pub fn open() -> Process {
        Process::of("net11shape-wks-threads-heap")
    }

    /// Opens a real process of .NET 11 with continuations, locks and tasks.
    pub fn of_net11() -> Process {
        Process::of("net11-wks-asyncmixrt-heap")
    }

    /// Opens a dump of the repository.
    pub fn of(name: &str) -> Process {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"));
        let file = open(&path, &OpenOptions::default()).unwrap();
        let dump = Dump::of(file.clone(), &gcdump::OpenOptions::default());
        let runtime = dump.runtime().unwrap();
        let memory = runtime.memory();
        let headers = runtime.descriptor().origins.iter().filter_map(|o| Header::read(memory, o.address?, &Limits::default()).ok());
        let parts: Vec<Part> = headers
            .map(|header| {
                let range = file.ranges.iter().find(|r| r.start <= header.address && header.address.0 - r.start.0 < r.len).unwrap();
                let offset = (range.offset + header.address.0 - range.start.0) as usize;
                let text = Text::parse(&memory.bytes(header.json, header.json_bytes).unwrap());
                Part { offset, text }
            })
            .collect();
        assert_eq!(parts.len(), 2);
        Process { given: Given::of(&dump), file, parts, whole: OnceLock::new() }
    }

    /// Returns the texts of the descriptors.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.parts.iter().map(|p| &p.text)
    }

    /// Returns the answers for the unchanged process.
    pub fn whole(&self) -> &Asked {
        self.whole.get_or_init(|| self.asked(|_| ()))
    }

    /// Whether metadata in the dump has this name.
    pub fn has_name(&self, name: &str) -> bool {
        !places(&self.file.bytes, name).is_empty()
    }

    /// Returns the answers with another name in metadata for everything called `name`.
    pub fn asked_without(&self, name: &str) -> Asked {
        let mut file = self.file.clone();
        let mut bytes = file.bytes.to_vec();
        for at in places(&bytes, name) {
            bytes[at] = b'?';
        }
        file.bytes = Arc::new(Bytes::Owned(bytes));
        Asked::of(&Dump::of(file, &gcdump::OpenOptions::default()), &self.given)
    }

    /// Returns the answers with each text changed by `change`.
    pub fn asked(&self, change: impl Fn(&mut Text)) -> Asked {
        Asked::of(&self.dump(change), &self.given)
    }

    /// Opens the dump with each text changed by `change`.
    pub fn dump(&self, change: impl Fn(&mut Text)) -> Dump {
        let mut file = self.file.clone();
        let mut bytes = file.bytes.to_vec();
        let mut at = Addr(FREE);
        for part in &self.parts {
            let mut text = part.text.clone();
            change(&mut text);
            let text = text.print();
            bytes[part.offset + 12..][..4].copy_from_slice(&(text.len() as u32).to_le_bytes());
            bytes[part.offset + 16..][..8].copy_from_slice(&at.0.to_le_bytes());
            file.ranges.push(CapturedRange { start: at, len: text.len() as u64, offset: bytes.len() as u64 });
            bytes.extend_from_slice(text.as_bytes());
            at = at.plus(1 << 20);
        }
        file.bytes = Arc::new(Bytes::Owned(bytes));
        Dump::of(file, &gcdump::OpenOptions::default())
    }
}
