//! Commands of SOS as their users type them, and the first lines of gcdump's output for the dump in the repository.

use std::fmt::Write as _;
use std::path::Path;

use gcdump::cli::{Exit, HABITS, SOS, To};

use crate::common::{run, sample};

const DUMP: &str = "dumps/net10-wks-basics-heap.dmp.zst";

/// The typed words without the dump, the exit code, and a line of the output, with single spaces.
const LINES: &[(&str, Exit, &str)] = &[
    ("!DumpHeap -stat", Exit::Ok, "0x7f3d475a3cd8 1,011 667,482 69.8 % System.Byte[]"),
    ("dumpheap -stat -type Lab", Exit::Ok, "0x7f3d4750b4e8 1,000 40,000 4.2 % Lab.Node"),
    ("DumpHeap -type Lab.Dog", Exit::Ok, "0x7f316dc1e490 0x7f3d4750b718 824 gen2 Lab.Dog[]"),
    ("dumpheap -mt 0x7f3d4750b6a0", Exit::Ok, "0x7f316dc1e7c8 0x7f3d4750b6a0 48 gen2 Lab.Dog"),
    ("dumpheap -type Dog -short", Exit::Ok, "0x7f316dc1e490"),
    ("dumpheap -min 10000", Exit::Ok, "0x7f316dc01808 0x7f3d4708dd58 14,118 gen2 System.String"),
    ("dumpheap -gen loh", Exit::Ok, "0x7f316e000028 0x56412eef1480 32 loh Free"),
    ("dumpheap -gen gen2 -stat", Exit::Ok, "0x7f3d475a3cd8 1,000 55,020 5.8 % System.Byte[]"),
    ("dumpheap -strings", Exit::Ok, "6 16 324 270 0x7f3170003ed0 libSystem.Native"),
    ("dumpheap -dead", Exit::Ok, "37 2,016 0x7f3d4708dd58 System.String unreachable"),
    ("dumpheap -live", Exit::Ok, "ADDRESS SIZE RETAINED SHARE DOMINATED TYPE"),
    ("dumpheap -thinlock", Exit::Ok, "0 locks held or waited for, 0 threads blocked, no deadlock"),
    ("dumpgen gen2", Exit::Ok, "0x7f3d475a3cd8 1,000 55,020 5.8 % System.Byte[]"),
    ("dumpgen poh -type Object", Exit::Ok, "0x7f316b400028 0x7f3d470622d8 8,184 poh System.Object[]"),
    ("dumpobj 0x7f316dc27908", Exit::Ok, "Type Lab.Everything"),
    ("!do 0x7f316dc27908", Exit::Ok, "Type Lab.Everything"),
    ("do -nofields 0x7f316dc27908", Exit::Ok, "Type Lab.Everything"),
    ("dumpobj", Exit::Usage, "gcdump: object: the address is missing: object ADDRESS dumps/net10-wks-basics-heap.dmp.zst"),
    (
        "gcroot",
        Exit::Usage,
        "gcdump: path: the address is missing: path ADDRESS dumps/net10-wks-basics-heap.dmp.zst, or path --type TYPE dumps/net10-wks-basics-heap.dmp.zst",
    ),
    ("verifyobj", Exit::Usage, "gcdump: verifyobj: an argument for --object is missing"),
    ("dumparray 0x7f316dc238e0", Exit::Ok, "Type Lab.IShape[]"),
    ("da -start 1 -length 2 0x7f316dc238e0", Exit::Ok, "Type Lab.IShape[]"),
    ("dumpvc 0x7f3d4750e280 0x7f316dc279d8", Exit::Ok, "Type Lab.Tagged"),
    ("dumpvc 00007f3d`4750e280 7f316dc279d8", Exit::Ok, "Size 48 bytes"),
    ("dumpdelegate 0x7f316dc27da0", Exit::Ok, "Type System.Action"),
    ("objsize 0x7f316dc27908", Exit::Ok, "Object 0x7f316dc27908 Lab.Everything"),
    ("sizestats", Exit::Ok, "16 695 17,842 1.9 % 29 696"),
    ("listnearobj 0x7f316dc27908", Exit::Ok, "gen2 of heap 0, segment 0x7f31535a2010, objects from 0x7f316dc00028 to 0x7f316dc2bae8"),
    ("lno 0x7f316dc27908", Exit::Ok, "gen2 of heap 0, segment 0x7f31535a2010, objects from 0x7f316dc00028 to 0x7f316dc2bae8"),
    (
        "gcwhere 0x7f316dc27908",
        Exit::Ok,
        "0x7f316dc27908 Lab.Everything at 0x7f316dc27908 (264 bytes), gen2 of heap 0, segment 0x7f31535a2010",
    ),
    ("verifyheap", Exit::Ok, "No heap corruption found"),
    ("verifyobj 0x7f316dc27908", Exit::Ok, "No heap corruption found at 0x7f316dc27908"),
    ("dumpexceptions", Exit::Ok, "0x7f316dc00088 System.OutOfMemoryException 0x8007000e 0 - preallocated - -"),
    ("dumpexceptions -type OutOfMemory", Exit::Ok, "0x7f316dc00088 System.OutOfMemoryException 0x8007000e 0 - preallocated - -"),
    ("pe", Exit::Ok, "0x7f316dc00088 System.OutOfMemoryException 0x8007000e 0 - preallocated - -"),
    ("PrintException -nested", Exit::Ok, "0x7f316dc00088 System.OutOfMemoryException 0x8007000e 0 - preallocated - -"),
    ("eeheap -gc", Exit::Ok, "0 gen0 1 49,392 200,704 4,194,304 5.1 %"),
    ("!eeheap -gc", Exit::Ok, "0 gen0 1 49,392 200,704 4,194,304 5.1 %"),
    ("eeheap -loader", Exit::Partial, "module - 331 59,154,432 59,154,432 47.0 % 640,088 - 4,116,480"),
    ("gcheapstat", Exit::Ok, "0 gen0 1 49,392 200,704 4,194,304 5.1 %"),
    ("heapstat -inclUnrooted", Exit::Usage, "gcdump: heapstat -inclUnrooted: gcdump unreachable counts what no root holds"),
    ("analyzeoom", Exit::Ok, "Heap 0: no failed allocation recorded"),
    ("ao", Exit::Ok, "Heap 0: no failed allocation recorded"),
    (
        "gchandles",
        Exit::Ok,
        "0x7f3dc57411c0 weak-short 0x7f316dc05a20 0x7f3d471400f0 64 - System.Diagnostics.Tracing.EventSource+OverrideEventProvider",
    ),
    ("gchandles -stat", Exit::Ok, "weak-short 7"),
    ("gchandles -type Pinned", Exit::Ok, "0x7f3dc57415f8 pinned 0x7f316dc001f0 0x7f3d460647b0 24 - System.Object"),
    ("finalizequeue", Exit::Ok, "0x7f3d471400f0 6 0 0 System.Diagnostics.Tracing.EventSource+OverrideEventProvider"),
    ("fq -stat", Exit::Ok, "0x7f3d471400f0 6 0 0 System.Diagnostics.Tracing.EventSource+OverrideEventProvider"),
    ("gcroot 0x7f316dc27908", Exit::Ok, "static 0x7f316b400258: Lab.Everything.StaticOne"),
    ("gcroot -nostacks 0x7f316dc27908", Exit::Ok, "static 0x7f316b400258: Lab.Everything.StaticOne"),
    ("gcroot -all 0x7f316dc27908", Exit::Ok, "static 0x7f316b400258: Lab.Everything.StaticOne"),
    (
        "pathto 0x7f316dc27908 0x7f316dc238e0",
        Exit::Usage,
        "gcdump: pathto: paths between two objects are not searched; gcdump path ADDR shows what holds one",
    ),
    ("dumpmt 0x7f3d4750b6a0", Exit::Ok, "Name Lab.Dog"),
    // The dump was trimmed to the memory that other commands read.
    ("dumpmt -md 0x7f3d4750b6a0", Exit::Partial, "Name Lab.Dog"),
    ("name2ee Lab.dll Lab.Dog", Exit::Ok, "Name Lab.Dog"),
    ("name2ee *!Lab.Dog", Exit::Ok, "Name Lab.Dog"),
    ("dumpclass 0x7f3d474d3420", Exit::Ok, "0x7f3d474d3420 EEClass of Lab.Node, method table 0x7f3d4750b4e8"),
    ("dumpmodule 0x7f3d4750b6a0", Exit::Negative, "gcdump: no module matches 0x7f3d4750b6a0"),
    ("dumpassembly 0x56412ef31560", Exit::Negative, "gcdump: no module matches 0x56412ef31560"),
    (
        "clrmodules",
        Exit::Partial,
        "lab.dll assembly 1.0.0.0 0x7f3dc5722000 39,424 - a55e611d-0257-4b5f-b057-cb6faca52bae 0x56412eee1a50 no 0x7f3d47151a30 0 /app/net10/lab.dll -",
    ),
    (
        "lm -name lab.dll",
        Exit::Ok,
        "lab.dll assembly 1.0.0.0 0x7f3dc5722000 39,424 - a55e611d-0257-4b5f-b057-cb6faca52bae 0x56412eee1a50 no 0x7f3d47151a30 0 /app/net10/lab.dll -",
    ),
    (
        "dumpdomain",
        Exit::Partial,
        "lab.dll assembly 1.0.0.0 0x7f3dc5722000 39,424 - a55e611d-0257-4b5f-b057-cb6faca52bae 0x56412eee1a50 no 0x7f3d47151a30 0 /app/net10/lab.dll -",
    ),
    (
        "ip2md 0x7f3d479d9789",
        Exit::Ok,
        "0x7f3d479d9789 System.IO.Pipes.PipeStream.Read(Byte[], Int32, Int32)+0x79, ReadyToRun code [System.IO.Pipes.dll]",
    ),
    ("dumpil 0x7f3d479d9789", Exit::Usage, "gcdump: dumpil: gcdump shows no code; gcdump where IP names the method at an address"),
    ("clrthreads", Exit::Ok, "1 3005 - 0x56412ef31560 preemptive 0x7f317000afb0 0x7f317000c100 - - legal-to-join fully-initialized"),
    ("threads", Exit::Ok, "1 3005 - 0x56412ef31560 preemptive 0x7f317000afb0 0x7f317000c100 - - legal-to-join fully-initialized"),
    ("clrstack", Exit::Ok, "0x7ffc9d799f90 0x7f3dc52b839b - [PrestubMethodFrame] System.IO.Pipes.PipeStream.ReadCore(System.Span<Byte>)"),
    (
        "clrstack -all",
        Exit::Ok,
        "0x7ffc9d799f90 0x7f3dc52b839b - [PrestubMethodFrame] System.IO.Pipes.PipeStream.ReadCore(System.Span<Byte>)",
    ),
    ("clrstack -a", Exit::Ok, "0x7ffc9d799f90 0x7f3dc52b839b [PrestubMethodFrame] System.IO.Pipes.PipeStream.ReadCore(System.Span<Byte>)"),
    ("eestack", Exit::Ok, "0x7ffc9d799f90 0x7f3dc52b839b - [PrestubMethodFrame] System.IO.Pipes.PipeStream.ReadCore(System.Span<Byte>)"),
    ("dso", Exit::Ok, "0x7ffc9d799f90 0x7f3dc52b839b [PrestubMethodFrame] System.IO.Pipes.PipeStream.ReadCore(System.Span<Byte>)"),
    ("parallelstacks", Exit::Ok, "2 [DebuggerU2MCatchHandlerFrame] ← 2, 3 -"),
    ("pstacks", Exit::Ok, "2 [DebuggerU2MCatchHandlerFrame] ← 2, 3 -"),
    ("syncblk", Exit::Ok, "0 locks held or waited for, 0 threads blocked, no deadlock"),
    ("dlk", Exit::Ok, "0 locks held or waited for, 0 threads blocked, no deadlock"),
    ("dumpasync", Exit::Ok, "1 task: 1 RanToCompletion"),
    ("dumpasync -stats", Exit::Ok, "1 task: 1 RanToCompletion"),
    ("threadpool", Exit::Ok, "The process has not used the thread pool."),
    ("threadpoolqueue", Exit::Ok, "The process has not used the thread pool."),
    ("timerinfo", Exit::Ok, "0 timers active, 0 not in a queue (never started, fired or disposed of)"),
    ("ti", Exit::Ok, "0 timers active, 0 not in a queue (never started, fired or disposed of)"),
    ("dumphttp", Exit::Ok, "0 requests in flight, 0 others on the heap"),
    ("dumprequests", Exit::Ok, "0 requests in flight, 0 others on the heap"),
    (
        "dumprcw",
        Exit::Usage,
        "gcdump: dumprcw: COM wrappers are not listed; gcdump handles --type ref-counted shows the objects that they hold",
    ),
    ("eeversion", Exit::Ok, "program lab, process 3005, linux x64"),
    ("runtimes", Exit::Ok, "program lab, process 3005, linux x64"),
    ("maddress -summary", Exit::Partial, "module - 331 59,154,432 59,154,432 47.0 % 640,088 - 4,116,480"),
    (
        "maddress -orderBySize",
        Exit::Usage,
        "gcdump: maddress -orderBySize: gcdump memory lists the largest ranges that nothing explains, memory --ranges all by address",
    ),
    ("bpmd Lab Main", Exit::Usage, "gcdump: bpmd: a dump cannot be run: the process has ended or runs elsewhere"),
    (
        "setclrpath /x",
        Exit::Usage,
        "gcdump: setclrpath: there is nothing to set: gcdump needs neither the DAC nor symbols; --modules PATH and --symbols DIR add files",
    ),
    ("soshelp", Exit::Ok, "Commands of SOS are understood in any case, with or without '!', with their flags."),
    (
        "dumpheap -foo",
        Exit::Usage,
        "gcdump: dumpheap -foo: unknown flag; it accepts -stat -type -mt -min -max -gen -heap -segment -short -strings -dead -live -thinlock -ignoregcstate -noprogress -startatlowerbound (gcdump dumpheap --help)",
    ),
    ("dumpheep", Exit::Usage, "gcdump: there is no command 'dumpheep'; did you mean dumpheap? (gcdump --help lists all)"),
];

#[test]
fn lines_of_sos_are_answered() {
    for (typed, exit, shows) in sample(LINES, 4) {
        // The dump comes first, as gcdump shows its commands, or last, since SOS commands have no dump.
        for first in [true, false] {
            let words = typed.split_whitespace();
            let args: Vec<&str> = if first { std::iter::once(DUMP).chain(words).collect() } else { words.chain([DUMP]).collect() };
            let ran = run(&[&args[..], &["--no-local-files"]].concat());
            assert_eq!(ran.exit, *exit, "{typed}: {}", ran.err);
            let plain = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
            let printed: Vec<String> = ran.out.lines().chain(ran.err.lines()).map(plain).collect();
            assert!(printed.iter().take(4).any(|line| line == shows), "{typed}: {shows}\n{}", printed.join("\n"));
        }
    }
}

/// `docs/sos.md` lists every command and flag of the table that translates them.
#[test]
fn the_manual_lists_every_command_and_flag_of_sos() {
    let mut table = String::from("| SOS | here |\n| --- | --- |\n");
    for command in SOS {
        let names: Vec<String> = command.names.iter().map(|n| format!("`{n}`")).collect();
        let here = match command.to {
            To::Words(words) => format!("`{}`", words.join(" ")),
            To::Refused(why) => format!("refused: {why}"),
        };
        let _ = writeln!(table, "| {} | {here} |", names.join(", "));
        for flag in command.flags {
            let spellings: Vec<String> = flag.names.iter().map(|n| format!("`{n}`")).collect();
            let _ = writeln!(table, "| {} {} | {} |", names[0], spellings.join(", "), flag.here());
        }
    }
    let mut habits = String::from("| typed | here |\n| --- | --- |\n");
    for command in HABITS {
        let names: Vec<String> = command.names.iter().map(|n| format!("`{n}`")).collect();
        let here = match command.to {
            To::Words(words) => format!("`{}`", words.join(" ")),
            To::Refused(why) => format!("refused: {why}"),
        };
        let _ = writeln!(habits, "| {} | {here} |", names.join(", "));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/sos.md");
    let old = std::fs::read_to_string(&path).unwrap();
    let mut new = old.clone();
    for (name, table) in [("commands", &table), ("habits", &habits)] {
        let (begin, end) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
        let (head, rest) = new.split_once(&begin).unwrap();
        let (_, tail) = rest.split_once(&end).unwrap();
        new = format!("{head}{begin}{table}{end}{tail}");
    }
    if std::env::var_os("GCDUMP_BLESS").is_some() {
        std::fs::write(&path, &new).unwrap();
    } else {
        assert!(old == new, "docs/sos.md is outdated; GCDUMP_BLESS=1 cargo test --test it transcript:: rewrites it");
    }
}
