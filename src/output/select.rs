//! `--select`: the columns that lists are shown with.

use std::io;

use super::formats::Format;
use super::table::{Heading, Readers};

/// Whether `name` is that of a column: `Object-Type` is `object_type`.
pub(super) fn is(column: &str, name: &str) -> bool {
    let plain = |c: char| if c == '-' { '_' } else { c.to_ascii_lowercase() };
    column.chars().map(plain).eq(name.trim().chars().map(plain))
}

/// Whether lists have columns in this format.
pub(super) fn has_columns(format: Format) -> bool {
    matches!(format, Format::Table | Format::Csv | Format::Markdown)
}

/// Checks that each of `names` is a column of one of these lists.
///
/// # Errors
/// [`io::ErrorKind::Unsupported`] if one is not, or if the format has no columns.
pub(super) fn check<'h>(names: &[String], format: Format, lists: impl Iterator<Item = &'h Heading>) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let refuse = |text: String| Err(io::Error::new(io::ErrorKind::Unsupported, text));
    if !has_columns(format) {
        return refuse(format!("--select chooses columns of tables, CSV and Markdown; {} has whole answers", format.name()));
    }
    let mut columns: Vec<&str> = Vec::new();
    for column in lists.filter(|l| l.shown || l.csv).flat_map(|l| &l.columns).filter(|c| c.readers != Readers::Links) {
        if !columns.contains(&&*column.name) {
            columns.push(&column.name);
        }
    }
    match names.iter().find(|name| !columns.iter().any(|column| is(column, name))) {
        Some(name) if columns.is_empty() => refuse(format!("--select {name}: the answer has no list")),
        Some(name) => refuse(format!("--select: no list has a column {name}; the columns are {}", columns.join(", "))),
        None => Ok(()),
    }
}

/// Leaves the columns with these names. A list that has none of them keeps its columns.
pub(super) fn only(heading: &mut Heading, names: &[String]) {
    let chosen = |column: &str| names.iter().any(|name| is(column, name));
    if !heading.columns.iter().any(|c| c.readers != Readers::Links && chosen(&c.name)) {
        return;
    }
    // A column that formats show in different forms is there once for each.
    let names: Vec<_> = heading.columns.iter().map(|c| c.name.clone()).collect();
    for column in heading.columns.iter_mut().filter(|c| c.readers != Readers::Links) {
        let forms = names.iter().filter(|name| **name == column.name).count();
        column.readers = match chosen(&column.name) {
            true if forms > 1 => column.readers,
            true => Readers::All,
            // What is left out still says what `$1` refers to.
            false => Readers::Links,
        };
    }
}
