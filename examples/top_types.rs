//! Prints the ten types that use the most memory.
//!
//! ```sh
//! cargo run --release --example top_types -- crash.dmp
//! ```

use std::error::Error;
use std::io::{self, Write};

/// Prints the table. `args`: the dump.
pub fn run(args: &[String], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let path = args.first().map_or("dumps/net10-wks-basics-heap.dmp.zst", String::as_str);
    let heap = gcdump::open(path)?.runtime()?.heap()?;
    let stat = heap.stat()?;
    writeln!(out, "{:>12} {:>8}  type", "bytes", "count")?;
    for row in stat.types.iter().take(10) {
        writeln!(out, "{:>12} {:>8}  {}", row.bytes, row.count, row.type_name)?;
    }
    if let Some(loss) = stat.notes.first_loss() {
        writeln!(out, "not complete: {}", loss.message)?;
    }
    Ok(())
}

#[allow(dead_code)] // The tests call `run`.
fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut io::stdout().lock())
}
