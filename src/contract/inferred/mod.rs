//! Types whose method tables are lost: sizes and references are inferred from their objects.
//!
//! A dump that is cut off loses the loader's heaps, which have the method tables, before it loses all objects. The headers of the dump still announce
//! the lost memory. A word that leads there, after half a header word of zeros, may begin an object. For each such value, the rule for the size
//! is the one after which most often the next object follows ([`rules`]); references are the words that lead to objects ([`references`]).
//!
//! Source: `docs/internals/carving.md#method-tables-that-are-lost`, with what was measured.

mod places;
mod references;
mod rules;

use super::evidence::Tables;
use super::inferred_types::InferredTypes;
use crate::base::{Addr, AddrRange, ranges, total};
use crate::dump::{DumpFile, ThreadStacks};
use crate::memory::Memory;
use places::Places;
use rules::{Found, Rules};

/// Objects in a row without which nothing is inferred: fewer are found by chance.
const LEAST: u64 = 64;
/// How often the rules are chosen: each time, words within the objects that were found no longer count.
const ROUNDS: usize = 4;

/// The types of the process in `dump`, for memory whose method tables are lost. `tables` reads those that are not lost.
pub(super) fn infer(dump: &DumpFile, memory: &Memory, tables: Option<Tables>) -> Option<InferredTypes> {
    let captured = ranges::union(memory.in_dump(AddrRange::new(Addr::NULL, Addr(u64::MAX))).collect(), 0);
    let (writable, files) = (writable(dump), ranges::union(files(dump).collect(), 0));
    let searched = ranges::subtract(&ranges::intersect(&captured, &writable), &files);
    let lost = lost(dump, &writable, [captured, files].concat());
    let lost_bytes = total(lost.iter().map(AddrRange::len));
    let tables = tables.map(|tables| tables.beside(lost.clone()));
    let all = Places::of(memory, &searched, lost, tables.as_ref())?;
    let mut candidates = all.candidates()?;
    let referenced = all.referenced(&mut candidates)?;
    let (mut seen, mut found, mut in_rows) = (candidates.clone(), None, (0, 0));
    for _ in 0..ROUNDS {
        let rules = Rules::choose(&all, &seen, &referenced, found.as_ref())?;
        let round = rules.follow(&all, (&candidates, &referenced), &mut seen)?;
        let before = std::mem::replace(&mut in_rows, round.rules.in_rows(&all));
        if in_rows.1 < LEAST {
            return None;
        }
        found = Some(round);
        // Another round would find the same objects.
        if in_rows == before {
            break;
        }
    }
    let Found { starts, rules } = found?;
    let (seen_types, objects) = in_rows;
    let references = references::all(&all, &starts, &seen, &rules);
    let (types, string) = (rules.list(&all, references), rules.string());
    Some(InferredTypes { types, string, seen_types, objects, lost_bytes })
}

/// Memory that the process could write, without stacks and what is `taken`: what the dump has, and files.
fn lost(dump: &DumpFile, writable: &[AddrRange], mut taken: Vec<AddrRange>) -> Vec<AddrRange> {
    let stacks = ThreadStacks::new(dump);
    taken.extend(dump.threads.iter().filter_map(|thread| stacks.whole(thread, None)));
    ranges::subtract(writable, &ranges::union(taken, 0))
}

fn writable(dump: &DumpFile) -> Vec<AddrRange> {
    ranges::union(dump.regions.iter().filter(|r| r.write && !r.execute).map(|r| r.range).collect(), 0)
}

/// Mapped files, without the anonymous ones that the runtime maps twice for its own memory.
fn files(dump: &DumpFile) -> impl Iterator<Item = AddrRange> {
    let own: Vec<AddrRange> = dump.double_mapped().collect();
    let files = dump.files.iter().map(|f| f.range).filter(move |range| !own.contains(range));
    files.chain(dump.modules.iter().map(|m| m.range()))
}
