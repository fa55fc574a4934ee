//! Failed allocations.

use crate::base::Answer;
use crate::model::{OomModel, OomReason, OomReport};
use crate::session::{Error, Runtime};

/// The last failed allocation of each heap.
///
/// # Errors
/// [`Error::Contract`] if the GC's structures are not described.
pub fn oom(runtime: &Runtime) -> Result<Answer<OomReport>, Error> {
    let notes = runtime.begin();
    let heaps = notes.take(notes.with(runtime.gc()?).oom());
    let any = (!heaps.is_empty()).then(|| heaps.iter().any(|h: &OomModel| h.reason != OomReason::None));
    Ok(notes.finish(OomReport { any, heaps }))
}
