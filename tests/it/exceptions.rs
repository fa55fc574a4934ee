//! Exceptions, stack traces and method names, compared with ClrMD for every available dump.
//!
//! `GCDUMP_TEST_EXTRA` may name a folder with additional dumps: `NAME.dmp`, `NAME.clrmd.json`, `NAME.truth.json`.

use crate::common;
use crate::harness::Tested;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::common::{Answered, answered, ask};
use gcdump::Dump;
use gcdump::analysis::{ThreadsQuery, threads};
use gcdump::internals::base::{Addr, AddrRange, Os, Shape};
use gcdump::internals::clr::exceptions::Exceptions;
use gcdump::internals::clr::fields::Fields;
use gcdump::internals::clr::methods::Methods;
use gcdump::internals::clr::type_names::{NameQuality, TypeNames};
use gcdump::internals::dump::{Bytes, OpenOptions, open, open_bytes};
use gcdump::internals::memory::Memory;
use serde_json::{Value, json};

fn file_name(v: &Value) -> Value {
    v.as_str().map_or(Value::Null, |p| p.rsplit(['/', '\\']).next().unwrap().into())
}

fn address(v: &Value) -> Addr {
    Addr(u64::from_str_radix(v.as_str().unwrap().trim_start_matches("0x"), 16).unwrap())
}

/// ClrMD uses the runtime's form of generic types, `` List`1[[System.Int32, System.Private.CoreLib]] `` for types and
/// `` List`1<Int32> `` for parameters; gcdump prints `List<System.Int32>` and `List<Int32>`.
fn in_our_form(text: &str) -> String {
    let mut out = String::new();
    let mut depth = 0;
    let mut skip = false;
    let bytes = text.as_bytes();
    let mut i = 0;
    while i < bytes.len() {
        let rest = text.get(i..).unwrap();
        if skip && !rest.starts_with(']') {
            i += 1;
        } else if rest.starts_with("[[") {
            let digits = out.rsplit_once('`').filter(|(_, d)| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit())).map(|(h, _)| h.len());
            out.truncate(digits.unwrap_or(out.len()));
            out.push('<');
            depth += 1;
            i += 2;
        } else if depth > 0 && rest.starts_with("],[") {
            out.push_str(", ");
            (skip, i) = (false, i + 3);
        } else if depth > 0 && rest.starts_with("]]") && (skip || !rest.starts_with("]],")) {
            out.push('>');
            depth -= 1;
            (skip, i) = (false, i + 2);
        } else if depth > 0 && rest.starts_with(", ") {
            skip = true;
        } else if rest.starts_with('<') && out.rsplit_once('`').is_some_and(|(_, d)| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
        {
            out.truncate(out.rfind('`').unwrap());
            out.push('<');
            i += 1;
        } else {
            let c = rest.chars().next().unwrap();
            out.push(c);
            i += c.len_utf8();
        }
    }
    out
}

/// For types nested in generic ones, ClrMD prints all arguments after the inner name: ``A`1+B<X, Y>``. gcdump prints them
/// with the type that declares them: `A<X>+B<Y>`.
fn distributed(text: &str) -> String {
    let Some((outer, rest)) = text.split_once('`') else { return text.into() };
    let Some((arity, inner)) = rest.split_once('+') else { return text.into() };
    let (Ok(arity), Some((inner, rest))) = (arity.parse::<usize>(), inner.split_once('<')) else { return text.into() };
    let (mut depth, mut commas) = (0, 0);
    let cut = rest.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '<') - i32::from(*c == '>');
        commas += usize::from(*c == ',' && depth == 0);
        commas == arity
    });
    let Some((at, _)) = cut else { return text.into() };
    format!("{outer}<{}>+{inner}<{}", &rest[..at], rest[at + 1..].trim_start())
}

/// ClrMD names the parameters of a stub without namespaces and enclosing types, and the module it was made for.
fn is_stub(name: &str) -> Option<&str> {
    name.starts_with("ILStubClass.").then(|| name.split('(').next().unwrap())
}

#[test]
fn runtime_names_are_converted() {
    assert_eq!(distributed("A`1+B<C<D, E>, F>.M(G<H>)"), "A<C<D, E>>+B<F>.M(G<H>)");
    assert_eq!(distributed("A<B>.M()"), "A<B>.M()");
    assert_eq!(in_our_form("A.B(System.Span`1<Byte>, Int32)"), "A.B(System.Span<Byte>, Int32)");
    assert_eq!(in_our_form("A.C[[System.__Canon, System.Private.CoreLib]]()"), "A.C<System.__Canon>()");
    assert_eq!(in_our_form("D`2[[A.B, x],[C+E, y]]..ctor()"), "D<A.B, C+E>..ctor()");
    assert_eq!(in_our_form("P+<>c.<Main>b__1()"), "P+<>c.<Main>b__1()");
}

/// A name without spaces: ClrMD has none after the commas of generic arguments among parameters.
fn spaceless(name: &str) -> String {
    name.replace(' ', "")
}

/// Returns the properties of an exception that both tools report.
fn theirs(e: &Value) -> Value {
    if e.is_null() {
        return Value::Null;
    }
    let stack = e["stack"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|f| json!([f["ip"], f["sp"], f["md"], in_our_form(f["method"].as_str().unwrap()), file_name(&f["module"])]));
    json!([e["address"], e["type"], e["message"], e["hresult"], stack.collect::<Vec<_>>(), theirs(&e["inner"])])
}

fn ours(e: &Value) -> Value {
    if e.is_null() {
        return Value::Null;
    }
    let stack = e["stack"].as_array().unwrap().iter().map(|f| json!([f["ip"], f["sp"], f["method_desc"], f["method"], f["module"]]));
    json!([e["address"], e["type"], e["message"], e["hresult"], stack.collect::<Vec<_>>(), ours(&e["inner"])])
}

/// Without metadata, ClrMD has no name for the exception's type, and reads its HResult at a wrong offset.
fn as_far_as(mut own: Value, theirs: &Value) -> Value {
    if theirs[1].is_null() && own[1].as_str().is_some_and(|name| name.contains("!0x")) {
        (own[1], own[3]) = (Value::Null, theirs[3].clone());
    }
    // .NET 11 does not publish the stack pointer of a frame.
    let frames = own[4].as_array_mut().into_iter().flatten().zip(theirs[4].as_array().into_iter().flatten());
    frames.filter(|(frame, _)| frame[1].is_null()).for_each(|(frame, same)| frame[1] = same[1].clone());
    if own[5].is_array() {
        own[5] = as_far_as(own[5].take(), &theirs[5]);
    }
    own
}

#[test]
fn exceptions_of_threads_are_those_of_clrmd() -> Tested {
    let (mut exceptions, mut frames) = (0, 0);
    for Answered { name, path, clrmd, .. } in answered()? {
        let list = clrmd["threads"]["threads"].as_array().into_iter().flatten();
        let wanted: Vec<Value> = list.map(|t| theirs(&t["exception"])).filter(|e| !e.is_null()).collect();
        if wanted.is_empty() {
            continue;
        }
        let (_, answer) = ask(&path, &["threads"]);
        let rows = answer["data"]["threads"].as_array().unwrap();
        let own: Vec<Value> = rows.iter().filter(|t| t["exception"]["current"] == true).map(|t| ours(&t["exception"])).collect();
        assert_eq!(own.len(), wanted.len(), "{name}");
        let own: Vec<Value> = own.into_iter().zip(&wanted).map(|(own, theirs)| as_far_as(own, theirs)).collect();
        assert_eq!(own, wanted, "{name}");
        exceptions += own.len();
        frames += own.iter().map(|e| e[4].as_array().unwrap().len()).sum::<usize>();
        println!("{name}: {} exceptions", own.len());
        if name.contains("crash") {
            let page = common::run(&["threads", "--no-local-files", path.to_str().unwrap()]).out;
            // The lines without the offset of each frame.
            let page: Vec<&str> = page.lines().map(|line| line.split(" +0x").next().unwrap_or(line)).collect();
            let page = page.join("\n");
            for line in [
                "System.ApplicationException: the lab crashes on purpose (0x",
                "HResult 0x80131600)\n   at Lab.Program.Crash()\n   at Lab.Program.Main(System.String[])\n---> System.InvalidOperationException: inner trouble of the lab",
            ] {
                assert!(page.contains(line), "{name}: {page}");
            }
        }
    }
    println!("{exceptions} exceptions, {frames} frames equal");
    Ok(())
}

/// The code offset of a frame equals that of the same address on a stack, and in `where`.
#[test]
fn frames_have_their_offset_in_the_code() -> Tested {
    let (dumps, _) = common::known_dumps(|row| row["scenario"].as_str().is_some_and(|s| ["crash", "stacks", "probe"].contains(&s)))?;
    let (mut frames, mut placed) = (0, 0);
    for dump in &dumps {
        let (exit, answer) = ask(&dump.path, &["exceptions"]);
        let stacks = answer["data"]["exceptions"].as_array().unwrap().iter().flat_map(|e| e["stack"].as_array().unwrap());
        let list: BTreeMap<&str, &Value> = stacks.map(|f| (f["ip"].as_str().unwrap(), f)).collect();
        for (ip, frame) in list {
            frames += 1;
            let Some(offset) = frame["offset"].as_u64() else {
                assert!(exit.code() != 0 || frame["method"].is_null(), "{}: {frame}", dump.name);
                continue;
            };
            placed += 1;
            let (_, at) = ask(&dump.path, &["where", ip]);
            assert_eq!(at["data"]["offset"].as_u64(), Some(offset), "{}: {ip} {}", dump.name, at["data"]);
        }
    }
    println!("{placed} of {frames} frames have a place");
    assert!(dumps.is_empty() || placed > 0);
    Ok(())
}

/// Every method named by ClrMD on any stack.
#[test]
fn names_of_methods_are_those_of_clrmd() -> Tested {
    let mut distinct = BTreeSet::new();
    let (mut equal, mut bad) = (0, Vec::new());
    for Answered { name, path, clrmd, .. } in answered()?.into_iter().filter(|a| !a.name.ends_with("kernel") && !a.name.ends_with("gcore"))
    {
        let mut wanted = BTreeMap::new();
        for t in clrmd["threads"]["threads"].as_array().into_iter().flatten() {
            for f in t["frames"].as_array().into_iter().flatten().chain(t["exception"]["stack"].as_array().into_iter().flatten()) {
                if let Some(method) = f["method"].as_str().filter(|m| !m.ends_with("!Unknown")) {
                    wanted.insert(address(&f["md"]), (distributed(&in_our_form(method)), file_name(&f["module"])));
                }
            }
        }
        if wanted.is_empty() {
            continue;
        }
        let process = Dump::open(&path, &gcdump::OpenOptions::default()).unwrap();
        let runtime = process.runtime().unwrap();
        let names = TypeNames::new(process.memory(), runtime.descriptor(), None, process.file().facts.os, None, process.limits()).unwrap();
        let methods = Methods::bind(process.memory(), runtime.descriptor(), process.limits()).unwrap();
        for (md, wanted) in wanted {
            let own = methods.name(&names, md).map(|m| (m.name, m.module.map_or(Value::Null, Value::from), m.quality));
            let same = own.as_ref().is_some_and(|(name, module, quality)| {
                let stub = is_stub(name).is_some_and(|own| is_stub(&wanted.0) == Some(own));
                // An emitted module has no file, so ClrMD has no name for it.
                let module = *module == wanted.1 || wanted.1.is_null();
                stub || (*quality == NameQuality::Exact && spaceless(name) == spaceless(&wanted.0) && module)
            });
            if same {
                equal += 1;
                distinct.insert(wanted.0);
            } else {
                bad.push(format!("{name} {md}: ours {own:?}, theirs {wanted:?}"));
            }
        }
    }
    println!("{equal} methods equal, {} distinct names; {} different", distinct.len(), bad.len());
    bad.iter().for_each(|b| println!("    {b}"));
    assert!(bad.is_empty());
    Ok(())
}

/// A dump with methods on its stacks.
struct WithMethods<'d> {
    name: &'d str,
    memory: &'d Arc<Memory>,
    names: &'d TypeNames,
    methods: &'d Methods,
    /// Size of the header of a MethodDescChunk.
    header: u64,
    /// MethodDescs of the frames.
    known: Vec<Addr>,
}

/// Calls `check` for every dump in which ClrMD finds methods on stacks.
fn for_each_with_methods(mut check: impl FnMut(WithMethods<'_>)) -> Tested {
    for Answered { name, path, clrmd, .. } in answered()?.into_iter().filter(|a| a.name.ends_with("heap") || a.name.starts_with("win")) {
        let frames =
            clrmd["threads"]["threads"].as_array().into_iter().flatten().flat_map(|t| t["frames"].as_array().into_iter().flatten());
        let known: Vec<Addr> = frames.filter(|f| f["method"].is_string()).map(|f| address(&f["md"])).filter(|a| !a.is_null()).collect();
        if known.is_empty() {
            continue;
        }
        let process = Dump::open(&path, &gcdump::OpenOptions::default()).unwrap();
        let (memory, runtime) = (process.memory(), process.runtime().unwrap());
        let d = runtime.descriptor();
        let names = TypeNames::new(memory, d, None, process.file().facts.os, None, process.limits()).unwrap();
        let methods = Methods::bind(memory, d, process.limits()).unwrap();
        let header = d.size_of("MethodDescChunk").unwrap();
        check(WithMethods { name: &name, memory, names: &names, methods: &methods, header, known });
    }
    Ok(())
}

/// Each instance of a generic method has a separate chunk; dynamic methods share chunks.
#[test]
fn generic_and_dynamic_methods_have_names() -> Tested {
    let mut samples: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for_each_with_methods(|WithMethods { name, memory, names, methods, header, known }| {
        let (mut generic, mut weak, mut dynamic) = (0, Vec::new(), 0);
        // Dynamic methods can be anywhere.
        let around = if name.contains("dynamic") { u64::MAX } else { 0x20000 };
        let near = known.iter().map(|at| AddrRange::new(Addr(at.0.saturating_sub(around)), at.plus(around)));
        for range in crate::common::joined(near.collect()) {
            for (start, bytes) in memory.stretches(range) {
                for chunk in (0..bytes.len() as u64 / 8).map(|i| start.align_down(8).element(i, 8)) {
                    let Ok(mt) = memory.ptr(chunk) else { continue };
                    if !mt.is_aligned(8) || names.method_tables().is_valid(mt) != Ok(true) {
                        continue;
                    }
                    let md = chunk.plus(header);
                    let kind = memory.u16(md.plus(6)).unwrap_or(0) & 7;
                    let (Ok(next), Ok(size), Ok(count), Ok(0)) =
                        (memory.ptr(chunk.plus(8)), memory.u8(chunk.plus(16)), memory.u8(chunk.plus(17)), memory.u8(md.plus(2)))
                    else {
                        continue;
                    };
                    let next_fits = next.is_null() || memory.ptr(next) == Ok(mt);
                    if !next_fits || !(3..=6).contains(&size) && kind == 5 || size < count {
                        continue;
                    }
                    match (kind, methods.name(names, md)) {
                        (5, Some(m)) if count == 0 => {
                            if m.quality == NameQuality::Exact && m.token.is_some() {
                                generic += usize::from(m.name.contains(">("));
                                samples.entry(name.split('-').next().unwrap().into()).or_default().insert(m.name);
                            } else {
                                weak.push(m.name);
                            }
                        }
                        (7, Some(m)) if m.quality == NameQuality::Exact => {
                            dynamic += 1;
                            assert!(m.name.starts_with("DynamicClass.") || m.name.starts_with("ILStubClass."), "{}", m.name);
                            samples.entry(name.split('-').next().unwrap().into()).or_default().insert(m.name);
                        }
                        _ => {}
                    }
                }
            }
        }
        assert!(weak.is_empty() && (generic > 0 || name.contains("crash")), "{name}: {weak:?}");
        // `new DynamicMethod("dyn", typeof(int), new[] { typeof(int) })`
        assert!(!name.contains("dynamic") || samples.values().flatten().any(|n| n == "DynamicClass.dyn(Int32)"), "{name}");
        println!("{name}: {generic} generic, {} weak {:?}, {dynamic} dynamic", weak.len(), weak.first());
    })?;
    let all: BTreeSet<&String> = samples.values().flatten().collect();
    println!("{} names", all.len());
    if !samples.is_empty() {
        for wanted in [
            "System.ArgumentOutOfRangeException.ThrowIfNegative<System.Int32>(Int32, System.String)",
            "System.Runtime.CompilerServices.Unsafe.As<System.Char, System.Byte>(Char ByRef)",
        ] {
            assert!(all.iter().any(|n| *n == wanted), "{wanted}");
        }
    }
    Ok(())
}

/// The token of every MethodDesc in the chunks near those of stacks must belong to its type.
#[test]
fn every_method_belongs_to_its_type() -> Tested {
    for_each_with_methods(|WithMethods { name, memory, names, methods, header, known }| {
        let (mut chunks, mut right, mut wrong, mut seen) = (0, 0, Vec::new(), BTreeSet::new());
        for near in known {
            let range = AddrRange::new(Addr(near.0.saturating_sub(0x10000)), near.plus(0x10000));
            let words: Vec<Addr> =
                memory.stretches(range).flat_map(|(s, b)| (0..b.len() as u64 / 8).map(move |i| s.align_down(8).element(i, 8))).collect();
            for chunk in words.into_iter().filter(|a| seen.insert(*a)) {
                let Ok(mt) = memory.ptr(chunk) else { continue };
                if names.method_tables().is_valid(mt) != Ok(true) {
                    continue;
                }
                let (Ok(size), Ok(count)) = (memory.u8(chunk.plus(16)), memory.u8(chunk.plus(17))) else { continue };
                // In a chunk, as many methods as its count have their own index in the chunk index byte; the first is 0.
                let places = (0..=u64::from(size)).filter(|i| memory.u8(chunk.plus(header + i * 8 + 2)) == Ok(*i as u8) && *i > 0);
                let next = memory.ptr(chunk.plus(8)).unwrap_or_default();
                let next_fits = next.is_null() || memory.ptr(next) == Ok(mt);
                let mut places: Vec<u64> = places.collect();
                places.insert(0, 0);
                if size < count
                    || size > 254
                    || !next_fits
                    || memory.u8(chunk.plus(header + 2)) != Ok(0)
                    || places.len() != usize::from(count) + 1
                    || count < 3
                {
                    continue;
                }
                chunks += 1;
                let info = names.method_tables().read(mt).unwrap();
                let module = names.module(names.method_tables().module(&info).unwrap());
                let Some(metadata) = module.metadata.as_ref() else { continue };
                let own: BTreeSet<u32> = metadata.methods_of(names.method_tables().rid(&info).unwrap()).into_iter().collect();
                for place in places {
                    let md = chunk.plus(header + place * 8);
                    match methods.name(names, md) {
                        Some(m) if m.token.is_none() => {}
                        Some(m) if m.declaring_type == mt && own.contains(&m.token.unwrap().rid()) => right += 1,
                        other => wrong.push(format!("{md}: {other:?}")),
                    }
                }
            }
        }
        println!("{name}: {chunks} chunks, {right} methods belong to their type, {} do not", wrong.len());
        wrong.iter().take(3).for_each(|w| println!("    {w}"));
        // Some apparent chunks are not.
        assert!(right > 20 && wrong.len() * 100 <= right, "{name}");
    })?;
    Ok(())
}

#[test]
fn the_exceptions_of_the_heap_are_those_of_clrmd() -> Tested {
    let mut total = 0;
    for Answered { name, path, clrmd, .. } in answered()? {
        let heap = ["heap", "full", "after", "before"].iter().any(|k| name.ends_with(k));
        let types = clrmd["stat"]["types_table"].as_array().into_iter().flatten();
        let wanted: BTreeMap<String, u64> = types
            .filter(|t| t["name"].as_str().is_some_and(|n| n.ends_with("Exception")))
            .map(|t| (t["name"].as_str().unwrap().to_string(), t["count"].as_u64().unwrap()))
            .collect();
        if !heap || wanted.is_empty() {
            continue;
        }
        let (_, answer) = ask(&path, &["exceptions"]);
        let mut own: BTreeMap<String, u64> = BTreeMap::new();
        let list = answer["data"]["exceptions"].as_array().unwrap();
        for e in list {
            *own.entry(e["type"].as_str().unwrap().into()).or_default() += 1;
        }
        assert_eq!(own, wanted, "{name}");
        let groups = answer["data"]["groups"].as_array().unwrap();
        assert_eq!(groups.iter().map(|g| g["count"].as_u64().unwrap()).sum::<u64>(), list.len() as u64, "{name}");
        // The exception of each thread is listed with its thread.
        for t in clrmd["threads"]["threads"].as_array().into_iter().flatten().filter(|t| !t["exception"].is_null()) {
            let found = list.iter().find(|e| e["address"] == t["exception"]["address"]).unwrap();
            assert_eq!((&found["thread"], &found["thread_role"]), (&t["managed_id"], &"in-flight".into()), "{name}");
            assert_eq!(found["inner"], t["exception"]["inner"]["address"], "{name}");
        }
        total += list.len();
    }
    println!("{total} exception objects");
    Ok(())
}

#[test]
fn damaged_exceptions_never_panic_or_hang() -> Tested {
    for name in ["net8-wks-crash-mini", "net9-wks-crash-mini"] {
        let Some(Answered { path, clrmd, .. }) = answered()?.into_iter().find(|c| c.name == name) else { continue };
        damage(&path, &clrmd);
    }
    Ok(())
}

fn damage(path: &Path, clrmd: &Value) {
    let plain = std::fs::read(path).unwrap();
    let dump = open(path, &OpenOptions::default()).unwrap();
    // The descriptor of the intact dump: self-checks would reject the overlay in a corrupt one.
    let sound = Dump::of(dump.clone(), &gcdump::OpenOptions::default());
    let (memory, runtime) = (sound.memory(), sound.runtime().unwrap());
    let descriptor = runtime.descriptor();
    let thrown = clrmd["threads"]["threads"].as_array().unwrap().iter().find(|t| !t["exception"].is_null()).unwrap()["exception"].clone();
    let exception = address(&thrown["address"]);
    let mut hot = vec![exception, address(&thrown["inner"]["address"])];
    for i in 0..16 {
        hot.extend(memory.ptr(exception.element(i, 8)).ok().filter(|a| memory.has(*a)));
    }
    let methods: Vec<Addr> = thrown["stack"].as_array().unwrap().iter().map(|f| address(&f["md"])).collect();
    hot.extend(&methods);
    let mut random = common::random();
    let mut read = 0;
    for _ in 0..150 {
        let mut bytes = plain.clone();
        for _ in 0..1 + random(12) {
            let at = Addr((hot[random(hot.len())].0 & !7).saturating_sub(32)).element(random(24) as u64, 8);
            let word = match random(4) {
                0 => random(1 << 31) as u64 | (random(1 << 31) as u64) << 32,
                1 => u64::MAX,
                _ => hot[random(hot.len())].0,
            };
            if let Some(at) = common::file_offset(&dump, at) {
                bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
            }
        }
        let damaged = open_bytes(Bytes::Owned(bytes), path, &OpenOptions::default()).unwrap();
        let memory = Arc::new(Memory::new(&damaged, Shape::LE64));
        let limits = gcdump::internals::base::Limits::default();
        let names = TypeNames::new(&memory, descriptor, None, Os::Linux, None, &limits).unwrap();
        let (reader, namer) = (Exceptions::bind(&memory, descriptor).unwrap(), Methods::bind(&memory, descriptor, &limits).unwrap());
        let fields = Fields::bind(&memory, descriptor).ok();
        for a in &hot {
            if let Some(e) = reader.read(&names, fields.as_ref(), *a) {
                read += 1;
                for f in e.stack.iter().take(100) {
                    drop(namer.name(&names, f.method));
                }
            }
            for i in 0..16 {
                drop(namer.name(&names, a.element(i, 4)));
            }
        }
    }
    println!("{read} exceptions still read");
}

#[test]
fn a_cycle_of_inner_exceptions_ends() -> Tested {
    let Some(Answered { path, clrmd, .. }) = answered()?.into_iter().find(|c| c.name == "net9-wks-crash-mini") else { return Ok(()) };
    let mut bytes = std::fs::read(&path).unwrap();
    let dump = open(&path, &OpenOptions::default()).unwrap();
    let thrown = clrmd["threads"]["threads"].as_array().unwrap().iter().find(|t| !t["exception"].is_null()).unwrap()["exception"].clone();
    let (outer, inner) = (address(&thrown["address"]), address(&thrown["inner"]["address"]));
    let process = Dump::open(&path, &gcdump::OpenOptions::default()).unwrap();
    let at = inner.plus(process.runtime().unwrap().descriptor().offset("Exception", "_innerException").unwrap());
    let offset = common::file_offset(&dump, at).unwrap();
    bytes[offset..offset + 8].copy_from_slice(&outer.0.to_le_bytes());
    let damaged = open_bytes(Bytes::Owned(bytes), &path, &OpenOptions::default()).unwrap();
    let process = Dump::of(damaged, &gcdump::OpenOptions::default());
    let runtime = process.runtime().unwrap();
    let threads = threads(&runtime, &ThreadsQuery::default()).unwrap().data.threads;
    let model = threads.into_iter().filter_map(|t| t.exception).find(|e| e.address == outer).unwrap();
    let again = model.inner.as_ref().unwrap().inner.as_ref().unwrap();
    assert_eq!((again.address, again.message.as_deref(), again.inner.as_deref()), (outer, None, None));
    Ok(())
}

/// The dumps of the repository.
fn corpus() -> Vec<std::path::PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus");
    let mut all: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    all.retain(|path| path.to_str().unwrap().ends_with(".dmp.zst"));
    all.sort();
    all
}

/// Returns the addresses of an exception's inner exceptions, and of theirs, in the order of nested models.
fn nested(inner: &Value) -> Vec<String> {
    let direct = inner["inner"].is_object().then(|| &inner["inner"]);
    let further = inner["inners"].as_array().unwrap().iter();
    let below = direct.into_iter().chain(further).flat_map(nested);
    std::iter::once(inner["address"].as_str().unwrap().to_string()).chain(below).collect()
}

#[test]
fn an_exception_is_shown_with_its_inner_ones() {
    let (mut asked, mut in_flight) = (0, 0);
    for path in corpus().into_iter().filter(|path| common::full() || path.to_string_lossy().contains("crash")) {
        let file = path.to_str().unwrap();
        let ran = common::run(&["exceptions", "--json", file]);
        let Ok(answer) = serde_json::from_str::<Value>(&ran.out) else { continue };
        let text = common::run(&["exceptions", file]).out;
        let list = answer["data"]["exceptions"].as_array().cloned().unwrap_or_default();
        for e in list.iter().filter(|e| e["inner"].is_string()) {
            let own = e["address"].as_str().unwrap();
            let all = e["inner_exceptions"].as_array();
            assert_eq!(all.is_some(), e["thread_role"] == "in-flight" || list.len() == 1, "{file}: {e}");
            if let Some(all) = all {
                in_flight += 1;
                let below: Vec<String> = all.iter().flat_map(nested).collect();
                assert_eq!(below[0], e["inner"].as_str().unwrap());
                assert!(
                    below.iter().all(|at| text.lines().any(|line| line.starts_with("---> ") && line.contains(at.as_str()))),
                    "{file}: {text}"
                );
            }
            // By its address or an interior one, with every name that SOS has for the command.
            let inside = format!("{:#x}", address(&e["address"]).0 + 8);
            for command in [&["exceptions", "--object", own][..], &["pe", own], &["pe", "-nested", own], &["printexception", &inside]] {
                let shown = common::run(&[command, &[file]].concat()).out;
                let arrows: Vec<&str> = shown.lines().filter(|line| line.starts_with("---> ")).collect();
                assert!(arrows.first().is_some_and(|line| line.contains(e["inner"].as_str().unwrap())), "{file}: {command:?}: {shown}");
            }
            asked += 1;
        }
    }
    assert!(asked > common::cases(1, 4) && in_flight > common::cases(1, 4), "{asked} with inner exceptions, {in_flight} in flight");
}

#[test]
fn an_object_that_is_not_an_exception_is_named() {
    for name in ["net8-wks-basics-heap", "net10-wks-crash-heap", "win-net10-wks-crash-full", "net11shape-wks-threads-heap"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("dumps/corpus").join(format!("{name}.dmp.zst"));
        let file = path.to_str().unwrap();
        let (_, objects) = ask(&path, &["objects", "--type", "System.String", "--count", "1"]);
        let at = objects["data"]["objects"][0]["address"].as_str().unwrap();
        for command in ["pe", "printexception"] {
            let ran = common::run(&[command, at, file]);
            let said = format!("gcdump: {at} is an object of type System.String, not an exception; `gcdump object {at}` shows it\n");
            assert_eq!((ran.exit, ran.err, ran.out), (gcdump::cli::Exit::Negative, said, String::new()), "{name}");
        }
        let ran = common::run(&["pe", "0x10", file]);
        assert_eq!((ran.exit, ran.err.contains("there is no object at 0x10")), (gcdump::cli::Exit::Negative, true), "{name}: {}", ran.err);
        let (_, list) = ask(&path, &["exceptions"]);
        let exception = list["data"]["exceptions"][0]["address"].as_str().unwrap();
        let ran = common::run(&["exceptions", "--object", exception, "--type", "Lab.Dog", file]);
        assert_eq!(
            (ran.exit, ran.err.contains("not one of the requested types")),
            (gcdump::cli::Exit::Negative, true),
            "{name}: {}",
            ran.err
        );
    }
}
