//! The dominator tree by type as an icicle chart: one row per depth, with boxes whose width is the retained size.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::text::{Escaped, percent, short};
use crate::analysis::{DiffReport, Icicle, IcicleBox};
use crate::base::{share, verb};
use crate::output::{bytes, plural};

/// Height of a row in pixels; must match the stylesheet.
const ROW: u32 = 22;
/// Number of hues for types.
const HUES: u64 = 8;

/// A box and its start, in bytes of the whole.
struct Placed<'i> {
    of: &'i IcicleBox,
    from: u64,
}

/// Places each box at the end of the previous box on its row, or at the start of its parent.
fn place(boxes: &[IcicleBox]) -> Vec<Placed<'_>> {
    let mut next: Vec<u64> = Vec::new();
    let mut out = Vec::with_capacity(boxes.len());
    for of in boxes {
        let depth = usize::try_from(of.depth).unwrap_or(usize::MAX).min(next.len());
        next.truncate(depth.saturating_add(1));
        if next.len() <= depth {
            next.push(0);
        }
        let Some(at) = next.get_mut(depth) else { continue };
        let from = *at;
        *at = from.saturating_add(of.retained);
        next.push(from);
        out.push(Placed { of, from });
    }
    out
}

/// Returns the CSS class for the growth of a type: stronger for more growth.
fn growth(changes: &FxHashMap<&str, i64>, name: &str, all: u64) -> &'static str {
    let gained = changes.get(name).copied().unwrap_or(0);
    let part = share(gained.unsigned_abs(), all).unwrap_or(0.0);
    match (gained > 0, part) {
        (_, p) if p < 0.001 => "g0",
        (true, p) if p < 0.05 => "g1",
        (true, _) => "g2",
        (false, _) => "l1",
    }
}

pub(super) fn draw(icicle: &Icicle, diff: Option<&DiffReport>, to: &mut Vec<u8>) -> io::Result<()> {
    let all = icicle.totals.reachable_bytes;
    let changes: Option<FxHashMap<&str, i64>> = diff.map(|d| d.rows.iter().map(|r| (r.key.as_str(), r.bytes_change)).collect());
    let rows = icicle.boxes.iter().map(|b| b.depth).max().unwrap_or(0).saturating_add(1);
    writeln!(to, "<p class=\"zoom\" aria-live=\"polite\">{} reachable; the width of a box shows what it retains.</p>", bytes(all))?;
    writeln!(to, "<div class=\"icicle\" style=\"height:{}px\">", rows.saturating_mul(ROW))?;
    for Placed { of, from } in place(&icicle.boxes) {
        let part = |n: u64| share(n, all).unwrap_or(0.0);
        let name = match (&of.type_name, &of.root, of.depth) {
            (Some(name), ..) => short(name.shown()),
            (None, Some(root), _) => root.replace('-', " ").into(),
            (None, None, 0) => "all reachable objects".into(),
            (None, None, _) => "smaller ones".into(),
        };
        let class = match (&of.type_name, &changes) {
            (None, _) if of.root.is_some() => "root".to_string(),
            (None, _) => "rest".to_string(),
            (Some(name), Some(changes)) => format!("{} {}", hue(name), growth(changes, name, all)),
            (Some(name), None) => hue(name),
        };
        let objects = if of.closed && of.type_name.is_some() { "at least " } else { "" };
        // The tooltip names one of the objects, with the command that shows what holds it.
        let example = of.example.filter(|_| of.type_name.is_some()).map(|at| format!("; one of them: {at} (gcdump path {at})"));
        let about = format!(
            "{name}: {objects}{} {} {} ({}){}",
            plural(of.count, "object"),
            verb(of.count, "retain"),
            bytes(of.retained),
            percent(part(of.retained)),
            example.unwrap_or_default()
        );
        let top = of.depth.saturating_mul(ROW);
        write!(
            to,
            "<button class=\"{class}\" data-d=\"{}\" style=\"left:{};width:{};top:{top}px\" title=\"{}\">{}</button>",
            of.depth,
            percent(part(from)),
            percent(part(of.retained)),
            Escaped(&about),
            Escaped(&name)
        )?;
    }
    writeln!(to, "</div>")
}

/// Returns the CSS class of a type: the same in every page.
fn hue(name: &str) -> String {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("h{}", hasher.finish() % HUES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(depth: u32, retained: u64) -> IcicleBox {
        IcicleBox { depth, root: None, type_name: Some("T".into()), count: 1, bytes: 1, retained, example: None, closed: false }
    }

    #[test]
    fn boxes_are_side_by_side_below_their_parents() {
        let boxes = [of(0, 100), of(1, 60), of(2, 40), of(3, 40), of(2, 10), of(1, 30), of(2, 30)];
        let from: Vec<u64> = place(&boxes).iter().map(|p| p.from).collect();
        assert_eq!(from, [0, 0, 0, 0, 40, 60, 60]);
    }

    #[test]
    fn stronger_growth_has_a_stronger_color() {
        let changes = FxHashMap::from_iter([("A", 100i64), ("B", 1), ("C", -100), ("D", i64::MIN)]);
        assert_eq!(["A", "B", "C", "D", "E"].map(|t| growth(&changes, t, 1000)), ["g2", "g1", "l1", "l1", "g0"]);
    }
}
