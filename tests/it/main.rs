//! The integration tests, in a single binary: `cargo test --test it`, or `cargo test --test it verify::` for one module.
//!
//! Tests run in parallel in one process: none may set environment variables, the current folder or rayon's global pool.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::panic,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    unsafe_code
)]

// `#[test]` is the attribute of `tests/attribute`, in every module.
#[macro_use]
extern crate gcdump_test_attribute;

#[macro_use]
mod harness;

mod common;
mod support;

mod absent_pages;
mod agreement;
mod altered;
mod analyze;
mod aot_names;
mod api;
mod async_chains;
mod async_roots;
mod attacks;
mod book;
mod bridge;
mod build_servers;
mod bundles;
mod cache;
mod carve;
mod changed;
mod cli;
mod collecting;
mod collections_of;
mod collector;
mod completions;
mod contradictions;
mod cores;
mod corpus;
mod csv_columns;
mod cycles;
mod damage;
mod damage_real;
mod delegates;
mod descriptor;
mod diff;
mod docs;
mod exact_roots;
mod examples;
mod exceptions;
mod export;
#[cfg(feature = "fetch")]
mod fetch;
mod fields;
mod files;
mod finalizers;
mod first_steps;
mod floors;
mod folds;
mod forged;
mod fragmentation;
mod frozen;
mod gc_figures;
mod habits;
mod handles;
mod hangs;
mod headers;
mod heap_map;
mod holes;
mod hostile_names;
mod hostile_text;
mod incoming;
mod index;
mod inspect;
mod late;
mod library;
mod lines;
mod locks;
mod loops;
mod lost_lists;
mod lost_names;
mod lost_roots;
mod lost_tables;
mod machine;
mod managed;
mod manifest;
mod max_memory;
mod mcp;
mod memory_map;
mod methods;
mod module_files;
mod module_places;
mod mono;
mod mutation;
mod names;
mod native_aot;
mod native_crash;
mod net11;
mod overlays;
mod pages;
mod paths;
mod perf;
mod places;
mod platforms;
mod pool;
mod process;
mod process_tables;
mod promises;
mod ref_counts;
mod refs;
mod repeated;
mod report;
mod retained;
mod roots;
mod schema;
mod screens;
mod secrets;
mod seeds;
mod several;
mod shell;
mod slow;
mod sort;
mod sos;
mod stacks;
mod stat;
mod strings;
mod synthetic;
mod tables;
mod totals;
mod track;
mod transcript;
mod triage;
mod trim;
mod type_names;
mod typed;
mod typed_names;
mod verify;

/// Counts allocations per thread, for `mutation`.
#[global_allocator]
static ALLOCATOR: mutation::Counting = mutation::Counting;

fn main() -> std::process::ExitCode {
    // Answers must not depend on module files of this machine. A process cannot safely change its environment once it has threads, so another
    // process runs the tests.
    const PLACES: &str = "GCDUMP_MODULES";
    if std::env::var_os(PLACES).is_some_and(|places| places == "off") {
        return harness::main();
    }
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    let ended = again.args(std::env::args_os().skip(1)).env(PLACES, "off").status().unwrap();
    std::process::ExitCode::from(ended.code().map_or(101, |code| code as u8))
}
