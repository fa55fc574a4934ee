//! The commands of SOS and `dotnet-dump`. Source: their help and documentation (dotnet/diagnostics, `sos-debugging-extension`), release 10.

use super::Argument::{Needed, OfModule, Range, Same as Plain, Value as Option};
use super::FlagTo::{Always, Command, Counts, Refused, Value, Words};
use super::Form::{Generation, Part, Same, Table};
use super::{Argument, Flag, FlagTo, Sos, To};

pub(super) const fn flag(names: &'static [&'static str], to: FlagTo) -> Flag {
    Flag { names, to }
}

pub(super) const fn command(names: &'static [&'static str], words: &'static [&'static str], flags: &'static [Flag]) -> Sos {
    Sos { names, to: To::Words(words), lists: None, argument: Plain, flags }
}

pub(super) const fn refused(names: &'static [&'static str], why: &'static str) -> Sos {
    Sos { names, to: To::Refused(why), lists: None, argument: Plain, flags: &[] }
}

impl Sos {
    pub(super) const fn with(self, argument: Argument) -> Sos {
        Sos { argument, ..self }
    }

    const fn listing(self, words: &'static [&'static str]) -> Sos {
        Sos { lists: Some(words), ..self }
    }
}

const STAT: Flag = flag(&["-stat"], Words(&["--stat"]));
const TYPE: Flag = flag(&["-type"], Value("--type", Part));
const TABLE: Flag = flag(&["-mt"], Value("--type", Table));
const NO_CODE: &str = "gcdump shows no code; gcdump where IP names the method at an address";
const NO_COM: &str = "COM wrappers are not listed; gcdump handles --type ref-counted shows the objects that they hold";
const NO_LOG: &str = "the stress log is not read; gcdump heap --detail shows what the GC keeps of its collections";
const NO_MEMORY: &str = "raw memory is not printed; gcdump where ADDR says what is at an address, gcdump object ADDR shows it";
const NO_EXECUTION: &str = "a dump cannot be run: the process has ended or runs elsewhere";
const NOTHING_TO_SET: &str =
    "there is nothing to set: gcdump needs neither the DAC nor symbols; --modules PATH and --symbols DIR add files";
const BY_NAME: &str = "metadata structures are not listed; gcdump type NAME shows a type, its module, fields and statics";
const TYPES_OF: &str = "gcdump type 'NAMESPACE.*' lists types with their modules";

/// WinDbg's command that makes another thread the current one.
pub(super) const SWITCH: Sos =
    refused(&["~Ns"], "gcdump has no current thread: commands are about all threads, gcdump stacks --thread N is about one");

/// The commands, by topic.
pub const COMMANDS: &[Sos] = &[
    // The heap and its objects.
    command(
        &["dumpheap"],
        &["stat"],
        &[
            flag(&["-stat"], Counts),
            TYPE,
            TABLE,
            flag(&["-min"], Value("--min-size", Same)),
            flag(&["-max"], Value("--max-size", Same)),
            flag(&["-gen"], Value("--generation", Generation)),
            flag(&["-heap"], Value("--heap", Same)),
            flag(&["-segment"], Value("--segment", Same)),
            flag(&["-short"], Words(&["--short"])),
            flag(&["-strings"], Command(&["strings"])),
            flag(&["-dead"], Command(&["unreachable"])),
            flag(&["-live"], Command(&["retained"])),
            flag(&["-thinlock"], Command(&["locks"])),
            flag(&["-ignoregcstate", "-noprogress", "-startatlowerbound"], Always),
        ],
    )
    .listing(&["objects"])
    .with(Range),
    command(&["dumpgen"], &["stat"], &[flag(&["-stat"], Counts), TYPE, TABLE])
        .listing(&["objects"])
        .with(Needed("--generation", Generation)),
    command(
        &[
            "dumpobj",
            "do",
            "dumpdelegate",
            "dumparray",
            "da",
            "dumpconcurrentdictionary",
            "dcd",
            "dumpconcurrentqueue",
            "dcq",
            "taskstate",
            "tks",
        ],
        &["object"],
        &[
            flag(&["-nofields"], Words(&["--no-fields"])),
            flag(&["-start"], Value("--start", Same)),
            flag(&["-length"], Value("--count", Same)),
            flag(&["-details"], Always),
            flag(&["-refs"], Command(&["refs", "--out"])),
        ],
    ),
    command(&["dumpvc"], &["object"], &[]).with(Needed("--as", Table)),
    command(&["dumpobjgcrefs"], &["refs", "--out"], &[]),
    command(&["objsize"], &["objsize"], &[flag(&["-stat", "-aggregate"], Always)]),
    command(&["sizestats"], &["stat", "--by", "size"], &[]),
    command(&["listnearobj", "lno"], &["near"], &[]),
    command(&["gcwhere"], &["where"], &[]),
    command(&["verifyheap", "vh"], &["verify"], &[flag(&["-ignoregcstate", "-noprogress"], Always)]),
    command(&["verifyobj"], &["verify"], &[]).with(Needed("--object", Same)),
    command(
        &["dumpexceptions"],
        &["exceptions"],
        &[TYPE, flag(&["-live", "-dead", "-gen"], Refused("gcdump exceptions lists all of them"))],
    ),
    command(&["printexception", "pe"], &["exceptions"], &[flag(&["-nested", "-lines", "-ccw"], Always)]).with(Option("--object", Same)),
    refused(&["dumpruntimetypes"], "gcdump objects --type System.RuntimeType lists the objects, gcdump type NAME a type"),
    refused(&["traverseheap"], "gcdump objects --refs --format ndjson writes objects with references"),
    // The GC.
    command(
        &["eeheap"],
        &["heap"],
        &[flag(&["-gc"], Always), flag(&["-loader"], Command(&["memory"])), flag(&["-heap"], Value("--heap", Same))],
    ),
    command(
        &["gcheapstat", "heapstat"],
        &["heap"],
        &[flag(&["-inclunrooted", "-iu", "-unreachable"], Refused("gcdump unreachable counts what no root holds"))],
    ),
    command(&["analyzeoom", "ao"], &["oom"], &[]),
    command(&["gchandles"], &["handles"], &[flag(&["-type"], Value("--type", Same)), STAT, flag(&["-perdomain"], Always)]),
    command(
        &["finalizequeue", "fq"],
        &["finalizers"],
        &[flag(&["-detail", "-stat", "-allready"], Always), flag(&["-short"], Words(&["--objects"])), TABLE],
    ),
    command(
        &["gcroot"],
        &["path"],
        &[
            flag(&["-nostacks"], Words(&["--stacks", "none"])),
            flag(&["-all"], Words(&["--all-roots"])),
            flag(&["-limit"], Value("--paths", Same)),
        ],
    ),
    refused(&["pathto"], "paths between two objects are not searched; gcdump path ADDR shows what holds one"),
    command(&["notreachableinrange"], &["unreachable", "--objects"], &[flag(&["-nofinalizer"], Always)]),
    refused(&["ephrefs", "ephtoloh"], "gcdump objects --refs --generation gen2 lists references and their targets"),
    refused(&["findroots"], "only a live process stops in a collection; gcdump path ADDR shows what holds an object"),
    refused(&["gchandleleaks", "gctonative", "findpointersin"], "native memory is not searched; gcdump handles lists every handle"),
    refused(&["dumpgcdata", "dgc"], "gcdump heap --detail shows what the GC keeps of its collections"),
    refused(&["histinit", "histobj", "histobjfind", "histroot", "histclear", "histstats", "dumplog"], NO_LOG),
    // Types and code.
    command(&["dumpmt"], &["type"], &[flag(&["-md"], Words(&["--methods"]))]),
    command(&["name2ee"], &["type"], &[]).with(OfModule),
    command(&["dumpclass"], &["where"], &[]),
    refused(&["dumpmd"], "gcdump type --methods NAME lists the MethodDescs of a type, gcdump stacks --json those of frames"),
    refused(&["dumpsig", "dumpsigelem", "token2ee"], BY_NAME),
    refused(
        &["finddappdomain", "findappdomain"],
        "a process has one domain; gcdump modules lists load contexts, gcdump where ADDR says what is at an address",
    ),
    command(
        &["clrmodules", "assemblies", "modules", "lm"],
        &["modules"],
        &[flag(&["-name", "-n"], Value("--name", Part)), flag(&["-v", "-verbose", "-segment"], Always)],
    ),
    command(&["dumpdomain"], &["modules"], &[]),
    command(&["dumpassembly", "dumpmodule"], &["modules"], &[flag(&["-mt"], Refused(TYPES_OF))]).with(Option("--at", Same)),
    refused(&["savemodule"], "modules are not written; gcdump modules shows where the file of each was found"),
    command(&["dumpalc"], &["inspect", "--only", "load-contexts"], &[]),
    command(&["ip2md"], &["where"], &[]),
    refused(&["clru", "u", "dumpil", "ehinfo"], NO_CODE),
    refused(&["gcinfo"], "GC info is not printed; gcdump stacks --roots lists what each frame holds by it"),
    // Threads, tasks, locks.
    command(&["clrthreads", "threads"], &["threads"], &[flag(&["-live", "-special", "-managedexception"], Always)]),
    refused(&["threadstate"], "gcdump threads names the flags of each thread's state"),
    command(
        &["clrstack"],
        &["stacks", "--framework"],
        &[
            flag(&["-all", "-f", "-r"], Always),
            flag(&["-p"], Words(&["--arguments"])),
            flag(&["-l"], Words(&["--locals"])),
            flag(&["-gc"], Words(&["--roots"])),
            flag(&["-a"], Words(&["--arguments", "--locals"])),
            flag(&["-i", "-n", "-faultcontext", "-short"], Always),
        ],
    ),
    command(&["eestack", "dumpstack"], &["stacks", "--framework"], &[flag(&["-short", "-ee", "-n"], Always)]),
    command(&["dumpstackobjects", "dso"], &["stacks", "--roots"], &[flag(&["-verify"], Always)]),
    command(&["parallelstacks", "pstacks"], &["stacks", "--merge", "--framework"], &[flag(&["-allthreads", "-all", "-a"], Always)]),
    command(&["syncblk"], &["locks"], &[flag(&["-all"], Always)]),
    command(&["dlk"], &["locks"], &[]),
    command(
        &["dumpasync"],
        &["async"],
        &[
            TYPE,
            TABLE,
            flag(&["-methodtable"], Value("--type", Table)),
            flag(&["-addr", "-address"], Value("--object", Same)),
            flag(&["-tasks"], Words(&["--tasks"])),
            flag(&["-completed"], Words(&["--completed"])),
            flag(&["-coalesce"], Words(&["--merge"])),
            flag(&["-fields"], Always),
            flag(&["-stats"], Always),
            flag(&["-stacks"], Words(&["--framework"])),
            flag(&["-roots", "-waiting"], Always),
        ],
    ),
    command(&["threadpool", "tp"], &["pool"], &[flag(&["-ti", "-hc", "-wi", "-live"], Always)]),
    command(&["threadpoolqueue", "tpq"], &["pool"], &[flag(&["-stat"], Always)]),
    command(&["timerinfo", "ti"], &["timers"], &[]),
    command(
        &["dumphttp"],
        &["requests", "--outgoing"],
        &[
            flag(&["-pending", "-stats"], Always),
            flag(&["-completed", "-uri", "-statuscode"], Refused("gcdump requests lists the requests in flight")),
        ],
    ),
    command(&["dumprequests"], &["requests", "--incoming"], &[flag(&["-pending"], Always)]),
    refused(&["dumprcw", "dumpccw", "rcwcleanuplist", "comstate"], NO_COM),
    refused(&["dumppermissionset"], "only .NET Framework has permission sets; gcdump object ADDR shows any object"),
    // The debugger.
    command(&["eeversion", "runtimes", "sosstatus", "crashinfo", "clrstatus"], &["info"], &[]),
    command(
        &["maddress"],
        &["memory", "--ranges"],
        &[
            flag(&["-summary"], Command(&["memory"])),
            flag(&["-list", "-images", "-includereserve", "-tagreserve", "-forcehandletableenum"], Always),
            flag(
                &["-orderbysize"],
                Refused("gcdump memory lists the largest ranges that nothing explains, memory --ranges all by address"),
            ),
        ],
    ),
    command(&["vmmap"], &["memory", "--ranges"], &[]),
    command(&["vmstat"], &["memory"], &[]),
    refused(&["registers"], "registers are not printed; gcdump stacks --json has the instruction and stack pointers of each frame"),
    refused(&["bpmd", "suspendjit", "stoponexception", "soe", "gcevents", "stoponcatch", "minidumpmode"], NO_EXECUTION),
    refused(
        &[
            "setclrpath",
            "clrpath",
            "setsymbolserver",
            "loadsymbols",
            "sosflush",
            "setsostid",
            "setthread",
            "enumerateruntimes",
            "sethostruntime",
            "logging",
            "logopen",
            "logclose",
            "dbgout",
            "sethostengine",
        ],
        NOTHING_TO_SET,
    ),
    command(&["clrma"], &["analyze"], &[]),
    refused(&["readmemory", "d", "db", "dc", "dd", "dp", "dq", "dw"], NO_MEMORY),
    command(&["soshelp", "faq"], &["help", "sos"], &[]),
];
