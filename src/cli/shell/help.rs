//! The shell's own help.

use super::super::command::Group;
use super::super::help::TOPICS;
use super::super::registry::COMMANDS;

/// Width of the help in columns.
const WIDTH: usize = 78;

/// Returns the commands by group, one per line, and the other things that may be typed.
pub(super) fn overview() -> String {
    let width = Group::ALL.iter().map(|g| g.title().len()).max().unwrap_or(0).saturating_add(2);
    let mut out = String::new();
    for group in Group::ALL.into_iter().filter(|group| COMMANDS.iter().any(|c| c.group == *group)) {
        let mut line = format!("{:<width$}", group.title());
        for c in COMMANDS.iter().filter(|c| c.group == group) {
            if line.len().saturating_add(c.name.len()) > WIDTH {
                out.push_str(line.trim_end());
                out.push('\n');
                line = " ".repeat(width);
            }
            line.push_str(c.name);
            line.push(' ');
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    let topics: Vec<&str> = TOPICS.iter().map(|(name, ..)| *name).collect();
    out.push_str(&format!(
        "\nhelp COMMAND        options and examples; names of SOS are known as well\n\
         help TOPIC          {}\n\
         $1 $2 … $_          rows of the last tables; the last object looked at\n\
         next                more rows of the last answer\n\
         | PROGRAM, > FILE   write the answer there; >> appends\n\
         diff OTHER          compares an earlier dump with this one; 'diff . OTHER' a later one\n\
         quit, exit, q       end, as Ctrl-D does; Ctrl-C stops a command\n",
        topics.join(", ")
    ));
    out
}
