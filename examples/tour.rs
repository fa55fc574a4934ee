//! Uses most handles of the library: threads and their arguments, roots, a dictionary's entries, a bound field, modules, and a deadline.
//!
//! ```sh
//! cargo run --release --example tour -- crash.dmp
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{self, Write};
use std::time::Duration;

use gcdump::Cancel;

/// Prints the tour. `args`: dump.
pub fn run(args: &[String], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let dump = gcdump::open(args.first().map_or("dumps/net10-wks-basics-heap.dmp.zst", String::as_str))?;
    let runtime = dump.runtime()?;
    let heap = runtime.heap()?;

    for thread in runtime.threads()? {
        for frame in thread.frames()? {
            for argument in frame.arguments()? {
                if let Ok(object) = argument.object() {
                    let method = frame.method().map(|method| method.display()).unwrap_or_default();
                    writeln!(out, "{method}: {} is a {}", argument.name().unwrap_or("?"), object.type_name())?;
                }
            }
        }
    }

    let mut kinds = BTreeMap::new();
    for root in heap.roots()? {
        *kinds.entry(root.kind().to_string()).or_insert(0) += 1;
    }
    writeln!(out, "roots: {kinds:?}")?;

    let dictionaries = heap.objects_of("System.Collections.Generic.Dictionary<*>")?;
    if let Some(dictionary) = dictionaries.max_by_key(|object| object.collection().map_or(0, |collection| collection.count())) {
        for (key, value) in dictionary.entries()?.take(3) {
            writeln!(out, "{}: {}", key.text(), value.text())?;
        }
    }

    let size = runtime.type_named("System.Collections.Generic.List<System.Object>")?.field("_size")?;
    for list in heap.objects_of("System.Collections.Generic.List<System.Object>")? {
        writeln!(out, "a list of {}", list.read::<i32>(&size)?)?;
    }

    for module in dump.modules()? {
        if module.is_managed() {
            writeln!(out, "{}: {} types are loaded", module.name().unwrap_or_default(), module.types()?.len())?;
        }
    }

    // `scratch` owns its graph and dominators, so both are freed with this heap.
    let scratch = runtime.detached_heap()?;
    match Cancel::after(Duration::from_secs(60)).run(|| scratch.retained()) {
        Ok(retained) => writeln!(out, "{} objects are reachable", retained?.totals.reachable_objects)?,
        Err(cancelled) => writeln!(out, "{cancelled}: it takes more than a minute")?,
    }
    Ok(())
}

#[allow(dead_code)] // The tests call `run`.
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    run(&args, &mut io::stdout().lock())
}
