//! Shortens titles at the end of a clause. Brackets and quotes that are opened stay closed.

/// Fewest characters of a clause. Instead of a shorter clause, as many words as fit are returned.
const ENOUGH: usize = 24;
/// The mark that replaces the rest of the title in the middle of a clause.
const REST: char = '…';

/// A bracket or quote and its counterpart: byte offsets of both, and the closing character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    open: usize,
    close: usize,
    closing: char,
}

impl Pair {
    /// Whether a title that ends before byte `end` has only the first of the two.
    const fn is_cut_at(self, end: usize) -> bool {
        self.open < end && end <= self.close
    }
}

/// Returns a title, shortened to at most `most` characters: up to the end of a clause outside brackets and quotes, or else as many words as fit. Brackets and
/// quotes that the shortened title leaves open are closed.
pub(super) fn beginning(title: &str, most: usize) -> String {
    let Some((end, _)) = title.char_indices().nth(most) else { return title.into() };
    let pairs = pairs(title);
    let (fits, _) = title.split_at(end);
    let is_whole = |at: usize| !pairs.iter().any(|pair| pair.is_cut_at(at));
    let clause = |ends: &[&str]| {
        let ends = ends.iter().flat_map(|end| fits.rmatch_indices(end).map(|(at, _)| at).find(|at| is_whole(*at)));
        ends.max().and_then(|at| fits.get(..at)).filter(|clause| clause.chars().count() >= ENOUGH)
    };
    // What follows a colon explains what is before it, so that a cut there loses more.
    if let Some(clause) = clause(&["; ", ", "]).or_else(|| clause(&[": "])) {
        return clause.into();
    }
    let cut = |at: usize| {
        let (words, _) = title.split_at_checked(at)?;
        let words = words.trim_end_matches([',', ';', ':', ' ']);
        let closing = pairs.iter().rev().filter(|pair| pair.is_cut_at(at)).map(|pair| pair.closing);
        Some(words.chars().chain([REST]).chain(closing).collect::<String>())
    };
    let is_short = |text: &String| text.chars().count() <= most;
    let spaces = || fits.rmatch_indices(' ').map(|(at, _)| at);
    let outside = spaces().filter(|at| is_whole(*at)).find_map(|at| cut(at).filter(is_short));
    let outside = outside.filter(|text| text.chars().count() > ENOUGH);
    let words = || spaces().find_map(|at| cut(at).filter(is_short));
    let anywhere = || fits.char_indices().rev().find_map(|(at, _)| cut(at).filter(is_short));
    outside.or_else(words).or_else(anywhere).unwrap_or_default()
}

/// Returns the brackets and quotes of `text` that have a counterpart, in the order in which they open.
fn pairs(text: &str) -> Vec<Pair> {
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let (mut open, mut found): (Vec<(usize, char)>, Vec<Pair>) = (Vec::new(), Vec::new());
    let mut index = 0;
    while let Some(&(at, c)) = chars.get(index) {
        let before = index.checked_sub(1).and_then(|i| chars.get(i)).map(|(_, c)| *c);
        let rest = chars.get(index.saturating_add(1)..).unwrap_or_default();
        let after = rest.first().map(|(_, c)| *c);
        index = index.saturating_add(1);
        match c {
            '(' => open.push((at, ')')),
            '[' => open.push((at, ']')),
            '{' => open.push((at, '}')),
            // Not in `a < b`.
            '<' if after.is_some_and(|c| !c.is_whitespace() && c != '=') => open.push((at, '>')),
            ')' | ']' | '}' | '>' => {
                // Not in `->`. A bracket that closes ends those within it that were not closed.
                let arrow = c == '>' && matches!(before, Some('-' | '='));
                if let Some(depth) = open.iter().rposition(|(_, closing)| *closing == c).filter(|_| !arrow) {
                    open.split_off(depth).first().iter().for_each(|(open, _)| found.push(Pair { open: *open, close: at, closing: c }));
                }
            }
            // Not an apostrophe. A quotation may have brackets without a counterpart.
            '"' | '\'' | '“' | '‘' if before.is_none_or(|c| !c.is_alphanumeric()) => {
                let closing = match c {
                    '“' => '”',
                    '‘' => '’',
                    same => same,
                };
                let ends = |next: Option<&(usize, char)>| next.is_none_or(|(_, c)| !c.is_alphanumeric());
                let last = rest.iter().enumerate().find(|(i, (_, c))| *c == closing && ends(rest.get(i.saturating_add(1))));
                if let Some((i, (close, _))) = last {
                    found.push(Pair { open: at, close: *close, closing });
                    index = index.saturating_add(i).saturating_add(1);
                }
            }
            _ => {}
        }
    }
    found.sort_by_key(|pair| pair.open);
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn titles_end_with_a_clause() {
        assert_eq!(beginning("2 threads wait", 71), "2 threads wait");
        let title = "FailFast on thread 1: the config store has failed: code 4711; exception System.Exception: inner";
        assert_eq!(beginning(title, 71), "FailFast on thread 1: the config store has failed: code 4711");
        assert_eq!(beginning("the runtime of this process has stopped: no thread is left", 50), "the runtime of this process has stopped");
        assert_eq!(beginning("too short: but it has many words, if they are counted", 30), "too short: but it has many…");
    }

    #[test]
    fn commas_of_nested_generics_do_not_end_a_clause() {
        let title = "thread 7 runs Lab.Cache.Get(Dictionary<System.String, List<System.Int32, Lab.A>>, System.Int32); 3 others";
        assert_eq!(beginning(title, 80), "thread 7 runs Lab.Cache.Get(Dictionary<System.String, List<System.Int32…>>)");
        assert_eq!(beginning(title, 98), "thread 7 runs Lab.Cache.Get(Dictionary<System.String, List<System.Int32, Lab.A>>, System.Int32)");
        let title = "100 objects are full of Map<System.String, Lab.A>, most of them in generation 2";
        assert_eq!(beginning(title, 60), "100 objects are full of Map<System.String, Lab.A>");
    }

    #[test]
    fn parentheses_and_quotes_stay_closed() {
        let title = "2 threads wait for each other (4 for the lock: that 5 holds, 5 for the other)";
        assert_eq!(beginning(title, 60), "2 threads wait for each other…");
        let title = "crash on the thread 12 with \"could not load: A, B; version 3\" in Lab.Program.Main(System.String[])";
        assert_eq!(beginning(title, 50), "crash on the thread 12 with…");
        let title = "SIGABRT: \"could not load: A, B; version 3 of the program's library (see\" in Lab.Program.Main()";
        assert_eq!(beginning(title, 40), "SIGABRT: \"could not load: A, B…\"");
        let title = "unhandled: Could not load file or assembly 'A, Version=1.0.0.0' or one of its parts; thread 1";
        assert_eq!(beginning(title, 62), "unhandled: Could not load file or assembly…");
    }

    #[test]
    fn colons_of_methods_do_not_end_a_clause() {
        let title = "thread 3 runs Lab.Native::Go(int, char*): it does not end; 2 others wait for it";
        assert_eq!(beginning(title, 50), "thread 3 runs Lab.Native::Go(int, char*)");
        let title = "thread 3 runs Lab.Steps.<first: read, then write>b__0() and does not return to its caller";
        assert_eq!(beginning(title, 46), "thread 3 runs Lab.Steps.<first: read, then…>");
    }

    #[test]
    fn signs_without_a_counterpart_are_text() {
        assert!(pairs("a < b, c -> d, the program's and the users' \"inch").is_empty());
        assert_eq!(beginning("the number a < b for all of these numbers, except for one", 50), "the number a < b for all of these numbers");
        assert_eq!(beginning("Load(failed for all of these files, and others: no reason", 50), "Load(failed for all of these files");
    }

    proptest! {
        #[test]
        fn a_title_never_grows_and_its_pairs_stay_closed(title in "[a-c(<\\[\"' ,;:>)\\]é]{0,80}", most in 20usize..60) {
            let short = beginning(&title, most);
            prop_assert!(short.chars().count() <= most);
            prop_assert!(title.chars().count() > most || short == title);
            let cut = |end: usize| pairs(&title).into_iter().filter(|pair| pair.is_cut_at(end)).count();
            match short.rsplit_once(REST) {
                Some((words, closing)) => prop_assert_eq!(cut(words.len()), closing.chars().count(), "{} {}", title, short),
                None => prop_assert!(short == title || cut(short.len()) == 0, "{} {}", title, short),
            }
        }
    }
}
