//! Very many assemblies without a file.
//!
//! Rule: at least `dynamic` of them. Serializers, proxies, compiled expressions and scripts emit assemblies; one that is made again for each use
//! stays for good, with its types and code, unless it is collectible and nothing refers to it.
//!
//! Source: the runtime's list of modules, as `modules` shows it.

use std::collections::{BTreeMap, BTreeSet};

use super::answers::{Answers, Skip};
use super::line::{counted, listed};
use crate::base::{Count, len64, thousands};
use crate::model::{Problem, ProblemId, ProblemSeverity};

/// Patterns named in the title.
const NAMED: usize = 3;

pub(super) fn find(answers: &Answers<'_>) -> Result<Vec<Problem>, Skip> {
    let list = answers.dynamic()?;
    let count = len64(list.len());
    if count < answers.thresholds().dynamic {
        return Ok(Vec::new());
    }
    let mut patterns: BTreeMap<String, u64> = BTreeMap::new();
    list.iter().for_each(|m| patterns.entry(pattern(m.name.as_deref().unwrap_or("?"))).or_default().bump());
    let mut patterns: Vec<(String, u64)> = patterns.into_iter().collect();
    patterns.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let more = if patterns.len() > NAMED { format!(" and {} other names", patterns.len().saturating_sub(NAMED)) } else { String::new() };
    let named = listed(patterns.iter().take(NAMED).map(|(name, n)| format!("{} × {name}", thousands(*n))));
    let contexts: BTreeSet<_> = list.iter().filter_map(|m| m.load_context).collect();
    let within = if contexts.is_empty() { String::new() } else { format!(", in {}", counted(len64(contexts.len()), "load context")) };
    let collectible = len64(list.iter().filter(|m| m.collectible == Some(true)).count());
    let title = format!("{} without a file: {named}{more}{within}; {} can be unloaded", assemblies(count), thousands(collectible));
    Ok(vec![Problem { count: Some(count), ..answers.finding(ProblemId::DynamicAssemblies, ProblemSeverity::Warning, title, &["modules"]) }])
}

fn assemblies(n: u64) -> String {
    if n == 1 { "1 assembly".into() } else { format!("{} assemblies", thousands(n)) }
}

/// A name with a star for each number and id, in which one differs from the next.
fn pattern(name: &str) -> String {
    let mut out = String::new();
    for part in name.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let (word, end) = match part.char_indices().last().filter(|(_, c)| !c.is_alphanumeric()) {
            Some((at, _)) => part.split_at(at),
            None => (part, ""),
        };
        match word.split_once(|c: char| c.is_ascii_digit()) {
            Some((before, _)) => out.push_str(&format!("{before}*")),
            None => out.push_str(word),
        }
        out.push_str(end);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn names_that_differ_in_numbers_are_equal() {
        assert_eq!(pattern("Microsoft.GeneratedCode17"), "Microsoft.GeneratedCode*");
        assert_eq!(pattern("DynamicProxyGenAssembly2"), "DynamicProxyGenAssembly*");
        assert_eq!(pattern("a"), "a");
        assert_eq!(pattern(""), "");
        assert_eq!(pattern("ℛ*1e2d-3f#1-0"), "ℛ**-*#*-*");
    }
}
