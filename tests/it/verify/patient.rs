//! A dump that is temporarily corrupted, and the findings of `verify`.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use gcdump::Dump;
use gcdump::analysis::{FindingId, Severity};
use gcdump::cli::Exit;
use gcdump::internals::base::Addr;
use gcdump::internals::gc::Gc;
use serde_json::Value;

use crate::common::{ask, number, own_dump};

pub fn list<'v>(v: &'v Value, key: &str) -> &'v Vec<Value> {
    v[key].as_array().unwrap_or_else(|| panic!("no {key}"))
}

pub type Found = BTreeSet<(String, u64)>;

/// Kinds and addresses of the findings.
pub fn found(data: &Value) -> Found {
    let findings = list(data, "findings");
    let out: Found = findings.iter().map(|f| (f["id"].as_str().unwrap().into(), number(&f["address"]))).collect();
    assert_eq!(out.len(), findings.len(), "a finding is listed twice: {findings:?}");
    let counted: u64 = list(data, "summary").iter().map(|s| s["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, out.len() as u64, "{data}");
    out
}

/// A dump that is temporarily corrupted.
pub struct Patient {
    pub _folder: tempfile::TempDir,
    pub path: PathBuf,
    pub file: File,
    pub process: Dump,
    /// Findings in the intact dump.
    pub healthy: Found,
}

/// Address and bytes to write.
pub type Write = (u64, Vec<u8>);

impl Patient {
    pub fn new(bytes: &[u8]) -> Patient {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("patient.dmp");
        std::fs::write(&path, bytes).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let process = Dump::open(&path, &gcdump::OpenOptions::default()).unwrap();
        let mut patient = Patient { _folder: folder, path, file, process, healthy: Found::new() };
        patient.healthy = found(&patient.ask(&["verify"]).1);
        patient
    }

    /// The dump in the repository, or the one named by `GCDUMP_VERIFY_DUMP`.
    pub fn real() -> Patient {
        if let Some(path) = std::env::var_os("GCDUMP_VERIFY_DUMP") {
            return Patient::new(&std::fs::read(path).unwrap());
        }
        Patient::new(&zstd::decode_all(File::open(own_dump()).unwrap()).unwrap())
    }

    pub fn ask(&self, command: &[&str]) -> (Exit, Value) {
        let (exit, answer) = ask(&self.path, command);
        (exit, answer["data"].clone())
    }

    pub fn gc(&self, test: impl FnOnce(&Gc, &Dump)) {
        let runtime = self.process.runtime().unwrap();
        test(runtime.gc().unwrap(), &self.process);
    }

    pub fn ptr_bytes(&self) -> u64 {
        self.process.memory().ptr_bytes()
    }

    pub fn word(&self, at: u64) -> u64 {
        self.process.memory().word(Addr(at)).unwrap()
    }

    pub fn offset(&self, name: &str, field: &str) -> u64 {
        self.process.runtime().unwrap().descriptor().offset(name, field).unwrap()
    }

    /// `value` in the byte order of the process.
    pub fn bytes(&self, value: u64, len: u64) -> Vec<u8> {
        let big = self.process.memory().shape().endian == gcdump::internals::base::Endian::Big;
        let len = len as usize;
        if big { value.to_be_bytes()[8 - len..].to_vec() } else { value.to_le_bytes()[..len].to_vec() }
    }

    pub fn put(&self, at: u64, value: u64) -> Write {
        (at, self.bytes(value, self.ptr_bytes()))
    }

    pub fn put32(&self, at: u64, value: u64) -> Write {
        (at, self.bytes(value, 4))
    }

    /// File offset of the byte at `address`.
    pub fn in_file(&self, address: u64) -> u64 {
        let ranges = &self.process.file().ranges;
        let range = ranges.iter().find(|r| r.start.0 <= address && address - r.start.0 < r.len);
        let range = range.unwrap_or_else(|| panic!("{address:#x} is not in the dump"));
        range.offset + (address - range.start.0)
    }

    /// Runs a closure while the dump is corrupted.
    pub fn with<T>(&self, writes: &[Write], test: impl FnOnce() -> T) -> T {
        let mut undo = Vec::new();
        for (at, bytes) in writes {
            let at = self.in_file(*at);
            let mut old = vec![0; bytes.len()];
            self.file.read_exact_at(&mut old, at).unwrap();
            self.file.write_all_at(bytes, at).unwrap();
            undo.push((at, old));
        }
        let out = test();
        undo.iter().rev().for_each(|(at, old)| self.file.write_all_at(old, *at).unwrap());
        out
    }

    /// Exit code and additional findings for a corruption.
    pub fn damaged(&self, writes: &[Write]) -> (Exit, Found, Value) {
        let (exit, data) = self.with(writes, || self.ask(&["verify", "--top", "0"]));
        let all = found(&data);
        // If segments are lost, references to addresses outside of the others are not known to be wrong.
        let lost: Vec<_> = self.healthy.difference(&all).collect();
        assert!(lost.is_empty() || all.iter().any(|(id, _)| id.starts_with("segment-")), "no longer found: {lost:?}");
        (exit, all.difference(&self.healthy).cloned().collect(), data)
    }

    /// Asserts that exactly the expected findings are reported.
    pub fn names(&self, what: &str, writes: &[Write], expected: &[(FindingId, u64)]) -> Value {
        let (exit, found, data) = self.damaged(writes);
        let wanted: Found = expected.iter().map(|(id, at)| (id.name().to_string(), *at)).collect();
        let hex = |f: &Found| f.iter().map(|(id, at)| format!("{id} {at:#x}")).collect::<Vec<_>>();
        assert_eq!(hex(&found), hex(&wanted), "{what}\n{:#}", data["findings"]);
        if expected.iter().any(|(id, _)| id.severity() == Severity::Error) {
            assert_eq!(exit, Exit::Negative, "{what}");
        }
        data
    }
}

/// An object listed by `objects --refs`.
#[derive(Clone, Debug)]
pub struct Obj {
    pub at: u64,
    pub name: String,
    pub size: u64,
    pub generation: String,
    pub length: Option<u64>,
    pub refs: Vec<(u64, u64)>,
}

pub fn objects(patient: &Patient) -> Vec<Obj> {
    let (_, data) = patient.ask(&["objects", "--refs"]);
    let object = |o: &Value| Obj {
        at: number(&o["address"]),
        name: o["type"].as_str().unwrap_or("?").into(),
        size: o["size"].as_u64().unwrap(),
        generation: o["generation"].as_str().unwrap().into(),
        length: o["length"].as_u64(),
        refs: list(o, "refs").iter().map(|r| (r["offset"].as_u64().unwrap(), number(&r["to"]))).collect(),
    };
    list(&data, "objects").iter().map(object).collect()
}
