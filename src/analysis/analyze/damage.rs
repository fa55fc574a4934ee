//! Memory of the heap that is neither object nor free.
//!
//! Rule: the walk had to skip bytes to find the next object. While a collection moves objects that is no damage. `verify` looks closer.
//!
//! Source: the coverage of the walk that counts free space.

use super::answers::{Answers, Skip};
use super::line::counted;
use crate::model::{Problem, ProblemId, ProblemSeverity};

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let skipped = answers.fragmentation()?.coverage.skipped_bytes;
    let moving = answers.runtime.gc().is_ok_and(|gc| gc.facts().moves_objects());
    if skipped == 0 || moving {
        return Ok(Vec::new());
    }
    let title = format!("{} of the heap are neither objects nor free space: it is corrupt", counted(skipped, "byte"));
    Ok(vec![Problem { bytes: Some(skipped), ..answers.finding(ProblemId::Damage, ProblemSeverity::Critical, title, &["verify"]) }])
}
