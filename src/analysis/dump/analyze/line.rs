//! Lines of text: titles, and command lines that can be pasted.

use std::borrow::Cow;

use super::answers::Answers;
use crate::analysis::{Problem, ProblemId, ProblemSeverity};
use crate::base::verb;
pub(super) use crate::base::{in_units, plural as counted};

/// Most characters of a message in a title.
const MAX_MESSAGE: usize = 200;

impl Answers<'_> {
    /// Returns a finding without optional values. `command` is the part of the command line between `gcdump` and the dump.
    pub(super) fn finding(&self, id: ProblemId, severity: ProblemSeverity, title: String, command: &[&str]) -> Problem {
        let command = self.command_line(command);
        Problem {
            id,
            severity,
            title,
            count: None,
            bytes: None,
            share: None,
            object: None,
            type_name: None,
            method: None,
            brief: None,
            display: None,
            threads: Vec::new(),
            command,
        }
    }

    /// Returns the command line with `command` between `gcdump` and the dump.
    pub(super) fn command_line(&self, command: &[&str]) -> String {
        let options = self.query.options.iter().map(String::as_str);
        let path = self.runtime.file().facts.path_in_commands();
        command_line(command.iter().copied().chain(options), &path)
    }
}

/// Returns a command line: `gcdump`, `words` and the dump at `path`, each quoted so that a shell takes it as one word.
pub(crate) fn command_line<'w>(words: impl Iterator<Item = &'w str>, path: &str) -> String {
    // A name that begins with a dash would be parsed as an option.
    let path = if path.starts_with('-') { format!("./{path}") } else { path.into() };
    let mut line = String::from("gcdump");
    for word in words {
        line.push_str(&format!(" {}", quoted(word)));
    }
    format!("{line} {}", quoted(&path))
}

/// Returns `words` as one line, each quoted so that a shell takes it as one word.
pub(crate) fn shell_line<'w>(words: impl Iterator<Item = &'w str>) -> String {
    words.map(quoted).collect::<Vec<_>>().join(" ")
}

/// Quotes `word` for the shells of this system if it has a special character.
fn quoted(word: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_-./:@%+=,".contains(c) || cfg!(windows) && c == '\\';
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else if cfg!(windows) {
        format!("\"{word}\"").into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    }
}

/// Returns `text` on one line, truncated to [`MAX_MESSAGE`] characters.
pub(super) fn one_line(text: &str) -> String {
    let mut words = text.split(|c: char| c.is_control() || c.is_whitespace()).filter(|w| !w.is_empty()).collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(MAX_MESSAGE) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// Counts things that wait: `1 thread waits`, `2 threads wait`.
pub(super) fn how_many_wait(n: u64, what: &str) -> String {
    format!("{} {}", counted(n, what), verb(n, "wait"))
}

/// Counts things: `3 dogs`, or `none` for 0.
pub(super) fn plural_or(n: u64, what: &str, none: &str) -> String {
    if n == 0 { none.into() } else { counted(n, what) }
}

/// Formats a share in percent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Lists items: `1`, `1 and 2`, `1, 2 and 3`.
pub(super) fn listed<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let mut items: Vec<String> = items.into_iter().map(|i| i.to_string()).collect();
    match (items.pop(), items.is_empty()) {
        (None, _) => String::new(),
        (Some(last), true) => last,
        (Some(last), false) => format!("{} and {last}", items.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_can_be_pasted() {
        let line = |words: &[&str], path| command_line(words.iter().copied(), path);
        assert_eq!(line(&["stat"], "a/b-1.dmp"), "gcdump stat a/b-1.dmp");
        assert_eq!(line(&["stat"], "-x.dmp"), "gcdump stat ./-x.dmp");
        if cfg!(unix) {
            assert_eq!(line(&["path", "--type", "A<B>"], "it's.dmp"), r"gcdump path --type 'A<B>' 'it'\''s.dmp'");
            assert_eq!(line(&[""], "a b\n"), "gcdump '' 'a b\n'");
        }
    }

    #[test]
    fn messages_stay_on_one_line() {
        assert_eq!(one_line("a\r\n  b\tc"), "a b c");
        assert_eq!(one_line(&"é".repeat(300)).chars().count(), MAX_MESSAGE + 1);
        assert_eq!([listed([1]), listed([1, 2]), listed([1, 2, 3])], ["1", "1 and 2", "1, 2 and 3"]);
    }
}
