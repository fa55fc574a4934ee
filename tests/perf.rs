//! `info` and `heap` must not depend on the size of the dump.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, clippy::print_stdout)]

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The bar for a dump of 1 GB.
const BAR: Duration = Duration::from_millis(50);

#[test]
fn info_and_heap_take_no_longer_on_a_large_dump() {
    let (dumps, _) = common::known_dumps(|row| row["bytes"].as_u64() > Some(500 << 20));
    if dumps.is_empty() {
        return println!("skipped: no dump over 500 MB is unpacked");
    }
    for dump in dumps {
        for command in ["info", "heap"] {
            // The best of several: other processes of the machine must not fail the test.
            let best = (0..7).map(|_| timed(command, &dump.path)).min().unwrap();
            println!("{command} on {} ({} MB): {best:?}", dump.name, dump.path.metadata().unwrap().len() >> 20);
            assert!(best < BAR, "{command} on {} took {best:?}, the bar is {BAR:?}", dump.name);
        }
    }
}

fn timed(command: &str, dump: &std::path::Path) -> Duration {
    let start = Instant::now();
    let status = Command::new(env!("CARGO_BIN_EXE_gcdump"))
        .args([command, "--no-local-files"])
        .arg(dump)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    start.elapsed()
}
