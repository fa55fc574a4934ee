//! One small answer in every format.

use std::borrow::Cow;

use serde::Serialize;

use super::columns::{Columns, Readers, Row, columns};
use super::report::{Cluster, Graph, Report, Sections};
use super::table::Table;
use super::{Cell, Format, List, Screen, Seen, Target, View, emit, stream};
use crate::base::{Addr, Answer, Name, NoteKind, Notes};
use crate::model::{DumpModel, Head};

#[derive(Clone, Serialize)]
struct Cat {
    name: String,
    at: Addr,
    weight: Option<u64>,
}

fn cat_columns<'r>() -> Columns<'r, Cat> {
    columns![
        Cat,
        address(at),
        bytes(weight),
        id("tag", |_| 1234u64).only(Readers::Machines),
        text(name, 8),
        share("share", |_| 0.25).only(Readers::People)
    ]
}

/// A row with fields of each type that columns show.
#[derive(Serialize)]
struct Kitten<'r> {
    of: &'r Cat,
    type_name: Name,
    father: Option<Name>,
    lives: u32,
    chipped: Option<bool>,
    place: Cow<'r, str>,
    note: Option<String>,
}

#[test]
fn columns_show_the_fields_that_they_name() {
    let of = Cat { name: "Tom".into(), at: Addr(16), weight: Some(1) };
    let suffix = "!".to_string();
    let columns = columns![
        Kitten<'_>,
        text(of.name, 8),
        address(of.at).keep(7).when(true),
        bytes("heavy" = of.weight).when(false).keep(1),
        names(type_name, 8),
        names(father, 8),
        id(lives).keep(3),
        word(chipped, 5),
        text(place, 8),
        text(note, 8),
        count("letters", |k| k.of.name.len()),
        text("loud", 8, |k| format!("{}{suffix}", k.of.name)),
    ];
    let row = Kitten { of: &of, type_name: "Cat".into(), father: None, lives: 9, chipped: Some(true), place: "roof".into(), note: None };
    let text = |text: &'static str| Cell::Text(text.into());
    let wanted = [
        ("name", 5, text("Tom")),
        ("at", 7, Cell::Addr(of.at)),
        ("type", 7, Cell::Name(&row.type_name)),
        ("father", 7, Cell::None),
        ("lives", 3, Cell::Id(9)),
        ("chipped", 5, text("true")),
        ("place", 5, text("roof")),
        ("note", 5, Cell::None),
        ("letters", 5, Cell::Count(3)),
        ("loud", 5, text("Tom!")),
    ];
    let list = columns.list();
    let bound = columns.row(&row);
    let found = list.iter().enumerate().map(|(i, c)| (&*c.name, c.keep, bound.cell(i)));
    assert_eq!(found.collect::<Vec<_>>(), wanted);
}

#[derive(Serialize)]
struct Nothing {}

#[derive(Serialize)]
struct Cats {
    cats: Vec<Cat>,
}

impl Report for Cats {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.line("Cats:");
        to.table(Table::records("cat", &self.cats, cat_columns()).csv(true));
        to.gap();
        to.facts([("many", self.cats.len().to_string()), ("complete", to.complete.to_string())]);
        to.lines(self.cats.iter().map(|c| format!("{} purrs", c.name)));
        to.itself("cats", self);
        to.record("nothing", &Nothing {});
    }

    fn graph(&self) -> Option<Graph<'_>> {
        let nodes = || -> Box<dyn Iterator<Item = (String, String)> + '_> {
            Box::new(self.cats.iter().map(|c| (c.at.to_string(), c.name.clone())))
        };
        let clusters = std::iter::once_with(move || Cluster { id: 0, label: "all".into(), nodes: Some(nodes()) });
        Some(Graph { name: "cats", clusters: Box::new(clusters), edges: Box::new([(0, 0)].into_iter()) })
    }
}

impl Clone for Nothing {
    fn clone(&self) -> Nothing {
        Nothing {}
    }
}

fn head() -> Head {
    let dump = DumpModel {
        path: "a.dmp".into(),
        format: crate::model::Container::ElfCore,
        compression: None,
        file_bytes: 1,
        captured_bytes: 1,
        os: crate::base::Os::Linux,
        architecture: crate::base::Arch::X64,
        pointer_bytes: 8,
        process_id: None,
    };
    Head { schema: "s".into(), command: "cats".into(), gcdump: "0".into(), dump, runtime: None, runtimes: 0, pages: Vec::new() }
}

fn cat(i: u64) -> Cat {
    Cat { name: format!("Tom \"{i}\", Esq."), at: Addr(0x1000 + i), weight: i.is_multiple_of(2).then_some(4000 + i) }
}

fn print(format: Format) -> String {
    let mut notes = Notes::new();
    notes.add(NoteKind::Missing, None, "a leg");
    let answer = Answer::new(Cats { cats: vec![cat(0), cat(1)] }, notes);
    let mut out = Vec::new();
    emit(
        &head(),
        &answer,
        format,
        Target { out: &mut out, screen: Screen::NONE, seen: None, select: &[], most: None, view: View::default() },
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn every_format_prints_the_answer() {
    let table =
        "Cats:\n    AT  WEIGHT NAME           SHARE\n0x1000   4,000 Tom \"0\", Esq.  25.0 %\n0x1001       - Tom \"1\", Esq.  25.0 %\n\n";
    let squeeze = |text: &str| text.split(' ').filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
    let people = print(Format::Table);
    assert!(squeeze(&people).starts_with(&squeeze(table)), "{people}");
    assert!(people.ends_with("many      2\ncomplete  false\nTom \"0\", Esq. purrs\nTom \"1\", Esq. purrs\n"), "{people}");
    assert_eq!(print(Format::Csv), "at,weight,tag,name\n0x1000,4000,1234,\"Tom \"\"0\"\", Esq.\"\n0x1001,,1234,\"Tom \"\"1\"\", Esq.\"\n");
    let ndjson = print(Format::Ndjson);
    let lines: Vec<&str> = ndjson.lines().skip(1).collect();
    assert_eq!(lines[0], r#"{"record":"cat","name":"Tom \"0\", Esq.","at":"0x1000","weight":4000}"#);
    assert!(lines[2].starts_with(r#"{"record":"cats","complete":false,"cats":[{"#), "{ndjson}");
    assert_eq!(lines[3], r#"{"record":"nothing"}"#);
    assert!(lines[4].starts_with(r#"{"record":"footer","rows":4,"complete":false,"warnings":[{"kind":"missing","#), "{ndjson}");
    let json: serde_json::Value = serde_json::from_str(&print(Format::Json)).unwrap();
    assert_eq!((&json["data"]["complete"], &json["data"]["cats"][1]["weight"]), (&false.into(), &serde_json::Value::Null));
    let dot = print(Format::Dot);
    assert!(dot.contains("\"0x1000\" [label=\"Tom \\\"0\\\", Esq.\"]") && dot.contains("s0 -> s0;"), "{dot}");
    for format in Format::ALL {
        assert_eq!(Format::named(format.name()), Some(*format));
        assert!(!format.help().is_empty() && !format.help().ends_with('.'));
    }
}

#[derive(Serialize)]
struct Tail {
    listed: u64,
}

impl Report for Tail {
    fn describe<'r>(&'r self, _: &mut Sections<'r>) {}
}

fn streamed(format: Format) -> Result<String, std::io::Error> {
    let list = List::new("cats", "cat", cat_columns());
    let mut out = Vec::new();
    let _ = stream(
        &head(),
        &list,
        format,
        Target { out: &mut out, screen: Screen::NONE, seen: None, select: &[], most: None, view: View::default() },
        |batches| {
            for batch in 0..200u64 {
                // Later batches are shorter, so that they are finished before earlier ones.
                let rows = (200 - batch) * 3;
                let first = (0..batch).map(|b| (200 - b) * 3).sum::<u64>();
                batches.print(usize::try_from(rows).unwrap(), move |row| (first..first + rows).try_for_each(|i| row(&cat(i))))?;
            }
            Ok(Answer::whole(Tail { listed: 60_300 }))
        },
    )?;
    Ok(String::from_utf8(out).unwrap())
}

#[test]
fn batches_are_written_in_order() {
    let csv = streamed(Format::Csv).unwrap();
    let addresses = csv.lines().skip(1).map(|l| l.split(',').next().unwrap().to_string());
    assert!(addresses.eq((0..60_300).map(|i| Addr(0x1000 + i).to_string())));
    let json: serde_json::Value = serde_json::from_str(&streamed(Format::Json).unwrap()).unwrap();
    assert_eq!((json["data"]["cats"].as_array().unwrap().len(), &json["data"]["listed"]), (60_300, &60_300.into()));
    assert_eq!(json["data"]["complete"], true);
    let ndjson = streamed(Format::Ndjson).unwrap();
    assert!(ndjson.ends_with("{\"record\":\"footer\",\"rows\":60300,\"complete\":true,\"warnings\":[]}\n"));
    // Simulates a pool with a single thread.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    assert_eq!(pool.install(|| streamed(Format::Csv).unwrap()), csv);
    assert_eq!(streamed(Format::Dot).unwrap_err().kind(), std::io::ErrorKind::Unsupported);
}

#[test]
fn terminals_show_the_names_of_rows() {
    let cat = |name: &str, at| Cat { name: name.into(), at: Addr(at), weight: None };
    let answer = Answer::new(Cats { cats: vec![cat("Tom", 0x10), cat("Nobody", 0), cat("Ada", 0x20)] }, Notes::new());
    let head = head();
    let show = |screen: Screen, seen: Option<&Seen>| {
        let mut out = Vec::new();
        emit(&head, &answer, Format::Table, Target { out: &mut out, screen, seen, select: &[], most: None, view: View::default() })
            .unwrap();
        String::from_utf8(out).unwrap()
    };
    let screen = Screen::terminal(Some(80), None);
    let seen = Seen::after(0).numbered_from(8);
    let shown = show(screen, Some(&seen));
    let starts: Vec<&str> = shown.lines().skip(1).take(4).map(|l| l.get(..5).unwrap()).collect();
    assert_eq!(starts, ["     ", " $9  ", "     ", "$11  "], "{shown}");
    assert_eq!(seen.take().concat().len(), 3);
    // Row names are not shown in pipes, or if rows are not recorded.
    assert!(!show(Screen::NONE, Some(&Seen::after(0))).contains('$') && !show(screen, None).contains('$'));
    assert!(show(screen.colored(true), Some(&Seen::after(0))).contains("\u{1b}[2m$1\u{1b}[0m"));
}
