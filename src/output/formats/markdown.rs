//! Markdown for GitHub and GitLab: job summaries, comments, issues.

use std::io;

use super::{Out, Whole, Writer};
use crate::output::layout::{Layout, title};
use crate::output::report::Section;
use crate::output::sanitize;
use crate::output::columns::{Align, Readers, Row};
use crate::output::table::Heading;

pub(super) struct Markdown;

/// Escapes characters that Markdown or HTML would interpret.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in sanitize(text).chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

/// Formats `text` as code, between more backticks than it contains.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest.saturating_add(1));
    format!("{ticks} {} {ticks}", sanitize(text))
}

impl Markdown {
    fn line(out: &mut Out<'_>, text: &str) -> io::Result<()> {
        // Two spaces at the end force a line break.
        writeln!(out.to, "{}  ", escaped(text.trim_start()))
    }
}

impl Writer for Markdown {
    fn section(&self, out: &mut Out<'_>, section: Section<'_>) -> io::Result<()> {
        match section {
            Section::Line(text) => Markdown::line(out, &text),
            Section::Fitting(long, _) => Markdown::line(out, &long),
            Section::Title(text) => writeln!(out.to, "\n### {}\n", escaped(&text)),
            Section::Chapter(chapter) => writeln!(out.to, "\n## {}\n", escaped(chapter.title)),
            Section::Alarm(text) => writeln!(out.to, "\n**{}**\n", escaped(&text)),
            Section::Finding(f) => writeln!(out.to, "* **{}**: {}  \n  {}", f.severity, escaped(f.text), code(f.command)),
            Section::Lines(lines) => {
                for line in lines {
                    Markdown::line(out, &line)?;
                }
                Ok(())
            }
            Section::Gap => writeln!(out.to),
            Section::Facts(facts) => {
                for (name, value) in facts {
                    writeln!(out.to, "* **{}**: {}", escaped(name), escaped(&value))?;
                }
                Ok(())
            }
            Section::Table(table) if table.heading.shown => {
                self.list(out, &table.heading)?;
                out.rows(self, &table)?;
                writeln!(out.to)
            }
            Section::Table(_) | Section::Contents(..) | Section::Tiles(_) | Section::Picture(_) | Section::Legend(_) => Ok(()),
        }
    }

    fn list(&self, out: &mut Out<'_>, heading: &Heading) -> io::Result<()> {
        let titles: Vec<String> = heading.columns(Readers::People).map(|(_, c)| escaped(&title(c))).collect();
        let rules: Vec<&str> = heading.columns(Readers::People).map(|(_, c)| if c.align == Align::Left { "---" } else { "---:" }).collect();
        writeln!(out.to, "\n| {} |\n| {} |", titles.join(" | "), rules.join(" | "))
    }

    fn row(&self, heading: &Heading, row: &dyn Row, _number: u64, _layout: &Layout, to: &mut Vec<u8>) -> io::Result<()> {
        use io::Write;
        for (index, _) in heading.columns(Readers::People) {
            write!(to, "| {} ", escaped(&row.cell(index).human().replace('\n', " ")))?;
        }
        to.extend_from_slice(b"|\n");
        Ok(())
    }

    fn end(&self, _out: &mut Out<'_>, _answer: &dyn Whole) -> io::Result<()> {
        Ok(())
    }
}
