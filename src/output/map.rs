//! Heap maps on terminals: letters become colored blocks.

use super::screen::{Ink, Screen};
use crate::analysis::MapCell;

/// Returns the character for a cell on `screen`, and its color.
fn block(letter: char, screen: Screen) -> (char, Ink) {
    let Some(cell) = MapCell::of(letter) else { return (letter, Ink::Plain) };
    let (block, ink) = match cell {
        MapCell::Objects => ('█', Ink::Bar),
        MapCell::Pinned => ('▓', Ink::Pin),
        MapCell::Garbage => ('▒', Ink::Waste),
        MapCell::Free => ('░', Ink::Hole),
        MapCell::FreePinned => ('▚', Ink::Pin),
        MapCell::Unused => ('─', Ink::Faint),
        MapCell::Unknown => ('?', Ink::Alarm),
        MapCell::Reserved => ('·', Ink::Faint),
    };
    (if screen.terminal { block } else { letter }, ink)
}

/// Splits a map into pieces of one color each.
pub(super) fn pieces(letters: &str, screen: Screen) -> Vec<(String, Ink)> {
    let mut pieces: Vec<(String, Ink)> = Vec::new();
    for (block, ink) in letters.chars().map(|letter| block(letter, screen)) {
        match pieces.last_mut() {
            Some((text, last)) if *last == ink => text.push(block),
            _ => pieces.push((block.into(), ink)),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_for_terminals_only() {
        let shown = |screen| pieces("oopf?..", screen).into_iter().map(|(text, _)| text).collect::<Vec<_>>();
        assert_eq!(shown(Screen::terminal(None, None)), ["██", "▓", "░", "?", "··"]);
        assert_eq!(shown(Screen::NONE), ["oo", "p", "f", "?", ".."]);
    }
}
