//! Object headers: locks, hash codes and sync blocks, compared with the programs' own records and with ClrMD.

use crate::harness::Tested;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{self, Answered, answered};
use gcdump::Dump;
use gcdump::internals::base::{Addr, Collector, Limits};
use gcdump::internals::clr::header::Headers;
use gcdump::internals::dump::{Bytes, OpenOptions, open_bytes};
use gcdump::model::{HeaderModel, HeaderState};
use serde_json::Value;

fn address(v: &Value) -> Addr {
    Addr(u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap())
}

fn number(v: &Value) -> Option<u32> {
    v.as_u64().map(|n| n as u32)
}

fn with_headers<T>(case: &Answered, f: impl FnOnce(&Headers) -> T) -> T {
    let process = Dump::open(&case.path, &gcdump::OpenOptions::default()).unwrap();
    let runtime = process.runtime().unwrap();
    let headers = Headers::bind(process.memory(), runtime.descriptor(), &Limits::default()).unwrap();
    f(&match runtime.types() {
        Ok(types) => headers.with_locks(types),
        Err(_) => headers,
    })
}

fn thin(h: &HeaderModel, owner: Option<u32>, recursion: u32) {
    assert_eq!((h.state, h.owner_managed_id, h.recursion), (HeaderState::ThinLock, owner, Some(recursion)), "{h:?}");
}

#[test]
fn locks_and_hash_codes_match_the_programs_records() -> Tested {
    let mut seen = Vec::new();
    for case in answered()?.into_iter().filter(|c| c.name.contains("locks") || c.name.contains("probe")) {
        let Some(truth) = &case.truth else { continue };
        with_headers(&case, |headers| {
            let read = |v: &Value| headers.read(address(v)).unwrap();
            if truth["contended"].is_string() {
                let owner = number(&truth["owner_managed_id"]);
                let contended = read(&truth["contended"]);
                let block = contended.sync_block.clone().unwrap();
                assert_eq!((contended.state, contended.owner_managed_id, contended.recursion), (HeaderState::SyncBlock, owner, Some(0)));
                assert_eq!((block.held, block.waiters, block.recursion), (Some(true), number(&truth["waiters"]), Some(1)), "{block:?}");
                assert_eq!((block.object, block.hash_code), (Some(address(&truth["contended"])), None));
                thin(&read(&truth["thin"]), number(&truth["thin_owner_managed_id"]), number(&truth["thin_recursion"]).unwrap());
                let hashed = read(&truth["hashed"]);
                assert_eq!((hashed.state, hashed.hash_code), (HeaderState::Hash, number(&truth["hash"])));
                let both = read(&truth["both"]);
                assert_eq!(
                    (both.state, both.owner_managed_id, both.hash_code),
                    (HeaderState::SyncBlock, owner, number(&truth["hash_both"]))
                );
            } else {
                let main = number(&truth["main_managed"]);
                let locks: Vec<HeaderModel> = truth["locks"].as_array().unwrap().iter().map(read).collect();
                thin(&locks[0], main, 1);
                assert_eq!((locks[1].state, locks[1].hash_code), (HeaderState::Hash, number(&truth["hash1"])));
                assert_eq!((locks[2].state, locks[2].hash_code), (HeaderState::SyncBlock, number(&truth["hash2"])));
                assert_eq!(locks[2].owner_managed_id, main);
                // Contended: held by the main thread, one thread waits.
                let block = locks[3].sync_block.clone().unwrap();
                assert_eq!((block.owner_managed_id, block.waiters), (main, Some(1)), "{block:?}");
                // Released by Monitor.Wait.
                let block = locks[4].sync_block.clone().unwrap();
                assert_eq!((block.held, block.owner_managed_id, locks[4].recursion), (Some(false), None, None), "{block:?}");
                assert_eq!(locks[5].state, HeaderState::None);
            }
        });
        seen.push(case.name.clone());
    }
    println!("{seen:?}");
    Ok(())
}

#[test]
fn sync_blocks_are_those_of_clrmd() {
    let (mut dumps, mut blocks) = (0, 0);
    // ClrMD 4.2 does not read headers of .NET 11.
    for case in answered().unwrap_or_default().into_iter().filter(|case| !case.name.contains("net11-")) {
        let Some(theirs) = case.clrmd["syncblocks"]["syncblocks"].as_array() else { continue };
        let threads: BTreeMap<&str, u64> = case.clrmd["threads"]["threads"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|t| (t["address"].as_str().unwrap(), t["managed_id"].as_u64().unwrap()))
            .collect();
        let heap = ["heap", "full", "after", "before", "gcore"].iter().any(|k| case.name.ends_with(k));
        with_headers(&case, |headers| {
            let own = headers.sync_blocks(&Collector::new());
            // Small dumps contain part of the table, or the table without locks.
            if !heap && own.as_ref().is_none_or(|own| own.iter().all(|b| b.held.is_none())) {
                return;
            }
            // ClrMD shows wrong waiters (1000) for a lock without owner, and no owner.
            let own: Vec<String> = own
                .unwrap()
                .iter()
                .map(|b| {
                    let held = b.held.unwrap_or_else(|| panic!("{}: {b:?}", case.name));
                    let detail = if held { format!("{:?} {:?}", b.recursion, b.waiters) } else { String::new() };
                    format!("{} {} {held} {:?} {detail}", b.index, b.object.unwrap(), b.owner_managed_id)
                })
                .collect();
            let wanted: Vec<String> = theirs
                .iter()
                .map(|b| {
                    let held = b["held"] == true;
                    let owner = held.then(|| threads[b["owner"].as_str().unwrap()] as u32);
                    let detail = if held { format!("{:?} {:?}", number(&b["recursion"]), number(&b["waiting"])) } else { String::new() };
                    format!("{} {} {held} {owner:?} {detail}", b["index"], b["object"].as_str().unwrap())
                })
                .collect();
            assert_eq!(own, wanted, "{}", case.name);
            for b in headers.sync_blocks(&Collector::new()).unwrap().iter().filter(|b| b.object.is_some()) {
                let header = headers.read(b.object.unwrap()).unwrap();
                assert_eq!(header.sync_block.as_ref(), Some(b), "{}", case.name);
            }
            dumps += 1;
            blocks += own.len();
        });
    }
    println!("{blocks} sync blocks of {dumps} dumps equal");
}

#[test]
fn damaged_headers_never_panic() -> Tested {
    let Some(case) = answered()?.into_iter().find(|c| c.name == "net9-wks-crash-mini") else { return Ok(()) };
    let plain = std::fs::read(&case.path).unwrap();
    let process = Dump::open(&case.path, &gcdump::OpenOptions::default()).unwrap();
    let runtime = process.runtime().unwrap();
    let descriptor = runtime.descriptor();
    let mut state = 1u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 16
    };
    let variables = ["SyncTableEntries", "SyncBlockCache"].map(|n| descriptor.pointer(n).unwrap());
    let mut hot = variables.to_vec();
    hot.extend(variables.iter().filter_map(|v| process.memory().ptr(*v).ok()));
    for _ in 0..60 {
        let mut bytes = plain.clone();
        for _ in 0..8 {
            let at = hot[random() as usize % hot.len()].element(random() % 24, 8);
            let word = if random() % 2 == 0 { random() << 20 } else { hot[random() as usize % hot.len()].0 };
            if let Some(at) = common::file_offset(process.file(), at) {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
        let damaged = open_bytes(Bytes::Owned(bytes), &case.path, &OpenOptions::default()).unwrap();
        let memory = Arc::new(gcdump::internals::memory::Memory::new(&damaged, gcdump::internals::base::Shape::LE64));
        let limits = Limits { sync_blocks: 10_000, ..Limits::default() };
        let headers = Headers::bind(&memory, descriptor, &limits).unwrap();
        drop(headers.sync_blocks(&Collector::new()));
        for a in &hot {
            assert!(headers.read(a.plus(random() % 64)).is_none_or(|h| h.recursion.is_none() || h.state != HeaderState::None));
        }
    }
    Ok(())
}
