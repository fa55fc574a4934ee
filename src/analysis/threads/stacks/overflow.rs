//! Describes the recursion on a stack that overflowed.

use super::merge::label;
use crate::analysis::{StackFrameModel, StackRepeat, ThreadStackModel};
use crate::base::hash::Map;
use crate::base::{Count, Name, len64, plural, thousands};
use crate::model::StackFrameKind;

/// Maximum number of methods named if no cycle fills the stack.
const MOST_METHODS: usize = 3;
/// A method is named if at least one of this many frames belongs to it.
const SHARE: u64 = 10;

/// The recursion on a stack.
#[derive(Debug)]
pub(crate) struct Recursion {
    /// `Lab.Recurse → Lab.Other, about 12,400 times, started by Lab.Program.Main(System.String[])`.
    pub(crate) text: String,
    /// Number of repetitions of the cycle, or the number of frames if they have no cycle.
    pub(crate) times: u64,
}

/// Describes the recursion on `stack`: the cycle with the most frames if it fills at least half of the stack, or else the most frequent methods.
/// `None` if the stack has no methods.
pub(crate) fn recursion(stack: &ThreadStackModel) -> Option<Recursion> {
    let managed: Vec<&StackFrameModel> = stack.frames.iter().filter(|f| f.kind == StackFrameKind::Managed).collect();
    let frames = len64(managed.len());
    // The unknown part of the stack may have more repetitions.
    let about = if stack.gaps.iter().any(|gap| gap.loses_frames) { "at least" } else { "about" };
    let size = |r: &&StackRepeat| r.frames.saturating_mul(r.times);
    if let Some(repeat) = stack.repeats.iter().max_by_key(size).filter(|r| size(r).saturating_mul(2) >= frames) {
        let end = usize::try_from(repeat.first.saturating_add(size(&repeat))).unwrap_or(usize::MAX);
        let above = stack.frames.get(end..).unwrap_or_default().iter().find(|f| f.kind == StackFrameKind::Managed);
        let text = format!("{}, {about} {} times{}", repeat.cycle, thousands(repeat.times), begun(above));
        return Some(Recursion { text, times: repeat.times });
    }
    let mut counts: Map<Name, u64> = Map::default();
    managed.iter().for_each(|f| counts.entry(label(f)).or_default().bump());
    let mut most: Vec<(Name, u64)> = counts.into_iter().filter(|(_, n)| *n > 1 && n.saturating_mul(SHARE) >= frames).collect();
    most.sort_by(|(a, n), (b, m)| m.cmp(n).then_with(|| a.cmp(b)));
    most.truncate(MOST_METHODS);
    let innermost = label(managed.first()?);
    let Some(first) = managed.iter().rposition(|f| most.iter().any(|(name, _)| *name == label(f))) else {
        return Some(Recursion { text: format!("{innermost}, {about} {}", plural(frames, "frame")), times: frames });
    };
    let named: Vec<String> = most.iter().map(|(name, n)| format!("{name} {} times", thousands(*n))).collect();
    let above = managed.get(first.saturating_add(1)).copied();
    let text = format!("{about} {} frames, most of them: {}{}", thousands(frames), named.join(", "), begun(above));
    Some(Recursion { text, times: frames })
}

/// Returns the end of the text: the method that began the recursion.
fn begun(by: Option<&StackFrameModel>) -> String {
    by.map(|f| format!(", started by {}", label(f))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::cycles::cycles;
    use super::*;
    use crate::analysis::{StackCoverage, StackGap};
    use crate::base::Addr;

    /// Returns the text for a stack of methods with the one-letter `names`, outermost first.
    fn text(names: &str, lost: bool) -> Option<String> {
        let frame =
            |c: char| StackFrameModel { display: Some(c.to_string().into()), ..StackFrameModel::new(StackFrameKind::Managed, Addr(8)) };
        let frames: Vec<StackFrameModel> = names.chars().rev().map(frame).collect();
        let gap = StackGap { from: None, to: None, loses_frames: true, reason: String::new(), module: None, remedy: None };
        let stack = ThreadStackModel {
            managed_id: None,
            os_id: None,
            name: None,
            crashed: true,
            coverage: StackCoverage::Precise,
            gaps: lost.then_some(gap).into_iter().collect(),
            exception: None,
            waits_for: None,
            repeats: cycles(&frames),
            frames,
        };
        recursion(&stack).map(|r| r.text)
    }

    #[test]
    fn a_recursion_is_a_cycle_or_the_methods_of_many_frames() {
        let is = |names: &str, expected: &str| assert_eq!(text(names, false).as_deref(), Some(expected));
        assert_eq!(text("", false), None);
        is("mg", "g, about 2 frames");
        is(&format!("mg{}rx", "ro".repeat(1200)), "r → o, about 1,200 times, started by g");
        is(&"r".repeat(50), "r, about 50 times");
        // Recursion over a tree: no cycle, but few methods.
        let walk: String = (0..3000u32).map(|i| if i.wrapping_mul(2_654_435_761) >> 31 == 0 { 'l' } else { 'r' }).collect();
        let found = text(&format!("mg{walk}x"), false).unwrap();
        assert!(found.starts_with("about 3,003 frames, most of them: ") && found.ends_with(" times, started by g"), "{found}");
        assert_eq!(text(&format!("mg{}", "r".repeat(30)), true).as_deref(), Some("r, at least 30 times, started by g"));
    }
}
