//! The report of `env`.

use serde::Serialize;

use crate::base::named_enum;
use crate::model::StartupSource;

named_enum! {
    /// Sources of a setting.
    pub enum SettingSource {
        /// The environment of the process.
        Environment = "environment",
        /// The properties that the host passed to the runtime: `runtimeconfig.json`, as in `AppContext`.
        RuntimeConfig = "runtimeconfig",
    }
}

/// `env`: arguments, environment and runtime properties of the process.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct EnvReport {
    /// Source of the arguments and the environment; `null` if they are not in the dump.
    pub source: Option<StartupSource>,
    /// The arguments, starting with the name of the program; `null` on Windows, where the program itself splits the command line.
    pub arguments: Option<Vec<String>>,
    /// The command line; on Linux, the arguments quoted for a shell.
    pub command_line: Option<String>,
    /// The environment variables, in their original order; `null` if they are not in the dump, or if contents are not shown.
    pub environment: Option<Vec<VariableModel>>,
    /// Properties of the runtime, as in `AppContext`, by name; `null` if they are not in the dump.
    pub properties: Option<Vec<VariableModel>>,
}

/// An environment variable, or a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct VariableModel {
    /// Name.
    pub name: String,
    /// Value; `(hidden)` if contents are not shown.
    pub value: String,
}

/// A setting of the runtime by the program or its environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SettingModel {
    /// Name, as in its source.
    pub name: String,
    /// Value; `(hidden)` if contents are not shown. Numbers in the environment are hexadecimal.
    pub value: String,
    /// Source of the setting.
    pub source: SettingSource,
}

impl SettingModel {
    /// Text such as `DOTNET_gcServer=1`.
    pub(crate) fn words(&self) -> String {
        format!("{}={}", self.name, self.value)
    }
}
