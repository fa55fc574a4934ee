//! Native stacks of real dumps: those of the repository, and those of `GCDUMP_TEST_DUMPS` or `~/.cache/gcdump-dumps`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::step;
use crate::base::{Addr, Arch, Os, Shape};
use crate::dump::{DumpFile, OpenOptions, OsThread, open, real_tests};
use crate::memory::{Image, Memory};
use crate::stack::{CodeBytes, RegisterNames, Registers, Saved, UnwindError};

fn dumps(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|e| e.unwrap().path());
    let mut found: Vec<PathBuf> = entries.filter(|p| p.to_str().is_some_and(|p| p.ends_with(ending))).collect();
    found.sort();
    found
}

fn registers(thread: &OsThread, os: Os) -> Option<Registers> {
    let mut registers = Registers::new(Arch::X64)?.on(os);
    for register in &thread.registers {
        let number = (0u8..).zip(RegisterNames::of(Arch::X64)).find(|(_, name)| **name == register.name).map(|(number, _)| number);
        registers.set(number?, Saved { value: Some(register.value), place: None });
    }
    registers.ip = thread.instruction_pointer?;
    Some(registers)
}

#[test]
fn explore() {
    let mut paths = dumps(Path::new("dumps/corpus"), ".dmp.zst");
    if std::env::var("FULL").is_ok() {
        paths.extend(dumps(&real_tests::folder(), ".dmp"));
    }
    for path in paths {
        let Ok(dump) = open(&path, &OpenOptions::default()) else { continue };
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let memory = Arc::new(Memory::new(&dump, Shape::LE64));
        let bytes = CodeBytes::new(&memory);
        let mut ends = std::collections::BTreeMap::<String, usize>::new();
        let mut steps = 0;
        let mut clr = 0;
        for thread in &dump.threads {
            let Some(mut regs) = registers(thread, dump.facts.os) else { continue };
            let mut leaf = true;
            let end = loop {
                let Some(module) = dump.modules.iter().find(|m| m.base <= regs.ip && regs.ip < m.base.plus(m.size)) else {
                    break "outside".to_owned();
                };
                let Some(image) = Image::at(&memory, module.base) else { break format!("no image {}", module.file_name()) };
                match step(&bytes, &image, &regs, leaf) {
                    Ok(caller) => {
                        steps += 1;
                        if module.file_name().contains("coreclr.") {
                            clr += 1;
                        }
                        regs = caller;
                    }
                    Err(UnwindError::Invalid { what, .. }) => {
                        if what.contains("grow") || what.contains("computed") {
                            println!(
                                "{name} {what} ip {} (+{:x}) sp {:?} leaf {leaf} {:?}",
                                regs.ip,
                                regs.ip.0 - module.base.0,
                                regs.sp(),
                                regs
                            );
                        }
                        break format!("{what} {}", module.file_name());
                    }
                    Err(UnwindError::Read(e)) => {
                        let wh = dump.modules.iter().find(|m| m.base <= e.address && e.address < m.base.plus(m.size));
                        break format!("read {} in {}", wh.map_or("?", |m| m.file_name()), module.file_name());
                    }
                }
                leaf = false;
            };
            *ends.entry(end).or_default() += 1;
        }
        println!("{name}: {} threads {steps} steps {clr} clr {ends:?}", dump.threads.len());
    }
}
