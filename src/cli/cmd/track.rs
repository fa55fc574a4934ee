//! `track`: arguments and query, with the later dump.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::command::{At, Command, Example, Group, example};
use super::super::select::PageArgs;
use crate::analysis::TrackReport;
use crate::analysis::{TrackQuery, TrackView, track};
use crate::base::Answer;
use crate::output::Paging;

/// Objects from one dump of a process to the next: which survived, moved, died, were born.
///
/// Dumps carry no object identity; each match says how sure it is: certain, likely or doubtful. Doubtful ones are counted apart and
/// hidden. Two dumps that are not of one process, the earlier one first, are refused (exit code 3).
#[derive(Debug, Args)]
pub(in crate::cli) struct Track {
    /// List each match: address before and after, certainty, type, size.
    #[arg(long, conflicts_with = "ranges")]
    objects: bool,

    /// List the ranges of survivors that moved and of those that stayed, as profilers report them.
    #[arg(long)]
    ranges: bool,

    /// With --objects: also list doubtful matches.
    #[arg(long, requires = "objects")]
    doubtful: bool,

    /// Number of types to list, 0 for all; totals always cover everything [default: what fits a terminal; all in pipes, files and other
    /// formats].
    #[arg(short = 'n', long, value_name = "N", conflicts_with_all = ["objects", "ranges"])]
    top: Option<usize>,

    #[command(flatten)]
    page: PageArgs,

    /// The dump taken first: an ELF core or a Windows minidump, also compressed with zstd or gzip.
    #[arg(value_name = "BEFORE")]
    before: PathBuf,

    /// The dump of the same process taken later.
    #[arg(value_name = "AFTER", required = true, num_args = 1)]
    after: Vec<PathBuf>,
}

impl Command for Track {
    const NAME: &'static str = "track";
    const GROUP: Group = Group::Compare;
    const EXAMPLES: &'static [Example] = &[
        example("track BEFORE AFTER", "what became of the objects, by type and generation"),
        example("track --objects BEFORE AFTER", "each object that is in both dumps, and where it went"),
        example("track --ranges BEFORE AFTER", "moved and surviving ranges, as profilers report them"),
    ];
    type Report = TrackReport;

    fn dump(&self) -> Result<Option<PathBuf>> {
        Ok(Some(self.before.clone()))
    }

    fn further(&self) -> &[PathBuf] {
        &self.after
    }

    fn page(&self, at: &At<'_>) -> Option<Paging> {
        Some(self.page.of(at.rows(self.top)))
    }

    fn answer(&self, at: &At<'_>) -> Result<Answer<TrackReport>> {
        let view = match (self.objects, self.ranges) {
            (true, _) => TrackView::Objects,
            (_, true) => TrackView::Ranges,
            _ => TrackView::Types,
        };
        let query = TrackQuery { view, doubtful: self.doubtful, top: self.page.counted(at.rows(self.top)) };
        Ok(track(&at.heap_at(0)?, &at.heap_at(1)?, &query)?)
    }
}
