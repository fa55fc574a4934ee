//! Fields, elements and statics, compared with the programs' own records and with ClrMD.

use crate::harness::{Ignored, Tested};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::common::{self, Known, known_dumps};
use gcdump::analysis::ObjectReport;
use gcdump::analysis::{ObjectQuery, object};
use gcdump::internals::base::{Addr, Answer, Collector, Limits};
use gcdump::internals::clr::fields::Types;
use gcdump::internals::clr::method_table::Generics;
use gcdump::internals::clr::threads::Threads;
use gcdump::internals::clr::type_names::TypeNames;
use gcdump::internals::clr::values::{ValueLimits, Values};
use gcdump::internals::contract::Descriptor;
use gcdump::internals::dump::{self, Bytes, OpenOptions};
use gcdump::internals::memory::{FileSearch, Memory};
use gcdump::internals::session::{StaticsQuery, StaticsReader};
use gcdump::model::{FieldValue, StaticModel, StaticsReport, ValueKind};
use gcdump::{Dump, Name, Runtime};
use serde_json::{Value, json};

/// The readers bound to one dump.
struct Bound {
    runtime: Runtime,
    types: Arc<Types>,
}

impl Bound {
    fn object(&self, address: Addr) -> Answer<ObjectReport> {
        object(&self.runtime.heap().unwrap(), &ObjectQuery::at(address)).unwrap_or_else(|e| panic!("{e}"))
    }

    fn all(&self, more: &[Addr], thread_statics: bool) -> StaticsReport {
        all(self.runtime.memory(), self.runtime.descriptor(), &self.types, more, thread_statics)
    }
}

/// The static fields of all types and of `more`.
fn all(memory: &Arc<Memory>, d: &Arc<Descriptor>, types: &Arc<Types>, more: &[Addr], thread_statics: bool) -> StaticsReport {
    let threads = Threads::bind(memory, d, &Limits::default()).unwrap().list();
    let query = StaticsQuery { thread_statics, ..StaticsQuery::default() };
    let mut statics = Vec::new();
    let reader = StaticsReader::new(memory, d, types).with_threads(&threads);
    let report = reader.each(more, &query, &Collector::new(), &mut |field| statics.push(field));
    StaticsReport { statics, ..report }
}

fn process(dump: dump::DumpFile) -> Dump {
    let search = FileSearch { recorded_paths: false, ..FileSearch::default() };
    Dump::of(dump, &gcdump::OpenOptions { search, ..gcdump::OpenOptions::default() })
}

fn with_dump(known: &Known, f: impl FnOnce(&Bound)) {
    let runtime = process(dump::open(&known.path, &OpenOptions::default()).unwrap()).runtime().unwrap();
    f(&Bound { types: Arc::clone(runtime.types().unwrap()), runtime });
}

fn cases(wanted: impl Fn(&Value) -> bool) -> Result<Vec<Known>, Ignored> {
    let only = std::env::var("GCDUMP_TEST_ONLY").unwrap_or_default();
    let (have, lack) = known_dumps(|row| wanted(row) && row["name"].as_str().unwrap().contains(&only))?;
    if !lack.is_empty() {
        println!("not unpacked: {}", lack.join(", "));
    }
    Ok(have)
}

fn hex(value: &Value) -> Addr {
    Addr(u64::from_str_radix(value.as_str().unwrap_or_else(|| panic!("{value}")).trim_start_matches("0x"), 16).unwrap())
}

fn field<'f>(list: &'f [FieldValue], name: &str) -> &'f FieldValue {
    list.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no field {name}"))
}

/// Compares one field: kind, value, declared type.
fn same(list: &[FieldValue], name: &str, kind: ValueKind, value: Value, type_name: &str) {
    let f = field(list, name);
    assert_eq!((f.kind, &f.value, f.type_name.as_str()), (kind, &value, type_name), "{name}: {f:?}");
}

#[test]
fn fields_have_the_values_assigned_by_the_program() -> Tested {
    use ValueKind as K;
    let list = cases(|row| row["scenario"] == "basics" && !matches!(row["kind"].as_str(), Some("mini" | "triage")))?;
    let mut done = 0;
    for known in list {
        let Some(truth) = &known.truth else { continue };
        let samples = truth["samples"].clone();
        with_dump(&known, |b| {
            let o = b.object(hex(&samples["everything"]));
            assert_eq!((o.type_name.as_deref(), o.complete()), (Some("Lab.Everything"), true), "{}", known.name);
            let f = &o.fields;
            assert_eq!(f.len(), 31);
            same(f, "B", K::Bool, json!(true), "System.Boolean");
            same(f, "U8", K::Int, json!(200), "System.Byte");
            same(f, "I8", K::Int, json!(-100), "System.SByte");
            same(f, "I16", K::Int, json!(-30000), "System.Int16");
            same(f, "U16", K::Int, json!(60000), "System.UInt16");
            same(f, "I32", K::Int, json!(-2_000_000_000), "System.Int32");
            same(f, "U32", K::Int, json!(4_000_000_000u32), "System.UInt32");
            same(f, "I64", K::Int, json!(i64::MIN + 1), "System.Int64");
            same(f, "U64", K::Int, json!(u64::MAX - 1), "System.UInt64");
            same(f, "F32", K::Float, json!(1.5), "System.Single");
            same(f, "F64", K::Float, json!(std::f64::consts::E), "System.Double");
            same(f, "C", K::Char, json!("Ω"), "System.Char");
            same(f, "NI", K::Nint, json!("0xfffffffffffffff9"), "System.IntPtr");
            same(f, "NU", K::Nint, json!("0x7"), "System.UIntPtr");
            same(f, "Colour", K::Enum, json!("Blue"), "Lab.Color");
            same(f, "Money", K::Decimal, json!("12345.6789"), "System.Decimal");
            same(f, "When", K::DateTime, json!("2026-01-02T03:04:05Z"), "System.DateTime");
            same(f, "Id", K::Guid, json!("00112233-4455-6677-8899-aabbccddeeff"), "System.Guid");
            same(f, "MaybeSet", K::Int, json!(99), "System.Nullable<System.Int32>");
            same(f, "MaybeUnset", K::Null, Value::Null, "System.Nullable<System.Int32>");
            same(f, "Text", K::String, json!("héllo wörld \u{1F600}"), "System.String");
            assert_eq!(field(f, "Text").object, Some(hex(&samples["everything_text"])));
            same(f, "Boxed", K::Object, Value::Null, "System.Object");
            let boxed = b.object(field(f, "Boxed").object.unwrap());
            assert_eq!(boxed.type_name.as_deref(), Some("System.Double"));
            assert_eq!(boxed.data.boxed.unwrap().value, json!(3.25));
            for (name, declared, actual) in [
                ("Numbers", "System.Int32[]", "System.Int32[]"),
                ("Words", "System.String[]", "System.String[]"),
                ("Many", "Lab.Tagged[]", "Lab.Tagged[]"),
                ("Grid", "System.Int32[,]", "System.Int32[,]"),
                ("Jagged", "System.Int32[][]", "System.Int32[][]"),
                ("Act", "System.Action", "System.Action"),
                ("Generic", "Lab.Pair<System.Int32, System.String>", "Lab.Pair<System.Int32, System.String>"),
                ("AType", "System.Type", "System.RuntimeType"),
            ] {
                same(f, name, K::Object, Value::Null, declared);
                assert_eq!(field(f, name).object_type.as_deref(), Some(actual));
            }
            inline(field(f, "Inline"));
            arrays(b, f, &samples);
            let pair = b.object(field(f, "Generic").object.unwrap());
            same(&pair.fields, "First", K::Int, json!(1), "System.Int32");
            same(&pair.fields, "Second", K::String, json!("g"), "System.String");
            inherited(b, hex(&samples["dog0"]));
            nested(b, hex(&samples["outer"]));
            assert_eq!(b.object(hex(&samples["bigstring"])).length, Some(60_000));
            println!("{}: Lab.Everything is right", known.name);
        });
        done += 1;
    }
    println!("{done} dumps");
    Ok(())
}

fn inline(f: &FieldValue) {
    use ValueKind as K;
    assert_eq!((f.kind, f.type_name.as_str()), (K::Struct, "Lab.Tagged"));
    same(&f.fields, "Id", K::Int, json!(5), "System.Int32");
    same(&f.fields, "Name", K::String, json!("inline"), "System.String");
    assert_eq!(field(&f.fields, "Payload").object_type.as_deref(), Some("System.Object"));
    let at = field(&f.fields, "At");
    for (name, value) in [("X", 1.0), ("Y", 2.0), ("Z", 3.0)] {
        same(&at.fields, name, K::Float, json!(value), "System.Double");
    }
}

fn arrays(b: &Bound, f: &[FieldValue], samples: &Value) {
    use ValueKind as K;
    let elements = |name: &str| b.object(field(f, name).object.unwrap());
    let numbers = elements("Numbers");
    assert_eq!(numbers.length, Some(6));
    assert_eq!(numbers.elements.iter().map(|e| e.value.clone()).collect::<Vec<_>>(), [1, 2, 3, 5, 8, 13].map(|n| json!(n)));
    let words = elements("Words");
    let kinds: Vec<_> = words.elements.iter().map(|e| (e.name.as_str(), e.kind, e.value.clone())).collect();
    assert_eq!(kinds, [("[0]", K::String, json!("alpha")), ("[1]", K::Null, Value::Null), ("[2]", K::String, json!("gamma"))]);
    let grid = elements("Grid");
    assert_eq!((grid.address, grid.length, grid.elements.len()), (hex(&samples["grid"]), Some(12), 12));
    assert_eq!(grid.dimensions.iter().map(|d| (d.length, d.lower_bound)).collect::<Vec<_>>(), [(3, 0), (4, 0)]);
    for e in &grid.elements {
        assert_eq!(e.value, json!(if e.name == "[2,3]" { 23 } else { 0 }), "{}", e.name);
    }
    assert_eq!(grid.elements[5].name, "[1,1]");
    let many = elements("Many");
    assert_eq!((many.address, many.elements.len()), (hex(&samples["many"]), 10));
    for (i, e) in many.elements.iter().enumerate() {
        assert_eq!(e.kind, K::Struct);
        same(&e.fields, "Id", K::Int, json!(i), "System.Int32");
        same(&e.fields, "Name", K::String, json!(format!("many{i}")), "System.String");
        let payload = b.object(field(&e.fields, "Payload").object.unwrap()).data;
        assert_eq!((payload.type_name.as_deref(), payload.boxed.unwrap().value), (Some("System.Int32"), json!(i)));
    }
    let jagged = elements("Jagged");
    let second = b.object(jagged.elements[1].object.unwrap());
    assert_eq!(second.elements.iter().map(|e| e.value.clone()).collect::<Vec<_>>(), [json!(2), json!(3)]);
    let part = object(&b.runtime.heap().unwrap(), &ObjectQuery { start: 2, count: 3, ..ObjectQuery::at(numbers.address) }).unwrap();
    assert_eq!(part.elements.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["[2]", "[3]", "[4]"]);
    assert_eq!(part.truncated, [gcdump::analysis::CutShort::Elements]);
}

fn inherited(b: &Bound, dog: Addr) {
    let o = b.object(dog);
    let names: Vec<_> = o.fields.iter().map(|f| (f.declaring_type.as_deref().unwrap(), f.name.as_str())).collect();
    assert_eq!(names, [("Lab.Animal", "_name"), ("Lab.Animal", "_age"), ("Lab.Dog", "Friend"), ("Lab.Dog", "_tag")]);
    same(&o.fields, "_name", ValueKind::String, json!("dog0"), "System.String");
    assert_eq!(field(&o.fields, "Friend").object_type.as_deref(), Some("Lab.Dog"));
}

fn nested(b: &Bound, outer: Addr) {
    let o = b.object(outer);
    same(&o.fields, "One", ValueKind::Object, Value::Null, "Lab.Outer+Inner<System.Int32>");
    let one = b.object(field(&o.fields, "One").object.unwrap());
    same(&one.fields, "Value", ValueKind::Int, json!(42), "System.Int32");
    let two = b.object(field(&o.fields, "Two").object.unwrap());
    same(&two.fields, "Value", ValueKind::String, json!("inner"), "System.String");
    assert_eq!(field(&two.fields, "Owner").object, Some(outer));
}

/// Maps static fields by declaring type, name and thread.
fn by_name(report: &StaticsReport) -> BTreeMap<(Name, String, Option<u32>), &StaticModel> {
    let key = |s: &StaticModel| (s.field.declaring_type.clone().unwrap(), s.field.name.clone(), s.thread.and_then(|t| t.managed_id));
    report.statics.iter().map(|s| (key(s), s)).collect()
}

#[test]
fn statics_of_the_probe_are_at_the_addresses_it_recorded() -> Tested {
    for known in cases(|row| row["name"].as_str().unwrap().contains("probe"))? {
        let truth = known.truth.clone().unwrap();
        with_dump(&known, |b| {
            let report = b.all(&[], false);
            let ours = by_name(&report);
            let mut compared = 0;
            let mut check = |what: &str, have: Option<Addr>, wanted: &Value| {
                assert_eq!(have, Some(hex(wanted)), "{what}");
                compared += 1;
            };
            let of = |t: &str, f: &str| &ours[&(format!("Probe.{t}").into(), f.to_string(), None)].field;
            // The copy of the types in the collectible context has the same names, so the map keeps one of each; the values below
            // distinguish them.
            let places = &truth["statics"];
            for f in ["I", "Lg", "By", "D", "S", "O", "St", "Dt"] {
                check(f, of("Statics", f).address, &places[f]);
            }
            let (int, text) = ("GenStatics<System.Int32>", "GenStatics<System.String>");
            for (t, f, key) in [(int, "GI", "GI_int"), (int, "GO", "GO_int"), (text, "GO", "GO_str"), (text, "GT", "GT_str")] {
                check(key, of(t, f).address, &places[key]);
            }
            check("WithCctor_O", of("WithCctor", "O").address, &places["WithCctor_O"]);
            check("WithCctor_I", of("WithCctor", "I").address, &places["WithCctor_I"]);
            let values = &truth["static_values"];
            check("S", of("Statics", "S").object, &values["S"]);
            check("O", of("Statics", "O").object, &values["O"]);
            check("St.O", field(&of("Statics", "St").fields, "O").object, &values["St.O"]);
            for (t, f, key) in [(int, "GO", "GO_int"), (text, "GO", "GO_str"), (text, "GT", "GT_str"), ("WithCctor", "O", "WithCctor_O")] {
                check(key, of(t, f).object, &values[key]);
            }
            let collectible = &truth["coll2_statics"];
            check("S2", of("ForCollect2", "S2").object, &collectible["S2"]);
            check("Str2", of("ForCollect2", "Str2").object, &collectible["Str2"]);
            check("genc_int_GS", of("GenC<System.Int32>", "GS").object, &collectible["genc_int_GS"]);
            check("genc_struct_GS", of("GenC<Probe.CStruct>", "GS").object, &collectible["genc_struct_GS"]);
            check("genc_ref_GS", of("GenC<Probe.ForCollect>", "GS").object, &collectible["genc_ref_GS"]);
            check("collectible_static", of("ForCollect", "S").object, &truth["collectible_static"]);
            for (t, f, wanted) in [
                ("Statics", "I", json!(11)),
                ("Statics", "Lg", json!(0x1122_3344_5566_7788u64)),
                ("Statics", "By", json!(7)),
                ("Statics", "D", json!(1.25)),
                ("Statics", "S", json!("static string")),
                ("Statics", "E", json!("X")),
                ("Statics", "Dt", json!("2020-01-01T00:00:00")),
                (int, "GI", json!(21)),
                (int, "GT", json!(31)),
                ("WithCctor", "I", json!(77)),
                ("ForCollect", "SI", json!(5)),
                ("ForCollect2", "SI2", json!(6)),
                ("GenC<System.Int32>", "GI", json!(8)),
            ] {
                assert_eq!(of(t, f).value, wanted, "{t}.{f}");
            }
            let threads = b.all(&[], true);
            let ours = by_name(&threads);
            let mut list = vec![truth["thread_statics_main"].clone()];
            list.extend(truth["thread_statics_other"].as_array().unwrap().iter().filter(|t| t.get("TI").is_some()).cloned());
            assert_eq!(list.len(), 4);
            for t in &list {
                let id = t["managed"].as_u64().map(|n| n as u32);
                let v = t["os"].as_u64().unwrap();
                let of = |t: &str, f: &str| &ours[&(format!("Probe.{t}").into(), f.to_string(), id)].field;
                check("TI", of("Statics", "TI").address, &t["TI_addr"]);
                check("TL", of("Statics", "TL").address, &t["TL_addr"]);
                check("TS", of("Statics", "TS").address, &t["TS_addr"]);
                check("TS", of("Statics", "TS").object, &t["TS"]);
                check("TO", of("Statics", "TO").address, &t["TO_addr"]);
                check("TO", of("Statics", "TO").object, &t["TO"]);
                check("TStO", field(&of("Statics", "TSt").fields, "O").object, &t["TStO"]);
                check("GTI", of(int, "GTI").address, &t["GTI_int"]);
                check("GTO", of(int, "GTO").address, &t["GTO_int_addr"]);
                check("GTO", of(int, "GTO").object, &t["GTO_int"]);
                check("GTO", of(text, "GTO").address, &t["GTO_str_addr"]);
                check("GTO", of(text, "GTO").object, &t["GTO_str"]);
                assert_eq!(of("Statics", "TI").value, t["TI"]);
                assert_eq!(of("Statics", "TL").value, json!(0x70_0000_0000u64 + v));
                assert_eq!(of("Statics", "TS").value, json!(format!("ts{v}")));
                assert_eq!(of(int, "GTI").value, json!(2000 + v));
                assert_eq!(of(text, "GTI").value, json!(3000 + v));
            }
            let main = Some(1);
            check("TO2", ours[&("Probe.ForCollect2".into(), "TO2".into(), main)].field.object, &collectible["TO2"]);
            assert_eq!(ours[&("Probe.ForCollect2".into(), "TI2".into(), main)].field.value, json!(4242));
            assert_eq!(ours[&("Probe.ForCollect".into(), "TO".into(), main)].field.value, json!("collectible thread static"));
            probe_fields(b, hex(&truth["fields"]));
            println!("{}: {compared} addresses of statics are right", known.name);
        });
    }
    Ok(())
}

fn probe_fields(b: &Bound, address: Addr) {
    use ValueKind as K;
    let o = b.object(address);
    let f = &o.fields;
    same(f, "B", K::Bool, json!(true), "System.Boolean");
    same(f, "U8", K::Int, json!(9), "System.Byte");
    same(f, "I16", K::Int, json!(-3), "System.Int16");
    same(f, "I32", K::Int, json!(123_456), "System.Int32");
    same(f, "I64", K::Int, json!(-9), "System.Int64");
    same(f, "S", K::String, json!("f"), "System.String");
    same(f, "E", K::Enum, json!("X"), "Probe.Big");
    same(f, "P", K::Nint, json!("0x63"), "System.IntPtr");
    same(f, "Arr", K::Object, Value::Null, "System.Int32[]");
    same(f, "Next", K::Null, Value::Null, "Probe.Fields");
    same(f, "M", K::Decimal, json!("3.5"), "System.Decimal");
    same(f, "C", K::Char, json!("q"), "System.Char");
    same(f, "D", K::Float, json!(2.5), "System.Double");
    let st = field(f, "St");
    same(&st.fields, "A", K::Int, json!(4), "System.Int64");
    same(&st.fields, "O", K::String, json!("so"), "System.Object");
    same(&st.fields, "B", K::Int, json!(6), "System.Int32");
    let n = field(f, "N");
    assert_eq!((n.kind, n.type_name.as_str()), (K::Struct, "System.Nullable<Probe.Str3>"));
    same(&n.fields, "A", K::Int, json!(1), "System.Int64");
    assert_eq!(field(f, "O").declaring_type.as_deref(), Some("Probe.Fields2"));
    assert_eq!(field(f, "S").declaring_type.as_deref(), Some("Probe.Fields"));
}

/// Static fields listed by ClrMD: method table and name, address.
fn theirs(list: &Value) -> BTreeSet<(Addr, String, Option<u64>, Addr)> {
    let rows = list.as_array().unwrap().iter();
    rows.map(|s| (hex(&s["mt"]), s["field"].as_str().unwrap().to_string(), s["managed_thread"].as_u64(), hex(&s["address"]))).collect()
}

/// Returns why ClrMD's address of a static differs, if due to a bug of ClrMD or a difference in meaning.
fn fault(b: &Bound, runtime: &str, mt: Addr, thread_static: bool, ours: Option<&StaticModel>, theirs: Addr) -> Option<&'static str> {
    let info = b.types.names().method_tables().read(mt).unwrap();
    // An open generic type has no statics.
    if info.generics == Generics::Definition {
        return Some("generic type without arguments");
    }
    // ClrMD returns the slot of a structure not yet boxed.
    if ours.is_none() && b.runtime.memory().ptr(theirs) == Ok(Addr::NULL) {
        return Some("no box");
    }
    // ClrMD looks for thread statics of generic instances of .NET 8 among those of ordinary types, and reads other data; the
    // object found by gcdump has exactly the type of the field.
    let right = |f: &FieldValue| f.kind == ValueKind::Object && f.object_type.as_deref() == Some(f.type_name.as_str());
    let generic = runtime.contains('8') && thread_static && info.generics == Generics::Instance;
    (generic && ours.is_some_and(|s| right(&s.field))).then_some("thread static of a generic instance")
}

#[test]
fn statics_are_those_of_clrmd() -> Tested {
    let mut failures = Vec::new();
    // Without metadata (gcore and kernel dumps), ClrMD lists none.
    for known in cases(|row| !matches!(row["kind"].as_str(), Some("gcore" | "kernel")))? {
        let Some(answer) = known.clrmd.as_ref().map(|c| &c["statics"]).filter(|s| s["statics"].is_array()) else { continue };
        with_dump(&known, |b| {
            let mut bad = Vec::new();
            let mut counts = Vec::new();
            for thread_statics in [false, true] {
                let theirs = theirs(&answer[if thread_statics { "thread_statics" } else { "statics" }]);
                let more: Vec<Addr> = theirs.iter().map(|t| t.0).collect();
                let report = b.all(&more, thread_statics);
                // ClrMD returns the slot of a structure, gcdump the data in the box.
                let memory = &b.runtime.memory();
                let ours: BTreeMap<_, _> = report
                    .statics
                    .iter()
                    .map(|s| {
                        let thread = s.thread.and_then(|t| t.managed_id).map(u64::from);
                        ((s.method_table, s.field.name.clone(), thread), s)
                    })
                    .collect();
                let (mut equal, mut boxes, mut faults) = (0, 0, BTreeMap::new());
                let mut matched = BTreeSet::new();
                for (mt, name, thread, address) in &theirs {
                    let key = (*mt, name.clone(), *thread);
                    matched.insert(key.clone());
                    let have = ours.get(&key).and_then(|s| s.field.address);
                    if have == Some(*address) {
                        equal += 1;
                    } else if have.is_some() && memory.ptr(*address).ok().map(|b| b.plus(8)) == have {
                        boxes += 1;
                    } else if let Some(fault) = fault(b, &known.runtime, *mt, thread_statics, ours.get(&key).copied(), *address) {
                        *faults.entry(fault).or_insert(0u32) += 1;
                    } else {
                        bad.push(format!("{mt} {} {name} {thread:?}: theirs {address}, ours {have:?}", b.types.names().name(*mt).name));
                    }
                }
                // Fields omitted by ClrMD, of types that it lists.
                let listed: BTreeSet<_> = theirs.iter().map(|t| (t.0, t.2)).collect();
                let extra: Vec<_> =
                    ours.iter().filter(|((mt, _, t), _)| listed.contains(&(*mt, *t))).filter(|(k, _)| !matched.contains(*k)).collect();
                let surplus = extra.iter().map(|(_, s)| format!("only here: {:?} {}", s.field.declaring_type, s.field.name));
                bad.extend(surplus);
                // Types omitted by ClrMD: it finds generic instances only on the heap, no function pointers, and no fields with
                // a value in uninitialized classes (`String.Empty`).
                let unknown =
                    ours.values().filter(|s| !listed.contains(&(s.method_table, s.thread.and_then(|t| t.managed_id).map(u64::from))));
                let unexplained = unknown.filter(|s| {
                    let info = b.types.names().method_tables().read(s.method_table).unwrap();
                    let empty = matches!(s.field.kind, ValueKind::Null | ValueKind::Absent)
                        || s.field.value == json!(0)
                        || s.field.value == json!(false);
                    info.generics != Generics::Instance && !s.field.type_name.contains('(') && empty
                });
                if !matches!(known.kind.as_str(), "mini" | "triage") {
                    bad.extend(unexplained.map(|s| format!("only here: {:?} {} {}", s.field.declaring_type, s.field.name, s.field.text)));
                }
                counts.push(format!(
                    "{equal} equal, {boxes} boxes, faults of ClrMD {faults:?}, {} more here, {} in all",
                    extra.len(),
                    ours.len()
                ));
            }
            println!("{}: statics {}; thread statics {}", known.name, counts[0], counts[1]);
            bad.iter().take(5).for_each(|b| println!("    {b}"));
            failures.extend(bad);
        });
    }
    assert!(failures.is_empty(), "{} differences", failures.len());
    Ok(())
}

#[test]
fn corrupt_memory_never_panics() -> Tested {
    for known in
        cases(|row| matches!(row["name"].as_str(), Some("net9-wks-crash-mini" | "net10-wks-basics-heap" | "net8-wks-basics-heap")))?
    {
        let plain = std::fs::read(&known.path).unwrap();
        let sound = dump::open(&known.path, &OpenOptions::default()).unwrap();
        let process = process(sound);
        let runtime = process.runtime().unwrap();
        let (types, descriptor) = (runtime.types().unwrap(), runtime.descriptor());
        let mut found: Vec<Addr> = types.loader().type_defs(types.modules(), |_| None, |_| true);
        found.extend(types.instances());
        found.retain(|mt| types.names().method_tables().is_valid(*mt) == Ok(true));
        let mut random = common::random();
        let samples: Vec<Addr> = known
            .truth
            .iter()
            .flat_map(|t| t["samples"].as_object().into_iter().flatten())
            .filter(|(_, v)| v.is_string())
            .map(|(_, v)| hex(v))
            .collect();
        let started = std::time::Instant::now();
        for _ in 0..6 {
            let mut bytes = plain.clone();
            for _ in 0..400 {
                let at = found[random(found.len())];
                // The method table, the memory that it points to, or the object's first words.
                let target = match random(3) {
                    0 => runtime.memory().ptr(at.element(random(9) as u64, 8)).unwrap_or(at),
                    1 if !samples.is_empty() => samples[random(samples.len())],
                    _ => at,
                };
                let word = match random(4) {
                    0 => found[random(found.len())].0,
                    1 => (random(1 << 31) as u64) << random(33),
                    2 => u64::MAX - random(64) as u64,
                    _ => target.0,
                };
                if let Some(at) = common::file_offset(process.file(), target.element(random(12) as u64, 8)) {
                    bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
                }
            }
            let damaged = dump::open_bytes(Bytes::Owned(bytes), &known.path, &OpenOptions::default()).unwrap();
            // The descriptor comes from the intact dump: with a corrupt one, self-checks would reject the overlay.
            let memory = Arc::new(Memory::new(&damaged, gcdump::internals::base::Shape::LE64));
            let limits = Limits::default();
            let names = Arc::new(TypeNames::new(&memory, descriptor, None, damaged.facts.os, None, &limits).unwrap());
            let types = Arc::new(Types::new(&memory, descriptor, names, &limits).unwrap());
            for thread_statics in [false, true] {
                drop(all(&memory, descriptor, &types, &found, thread_statics));
            }
            for mt in &found {
                drop((types.instance_fields(*mt), types.names().method_tables().interfaces(*mt)));
            }
            let values = Values::new(&types, ValueLimits::default());
            samples.iter().for_each(|at| read_object(&values, *at));
        }
        println!("{}: {} types, {:?}", known.name, found.len(), started.elapsed());
    }
    Ok(())
}

/// Reads all parts of an object.
fn read_object(values: &Values, at: Addr) {
    let Some(mt) = values.method_table(at) else { return };
    let Ok(info) = values.types().names().method_tables().read(mt) else { return };
    drop((values.fields(mt, at), values.boxed(&info, at), values.string(at), values.component_count(at)));
    drop(values.array(&info, at).map(|shape| values.elements(&shape, 0, 100)));
}

/// `dumpvc`: a type shown at an address has the values of the field of the object around it.
#[test]
fn values_at_addresses_equal_those_of_fields() {
    let dump = common::own_unpacked();
    let (_, list) = common::ask(&dump, &["objects", "--type", "Lab.Everything", "--count", "1"]);
    let at = list["data"]["objects"][0]["address"].as_str().unwrap();
    let (_, object) = common::ask(&dump, &["object", at]);
    let fields = object["data"]["fields"].as_array().unwrap();
    let references = ["object", "string", "null"];
    let mut seen = BTreeSet::new();
    for field in fields.iter().filter(|f| !references.contains(&f["kind"].as_str().unwrap())) {
        let (address, name) = (field["address"].as_str().unwrap(), field["type"].as_str().unwrap());
        let (exit, by_name) = common::ask(&dump, &["object", address, "--as", name]);
        assert_eq!(exit, gcdump::cli::Exit::Ok, "{field}");
        let table = by_name["data"]["method_table"].as_str().unwrap();
        assert_eq!(common::ask(&dump, &["object", "--as", table, address]).1, by_name);
        for part in ["kind", "value", "text", "fields"] {
            assert_eq!(by_name["data"]["boxed"][part], field[part], "{name}: {part}");
        }
        assert_eq!((&by_name["data"]["fields"], by_name["data"]["type"].as_str()), (&field["fields"], Some(name)));
        seen.insert(field["kind"].as_str().unwrap());
    }
    assert!(seen.len() > 8 && seen.contains("struct"), "{seen:?}");
    let dump = dump.to_str().unwrap();
    use gcdump::cli::Exit::{Negative, Usage};
    for (wanted, exit, says) in [
        ("System.String", Negative, "is not a value type"),
        ("No.Such", Negative, "no type matches No.Such"),
        ("Lab.*", Usage, "types match Lab.*"),
    ] {
        let ran = common::run(&["object", at, "--as", wanted, "--no-local-files", dump]);
        assert!(ran.exit == exit && ran.err.contains(says), "{wanted}: {}", ran.err);
    }
}
