//! Determines the screens of the process's streams from the system and the environment.

use std::io::IsTerminal;

use crate::output::Screen;

/// Returns the screen of `stream`, a standard stream of the process. `COLUMNS` overrides the width of a terminal; `NO_COLOR`, `CLICOLOR`,
/// `CLICOLOR_FORCE` and `TERM` control colors as in <https://bixense.com/clicolors>.
pub fn screen_of(stream: &impl IsTerminal) -> Screen {
    let terminal = stream.is_terminal();
    // Windows consoles interpret escape sequences only on request; other systems need no request.
    let capable = terminal && anstyle_query::windows::enable_ansi_colors() != Some(false) && anstyle_query::term_supports_color();
    let color = if anstyle_query::no_color() {
        false
    } else {
        anstyle_query::clicolor_force() || (capable && anstyle_query::clicolor() != Some(false))
    };
    if !terminal {
        return Screen::NONE.colored(color);
    }
    let size = terminal_size::terminal_size();
    let set = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse::<usize>().ok()).filter(|n| *n > 0);
    let width = set.or(size.map(|(w, _)| usize::from(w.0)).filter(|n| *n > 0));
    Screen::terminal(width, size.map(|(_, h)| usize::from(h.0)).filter(|n| *n > 0)).colored(color)
}
