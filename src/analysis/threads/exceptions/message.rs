//! Text that exceptions of the library append to the stored message in `Exception.Message`.
//!
//! Source: `ArgumentException.cs`, `ArgumentOutOfRangeException.cs`, `CultureNotFoundException.cs`, `ObjectDisposedException.cs`.

use std::sync::{Mutex, PoisonError};

use crate::base::hash::Map;
use crate::base::{Addr, Os};
use crate::clr::exceptions::Exceptions;
use crate::clr::values::{ValueLimits, Values};
use crate::model::ValueKind;
use crate::session::{Namer, Runtime};

/// The base types of an exception that append a field to the message: method tables.
#[derive(Clone, Copy, Debug, Default)]
struct Bases {
    argument: Option<Addr>,
    range: Option<Addr>,
    culture: Option<Addr>,
    disposed: Option<Addr>,
}

/// Completes messages of exceptions.
#[derive(Debug)]
pub(super) struct Messages {
    newline: &'static str,
    bases: Mutex<Map<Addr, Bases>>,
}

impl Messages {
    pub(super) fn new(runtime: &Runtime) -> Messages {
        let newline = if runtime.file().facts.os == Os::Windows { "\r\n" } else { "\n" };
        Messages { newline, bases: Mutex::default() }
    }

    /// Appends to `message` what the exception of the type at `method_table` appends. A value whose text depends on code of the program is left out.
    pub(super) fn complete(&self, namer: &Namer, (exception, method_table): (Addr, Addr), message: &mut String) {
        let bases = self.bases(namer, method_table);
        let text = |mt: Option<Addr>, field: &str| namer.string_field(exception, mt?, field).filter(|text| !text.is_empty());
        if let Some(parameter) = text(bases.argument, "_paramName") {
            message.push_str(&format!(" (Parameter '{parameter}')"));
        }
        let lines = [
            bases.range.and_then(|mt| actual_value(namer, exception, mt)).map(|value| format!("Actual value was {value}.")),
            text(bases.culture, "_invalidCultureName").map(|name| format!("{name} is an invalid culture identifier.")),
            text(bases.disposed, "_objectName").map(|name| format!("Object name: '{name}'.")),
        ];
        append(message, self.newline, lines);
    }

    fn bases(&self, namer: &Namer, method_table: Addr) -> Bases {
        let mut known = self.bases.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(method_table).or_insert_with(|| {
            let of = |name| Exceptions::base_named(namer.names()?, method_table, name);
            Bases {
                argument: of("System.ArgumentException"),
                range: of("System.ArgumentOutOfRangeException"),
                culture: of("System.Globalization.CultureNotFoundException"),
                disposed: of("System.ObjectDisposedException"),
            }
        })
    }
}

/// Appends those of `lines` that exist, each after a line break.
fn append(message: &mut String, newline: &str, lines: [Option<String>; 3]) {
    for line in lines.into_iter().flatten() {
        message.push_str(newline);
        message.push_str(&line);
    }
}

/// The text of the string, integer or `Boolean` in `ArgumentOutOfRangeException._actualValue`. `method_table` is that of this class.
fn actual_value(namer: &Namer, exception: Addr, method_table: Addr) -> Option<String> {
    let types = namer.types().ok()?;
    let object = types.memory().ptr(exception.plus(types.own_offset(method_table, "_actualValue")?)).ok().filter(|at| !at.is_null())?;
    let info = types.names().method_tables().read(types.objects().method_table(object)?).ok()?;
    if info.is_string {
        return namer.string_field(exception, method_table, "_actualValue");
    }
    let value = Values::new(types, ValueLimits::default()).boxed(&info, object)?;
    match value.kind {
        ValueKind::Int => Some(value.text),
        ValueKind::Bool => value.value.as_bool().map(|set| if set { "True".into() } else { "False".into() }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::append;

    #[test]
    fn each_further_line_follows_a_line_break() {
        let with = |newline, lines| {
            let mut message = "m (Parameter 'p')".to_string();
            append(&mut message, newline, lines);
            message
        };
        assert_eq!(with("\n", [None, None, None]), "m (Parameter 'p')");
        assert_eq!(with("\r\n", [Some("a".into()), None, Some("b".into())]), "m (Parameter 'p')\r\na\r\nb");
    }
}
