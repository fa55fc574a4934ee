//! Rules 5 and 6: objects between two known neighbors.
//!
//! A collection keeps the order of the objects that it moves. So all objects between two anchors afterwards were between them before. Objects that
//! are missing afterwards are dead.
//!
//! 5. If both anchors moved by the *same distance*, each object between them moved by that distance or is dead. Otherwise, objects whose contents
//!    occur once divide the window. Between these, the survivors are a subsequence of the earlier objects, and a survivor is matched only if it fits
//!    one earlier object. The rule is not applied to anchors with a pinned object between them, because other objects may have passed it, unless
//!    nothing moved.
//! 6. If more than 1 of 50 windows of a part have objects that were not there before, survivors of younger generations filled its free space. Then
//!    the order excludes no candidate: a match is at most "likely", and only if the contents are equal and distinctive. Objects that were merely
//!    fitted are doubtful, and none is recorded as dead.
//!
//! Free space among large objects is reused for any object that fits, so matches of large objects by these rules are only "doubtful".

use rayon::prelude::*;

use super::fit::fit;
use super::ids::{New, Old};
use super::pairs::{Fate, Pairs};
use super::rising::longest_rising;
use super::side::{SegmentShare, Traits};
use super::vetoes::{Both, Space};
use super::witnesses::once_each;
use crate::base::missed::Carried;
use crate::base::{Count, Index, Indices};
use crate::gc::SegmentIndex;

/// Reasons for matching an object in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// The object moved by the same distance as its neighbors.
    Distance,
    /// No other object in the window has the same contents.
    Contents,
    /// Like `Contents`, but with so few different bytes that another object may have got the same contents.
    SmallContents,
    /// The survivor fits only one earlier object.
    Fit,
    /// The object is next to an anchor with no other anchor on that side, and moved by the same distance as the anchor.
    Edge,
}

#[derive(Clone, Copy, Debug)]
struct Finding {
    old: Old,
    new: New,
    reason: Reason,
    /// Whether an object came into this window from elsewhere.
    foreign: bool,
}

/// The windows of a part whose objects moved to the same segment.
#[derive(Default)]
struct Windows {
    to: SegmentIndex,
    count: u64,
    /// Number of windows into which objects came from elsewhere.
    foreign: u64,
    findings: Vec<Finding>,
    dead: Vec<Old>,
}

/// A part is mixed if objects came from elsewhere into more than 1 of this number of windows.
const MIXED: u64 = 50;

/// Number of parts that are processed before their findings are recorded.
const BATCH: usize = 32;

/// Applies the rules to every part.
pub(super) fn place(both: &Both<'_>, pairs: &mut Pairs) {
    let parts: Vec<&SegmentShare<Old>> = both.old.parts.iter().collect();
    let carried = Carried::here();
    for batch in parts.chunks(BATCH) {
        let view = &*pairs;
        let found: Vec<(Space, Vec<Windows>)> =
            batch.par_iter().map(|part| (Space::of(part.generation), carried.run(|| of_part(both, view, part)))).collect();
        for (space, windows) in found.into_iter().flat_map(|(space, list)| list.into_iter().map(move |w| (space, w))) {
            let mixed = windows.foreign.saturating_mul(MIXED) > windows.count;
            for f in windows.findings {
                let fate = match space {
                    Space::Small(_) => grade(both, &f, mixed || f.foreign),
                    _ => Fate::Doubtful,
                };
                pairs.join(f.old, f.new, fate);
            }
            if !mixed && matches!(space, Space::Small(_)) {
                windows.dead.into_iter().for_each(|old| pairs.mark_dead(old));
            }
        }
    }
}

fn grade(both: &Both<'_>, f: &Finding, mixed: bool) -> Fate {
    // Contents that many objects have in common are not evidence.
    let same = both.same_contents(f.old, f.new) && both.old.traits(f.old).has(Traits::DISTINCTIVE_NEARBY);
    match (f.reason, mixed) {
        (Reason::Distance | Reason::Contents | Reason::Fit, false) => Fate::Certain,
        (Reason::SmallContents, false) => Fate::Likely,
        (Reason::Distance | Reason::Contents, true) if same => Fate::Likely,
        // Without an anchor at the other end, a row of equal objects may have been shifted.
        (Reason::Edge, false) if same => Fate::Likely,
        _ => Fate::Doubtful,
    }
}

fn of_part(both: &Both<'_>, pairs: &Pairs, part: &SegmentShare<Old>) -> Vec<Windows> {
    if !matches!(Space::of(part.generation), Space::Small(_) | Space::Large) {
        return Vec::new();
    }
    let anchors = part.ids().filter(|old| both.old.traits(*old).has(Traits::ANCHOR));
    let anchors: Vec<(Old, New)> = anchors.filter_map(|old| Some((old, pairs.to(old)?))).collect();
    let mut out: Vec<Windows> = Vec::new();
    let segment = |new: New| both.new.part_of(new).map(|(_, p)| p.segment);
    let into = |out: &mut Vec<Windows>, to: SegmentIndex| -> usize {
        out.iter().position(|w| w.to == to).unwrap_or_else(|| {
            out.push(Windows { to, ..Windows::default() });
            out.len().saturating_sub(1)
        })
    };
    let within = Looking { both, pairs };
    let mut last: Option<(Old, New)> = None;
    for anchor in anchors.iter().copied() {
        let Some(to) = segment(anchor.1) else { continue };
        let joined = last.filter(|(_, new)| segment(*new) == Some(to) && *new < anchor.1);
        let at = into(&mut out, to);
        match (joined, out.get_mut(at)) {
            (Some(before), Some(windows)) => within.window(before, anchor, windows),
            (None, Some(windows)) => {
                within.edge(anchor, windows, |id| id.checked_sub(1));
                if let Some((before, to)) = last.and_then(|before| Some((before, segment(before.1)?))) {
                    let at = into(&mut out, to);
                    out.get_mut(at).into_iter().for_each(|w| within.edge(before, w, |id| id.checked_add(1)));
                }
            }
            _ => {}
        }
        last = Some(anchor);
    }
    if let Some((last, to)) = last.and_then(|last| Some((last, segment(last.1)?))) {
        let at = into(&mut out, to);
        out.get_mut(at).into_iter().for_each(|w| within.edge(last, w, |id| id.checked_add(1)));
    }
    out
}

struct Looking<'b> {
    both: &'b Both<'b>,
    pairs: &'b Pairs,
}

/// Returns the objects between `from` and `to`.
fn between<I: Index>(from: I, to: I) -> Indices<I> {
    let first = from.as_u32().saturating_add(1);
    Indices::new(I::from_u32(first), to.as_u32().saturating_sub(first))
}

impl Looking<'_> {
    /// Examines the objects between two anchors.
    fn window(&self, from: (Old, New), to: (Old, New), out: &mut Windows) {
        let (olds, news) = (between(from.0, to.0), between(from.1, to.1));
        if olds.len() == 0 && news.len() == 0 {
            return out.count.bump();
        }
        let (first, last) = (self.both.distance(from.0, from.1), self.both.distance(to.0, to.1));
        // If nothing moved, no object has passed a pinned object.
        let stayed = first == 0 && last == 0;
        let pinned = Traits::PINNED;
        if !stayed
            && (olds.clone().any(|o| self.both.old.traits(o).has(pinned)) || news.clone().any(|n| self.both.new.traits(n).has(pinned)))
        {
            return;
        }
        out.count.bump();
        let (found, buried) = (out.findings.len(), out.dead.len());
        let sound = if first == last { self.same_distance(from, to, out) } else { self.divide(from, to, out) };
        if !sound {
            out.foreign.bump();
            out.dead.truncate(buried);
            out.findings.iter_mut().skip(found).for_each(|f| f.foreign = true);
        }
    }

    /// Matches the objects between two anchors that moved by the same distance. Returns whether no object came from elsewhere.
    fn same_distance(&self, from: (Old, New), to: (Old, New), out: &mut Windows) -> bool {
        let both = self.both;
        let distance = both.distance(from.0, from.1);
        let mut sound = true;
        let mut news = between(from.1, to.1).peekable();
        for old in between(from.0, to.0) {
            let there = both.old.at(old).wrapping_add(distance);
            while news.next_if(|new| both.new.at(*new) < there).is_some() {
                sound = false;
            }
            match news.next_if(|new| both.new.at(*new) == there) {
                Some(new) if both.possible(old, new) => out.findings.push(Finding { old, new, reason: Reason::Distance, foreign: false }),
                Some(_) => {
                    sound = false;
                    out.dead.push(old);
                }
                None => out.dead.push(old),
            }
        }
        sound && news.next().is_none()
    }

    /// Divides the window by contents that occur once in it. Returns whether no object came from elsewhere.
    fn divide(&self, from: (Old, New), to: (Old, New), out: &mut Windows) -> bool {
        let both = self.both;
        let (olds, news) = (between(from.0, to.0), between(from.1, to.1));
        let mut before: Vec<(u64, Old)> = olds.filter_map(|o| Some((both.old.key_of(o)?, o))).collect();
        let mut after: Vec<(u64, New)> = news.filter_map(|n| Some((both.new.key_of(n)?, n))).collect();
        let mut once = once_each(&mut before, &mut after);
        once.retain(|(old, new)| both.possible(*old, *new));
        once.sort_unstable();
        let places: Vec<u32> = once.iter().map(|(_, new)| new.as_u32()).collect();
        let rising = longest_rising(&places);
        // If the pairs are out of order, some of the objects came from elsewhere.
        let mut sound = rising.len() == once.len();
        let mut last = from;
        for (old, new) in rising.into_iter().filter_map(|at| once.get(at).copied()).chain([to]) {
            sound &= if both.distance(last.0, last.1) == both.distance(old, new) {
                self.same_distance(last, (old, new), out)
            } else {
                self.fit(last, (old, new), out)
            };
            if (old, new) != to {
                let reason = if both.old.traits(old).has(Traits::DISTINCTIVE_NEARBY) { Reason::Contents } else { Reason::SmallContents };
                out.findings.push(Finding { old, new, reason, foreign: false });
            }
            last = (old, new);
        }
        sound
    }

    /// Fits the remaining objects. Returns whether they fit.
    fn fit(&self, from: (Old, New), to: (Old, New), out: &mut Windows) -> bool {
        let (olds, news) = (between(from.0, to.0), between(from.1, to.1));
        let (count, survivors) = (olds.len(), news.len());
        let old = |at: usize| nth(from.0, at);
        let new = |at: usize| nth(from.1, at);
        let Some(fit) = fit(count, survivors, |o, n| self.both.possible(old(o), new(n))) else { return false };
        out.findings.extend(fit.forced().map(|(o, n)| Finding { old: old(o), new: new(n), reason: Reason::Fit, foreign: false }));
        out.dead.extend(fit.dead(count).into_iter().map(old));
        true
    }

    /// Matches the objects next to an anchor, on the side without another anchor, as long as each moved by the same distance as the anchor.
    fn edge(&self, from: (Old, New), out: &mut Windows, step: impl Fn(u32) -> Option<u32>) {
        let both = self.both;
        let distance = both.distance(from.0, from.1);
        let (part, segment) = (both.old.part_of(from.0).map(|p| p.0), both.new.part_of(from.1).map(|p| p.1.segment));
        let (mut old, mut new) = from;
        while let (Some(o), Some(n)) = (step(old.as_u32()), step(new.as_u32())) {
            (old, new) = (Old::from_u32(o), New::from_u32(n));
            let together = both.old.part_of(old).map(|p| p.0) == part && both.new.part_of(new).map(|p| p.1.segment) == segment;
            let taken = self.pairs.to(old).is_some() || self.pairs.from(new).is_some();
            if !together || taken || both.distance(old, new) != distance || !both.possible(old, new) {
                break;
            }
            out.findings.push(Finding { old, new, reason: Reason::Edge, foreign: false });
        }
    }
}

/// Returns object number `at`, from 0, of the objects after `from`.
fn nth<I: Index>(from: I, at: usize) -> I {
    I::from_u32(from.as_u32().saturating_add(1).saturating_add(u32::try_from(at).unwrap_or(u32::MAX)))
}
