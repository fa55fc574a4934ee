//! Prints all instances of a type, with the value of a field.
//!
//! ```sh
//! cargo run --release --example instances -- crash.dmp 'Lab.Order' _customer._name
//! ```
//! The field may be a path through structures and objects.

use std::error::Error;
use std::io::{self, Write};

use gcdump::Object;

/// Returns the value at the end of a field path, as text.
fn value(object: &Object, path: &str) -> Result<String, gcdump::Error> {
    let mut names = path.split('.');
    let mut value = object.field(names.next().unwrap_or_default())?;
    for name in names {
        value = value.field(name)?;
    }
    Ok(value.text())
}

/// Prints the instances. `args`: dump, type and field path.
pub fn run(args: &[String], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let arg = |i: usize, default: &'static str| args.get(i).map_or(default, String::as_str);
    let (path, type_name, field) = (arg(0, "dumps/net10-wks-basics-heap.dmp.zst"), arg(1, "Lab.Dog"), arg(2, "Friend._name"));
    let heap = gcdump::open(path)?.runtime()?.heap()?;
    for object in heap.objects_of(type_name)? {
        match value(&object, field) {
            Ok(text) => writeln!(out, "{} {text}", object.address())?,
            // Continue if a value on the path is null or not in the dump.
            Err(e) => writeln!(out, "{} <{e}>", object.address())?,
        }
    }
    Ok(())
}

#[allow(dead_code)] // The tests call `run`.
fn main() -> Result<(), Box<dyn Error>> {
    run(&std::env::args().skip(1).collect::<Vec<_>>(), &mut io::stdout().lock())
}
