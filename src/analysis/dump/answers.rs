//! Finds the commands that a dump can answer, by calling the functions of the commands, so that `info` and the commands agree.

use std::collections::BTreeSet;

use crate::analysis::{AnswerBasis, AnswerKind, AnswerModel, ThreadStackModel};
use crate::analysis::{HandlesQuery, HeapQuery, SegmentsQuery, StacksQuery, StatQuery, ThreadsQuery};
use crate::analysis::{each_handle, each_stack, heap, oom, segments, stat, threads};
use crate::base::{Answer, Count, Missing, Notes, Remedy, in_units, total};
use crate::contract::ContractError;
use crate::managed::Segment;
use crate::model::SegmentModel;
use crate::session::{Error, Runtime};

/// Most bytes of objects that are walked, so that `info` does not take longer on a large heap than on a small one. For a larger heap, only the
/// prerequisites of a walk and the presence of the objects are checked.
const MAX_WALK: u64 = 8 << 20;

/// The result of calling a command's function.
struct Outcome {
    /// Whether the answer has any content.
    found: bool,
    notes: Notes,
    /// Shown instead of the first note that makes the answer partial, with what would complete the answer.
    reason: Option<(String, Option<Remedy>)>,
    basis: AnswerBasis,
    /// The reason why the runtime does not have this kind of data. In this case, nothing is missing from the dump.
    undescribed: Option<String>,
}

impl Outcome {
    fn of<T>(answer: Answer<T>, found: impl FnOnce(&T) -> bool) -> Outcome {
        Outcome { found: found(&answer.data), notes: answer.notes, reason: None, basis: AnswerBasis::Answered, undescribed: None }
    }

    fn undescribed(why: String) -> Outcome {
        Outcome { found: false, notes: Notes::new(), reason: None, basis: AnswerBasis::Answered, undescribed: Some(why) }
    }

    fn model(command: &str, asked: Result<Outcome, Error>) -> AnswerModel {
        let (answer, basis) = (AnswerKind::No, AnswerBasis::Answered);
        let no = |reason| AnswerModel { command: command.into(), answer, reason, remedy: None, basis };
        let asked = match asked {
            Ok(asked) => asked,
            Err(e) => return no(Some(e.to_string())),
        };
        if asked.undescribed.is_some() {
            return AnswerModel { answer: AnswerKind::Undescribed, ..no(asked.undescribed) };
        }
        let Some(lost) = asked.notes.first_loss() else {
            return AnswerModel { answer: AnswerKind::Full, basis: asked.basis, ..no(None) };
        };
        let answer = if asked.found { AnswerKind::Partial } else { AnswerKind::No };
        let (reason, remedy) = asked.reason.unwrap_or_else(|| (lost.message.clone(), lost.remedy));
        AnswerModel { answer, remedy, basis: asked.basis, ..no(Some(reason)) }
    }
}

/// The answers of commands.
pub(in crate::analysis) struct Answers {
    /// The answers, in the order in which `info` lists them.
    pub(in crate::analysis) list: Vec<AnswerModel>,
    /// The segments, if they could be read at least in part.
    pub(in crate::analysis) segments: Option<Answer<Vec<SegmentModel>>>,
    /// The stacks that are walked conservatively, if module files would make them precise.
    pub(in crate::analysis) imprecise: Option<Imprecise>,
}

/// Stacks that are walked conservatively.
pub(in crate::analysis) struct Imprecise {
    pub(in crate::analysis) stacks: u64,
    pub(in crate::analysis) total: u64,
    /// Names of the module files that are needed.
    pub(in crate::analysis) files: Vec<String>,
}

/// Asks each command for its answer.
pub(in crate::analysis) fn answers(runtime: &Runtime) -> Answers {
    let segments = segments(runtime, &SegmentsQuery::default());
    let listed = segments.as_ref().ok().map(|s| Answer::new(s.segments.clone(), s.notes.clone()));
    let mut imprecise = None;
    let list = [
        ("heap", heap(runtime, &HeapQuery::default()).map(|a| Outcome::of(a, |h| h.totals.segments > 0))),
        ("segments", segments.map(|a| Outcome::of(a, |s| !s.segments.is_empty()))),
        ("objects", objects(runtime)),
        ("handles", each_handle(runtime, &HandlesQuery::default(), &mut drop).map(|a| Outcome::of(a, |h| h.total > 0))),
        ("oom", oom(runtime).map(|a| Outcome::of(a, |o| !o.heaps.is_empty()))),
        ("stacks", stacks(runtime, &mut imprecise)),
        ("threads", threads(runtime, &ThreadsQuery::default()).map(|a| Outcome::of(a, |t| !t.threads.is_empty()))),
    ];
    let list = list.into_iter().map(|(command, asked)| Outcome::model(command, asked)).collect();
    Answers { list, segments: listed, imprecise }
}

/// Determines whether the stacks can be walked. Sets `imprecise` if module files would make them precise.
fn stacks(runtime: &Runtime, imprecise: &mut Option<Imprecise>) -> Result<Outcome, Error> {
    let (mut frames, mut gapped, mut modules) = (false, 0u64, BTreeSet::new());
    let mut look = |thread: ThreadStackModel| {
        frames |= !thread.frames.is_empty();
        gapped.grow(u64::from(!thread.gaps.is_empty()));
        modules.extend(thread.gaps.into_iter().filter_map(|gap| gap.module));
    };
    let answer = match each_stack(runtime, &StacksQuery::default(), &mut look) {
        Err(Error::Contract(e @ (ContractError::NotAdvertised { .. } | ContractError::NativeAotStacks | ContractError::Mono { .. })))
            if runtime.thread_list().is_ok() =>
        {
            return Ok(Outcome::undescribed(e.to_string()));
        }
        answer => answer?,
    };
    let files: Vec<String> = modules.into_iter().collect();
    let reason = (!files.is_empty()).then(|| {
        let text = format!("frames may be missing in {gapped} of {} stacks without the files of {}", answer.data, files.join(", "));
        (text, Some(Remedy::ProgramFiles))
    });
    // Frames whose references are unknown do not make the answer partial by themselves.
    let is_reason = answer.notes.iter().any(|note| matches!(note.code, Some(Missing::Stacks | Missing::Memory)));
    let reason = reason.filter(|_| is_reason);
    *imprecise = (!files.is_empty()).then_some(Imprecise { stacks: gapped, total: answer.data, files });
    Ok(Outcome { reason, ..Outcome::of(answer, |total| frames || *total == 0) })
}

/// Determines whether the objects can be walked: runs `stat` if there are few objects, or else the first steps of every walk.
fn objects(runtime: &Runtime) -> Result<Outcome, Error> {
    let heap = runtime.heap()?;
    let segments = heap.segments();
    let sum = |f: fn(&Segment) -> u64| total(segments.iter().map(f));
    let (allocated, captured) = (sum(|s| s.range().len()), sum(Segment::captured_bytes));
    let mut notes = heap.begin().into_notes();
    let lacking =
        (captured < allocated).then(|| format!("only {} of {} of objects are in the dump", in_units(captured), in_units(allocated)));
    // If the list of segments is cut off, the note about it explains more than these numbers.
    let reason = lacking.clone().filter(|_| notes.complete()).map(|lacking| (lacking, None));
    if allocated <= MAX_WALK {
        let answer = stat(&heap, &StatQuery::default())?;
        return Ok(Outcome { reason, ..Outcome::of(answer, |s| s.totals.count > 0 || s.totals.free_count > 0) });
    }
    if let Some(lacking) = lacking {
        notes.add(Missing::Heap, None, lacking);
    }
    Ok(Outcome { found: captured > 0, notes, reason: None, basis: AnswerBasis::Bound, undescribed: None })
}
