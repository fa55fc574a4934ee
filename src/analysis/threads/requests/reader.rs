//! State that the readers of requests share.

use crate::analysis::threads::task_names::Names;
use crate::base::hash::Map;
use crate::base::{Addr, Collector};
use crate::bcl::Library;
use crate::bcl::tasks::Tasks;
use crate::session::Heap;

pub(super) struct Reader<'r> {
    pub(super) heap: &'r Heap,
    pub(super) library: &'r Library,
    pub(super) tasks: &'r Tasks,
    pub(super) names: Names<'r>,
    /// Maps each continuation of a suspended runtime async method to its task.
    pub(super) suspended: Map<Addr, Addr>,
    pub(super) notes: &'r Collector,
}
