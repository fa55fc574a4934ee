//! Descriptions of the answers.

mod analyze;
mod async_chains;
mod bridge;
mod by_type;
mod collections;
mod contracts;
mod diff;
mod env;
mod exceptions;
mod export;
mod finalizers;
mod fleet;
mod folds;
mod fragmentation;
mod handles;
mod heap;
mod index_file;
mod info;
mod inspect;
mod locks;
mod memory_map;
mod modules;
mod near;
mod object;
mod objects;
mod oom;
mod page;
mod pool;
mod refs;
mod requests;
mod retained;
mod roots;
mod segments;
mod simulate;
mod stacks;
mod stat;
mod statics;
mod strings;
mod threads;
mod timers;
mod track;
mod trim;
mod types;
mod unreachable;
mod verify;
mod whatif;
mod where_is;

pub use objects::objects;

/// Returns the length of a list as `u64`.
fn number<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

/// Returns the JSON name of a model enum.
fn name_of<T: serde::Serialize>(word: T) -> Option<String> {
    serde_json::to_value(word).ok().and_then(|v| v.as_str().map(ToString::to_string))
}
