//! Answers from an index equal those without one; an index that does not fit is reported and not used.

use std::fs;
use std::path::{Path, PathBuf};

use gcdump::cli::Exit;
use serde_json::Value;

use crate::common::{self, Ran, commands, own_dump, run};
use crate::corpus;
use crate::mutation::allocations;
use crate::mutation::base::{MORE, Rng};

/// Further command lines that use the graph or the sums.
const ON_GRAPH: &[&[&str]] = &[
    &["retained", "--top", "0"],
    &["retained", "--stacks", "conservative"],
    &["unreachable", "--type", "System.*"],
    &["unreachable", "--stacks", "none"],
    &["objects", "--type", "System.String"],
    &["diff", "--holders", "DUMP", "DUMP"],
    &["heap", "--map", "--garbage"],
    &["stat", "--by", "generation"],
    &["segments", "--walk"],
];

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_string()
}

fn asked(line: &[&str], dump: &Path, more: &[&str]) -> Ran {
    run(&[line, &[text(dump).as_str()], more].concat())
}

/// Makes a copy of the dump in `folder`, with an index elsewhere.
fn indexed(dump: &Path, folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let name = dump.file_name().unwrap().to_str().unwrap();
    let copy = folder.join(name);
    fs::copy(dump, &copy).unwrap();
    let index = folder.join(format!("{name}.other"));
    let ran = run(&["index", &text(&copy), "-o", &text(&index), "--no-local-files"]);
    match ran.exit {
        Exit::Ok | Exit::Partial if index.is_file() => Some((copy, index)),
        // The dump has no heap.
        _ => None,
    }
}

/// The command lines that answer from objects, for a dump that has these.
fn lines(dump: &Path) -> Vec<Vec<String>> {
    let listed = run(&["objects", &text(dump), "--count", "40", "--json", "--no-local-files"]);
    let listed: Value = serde_json::from_str(&listed.out).unwrap_or_default();
    let objects: Vec<String> =
        listed["data"]["objects"].as_array().into_iter().flatten().filter_map(|o| o["address"].as_str().map(String::from)).collect();
    let mut rng = Rng::new(5);
    let more: Vec<&[&str]> = MORE.iter().chain(ON_GRAPH).copied().collect();
    let mut forms = commands::forms(&more);
    // Other tests check commands that write files or run all others.
    forms.retain(|f| !f.iter().any(|w| ["OUT", "HANDLE", "index", "trim", "verify", "report"].contains(&w.as_str())));
    let fill = |form: &Vec<String>| {
        let mut args = commands::filled(form, |word| match word {
            word if commands::is_dump(word) => Some(text(dump)),
            "ADDR" | "ANY" => rng.pick(&objects).cloned(),
            _ => None,
        });
        args.push("--no-local-files".into());
        if !args.iter().any(|a| a == "--dot" || a == "--format") {
            args.push("--json".into());
        }
        args
    };
    forms.iter().map(fill).filter(|args| !args.iter().any(|a| a == "ADDR" || a == "ANY")).collect()
}

#[test]
fn answers_are_the_same_with_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let some = if common::full() { corpus::dumps() } else { Vec::new() };
    let dumps: Vec<PathBuf> = some.into_iter().step_by(13).chain([own_dump()]).collect();
    let compared = common::each(&dumps, |dump| {
        let Some((dump, index)) = indexed(dump, folder.path()) else { return 0 };
        let lines = common::sample(lines(&dump), 10);
        for line in &lines {
            let with = |index: &str| run(&[&line[..], &["--index".into(), index.into()]].concat());
            let (plain, kept) = (with("none"), with(&text(&index)));
            assert!(
                plain.exit == kept.exit && plain.err == kept.err,
                "{line:?}: {:?} {} {:?} {}",
                plain.exit,
                plain.err,
                kept.exit,
                kept.err
            );
            assert!(plain.out == kept.out, "{line:?}: another answer with an index");
        }
        lines.len()
    });
    println!("{} answers of {} dumps are the same with an index", compared.iter().sum::<usize>(), dumps.len());
    assert!(compared.iter().filter(|n| **n > common::cases(6, 60)).count() >= common::cases(1, 2));
}

/// A dump with its index beside it.
fn beside(folder: &Path) -> (PathBuf, PathBuf) {
    let dump = folder.join("crash.dmp.zst");
    fs::copy(own_dump(), &dump).unwrap();
    let index = folder.join("crash.dmp.zst.gcindex");
    assert_eq!(run(&["index", &text(&dump)]).exit, Exit::Ok);
    assert!(index.is_file());
    (dump, index)
}

#[test]
fn the_index_beside_a_dump_is_found_checked_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, index) = beside(folder.path());
    let check = |dump: &Path| run(&["index", "--check", &text(dump), "--json"]);
    let read = check(&dump);
    let report: Value = serde_json::from_str(&read.out).unwrap();
    assert!(
        read.exit == Exit::Ok && report["data"]["problem"].is_null() && report["data"]["objects"].as_u64() > Some(1000),
        "{}",
        read.out
    );
    // The index is written once.
    let again = run(&["index", &text(&dump)]);
    assert!(again.exit == Exit::Usage && again.err.contains("--force"), "{}", again.err);
    assert_eq!(run(&["index", &text(&dump), "--force"]).exit, Exit::Ok);
    // The dump is replaced by another one with the same name.
    let other = corpus::dump("net8-wks-basics-heap");
    let plain = run(&["retained", &text(&dump)]);
    fs::copy(other, &dump).unwrap();
    let ran = run(&["retained", &text(&dump)]);
    assert!(ran.err.contains("is not used: it is of another dump"), "{}", ran.err);
    assert!(ran.out != plain.out && ran.out == run(&["retained", &text(&dump), "--index", "none"]).out);
    assert_eq!(check(&dump).exit, Exit::Negative);
    // A requested index must fit; one beside an untrusted dump is not read.
    let asked = run(&["retained", &text(&dump), "--index", &text(&index)]);
    assert!(asked.exit == Exit::Usage && asked.err.contains("is not used as an index"), "{}", asked.err);
    assert!(!run(&["retained", &text(&dump), "--no-local-files"]).err.contains("is not used"));
    assert_eq!(run(&["retained", &text(&dump), "--index", "/no/such/file"]).exit, Exit::Usage);
    fs::remove_file(&index).unwrap();
    assert_eq!(check(&dump).exit, Exit::Negative);
    assert!(run(&["retained", &text(&dump)]).err.is_empty());
}

#[test]
fn a_damaged_index_is_reported_and_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, index) = beside(folder.path());
    let whole = fs::read(&index).unwrap();
    let lines: [&[&str]; 8] = [
        &["stat"],
        &["segments", "--walk"],
        &["retained", "--tree"],
        &["retained", "--suspects"],
        &["path", "--type", "System.String"],
        &["unreachable"],
        &["objects", "--type", "System.*", "--count", "100"],
        &["bridge", "--bridged", "System.*"],
    ];
    let plain: Vec<String> = lines.iter().map(|line| asked(line, &dump, &["--index", "none"]).out).collect();
    let mut rng = Rng::new(11);
    for case in 0..common::cases(4, 60) {
        let mut harmed = whole.clone();
        let what = match case % 3 {
            0 => {
                harmed.truncate(rng.below(whole.len()));
                "cut off"
            }
            // In the description, every number matters.
            1 => {
                let at = whole.len() - 1 - rng.below(20_000.min(whole.len() - 1));
                harmed[at] ^= 1 << rng.below(8);
                "changed in its description"
            }
            _ => {
                (0..200).for_each(|_| harmed[40 + rng.below(whole.len() - 40)] = 0xff);
                "changed"
            }
        };
        fs::write(&index, harmed).unwrap();
        let check = run(&["index", "--check", &text(&dump)]);
        assert_eq!(check.exit, Exit::Negative, "case {case}, {what}: {}", check.out);
        for (line, plain) in lines.iter().zip(&plain).skip(case % 4).step_by(common::cases(4, 1)) {
            let ran = asked(line, &dump, &[]);
            // The file is so small that all of its checksums are verified.
            assert!(ran.err.contains("is not used") && ran.out == *plain, "case {case}, {what}, {line:?}: {}", ran.err);
        }
    }
}

/// Changes the description of the arrays in an index, and its checksum.
pub fn describe(index: &mut Vec<u8>, change: impl FnOnce(&mut Value)) {
    let number = |at: usize| u64::from_le_bytes(index[at..at + 8].try_into().unwrap()) as usize;
    let (end, len) = (number(16), number(24));
    let mut json: Value = serde_json::from_slice(&index[end..end + len]).unwrap();
    change(&mut json);
    json["checksums"] = index[40..end].chunks(1 << 20).map(gcdump::internals::heapgraph::index_checksum).collect();
    let text_of = serde_json::to_vec(&json).unwrap();
    index.truncate(end);
    index[24..32].copy_from_slice(&(text_of.len() as u64).to_le_bytes());
    index[32..40].copy_from_slice(&gcdump::internals::heapgraph::index_checksum(&text_of).to_le_bytes());
    index.extend(text_of);
}

/// Forged checksums do not help: numbers in the description that contradict each other are found.
#[test]
fn a_description_that_does_not_fit_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, index) = beside(folder.path());
    let whole = fs::read(&index).unwrap();
    let forged = |change: &dyn Fn(&mut Value)| {
        let mut forged = whole.clone();
        describe(&mut forged, |json| change(&mut json["kept"]));
        fs::write(&index, forged).unwrap();
        asked(&["stat"], &dump, &[]).err
    };
    assert_eq!(forged(&|_| ()), "");
    let first = |kept: &Value| kept["segments"].as_array().unwrap().iter().position(|s| s["count"].as_u64() > Some(0)).unwrap();
    type Change<'c> = &'c dyn Fn(&mut Vec<Value>);
    let types: [Change<'_>; 2] = [&|types| types.swap(0, 1), &|types| types.insert(1, types[0].clone())];
    for change in types {
        let err = forged(&|kept| change(kept["types"].as_array_mut().unwrap()));
        assert!(err.contains("is not used: it is damaged: its types are not in order"), "{err}");
    }
    let starts: [&dyn Fn(&mut Value); 3] = [
        &|kept| {
            let at = first(kept);
            kept["segments"][at]["first"] = 1.into();
        },
        &|kept| {
            let at = first(kept);
            kept["segments"][at]["count"] = u32::MAX.into();
        },
        // All but the last fit.
        &|kept| {
            let last = kept["segments"].as_array_mut().unwrap().last_mut().unwrap();
            last["count"] = (64 * last["words"].as_u64().unwrap_or(0) + 1).into();
        },
    ];
    for change in starts {
        let err = forged(change);
        assert!(err.contains("is not used: it is damaged: its object starts do not fit"), "{err}");
    }
}

/// The index does not contain what other commands have found.
#[test]
fn a_heap_has_one_index_whatever_was_asked_before() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["net10-wks-basics-heap", "net10-wks-dynamic-heap", "net10-wks-inspect-heap", "net8-wks-basics-heap"];
    let names = common::sample(names, 4);
    let dumps = corpus::dumps().into_iter().filter(|d| names.iter().any(|name| d.to_str().unwrap().contains(name)));
    let lines: [&[&str]; 7] =
        [&["statics"], &["type", "System.*"], &["roots"], &["threads"], &["stacks"], &["object", "ADDR"], &["near", "ADDR"]];
    for dump in dumps {
        let listed = asked(&["objects", "--count", "400"], &dump, &["--json", "--no-local-files"]).json();
        let objects: Vec<&str> = listed["data"]["objects"].as_array().unwrap().iter().map(|o| o["address"].as_str().unwrap()).collect();
        let plain = gcdump::open(&dump).unwrap();
        let used = gcdump::open(&dump).unwrap();
        for line in lines {
            for object in objects.iter().step_by(common::cases(100, 40)) {
                let line: Vec<&str> = line.iter().map(|word| if *word == "ADDR" { *object } else { word }).collect();
                common::captured(|streams| {
                    common::parsed(&[&line[..], &[text(&dump).as_str()]].concat()).run_on(std::slice::from_ref(&used), streams)
                });
            }
        }
        let index = |of: &gcdump::Dump, name: &str| {
            let path = folder.path().join(name);
            of.runtime().unwrap().heap().unwrap().write_index(&fs::File::create(&path).unwrap()).unwrap().unwrap();
            fs::read(path).unwrap()
        };
        assert!(index(&plain, "plain") == index(&used, "used"), "{dump:?}: another index after other commands");
    }
}

/// Forged checksums do not help: arrays with any numbers are read without harm.
#[test]
fn a_forged_index_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, index) = beside(folder.path());
    let whole = fs::read(&index).unwrap();
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    let (end, len) = (number(16), number(24));
    let description: Value = serde_json::from_slice(&whole[end..end + len]).unwrap();
    let mut rng = Rng::new(3);
    let mut answered = 0;
    for case in 0..common::cases(4, 40) {
        let mut forged = whole[..end].to_vec();
        let mut json = description.clone();
        let sections = description["sections"].as_array().unwrap();
        let section = &sections[case % sections.len()];
        let (offset, bytes) = (section["offset"].as_u64().unwrap() as usize, section["bytes"].as_u64().unwrap() as usize);
        (0..bytes.min(1 + rng.below(4000))).for_each(|_| forged[offset + rng.below(bytes)] = rng.below(256) as u8);
        json["checksums"] = forged[40..].chunks(1 << 20).map(gcdump::internals::heapgraph::index_checksum).collect();
        let text_of = serde_json::to_vec(&json).unwrap();
        forged[16..24].copy_from_slice(&(end as u64).to_le_bytes());
        forged[24..32].copy_from_slice(&(text_of.len() as u64).to_le_bytes());
        forged[32..40].copy_from_slice(&gcdump::internals::heapgraph::index_checksum(&text_of).to_le_bytes());
        forged.extend(text_of);
        fs::write(&index, forged).unwrap();
        for line in [
            &["retained", "--tree"][..],
            &["path", "--type", "System.String"],
            &["unreachable", "--objects"],
            &["stat"],
            &["bridge", "--bridged", "*"],
        ] {
            let ran = asked(line, &dump, &["--timeout", "1m"]);
            answered += usize::from(!ran.err.contains("is not used"));
        }
    }
    assert!(answered > common::cases(2, 20), "{answered}");
}

/// Replacements of an array, or of a number: zero, one, all ones, another array, a longer or shorter one.
#[derive(Clone, Copy, Debug)]
enum Forgery {
    /// Each byte of the array has this value.
    Filled(u8),
    /// Each 32-bit word has this value.
    Words(u32),
    /// The array ends after this number of bytes.
    Cut(u64),
    /// The array extends to the end of all arrays.
    Longer,
    /// The array is replaced by that of another section.
    Of(usize),
    /// The first number has this value.
    First(u32),
}

/// Returns `whole` with a forged array, and matching checksums.
fn with_forged_array(whole: &[u8], at: usize, forgery: Forgery) -> Vec<u8> {
    let mut forged = whole.to_vec();
    let mut section = Value::Null;
    describe(&mut forged, |json| section = json["sections"][at].clone());
    let (offset, bytes) = (section["offset"].as_u64().unwrap(), section["bytes"].as_u64().unwrap());
    let place = offset as usize..(offset + bytes) as usize;
    match forgery {
        Forgery::Filled(byte) => forged[place].fill(byte),
        Forgery::Words(word) => forged[place].chunks_exact_mut(4).for_each(|to| to.copy_from_slice(&word.to_le_bytes())),
        Forgery::First(word) if bytes >= 4 => forged[offset as usize..offset as usize + 4].copy_from_slice(&word.to_le_bytes()),
        _ => {}
    }
    let end = u64::from_le_bytes(whole[16..24].try_into().unwrap());
    describe(&mut forged, |json| {
        let other = |n: usize| json["sections"].as_array().unwrap()[n].clone();
        match forgery {
            Forgery::Cut(to) => json["sections"][at]["bytes"] = to.min(bytes).into(),
            Forgery::Longer => json["sections"][at]["bytes"] = (end - offset).next_multiple_of(12).saturating_sub(12).into(),
            Forgery::Of(n) => {
                let other = other(n);
                json["sections"][at]["offset"] = other["offset"].clone();
                json["sections"][at]["bytes"] = other["bytes"].clone();
            }
            _ => {}
        }
    });
    forged
}

/// Lists the paths of all numbers in a description; of long lists, only the first ones.
fn numbers(value: &Value, at: &str, out: &mut Vec<String>) {
    match value {
        Value::Number(_) => out.push(at.into()),
        Value::Array(items) => items.iter().take(2).enumerate().for_each(|(n, item)| numbers(item, &format!("{at}/{n}"), out)),
        Value::Object(fields) => fields.iter().for_each(|(key, field)| numbers(field, &format!("{at}/{key}"), out)),
        _ => {}
    }
}

/// Numbers of objects that are too large, and a graph that does not fit: the walk that replaces them has only objects that exist.
#[test]
fn forged_numbers_of_objects_name_none_that_does_not_exist() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, index) = beside(folder.path());
    let whole = fs::read(&index).unwrap();
    let mut place = 0..0;
    describe(&mut whole.clone(), |json| {
        let counted = json["sections"].as_array().unwrap().iter().find(|section| section["name"] == "counted").unwrap();
        let number = |key: &str| counted[key].as_u64().unwrap() as usize;
        place = number("offset")..number("offset") + number("bytes");
    });
    let mut used = 0;
    for at in place.step_by(4).take(common::cases(24, 240)) {
        let mut forged = whole.clone();
        forged[at..at + 4].copy_from_slice(&0xffff_ff00u32.to_le_bytes());
        describe(&mut forged, |json| json["kept"]["links"] = (!json["kept"]["links"].as_u64().unwrap()).into());
        fs::write(&index, forged).unwrap();
        let ran = asked(&["path", "--type", "*"], &dump, &[]);
        assert!(matches!(ran.exit, Exit::Ok | Exit::Partial | Exit::Negative), "{at}: {:?} {}", ran.exit, ran.err);
        used += usize::from(!ran.err.contains("is not used"));
    }
    assert!(used > 2, "{used}");
}

/// Forged checksums do not help: with any array replaced by another, and any count by another number, answers come in time and in little
/// memory, from the index or without it.
#[test]
fn a_forged_count_takes_no_time_and_no_memory() {
    let folder = tempfile::tempdir().unwrap();
    let (dump, index) = beside(folder.path());
    let whole = fs::read(&index).unwrap();
    let mut description = Value::Null;
    describe(&mut whole.clone(), |json| description = json.clone());
    let arrays = description["sections"].as_array().unwrap().len();
    let mut places = Vec::new();
    numbers(&description["kept"], "/kept", &mut places);
    let object = asked(&["objects", "--type", "System.String", "--count", "1", "--index", "none"], &dump, &["--json"]).json();
    let address = object["data"]["objects"][0]["address"].as_str().unwrap().to_string();
    let forgeries = |at: usize| {
        use Forgery::{Cut, Filled, First, Longer, Of, Words};
        let fixed = [Filled(0), Filled(0xff), Words(1), Words(0xffff), Words(u32::MAX - 1), Cut(0), Cut(4), Cut(12), Longer];
        let firsts = [0, 1, 7, 1 << 20, u32::MAX >> 1, u32::MAX - 4, u32::MAX].map(First);
        fixed.into_iter().chain(firsts).chain([1, 2, 5, 11].map(|n| Of((at + n) % arrays)))
    };
    let of_arrays = (0..arrays).flat_map(|at| forgeries(at).map(move |forgery| (at, forgery)));
    let of_numbers = places.iter().flat_map(|place| [0, 1, u64::from(u32::MAX), u64::MAX].map(|number| (place, number)));
    let mut cases: Vec<(String, Vec<u8>)> = common::sample(of_arrays.collect::<Vec<_>>(), 16)
        .into_iter()
        .map(|(at, forgery)| (format!("{}: {forgery:?}", description["sections"][at]["name"]), with_forged_array(&whole, at, forgery)))
        .collect();
    cases.extend(common::sample(of_numbers.collect::<Vec<_>>(), 12).into_iter().map(|(place, number)| {
        let mut forged = whole.clone();
        describe(&mut forged, |json| *json.pointer_mut(place).unwrap() = number.into());
        (format!("{place}: {number}"), forged)
    }));
    let lines: [&[&str]; 7] = [
        &["stat"],
        &["path", &address],
        &["path", "--type", "System.String"],
        &["unreachable", "--objects"],
        &["retained", "--tree"],
        &["objects", "--type", "System.*", "--count", "20"],
        &["index", "--check"],
    ];
    let plain: Vec<Ran> = lines.iter().map(|line| asked(line, &dump, &["--index", "none"])).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (mut used, mut same) = (0, 0);
    for (case, (what, forged)) in cases.into_iter().enumerate() {
        fs::write(&index, forged).unwrap();
        for (line, plain) in lines.iter().zip(&plain).skip(case % 3).step_by(3) {
            let started = common::Stopwatch::start();
            // Everything runs on one thread, whose allocations are counted.
            let (ran, most) = pool.install(|| {
                allocations::start();
                (asked(line, &dump, &[]), allocations::peak())
            });
            assert!(started.elapsed().as_secs() < 5, "{what}: {line:?} took {:?}", started.elapsed());
            assert!(most < 96 << 20, "{what}: {line:?} took {most} bytes");
            let is_used = !ran.err.contains("is not used");
            used += usize::from(is_used);
            // Without the index, the answer is that of the dump.
            assert!(is_used || line[0] == "index" || ran.out == plain.out, "{what}: {line:?}: {}", ran.err);
            same += usize::from(ran.out == plain.out);
        }
    }
    println!("{used} answers from forged indices, {same} as of the dump");
}
