//! `--select`: the columns that lists are shown with.

use std::io;

use super::columns::{Column, Readers, add_names};
use super::formats::Format;
use super::table::Heading;

/// Whether lists have columns in this format.
pub(super) fn has_columns(format: Format) -> bool {
    matches!(format, Format::Table | Format::Csv | Format::Markdown)
}

/// Checks that each of `names` is a column of one of these lists.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] if a name is not a column, or if the format has no columns.
pub(super) fn check<'h>(names: &[String], format: Format, lists: impl Iterator<Item = &'h Heading>) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let refuse = |text: String| Err(io::Error::new(io::ErrorKind::Unsupported, text));
    if !has_columns(format) {
        return refuse(format!("--select chooses columns of tables, CSV and Markdown; {} has whole answers", format.name()));
    }
    let all: Vec<&Column> = lists.filter(|l| l.shown || l.csv).flat_map(|l| &l.columns).filter(|c| c.is_shown()).collect();
    let mut columns = Vec::new();
    add_names(all.iter().copied(), &mut columns);
    match names.iter().find(|name| !all.iter().any(|column| column.is_named(name.trim()))) {
        Some(name) if columns.is_empty() => refuse(format!("--select {name}: the answer has no list")),
        Some(name) => refuse(format!("--select: no list has a column {name}; the columns are {}", columns.join(", "))),
        None => Ok(()),
    }
}

/// Keeps only the columns with these names. A list without any of them is unchanged.
pub(super) fn only(heading: &mut Heading, names: &[String]) {
    let chosen = |column: &Column| names.iter().any(|name| column.is_named(name.trim()));
    if !heading.columns.iter().any(|c| c.is_shown() && chosen(c)) {
        return;
    }
    // A column that has different forms for different formats occurs once for each form. Each form keeps its formats.
    let names: Vec<_> = heading.columns.iter().map(|c| c.name.clone()).collect();
    for column in heading.columns.iter_mut().filter(|c| c.is_shown()) {
        let forms = names.iter().filter(|name| **name == column.name).count();
        column.readers = match chosen(column) {
            true if forms > 1 => column.readers,
            true => Readers::All,
            // A hidden column may still contain the address to which `$1` refers.
            false => Readers::Links,
        };
    }
}
