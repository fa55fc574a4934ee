//! `requests`: arguments and query.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::args::{DumpArg, FrameworkArg};
use super::super::command::{At, Command, Example, Group, example};
use super::super::select::{ColumnArg, FitArg};
use crate::analysis::{RequestDirection, RequestsReport};
use crate::analysis::{RequestsQuery, requests};
use crate::base::Answer;
use crate::output::{Paging, View};

/// HTTP requests in flight, incoming and outgoing, and sockets with both ends.
#[derive(Debug, Args)]
pub(in crate::cli) struct Requests {
    /// Only requests that ASP.NET Core serves: HTTP/1.1, HTTP/2, HTTP/3, WebSockets
    #[arg(long, conflicts_with = "outgoing")]
    incoming: bool,

    /// Only requests that `HttpClient` sent, with connection pools and sockets
    #[arg(long)]
    outgoing: bool,

    /// Count sockets and connections that are garbage as well: without the graph of the heap, which takes time and memory for large heaps
    #[arg(long)]
    no_graph: bool,

    #[command(flatten)]
    framework: FrameworkArg,

    #[command(flatten)]
    sort: ColumnArg,

    #[command(flatten)]
    rows: FitArg,

    #[command(flatten)]
    dump: DumpArg,
}

impl Command for Requests {
    const NAME: &'static str = "requests";
    const GROUP: Group = Group::Threads;
    const EXAMPLES: &'static [Example] = &[
        example("requests DUMP", "which requests wait for an answer"),
        example("requests --incoming DUMP", "which requests the server works on, since when, and what each waits for"),
    ];
    type Report = RequestsReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(self.dump.path())
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.sort.of(self.rows.page(at)))
    }

    fn rows_on_screen(&self, at: &At<'_>) -> Option<usize> {
        self.rows.on_screen(at)
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<RequestsReport>> {
        let direction = match (self.incoming, self.outgoing) {
            (true, _) => Some(RequestDirection::Incoming),
            (_, true) => Some(RequestDirection::Outgoing),
            (false, false) => None,
        };
        Ok(requests(&at.heap()?, &RequestsQuery { direction, graph: !self.no_graph })?)
    }

    fn view(&self, _at: &At<'_>, _report: &RequestsReport) -> Result<View> {
        Ok(View { framework: self.framework.framework, ..View::default() })
    }
}
