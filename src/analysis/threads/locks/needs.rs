//! Finds the tasks and methods that must complete before a task completes.

use std::collections::VecDeque;

use crate::base::Addr;
use crate::base::hash::Set;

/// The objects that a task or method waits for.
#[derive(Clone, Debug, Default)]
pub(super) struct Step {
    /// The tasks and methods that it waits for.
    pub(super) awaits: Vec<Addr>,
    /// Whether it completes as soon as one of `awaits` is complete. Otherwise it needs all.
    pub(super) any: bool,
    /// Whether it needs no thread that is known to be blocked: it is complete, or a timer completes it.
    pub(super) ends: bool,
}

/// Tasks that are not complete, by the task or method that continues when they complete.
#[derive(Debug)]
pub(super) struct Antecedents {
    /// The task or method that continues, and a task. Sorted.
    pairs: Vec<(Addr, Addr)>,
}

impl Antecedents {
    /// `pairs` are the tasks and methods that continue, each with a task.
    pub(super) fn new(mut pairs: Vec<(Addr, Addr)>) -> Antecedents {
        pairs.sort_unstable();
        pairs.dedup();
        Antecedents { pairs }
    }

    /// The tasks after which `node` continues.
    pub(super) fn of(&self, node: Addr) -> impl Iterator<Item = Addr> + '_ {
        let first = self.pairs.partition_point(|(waiter, _)| *waiter < node);
        self.pairs.iter().skip(first).take_while(move |(waiter, _)| *waiter == node).map(|(_, task)| *task)
    }
}

/// The tasks and methods that must complete first.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// The objects that are needed in any case.
    pub(super) all: Vec<Addr>,
    /// Groups of alternatives. Of each group, one alternative is needed.
    pub(super) any: Vec<Vec<Alternative>>,
}

/// One of several alternatives.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Alternative {
    /// The tasks and methods that this alternative needs.
    pub(super) nodes: Vec<Addr>,
    /// Whether one of them ends without a thread that is known to be blocked.
    pub(super) ends: bool,
}

impl Needs {
    /// Follows `first` to everything that they await. With `any`, only one of `first` is needed. `step` returns `None` for an object that is not to be
    /// followed.
    pub(super) fn of(first: &[Addr], any: bool, mut step: impl FnMut(Addr) -> Option<Step>) -> Needs {
        let mut groups: Vec<Vec<Addr>> = Vec::new();
        let (mut all, mut seen) = (Vec::new(), Set::default());
        let mut open: VecDeque<Addr> = VecDeque::new();
        if any {
            groups.push(first.to_vec());
        } else {
            open.extend(first);
        }
        while let Some(node) = open.pop_front() {
            if !seen.insert(node) {
                continue;
            }
            let Some(step) = step(node) else { continue };
            all.push(node);
            if step.any {
                groups.push(step.awaits);
            } else {
                open.extend(step.awaits);
            }
        }
        let mut group = |first: Vec<Addr>| {
            let (mut out, mut seen) = (Vec::new(), Set::default());
            let mut open: VecDeque<Addr> = first.into();
            while let Some(node) = open.pop_front() {
                if !seen.insert(node) {
                    continue;
                }
                match step(node) {
                    // An alternative that consists of alternatives.
                    Some(Step { awaits, any: true, ends: false }) => open.extend(awaits),
                    Some(first) => out.push(Alternative::of(node, first, &mut step)),
                    None => out.push(Alternative::default()),
                }
            }
            out
        };
        let any = groups.into_iter().map(&mut group).collect();
        Needs { all, any }
    }

    /// All tasks and methods.
    pub(super) fn nodes(&self) -> impl Iterator<Item = Addr> + '_ {
        self.all.iter().chain(self.any.iter().flatten().flat_map(|alternative| &alternative.nodes)).copied()
    }
}

impl Alternative {
    /// Follows `node` without its alternatives: which of those are needed is not known.
    fn of(node: Addr, first: Step, step: &mut impl FnMut(Addr) -> Option<Step>) -> Alternative {
        let (mut out, mut seen) = (Alternative::default(), Set::default());
        let mut open = VecDeque::from([(node, Some(first))]);
        while let Some((node, known)) = open.pop_front() {
            if !seen.insert(node) {
                continue;
            }
            let Some(found) = known.or_else(|| step(node)) else { continue };
            out.ends |= found.ends;
            out.nodes.push(node);
            if !found.any {
                open.extend(found.awaits.into_iter().map(|next| (next, None)));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needs(first: &[u64], any: bool, steps: &[(u64, Step)]) -> Needs {
        let first: Vec<Addr> = first.iter().map(|n| Addr(*n)).collect();
        Needs::of(&first, any, |node| steps.iter().find(|(n, _)| *n == node.0).map(|(_, step)| step.clone()))
    }

    fn awaits(list: &[u64]) -> Step {
        Step { awaits: list.iter().map(|n| Addr(*n)).collect(), ..Step::default() }
    }

    fn all_of(list: &[u64], ends: bool) -> Alternative {
        Alternative { nodes: awaits(list).awaits, ends }
    }

    #[test]
    fn what_is_awaited_is_needed_once() {
        // 1 awaits 2 and 3, both await 4, and 4 awaits 1. 5 is not a task.
        let steps = [(1, awaits(&[2, 3])), (2, awaits(&[4])), (3, awaits(&[4, 5])), (4, awaits(&[1]))];
        assert_eq!(needs(&[1], false, &steps), Needs { all: awaits(&[1, 2, 3, 4]).awaits, any: Vec::new() });
    }

    #[test]
    fn a_task_needs_those_whose_continuation_it_is() {
        // 1 is the task of `WhenAll` for 3, 4 and 5; a method awaits 1; 9 continues after 4 as well.
        let antecedents = Antecedents::new([(1, 4), (2, 1), (1, 3), (9, 4), (1, 5), (1, 3)].map(|(a, b)| (Addr(a), Addr(b))).to_vec());
        let step = |node| Some(Step { awaits: antecedents.of(node).collect(), ..Step::default() });
        assert_eq!(Needs::of(&[Addr(2)], false, step), Needs { all: awaits(&[2, 1, 3, 4, 5]).awaits, any: Vec::new() });
        assert_eq!(Needs::of(&[Addr(9)], false, step).all, awaits(&[9, 4]).awaits);
    }

    #[test]
    fn alternatives_are_grouped() {
        let any = |list: &[u64]| Step { any: true, ..awaits(list) };
        let timer = Step { ends: true, ..Step::default() };
        // 1 awaits 2, which needs 3 or 4; 4 awaits 5, a timer.
        let steps = [(1, awaits(&[2])), (2, any(&[3, 4])), (3, awaits(&[])), (4, awaits(&[5])), (5, timer.clone())];
        let group = || vec![all_of(&[3], false), all_of(&[4, 5], true)];
        assert_eq!(needs(&[1], false, &steps), Needs { all: awaits(&[1, 2]).awaits, any: vec![group()] });
        assert_eq!(needs(&[3, 4], true, &steps), Needs { all: Vec::new(), any: vec![group()] });
        // An alternative that consists of alternatives, one that awaits some, and one that cannot be followed.
        let whole = vec![all_of(&[1, 2], false), all_of(&[], false), group().remove(0), group().remove(1)];
        assert_eq!(needs(&[2, 1, 9], true, &steps), Needs { all: Vec::new(), any: vec![whole] });
    }
}
