//! The tools: the commands that an assistant can run, with the arguments it can use.
//!
//! [`TOOLS`] is the list that every host reads, with the most common arguments. [`MORE`] contains the other commands that read a dump: the
//! tool `more` runs them, and `help` lists their arguments. All arguments of a command can be given, except [`NEVER`].

use super::kind::plain;
use super::rpc::cut;
use crate::base::nearest;
use crate::cli::command::Entry;
use crate::cli::registry;

/// The action of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Does {
    /// Lists the dumps.
    List,
    /// Runs the command of this name on one dump.
    Command(&'static str),
    /// Runs the command of this name, which compares dumps.
    Compares(&'static str),
    /// Runs the command that an argument names.
    More,
    /// Describes the arguments of the command that an argument names.
    Help,
}

/// A limit on the rows of an answer: an argument of the command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// The argument's name on the command line.
    pub(super) option: &'static str,
    /// Default number of rows.
    pub(super) usual: u64,
    /// Maximum number of rows.
    pub(super) most: u64,
}

/// A tool.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) does: Does,
    /// When to use the tool; shown after the first sentence of the command's help.
    pub(super) when: &'static str,
    /// The arguments in its schema, by their names on the command line.
    pub(super) arguments: &'static [&'static str],
    /// The arguments that are always required.
    pub(super) required: &'static [&'static str],
    /// A flag that is on unless it is `false` or one of the listed arguments is given.
    pub(super) on: Option<(&'static str, &'static [&'static str])>,
    pub(super) rows: &'static [Rows],
    /// Advice if an answer is too large.
    pub(super) instead: &'static str,
    /// Example arguments as JSON, shown in the description.
    pub(super) examples: &'static [&'static str],
}

impl Tool {
    /// Returns the command that the tool runs.
    pub(super) fn entry(&self) -> Option<&'static Entry> {
        match self.does {
            Does::List | Does::More | Does::Help => None,
            Does::Command(name) | Does::Compares(name) => registry::find(name),
        }
    }
}

/// A row limit, set by `--top` or its equivalent.
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
    examples: &[],
};

/// A command that `more` runs.
const fn more(name: &'static str) -> Tool {
    Tool { name, title: name, does: Does::Command(name), ..NONE }
}

/// The tools, in the order of an investigation.
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
        examples: &[r#"{"only":["deadlock","lock-queue"],"no_graph":true}"#, r#"{"dump":"after.dmp","since":["before.dmp"]}"#],
        ..NONE
    },
    Tool {
        name: "heap",
        title: "The heap by generation",
        does: Does::Command("heap"),
        when: "For how large the heap is, and where.",
        arguments: &["heap", "detail"],
        instead: "name one heap, and leave out detail",
        examples: &[r#"{"heap":0,"detail":true}"#],
        ..NONE
    },
    Tool {
        name: "stat",
        title: "Objects and bytes by type",
        does: Does::Command("stat"),
        when: "For what the heap consists of, reachable or not; retained shows what holds it.",
        arguments: &["by", "sort", "top", "type", "generation", "min-size", "where"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, or for some types",
        examples: &[r#"{"by":"generation"}"#, r#"{"type":["System.*"],"top":5,"min_size":"1K"}"#],
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
        arguments: &["what", "type", "paths", "weak"],
        rows: &[Rows { option: "paths", usual: 3, most: 20 }],
        instead: "ask for one object by its address, or for a narrower type",
        examples: &[r#"{"address":"0x7f31535a25f8"}"#, r#"{"type":["Lab.Dog"],"stacks":"none"}"#],
        ..NONE
    },
    Tool {
        name: "refs",
        title: "References to and from objects",
        does: Does::Command("refs"),
        when: "For what points at an object, or at the objects of a type, and what it points at. Needs address, type or young.",
        arguments: &["what", "type", "in", "out", "by", "depth", "young", "retained", "top"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, or for the merged view with by",
        examples: &[r#"{"address":"0x7f31535a25f8","in":true}"#],
        ..NONE
    },
    Tool {
        name: "retained",
        title: "Who holds the memory",
        does: Does::Command("retained"),
        when: "For memory leaks, begin with suspects. A retained size is what would be freed with the object.",
        arguments: &["suspects", "tree", "by", "depth", "object", "type", "top"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, for a higher threshold, or for a lower depth",
        examples: &[r#"{"suspects":true}"#, r#"{"tree":true,"depth":2}"#, r#"{"object":"0x7f31535a25f8"}"#],
        ..NONE
    },
    Tool {
        name: "strings",
        title: "Strings and what they waste",
        does: Does::Command("strings"),
        when: "For the memory that strings take, and how much of it duplicates take.",
        arguments: &["sort", "longest", "like", "min-count", "max-chars", "top", "type"],
        rows: &[rows("top")],
        instead: "ask for fewer rows with top, or for fewer characters with max_chars",
        examples: &[r#"{"longest":true,"top":3,"max_chars":20}"#],
        ..NONE
    },
    Tool {
        name: "stacks",
        title: "What the threads were doing",
        does: Does::Command("stacks"),
        when: "For hangs and crashes. Begin without arguments, which folds equal stacks; then name threads.",
        arguments: &["merge", "thread", "method", "waits", "arguments", "roots"],
        on: Some(("merge", &["thread", "waits", "arguments", "roots"])),
        instead: "name some threads or a method, leave out roots and arguments, or set merge",
        examples: &[r#"{"thread":[1],"waits":true}"#, r#"{"merge":false}"#],
        ..NONE
    },
    Tool {
        name: "locks",
        title: "Locks, waits and deadlocks",
        does: Does::Command("locks"),
        when: "For hangs: which thread holds which lock, and what each thread waits for.",
        arguments: &["all"],
        instead: "leave out all, or ask analyze for deadlock and lock-queue",
        ..NONE
    },
    Tool {
        name: "threads",
        title: "The managed threads",
        does: Does::Command("threads"),
        when: "For names, states, ids and what each waits for; stacks has their methods.",
        arguments: &["waits", "sort", "top"],
        instead: "ask for fewer rows with top",
        ..NONE
    },
    Tool {
        name: "async",
        title: "Asynchronous methods that wait",
        does: Does::Command("async"),
        when: "For hangs without a blocked thread: chains of await, and what the innermost waits for. Begin with merge.",
        arguments: &["merge", "object", "method", "type", "tasks", "faulted", "top"],
        instead: "ask with merge, or for the chains of one object or method",
        examples: &[r#"{"merge":true}"#],
        ..NONE
    },
    Tool {
        name: "pool",
        title: "The thread pool",
        does: Does::Command("pool"),
        when: "For starvation: limits, queued work, and what the workers are blocked by.",
        ..NONE
    },
    Tool {
        name: "exceptions",
        title: "Exceptions on the heap",
        does: Does::Command("exceptions"),
        when: "For crashes and errors. With stat, counts only.",
        arguments: &["stat", "type", "object", "sort"],
        instead: "ask with stat for counts, or for some types",
        examples: &[r#"{"stat":true}"#],
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
    Tool { name: "more", title: "Further commands", does: Does::More, examples: &[r#"{"command":"requests"}"#], ..NONE },
    Tool { name: "help", title: "Arguments of a command", does: Does::Help, examples: &[r#"{"command":"handles"}"#], ..NONE },
];

/// The other commands that read dumps, in the order of the command line's help.
pub(super) const MORE: &[Tool] = &[
    more("env"),
    more("memory"),
    more("modules"),
    more("contracts"),
    more("segments"),
    more("fragmentation"),
    more("handles"),
    more("finalizers"),
    more("oom"),
    Tool { required: &["address"], arguments: &["address"], ..more("where") },
    Tool { required: &["address"], arguments: &["address"], ..more("near") },
    Tool { required: &["name"], arguments: &["name"], ..more("type") },
    more("statics"),
    Tool { required: &["address"], arguments: &["address"], ..more("objsize") },
    more("roots"),
    more("unreachable"),
    more("whatif"),
    more("simulate"),
    more("bridge"),
    more("inspect"),
    more("timers"),
    more("requests"),
    Tool { does: Does::Compares("track"), required: &["before", "after"], arguments: &["before", "after"], ..more("track") },
    more("verify"),
];

/// The commands that no tool runs, with the reason.
pub(super) const WITHOUT: &[(&str, &str)] = &[
    ("export", "it writes files: a person runs it on the command line"),
    ("fleet", "it writes files and starts processes: a person runs it on the command line"),
    ("index", "it writes a file: a person runs it on the command line"),
    ("report", "it makes a page for people: analyze and the calls that it suggests give the same answers"),
    ("trim", "it writes a file: a person runs it on the command line"),
];

/// Command arguments that no tool has: they show hidden contents, read or write other files, open connections, or print something other than
/// a document.
pub(super) const NEVER: &[&str] =
    &["contents", "budget", "fetch", "symbol-server", "nuget", "pdbs", "max-download", "fetch-timeout", "dot", "short"];

/// Finds the tool with this name, including those that `more` runs, in any spelling.
pub(super) fn find(name: &str) -> Option<&'static Tool> {
    let all = || TOOLS.iter().chain(MORE);
    let spelled = plain(name);
    // Some hosts put the name of the server before the name of the tool, so a leading `gcdump` is removed.
    let spelled = spelled.strip_prefix("gcdump").filter(|rest| !rest.is_empty()).unwrap_or(&spelled);
    all().find(|tool| tool.name == name).or_else(|| all().find(|tool| tool.name == spelled))
}

/// Returns the message about a tool that does not exist, with the most similar name of a tool.
pub(super) fn no_tool(name: &str) -> String {
    if let Some((_, why)) = WITHOUT.iter().find(|(command, _)| *command == name) {
        return format!("there is no tool {name}: {why}");
    }
    let names = || TOOLS.iter().chain(MORE).map(|tool| tool.name);
    let near = nearest(name, names(), name.len() / 2).map(|n| format!("; did you mean {n}?")).unwrap_or_default();
    format!("there is no tool {}{near}", cut(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::registry::COMMANDS;

    #[test]
    fn every_command_is_a_tool_or_has_a_reason() {
        for entry in COMMANDS {
            let without = WITHOUT.iter().any(|(name, _)| *name == entry.name);
            assert_ne!(find(entry.name).is_some(), without, "{}", entry.name);
        }
        for tool in TOOLS.iter().chain(MORE) {
            let named = tool.entry().map(|entry| entry.name);
            let is_own = matches!(tool.does, Does::List | Does::More | Does::Help);
            assert_eq!(named, (!is_own).then_some(tool.name), "{}", tool.name);
        }
    }

    #[test]
    fn the_help_of_the_command_names_every_tool() {
        let command = (crate::cli::cmd::mcp::MCP.arguments)(clap::Command::new("mcp"));
        let about = command.get_long_about().unwrap().to_string();
        let words: Vec<&str> = about.split(|c: char| !c.is_alphanumeric()).collect();
        for tool in TOOLS {
            assert!(words.contains(&tool.name), "{}: {about}", tool.name);
        }
    }

    #[test]
    fn tools_are_found_in_other_spellings() {
        for (name, tool) in [("Stat", "stat"), ("gcdump_stat", "stat"), ("handles", "handles"), ("GCDump-Retained", "retained")] {
            assert_eq!(find(name).map(|tool| tool.name), Some(tool), "{name}");
        }
        assert_eq!(no_tool("retain"), "there is no tool retain; did you mean retained?");
        assert!(no_tool("trim").contains("it writes a file"), "{}", no_tool("trim"));
    }
}
