//! The library: typed reads, errors, iterators, threads; and the examples.

use std::path::{Path, PathBuf};

use gcdump::{Addr, Dump, Error, Heap, Object, OpenOptions, Runtime, Type, Value, ValueError};
use rayon::prelude::*;
use serde_json::Value as Json;

use crate::common::{ask, own_dump};

#[path = "../../examples/instances.rs"]
mod instances;
#[path = "../../examples/leak_rule.rs"]
mod leak_rule;
#[path = "../../examples/top_types.rs"]
mod top_types;
#[path = "../../examples/tour.rs"]
mod tour;
#[path = "../../examples/who_holds.rs"]
mod who_holds;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("dumps/corpus/{name}.dmp.zst"))
}

fn heap(path: &Path) -> Heap {
    gcdump::open(path).unwrap().runtime().unwrap().heap().unwrap()
}

fn first(heap: &Heap, pattern: &str) -> Object {
    heap.objects_of(pattern).unwrap().next().unwrap()
}

/// Returns the message of the expected error.
fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn handles_are_send_and_sync() {
    fn goes_anywhere<T: Send + Sync + Clone + 'static>() {}
    goes_anywhere::<Dump>();
    goes_anywhere::<Runtime>();
    goes_anywhere::<Heap>();
    goes_anywhere::<Object>();
    goes_anywhere::<Value>();
    goes_anywhere::<Type>();
    assert_eq!(size_of::<Object>(), 32);
}

/// `object --json` and the handle agree about an object.
fn same_as_json(path: &Path, object: &Object) {
    let (_, envelope) = ask(path, &["object", &object.address().to_string()]);
    let said = &envelope["data"];
    let at = format!("{} {object:?}", path.display());
    assert_eq!(said["type"], object.type_name(), "{at}");
    assert_eq!(said["size"], object.size(), "{at}");
    assert_eq!(said["method_table"], object.method_table().to_string(), "{at}");
    assert_eq!(said["segment"]["generation"], object.generation().unwrap().name(), "{at}");
    if object.is_string() {
        assert_eq!(said["string"], object.string().unwrap(), "{at}");
    }
    let fields = object.fields().unwrap();
    assert_eq!(said["fields"].as_array().unwrap().len(), fields.len(), "{at}");
    for (json, value) in said["fields"].as_array().unwrap().iter().zip(&fields) {
        same_value(json, value, &at);
        // The last field with a name hides the others.
        let found = object.field(&value.name()).unwrap();
        assert!(found.offset() == value.offset() || fields.iter().filter(|f| f.name() == value.name()).count() > 1, "{at}");
    }
    if object.is_array() {
        assert_eq!(said["length"], object.length().unwrap(), "{at}");
        let elements: Vec<Value> = object.elements().unwrap().take(100).collect();
        assert_eq!(said["elements"].as_array().unwrap().len(), elements.len(), "{at}");
        said["elements"].as_array().unwrap().iter().zip(&elements).for_each(|(json, value)| same_value(json, value, &at));
    }
}

fn same_value(json: &Json, value: &Value, at: &str) {
    let at = format!("{at} {value:?}");
    assert_eq!(serde_json::to_value(value.to_model().unwrap()).unwrap(), *json, "{at}");
    assert_eq!(json["text"], value.text(), "{at}");
    assert_eq!((&json["name"], &json["type"]), (&value.name().into(), &value.type_name().into()), "{at}");
    match json["type"].as_str().unwrap() {
        "System.Boolean" => assert_eq!(json["value"], value.read::<bool>().unwrap(), "{at}"),
        "System.Byte" => assert_eq!(json["value"], value.read::<u8>().unwrap(), "{at}"),
        "System.SByte" => assert_eq!(json["value"], value.read::<i8>().unwrap(), "{at}"),
        "System.UInt16" => assert_eq!(json["value"], value.read::<u16>().unwrap(), "{at}"),
        "System.Int16" => assert_eq!(json["value"], value.read::<i16>().unwrap(), "{at}"),
        "System.UInt32" => assert_eq!(json["value"], value.read::<u32>().unwrap(), "{at}"),
        "System.Int32" => {
            assert_eq!(json["value"], value.read::<i32>().unwrap(), "{at}");
            assert_eq!(json["value"].as_i64().unwrap(), i64::try_from(value.read::<i128>().unwrap()).unwrap(), "{at}");
        }
        "System.UInt64" => assert_eq!(json["value"], value.read::<u64>().unwrap(), "{at}"),
        "System.Int64" => assert_eq!(json["value"], value.read::<i64>().unwrap(), "{at}"),
        "System.Double" if json["value"].is_number() => assert_eq!(json["value"], value.read::<f64>().unwrap(), "{at}"),
        "System.Char" => assert_eq!(json["value"], value.read::<char>().unwrap().to_string(), "{at}"),
        "System.IntPtr" | "System.UIntPtr" => assert_eq!(json["value"], value.read::<Addr>().unwrap().to_string(), "{at}"),
        "System.String" if json["truncated"] == false => {
            assert_eq!(json["value"], Json::from(value.read::<Option<String>>().unwrap()), "{at}")
        }
        _ if value.is_reference() => {
            let target = value.read::<Option<Object>>().unwrap();
            assert_eq!(json["object"], Json::from(target.as_ref().map(|o| o.address().to_string())), "{at}");
            assert_eq!(json["object_type"], Json::from(target.as_ref().map(Object::type_name)), "{at}");
        }
        _ => {}
    }
    for nested in json["fields"].as_array().unwrap() {
        let field = value.field(nested["name"].as_str().unwrap()).unwrap();
        assert_eq!(nested["text"], field.text(), "{at} {field:?}");
    }
}

#[test]
fn values_match_the_object_command() {
    for path in [own_dump(), corpus("net8-wks-basics-heap"), corpus("net9-wks-basics-heap"), corpus("win-net10-wks-basics-heap")] {
        let heap = heap(&path);
        for pattern in
            ["Lab.Everything", "Lab.Dog", "Lab.Dog[]", "Lab.Tagged[]", "System.Int32[[],]*", "System.Collections.Generic.List<*>"]
        {
            for object in heap.objects_of(pattern).unwrap().take(2) {
                same_as_json(&path, &object);
            }
        }
        same_as_json(&path, &first(&heap, "System.String"));
    }
}

#[test]
fn errors_describe_what_was_found() {
    let heap = heap(&own_dump());
    let all = first(&heap, "Lab.Everything");
    let field = |name: &str| all.field(name).unwrap();
    assert_eq!(message(field("I64").read::<i32>()), r#"field "I64" of Lab.Everything is System.Int64, not System.Int32"#);
    assert_eq!(message(field("Colour").read::<i32>()), r#"field "Colour" of Lab.Everything is Lab.Color (System.Byte), not System.Int32"#);
    assert_eq!(message(field("Numbers").read::<i32>()), r#"field "Numbers" of Lab.Everything is System.Int32[], not System.Int32"#);
    assert_eq!(message(field("Numbers").read::<String>()), r#"field "Numbers" of Lab.Everything is System.Int32[], not System.String"#);
    assert_eq!(message(field("I64").object()), r#"field "I64" of Lab.Everything is System.Int64, not a reference"#);
    assert_eq!(message(field("I64").field("x")), r#"field "I64" of Lab.Everything is System.Int64, not a structure"#);
    let dog = first(&heap, "Lab.Dog");
    assert_eq!(message(dog.field("_nam")), r#"no field "_nam" in Lab.Dog; it has _name, _age, Friend, _tag"#);
    let numbers = field("Numbers").object().unwrap();
    assert_eq!(message(numbers.element(6)), "there is no element 6 in a System.Int32[] of 6");
    assert_eq!(message(numbers.field("x")), r#"no field "x" in System.Int32[]; it has none"#);
    let is = message(numbers.string());
    assert_eq!(is, format!("the object at {} is System.Int32[], not System.String", numbers.address()));
    let null = first(&heap, "Lab.Node").field("Next").unwrap();
    assert_eq!(message(null.object()), r#"field "Next" of Lab.Node is null"#);
    assert!(null.read::<Option<Object>>().unwrap().is_none());
    assert!(matches!(heap.object(Addr(8)), Err(Error::NoObject(Addr(8)))));
    let runtime = heap.runtime();
    assert_eq!(message(runtime.type_named("Lab.Nothing")), "no type Lab.Nothing is loaded");
    let wrong = runtime.static_field("Lab.Program", "thecache");
    assert!(matches!(wrong, Err(Error::Value(ValueError::NoField { have, .. })) if have.contains(&"theCache".to_string())));
}

#[test]
fn absent_memory_has_an_address() {
    // A mini dump: types and locations of static fields are known, but the heap is missing.
    let heap = heap(&corpus("net10-wks-basics-mini"));
    let program = heap.runtime().type_named("Lab.Program").unwrap();
    let n = program.static_field("n").unwrap();
    let absent = format!(r#"static field "n" of Lab.Program is not in the dump: 4 bytes at {} were not captured"#, n.address());
    assert_eq!(message(n.read::<i32>()), absent);
    assert_eq!(n.text(), "<not in the dump>");
    let keep = program.static_field("Keep").unwrap();
    assert!(matches!(keep.object(), Err(Error::Value(ValueError::Absent { address, bytes: 8, .. })) if address == keep.address()));
    let mut objects = heap.objects();
    objects.by_ref().for_each(drop);
    assert!(!objects.notes().complete());
}

#[test]
fn objects_by_address() {
    let heap = heap(&own_dump());
    let dog = first(&heap, "Lab.Dog");
    assert_eq!(heap.object(dog.address()).unwrap(), dog);
    assert_eq!(heap.object_around(dog.address().plus(9)).unwrap(), dog);
    assert_eq!(dog.ty().bases().map(|t| t.name()).collect::<Vec<_>>(), ["Lab.Animal", "System.Object"]);
    assert!(dog.ty().is_a("Lab.Animal") && !dog.ty().is_a("Lab.Cat"));
    let held: Vec<_> = dog.references().into_iter().map(|r| (r.field.unwrap(), r.object.unwrap().type_name())).collect();
    assert_eq!(held, [("_name".to_string(), "System.String".to_string()), ("Friend".into(), "Lab.Dog".into())]);
    let everything = heap.runtime().static_field("Lab.Everything", "StaticOne").unwrap().object().unwrap();
    assert_eq!(everything, first(&heap, "Lab.Everything"));
    let boxed = everything.field("Boxed").unwrap().object().unwrap().boxed().unwrap();
    assert_eq!(boxed.read::<f64>().unwrap().to_string(), boxed.text());
    assert!(message(dog.boxed()).ends_with("is Lab.Dog, not a boxed value"));
}

#[test]
fn iterators_stop_and_run_in_parallel() {
    for path in [own_dump(), corpus("net10-svr-basics-heap"), corpus("net8-wks-basics-heap")] {
        let heap = heap(&path);
        let (_, stat) = ask(&path, &["stat", "--top", "0"]);
        let totals = &stat["data"]["totals"];
        let number = |name: &str| totals[name].as_u64().unwrap();
        let expected = (number("count"), number("bytes"));

        let mut all = heap.objects();
        let sum = |(count, bytes): (u64, u64), o: Object| (count + 1, bytes + o.size());
        assert_eq!(all.by_ref().fold((0, 0), sum), expected, "{}", path.display());
        assert_eq!(all.notes().complete(), stat["data"]["complete"] == true);
        let parallel = heap.par_objects().fold(|| (0, 0), sum).reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        assert_eq!(parallel, expected);
        let by_segment: usize = heap.segments().par_iter().map(|s| s.objects().count()).sum();
        assert_eq!(by_segment as u64, expected.0);

        let some: Vec<Addr> = heap.objects().take(100).map(|o| o.address()).collect();
        assert_eq!(some, heap.objects().map(|o| o.address()).take(100).collect::<Vec<_>>());
        for row in stat["data"]["types"].as_array().unwrap().iter().filter(|r| r["type"] != "Free").take(5) {
            let objects = heap.objects_of(row["type"].as_str().unwrap()).unwrap();
            assert_eq!(row["count"], objects.filter(|o| o.method_table().to_string() == row["method_table"]).count(), "{row}");
        }
    }
}

#[test]
fn retained_sizes_match_the_command() {
    let path = own_dump();
    let heap = heap(&path);
    let (_, answer) = ask(&path, &["retained", "--top", "5"]);
    let rows = answer["data"]["objects"].as_array().unwrap();
    assert_eq!(rows.len(), 5);
    for row in rows {
        let at = u64::from_str_radix(row["address"].as_str().unwrap().trim_start_matches("0x"), 16).unwrap();
        let object = heap.object(Addr(at)).unwrap();
        assert_eq!(row["retained"], object.retained_size().unwrap(), "{row}");
        assert!(!object.paths().unwrap().paths.is_empty());
    }
    assert_eq!(heap.roots().unwrap().complete(), heap.roots().unwrap().complete());
}

#[test]
fn options_build_up() {
    let dump = OpenOptions::new().modules("/nowhere").limits(gcdump::Limits::default()).open(own_dump()).unwrap();
    assert!(dump.runtime().is_ok());
    assert!(matches!(gcdump::open("/nowhere/at.dmp"), Err(Error::Dump(_))));
}

fn output(run: impl Fn(&[String], &mut dyn std::io::Write) -> Result<(), Box<dyn std::error::Error>>, args: &[&str]) -> String {
    let own = own_dump().to_str().unwrap().to_string();
    let args: Vec<String> = std::iter::once(own).chain(args.iter().map(ToString::to_string)).collect();
    let mut out = Vec::new();
    run(&args, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn examples_run() {
    let text = output(top_types::run, &[]);
    assert_eq!(text.lines().count(), 11, "{text}");
    let text = output(instances::run, &[]);
    assert!(text.lines().count() == 100 && text.contains("\"dog1\"") && !text.contains('<'), "{text}");
    let text = output(who_holds::run, &[]);
    assert!(text.contains("Lab.Dog[] retains") && text.contains("field [1]") && text.contains("Lab.Program.Keep"), "{text}");
    let text = output(tour::run, &[]);
    assert!(text.contains("args is a System.String[]") && text.contains("roots: {") && text.contains("objects are reachable"), "{text}");
    let text = output(leak_rule::run, &[corpus("net8-wks-basics-heap").to_str().unwrap()]);
    assert!(text.lines().count() == 2 && text.lines().all(|l| l.contains(" lists with ")), "{text}");
}
