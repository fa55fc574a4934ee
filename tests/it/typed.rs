//! Command lines as people type them: each name of SOS, with and without an object, and lines that users tried. A snapshot has the exit code
//! and the first line of each answer or error message.

use std::fmt::Write;

use gcdump::cli::{HABITS, SOS, To};

use crate::common::{ask, each, own_unpacked, run};

/// Lines that users tried: `D` is the dump, `E` a later one, `A` the address of an object, `~` a space within a word.
const TRIAL: &[&str] = &[
    "!analyze -v D",
    "!heap -s D",
    "!strings D",
    "!help",
    "!sos.dumpheap -stat D",
    "k D",
    "ps D",
    "--top 3 stat D",
    "dumpasync -stacks D",
    "dumpasync -waiting D",
    "stat -n 20 D",
    "stat -t String D",
    "stat -s count D",
    "stat -f csv D",
    "stat -j D",
    "handles -Type Pinned D",
    "lm D",
    "modules D",
    "clrmodules D",
    "dumpmodule D",
    "dumpdomain D",
    "dumpassembly D",
    "path Lab.Program.Keep D",
    "object Lab.Program.Keep D",
    "retained --object Lab.Program.Keep D",
    "whatif --dead Lab.Program.Keep D",
    "path Lab.Node D",
    "retained Lab.Node D",
    "statics Lab.Program D",
    "stacks Main D",
    "stacks 1 D",
    "strings dog1 D",
    "exceptions A D",
    "leaks D",
    "suspects D",
    "deadlocks D",
    "histogram D",
    "dominators D",
    "tree D",
    "summary D",
    "crash D",
    "compare D E",
    "find dog D",
    "grep dog D",
    "env D",
    "args D",
    "objects --sort size D",
    "objects --reverse D",
    "diff --type Lab D E",
    "strings --regex dog D",
    "stat --by namespace,assembly D",
    "stat --by module D",
    "stat --by gen D",
    "stat --exclude System D",
    "stat --type lab.* D",
    "stat --type Lab\\..* D",
    "stat --type ConcurrentDictionary<int,Lab.Circle> D",
    "stat --type int D",
    "objects --where _size~>~3 D",
    "type Lab.Nodes D",
    "export --format parquet D",
    "export D",
    "export --tables all D",
    "analyze D E",
    "info D E",
    "exceptions --top 2 D",
    "threads --top 2 D",
    "stacks --top 2 D",
    "locks --top 2 D",
    "pool --top 2 D",
    "requests --top 2 D",
    "timers --top 2 D",
    "segments --top 2 D",
    "objects --sort length D",
    "retained --sort size D",
    "locks --sort kind D",
    "requests --sort age_ms D",
    "inspect --sort bytes D",
    "dumpheap -type Lab.Dog D",
    "dumpheap -stat -type Lab D",
    "dumpheap 7f0000000000 7fffffffffff D",
    "dumpheap -live D",
    "dumpheap -dead D",
    "dumpheap -short -type Lab.Dog D",
    "dumpheap -strings D",
    "gchandles -type Pinned -stat D",
    "dumpgen 2 D",
    "name2ee lab.dll!Lab.Node D",
    "name2ee *!Lab.Node D",
    "name2ee lab.dll Lab.Node D",
    "dumpmt -md Lab.Node D",
    "clrstack -l D",
    "clrstack -a -all D",
    "gcroot -all A D",
    "pe -nested A D",
    "eeheap -gc D",
    "eeheap -loader D",
    "finalizequeue -detail D",
    "dumpmodule -mt A D",
    "dumpobj -refs A D",
    "dumpobj -nofields A D",
    "dumparray -start 1 -length 2 A D",
    "syncblk -all D",
];

/// Each name of SOS with a dump, and with an object if its command takes one.
fn of_sos() -> Vec<String> {
    let mut lines = Vec::new();
    for command in SOS.iter().chain(HABITS) {
        for name in command.names {
            lines.push(format!("{name} D"));
            // Commands that take an address or a name.
            let about = matches!(command.to, To::Words(["object" | "path" | "objsize" | "near" | "where" | "refs", ..]));
            lines.extend(about.then(|| format!("{name} A D")));
        }
    }
    lines.retain(|line| !matches!(line.split(' ').next(), Some("repl" | "interactive" | "convert" | "save" | "compare" | "delta")));
    lines
}

fn transcript(lines: &[String]) -> String {
    let dump = own_unpacked();
    let (dump, later) = (dump.to_str().unwrap(), "dumps/corpus/net10-svr-basics-heap.dmp.zst");
    let (_, dogs) = ask(&own_unpacked(), &["objects", "--type", "Lab.Dog", "--top", "1"]);
    let dog = dogs["data"]["objects"][0]["address"].as_str().unwrap().to_string();
    let out = tempfile::tempdir().unwrap();
    let answers = each(lines, |line| {
        let word = |w: &str| match w {
            "D" => dump.into(),
            "E" => later.into(),
            "A" => dog.clone(),
            // Some commands of WinDbg begin with `~`.
            w if w.starts_with('~') => w.into(),
            w => w.replace('~', " "),
        };
        let mut args: Vec<String> = line.split(' ').map(word).collect();
        if !line.starts_with("!help") {
            args.push("--no-local-files".into());
        }
        if line.starts_with("export --format") {
            args.extend(["-o".into(), out.path().join("tables").to_str().unwrap().into()]);
        }
        let ran = run(&args);
        let text = if ran.out.trim().is_empty() { &ran.err } else { &ran.out };
        let first = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("(nothing)");
        let first = first.replace(dump, "D").replace(out.path().to_str().unwrap(), "OUT");
        assert!(!first.contains("unexpected") && !ran.err.contains("unexpected"), "{line}: {}", ran.err);
        let short: String = first.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(130).collect();
        format!("$ gcdump {line}\n{}  {short}\n", ran.exit.code())
    });
    answers.into_iter().fold(String::new(), |mut all, one| {
        write!(all, "{one}").unwrap();
        all
    })
}

#[test]
fn every_line_of_the_trial_is_answered_or_refused_for_a_reason() {
    let lines: Vec<String> = TRIAL.iter().map(|line| (*line).to_string()).collect();
    insta::assert_snapshot!(transcript(&lines));
}

#[test]
fn every_name_of_sos_is_answered_or_refused_for_a_reason() {
    insta::assert_snapshot!(transcript(&of_sos()));
}

/// The names are those that `soshelp` and `help` of `dotnet-dump analyze` list.
#[test]
fn every_name_that_the_help_of_sos_lists_is_known() {
    let names = "analyzeoom assemblies bpmd clrma clrmodules clrstack clrthreads clru comstate crashinfo d da db dbgout dc dd dp dq dso \
                 dumpalc dumparray dumpassembly dumpasync dumpccw dumpclass dumpconcurrentdictionary dumpconcurrentqueue dumpdelegate dumpdomain \
                 dumpexceptions dumpgcdata dumpgen dumpheap dumphttp dumpil dumplog dumpmd dumpmodule dumpmt dumpobj dumpobjgcrefs \
                 dumppermissionset dumprcw dumprequests dumpruntimetypes dumpsig dumpsigelem dumpstack dumpstackobjects dumpvc dw eeheap eestack \
                 eeversion ehinfo ephrefs ephtoloh faq finalizequeue findappdomain findpointersin findroots gchandleleaks gchandles gcheapstat \
                 gcinfo gcroot gctonative gcwhere help histclear histinit histobj histobjfind histroot histstats ip2md listnearobj lm loadsymbols \
                 logclose logging logopen maddress modules name2ee notreachableinrange objsize parallelstacks pathto pe printexception pstacks \
                 rcwcleanuplist readmemory registers runtimes savemodule setclrpath sethostruntime setsymbolserver setthread sizestats sosflush \
                 soshelp sosstatus stoponexception suspendjit syncblk taskstate threadpool threadpoolqueue threads threadstate timerinfo token2ee \
                 traverseheap u verifyheap verifyobj";
    let known = |name: &str| SOS.iter().chain(HABITS).any(|c| c.names.contains(&name)) || ["help", "modules", "threads"].contains(&name);
    let unknown: Vec<&str> = names.split_whitespace().filter(|name| !known(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
