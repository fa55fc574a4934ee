//! The table of items: its text, and what an answer shows for a field.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The rows, and the dumps that are used.
#[derive(Default)]
pub struct Table {
    /// Dumps by runtime.
    pub dumps: Vec<(String, Vec<String>)>,
    /// Pairs of dumps of one process by runtime.
    pub pairs: Vec<(String, Vec<String>)>,
    pub lets: BTreeMap<String, Let>,
    pub sections: Vec<Section>,
}

/// The value of a placeholder.
pub enum Let {
    Word(String),
    /// The first value of a field in this command's answer.
    First(String, String),
}

#[derive(Default)]
pub struct Section {
    pub title: String,
    pub note: Option<String>,
    pub rows: Vec<Row>,
}

pub struct Row {
    pub item: String,
    pub says: Says,
}

pub enum Says {
    Field(Field),
    /// The reason why no dump can show it.
    Why(String),
}

pub struct Field {
    pub command: String,
    pub path: String,
    pub kind: String,
    pub shown: Shown,
}

/// The best result of all dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Value,
    Zero,
    /// Only the synthetic process has a value.
    Synthetic,
}

/// The state of a field in answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Only `null`, or no row that could have it.
    Absent,
    /// Only zeros and empty lists.
    Zero,
    Value,
}

impl State {
    pub fn word(self) -> &'static str {
        match self {
            State::Absent => "absent",
            State::Zero => "zero",
            State::Value => "value",
        }
    }
}

impl Shown {
    /// Checks the best result of real dumps and of the synthetic process against the row.
    pub fn holds(self, real: Option<State>, synthetic: Option<State>) -> Result<(), String> {
        let expected = match self {
            Shown::Value => real == Some(State::Value),
            Shown::Zero => real == Some(State::Zero) && synthetic == Some(State::Value),
            Shown::Synthetic => real.unwrap_or(State::Absent) == State::Absent && synthetic == Some(State::Value),
        };
        let (real, synthetic) = (real.map_or("not asked", State::word), synthetic.map_or("not asked", State::word));
        if expected { Ok(()) } else { Err(format!("expected {self:?}, the dumps: {real}, the synthetic process: {synthetic}")) }
    }
}

impl Table {
    pub fn parse(text: &str) -> Result<Table, String> {
        let mut table = Table::default();
        for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            table.line(line).ok_or_else(|| format!("not understood: {line}"))?;
        }
        let mut items = BTreeSet::new();
        for section in &table.sections {
            for row in &section.rows {
                if !items.insert((&section.title, &row.item)) {
                    return Err(format!("{}: {} occurs twice", section.title, row.item));
                }
            }
        }
        Ok(table)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let list = |text: &str| -> Option<(String, Vec<String>)> {
            let (runtime, names) = text.split_once(": ")?;
            Some((runtime.to_string(), names.split_whitespace().map(ToString::to_string).collect()))
        };
        if let Some(title) = line.strip_prefix("== ") {
            self.sections.push(Section { title: title.into(), ..Section::default() });
        } else if let Some(note) = line.strip_prefix("= ") {
            self.sections.last_mut()?.note = Some(note.into());
        } else if let Some(rest) = line.strip_prefix("dumps ") {
            self.dumps.push(list(rest)?);
        } else if let Some(rest) = line.strip_prefix("pairs ") {
            self.pairs.push(list(rest)?);
        } else if let Some(rest) = line.strip_prefix("let ") {
            let (word, stands) = rest.split_once(" = ")?;
            let stands = match stands.split_once(" | ") {
                Some((command, path)) => Let::First(command.into(), path.into()),
                None => Let::Word(stands.into()),
            };
            self.lets.insert(word.into(), stands);
        } else {
            self.sections.last_mut()?.rows.push(row(line)?);
        }
        Some(())
    }

    /// Every row with a field, with the numbers of its section and row.
    pub fn fields(&self) -> impl Iterator<Item = ((usize, usize), &Field)> {
        self.sections.iter().enumerate().flat_map(|(s, section)| {
            section.rows.iter().enumerate().filter_map(move |(r, row)| match &row.says {
                Says::Field(field) => Some(((s, r), field)),
                Says::Why(_) => None,
            })
        })
    }

    pub fn item(&self, (section, row): (usize, usize)) -> String {
        let section = &self.sections[section];
        format!("{}, {}", section.title, section.rows[row].item)
    }
}

fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.split(" | ").collect();
    let [item, command, rest] = cells[..] else { return None };
    let says = if command == "-" {
        // A reason has more than eight characters.
        Says::Why((rest.len() > 8).then(|| rest.to_string())?)
    } else {
        let (path, kind) = rest.split_once(" : ")?;
        let (kind, shown) = match kind.split_once(' ') {
            None => (kind, Shown::Value),
            Some((kind, "zero")) => (kind, Shown::Zero),
            Some((kind, "synthetic")) => (kind, Shown::Synthetic),
            Some(_) => return None,
        };
        let dumps = command.split(' ').filter(|w| matches!(*w, "DUMP" | "BEFORE")).count();
        (dumps == 1).then_some(())?;
        Says::Field(Field { command: command.into(), path: path.into(), kind: kind.into(), shown })
    };
    Some(Row { item: item.into(), says })
}

/// Splits a path into keys, `[]` and `[key=value]`.
fn parts(path: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        let len =
            if rest.starts_with('[') { rest.find(']').map_or(rest.len(), |n| n + 1) } else { rest.find(['.', '[']).unwrap_or(rest.len()) };
        let (part, after) = rest.split_at(len);
        out.push(part);
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    out
}

/// Returns every value of `data` at `path` that is not `null`.
pub fn find<'a>(data: &'a Value, path: &str) -> Result<Vec<&'a Value>, String> {
    let mut at = vec![data];
    for part in parts(path) {
        let mut next = Vec::new();
        for value in at {
            if let Some(filter) = part.strip_prefix('[') {
                let list = value.as_array().ok_or_else(|| format!("{path}: {part} of a value that is not a list"))?;
                match filter.trim_end_matches(']').split_once('=') {
                    None => next.extend(list),
                    Some((key, wanted)) => {
                        for row in list {
                            let is = row.get(key).ok_or_else(|| format!("{path}: a row without {key}"))?;
                            if is.as_str().map_or_else(|| is.to_string(), ToString::to_string) == wanted {
                                next.push(row);
                            }
                        }
                    }
                }
            } else {
                next.push(value.get(part).ok_or_else(|| format!("{path}: no field {part}"))?);
            }
        }
        next.retain(|v| !v.is_null());
        at = next;
    }
    Ok(at)
}

/// Returns the state of `data` at `path`. Fails if no such field exists, or if its type is not `kind`.
pub fn state(data: &Value, path: &str, kind: &str) -> Result<State, String> {
    let mut best = State::Absent;
    for value in find(data, path)? {
        let hex = value.as_str().and_then(|s| u64::from_str_radix(s.strip_prefix("0x")?, 16).ok());
        let (fits, zero) = match kind {
            "address" | "token" => (hex.is_some(), hex == Some(0)),
            "number" => (value.is_number(), value.as_f64() == Some(0.0)),
            "offset" => (value.is_number(), false),
            "bool" => (value.is_boolean(), *value == false),
            "text" => (value.is_string() && hex.is_none(), *value == "" || *value == "none"),
            "list" => (value.is_array(), *value == Value::Array(Vec::new())),
            "object" => (value.is_object(), false),
            _ => (false, false),
        };
        if !fits {
            return Err(format!("{path} is {value}, no {kind}"));
        }
        best = best.max(if zero { State::Zero } else { State::Value });
    }
    Ok(best)
}
