//! Objects by type, in the reports of `whatif`, `unreachable` and `simulate`.

use serde::Serialize;

use crate::analysis::{ObjectsByType, TypeBytes};
use crate::model::Sum;
use crate::output::columns::{Columns, columns};
use crate::output::report::Sections;
use crate::output::{bytes, plural};

pub(super) fn objects(n: u64, b: u64) -> String {
    let (human, exact) = (bytes(b), plural(b, "byte"));
    if human == exact { format!("{}, {exact}", plural(n, "object")) } else { format!("{}, {human} ({exact})", plural(n, "object")) }
}

pub(super) fn sum(s: &Sum) -> String {
    objects(s.count, s.bytes)
}

/// Totals of a list by type.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Sums {
    pub(super) count: u64,
    pub(super) bytes: u64,
}

impl From<&ObjectsByType> for Sums {
    fn from(by: &ObjectsByType) -> Sums {
        Sums { count: by.count, bytes: by.bytes }
    }
}

/// Reports that `--top` cut a list.
pub(super) fn cut(to: &mut Sections<'_>, by: &ObjectsByType) {
    let listed = by.types.iter().fold(0u64, |n, t| n.saturating_add(t.count));
    to.more_rows((listed < by.count).then_some(listed), "types");
}

pub(super) fn type_columns<'r>() -> Columns<'r, TypeBytes> {
    columns![TypeBytes, count(count), bytes(bytes), address(method_table).extra(), names(type_name, 60)]
}
