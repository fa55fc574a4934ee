//! bash, which inserts candidates into the line verbatim.
//!
//! The script passes the line rather than its words, because bash splits words at `:` and `=` and does not report which quotes are open at the
//! cursor.
//!
//! Outside quotes, all characters except letters, digits and a few signs are escaped with a backslash. Thus bash interprets neither an inserted word
//! nor an inserted common prefix of several candidates. Inside quotes, only names that need no escaping are offered, because bash would close the
//! quotes after an escaped name, and might then interpret the text after the cursor.

use std::ffi::OsString;

use super::asked::{Asked, Offer};

/// The completion script.
pub(super) const SCRIPT: &str = r#"# Completion of gcdump in bash: source <(gcdump completions bash)
_gcdump() {
    local candidate
    COMPREPLY=()
    while IFS= read -r candidate; do
        if [[ -n $candidate ]]; then
            COMPREPLY+=("$candidate")
        fi
    done <<< "$(GCDUMP_COMPLETE=bash command gcdump -- "${COMP_LINE:0:COMP_POINT}" "${COMP_LINE:COMP_POINT}" "$2" 2> /dev/null)"
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[=/:] ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
if [[ ${BASH_VERSINFO[0]} -gt 4 || ( ${BASH_VERSINFO[0]} -eq 4 && ${BASH_VERSINFO[1]} -ge 4 ) ]]; then
    complete -o bashdefault -o nosort -F _gcdump gcdump
else
    complete -o bashdefault -F _gcdump gcdump
fi
"#;

/// The command line at the cursor.
#[derive(Debug, PartialEq, Eq)]
struct Cursor {
    /// Words up to the cursor, as the program would receive them.
    words: Vec<String>,
    /// Part of the last word that is kept, before the text that bash replaces.
    stays: String,
    /// Whether a quote is open.
    quoted: bool,
    /// Whether the last word begins with `~/`, which bash expands only outside quotes.
    home: bool,
}

/// A word that is being parsed.
#[derive(Clone, Default)]
struct Word {
    text: String,
    /// Whether the word has begun: after an opening quote it may still be empty.
    begun: bool,
    /// Whether bash expands something in the word.
    expands: bool,
}

impl Word {
    fn push(&mut self, c: char) {
        self.text.push(c);
        self.begun = true;
    }
}

impl Cursor {
    /// Parses `line`, which ends at the cursor and is followed by `rest`. bash replaces the suffix `replaced` of the line. Returns `None` if nothing
    /// can be offered: the last word continues after the cursor, its text is unknown, or the word is not part of a simple command.
    fn of(line: &str, rest: &str, replaced: &str) -> Option<Cursor> {
        let at = line.strip_suffix(replaced)?.len();
        let (mut words, mut word, mut quote, mut begins) = (Vec::new(), Word::default(), None, 0);
        let mut place = None;
        let mut chars = line.char_indices();
        loop {
            let next = chars.next();
            let here = next.map_or(line.len(), |(here, _)| here);
            if here == at {
                place = Some((word.text.clone(), quote));
            }
            let Some((_, c)) = next else { break };
            if !word.begun {
                begins = here;
            }
            match (quote, c) {
                (Some(open), c) if open == c => quote = None,
                (Some('\''), c) => word.push(c),
                (_, '`') => return None,
                (_, '$') if chars.as_str().starts_with(['(', '\'', '"']) => return None,
                (_, '$' | '!') => {
                    word.expands = true;
                    word.push(c);
                }
                (Some(_), '\\') => {
                    let (_, next) = chars.next()?;
                    if !"$`\"\\".contains(next) {
                        word.push('\\');
                    }
                    word.push(next);
                }
                (Some(_), c) => word.push(c),
                (None, '\\') => word.push(chars.next()?.1),
                (None, '\'' | '"') => {
                    quote = Some(c);
                    word.begun = true;
                }
                (None, ';' | '&' | '|' | '(' | ')' | '<' | '>' | '\n') => return None,
                (None, '#') if !word.begun => return None,
                (None, ' ' | '\t') => {
                    if word.begun {
                        words.push(std::mem::take(&mut word).text);
                    }
                }
                (None, c) => word.push(c),
            }
        }
        let (stays, before) = place.filter(|_| !word.expands)?;
        if before != quote || !(rest.is_empty() || (quote.is_none() && rest.starts_with([' ', '\t']))) {
            return None;
        }
        let home = word.begun && line.get(begins..).is_some_and(|raw| raw.starts_with("~/"));
        words.push(word.text);
        Some(Cursor { words, stays, quoted: quote.is_some(), home })
    }

    /// Returns the text to insert so that the last word becomes `value`.
    fn replacement(&self, value: &str) -> Option<String> {
        let rest = value.strip_prefix(self.stays.as_str())?;
        if self.quoted {
            return rest.chars().all(is_plain).then(|| rest.into());
        }
        let (home, rest) = match rest.strip_prefix("~/") {
            Some(rest) if self.home && self.stays.is_empty() => ("~/", rest),
            _ => ("", rest),
        };
        let mut out = String::from(home);
        for c in rest.chars() {
            if !is_plain(c) {
                out.push('\\');
            }
            out.push(c);
        }
        Some(out)
    }
}

/// Whether bash takes a character verbatim, in quotes and outside.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || "_-./+,:=%".contains(c)
}

/// Parses the script's arguments: the line up to the cursor, the line after it, and the text to replace.
pub(super) fn asked(given: &[OsString]) -> Option<Asked> {
    let [line, rest, replaced] = given else { return None };
    let cursor = Cursor::of(line.to_str()?, rest.to_str()?, replaced.to_str()?)?;
    let os = |words: &[String]| words.iter().map(OsString::from).collect();
    let (words, after) = (os(&cursor.words), os(&self::words(rest.to_str()?).unwrap_or_default()));
    let print = move |offers: &[Offer]| -> String {
        offers.iter().filter_map(|offer| cursor.replacement(&offer.value)).flat_map(|word| [word, "\n".into()]).collect()
    };
    Some(Asked { words, after, print: Box::new(print) })
}

/// Returns `line` with its suffix `replaced` completed to `name`; for tests.
pub fn completed(line: &str, replaced: &str, name: &str) -> Option<String> {
    let word = Cursor::of(line, "", replaced).filter(|_| super::is_offered(name))?.replacement(name)?;
    Some(format!("{}{word}", line.strip_suffix(replaced)?))
}

/// Returns the words of `line`, if it is a simple command whose last word bash takes verbatim; for tests.
pub fn words(line: &str) -> Option<Vec<String>> {
    Cursor::of(line, "", "").map(|cursor| cursor.words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_up_to_the_cursor_are_parsed() {
        let at = |line: &str, replaced: &str| Cursor::of(line, "", replaced).map(|c| (c.words.join("|"), c.stays, c.quoted));
        let is = |words: &str, stays: &str, quoted| Some((words.into(), stays.into(), quoted));
        assert_eq!(at("gcdump stat ", ""), is("gcdump|stat|", "", false));
        assert_eq!(at("gcdump stat 'Sys", "Sys"), is("gcdump|stat|Sys", "", true));
        assert_eq!(at("gcdump --type=Sy", "Sy"), is("gcdump|--type=Sy", "--type=", false));
        assert_eq!(at(r#"gcdump 'a b'c\ "d\$" x\`y"#, r"x\`y"), is("gcdump|a bc d$|x`y", "", false));
        assert_eq!(at(r#"gcdump ''"#, ""), is("gcdump|", "", false));
        assert_eq!(at("gcdump $DUMP x", "x"), is("gcdump|$DUMP|x", "", false));
        for none in
            ["gcdump $(x", "gcdump `x", "gcdump \"$(", "gcdump $'a", "gcdump a;b", "gcdump >x", "gcdump # x", "gcdump a$b", "gcdump a\\"]
        {
            assert_eq!(at(none, ""), None, "{none}");
        }
        // The word continues, or is not at the end of the line.
        assert_eq!(Cursor::of("gcdump a", "b", "a"), None);
        assert_eq!(Cursor::of("gcdump 'a", " b", "a"), None);
        assert_eq!(Cursor::of("gcdump a", "", "b"), None);
        assert!(Cursor::of("gcdump a", " b", "a").is_some());
    }

    #[test]
    fn names_are_escaped_or_omitted() {
        let completes = |line: &str, replaced: &str, name: &str| completed(line, replaced, name).unwrap_or_default();
        assert_eq!(completes("g --type Lab.N", "Lab.N", "Lab.Node"), "g --type Lab.Node");
        assert_eq!(completes("g --type L", "L", "List`1"), r"g --type List\`1");
        assert_eq!(completes("g --type L", "L", "A<B, C>;$(x)\"'!"), r#"g --type A\<B\,\ C\>\;\$\(x\)\"\'\!"#.replace("\\,", ","));
        assert_eq!(completes("g --type=L", "L", "--type=List`1"), "");
        assert_eq!(completes("g 'L", "L", "Lab.Größe"), "g 'Lab.Größe");
        for (line, name) in [("g 'L", "List`1"), ("g \"L", "L$x"), ("g 'L", "L'x"), ("g L", "-x"), ("g L", "a\nb")] {
            assert_eq!(completed(line, "L", name), None, "{line} {name:?}");
        }
        assert_eq!((completes("g ~/d", "~/d", "~/d x"), completes("g d", "d", "~d")), (r"g ~/d\ x".into(), r"g \~d".into()));
        assert_eq!(completes("g \\~/d", "\\~/d", "~/d"), r"g \~/d");
    }
}
