//! Arguments and environment of the process, and settings of the runtime.

mod report;

use std::sync::Arc;

pub use report::*;

use crate::analysis::dump::analyze::shell_line;
use crate::base::missed::tried;
use crate::base::{Answer, Collector, Count, Missing, thousands};
use crate::bcl::Library;
use crate::clr::library::{Classifier, library_types};
use crate::contract::ContractError;
use crate::gc::Gc;
use crate::managed::Value;
use crate::memory::Memory;
use crate::session::{Dump, Error, Runtime, Startup, ValueError};

library_types! {
    /// The library type of runtime properties.
    enum PropertyType {
        in "System.Private.CoreLib" {
            AppContext = "System.AppContext",
        }
    }
}

/// Most properties that are read. Hosts pass a few dozen.
const MOST: u64 = 10_000;
/// Prefixes of environment variables that the runtime reads, and of properties that configure the GC.
const READ_BY_RUNTIME: [&str; 2] = ["DOTNET_", "COMPlus_"];
const OF_GC: &str = "System.GC.";

/// Returns arguments, environment and properties of the process of `dump`. Does not require a readable runtime.
pub fn env(dump: &Dump, runtime: usize) -> Answer<EnvReport> {
    let notes = Collector::new();
    notes.extend(dump.notes());
    let runtime = dump.runtime_at(runtime).ok();
    let startup = startup(dump);
    let properties = runtime.as_ref().and_then(properties);
    if let Some(properties) = &properties {
        properties.note(&notes);
    }
    match &startup {
        None => notes.add(Missing::Process, None, "the arguments and the environment of the process are not in the dump"),
        Some(startup) => note_lost(startup, &notes),
    }
    if properties.is_none() {
        notes.add(Missing::Process, None, "the properties of the runtime are not in the dump");
    }
    let of = |(name, value)| VariableModel { name, value };
    let list = |list: Vec<(String, String)>| list.into_iter().map(of).collect();
    let command_line = startup.as_ref().and_then(command_line);
    let is_shown = !dump.memory().hides_contents();
    let (source, arguments, environment) = match startup {
        Some(startup) => (Some(startup.source), startup.arguments, is_shown.then(|| list(startup.environment))),
        None => (None, None, None),
    };
    notes.finish(EnvReport { source, arguments, command_line, environment, properties: properties.map(|properties| list(properties.list)) })
}

/// Returns arguments and environment of the process. If contents are hidden, the arguments are replaced, and the environment has only the names of the variables
/// that the runtime reads.
pub(in crate::analysis) fn startup(dump: &Dump) -> Option<Startup> {
    // Other commands also call this function and do not depend on it, so nothing is noted as missing.
    let startup = tried(|| Startup::of(dump.file(), dump.memory()))?;
    if !dump.memory().hides_contents() {
        return Some(startup);
    }
    let hidden = |_: String| Memory::HIDDEN.to_owned();
    Some(Startup {
        source: startup.source,
        arguments: startup.arguments.map(|list| list.into_iter().map(hidden).collect()),
        line: startup.line.map(hidden),
        // Other names may be as confidential as their values.
        environment: startup.environment.into_iter().filter(|(name, _)| is_read(name)).map(|(name, value)| (name, hidden(value))).collect(),
        lost: startup.lost,
    })
}

/// Adds a note if a part of the arguments or the environment is not in the dump.
pub(in crate::analysis) fn note_lost(startup: &Startup, notes: &Collector) {
    if startup.lost.is_some() {
        notes.add(Missing::Process, startup.lost, "a part of the arguments and the environment of the process is not in the dump");
    }
}

/// Returns the command line, quoted so that a shell takes each argument as one word.
pub(in crate::analysis) fn command_line(startup: &Startup) -> Option<String> {
    let of_arguments = || startup.arguments.as_deref().map(|list| shell_line(list.iter().map(String::as_str)));
    startup.line.clone().or_else(of_arguments)
}

/// Whether the runtime reads the environment variable.
fn is_read(name: &str) -> bool {
    READ_BY_RUNTIME.iter().any(|begin| name.starts_with(begin))
}

/// Returns the settings from the environment and `runtimeconfig.json`: all variables that the runtime reads, and the properties of the GC.
pub(in crate::analysis) fn settings(startup: Option<&Startup>, runtime: Option<&Runtime>) -> Vec<SettingModel> {
    let environment = startup.iter().flat_map(|s| &s.environment);
    let environment = environment.filter(|(name, _)| is_read(name));
    let of = |source: SettingSource| move |(name, value): (String, String)| SettingModel { name, value, source };
    let properties = runtime.and_then(properties).unwrap_or_default().list.into_iter().filter(|(name, _)| name.starts_with(OF_GC));
    let environment = environment.cloned().map(of(SettingSource::Environment));
    environment.chain(properties.map(of(SettingSource::RuntimeConfig))).collect()
}

/// Returns the GC of `runtime`, which then knows the properties of the runtime, where `runtimeconfig.json` may limit the heap.
///
/// # Errors
/// See [`Runtime::gc`].
pub(in crate::analysis) fn gc_with_properties(runtime: &Runtime) -> Result<&Arc<Answer<Gc>>, ContractError> {
    let gc = runtime.gc()?;
    gc.give_properties(|| properties(runtime).unwrap_or_default().list);
    Ok(gc)
}

/// The properties of the runtime.
#[derive(Default)]
struct Properties {
    /// Names and values, in this order.
    list: Vec<(String, String)>,
    /// Number of properties whose name or value cannot be read, and the first reason.
    lost: Option<(u64, Error)>,
}

impl Properties {
    /// Adds a note if properties are missing from the list.
    fn note(&self, notes: &Collector) {
        if let Some((count, why)) = &self.lost {
            let what = if *count == 1 { "a property".to_owned() } else { format!("{} properties", thousands(*count)) };
            notes.add(Missing::Process, None, format!("{what} of the runtime cannot be read: {why}"));
        }
    }
}

/// Returns the properties of the runtime by name.
fn properties(runtime: &Runtime) -> Option<Properties> {
    let mut out = tried(|| read_properties(runtime).ok().flatten())?;
    out.list.sort();
    Some(out)
}

fn read_properties(runtime: &Runtime) -> Result<Option<Properties>, Error> {
    let notes = Collector::new();
    let types = runtime.types()?;
    let Some(table) = Classifier::<PropertyType>::bind(types).table(PropertyType::AppContext) else { return Ok(None) };
    let library = Library::of(runtime, types, &notes);
    let Some(store) = library.static_object(table, "s_dataStore").ok().flatten() else { return Ok(None) };
    let heap = runtime.heap()?;
    let entries = heap.object(store)?.entries()?;
    // Programs may set properties that are null or not strings.
    let text = |value: &Value| match value.object().and_then(|object| object.string()) {
        Ok(text) => Ok(Some(text)),
        Err(Error::Value(ValueError::Null { .. } | ValueError::WrongType { .. })) => Ok(None),
        Err(e) => Err(e),
    };
    let limit = usize::try_from(MOST).unwrap_or(usize::MAX);
    let mut out = Properties::default();
    for (name, value) in entries.take(limit) {
        match text(&name).and_then(|name| Ok((name, text(&value)?))) {
            Ok((Some(name), Some(value))) => out.list.push((name, value)),
            Ok(_) => {}
            Err(e) => out.lost.get_or_insert((0, e)).0.bump(),
        }
    }
    Ok(Some(out))
}
