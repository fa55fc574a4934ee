//! Help on what all commands share: `gcdump help TOPIC`.

use std::fmt::Write as _;

use clap::{Args, Command as Clap};

use super::args::Config;
use super::sos;
use crate::output::{Format, fold};

/// Maximum width of the help in columns.
pub(super) const WIDTH: usize = 100;

/// A topic: its name, and a function that formats its text for a width in columns.
type Topic = (&'static str, fn(usize) -> String);

/// The topics.
pub(super) const TOPICS: &[Topic] = &[
    ("options", options),
    ("patterns", |width| fold(PATTERNS, width)),
    ("conditions", |width| fold(CONDITIONS, width)),
    ("formats", |width| fold(&formats(), width)),
    ("files", |width| fold(FILES, width)),
    ("exit-codes", |width| fold(EXIT_CODES, width)),
    ("sos", sos_commands),
];

const PATTERNS: &str = "\
Addresses are hexadecimal: 7f31535a25f8, 0x7f31535a25f8 or 00007f31`535a25f8. Where an object is expected, any address within \
it will do.

TYPE in --type TYPE, and in gcdump type TYPE, is, in this order:
  System.String      the full name, as printed
  Lab.*              a pattern for the full name: * is any text, ? one character
  Program+Entry      the end of the name, after a namespace or an enclosing type, in any case: Entry finds Lab.Program+Entry, \
Dictionary every instance of the generic type
  List`1, List<T>    every instance of the generic type with one type parameter; List<> and Dictionary<string,> work, too
  List`1[[A, asm]]   List<A> as Type.FullName, ToString() and logs write it, with or without the names of assemblies
  ntr                any part of the name, in any case
  int[], List<int>   keywords of C#, and generic types as C# writes them; namespaces of arguments may be left out
  /^Lab.*Node$/      a regular expression for a part of the full name; /(?i)lab/ in any case
  async Lab.Db.Load  the box of an asynchronous method, as answers show it
  0x7f31535a25f8     a method table; so is a word of eight or more hexadecimal digits
Commas outside of brackets separate types: Lab.Dog,Lab.Node is both. The name of a type's assembly may follow the type, as logs \
write it: Lab.Dog, lab, Version=1.0.0.0.
A word without *, ? and slashes means the first of these that some type fits. If no type fits, a message lists the nearest \
names, and the exit code is 1.

Sizes take the suffixes K, M, G and T, of 1024: --min-size 85K. Times take ms, s, m and h.

DUMP may be before the command, before or after the address, and defaults to $GCDUMP_DUMP, then to the only dump in the \
current folder; - reads it from standard input.

A word that is neither an option nor a dump is what the command can be limited to: stacks Main, stacks 1, strings dog, statics Lab.Program, retained \
Lab.Node, exceptions 0x7f31535a25f8. Options may be before the command, and be spelled -Type or --TYPE.
";

const CONDITIONS: &str = "\
--where CONDITION selects objects, in objects, stat and strings: --where 'size > 1K and gen = gen2 and field(\"_state\") = 3'

  size, length, address, heap       numbers: bytes, elements or characters, index of the GC heap; 4096, 4K, 1.5M, 0x1000
  type, module                      texts: full name of the type, file name of its module
  generation (gen)                  gen0, gen1, gen2, loh, poh, frozen
  _state, field(\"_owner._name\")    a field, by its path through references and structures: a number, a text, true, false, \
null, the name or number of an enum; a reference is the address of the object
  = != < <= > >=                    compare numbers, texts and times; ~ compares with a pattern: type ~ \"Lab.*\"
  and, or, not, ( )                 in this order: not, and, or; &&, || and ! mean the same

Texts are in quotes of either kind; a single word after a comparison needs none. A comparison with a field that the \
object does not have, or that is not in the dump, is neither true nor false: such objects are not selected, not by its negation either.
";

const FORMATS: &str = "
Answers go to standard output, warnings and progress to standard error; JSON and NDJSON contain the warnings as well. In a \
pipe or a file, and in all formats but table, answers list all rows unless --top limits them; rankings of objects, such as retained, list the first 20. -o FILE writes a file, which is complete or not there.
";

const FILES: &str = "\
Pages of modules that a dump does not have are read from their files. A file is used only if its build id (ELF), its time stamp and \
size (PE) or its id (portable PDB) is the one that the dump has. Files are looked for, in this order:

  --modules PATH             by name, in the folder, or the file itself; also in single-file programs
  --sysroot DIR              at the recorded path, below DIR
  the recorded path          only on a local disk, for dumps of this machine's system
  $GCDUMP_MODULES            by name, in these folders (separated as in PATH); off: neither here nor in the places below
  .NET on this machine       shared frameworks below $DOTNET_ROOT, /usr/share/dotnet, /usr/lib/dotnet, ~/.dotnet, Program Files
  NuGet                      microsoft.netcore.app.runtime.RID and its relatives, below $NUGET_PACKAGES or ~/.nuget/packages
  symbol caches              ~/.dotnet/symbolcache, %TEMP%\\SymbolCache
  gcdump's cache             modules, in gcdump in the user's folder for caches

--no-local-files leaves only the first two. A file of --modules or --sysroot that the dump cannot verify is used as the one that it is \
given for; one from any other place is not.
";

const EXIT_CODES: &str = "  0   complete answer
  1   negative answer: no object is of the requested type, the heap is corrupt, a rule is broken
  2   usage error, or more memory needed than --max-memory allows, or more threads (mcp) than the system starts
  3   no readable dump
  4   no supported .NET runtime in it
  5   partial answer: something is missing from the dump, or has an impossible value; warnings say what (with --strict: any warning). What fails for \
certain exits with 1 all the same: an error that verify finds, a rule of diff that the missing data cannot change, a finding of analyze --fail-on whose own \
inspection was complete
  6   timed out (--timeout)
  7   the answer, or a temporary file (TMPDIR), could not be written
  130 ended by SIGINT, SIGTERM or SIGHUP; no part of a file is left
";

/// Returns the options of every command, as `gcdump help options` lists them.
fn options(width: usize) -> String {
    let list = Config::augment_args(Clap::new("gcdump")).disable_help_flag(true).term_width(width).help_template("{options}");
    format!("Options of every command:\n{}\n{}", list.clone().render_long_help(), fold(LISTS, width))
}

/// Options that have the same meaning in every command that has them.
const LISTS: &str = "
Where a command lists things:
  -n, --top N        so many rows, 0 for all; totals always cover everything
  --skip N           without the first N rows: --skip 20 --top 20 lists rows 21 to 40. Equal rows keep their order, so that pages are together the whole \
list. JSON and the header of NDJSON have the rows of each list in pages
  -s, --sort COLUMN  the order of the rows, before --top cuts them: amounts descending, all else (names, addresses, ids, times) \
ascending, what is unknown last, equal rows as without it. Every format has this order. A column that the list does not have is refused \
with those it has
  --where CONDITION  only rows for which this holds: of objects, by properties and fields, of other lists, by the columns of the table (gcdump help conditions)
      --select A,B   only these columns, named as in CSV, in tables, CSV and Markdown (an option of every command)
  -t, --type TYPE    only what has such a type (gcdump help patterns)
";

/// Returns the output formats and the rules they share.
fn formats() -> String {
    let mut out = String::from("--format FORMAT, or --json:\n");
    let width = Format::ALL.iter().map(|f| f.name().len()).max().unwrap_or(0);
    for format in Format::ALL {
        let _ = writeln!(out, "  {:<width$}    {}", format.name(), format.help());
    }
    out + FORMATS
}

/// Returns the commands of SOS and familiar commands of other tools, with their equivalents.
fn sos_commands(columns: usize) -> String {
    let mut out = String::from("Commands of SOS are understood in any case, with or without '!', with their flags.\n\n");
    table(&mut out, sos::COMMANDS);
    out.push_str("\nWords of other debuggers and profilers are understood as well.\n\n");
    table(&mut out, sos::HABITS);
    fold(&out, columns)
}

fn table(out: &mut String, commands: &[sos::Sos]) {
    let width = commands.iter().map(|c| c.names.join(", ").len()).max().unwrap_or(0).min(34);
    for command in commands {
        let names = command.names.join(", ");
        let here = match command.to {
            sos::To::Words(words) => format!("gcdump {}", words.join(" ")),
            sos::To::Refused(why) => why.into(),
        };
        if names.len() > width {
            let _ = writeln!(out, "  {names}\n  {:<width$}  {here}", "");
        } else {
            let _ = writeln!(out, "  {names:<width$}  {here}");
        }
    }
}

/// Returns the text of a topic, for a screen of this width.
pub(super) fn text(topic: &str, width: Option<usize>) -> String {
    let width = width.map_or(WIDTH, |columns| columns.min(WIDTH));
    TOPICS.iter().find(|(name, ..)| *name == topic).map(|(_, text)| text(width)).unwrap_or_default()
}
