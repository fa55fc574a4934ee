//! The integration tests, one program: `cargo test --test it`, `cargo test --test it verify::` for one module.
//!
//! Tests run beside each other in this process: none sets a variable, the current folder or rayon's global pool.
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

mod common;
mod support;

mod absent_pages;
mod bridge;
mod cli;
mod corpus;
mod damage;
mod damage_real;
mod descriptor;
mod docs;
mod examples;
mod exceptions;
mod fields;
mod floors;
mod forged;
mod fragmentation;
mod headers;
mod hostile_text;
mod library;
mod loops;
mod manifest;
mod mutation;
mod overlays;
mod perf;
mod repeated;
mod retained;
mod roots;
mod schema;
mod stat;
mod strings;
mod synthetic;
mod trim;
mod type_names;
mod verify;

/// Counts for the campaign of `mutation`, each thread for itself.
#[global_allocator]
static ALLOCATOR: mutation::Counting = mutation::Counting;
