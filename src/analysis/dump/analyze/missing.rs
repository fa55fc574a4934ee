//! Parts that the dump does not have.
//!
//! Rule: the file is cut, its compressed data is damaged, or a command cannot answer in full, as `info` shows. With the missing parts, there might be
//! more findings. The finding is a warning if objects are missing, since most findings are about objects.
//!
//! Source: the commands themselves. Features that a runtime does not have are not missing.

use super::answers::{Answers, Skip};
use super::line::{listed, one_line};
use crate::analysis::dump::answers::answers as ask;
use crate::analysis::{AnswerKind, AnswerModel, Problem, ProblemId, ProblemSeverity};
use crate::base::{Missing, Remedy, in_units, len64};
use crate::session::Heap;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let list = ask(answers.runtime).list;
    let lacking: Vec<&AnswerModel> = list.iter().filter(|a| !matches!(a.answer, AnswerKind::Full | AnswerKind::Undescribed)).collect();
    let facts = &answers.runtime.file().facts;
    let cut = facts.truncated_bytes;
    let mut parts: Vec<String> = facts.damage.iter().cloned().collect();
    if cut > 0 && parts.is_empty() {
        parts.push(format!("the dump is cut off: {} missing at the end", in_units(cut)));
    }
    if !lacking.is_empty() {
        let names = listed(lacking.iter().map(|a| &a.command));
        // The note does not name the module whose file is missing.
        let remedy = lacking.iter().find_map(|a| a.remedy).map(|r| if r == Remedy::ModuleFile { Remedy::ProgramFiles } else { r });
        answers.notes.add(Missing::Answer.supplied_by(remedy), None, format!("commands not answered in full: {names}"));
        let reason = lacking.iter().find_map(|a| a.reason.as_ref()).map(|r| format!(" ({})", one_line(r))).unwrap_or_default();
        parts.push(format!("commands not answered in full: {names}{reason}"));
    }
    if parts.is_empty() {
        return Ok(Vec::new());
    }
    if let Some(note) = answers.runtime.heap().ok().as_ref().and_then(Heap::no_heap) {
        parts.insert(0, note.message.clone());
    }
    let severity = if lacking.iter().any(|a| a.command == "objects") { ProblemSeverity::Warning } else { ProblemSeverity::Info };
    let title = format!("Parts of the process are not in the dump: {}", parts.join("; "));
    let finding = answers.finding(ProblemId::MissingParts, severity, title, &["info"]);
    Ok(vec![Problem { count: Some(len64(lacking.len())), bytes: Some(cut).filter(|n| *n > 0), ..finding }])
}
