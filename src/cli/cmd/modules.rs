//! `modules`: arguments and query, and the download of files with `--fetch`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::DumpArg;
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::RowsArgs;
use super::super::values::address;
use crate::analysis::ModulesReport;
use crate::analysis::{ModulesQuery, modules};
use crate::base::{Addr, Answer};
use crate::output::Paging;

/// Modules: version, identity, load context, which files are needed for precise answers and where they are. With --fetch, downloads them.
#[derive(Debug, Args)]
pub(in crate::cli) struct Modules {
    /// Only modules with this name or path (repeatable): a glob (* and ?), in any case.
    #[arg(long, value_name = "GLOB")]
    name: Vec<String>,

    /// Only the module at this address: of its image, of a part of it, of the runtime's Module or Assembly.
    #[arg(long, value_name = "ADDR", value_parser = address)]
    at: Option<Addr>,

    /// Only modules whose files supply what the dump does not have.
    #[arg(long)]
    needed: bool,

    #[cfg(feature = "fetch")]
    #[command(flatten)]
    fetch: fetching::FetchArgs,

    #[command(flatten)]
    rows: RowsArgs,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Modules {
    const NAME: &'static str = "modules";
    const GROUP: Group = Group::Dump;
    const EXAMPLES: &'static [Example] = &[
        example("modules DUMP", "every module, and which files answers need"),
        example("modules --needed DUMP", "what would make answers precise, and where it was found"),
        example("modules --name 'System.*' DUMP", "modules by name"),
    ];
    type Report = ModulesReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.rows.page(at))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<ModulesReport>> {
        let query = ModulesQuery {
            runtime: at.config.runtime,
            names: self.name.clone(),
            at: self.at,
            needed: self.needed,
            top: self.rows.counted(at),
        };
        #[cfg(feature = "fetch")]
        if self.fetch.is_asked() {
            return self.fetch.answer(at, &query);
        }
        Ok(modules(at.dump()?, &query)?)
    }
}

#[cfg(feature = "fetch")]
mod fetching {
    use std::time::Duration;

    use anyhow::Result;
    use clap::Args;

    use crate::analysis::{FetchOutcome, ModulesReport};
    use crate::analysis::{ModulesQuery, modules};
    use crate::base::{Answer, Missing, plural};
    use crate::cli::args::{duration, size};
    use crate::cli::command::At;
    use crate::cli::exit::UsageError;
    use crate::cli::fetch::{Fetcher, Sources, Store, addresses};
    use crate::session::Dump;

    /// Maximum number of rounds. More than one is needed, because some assemblies are listed only after the runtime's file has been downloaded.
    const ROUNDS: u32 = 4;

    /// Options of `--fetch`.
    #[derive(Clone, Debug, Args)]
    #[command(next_help_heading = "Downloading")]
    pub(super) struct FetchArgs {
        /// Download the files that are needed and were not found into gcdump's cache, where every command finds them.
        ///
        /// The request to a source has the name of a file and its build id, or its time stamp and size; to NuGet the version of the runtime. Nothing else
        /// leaves this machine, and nothing at all without this option. A file is kept once its identity is checked.
        #[arg(long)]
        fetch: bool,

        /// Symbol server to ask (repeatable) [default: $GCDUMP_SYMBOL_SERVER, else Microsoft's public one, for files of the framework only].
        ///
        /// https, or http on this machine. $DEBUGINFOD_URLS are asked for ELF files as well.
        #[arg(long, value_name = "URL")]
        symbol_server: Vec<String>,

        /// NuGet feed to ask for the packages of the runtime (repeatable): its index.json, or the address below which packages lie
        /// [default: nuget.org, unless another source is named].
        #[arg(long, value_name = "URL")]
        nuget: Vec<String>,

        /// Download the files of all listed modules that were not found, not only those that are needed.
        #[arg(long, requires = "fetch")]
        all: bool,

        /// Also download the portable PDBs of the listed modules, for source lines.
        #[arg(long, requires = "fetch")]
        pdbs: bool,

        /// Most bytes to download (suffixes K, M, G).
        #[arg(long, value_name = "BYTES", default_value = "2G", value_parser = size)]
        max_download: u64,

        /// Most time for each file: 30s, 2m.
        #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
        fetch_timeout: Duration,
    }

    impl FetchArgs {
        /// Whether `--fetch` is given.
        pub(super) fn is_asked(&self) -> bool {
            self.fetch
        }

        pub(super) fn answer(&self, at: &At<'_>, query: &ModulesQuery) -> Result<Answer<ModulesReport>> {
            if at.config.no_local_files {
                return Err(UsageError("--fetch fills gcdump's cache, which --no-local-files excludes".into()).into());
            }
            if std::env::var_os("GCDUMP_MODULES").is_some_and(|value| value == "off") {
                return Err(UsageError("--fetch fills gcdump's cache, which GCDUMP_MODULES=off excludes".into()).into());
            }
            let named = match self.symbol_server.is_empty() {
                true => addresses("GCDUMP_SYMBOL_SERVER"),
                false => self.symbol_server.clone(),
            };
            let sources = Sources {
                symbols: named,
                nuget: self.nuget.clone(),
                debuginfod: addresses("DEBUGINFOD_URLS"),
                most: self.max_download,
                each: self.fetch_timeout,
                pdbs: self.pdbs,
                all: self.all,
            };
            let store = Store::of_user(at.config.cache_size)?;
            let (options, all) = (&at.opening.options, ModulesQuery { top: 0, ..query.clone() });
            let facts = at.dump()?.file().facts.clone();
            let mut fetcher = Fetcher::new(&sources, &store, &facts, at.dump()?.memory().shape(), options);
            let (mut dump, mut fetched) = (at.dump()?.clone(), Vec::new());
            for _ in 0..ROUNDS {
                let report = modules(&dump, &all)?;
                let runtime = dump.runtime_at(at.config.runtime).ok().and_then(|r| r.description().version.clone());
                let more = fetcher.fetch(&report, runtime.as_deref())?;
                let any = more.iter().any(|f| f.outcome == FetchOutcome::Fetched);
                fetched.extend(more);
                if !any {
                    break;
                }
                dump = Dump::open(&at.opening.path, options)?;
            }
            let mut answer = modules(&dump, query)?;
            let missing = fetched.iter().filter(|f| f.outcome != FetchOutcome::Fetched).count();
            if missing > 0 {
                let what = format!("{} could not be fetched", plural(crate::base::len64(missing), "file"));
                answer.notes.add(Missing::File, None, what);
            }
            answer.data.fetched = Some(fetched);
            Ok(answer)
        }
    }
}
