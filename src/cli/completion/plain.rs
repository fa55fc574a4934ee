//! Shells that quote candidates themselves (elvish, fish, zsh), and PowerShell, which inserts them verbatim.

use std::ffi::OsString;

use super::asked::{Asked, Offer};

/// zsh quotes the arguments of `compadd` for the position of the cursor. A word that continues after the cursor is not completed, and the home
/// directory is left to zsh's own file completion.
pub(super) const ZSH: &str = r#"#compdef gcdump
# Completion of gcdump in zsh: source <(gcdump completions zsh), after compinit
_gcdump() {
    [[ -z $SUFFIX ]] || return 1
    if [[ $PREFIX == \~* ]]; then
        _files
        return
    fi
    local -a found folders others
    local candidate
    found=("${(@f)$(GCDUMP_COMPLETE=zsh GCDUMP_COMPLETE_INDEX=$((CURRENT - 1)) command gcdump -- \
        "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" "${(@Q)words[CURRENT+1,-1]}" 2> /dev/null)}")
    for candidate in "${found[@]}"; do
        case $candidate in
            '') ;;
            */) folders+=("$candidate") ;;
            *) others+=("$candidate") ;;
        esac
    done
    (( $#folders )) && _describe -V folder folders -S ''
    (( $#others )) && _describe -V value others
    (( $#folders + $#others ))
}
if [[ $funcstack[1] == _gcdump ]]; then
    _gcdump "$@"
else
    compdef _gcdump gcdump
fi
"#;

/// fish quotes candidates for the position of the cursor. A word that continues after the cursor is not completed.
pub(super) const FISH: &str = r#"# Completion of gcdump in fish: gcdump completions fish | source
function __gcdump_complete
    set -l typed (commandline --current-token --cut-at-cursor)
    if test "$typed" = (commandline --current-token | string collect)
        GCDUMP_COMPLETE=fish command gcdump -- (commandline --current-process --tokenize --cut-at-cursor) $typed 2>/dev/null
    end
end
complete --command gcdump --keep-order --no-files --arguments '(__gcdump_complete)'
"#;

/// elvish quotes candidates.
pub(super) const ELVISH: &str = r#"# Completion of gcdump in elvish: eval (gcdump completions elvish | slurp)
set edit:completion:arg-completer[gcdump] = {|@words|
    env GCDUMP_COMPLETE=elvish gcdump -- $@words 2>/dev/null | from-lines
}
"#;

/// The words are passed in environment variables, because Windows PowerShell passes no quotes to programs. Nothing
/// typed is evaluated.
pub(super) const POWERSHELL: &str = r#"# Completion of gcdump in PowerShell: gcdump completions powershell | Out-String | Invoke-Expression
Register-ArgumentCompleter -Native -CommandName gcdump -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $words = @()
    $typed = ''
    foreach ($element in $commandAst.CommandElements) {
        if ($element.Extent.EndOffset -lt $cursorPosition) {
            if ($element -is [System.Management.Automation.Language.StringConstantExpressionAst]) {
                $words += $element.Value
            } else {
                $words += $element.Extent.Text
            }
        } elseif ($element.Extent.StartOffset -lt $cursorPosition) {
            if ($element.Extent.EndOffset -gt $cursorPosition) {
                return
            }
            $typed = $element.Extent.Text
        }
    }
    try {
        $env:GCDUMP_COMPLETE = 'powershell'
        $env:GCDUMP_COMPLETE_WORDS = (@($words) + $typed) -join "`n"
        & gcdump -- 2> $null | ForEach-Object {
            $candidate, $help = $_.Split("`t", 2)
            if (-not $help) {
                $help = $candidate
            }
            [System.Management.Automation.CompletionResult]::new($candidate, $candidate, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:\GCDUMP_COMPLETE, Env:\GCDUMP_COMPLETE_WORDS -ErrorAction SilentlyContinue
    }
}
"#;

/// Formats one candidate per line.
pub(super) fn lines(offers: &[Offer]) -> String {
    offers.iter().flat_map(|offer| [&offer.value, "\n"]).collect()
}

/// Formats one candidate per line, each with its description after a tab.
pub(super) fn with_help(offers: &[Offer]) -> String {
    offers.iter().map(|offer| line(&offer.value, "\t", offer.help.as_deref())).collect()
}

/// Formats one candidate per line, each with its description after a colon; other colons are escaped.
pub(super) fn zsh(offers: &[Offer]) -> String {
    let escaped = |text: &str| text.replace('\\', "\\\\").replace(':', "\\:");
    offers.iter().map(|offer| line(&escaped(&offer.value), ":", offer.help.as_deref().map(escaped).as_deref())).collect()
}

fn line(value: &str, separator: &str, help: Option<&str>) -> String {
    match help {
        Some(help) => format!("{value}{separator}{help}\n"),
        None => format!("{value}\n"),
    }
}

/// Parses the words that fish passes. The last word is as typed, perhaps with an opening quote or escapes.
pub(super) fn fish_words(mut given: Vec<OsString>) -> Vec<OsString> {
    if let Some(typed) = given.last_mut()
        && let Some(text) = typed.to_str()
    {
        *typed = fish_word(text).into();
    }
    given
}

fn fish_word(typed: &str) -> String {
    let (mut out, mut quote) = (String::new(), None);
    let mut chars = typed.chars().peekable();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '\\') => out.extend(chars.next()),
            (Some(open), '\\') => out.push(chars.next_if(|next| *next == open || *next == '\\').unwrap_or('\\')),
            _ => out.push(c),
        }
    }
    out
}

/// Parses the words that the script for PowerShell passes.
pub(super) fn asked_by_powershell() -> Option<Asked> {
    let passed = std::env::var("GCDUMP_COMPLETE_WORDS").ok()?;
    let mut words: Vec<OsString> = passed.split('\n').map(Into::into).collect();
    let typed = words.pop()?.into_string().ok()?;
    // Some versions of PowerShell replace a typed quote and others keep it, so only names that need no quotes are offered after a quote.
    let quoted = typed.contains(is_quote);
    words.push(typed.replace(is_quote, "").into());
    let print = move |offers: &[Offer]| -> String {
        let quote = |offer: &Offer| Some(Offer { value: in_powershell(&offer.value, quoted)?, help: offer.help.clone() });
        with_help(&offers.iter().filter_map(quote).collect::<Vec<_>>())
    };
    Some(Asked { words, after: Vec::new(), print: Box::new(print) })
}

/// Whether PowerShell treats a character as a quote.
fn is_quote(c: char) -> bool {
    matches!(c, '\'' | '"' | '\u{2018}'..='\u{201b}' | '\u{201c}'..='\u{201e}')
}

/// Quotes a name for PowerShell, with single quotes if necessary. Returns `None` if the name needs quotes while a quote is open, if PowerShell or the
/// console may read a non-ASCII character of the name as a quote, or if Windows PowerShell would pass the name as several words.
pub fn in_powershell(name: &str, quoted: bool) -> Option<String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./+:=\\".contains(c);
    if name.chars().all(plain) {
        return Some(name.into());
    }
    let left_out = quoted || !name.is_ascii() || name.contains('"') || (name.contains(' ') && name.ends_with('\\'));
    (!left_out).then(|| format!("'{}'", name.replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_fish_passes_are_parsed() {
        for (typed, word) in [("'A B", "A B"), ("\"A", "A"), (r"A\ B", "A B"), (r"'it\'s", "it's"), (r"'a\b", r"a\b"), ("a'b'c", "abc")] {
            assert_eq!(fish_word(typed), word, "{typed}");
        }
    }

    #[test]
    fn names_are_quoted_for_powershell() {
        let name = |name| in_powershell(name, false);
        assert_eq!(name("Lab.Node").as_deref(), Some("Lab.Node"));
        assert_eq!(name("A;b").as_deref(), Some("'A;b'"));
        assert_eq!(name("it's$(x)").as_deref(), Some("'it''s$(x)'"));
        assert_eq!(name("List`1").as_deref(), Some("'List`1'"));
        for left_out in ["a\"b", "a\u{2019};b", "é b", "a b\\"] {
            assert_eq!(name(left_out), None, "{left_out}");
        }
        assert_eq!((in_powershell("A;b", true), in_powershell("A.b", true)), (None, Some("A.b".into())));
    }

    #[test]
    fn candidates_have_the_separators_of_each_shell() {
        let offers = [Offer { value: r"a:b\c".into(), help: Some("h:1".into()) }, Offer { value: "d".into(), help: None }];
        assert_eq!(lines(&offers), "a:b\\c\nd\n");
        assert_eq!(with_help(&offers), "a:b\\c\th:1\nd\n");
        assert_eq!(zsh(&offers), "a\\:b\\\\c:h\\:1\nd\n");
    }
}
