//! Shows what keeps the instance with the largest retained size alive: the fields that refer to it, and the shortest path from a root.
//!
//! ```sh
//! cargo run --release --example who_holds -- crash.dmp 'Lab.Order'
//! ```

use std::error::Error;
use std::io::{self, Write};

/// Prints what holds the instance. `args`: dump and type.
pub fn run(args: &[String], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let arg = |i: usize, default: &'static str| args.get(i).map_or(default, String::as_str);
    let (path, type_name) = (arg(0, "dumps/net10-wks-basics-heap.dmp.zst"), arg(1, "Lab.Dog[]"));
    let heap = gcdump::open(path)?.runtime()?.heap()?;

    let mut largest = None;
    for object in heap.objects_of(type_name)? {
        let retained = object.retained_size()?;
        if largest.as_ref().is_none_or(|(most, _)| retained > *most) {
            largest = Some((retained, object));
        }
    }
    let Some((retained, object)) = largest else {
        writeln!(out, "no {type_name} on the heap")?;
        return Ok(());
    };
    writeln!(out, "{} {} retains {retained} bytes", object.address(), object.type_name())?;

    for holder in object.referrers() {
        for reference in holder.references().iter().filter(|r| r.address == object.address()) {
            let field = reference.field.as_deref().unwrap_or("?");
            writeln!(out, "referred to by {} {}, field {field}", holder.address(), holder.type_name())?;
        }
    }
    for path in object.paths()?.paths.iter().take(1) {
        for root in path.roots.iter().take(1) {
            writeln!(out, "held by {}", root.label)?;
        }
        for step in &path.steps {
            writeln!(out, "  {} {} {}", step.field.as_deref().unwrap_or("->"), step.address, step.type_name)?;
        }
    }
    Ok(())
}

#[allow(dead_code)] // The tests call `run`.
fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut io::stdout().lock())
}
