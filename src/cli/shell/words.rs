//! Words of a line: quotes, variables, `;`, pipes and redirections.

/// A part of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Literal characters.
    Text(String),
    /// `$1`: a row of the last tables, from 1.
    Row(usize),
    /// `$_`: the last object that a command was asked about.
    Looked,
}

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    /// Whether a part of the word was quoted: a quoted empty word is a word, and a quoted `.` is a file.
    pub(super) quoted: bool,
}

impl Word {
    fn push(&mut self, c: char) {
        match self.parts.last_mut() {
            Some(Part::Text(text)) => text.push(c),
            _ => self.parts.push(Part::Text(c.into())),
        }
    }

    fn is_empty(&self) -> bool {
        self.parts.is_empty() && !self.quoted
    }

    /// Returns the text of the word, if the word contains no variables.
    pub(super) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }
}

impl From<&str> for Word {
    fn from(text: &str) -> Word {
        Word { parts: vec![Part::Text(text.into())], quoted: false }
    }
}

/// Destination of a command's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum To {
    /// The shell's output.
    Here,
    /// A program: a command line of the system's shell.
    Program(String),
    /// A file that is replaced or appended to.
    File {
        /// Name of the file.
        name: Word,
        /// Whether the operator is `>>`.
        append: bool,
    },
}

/// One command of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// At least one word.
    pub(super) words: Vec<Word>,
    pub(super) to: To,
}

/// Splits `line` into commands. A word in single quotes is literal; in double quotes, variables are replaced. `\` escapes the next character, except
/// on Windows, where it separates directories. `#` begins a comment. `>` and `#` are special only at the beginning of a word, because type names
/// contain both.
///
/// # Errors
/// A message.
pub(super) fn split(line: &str) -> Result<Vec<Statement>, String> {
    let mut out = Vec::new();
    let mut scanner = Scanner { rest: line.chars().peekable() };
    while scanner.statement(&mut out)? {}
    Ok(out)
}

/// Role of the word that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A word of a command.
    Command,
    /// A word of a program or of a comment.
    Program,
    /// A file name.
    File,
}

/// The end of a line that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    /// Words of the command before the last one.
    pub(super) words: Vec<String>,
    pub(super) place: Place,
    /// The last word as its command would receive it, with variables unreplaced. Empty after a space.
    pub(super) word: String,
    /// Byte offset of the word in the line, including its quotes.
    pub(super) start: usize,
    /// Whether a quote is open, or the line ends in a `\`.
    pub(super) open: bool,
}

/// Parses the end of a line that is being typed, by the rules of [`split`], except that all text after `|` belongs to the program.
pub(super) fn tail(line: &str) -> Tail {
    let (mut words, mut place, mut quote, mut escaped) = (Vec::new(), Place::Command, None, false);
    // Start and text of the current word, once the word has begun.
    let mut word: Option<(usize, String)> = None;
    for (at, c) in line.char_indices() {
        let begins = word.is_none();
        let mut add = |text: Option<char>| word.get_or_insert((at, String::new())).1.extend(text);
        match (quote, c) {
            _ if std::mem::take(&mut escaped) => {
                add(quote.filter(|_| !is_escaped_in_quotes(c)).map(|_| '\\'));
                add(Some(c));
            }
            (Some(open), c) if open == c => quote = None,
            (None | Some('"'), '\\') if !cfg!(windows) => {
                escaped = true;
                add(None);
            }
            (Some(_), c) => add(Some(c)),
            (None, '\'' | '"') => {
                quote = Some(c);
                add(None);
            }
            (None, ';') if place != Place::Program => {
                words.clear();
                (word, place) = (None, Place::Command);
            }
            (None, '|') => (word, place) = (None, Place::Program),
            (None, '#') if begins => place = Place::Program,
            (None, '>') if begins && place != Place::Program => place = Place::File,
            (None, c) if c.is_whitespace() => {
                if let Some((_, text)) = word.take().filter(|_| place == Place::Command) {
                    words.push(text);
                }
            }
            (None, c) => add(Some(c)),
        }
    }
    let (start, word) = word.unwrap_or((line.len(), String::new()));
    Tail { words, place, word, start, open: quote.is_some() || escaped }
}

/// Whether `\` escapes this character in double quotes.
fn is_escaped_in_quotes(c: char) -> bool {
    ['"', '\\', '$'].contains(&c)
}

/// Returns the word as it would be typed, quoted if necessary.
pub(super) fn quoted(word: &str) -> String {
    let needs = |c: char| c.is_whitespace() || ";|'\"\\$#".contains(c);
    if word.is_empty() || word.starts_with(['>', '!']) || word.contains(needs) {
        return in_quotes(word);
    }
    word.into()
}

/// Returns the word in single quotes; single quotes inside it are put in double quotes.
pub(super) fn in_quotes(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

/// End of a list of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Line,
    Semicolon,
    Pipe,
    Redirection,
}

struct Scanner<'l> {
    rest: std::iter::Peekable<std::str::Chars<'l>>,
}

impl Scanner<'_> {
    /// Parses one statement. Returns whether there may be another.
    fn statement(&mut self, out: &mut Vec<Statement>) -> Result<bool, String> {
        let (words, end) = self.words()?;
        let (to, end) = match end {
            End::Line | End::Semicolon => (To::Here, end),
            End::Pipe => {
                let (program, more) = self.program()?;
                (To::Program(program), if more { End::Semicolon } else { End::Line })
            }
            End::Redirection => {
                let append = self.rest.next_if_eq(&'>').is_some();
                let (mut names, end) = self.words()?;
                let name = names.pop().filter(|_| names.is_empty()).ok_or("expected one file after '>'")?;
                if matches!(end, End::Pipe | End::Redirection) {
                    return Err("use either a pipe or a redirection, not both".into());
                }
                (To::File { name, append }, end)
            }
        };
        if words.is_empty() {
            if to != To::Here {
                return Err("expected a command before '|' or '>'".into());
            }
        } else {
            out.push(Statement { words, to });
        }
        Ok(end == End::Semicolon)
    }

    fn words(&mut self) -> Result<(Vec<Word>, End), String> {
        let (mut words, mut word) = (Vec::new(), Word::default());
        let end = loop {
            let Some(c) = self.rest.next() else { break End::Line };
            match c {
                c if c.is_whitespace() => {
                    if !word.is_empty() {
                        words.push(std::mem::take(&mut word));
                    }
                }
                '#' if word.is_empty() => {
                    self.rest.by_ref().for_each(drop);
                    break End::Line;
                }
                ';' => break End::Semicolon,
                '|' => break End::Pipe,
                '>' if word.is_empty() => break End::Redirection,
                '\'' | '"' => self.quoted(c, &mut word)?,
                '\\' if !cfg!(windows) => word.push(self.rest.next().ok_or("a line ends with '\\'")?),
                '$' => self.variable(&mut word),
                c => word.push(c),
            }
        };
        if !word.is_empty() {
            words.push(word);
        }
        Ok((words, end))
    }

    fn quoted(&mut self, quote: char, word: &mut Word) -> Result<(), String> {
        word.quoted = true;
        loop {
            match self.rest.next().ok_or_else(|| format!("a quote is left open: {quote}"))? {
                c if c == quote => return Ok(()),
                '$' if quote == '"' => self.variable(word),
                '\\' if quote == '"' && !cfg!(windows) => {
                    let next = self.rest.next_if(|c| is_escaped_in_quotes(*c));
                    word.push(next.unwrap_or('\\'));
                }
                c => word.push(c),
            }
        }
    }

    /// Parses a variable after its `$`. Names of the runtime may contain `$`, so a `$` is literal unless `_` or a number follows.
    fn variable(&mut self, word: &mut Word) {
        if self.rest.next_if_eq(&'_').is_some() {
            return word.parts.push(Part::Looked);
        }
        let mut number: Option<usize> = None;
        while let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(10)) {
            self.rest.next();
            let digit = usize::try_from(digit).unwrap_or(0);
            number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit));
        }
        match number {
            Some(number) => word.parts.push(Part::Row(number)),
            None => word.push('$'),
        }
    }

    /// Parses the command line for the system's shell, up to a `;` outside quotes and parentheses. Returns the command line, and whether there was a
    /// `;`.
    fn program(&mut self) -> Result<(String, bool), String> {
        let (mut text, mut quote, mut depth, mut more) = (String::new(), None, 0u32, false);
        while let Some(c) = self.rest.next() {
            match c {
                '(' if quote.is_none() => depth = depth.saturating_add(1),
                ')' if quote.is_none() => depth = depth.saturating_sub(1),
                ';' if quote.is_none() && depth == 0 => {
                    more = true;
                    break;
                }
                '\\' if !cfg!(windows) && quote != Some('\'') => {
                    text.push(c);
                    text.extend(self.rest.next());
                    continue;
                }
                '\'' | '"' if quote.is_none() => quote = Some(c),
                c if quote == Some(c) => quote = None,
                _ => {}
            }
            text.push(c);
        }
        match (quote, text.trim()) {
            (Some(quote), _) => Err(format!("a quote is left open: {quote}")),
            (None, "") => Err("expected a program after '|'".into()),
            (None, program) => Ok((program.into(), more)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> Vec<(Vec<String>, To)> {
        let text = |w: &Word| -> String {
            let part = |p: &Part| match p {
                Part::Text(t) => t.clone(),
                Part::Row(n) => format!("<{n}>"),
                Part::Looked => "<_>".into(),
            };
            w.parts.iter().map(part).collect()
        };
        split(line).unwrap().into_iter().map(|s| (s.words.iter().map(text).collect(), s.to)).collect()
    }

    fn words(line: &str) -> Vec<String> {
        let mut all = shown(line);
        assert!(all.len() == 1 && all[0].1 == To::Here, "{all:?}");
        all.remove(0).0
    }

    #[test]
    fn lines_are_split_into_words_without_quotes() {
        assert_eq!(words("stat --type 'A<B, C>' \"x y\"z "), ["stat", "--type", "A<B, C>", "x yz"]);
        assert_eq!(words("a '' # a comment; with | all"), ["a", ""]);
        assert_eq!(
            words("objects --type System.Collections.Generic.List<Lab.Entry>"),
            ["objects", "--type", "System.Collections.Generic.List<Lab.Entry>"]
        );
        assert_eq!(words("a b#c List`1[]"), ["a", "b#c", "List`1[]"]);
        assert!(split("  # nothing").unwrap().is_empty() && split(" ; ;").unwrap().is_empty());
        if cfg!(not(windows)) {
            assert_eq!(words(r#"a\ b "c\"d\e" '\'"#), ["a b", r#"c"d\e"#, r"\"]);
        }
    }

    #[test]
    fn variables_are_parsed() {
        assert_eq!(words("path $1 $_ x$12y '$1' \"$2\" $cctor $"), ["path", "<1>", "<_>", "x<12>y", "$1", "<2>", "$cctor", "$"]);
        assert_eq!(words("a $99999999999999999999999")[1], format!("<{}>", usize::MAX));
    }

    #[test]
    fn the_word_being_typed_is_found() {
        let seen = |line: &str| {
            let t = tail(line);
            (t.words.join(" "), t.place, t.word, t.open)
        };
        assert_eq!(seen(""), (String::new(), Place::Command, String::new(), false));
        assert_eq!(seen("heap; stat --to"), ("stat".into(), Place::Command, "--to".into(), false));
        assert_eq!(seen("stat --type 'A<B, "), ("stat --type".into(), Place::Command, "A<B, ".into(), true));
        assert_eq!(seen("stat --type A<B>"), ("stat --type".into(), Place::Command, "A<B>".into(), false));
        assert_eq!(seen("stat > a b"), ("stat".into(), Place::File, "b".into(), false));
        assert_eq!((seen("stat | grep a; b").1, seen("stat # a; b").1), (Place::Program, Place::Program));
        assert_eq!(seen("stat --type ''>x"), ("stat --type".into(), Place::Command, ">x".into(), false));
        assert_eq!((tail("stat 'x").start, tail("stat --type=a'b c").start, tail("stat ").start), (5, 5, 5));
        if cfg!(not(windows)) {
            assert_eq!(seen(r#"stat "a\" b\c" d\"#), (r#"stat a" b\c"#.into(), Place::Command, "d".into(), true));
        }
        for word in ["a", "A<B, C>", "it's", "", "a;b", "<>c", ">x", "a$1", "a'\"$1\\'", "!x", "#x"] {
            let typed = quoted(word);
            assert_eq!(words(&format!("x {typed}")), ["x", word], "{typed}");
        }
        assert_eq!((quoted("List`1[]"), quoted("A B")), ("List`1[]".into(), "'A B'".into()));
    }

    #[test]
    fn commands_of_a_line_are_split_with_their_destinations() {
        assert_eq!(shown("stat; path $1 ;").len(), 2);
        let piped = shown("stat | grep 'a;b' | (head; tail) ; heap");
        assert_eq!(piped[0].1, To::Program("grep 'a;b' | (head; tail)".into()));
        assert_eq!(piped[1], (vec!["heap".into()], To::Here));
        let file = |line: &str| match shown(line).remove(0).1 {
            To::File { name, append } => (name.plain().unwrap().to_string(), append),
            to => panic!("{to:?}"),
        };
        assert_eq!(file("stat > a.txt"), ("a.txt".into(), false));
        assert_eq!(file("stat >>'a b'"), ("a b".into(), true));
        assert_eq!(file("stat >x; heap"), ("x".into(), false));
        for wrong in ["stat >", "stat > a b", "stat > a | b", "stat |", "| grep x", "> x", "a 'b", "a | b 'c", "a \"b"] {
            assert!(split(wrong).is_err(), "{wrong}");
        }
    }
}
