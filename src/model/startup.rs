use serde::Serialize;

use crate::base::named_enum;

named_enum! {
    /// Where the arguments and the environment of a process were found.
    pub enum StartupSource {
        /// On the first stack, where Linux puts them: what the program was started with.
        InitialStack = "initial-stack",
        /// In the parameters that Windows keeps of the process.
        ProcessParameters = "process-parameters",
    }
}

named_enum! {
    /// Where a setting was found.
    pub enum SettingSource {
        /// The environment of the process.
        Environment = "environment",
        /// The properties that the host gave to the runtime: `runtimeconfig.json`, as `AppContext` has it.
        RuntimeConfig = "runtimeconfig",
    }
}

/// `env`: what the process was started with.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct EnvReport {
    /// Where it was found; `null` if the dump does not have it.
    pub source: Option<StartupSource>,
    /// The arguments, the name of the program first; `null` on Windows, where the program cuts the line itself.
    pub arguments: Option<Vec<String>>,
    /// The command line; on Linux, the arguments as a shell takes them.
    pub command_line: Option<String>,
    /// The environment, in its own order.
    pub environment: Option<Vec<VariableModel>>,
    /// Properties of the runtime, as `AppContext` has them, by name; `null` if the dump does not have them.
    pub properties: Option<Vec<VariableModel>>,
}

/// A variable of the environment, or a property.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct VariableModel {
    /// Its name.
    pub name: String,
    /// Its value; `(hidden)` where contents are not shown.
    pub value: String,
}

/// A setting of the runtime that the program or its environment makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct SettingModel {
    /// Its name, as it is there.
    pub name: String,
    /// Its value; `(hidden)` where contents are not shown. Numbers of the environment are hexadecimal.
    pub value: String,
    /// Where it was found.
    pub source: SettingSource,
}

impl SettingModel {
    /// `DOTNET_gcServer=1`.
    pub(crate) fn words(&self) -> String {
        format!("{}={}", self.name, self.value)
    }
}
