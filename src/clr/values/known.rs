//! CoreLib structures that are shown as a single value. The fields of these structures are looked up by name. If a field was renamed, all
//! fields are shown instead of the value.

use super::decode::{Decoded, Values};
use super::plain::{self, Text};
use crate::base::{Addr, CorElementType};
use crate::clr::fields::Field;
use crate::model::ValueKind;

impl Values {
    /// The value of a structure that has its own text form. `start` is one word before the data of the structure.
    pub(super) fn known(&self, name: &str, list: &[Field], start: Addr) -> Option<Decoded> {
        let at = |field: &str| list.iter().find(|f| f.name == field).map(|f| start.plus(f.offset));
        let u64_at = |field: &str| self.memory.u64(at(field)?).ok();
        let u32_at = |field: &str| self.memory.u32(at(field)?).ok();
        let i32_at = |field: &str| self.memory.i32(at(field)?).ok();
        let (kind, text) = match name {
            "System.DateTime" => (ValueKind::DateTime, plain::date_time(u64_at("_dateData")?)),
            "System.DateTimeOffset" => {
                let place = at("_dateTime")?;
                let minutes = at("_offsetMinutes").and_then(|a| match self.width(list, "_offsetMinutes") {
                    Some(CorElementType::I2) => self.memory.u16(a).ok().map(|m| i32::from(m.cast_signed())),
                    _ => self.memory.i32(a).ok(),
                });
                (ValueKind::DateTimeOffset, plain::date_time_offset(self.memory.u64(place).ok()?, minutes?))
            }
            "System.TimeSpan" => (ValueKind::TimeSpan, Some(plain::time_span(u64_at("_ticks")?.cast_signed()))),
            "System.DateOnly" => (ValueKind::Date, plain::date_only(u32_at("_dayNumber")?.into())),
            "System.TimeOnly" => (ValueKind::Time, plain::time_only(u64_at("_ticks")?)),
            "System.Decimal" => (ValueKind::Decimal, plain::decimal(u32_at("_flags")?, u32_at("_hi32")?, u64_at("_lo64")?)),
            "System.Guid" => {
                let bytes = self.memory.bytes(at("_a")?, 16).ok()?;
                (ValueKind::Guid, Some(plain::guid(*bytes.first_chunk()?)))
            }
            "System.Index" => {
                let n = i32_at("_value")?;
                // An index from the end is stored as its bitwise complement.
                (ValueKind::Index, Some(Text::same(if n < 0 { format!("^{}", !n) } else { n.to_string() })))
            }
            _ => return None,
        };
        Some(match text {
            Some(text) => Decoded::new(kind, text),
            None => Decoded::invalid(format!("<no valid {name}>")),
        })
    }

    fn width(&self, list: &[Field], name: &str) -> Option<CorElementType> {
        list.iter().find(|f| f.name == name).map(|f| f.element)
    }
}
