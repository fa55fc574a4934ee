//! The book in `docs`, and the README: the commands of transcripts print the shown output, pictures show what a terminal shows, and the table
//! of contents has every document. `GCDUMP_BLESS=1 cargo test --test it book::` rewrites outputs and pictures.
//!
//! A transcript is a block marked `console`. A line `…` replaces one or more lines of output.

use std::fs;
use std::path::{Path, PathBuf};

use anstyle::{Color, RgbColor};
use anstyle_svg::{Palette, Term};
use gcdump::cli::{Exit, Screen};

use crate::common::commands::words;
use crate::common::{run, run_on};
use crate::docs::{documents, root};

/// Columns of the terminal that transcripts show.
const COLUMNS: usize = 110;
/// The line that replaces lines that are left out.
const CUT: &str = "…";

fn blessed() -> bool {
    std::env::var_os("GCDUMP_BLESS").is_some()
}

fn terminal(columns: usize) -> Screen {
    Screen::terminal(Some(columns), None)
}

/// Runs `line`, without its prompt, on `screen`. Module files of this machine must not affect the output, so an option excludes them; it is
/// removed from commands that the answer suggests.
fn shown(line: &str, screen: Screen) -> (Exit, String) {
    const LOCAL: &str = " --no-local-files";
    let mut args = words(line.strip_prefix("gcdump ").unwrap_or_else(|| panic!("a transcript runs gcdump only: {line}")));
    args.push(LOCAL.trim().into());
    let ran = run_on(screen, &args);
    let text = format!("{}{}", ran.out, ran.err);
    let wrapped = text.lines().any(|l| l.ends_with(LOCAL) || l.trim_start().starts_with(LOCAL.trim()));
    assert!(!wrapped, "{line}: a proposed command is wrapped, as it would not be without{LOCAL}\n{text}");
    (ran.exit, text.replace(LOCAL, ""))
}

/// Returns the lines of `text` without blank ones at the end.
fn trimmed(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

/// Whether `wanted` equals `printed` if no line is a cut; otherwise, whether each cut replaces at least one line.
fn fits(wanted: &[&str], printed: &[&str]) -> bool {
    let parts: Vec<&[&str]> = wanted.split(|line| *line == CUT).collect();
    let [head, middle @ .., tail] = parts.as_slice() else { return wanted == printed };
    assert!(middle.iter().all(|part| !part.is_empty()), "two cuts in a row: {wanted:?}");
    let Some(mut rest) = printed.strip_prefix(*head) else { return false };
    for part in middle {
        let Some(at) = rest.windows(part.len()).skip(1).position(|window| window == *part) else { return false };
        rest = &rest[1 + at + part.len()..];
    }
    rest.len() > tail.len() && rest.ends_with(tail)
}

/// Returns `printed` with the cuts of `old`, whose parts are identified by their distance from the ends and by the words of their first line.
fn refitted(old: &[&str], printed: &[&str]) -> Vec<String> {
    let whole = || printed.iter().map(ToString::to_string).collect();
    let shape = |line: &str| line.split(|c: char| !c.is_alphabetic()).filter(|w| w.len() > 2).collect::<Vec<_>>().join(" ");
    let parts: Vec<&[&str]> = old.split(|line| *line == CUT).collect();
    if parts.len() == 1 {
        return whole();
    }
    let (mut out, mut from) = (Vec::new(), 0);
    for (i, part) in parts.iter().enumerate() {
        if i > 0 {
            out.push(CUT.to_string());
        }
        let Some(first) = part.first() else { continue };
        let rest = &printed[from.min(printed.len())..];
        let at = match i {
            0 => Some(0),
            _ if i + 1 == parts.len() => printed.len().checked_sub(part.len()).filter(|at| *at > from),
            _ => rest.iter().skip(1).position(|line| shape(line) == shape(first)).map(|at| from + 1 + at),
        };
        let Some(lines) = at.and_then(|at| printed.get(at..at + part.len())) else { return whole() };
        out.extend(lines.iter().map(ToString::to_string));
        from = at.unwrap_or(0) + part.len();
    }
    out
}

#[test]
fn cuts_leave_lines_out_and_change_none() {
    let printed = ["a", "b", "c", "d"];
    for good in [&["a", "b", "c", "d"][..], &["a", "…"], &["…", "d"], &["a", "…", "c", "…"], &["…", "b", "…", "d"], &["a", "…", "c", "d"]]
    {
        assert!(fits(good, &printed), "{good:?}");
    }
    let bad: [&[&str]; 9] = [
        &[],
        &["a", "b", "c"],
        &["b", "…"],
        &["…", "c"],
        &["a", "x", "…"],
        &["…", "c", "…", "b", "…"],
        // Nothing is left out at this cut.
        &["…", "a", "b", "c", "d"],
        &["a", "…", "b", "c", "d"],
        &["a", "b", "c", "d", "…"],
    ];
    for bad in bad {
        assert!(!fits(bad, &printed), "{bad:?}");
    }
    assert_eq!(refitted(&["size 1", "…", "end"], &["size 2", "more", "more", "end"]), ["size 2", "…", "end"]);
    assert_eq!(refitted(&["size 1", "…", "total 5", "…"], &["size 2", "more", "total 6", "end"]), ["size 2", "…", "total 6", "…"]);
    assert_eq!(refitted(&["size 1", "…", "count 5", "…"], &["size 2", "more"]), ["size 2", "more"]);
}

/// Replaces the output of each command in the transcript `block`; appends to `wrong` what it should be.
fn replay(block: &str, place: &str, count: &mut usize, wrong: &mut Vec<String>) -> String {
    let mut out = String::new();
    let mut exit: Option<Exit> = None;
    let mut rest = block;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let typed = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{place}: a transcript starts with a command: {line}"));
        let end = if after.starts_with("$ ") { 0 } else { after.find("\n$ ").map_or(after.len(), |at| at + 1) };
        let (old, next) = after.split_at(end);
        let text = if typed == "echo $?" {
            format!("{}\n", exit.map(Exit::code).unwrap_or_else(|| panic!("{place}: no command before {typed}")))
        } else {
            let (code, text) = shown(typed, terminal(COLUMNS));
            exit = Some(code);
            *count += 1;
            text
        };
        let (wanted, printed) = (trimmed(old), trimmed(&text));
        let right = fits(&wanted, &printed);
        let new = if right { wanted.iter().map(ToString::to_string).collect() } else { refitted(&wanted, &printed) };
        if !right {
            wrong.push(format!("{place}: $ {typed}\n{}", printed.join("\n")));
        }
        out.push_str(&format!("$ {typed}\n"));
        for line in &new {
            out.push_str(&format!("{line}\n"));
        }
        // The blank line between two commands.
        if !next.is_empty() && old.ends_with("\n\n") {
            out.push('\n');
        }
        rest = next;
    }
    out
}

#[test]
fn every_transcript_is_what_gcdump_prints() {
    let (mut count, mut wrong) = (0, Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let name = document.strip_prefix(root()).unwrap().display().to_string();
        let mut parts = text.split("```console\n");
        let mut new = parts.next().unwrap().to_string();
        for part in parts {
            let (block, rest) = part.split_once("```").unwrap_or_else(|| panic!("{name}: a block is not closed"));
            new.push_str(&format!("```console\n{}```{rest}", replay(block, &name, &mut count, &mut wrong)));
        }
        if blessed() && new != text {
            fs::write(&document, new).unwrap();
        }
    }
    assert!(blessed() || wrong.is_empty(), "{}\n\nGCDUMP_BLESS=1 cargo test --test it book:: rewrites them", wrong.join("\n\n"));
    assert!(count > 30, "only {count} commands found");
}

/// Commands with a prompt are in transcripts, so that they are run. Exceptions are the reference and the session of the shell, which have
/// other tests.
#[test]
fn commands_with_a_prompt_are_in_transcripts() {
    for document in documents() {
        let name = document.strip_prefix(root()).unwrap().display().to_string();
        if ["docs/cli.md", "docs/shell.md"].contains(&name.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&document).unwrap();
        let mut fence = None;
        for line in text.lines() {
            if let Some(kind) = line.strip_prefix("```") {
                fence = if fence.is_some() { None } else { Some(kind) };
            }
            assert!(!line.trim_start().starts_with("$ gcdump") || fence == Some("console"), "{name}: {line}");
        }
    }
}

/// Returns the command lines in `text` that are only named, in its sentences and in blocks for a shell.
fn named(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(kind) };
        } else if fence == Some("sh") {
            out.extend(line.starts_with("gcdump ").then(|| line.split(" #").next().unwrap_or(line)));
        } else if fence.is_none() {
            out.extend(line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("gcdump ")));
        }
    }
    out
}

/// Commands that are only named, because they need a dump, exist, and so do their options.
#[test]
fn named_commands_and_options_exist() {
    let general = run(&["help", "options"]).out;
    let (mut count, mut wrong) = (0, Vec::new());
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let lines = named(&text);
        for line in lines {
            // The word is an option that continues on the next line of the text, or a word to fill in.
            let mut words = line.split_whitespace().skip(1).filter(|w| !w.ends_with(".dmp"));
            let Some(command) = words.next().filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase())) else { continue };
            if command == "help" {
                continue;
            }
            count += 1;
            let help = run(&[command, "--help"]);
            let unknown = words
                .map(|w| w.split('=').next().unwrap_or(w))
                .find(|w| w.starts_with("--") && !(help.out.contains(w) || general.contains(w)));
            if help.exit != Exit::Ok || unknown.is_some() {
                wrong.push(format!("{}: {line}: {}", document.strip_prefix(root()).unwrap().display(), unknown.unwrap_or(command)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count > 50, "only {count} commands found");
}

/// Every dump that the book names is in the repository, except the reader's own.
#[test]
fn the_dumps_of_the_book_are_in_the_repository() {
    for document in documents() {
        for word in fs::read_to_string(&document).unwrap().split(|c: char| c.is_whitespace() || matches!(c, '`' | '(' | ')')) {
            if word.starts_with("dumps/") && word.ends_with(".zst") && !word.contains("NAME") {
                assert!(root().join(word).is_file(), "{}: {word}", document.display());
            }
        }
    }
}

/// The table of contents links to every document of the folder.
#[test]
fn the_table_of_contents_has_every_document() {
    let contents = fs::read_to_string(root().join("docs/README.md")).unwrap();
    for document in documents() {
        let Ok(path) = document.strip_prefix(root().join("docs")) else { continue };
        let link = format!("({})", path.display().to_string().replace('\\', "/"));
        assert!(path == Path::new("README.md") || contents.contains(&link), "docs/README.md has no link to {}", path.display());
    }
}

/// A picture of a terminal.
struct Picture {
    /// The file below `docs/images`.
    name: &'static str,
    /// Commands, with the lines of output that are shown.
    commands: &'static [(&'static str, usize)],
}

const PICTURES: &[Picture] = &[
    Picture {
        name: "leak.svg",
        commands: &[
            ("gcdump analyze dumps/corpus/net10-wks-suspects-heap.dmp.zst", 3),
            ("gcdump retained --tree --depth 3 dumps/corpus/net10-wks-suspects-heap.dmp.zst", 6),
            ("gcdump path 0x7fd091c12378 --paths 1 dumps/corpus/net10-wks-suspects-heap.dmp.zst", 3),
        ],
    },
    Picture { name: "map.svg", commands: &[("gcdump heap --map dumps/corpus/net10-seg-fragmented-heap.dmp.zst", 34)] },
];

/// Colors that can be read on the dark background of the pictures, which those of VGA cannot: black to white, then the bright ones.
const COLORS: Palette = {
    let eight = [
        RgbColor(0x48, 0x4f, 0x58),
        RgbColor(0xff, 0x7b, 0x72),
        RgbColor(0x7e, 0xe7, 0x87),
        RgbColor(0xe3, 0xb3, 0x41),
        RgbColor(0x58, 0xa6, 0xff),
        RgbColor(0xd2, 0xa8, 0xff),
        RgbColor(0x56, 0xd4, 0xdd),
        RgbColor(0xd0, 0xd7, 0xde),
    ];
    let [black, red, green, yellow, blue, magenta, cyan, white] = eight;
    Palette([black, red, green, yellow, blue, magenta, cyan, white, black, red, green, yellow, blue, magenta, cyan, white])
};
const INK: RgbColor = RgbColor(0xd0, 0xd7, 0xde);
const PAPER: RgbColor = RgbColor(0x0d, 0x11, 0x17);

fn picture(commands: &[(&str, usize)]) -> String {
    let mut text = String::new();
    for (command, first) in commands {
        let (_, shown) = shown(command, terminal(COLUMNS).colored(true));
        let lines: Vec<&str> = shown.trim_end().lines().collect();
        let cut = (*first).min(lines.len());
        text.push_str(&format!("\u{1b}[1m$ {command}\u{1b}[0m\n{}\n", lines[..cut].join("\n")));
        text.push_str(if cut < lines.len() { "…\n\n" } else { "\n" });
    }
    Term::new().palette(COLORS).fg_color(Color::Rgb(INK)).bg_color(Color::Rgb(PAPER)).render_svg(text.trim_end())
}

#[test]
fn pictures_show_what_terminals_show() {
    for Picture { name, commands } in PICTURES {
        let path: PathBuf = root().join("docs/images").join(name);
        let new = picture(commands);
        if blessed() {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &new).unwrap();
        }
        let old = fs::read_to_string(&path).unwrap_or_default();
        assert!(old == new, "docs/images/{name} is outdated; GCDUMP_BLESS=1 cargo test --test it book:: rewrites it");
    }
}
