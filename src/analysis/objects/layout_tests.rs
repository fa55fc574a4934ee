//! Compares field layouts with the GCDesc of the same type, on the shared dumps if unpacked.

use std::collections::BTreeSet;

use super::layout;
use crate::base::Addr;
use crate::clr::fields::{Field, Types};
use crate::clr::method_table::Generics;
use crate::dump::real_tests::folder;
use crate::memory::{FileSearch, Memory};
use crate::session::{Dump, OpenOptions, loaded_types};

/// Offsets of the references of an object, from the GCDesc before the method table.
fn gc_references(memory: &Memory, mt: Addr, base_size: u32) -> Option<BTreeSet<u64>> {
    let count = memory.u64(mt.minus(8)?).ok()?.cast_signed();
    let mut out = BTreeSet::new();
    for i in 1..=u64::try_from(count).ok().filter(|n| *n < 10_000)? {
        let series = mt.minus(8 + i * 16)?;
        let bytes = memory.u64(series).ok()?.wrapping_add(u64::from(base_size));
        let start = memory.u64(series.plus(8)).ok()?;
        out.extend((0..bytes / 8).map(|n| start + n * 8));
    }
    Some(out)
}

/// Whether the type is or contains an inline array: its only field is the first element, and its size is larger.
fn holds_inline_array(types: &Types, mt: Addr, depth: u32) -> bool {
    let size = |mt: Addr| types.names().method_tables().read(mt).map_or(0, |info| info.base_size);
    let Some(fields) = types.instance_fields(mt).filter(|_| depth < 8) else { return false };
    let inner = |f: &Field| f.method_table.filter(|_| f.is_structure());
    // Boxed: header word, method table, and one word for a reference.
    let one = |f: &Field| inner(f).map_or(24, size);
    matches!(fields.as_slice(), [only] if size(mt) > one(only))
        || fields.iter().filter_map(inner).any(|mt| holds_inline_array(types, mt, depth + 1))
}

/// The GCDesc is an independent source: it must agree with the fields on every reference.
#[test]
fn references_match_the_gcdesc() {
    let files = std::fs::read_dir(folder()).into_iter().flatten().map(|e| e.unwrap().path());
    let full = |name: &str| ["-heap.dmp", "-full.dmp", "-heap.after.dmp", "-heap.before.dmp"].iter().any(|end| name.ends_with(end));
    let only = std::env::var("GCDUMP_TEST_ONLY").unwrap_or_default();
    let wanted = |path: &std::path::PathBuf| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| full(n) && n.contains(&only));
    let mut files: Vec<_> = files.filter(wanted).collect();
    files.sort();
    for path in files {
        let search = FileSearch { recorded_paths: false, ..FileSearch::default() };
        let dump = Dump::open(&path, &OpenOptions { search, ..OpenOptions::default() }).unwrap();
        let Ok(runtime) = dump.runtime() else { continue };
        // In NativeAOT programs, the fields are read from the GCDesc itself.
        if runtime.descriptor().is_native_aot() {
            continue;
        }
        // Without the variables of the runtime, modules and threads cannot be listed.
        if runtime.threads().is_err() {
            continue;
        }
        let types = runtime.types().unwrap();
        let tables = types.names().method_tables();
        let (mut equal, mut bad, mut inline, mut unread) = (0, Vec::new(), 0, 0);
        for mt in loaded_types(types) {
            let info = tables.read(mt).unwrap();
            if info.is_array || info.generics == Generics::Definition || info.is_string || info.base_size == 0 {
                continue;
            }
            let Some(layout) = layout(types, mt).filter(|l| l.fields.is_some()) else {
                unread += 1;
                continue;
            };
            let ours: BTreeSet<u64> = layout.references.iter().copied().collect();
            let gc = || gc_references(dump.memory(), mt, info.base_size).unwrap();
            let wanted = if info.contains_pointers { gc() } else { BTreeSet::new() };
            if ours == wanted {
                equal += 1;
            } else if ours.is_subset(&wanted) && holds_inline_array(types, mt, 0) {
                inline += 1;
            } else {
                bad.push(format!("{mt} {}: fields {ours:?}, GC {wanted:?}", layout.name));
            }
        }
        println!(
            "{}: {equal} types agree with the GC, {inline} inline arrays, {} disagree, {unread} without fields",
            path.display(),
            bad.len()
        );
        bad.iter().take(4).for_each(|b| println!("    {b}"));
        assert!(bad.is_empty() && unread == 0 && equal > 400, "{}", path.display());
    }
}
