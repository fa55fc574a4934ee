//! The answer of `env`: arguments, environment variables, and properties of the runtime.

use crate::analysis::{EnvReport, VariableModel};
use crate::output::columns::{Columns, columns};
use crate::output::report::{Report, Sections};
use crate::output::table::Table;

fn variable_columns<'r>() -> Columns<'r, VariableModel> {
    columns![VariableModel, text(name, 30).keep(9), text(value, 80).keep(8)]
}

impl Report for EnvReport {
    fn describe<'r>(&'r self, to: &mut Sections<'r>) {
        to.itself("env", self);
        let line = self.command_line.iter().map(|line| ("command line", line.clone()));
        let source = self.source.iter().map(|source| ("found", source.to_string()));
        to.facts(line.chain(source).collect::<Vec<_>>());
        let environment = self.environment.iter().flatten();
        to.titled("Environment", self.environment.is_some(), Table::records("variable", environment, variable_columns()).csv(true));
        let properties = self.properties.iter().flatten();
        to.titled("Properties of the runtime", self.properties.is_some(), Table::records("property", properties, variable_columns()));
    }
}
