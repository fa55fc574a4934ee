//! The answer of `modules`: modules, needed files, identities, and downloads.

use crate::analysis::{FetchModel, FetchOutcome, ModuleKind, ModuleModel, ModuleNeed, ModulesReport};
use crate::output::Paging;
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;
use crate::output::{bytes, plural};

/// Formats the uses of a needed file, and whether it was not found: `names: NOT FOUND`.
fn need(m: &ModuleModel) -> String {
    let what: Vec<&str> = m.needed_for.iter().copied().map(ModuleNeed::name).collect();
    match m.found {
        _ if what.is_empty() => String::new(),
        Some(_) => what.join(", "),
        None => format!("{}: NOT FOUND", what.join(", ")),
    }
}

fn module_columns<'r>() -> Columns<'r, ModuleModel> {
    columns![
        ModuleModel,
        text(name, 36).name().keep(10),
        word(kind, 8),
        text(version, 12).whole().keep(7),
        address(base).keep(4),
        bytes(size).keep(6),
        text("needed_for", 18, need).keep(9),
        word(found, 12).keep(8),
        text("identity", 36, identity).keep(3),
        address(load_context).keep(2),
        text("collectible", 11, |m| m.collectible.map(|c| if c { "yes" } else { "no" })).keep(2),
        address(module).keep(3),
        count(missing_pages).extra(),
        text(path, 40).path().keep(1),
        text(file, 40).path().keep(1)
    ]
}

/// Returns the identity of the file: the build ID, the module version id (MVID) of an assembly, or time stamp and size.
fn identity(m: &ModuleModel) -> String {
    let stamp = || Some(format!("{:08x}{:x}", m.timestamp?, m.image_size?));
    m.build_id.clone().or_else(|| m.mvid.clone()).or_else(stamp).unwrap_or_default()
}

fn fetch_columns<'r>() -> Columns<'r, FetchModel> {
    columns![
        FetchModel,
        text(name, 36).name().keep(10),
        word(outcome, 9).keep(9),
        bytes(bytes).keep(7),
        text(source, 40).path(),
        text(identity, 40).keep(2)
    ]
}

impl Report for ModulesReport {
    fn page(&mut self, to: &mut Paging) {
        self.shown = to.list("modules", &mut self.modules, self.total, &module_columns());
    }

    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.table(Table::records("module", &self.modules, module_columns()).csv(true).shown(!self.modules.is_empty()));
        to.more(self.shown, self.total, "module");
        to.gap_if(!self.modules.is_empty());
        let of = |kind: ModuleKind| crate::base::len64(self.modules.iter().filter(|m| m.kind == kind).count());
        let assemblies = of(ModuleKind::Assembly).saturating_add(of(ModuleKind::Dynamic));
        let listed = if self.shown.is_none() { format!(", {assemblies} of them managed") } else { String::new() };
        to.line(format!("{}{listed}", plural(self.total, "module")));
        if self.needed == 0 {
            to.line("no module file is needed: the dump has everything that answers read from modules");
        } else {
            let (files, found) = (plural(self.needed, "file"), self.needed.saturating_sub(self.needed_not_found));
            to.line(format!("{files} needed for memory that the dump does not have, {found} of them found"));
        }
        if self.needed_not_found > 0 && self.fetched.is_none() {
            to.line("gcdump modules --fetch downloads the others; gcdump help files says where gcdump looks for files");
        }
        let Some(fetched) = &self.fetched else { return };
        to.gap_if(!fetched.is_empty());
        to.titled("Fetched:", !fetched.is_empty(), Table::records("fetch", fetched, fetch_columns()));
        for file in fetched.iter().filter(|f| f.outcome != FetchOutcome::Fetched) {
            for reason in &file.reasons {
                to.line(format!("{}: {reason}", file.name));
            }
        }
        let done = fetched.iter().filter(|f| f.outcome == FetchOutcome::Fetched);
        let (count, total) = (crate::base::len64(done.clone().count()), crate::base::total(done.filter_map(|f| f.bytes)));
        to.line(format!("{} fetched, {}", plural(count, "file"), bytes(total)));
    }
}
