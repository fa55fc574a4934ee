//! The grammar of conditions:
//!
//! ```text
//! condition  = and { "or" and }
//! and        = not { "and" not }
//! not        = [ "not" ] ( "(" condition ")" | comparison )
//! comparison = operand ( "=" | "!=" | "<" | "<=" | ">" | ">=" | "~" ) operand
//!            | field                                  a Boolean field, compared with true
//! operand    = field | property | number | text | "true" | "false" | "null"
//! field      = "field" "(" text ")"                   a path such as _owner._name follows references and structures
//!            | path                                   only before a comparison operator
//! property   = "size" | "type" | "module" | "generation" | "gen" | "heap" | "address" | "length"
//! number     = digits [ "." digits ] [ "K" | "M" | "G" | "T" ] | "0x" digits, with an optional "-" before it
//! text       = "\"" characters "\"" | "'" characters "'" | a word after a comparison operator: gen2, Lab.Order
//! ```
//!
//! `==`, `<>`, `&&`, `||` and `!` are accepted as well. Keywords and properties are case-insensitive.

use winnow::combinator::{alt, cut_err, delimited, empty, eof, opt, peek, preceded, repeat, terminated};
use winnow::error::{ContextError, ErrMode, StrContext, StrContextValue};
use winnow::prelude::*;
use winnow::stream::LocatingSlice;
use winnow::token::{one_of, take_till, take_while};

use super::{Comparison, ConditionError, Node, Number, Operand, Operator, Property};

type Input<'i> = LocatingSlice<&'i str>;
type Parsed<T> = Result<T, ErrMode<ContextError>>;

/// Maximum nesting of parentheses and `not`, since the parser is recursive.
const MAX_DEPTH: usize = 100;
/// Maximum length of a condition in bytes. Each `and` adds a level to the tree, which recursive functions visit.
const MAX_BYTES: usize = 8192;

/// Parses a condition.
pub(super) fn parse(text: &str) -> Result<Node, ConditionError> {
    if text.len() > MAX_BYTES {
        return Err(ConditionError::at(text, 0, format!("the condition is longer than {MAX_BYTES} bytes")));
    }
    let (mut depth, mut quote, mut escaped) = (0usize, None, false);
    for (offset, c) in text.char_indices() {
        // Parentheses in quoted texts are ignored.
        if let Some(end) = quote {
            (quote, escaped) = (quote.filter(|_| escaped || c != end), c == '\\' && !escaped);
            continue;
        }
        depth = match c {
            '"' | '\'' => {
                quote = Some(c);
                depth
            }
            '(' => depth.saturating_add(1),
            // Each negation adds a level too, and the count is not decreased again.
            '!' | 'n' | 'N' => depth.saturating_add(usize::from(is_negation(text, offset))),
            ')' => depth.saturating_sub(1),
            _ => depth,
        };
        if depth > MAX_DEPTH {
            return Err(ConditionError::at(text, offset, "the condition is nested too deeply"));
        }
    }
    let whole = delimited(blank, condition, (blank, cut_err(eof).context(expected("'and', 'or' or the end"))));
    { whole }.parse(LocatingSlice::new(text)).map_err(|e| {
        let expected: Vec<String> = e
            .inner()
            .context()
            .filter_map(|c| match c {
                StrContext::Expected(value) => Some(value.to_string()),
                _ => None,
            })
            .take(1)
            .collect();
        let what = expected.first().map_or_else(|| "not a valid condition".to_string(), |what| format!("expected {what}"));
        ConditionError::at(text, e.offset(), what)
    })
}

/// Whether `!` or the word `not` is at `offset`, and not `!=` or a part of another word.
fn is_negation(text: &str, offset: usize) -> bool {
    let (before, rest) = text.split_at_checked(offset).unwrap_or((text, ""));
    if let Some(after) = rest.strip_prefix('!') {
        return !after.starts_with('=');
    }
    let is_not = rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("not"));
    is_not && !before.ends_with(is_word_char) && !rest.get(3..).is_some_and(|after| after.starts_with(is_word_char))
}

fn expected(what: &'static str) -> StrContext {
    StrContext::Expected(StrContextValue::Description(what))
}

fn blank(input: &mut Input<'_>) -> Parsed<()> {
    take_while(0.., |c: char| c.is_whitespace()).void().parse_next(input)
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// A keyword in any case, or its symbol.
fn keyword<'i>(word: &'static str, symbol: &'static str) -> impl Parser<Input<'i>, (), ErrMode<ContextError>> {
    let spelled = take_while(1.., is_word_char).verify(move |w: &str| w.eq_ignore_ascii_case(word)).void();
    delimited(blank, alt((spelled, symbol.void())), blank)
}

fn condition(input: &mut Input<'_>) -> Parsed<Node> {
    let first = conjunction(input)?;
    let rest: Vec<Node> = repeat(0.., preceded(keyword("or", "||"), cut_err(conjunction))).parse_next(input)?;
    Ok(rest.into_iter().fold(first, |a, b| Node::Or(Box::new((a, b)))))
}

fn conjunction(input: &mut Input<'_>) -> Parsed<Node> {
    let first = negation(input)?;
    let rest: Vec<Node> = repeat(0.., preceded(keyword("and", "&&"), cut_err(negation))).parse_next(input)?;
    Ok(rest.into_iter().fold(first, |a, b| Node::And(Box::new((a, b)))))
}

fn negation(input: &mut Input<'_>) -> Parsed<Node> {
    if opt(keyword("not", "!")).parse_next(input)?.is_some() {
        return cut_err(negation).parse_next(input).map(|inner| Node::Not(Box::new(inner)));
    }
    let close = cut_err((blank, ')')).context(expected("')'"));
    alt((delimited(('(', blank), cut_err(condition), close), comparison)).parse_next(input)
}

fn operator(input: &mut Input<'_>) -> Parsed<Operator> {
    alt((
        alt(("==", "=")).value(Operator::Equal),
        alt(("!=", "<>")).value(Operator::Unequal),
        "<=".value(Operator::AtMost),
        ">=".value(Operator::AtLeast),
        "<".value(Operator::Less),
        ">".value(Operator::More),
        "~".value(Operator::Like),
    ))
    .parse_next(input)
}

fn comparison(input: &mut Input<'_>) -> Parsed<Node> {
    let (left, left_span) = alt((operand, bare_field)).with_span().context(expected(OPERAND)).parse_next(input)?;
    blank(input)?;
    let Some((operator, operator_span)) = opt(operator.with_span()).parse_next(input)? else {
        // A field without an operator is compared with `true`.
        if matches!(left, Operand::Field(_)) {
            let right = Operand::Bool(true);
            return Ok(Node::Compare(Comparison { left, operator: Operator::Equal, right, offset: left_span.start }));
        }
        return cut_err(winnow::combinator::fail).context(expected("a comparison: =, !=, <, <=, >, >= or ~")).parse_next(input);
    };
    blank(input)?;
    let right =
        cut_err(alt((operand, word))).context(expected("a number, a text in quotes, a word, true, false or null")).parse_next(input)?;
    Ok(Node::Compare(Comparison { left, operator, right, offset: operator_span.start }))
}

/// Description of an operand, for messages.
const OPERAND: &str = "size, type, module, generation, heap, address, length, the name of a field, or a number";

/// The name of a field without `field("…")`: a word or path that is not a property and is followed by an operator.
fn bare_field(input: &mut Input<'_>) -> Parsed<Operand> {
    let begins = |w: &&str| w.starts_with(|c: char| c.is_alphabetic() || c == '_') && !KEYWORDS.iter().any(|k| k.eq_ignore_ascii_case(w));
    let path = take_while(1.., |c: char| is_word_char(c) || c == '.').verify(begins);
    let found: Option<&str> = opt(terminated(path, peek((blank, operator)))).parse_next(input)?;
    let Some(path) = found else { return winnow::combinator::fail.parse_next(input) };
    Ok(Operand::Field(path.split('.').map(str::to_string).collect()))
}

/// Words that need `field("…")` as names of fields.
const KEYWORDS: [&str; 4] = ["and", "or", "not", "field"];

fn operand(input: &mut Input<'_>) -> Parsed<Operand> {
    alt((number.map(Operand::Number), quoted.map(Operand::Text), field, named)).parse_next(input)
}

/// A text in either kind of quotes; a backslash escapes the next character.
fn quoted(input: &mut Input<'_>) -> Parsed<String> {
    let quote = one_of(['"', '\'']).parse_next(input)?;
    let mut text = String::new();
    loop {
        let part: &str = take_till(0.., move |c: char| c == quote || c == '\\').parse_next(input)?;
        text.push_str(part);
        match opt(one_of(['\\'])).parse_next(input)? {
            Some(_) => text.push(cut_err(winnow::token::any).context(expected("a character")).parse_next(input)?),
            None => break,
        }
    }
    cut_err(one_of([quote])).context(expected("the closing quote")).parse_next(input)?;
    Ok(text)
}

/// Parses a field in the form `field("_owner._name")`.
fn field(input: &mut Input<'_>) -> Parsed<Operand> {
    let open = (take_while(1.., is_word_char).verify(|w: &str| w.eq_ignore_ascii_case("field")), blank, '(', blank);
    let name = cut_err(quoted).context(expected("the name of a field in quotes"));
    let close = cut_err((blank, ')')).context(expected("')'"));
    delimited(open, name, close).map(|path: String| Operand::Field(path.split('.').map(str::to_string).collect())).parse_next(input)
}

/// A property, or one of the constants `true`, `false` and `null`.
fn named(input: &mut Input<'_>) -> Parsed<Operand> {
    let known = |word: &str| {
        Some(match &*word.to_ascii_lowercase() {
            "true" => Operand::Bool(true),
            "false" => Operand::Bool(false),
            "null" => Operand::Null,
            name => Operand::Property(Property::named(name)?),
        })
    };
    take_while(1.., is_word_char).verify_map(known).parse_next(input)
}

/// A text without quotes. The characters that it accepts suffice for names of types and for globs.
fn word(input: &mut Input<'_>) -> Parsed<Operand> {
    let inside = |c: char| is_word_char(c) || matches!(c, '.' | '+' | '*' | '?' | '-' | '`' | '[' | ']');
    take_while(1.., inside).map(|w: &str| Operand::Text(w.into())).parse_next(input)
}

fn number(input: &mut Input<'_>) -> Parsed<Number> {
    let negative = opt('-').parse_next(input)?.is_some();
    if opt(alt(("0x", "0X"))).parse_next(input)?.is_some() {
        let digits = cut_err(take_while(1.., |c: char| c.is_ascii_hexdigit() || c == '`')).context(expected("hexadecimal digits"));
        let read = |text: &str| i128::from_str_radix(&text.replace('`', ""), 16).ok();
        let value = { digits }.verify_map(read).parse_next(input)?;
        return Ok(Number::Int(if negative { value.checked_neg().unwrap_or(value) } else { value }));
    }
    let whole: &str = take_while(1.., |c: char| c.is_ascii_digit()).parse_next(input)?;
    let part: Option<&str> = opt(preceded('.', take_while(1.., |c: char| c.is_ascii_digit()))).parse_next(input)?;
    let unit = opt(one_of(['k', 'K', 'm', 'M', 'g', 'G', 't', 'T'])).parse_next(input)?;
    let bytes = opt((opt(one_of(['i'])), one_of(['b', 'B']))).void();
    if unit.is_some() {
        { bytes }.parse_next(input)?;
    }
    // A word such as `3Days` is not a number.
    cut_err(alt((peek(one_of(|c: char| !is_word_char(c))).void(), eof.void(), empty.verify(|()| false))))
        .context(expected("K, M, G or T after a number"))
        .parse_next(input)?;
    let scale: i128 = match unit.map(|u| u.to_ascii_uppercase()) {
        Some('K') => 1 << 10,
        Some('M') => 1 << 20,
        Some('G') => 1 << 30,
        Some('T') => 1 << 40,
        _ => 1,
    };
    let sign = if negative { -1 } else { 1 };
    match part {
        None => {
            let value = whole.parse::<i128>().ok().and_then(|n| n.checked_mul(scale)?.checked_mul(sign));
            value.map(Number::Int).ok_or_else(|| ErrMode::Cut(ContextError::new()))
        }
        Some(part) => {
            let value: f64 = format!("{whole}.{part}").parse().map_err(|_| ErrMode::Cut(ContextError::new()))?;
            let scale: f64 = match scale {
                1 => 1.0,
                n => f64::from(u32::try_from(n >> 10).unwrap_or(u32::MAX)) * 1024.0,
            };
            Ok(Number::Float(value * scale * if negative { -1.0 } else { 1.0 }))
        }
    }
}
