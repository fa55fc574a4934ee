//! Commands that users know from tools other than SOS: WinDbg, gdb, profilers, and plain words.

use super::Argument::Value as Option;
use super::Form::Part;
use super::table::{command, flag, refused};
use super::{FlagTo, Sos};

const NO_PROCESS: &str = "gcdump reads dumps, not running processes; dotnet-dump collect -p PID writes a dump";
const NOTHING_TO_LOAD: &str = "there is nothing to load or to set: --modules PATH and --symbols DIR add files";
const TWO_KINDS: &str = "gcdump strings --like '*TEXT*' finds strings, gcdump objects --type NAME objects, gcdump type NAME types";

/// The familiar commands, by topic. Their names differ from all names of gcdump commands.
pub const HABITS: &[Sos] = &[
    command(&["summary", "overview", "show", "open", "vertarget", "lastevent", ".lastevent", "target"], &["info"], &[]),
    command(
        &["crash", "hang", "diagnose", "triage", "why", "problems", "findings", "issues", "doctor", ".ecxr", ".exr"],
        &["analyze"],
        &[flag(&["-v", "-1"], FlagTo::Always)],
    ),
    command(&["leaks", "leak", "memleak", "memoryleak", "suspects"], &["retained", "--suspects"], &[]),
    command(&["dominators", "dominator", "biggest", "largest"], &["retained"], &[]),
    command(&["tree", "dominatortree"], &["retained", "--tree"], &[]),
    command(&["histogram", "histo", "types", "classes", "statistics", "du"], &["stat"], &[]),
    command(&["instances", "list", "ls"], &["objects"], &[]),
    command(&["inspectobject", "print", "p", "dump"], &["object"], &[]),
    command(&["rootsof", "holders", "whoholds", "retainers", "pathtoroot"], &["path"], &[]),
    command(&["referrers", "parents", "incoming", "inbound", "refsto"], &["refs", "--in"], &[]),
    command(&["children", "outgoing", "outbound", "refsfrom"], &["refs", "--out"], &[]),
    command(&["duplicates", "dups", "dupes"], &["strings"], &[]),
    command(&["grep"], &["strings"], &[]).with(Option("--like", Part)),
    refused(&["find", "search"], TWO_KINDS),
    command(&["gc", "generations"], &["heap"], &[]),
    command(&["garbage", "dead", "unrooted"], &["unreachable"], &[]),
    command(&["static", "globals"], &["statics"], &[]),
    command(&["dlls", "libraries", "images", "lmv"], &["modules"], &[]),
    command(&["lmvm"], &["modules"], &[]).with(Option("--name", Part)),
    command(
        &["k", "kb", "kp", "kn", "kv", "kc", "kpn", "bt", "backtrace", "stack", "stacktrace", "~*k", "~*kb", "callstack", "callstacks"],
        &["stacks"],
        &[],
    ),
    command(&["thread", "~"], &["threads"], &[]),
    command(&["deadlocks", "deadlock", "blocked", "waits", "waitchains", "monitors", "lock"], &["locks"], &[]),
    command(&["exception", "errors", "analyzeexception"], &["exceptions"], &[]),
    command(&["tasks", "task", "await", "awaits"], &["async"], &[]),
    command(&["http", "sockets", "connections"], &["requests"], &[]),
    command(&["timer"], &["timers"], &[]),
    command(&["compare", "delta"], &["diff"], &[]),
    command(&["convert", "save"], &["export"], &[]),
    command(&["check", "validate"], &["verify"], &[]),
    command(&["repl", "interactive"], &["shell"], &[]),
    command(&["environment", "!peb", "peb", "args", "cmdline", "commandline", "argv", "properties"], &["env"], &[]),
    refused(&["ps", "collect", "attach", "monitor"], NO_PROCESS),
    refused(&[".load", ".loadby", ".chain", ".symfix", ".sympath", ".reload"], NOTHING_TO_LOAD),
];

/// Flags that gcdump commands ignore because they describe the default behavior.
pub const ALWAYS: &[(&str, &[&str])] = &[("analyze", &["-v", "-hang", "-show"]), ("heap", &["-s", "-stat", "-h"])];
