//! The tools: which commands an assistant has, with which of their arguments.

use crate::cli::command::Entry;
use crate::cli::registry;

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Lists the dumps.
    List,
    /// Runs the command of this name on one dump.
    Command(&'static str),
    /// Runs the command of this name, which compares dumps.
    Compares(&'static str),
}

/// A limit on the rows of an answer: an argument of the command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The argument, as the command line has it.
    pub(super) option: &'static str,
    /// Rows if the tool is given no number.
    pub(super) usual: u64,
    /// Most rows.
    pub(super) most: u64,
}

/// A tool.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) does: Does,
    /// When to ask it, after what the command's help says.
    pub(super) when: &'static str,
    /// The arguments, as the command line has them.
    pub(super) arguments: &'static [&'static str],
    /// Those that it always needs.
    pub(super) required: &'static [&'static str],
    /// A flag that is on, unless it is `false` or one of the other arguments is given.
    pub(super) on: Option<(&'static str, &'static [&'static str])>,
    pub(super) rows: &'static [Rows],
    /// What to ask if an answer is too large.
    pub(super) instead: &'static str,
    /// Arguments as JSON, which the schema shows.
    pub(super) examples: &'static [&'static str],
}

impl Tool {
    /// The command that it runs.
    pub(super) fn entry(&self) -> Option<&'static Entry> {
        match self.does {
            Does::List => None,
            Does::Command(name) | Does::Compares(name) => registry::find(name),
        }
    }
}

/// `--top` of a command, or what it is called there.
const fn rows(option: &'static str) -> Rows {
    Rows { option, usual: 20, most: 200 }
}

const NONE: Tool = Tool {
    name: "",
    title: "",
    does: Does::List,
    when: "",
    arguments: &[],
    required: &[],
    on: None,
    rows: &[],
    instead: "",
    examples: &["{}"],
};

/// The tools, in the order in which an engineer asks.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "dumps",
        title: "Dump files",
        does: Does::List,
        when: "Ask this first, unless a dump is named already: the other tools take one of these paths as dump.",
        ..NONE
    },
    Tool {
        name: "info",
        title: "What a dump is and can answer",
        does: Does::Command("info"),
        when: "Ask this first of a dump: it says which other answers will be partial, and what would complete them.",
        ..NONE
    },
    Tool {
        name: "analyze",
        title: "What is wrong with the process",
        does: Does::Command("analyze"),
        when: "The best second question; with since, also for what leaks.",
        arguments: &["only", "since", "no-graph", "min-bytes", "min-share"],
        instead: "name some findings in only, or raise min_bytes",
        examples: &["{}", r#"{"only":["deadlock","lock-queue"],"no_graph":true}"#, r#"{"dump":"after.dmp","since":["before.dmp"]}"#],
        ..NONE
    },
    Tool {
        name: "heap",
        title: "The heap by generation",
        does: Does::Command("heap"),
        when: "For how large the heap is, and where.",
        arguments: &["heap", "detail"],
        instead: "name one heap, and leave out detail",
        examples: &["{}", r#"{"heap":0,"detail":true}"#],
        ..NONE
    },
    Tool {
        name: "stat",
        title: "Objects and bytes by type",
        does: Does::Command("stat"),
        when: "For what the heap consists of, whoever holds it; retained tells who holds it.",
        arguments: &["by", "sort", "top", "type", "generation", "min-size", "where"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, or for some types",
        examples: &["{}", r#"{"by":"generation"}"#, r#"{"type":["System.*"],"top":5,"min_size":"1K"}"#],
        ..NONE
    },
    Tool {
        name: "objects",
        title: "Single objects",
        does: Does::Command("objects"),
        when: "For addresses of objects of a type, and for values of their fields; next_start in the answer is start of the next page.",
        arguments: &["type", "where", "fields", "refs", "generation", "min-size", "max-size", "start", "count"],
        rows: &[rows("count")],
        instead: "ask for fewer objects with count, for fewer fields, or without refs",
        examples: &[r#"{"type":["String"],"count":3}"#, r#"{"where":"size > 1K","fields":["_size"],"count":2,"start":1}"#],
        ..NONE
    },
    Tool {
        name: "object",
        title: "One object",
        does: Does::Command("object"),
        when: "For the fields of an object, the elements of an array, the items of a collection, the target of a delegate.",
        arguments: &["address", "start", "count", "items", "as"],
        required: &["address"],
        rows: &[rows("count"), rows("items")],
        instead: "ask for fewer elements with count and items",
        examples: &[r#"{"address":"0x7f31535a25f8"}"#],
        ..NONE
    },
    Tool {
        name: "path",
        title: "What keeps objects alive",
        does: Does::Command("path"),
        when: "For why an object, or the objects of a type, are not collected. Needs address or type.",
        arguments: &["what", "type", "paths", "weak", "stacks"],
        rows: &[Rows { option: "paths", usual: 3, most: 20 }],
        instead: "ask for one object by its address, or for a narrower type",
        examples: &[r#"{"address":"0x7f31535a25f8"}"#, r#"{"type":["Lab.Dog"],"stacks":"none"}"#],
        ..NONE
    },
    Tool {
        name: "retained",
        title: "Who holds the memory",
        does: Does::Command("retained"),
        when: "For memory leaks, begin with suspects. A retained size is what would be freed with the object.",
        arguments: &["suspects", "tree", "depth", "threshold", "object", "type", "top", "stacks"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, for a higher threshold, or for a lower depth",
        examples: &["{}", r#"{"suspects":true}"#, r#"{"tree":true,"depth":2}"#, r#"{"object":"0x7f31535a25f8"}"#],
        ..NONE
    },
    Tool {
        name: "strings",
        title: "Strings and what they waste",
        does: Does::Command("strings"),
        when: "For the memory that strings take, and how much of it equal ones.",
        arguments: &["sort", "longest", "like", "min-count", "max-chars", "top", "type", "generation", "min-size"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, or for fewer characters with max_chars",
        examples: &["{}", r#"{"longest":true,"top":3,"max_chars":20}"#],
        ..NONE
    },
    Tool {
        name: "stacks",
        title: "What the threads were doing",
        does: Does::Command("stacks"),
        when: "For hangs and crashes. Begin without arguments, which folds equal stacks; then name threads.",
        arguments: &["merge", "thread", "method", "waits", "arguments", "roots"],
        on: Some(("merge", &["thread", "waits", "arguments", "roots"])),
        instead: "name some threads or a method, or leave out roots and arguments",
        examples: &["{}", r#"{"thread":[1],"waits":true}"#, r#"{"merge":false}"#],
        ..NONE
    },
    Tool {
        name: "locks",
        title: "Locks, waits and deadlocks",
        does: Does::Command("locks"),
        when: "For hangs: who holds what, and who waits for whom.",
        arguments: &["all"],
        instead: "leave out all, or ask analyze for deadlock and lock-queue",
        ..NONE
    },
    Tool {
        name: "exceptions",
        title: "Exceptions on the heap",
        does: Does::Command("exceptions"),
        when: "For crashes and errors. With stat, counts only.",
        arguments: &["stat", "type", "object", "sort"],
        instead: "ask with stat for counts, or for some types",
        examples: &["{}", r#"{"stat":true}"#],
        ..NONE
    },
    Tool {
        name: "diff",
        title: "What changed between dumps",
        does: Does::Compares("diff"),
        when: "For growth: two dumps of a process, or more for a trend.",
        arguments: &["before", "after", "by", "sort", "top", "all", "holders"],
        required: &["before", "after"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, without all, or by another key",
        examples: &[
            r#"{"before":"before.dmp","after":["after.dmp"]}"#,
            r#"{"before":"before.dmp","after":["after.dmp"],"by":"root","top":3}"#,
        ],
        ..NONE
    },
];

/// The tool with this name.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}
