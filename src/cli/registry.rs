//! The list of commands. Help, dispatch, SOS names, schemas, documentation and tests are derived from it.

use super::cmd::{
    analyze, async_chains, bridge, completions, contracts, diff, env, exceptions, export, finalizers, fleet, fragmentation, handles, heap,
    index, info, inspect, locks, man, mcp, memory, modules, near, object, objects, objsize, oom, path, pool, refs, report, requests,
    retained, roots, segments, shell, simulate, stacks, stat, statics, strings, threads, timers, track, trim, types, unreachable, verify,
    whatif, where_is,
};
use super::command::{Entry, entry};

/// The commands, in help order.
pub const COMMANDS: &[Entry] = &[
    entry::<info::Info>(),
    entry::<analyze::Analyze>(),
    entry::<env::Env>(),
    entry::<memory::Memory>(),
    entry::<modules::Modules>(),
    entry::<contracts::Contracts>(),
    entry::<heap::Heap>(),
    entry::<segments::Segments>(),
    entry::<fragmentation::Fragmentation>(),
    entry::<handles::Handles>(),
    entry::<finalizers::Finalizers>(),
    entry::<oom::Oom>(),
    entry::<stat::Stat>(),
    entry::<objects::Objects>(),
    entry::<object::Object>(),
    entry::<where_is::Where>(),
    entry::<near::Near>(),
    entry::<strings::Strings>(),
    entry::<types::Type>(),
    entry::<statics::Statics>(),
    entry::<path::Path>(),
    entry::<refs::Refs>(),
    entry::<retained::Retained>(),
    entry::<objsize::Objsize>(),
    entry::<roots::Roots>(),
    entry::<unreachable::Unreachable>(),
    entry::<whatif::Whatif>(),
    entry::<simulate::Simulate>(),
    entry::<bridge::Bridge>(),
    entry::<inspect::Inspect>(),
    entry::<threads::Threads>(),
    entry::<stacks::Stacks>(),
    entry::<locks::Locks>(),
    entry::<exceptions::Exceptions>(),
    entry::<async_chains::Async>(),
    entry::<pool::Pool>(),
    entry::<timers::Timers>(),
    entry::<requests::Requests>(),
    entry::<diff::Diff>(),
    entry::<track::Track>(),
    entry::<report::Report>(),
    entry::<export::Export>(),
    entry::<fleet::Fleet>(),
    entry::<index::Index>(),
    entry::<verify::Verify>(),
    entry::<trim::Trim>(),
];

/// Commands without a report, schema and formats. `super::OWN` runs these commands, because they use the registry themselves.
const OTHERS: &[Entry] = &[shell::SHELL, mcp::MCP, completions::COMPLETIONS, man::MAN];

/// Returns all commands, in help order.
pub(super) fn all() -> impl Iterator<Item = &'static Entry> + Clone {
    COMMANDS.iter().chain(OTHERS)
}

/// Finds the command with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    all().find(|c| c.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_in_the_order_of_their_groups() {
        assert!(COMMANDS.windows(2).all(|w| w[0].group <= w[1].group));
    }
}
