//! Many connection pools for one server.
//!
//! Rule: at least `pools` pools for one server that are not garbage. A handler of `HttpClient` has one pool for each server, so the program has
//! created as many handlers. Each handler has its own connections, so the program may run out of sockets. `IHttpClientFactory` creates a new handler
//! every two minutes, so a few are alive at a time.
//!
//! Source: the pools that `requests --outgoing` lists.

use std::collections::BTreeMap;

use super::answers::{Answers, Skip};
use super::line::{counted, plural_or};
use crate::analysis::{ConnectionPool, Problem, ProblemId, ProblemSeverity};
use crate::base::len64;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let least = answers.thresholds().pools;
    let mut servers: BTreeMap<&str, Vec<&ConnectionPool>> = BTreeMap::new();
    for pool in &answers.http()?.pools {
        servers.entry(pool.server.as_deref().unwrap_or("an unknown server")).or_default().push(pool);
    }
    servers.retain(|_, pools| len64(pools.len()) >= least);
    let mut found = Vec::new();
    for (server, mut pools) in servers {
        // Without the graph, garbage is counted as well.
        if answers.query.graph {
            let garbage = answers.garbage_among(&pools.iter().map(|p| p.object).collect::<Vec<_>>())?;
            pools.retain(|pool| !garbage.contains(&pool.object));
        }
        let count = len64(pools.len());
        if count < least {
            continue;
        }
        let connections = pools.iter().fold(0u64, |n, pool| n.saturating_add(pool.connections));
        let title = format!(
            "{} for {server}, with {}: each HttpClient handler makes its own pool; share one handler or HttpClient",
            counted(count, "connection pool"),
            plural_or(connections, "connection", "no connection"),
        );
        let problem = answers.finding(ProblemId::ConnectionPools, ProblemSeverity::Warning, title, &["requests", "--outgoing"]);
        found.push(Problem { count: Some(count), object: pools.first().map(|p| p.object), ..problem });
    }
    Ok(found)
}
