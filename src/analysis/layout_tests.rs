//! Layouts against the GC's own description of types, on the shared dumps where they are unpacked.

use std::collections::BTreeSet;

use super::layout;
use crate::base::Addr;
use crate::clr::method_table::Generics;
use crate::dump::real_tests::folder;
use crate::memory::{FileSearch, Memory};
use crate::session::{Dump, OpenOptions, loaded_types};

/// Offsets of the references of an object, as the GC reads them before the method table.
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

/// The GC's own description of a type is an independent source: fields and it must agree in every reference.
#[test]
fn references_lie_where_the_gc_says() {
    let files = std::fs::read_dir(folder()).into_iter().flatten().map(|e| e.unwrap().path());
    let full = |name: &str| ["-heap.dmp", "-full.dmp", "-heap.after.dmp", "-heap.before.dmp"].iter().any(|end| name.ends_with(end));
    let only = std::env::var("GCDUMP_TEST_ONLY").unwrap_or_default();
    let wanted = |path: &std::path::PathBuf| path.file_name().and_then(|n| n.to_str()).is_some_and(|n| full(n) && n.contains(&only));
    let mut files: Vec<_> = files.filter(wanted).collect();
    files.sort();
    for path in files {
        let search = FileSearch { recorded_paths: false, ..FileSearch::default() };
        let dump = Dump::open(&path, &OpenOptions { search, ..OpenOptions::default() }).unwrap();
        // Of NativeAOT nothing is read.
        let Ok(runtime) = dump.runtime() else { continue };
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
            } else if layout.name.contains("InlineArray") && ours.is_subset(&wanted) {
                // Only the first element of an inline array is a field.
                inline += 1;
            } else {
                bad.push(format!("{mt} {}: fields {ours:?}, GC {wanted:?}", layout.name));
            }
        }
        println!(
            "{}: {equal} types agree with the GC, {inline} inline arrays, {} do not, {unread} without fields",
            path.display(),
            bad.len()
        );
        bad.iter().take(4).for_each(|b| println!("    {b}"));
        assert!(bad.is_empty() && unread == 0 && equal > 400, "{}", path.display());
    }
}
