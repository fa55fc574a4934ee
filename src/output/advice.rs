//! Options of the command line that supply what is missing from an answer. The library does not name options, because programs without a command line show
//! its messages too.

use std::borrow::Cow;

use crate::analysis::{AnswerModel, RuleNeed, StackGap};
use crate::base::{Missing, Note, NoteKind, Remedy};

/// Returns the option or command that helps with what `note` reports, in words that follow its message.
pub(crate) fn of_note(note: &Note) -> Option<Cow<'static, str>> {
    if let (NoteKind::NoMatch, Some(at)) = (note.kind, note.address) {
        return Some(format!("`gcdump where {at}` says what is there").into());
    }
    Some(Cow::Borrowed(match (note.remedy?, note.kind, note.code) {
        (Remedy::ModuleFile, NoteKind::ModuleMismatch, _) => "--modules PATH with the module supplies its id",
        (Remedy::ModuleFile, _, Some(Missing::Stacks)) => MEMORY_OF_A_MODULE,
        (remedy, ..) => of_remedy(remedy),
    }))
}

/// Returns the option that makes a part of a stack precise, in words that follow the reason.
pub(super) fn of_gap(gap: &StackGap) -> Option<&'static str> {
    gap.remedy.map(|remedy| if remedy == Remedy::ModuleFile { MEMORY_OF_A_MODULE } else { of_remedy(remedy) })
}

/// Returns the option that completes the answer of a command, in words that follow the reason.
pub(super) fn of_answer(answer: &AnswerModel) -> Option<&'static str> {
    answer.remedy.map(of_remedy)
}

/// Returns the option that decides whether a rule of `analyze` has what it needs.
pub(super) const fn of_need(need: RuleNeed) -> &'static str {
    match need {
        RuleNeed::Graph => "--no-graph",
        RuleNeed::EarlierDump => "--since",
    }
}

const MEMORY_OF_A_MODULE: &str = "--modules PATH with its file supplies this memory";

const fn of_remedy(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::ModuleFile => "--modules PATH with its file supplies it",
        Remedy::ProgramFiles => "--modules PATH with the files of the application and its framework supplies them",
        Remedy::GivenFile => "--modules PATH with it uses it anyway",
        Remedy::RuntimeFiles => "--modules PATH with the files of the runtime may supply the rest",
        Remedy::Symbols => "--modules PATH or --symbols DIR supplies them",
        Remedy::Overlay => "--overlay FILE may supply it",
        Remedy::OtherRuntime => "--runtime N selects another",
        Remedy::MoreMemory => "a higher --max-memory allows more",
    }
}

/// Returns `reason`, followed by `advice`.
pub(crate) fn joined(reason: &str, advice: Option<&str>) -> String {
    advice.map_or_else(|| reason.into(), |advice| format!("{reason}; {advice}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Notes;

    #[test]
    fn every_remedy_names_an_option() {
        for remedy in Remedy::ALL {
            let mut notes = Notes::new();
            notes.add(Missing::Heap.supplied_by(remedy), None, "absent");
            assert!(of_note(notes.iter().next().unwrap()).unwrap().contains("--"), "{remedy}");
        }
    }

    #[test]
    fn the_words_fit_the_message() {
        let mut notes = Notes::new();
        notes.add(Missing::Stacks.supplied_by(Remedy::ModuleFile), None, "4 bytes are not in the dump");
        notes.add(NoteKind::ModuleMismatch.supplied_by(Remedy::ModuleFile), None, "the id is not known");
        notes.add(Missing::Metadata.supplied_by(Remedy::ModuleFile), None, "the metadata of a.dll is not in the dump");
        notes.add(Missing::Metadata, None, "a field is not in the dump");
        let texts: Vec<String> = notes.iter().map(|note| joined(&note.message, of_note(note).as_deref())).collect();
        let wanted = [
            "4 bytes are not in the dump; --modules PATH with its file supplies this memory",
            "the id is not known; --modules PATH with the module supplies its id",
            "the metadata of a.dll is not in the dump; --modules PATH with its file supplies it",
            "a field is not in the dump",
        ];
        assert_eq!(texts, wanted);
    }
}
