//! Failed allocations.

use crate::analysis::dump::env::gc_with_properties;
use crate::base::{Answer, NoteKind};
use crate::model::{OomModel, OomReport};
use crate::session::{Error, Runtime};

/// Reports the last failed allocation of each heap.
///
/// # Errors
/// [`Error::Contract`] if the descriptor does not describe the GC's structures.
pub fn oom(runtime: &Runtime) -> Result<Answer<OomReport>, Error> {
    let notes = runtime.begin();
    let gc = gc_with_properties(runtime)?;
    // These records are valid even while a collection moves objects.
    notes.extend(&gc.notes.without(NoteKind::GcMoving));
    let heaps = notes.take(gc.oom());
    let all = || heaps.iter().map(OomModel::failed);
    let any = if all().any(|failed| failed == Some(true)) { Some(true) } else { all().reduce(Option::and).flatten() };
    let limit = gc.limit();
    let unknown = limit.as_ref().is_some_and(|limit| limit.committed_bytes.is_none());
    if unknown || limit.is_some() && any != Some(false) {
        // How close the heap is to the limit explains a failure. The committed bytes are those of the segments and free regions. If they are unknown,
        // the notes say why.
        notes.extend(&gc.segments().notes.without(NoteKind::GcMoving));
        notes.extend(&gc.regions().notes.without(NoteKind::GcMoving));
    }
    Ok(notes.finish(OomReport { any, limit, heaps }))
}
