//! A flag that makes a large answer smaller, such as `--merge` of stacks.

use std::ffi::OsString;

/// The flag, and the options that it excludes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fold {
    pub(super) flag: OsString,
    /// Names of the options without the dashes.
    pub(super) excludes: Vec<String>,
}

impl Fold {
    /// Whether the flag can be combined with the option `name`.
    pub(super) fn allows(&self, name: &str) -> bool {
        !self.excludes.iter().any(|excluded| excluded == name)
    }

    /// Returns `options` with the flag, and without those that it excludes.
    pub(super) fn over(self, options: &[OsString]) -> Vec<OsString> {
        let name = |option: &OsString| -> Option<String> {
            let text = option.to_str()?.strip_prefix("--")?;
            Some(text.split_once('=').map_or(text, |(name, _)| name).to_owned())
        };
        let mut out: Vec<OsString> = options.iter().filter(|option| name(option).is_none_or(|name| self.allows(&name))).cloned().collect();
        out.push(self.flag);
        out
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::{arguments::Arguments, tools};

    fn folded(values: &str) -> Option<String> {
        let values: Value = serde_json::from_str(values).unwrap();
        let line = Arguments::of(tools::find("stacks").unwrap()).line(values.as_object().unwrap()).unwrap().folded()?;
        Some(line.words("stacks", &[]).join(std::ffi::OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn large_stacks_are_merged() {
        let line = folded(r#"{"thread":[1],"arguments":true,"waits":true,"top":3}"#);
        assert_eq!(line.as_deref(), Some("gcdump stacks --format=json --thread=1 --waits --merge --"));
        assert_eq!((folded("{}"), folded(r#"{"merge":true,"thread":[1]}"#)), (None, None));
    }
}
