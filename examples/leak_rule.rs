//! Applies a custom leak rule to many dumps in parallel: it reports lists with far more capacity than items.
//!
//! ```sh
//! cargo run --release --example leak_rule -- dumps/*.dmp
//! ```

use std::error::Error;
use std::io::{self, Write};

use rayon::prelude::*;

/// Minimum capacity of a list that the rule reports.
const LEAST_ROOM: u64 = 8;

/// Result of the rule for one dump.
struct Finding {
    lists: u64,
    unused: u64,
    /// Type and address of the list with the most unused capacity.
    worst: Option<(u64, String)>,
}

/// Applies the rule to one dump: all lists, in parallel by segment.
fn apply(path: &str) -> Result<Finding, gcdump::Error> {
    let heap = gcdump::open(path)?.runtime()?.heap()?;
    let lists = heap.par_objects().filter(|o| o.type_name().starts_with("System.Collections.Generic.List<"));
    let mut unused: Vec<(u64, String)> = lists
        .filter_map(|list| {
            let room = list.field("_items").ok()?.object().ok()?.length()?;
            let items = u64::try_from(list.field("_size").ok()?.read::<i32>().ok()?).ok()?;
            let unused = room.checked_sub(items)?;
            (room >= LEAST_ROOM && unused > items).then(|| (unused, format!("{} at {}", list.type_name(), list.address())))
        })
        .collect();
    unused.sort();
    let sum = unused.iter().map(|(n, _)| n).sum();
    Ok(Finding { lists: u64::try_from(unused.len()).unwrap_or(u64::MAX), unused: sum, worst: unused.pop() })
}

/// Prints the result for each dump in `args`.
pub fn run(args: &[String], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let own = ["dumps/net10-wks-basics-heap.dmp.zst".to_string()];
    let paths = if args.is_empty() { &own[..] } else { args };
    let found: Vec<_> = paths.par_iter().map(|path| (path, apply(path))).collect();
    for (path, finding) in found {
        match finding {
            Ok(Finding { lists, unused, worst }) => {
                let worst = worst.map_or_else(String::new, |(n, list)| format!("; {n} in {list}"));
                writeln!(out, "{path}: {lists} lists with {unused} unused elements{worst}")?;
            }
            Err(e) => writeln!(out, "{path}: {e}")?,
        }
    }
    Ok(())
}

#[allow(dead_code)] // The tests call `run`.
fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut io::stdout().lock())
}
