//! Rules that make a comparison fail: `bytes>10%`, `type:Lab.Order:count>1000`, `handles>+500`.
//!
//! ```text
//! rule    = subject comparison limit
//! subject = measure | "handles:" KIND | "type:" PATTERN ":" ("count" | "objects" | "bytes" | "retained")
//! measure = "bytes" | "objects" | "count" | "handles" | "threads" | "finalizable" | "ready" | "committed"
//!         | "fragmented" | "oom" | "native" | "tasks"
//! limit   = N [unit]                the value in the last dump
//!         | ("+" | "-") N [unit]    the change from the first dump to the last
//!         | ["+" | "-"] N "%"       the change in percent of the value in the first dump
//! ```
//!
//! Any growth from zero exceeds any percentage.

use std::fmt;
use std::str::FromStr;

use crate::analysis::DiffRule;
use crate::base::{change, thousands};
use crate::model::HandleKind;
use crate::session::TypePattern;

/// A rule that a comparison of dumps may fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Text as given.
    text: String,
    pub(super) subject: Subject,
    comparison: Comparison,
    limit: Limit,
}

/// Subject of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// A measure of the summary.
    Measure(&'static str),
    /// Handles of a kind.
    Handles(HandleKind),
    /// Objects of the types that match a pattern ([`TypePattern`]).
    Types(String, Field),
}

/// A measure of the objects of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Count,
    Bytes,
    Retained,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Over,
    AtLeast,
    Under,
    AtMost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// Limit of the value in the last dump.
    Value(i128),
    /// Limit of the change.
    Change(i128),
    /// Limit of the change, in thousandths of a percent of the first dump's value.
    Percent(i128),
}

/// Thousandths of a percent in a whole.
const WHOLE: i128 = 100_000;

/// Measures, and whether their unit is bytes. `count` is an alias of `objects`.
const MEASURES: [(&str, bool); 12] = [
    ("bytes", true),
    ("objects", false),
    ("count", false),
    ("handles", false),
    ("threads", false),
    ("finalizable", false),
    ("ready", false),
    ("committed", true),
    ("fragmented", true),
    ("oom", false),
    ("native", true),
    ("tasks", false),
];

const FIELDS: [(&str, Field); 4] =
    [("count", Field::Count), ("objects", Field::Count), ("bytes", Field::Bytes), ("retained", Field::Retained)];

/// Units of bytes, as exponents of 2: a kilobyte has 1024 bytes, as in `--min-size` and similar options.
const UNITS: [(&str, u32); 13] = [
    ("b", 0),
    ("k", 10),
    ("kb", 10),
    ("kib", 10),
    ("m", 20),
    ("mb", 20),
    ("mib", 20),
    ("g", 30),
    ("gb", 30),
    ("gib", 30),
    ("t", 40),
    ("tb", 40),
    ("tib", 40),
];

/// A malformed rule, and the position of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct RuleError {
    rule: String,
    /// Character offset of the error.
    at: usize,
    expected: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}\n  {}\n  {:>width$}", self.expected, self.rule, "^", width = self.at.saturating_add(1))
    }
}

/// Parses a rule from left to right.
struct Parser<'t> {
    text: &'t str,
    /// Rest of the text.
    rest: &'t str,
}

impl<'t> Parser<'t> {
    fn fail<T>(&self, rest: &str, expected: impl Into<String>) -> Result<T, RuleError> {
        let before = self.text.len().saturating_sub(rest.len());
        let at = self.text.get(..before).map_or(0, |t| t.chars().count());
        Err(RuleError { rule: self.text.into(), at, expected: expected.into() })
    }

    /// Takes the text up to the first character that matches `stop`.
    fn until(&mut self, stop: impl Fn(char) -> bool) -> &'t str {
        let at = self.rest.find(stop).unwrap_or(self.rest.len());
        let (head, tail) = self.rest.split_at_checked(at).unwrap_or((self.rest, ""));
        self.rest = tail;
        head
    }

    fn eat(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn subject(&mut self) -> Result<(Subject, bool), RuleError> {
        let start = self.rest;
        if self.eat("type:") {
            // Names of generic types contain `<` and `>`, but no type name ends in a colon.
            let Some(colon) = self.rest.rfind(':') else {
                return self.fail("", "':count', ':bytes' or ':retained' after the name of the type");
            };
            let (name, tail) = self.rest.split_at_checked(colon).unwrap_or((self.rest, ""));
            if name.trim().is_empty() {
                return self.fail(self.rest, "the name of a type");
            }
            let is_expression = match TypePattern::named(name) {
                Ok(TypePattern::Name(name)) => TypePattern::is_expression(&name),
                Ok(TypePattern::MethodTable(_)) => false,
                Err(_) => return self.fail(self.rest, "a regular expression"),
            };
            // Brackets of array types and type arguments are paired in every name.
            if !is_expression && !name.contains('*') && name.matches('[').count() != name.matches(']').count() {
                return self.fail(self.rest, "the name of a type with balanced brackets");
            }
            self.rest = tail.strip_prefix(':').unwrap_or(tail);
            let at = self.rest;
            let word = self.until(is_operator).trim();
            let Some((_, field)) = FIELDS.iter().find(|(name, _)| *name == word) else {
                return self.fail(at, "count, bytes or retained");
            };
            return Ok((Subject::Types(name.trim().into(), *field), *field != Field::Count));
        }
        let word = self.until(is_operator).trim();
        if let Some(kind) = word.strip_prefix("handles:") {
            return match HandleKind::from_str(kind) {
                Ok(kind) => Ok((Subject::Handles(kind), false)),
                Err(_) => self.fail(start.get("handles:".len()..).unwrap_or(start), format!("one of {}", HandleKind::NAMES.join(", "))),
            };
        }
        match MEASURES.iter().find(|(name, _)| *name == word) {
            Some((name, bytes)) => Ok((Subject::Measure(if *name == "count" { "objects" } else { name }), *bytes)),
            None => {
                let names: Vec<&str> = MEASURES.iter().map(|m| m.0).collect();
                self.fail(start, format!("one of {}, handles:KIND, type:NAME:count|bytes|retained", names.join(", ")))
            }
        }
    }

    fn comparison(&mut self) -> Result<Comparison, RuleError> {
        let all = [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost), (">", Comparison::Over), ("<", Comparison::Under)];
        match all.into_iter().find(|(token, _)| self.eat(token)) {
            Some((_, comparison)) => Ok(comparison),
            None => self.fail(self.rest, "a comparison: >, >=, < or <="),
        }
    }

    fn limit(&mut self, is_bytes: bool) -> Result<Limit, RuleError> {
        const EXPECTED: &str = "a number, such as 1000, +500, 10% or 10MB";
        self.space();
        let start = self.rest;
        let sign = if self.eat("-") { Some(-1) } else { self.eat("+").then_some(1) };
        let at = self.rest;
        let digits = self.until(|c| !c.is_ascii_digit());
        let Ok(number) = digits.parse::<u64>() else {
            return self.fail(at, if digits.is_empty() { EXPECTED } else { "a smaller number" });
        };
        let number = i128::from(number);
        let fraction = if self.eat(".") { Some(self.until(|c| !c.is_ascii_digit())) } else { None };
        self.space();
        let at = self.rest;
        let unit = self.until(char::is_whitespace);
        if !self.rest.trim().is_empty() {
            return self.fail(self.rest.trim_start(), "nothing more");
        }
        let signed = |n: i128| n.saturating_mul(sign.unwrap_or(1));
        if unit == "%" {
            let thousandths = format!("{:0<3}", fraction.unwrap_or("0"));
            let Some(thousandths) = thousandths.get(..3).filter(|t| t.len() == thousandths.len()).and_then(|t| t.parse::<i128>().ok())
            else {
                return self.fail(start, "at most three digits after the decimal point");
            };
            return Ok(Limit::Percent(signed(number.saturating_mul(1000).saturating_add(thousandths))));
        }
        if fraction.is_some() {
            return self.fail(start, "a whole number, or a percentage");
        }
        let shift = match UNITS.iter().find(|(name, _)| *name == unit.to_ascii_lowercase()) {
            _ if unit.is_empty() => 0,
            Some((_, shift)) if is_bytes => *shift,
            _ => {
                return self
                    .fail(at, if is_bytes { "%, or a unit: B, KB, MB, GB, TB" } else { "%, or no unit: this measure is not in bytes" });
            }
        };
        let number = number.saturating_mul(1i128.checked_shl(shift).unwrap_or(1));
        Ok(if sign.is_some() { Limit::Change(signed(number)) } else { Limit::Value(number) })
    }
}

fn is_operator(c: char) -> bool {
    matches!(c, '<' | '>' | '=' | '!')
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        let text = text.trim();
        let mut parser = Parser { text, rest: text };
        let (subject, is_bytes) = parser.subject()?;
        let comparison = parser.comparison()?;
        let limit = parser.limit(is_bytes)?;
        Ok(Rule { text: text.into(), subject, comparison, limit })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Rule {
    /// Parses a budget file, which has one rule per line. A `#` at the start of a line or after a space begins a
    /// comment.
    ///
    /// # Errors
    /// The number of the first malformed line, from 1, and its error.
    pub fn parse_all(text: &str) -> Result<Vec<Rule>, (usize, RuleError)> {
        let mut rules = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let comment = line.char_indices().zip(std::iter::once(' ').chain(line.chars()));
            let end = comment.into_iter().find(|((_, c), before)| *c == '#' && before.is_whitespace()).map(|((at, _), _)| at);
            let rule = line.get(..end.unwrap_or(line.len())).unwrap_or(line).trim();
            if !rule.is_empty() {
                rules.push(rule.parse().map_err(|e| (number, e))?);
            }
        }
        Ok(rules)
    }

    /// Whether the rule needs retained sizes.
    pub(super) fn needs_retained(&self) -> bool {
        matches!(self.subject, Subject::Types(_, Field::Retained))
    }

    /// Whether a failed check counts even if the answer is partial. Lost roots change retained sizes in both directions. Lists of threads and of heaps that
    /// are cut short have too few of them.
    fn is_exact(&self) -> bool {
        let is_upper = matches!((self.comparison, self.limit), (Comparison::Over | Comparison::AtLeast, Limit::Value(_)));
        match &self.subject {
            Subject::Types(_, Field::Retained) => false,
            Subject::Measure(name) if ["threads", "oom"].contains(&&**name) => is_upper,
            Subject::Measure(_) | Subject::Handles(_) | Subject::Types(..) => true,
        }
    }

    /// Applies the rule to its subject in the first and the last dump.
    pub(super) fn check(&self, first: Option<Amount>, last: Option<Amount>) -> DiffRule {
        let number = |amount: Option<Amount>| amount.map(|amount| amount.number);
        let (before, after) = (number(first), number(last));
        let mut out = DiffRule { rule: self.text.clone(), before, after, failed: None, reason: None, certain: self.is_exact() };
        let (from, to) = match (first, last, self.limit) {
            // The value in the first dump does not matter.
            (_, Some(to), Limit::Value(_)) => (Amount { number: before.unwrap_or(to.number), is_least: false }, to),
            (Some(from), Some(to), _) => (from, to),
            _ => {
                out.reason = Some(format!("{}: unknown in one of the dumps", self.subject()));
                return out;
            }
        };
        let (least_from, least_to) = (from.is_least, to.is_least);
        let (from, to) = (from.number, to.number);
        let by = i128::from(to).saturating_sub(i128::from(from));
        let (left, right) = match self.limit {
            Limit::Value(limit) => (i128::from(to), limit),
            Limit::Change(limit) => (by, limit),
            Limit::Percent(limit) => (by.saturating_mul(WHOLE), limit.saturating_mul(i128::from(from))),
        };
        let failed = match self.comparison {
            Comparison::Over => left > right,
            Comparison::AtLeast => left >= right,
            Comparison::Under => left < right,
            Comparison::AtMost => left <= right,
        };
        // If the dump does not have all objects, the real number may be larger. The result counts if a larger number would not change it.
        let is_upper = matches!(self.comparison, Comparison::Over | Comparison::AtLeast);
        let may_change = if is_upper == failed { least_from } else { least_to };
        let is_below_zero = least_from && matches!(self.limit, Limit::Percent(limit) if limit < 0);
        if may_change || is_below_zero {
            out.reason = Some(format!("{}: one of the dumps does not have all objects", self.subject()));
            return out;
        }
        out.failed = Some(failed);
        if failed {
            let sign = if to < from { "-" } else { "+" };
            let by = thousands(change(from, to).unsigned_abs());
            out.reason = Some(match before {
                Some(_) => format!("{} went from {} to {} ({sign}{by})", self.subject(), thousands(from), thousands(to)),
                None => format!("{} is {}", self.subject(), thousands(to)),
            });
        }
        out
    }

    /// Returns the left-hand side in its usual form, without aliases.
    fn subject(&self) -> String {
        match &self.subject {
            Subject::Measure(name) => (*name).into(),
            Subject::Handles(kind) => format!("handles:{kind}"),
            Subject::Types(name, field) => {
                let field = FIELDS.iter().find(|(_, f)| f == field).map_or("", |(name, _)| name);
                format!("type:{name}:{field}")
            }
        }
    }
}

/// A number that a rule compares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    pub(super) number: u64,
    /// Whether the real number may be larger, because the dump does not have all objects.
    pub(super) is_least: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(number: u64) -> Option<Amount> {
        Some(Amount { number, is_least: false })
    }

    fn at_least(number: u64) -> Option<Amount> {
        Some(Amount { number, is_least: true })
    }

    fn failed(rule: &str, before: u64, after: u64) -> bool {
        rule.parse::<Rule>().unwrap().check(exactly(before), exactly(after)).failed.unwrap()
    }

    #[test]
    fn the_documents_list_every_measure() {
        let page = std::fs::read_to_string("docs/cli.md").unwrap();
        let row = page.lines().find(|line| line.starts_with("| subject |")).unwrap();
        for (measure, _) in MEASURES {
            assert!(row.contains(&format!("`{measure}`")), "{measure}: {row}");
        }
    }

    #[test]
    fn a_rule_about_a_part_of_the_objects_counts_if_the_rest_cannot_change_it() {
        let failed = |rule: &str, before, after| rule.parse::<Rule>().unwrap().check(before, after).failed;
        assert_eq!(failed("bytes>10%", exactly(268_058), at_least(1_278)), None);
        assert_eq!(failed("bytes>10%", exactly(1000), at_least(2000)), Some(true));
        assert_eq!(failed("bytes>10%", at_least(1000), exactly(1050)), Some(false));
        assert_eq!(failed("bytes>10%", at_least(1000), exactly(2000)), None);
        assert_eq!(failed("bytes>-10%", at_least(1000), exactly(2000)), None);
        assert_eq!(failed("objects<5", exactly(9), at_least(3)), None);
        assert_eq!(failed("objects<5", at_least(1), at_least(7)), Some(false));
        assert_eq!(failed("objects>+5", at_least(1), at_least(7)), None);
        assert_eq!(failed("objects<-5", at_least(17), exactly(7)), Some(true));
    }

    #[test]
    fn limits_are_of_the_value_the_change_or_its_percentage() {
        assert!(failed("bytes>10%", 1000, 1101) && !failed("bytes>10%", 1000, 1100) && failed("bytes>=10%", 1000, 1100));
        assert!(failed("bytes > 0.5%", 1000, 1006) && !failed("bytes>0.5%", 1000, 1005));
        assert!(failed("handles>+500", 100, 601) && !failed("handles>+500", 100, 600));
        assert!(failed("objects<-10", 100, 89) && !failed("count<-10", 100, 90) && failed("objects<-10%", 100, 89));
        assert!(failed("committed>1MB", 0, (1 << 20) + 1) && !failed("committed>1MiB", 0, 1 << 20) && failed("fragmented<=1k", 0, 1024));
        assert!(failed("threads>100", 500, 101) && !failed("threads>100", 500, 100));
        // Any growth from zero exceeds any percentage.
        assert!(failed("oom>900%", 0, 1) && !failed("oom>0%", 0, 0));
        let rule: Rule = "type:System.Collections.Generic.List<Lab.Order>:count>1000".parse().unwrap();
        assert_eq!(rule.subject, Subject::Types("System.Collections.Generic.List<Lab.Order>".into(), Field::Count));
        assert_eq!("handles:strong>+1".parse::<Rule>().unwrap().subject, Subject::Handles(HandleKind::Strong));
        assert!("type:Lab.*:retained>1GB".parse::<Rule>().unwrap().needs_retained());
    }

    #[test]
    fn an_unknown_number_neither_passes_nor_fails() {
        let rule: Rule = "handles>+5".parse().unwrap();
        let outcome = rule.check(None, exactly(7));
        assert!(outcome.failed.is_none() && outcome.reason.is_some());
        assert_eq!("handles>5".parse::<Rule>().unwrap().check(None, exactly(7)).failed, Some(true));
    }

    #[test]
    fn errors_of_malformed_rules_have_a_position() {
        let at = |text: &str| text.parse::<Rule>().unwrap_err().at;
        assert_eq!(["bytes>>10%", "byte>1", "bytes", "bytes>", "bytes>10X", "bytes>1.5", "handles>5MB"].map(at), [6, 0, 5, 6, 8, 6, 9]);
        assert_eq!(
            ["type:Lab.A>3", "type::count>3", "type:Lab.A:size>3", "handles:x>1", "bytes>1 2", "bytes=5"].map(at),
            [12, 5, 11, 8, 8, 5]
        );
        assert_eq!(["type:[:count>1", "type:Lab.A[]]:bytes>1"].map(at), [5, 5]);
        assert!("type:Lab.A[,][]:count>1".parse::<Rule>().is_ok() && "type:Lab.*[:count>1".parse::<Rule>().is_ok());
        assert_eq!(at("bytes>99999999999999999999"), 6);
        let text = "bytes>>10%".parse::<Rule>().unwrap_err().to_string();
        assert!(text.ends_with("\n  bytes>>10%\n        ^"), "{text}");
    }

    #[test]
    fn a_budget_is_rules_and_comments() {
        let rules = Rule::parse_all("# nightly\n\nbytes>10%  # of everything\n  type:Lab.C#:count>1\n").unwrap();
        assert_eq!(rules.iter().map(ToString::to_string).collect::<Vec<_>>(), ["bytes>10%", "type:Lab.C#:count>1"]);
        assert_eq!(Rule::parse_all("bytes>1\n\nbytes").unwrap_err().0, 3);
    }
}
