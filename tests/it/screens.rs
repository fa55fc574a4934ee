//! Output on terminals: tables fit the width, dropped columns are reported, numbers and addresses stay whole, pipes get everything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use gcdump::cli::{COMMANDS, Cli, Screen, Seen, Streams};
use gcdump::internals::base::Addr;
use gcdump::internals::session::{Dump, OpenOptions};
use unicode_width::UnicodeWidthStr;

use crate::common::{self, Ran, cases, commands, parsed, run, run_on, sample};

/// Common widths of terminals.
const WIDTHS: [usize; 4] = [80, 100, 120, 200];
/// Height of the terminal.
const HEIGHT: usize = 40;

fn terminal(width: usize) -> Screen {
    Screen::terminal(Some(width), Some(HEIGHT))
}

fn corpus(name: &str) -> String {
    format!("dumps/corpus/{name}.dmp.zst")
}

/// Returns the dump on which a command has most to show.
fn subject(command: &str) -> String {
    let name = match command {
        "locks" => "net10-wks-deadlock-heap",
        "async" => "net10-wks-async-heap",
        "pool" => "net10-wks-starve-heap",
        "requests" | "timers" => "net10-wks-http-heap",
        "threads" | "exceptions" | "info" => "net10-wks-crash-heap",
        "stacks" => "net10-wks-stacks-heap",
        "retained" | "path" => "net10-wks-suspects-heap",
        "handles" => "net10-svr-handles-heap",
        "inspect" => "net10-wks-inspect-heap",
        "oom" => "net10-svr-oom-heap",
        "fragmentation" => "net10-seg-fragmented-heap",
        "finalizers" => "net10-wks-finalizers-heap",
        "bridge" => "net10-wks-bridge-heap",
        "memory" => "net10-wks-wait-kernel",
        _ => return "dumps/net10-wks-basics-heap.dmp.zst".into(),
    };
    corpus(name)
}

#[test]
fn a_terminal_shows_the_rows_that_fit_and_names_the_rest() {
    let screen = Screen::terminal(Some(100), Some(14));
    let rows = |ran: &Ran| ran.out.lines().filter(|line| line.contains("0x")).count();
    for (command, name, most) in
        [("threads", "net10-svr-threads-heap", 5), ("timers", "net10-wks-http-heap", 15), ("exceptions", "net10-wks-crash-heap", 5)]
    {
        let line = [command, "--no-local-files", &corpus(name)];
        let (cut, whole) = (run_on(screen, &line), run_on(screen, &[&line[..], &["--top", "0"]].concat()));
        let piped = run(&line);
        assert!(!whole.out.contains("more (--top 0") && !piped.out.contains("more (--top 0"), "{command}: {}", whole.out);
        if rows(&piped) > most + 10 {
            assert!(cut.out.contains("more (--top 0 lists all)") && rows(&cut) < rows(&whole), "{command}: {}", cut.out);
        }
        // Totals cover all rows.
        assert_eq!(cut.out.lines().last(), whole.out.lines().last(), "{command}");
    }
    let threads = ["threads", "--no-local-files", &corpus("net10-svr-threads-heap")];
    let all = run(&[&threads[..], &["--json"]].concat()).json()["data"]["threads"].as_array().unwrap().len();
    assert!(all > 5, "{all}");
    let cut = run_on(screen, &threads);
    assert!(cut.out.contains(&format!("… {} more (--top 0 lists all)", all - 5)), "{}", cut.out);
    // JSON on a terminal has all rows.
    assert_eq!(run_on(screen, &[&threads[..], &["--json"]].concat()).json()["data"]["threads"].as_array().unwrap().len(), all);
}

/// Returns the address of a row in the answer to `command`, which is its largest object.
fn first_address(command: &[&str], list: &str, dump: &str) -> Option<String> {
    let answer = run(&[command, &["--json", "--no-local-files", dump]].concat()).json();
    let row = answer["data"][list].as_array()?.iter().max_by_key(|r| r["size"].as_u64())?;
    Some(row["address"].as_str()?.to_string())
}

/// Returns the address of an object with fields, if there is one.
fn object(dump: &str) -> Option<String> {
    first_address(&["objects", "--type", "Lab.*"], "objects", dump).or_else(|| first_address(&["objects"], "objects", dump))
}

/// Returns an example with its placeholders filled in.
fn filled(form: &[String], dump: &str, out: &Path) -> Vec<String> {
    let mut args = commands::filled(form, |word| match word {
        "DUMP" => Some(dump.into()),
        "BEFORE" => Some(corpus("net10-wks-leak-heap.before")),
        "AFTER" => Some(corpus("net10-wks-leak-heap.after")),
        "ADDR" => object(dump),
        "HANDLE" => first_address(&["handles"], "handles", dump),
        "OUT" => Some(out.to_str().unwrap().into()),
        _ => None,
    });
    args.push("--no-local-files".into());
    args
}

/// Returns the output of `args` at 80, 120 and 200 columns, and in a pipe.
fn at_widths(args: &[String]) -> String {
    let screens = [("80 columns", terminal(80)), ("120 columns", terminal(120)), ("200 columns", terminal(200)), ("pipe", Screen::NONE)];
    let shown = screens.map(|(name, screen)| {
        let ran = run_on(screen, args);
        format!("──── {name} ────\n{}{}", ran.out, ran.err)
    });
    shown.concat()
}

/// Pictures: blocks on terminals, letters and numbers in a pipe.
#[test]
fn pictures_have_their_snapshots() {
    let pictures: [(&str, &[&str], &str); 5] = [
        ("heap_map", &["heap", "--map"], "net10-seg-fragmented-heap"),
        ("heap_map_garbage", &["heap", "--map", "--garbage"], "net10-wks-suspects-heap"),
        ("heap_map_server", &["heap", "--map"], "net10-svr-handles-heap"),
        ("heap_map_partial", &["heap", "--map"], "net8-wks-crash-mini"),
        ("retained_tree", &["retained", "--tree"], "net10-wks-suspects-heap"),
    ];
    for (name, args, dump) in pictures {
        let dump = corpus(dump);
        let args: Vec<String> = args.iter().chain(&["--no-local-files", dump.as_str()]).map(|a| a.to_string()).collect();
        let text = at_widths(&args);
        let (screens, pipe) = text.split_once("──── pipe ────").unwrap();
        assert!(!pipe.contains(['█', '▓', '▒', '░', '▚', '─', '·', '▏']), "{name}: a pipe gets blocks\n{pipe}");
        assert!(name == "heap_map_partial" || screens.contains('█'), "{name}");
        insta::assert_snapshot!(format!("picture_{name}"), text);
    }
}

/// The first example of every command at 80, 120 and 200 columns, and in a pipe.
#[test]
fn every_command_has_its_snapshots() {
    let folder = tempfile::tempdir().unwrap();
    let work = |entry: &gcdump::cli::Entry| {
        let form = commands::words(entry.examples[0].line);
        let out = folder.path().join(format!("{}.dmp", entry.name));
        let mut args = filled(&form, &subject(entry.name), &out);
        if form.iter().any(|w| w == "OUT") {
            args.push("--force".into());
        }
        let text = at_widths(&args);
        // The folder differs in length as well.
        let place = folder.path().display().to_string();
        let lines = text.lines().filter(|l| !l.starts_with("written") && !l.contains(&place));
        (entry.name, lines.fold(String::new(), |all, line| all + line + "\n"))
    };
    let entries: Vec<&gcdump::cli::Entry> = sample(COMMANDS.iter(), 9);
    for (name, text) in common::each(&entries, |e| work(e)) {
        insta::assert_snapshot!(format!("screen_{name}"), text);
    }
}

/// Command lines besides the examples of the registry.
const MORE: &[&[&str]] = &[
    &["heap", "--detail"],
    &["heap", "--map"],
    &["stat", "--by", "segment"],
    &["stat", "--top", "0"],
    &["objects"],
    &["objects", "--count", "0"],
    &["objects", "--refs", "--count", "0"],
    &["type", "Lab*"],
    &["statics", "--all"],
    &["strings", "--top", "0"],
    &["strings", "--longest"],
    &["handles"],
    &["roots"],
    &["finalizers", "--objects"],
    &["retained", "--top", "0"],
    &["retained", "--tree", "--depth", "20", "--threshold", "0.1"],
    &["retained", "--suspects", "--threshold", "1"],
    &["unreachable", "--objects"],
    &["locks", "--all"],
    &["async", "--all"],
    &["fragmentation", "--segments"],
];

struct Subject {
    dump: Dump,
    clis: Vec<(String, Cli)>,
}

fn shown(cli: &Cli, dump: &Dump, screen: Screen, seen: Option<&Seen>) -> Ran {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let streams = Streams { screen, err_screen: screen, seen, ..Streams::piped(&mut out, &mut err) };
    let exit = cli.run_on(std::slice::from_ref(dump), streams);
    Ran { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}

impl Subject {
    fn of(name: &str, folder: &Path) -> Subject {
        let path: PathBuf = folder.join(format!("{name}.dmp"));
        zstd::stream::copy_decode(File::open(corpus(name)).unwrap(), File::create(&path).unwrap()).unwrap();
        let text = path.to_str().unwrap();
        let mut forms = commands::forms(MORE);
        forms.retain(|f| !f.iter().any(|w| ["OUT", "HANDLE", "BEFORE", "--dot", "--format"].contains(&w.as_str())));
        let clis = forms.iter().map(|f| filled(f, text, folder)).map(|args| (args.join(" "), parsed(&args))).collect();
        Subject { dump: Dump::open(&path, &OpenOptions::default()).unwrap(), clis }
    }
}

/// Returns the numbers and addresses in `text` that are not next to a letter, ellipsis or dot.
fn numbers(text: &str) -> BTreeSet<String> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, ',' | '.' | '_' | '…' | '+' | '`');
    let words = text.split(|c: char| !part(c));
    let number = |w: &&str| {
        let digits = w.strip_prefix("0x").map_or(w.trim_end_matches(','), |hex| hex.trim_end_matches(','));
        !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit() || c == ',') && w.starts_with(|c: char| c.is_ascii_digit())
    };
    words.filter(number).map(|w| w.trim_end_matches(',').to_string()).collect()
}

#[test]
fn lines_fit_and_keep_numbers_whole() {
    let names =
        ["net10-wks-threads-heap", "net10-wks-deadlock-heap", "net10-wks-colls-heap", "net10-svr-handles-heap", "net8-wks-crash-mini"];
    let more =
        ["net10-wks-async-heap", "net10-wks-http-heap", "net10-wks-suspects-heap", "net10-wks-inspect-heap", "net10-seg-fragmented-heap"];
    let names: Vec<&str> = names.iter().chain(&more).copied().filter(|n| Path::new(&corpus(n)).exists()).take(cases(1, 5)).collect();
    let folder = tempfile::tempdir().unwrap();
    let hidden = common::each(&names, |name| {
        let subject = Subject::of(name, folder.path());
        let mut hidden = BTreeMap::<usize, usize>::new();
        // JSON is not broken into lines.
        for (line, cli) in sample(subject.clis.iter().filter(|(line, _)| !line.contains("--json")), 4) {
            let wide = shown(cli, &subject.dump, terminal(80).wide(), None);
            let known = numbers(&wide.out);
            for width in WIDTHS {
                let ran = shown(cli, &subject.dump, terminal(width), None);
                assert_eq!(ran.exit, wide.exit, "{line}");
                for text in ran.out.lines() {
                    assert!(text.width() <= width, "{line} at {width}:\n{text}");
                }
                // Digits in a string of the dump are text, which may wrap anywhere.
                let text = ["strings ", "object "].iter().any(|command| line.starts_with(command));
                let mut cut: Vec<String> = numbers(&ran.out).difference(&known).cloned().collect();
                cut.retain(|n| !text || n.starts_with("0x"));
                assert!(cut.is_empty(), "{line} at {width} shows {cut:?}, which it does not with --wide\n{}", ran.out);
                *hidden.entry(width).or_default() += ran.out.matches(" hidden: --wide").count();
            }
            assert!(!wide.out.contains(" hidden: --wide"), "{line}");
        }
        hidden
    });
    // Narrow terminals have to drop columns, wide ones hardly.
    let of = |width: usize| hidden.iter().map(|h| h[&width]).sum::<usize>();
    println!("tables with hidden columns: {:?}", WIDTHS.map(of));
    assert!(of(80) > of(120) && of(120) > of(200), "{:?}", WIDTHS.map(of));
}

/// Returns `text` without the escape sequences of colors.
pub fn without_colors(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("\x1b[") {
        out.push_str(&rest[..at]);
        let sequence = &rest[at + 2..];
        let end = sequence.find(|c: char| !(c.is_ascii_digit() || c == ';')).unwrap();
        assert_eq!(&sequence[end..=end], "m", "no color: {:?}", &rest[at..at + end + 3]);
        rest = &sequence[end + 1..];
    }
    out + rest
}

#[test]
fn colors_change_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let subject = Subject::of("net10-wks-deadlock-heap", folder.path());
    let mut colored = 0;
    for (line, cli) in sample(&subject.clis, 6) {
        for screen in [terminal(100), terminal(100).wide()] {
            let (plain, bright) = (shown(cli, &subject.dump, screen, None), shown(cli, &subject.dump, screen.colored(true), None));
            assert!(!plain.out.contains('\x1b'), "{line}");
            assert_eq!(without_colors(&bright.out), plain.out, "{line}");
            assert_eq!(without_colors(&bright.err), plain.err, "{line}");
            colored += usize::from(bright.out != plain.out);
        }
    }
    assert!(colored > cases(6, 40), "{colored}");
    // As in `gcdump … --color always | less -R`.
    let dump = corpus("net10-wks-deadlock-heap");
    let piped = |more: &[&str]| run(&[&["locks", "--no-local-files", &dump], more].concat()).out;
    assert!(piped(&["--color", "always"]).contains("\x1b[") && !piped(&[]).contains('\x1b'));
    assert_eq!(without_colors(&piped(&["--color", "always"])), piped(&[]), "a pipe gets everything");
    let never = run_on(terminal(80).colored(true), &["locks", "--color", "never", "--no-local-files", &dump]);
    assert!(!never.out.contains('\x1b') && never.out.contains("DEADLOCK"));
    let file = folder.path().join("out");
    let file = file.to_str().unwrap();
    run_on(terminal(80).colored(true), &["locks", "-o", file, "--no-local-files", &dump]);
    assert_eq!(std::fs::read_to_string(file).unwrap(), piped(&[]), "a file gets what a pipe gets");
    for format in ["json", "ndjson", "csv"] {
        let args = ["stat", "--format", format, "--color", "always", "--no-local-files", &dump];
        assert!(!run_on(terminal(80), &args).out.contains('\x1b'), "{format}");
    }
}

#[test]
fn titles_are_repeated_on_screens_only() {
    let dump = corpus("net10-wks-colls-heap");
    let args = ["objects", "--count", "0", "--no-local-files", &dump];
    let titles = |text: &str| text.lines().enumerate().filter(|(_, l)| l.contains("GENERATION")).map(|(i, _)| i).collect::<Vec<_>>();
    let long = titles(&run_on(Screen::terminal(Some(100), Some(30)), &args).out);
    assert!(long.len() > 10 && long.windows(2).all(|pair| pair[1] - pair[0] == 29), "{long:?}");
    assert_eq!(titles(&run_on(Screen::terminal(Some(100), None), &args).out), [0]);
    assert_eq!(titles(&run_on(Screen::terminal(Some(100), Some(30)).paged(), &args).out), [0]);
    assert_eq!(titles(&run(&args).out), [0]);
    // Tables whose widths are measured have them as well.
    let stat = titles_of(&run_on(Screen::terminal(Some(100), Some(30)), &["stat", "--top", "0", "--no-local-files", &dump]).out, "TYPE");
    assert!(stat > 2, "{stat}");
}

fn titles_of(text: &str, title: &str) -> usize {
    text.lines().filter(|l| l.ends_with(title)).count()
}

/// Returns the addresses that `seen` received.
fn addresses(seen: &Seen) -> Vec<Vec<Option<Addr>>> {
    seen.take().into_iter().map(|list| list.into_iter().map(|link| link.map(|l| l.address)).collect()).collect()
}

#[test]
fn the_addresses_of_the_rows_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let subject = Subject::of("net10-wks-colls-heap", folder.path());
    let seen = Seen::default();
    let path = folder.path().join("net10-wks-colls-heap.dmp");
    let path = path.to_str().unwrap();
    let leading = |text: &str| -> Vec<Option<Addr>> {
        // On terminals, the label of the row comes before it.
        let bare = |line: &str| line.split_whitespace().find(|word| !word.starts_with('$')).map(str::to_string);
        let first = |line: &str| u64::from_str_radix(bare(line)?.strip_prefix("0x")?, 16).ok().map(Addr);
        text.lines().map(first).filter(Option::is_some).collect()
    };
    for args in [&["objects"][..], &["objects", "--count", "0"], &["retained", "--tree"], &["strings", "--top", "0"]] {
        let cli = parsed(&[args, &["--no-local-files", path]].concat());
        for screen in [Screen::NONE, terminal(80)] {
            let ran = shown(&cli, &subject.dump, screen, Some(&seen));
            let lists = addresses(&seen);
            assert_eq!(lists.len(), 1, "{args:?}");
            assert!(!lists[0].is_empty() && lists[0].iter().all(Option::is_some), "{args:?}");
            if args[0] == "objects" {
                assert_eq!(lists[0], leading(&ran.out), "{args:?}");
            }
        }
    }
    // In tables, rows without an address are included; in lists of lines, only lines with one.
    let lists = |args: &[&str]| {
        shown(&parsed(&[args, &["--no-local-files", path]].concat()), &subject.dump, terminal(100), Some(&seen));
        addresses(&seen)
    };
    assert!(lists(&["stat", "--by", "generation"])[0].iter().all(Option::is_none));
    let held = lists(&["retained", "--tree"])[0][0].unwrap().to_string();
    assert!(lists(&["path", &held]).iter().flatten().any(|a| a.is_some_and(|a| a.to_string() == held)));
    assert_eq!(lists(&["objects", "--json"]), Vec::<Vec<Option<Addr>>>::new(), "only tables have rows");
}
