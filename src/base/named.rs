//! Enums whose values have names. A name is the same on the command line, in JSON and in tables.
//!
//! The `strum` crate is not used, because here aliases, suggestions, help and schemas come from one declaration.

use std::fmt;

/// Declares an enum whose values have names.
///
/// ```text
/// named_enum! {
///     /// Generation or kind of a segment.
///     pub enum Generation {
///         /// Youngest.
///         Gen0 = "gen0" | "0",
///         …
///     }
/// }
/// ```
///
/// gives the enum and
///
/// * `ALL`, every value in the order of the declaration, `NAMES`, their names in the same order, `name()`, `Display` and [`Word`](super::Word);
/// * `FromStr`: accepts a name or one of the aliases after `|` in any case, or fails with [`UnknownName`] and a suggestion;
/// * `Serialize`, `Deserialize` and `JsonSchema`: the name as a string, the schema with the comment of each value;
/// * `clap::ValueEnum` (feature `cli`) with the aliases, and the comments as help. Arguments should set `ignore_case`.
///
/// Numbers in the target's memory are declared as *open* enums if a later runtime may add values:
///
/// ```text
/// named_enum! {
///     /// Why an allocation failed.
///     pub open enum OomReason(i32) {
///         /// The GC could not commit memory.
///         CantCommit = "cant-commit",
///         …
///     }
/// }
/// ```
///
/// Open enums have one more value, `Unknown(n)`, printed and serialized as `unknown-77`, so that an unknown number is neither lost nor mistaken
/// for another. Open enums occur only in answers, so they have no `ALL`, `FromStr` or `ValueEnum`. The `name()` of `Unknown` is `unknown`.
macro_rules! named_enum {
    (
        $(#[$meta:meta])*
        pub enum $Enum:ident {
            $( $(#[$about:meta])* $Value:ident = $name:literal $(| $alias:literal)* ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
        pub enum $Enum {
            $(
                $(#[$about])*
                #[serde(rename = $name)]
                #[cfg_attr(feature = "cli", value(name = $name $(, alias = $alias)*))]
                $Value,
            )+
        }

        impl $Enum {
            /// Every value, in the order in which they are shown.
            pub const ALL: [$Enum; $Enum::NAMES.len()] = [$($Enum::$Value),+];

            /// The names of all values, in the same order.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Name, as on the command line and in JSON.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Enum::$Value => $name,)+
                }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        impl $crate::base::Word for $Enum {
            fn word(self) -> Option<std::borrow::Cow<'static, str>> {
                self.name().word()
            }
        }

        impl std::str::FromStr for $Enum {
            type Err = $crate::base::UnknownName;

            fn from_str(text: &str) -> Result<$Enum, $crate::base::UnknownName> {
                let spellings = [$(($name, $Enum::$Value), $(($alias, $Enum::$Value),)*)+];
                $crate::base::named::find(text, &spellings, $Enum::NAMES)
            }
        }
    };

    (
        $(#[$meta:meta])*
        pub open enum $Enum:ident($Number:ty) {
            $( $(#[$about:meta])* $Value:ident = $name:literal ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
        pub enum $Enum {
            $(
                $(#[$about])*
                #[serde(rename = $name)]
                $Value,
            )+
            /// A number that this version of gcdump has no name for: `unknown-77`.
            #[serde(untagged, serialize_with = "crate::base::named::serialize_unknown")]
            Unknown(#[cfg_attr(feature = "cli", schemars(schema_with = "crate::base::named::unknown_schema"))] $Number),
        }

        impl $Enum {
            /// Name, as in JSON; `unknown` for unknown numbers.
            pub const fn name(self) -> &'static str {
                match self {
                    $($Enum::$Value => $name,)+
                    $Enum::Unknown(_) => "unknown",
                }
            }
        }

        impl std::fmt::Display for $Enum {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $Enum::Unknown(n) => f.pad(&format!("unknown-{n}")),
                    known => f.pad(known.name()),
                }
            }
        }

        impl $crate::base::Word for $Enum {
            fn word(self) -> Option<std::borrow::Cow<'static, str>> {
                match self {
                    $Enum::Unknown(_) => Some(std::borrow::Cow::Owned(self.to_string())),
                    known => known.name().word(),
                }
            }
        }
    };
}

pub(crate) use named_enum;

/// The error for a name that a `named_enum!` does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    /// The name that was given.
    pub given: String,
    /// The names that the enum has.
    pub known: &'static [&'static str],
}

impl UnknownName {
    /// The known name that was probably meant.
    pub fn suggestion(&self) -> Option<&'static str> {
        let given = self.given.to_ascii_lowercase();
        // A third of the letters may be wrong: one in "lho", four in "strong-handel".
        nearest(&given, self.known.iter().copied(), given.chars().count() / 3)
    }
}

/// The text `; did you mean NAME?` with the nearest of `names`; empty if none is near. A third of the letters of `given`, but at least one,
/// may be wrong.
pub(crate) fn did_you_mean<'n>(given: &str, names: impl Iterator<Item = &'n str>) -> String {
    let most = given.chars().count().div_euclid(3).max(1);
    nearest(given, names, most).map(|near| format!("; did you mean {near}?")).unwrap_or_default()
}

/// The one of `names` that is nearest to `given`, at an edit distance of at most `most`. Of equally near names, the first.
pub(crate) fn nearest<'n>(given: &str, names: impl Iterator<Item = &'n str>, most: usize) -> Option<&'n str> {
    let near = names.map(|name| (strsim::osa_distance(given, name), name)).min_by_key(|(distance, _)| *distance);
    near.filter(|(distance, _)| *distance <= most).map(|(_, name)| name)
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not known", self.given)?;
        if let Some(name) = self.suggestion() {
            write!(f, "; did you mean {name:?}?")?;
        }
        write!(f, " (known: {})", self.known.join(", "))
    }
}

impl std::error::Error for UnknownName {}

/// The value with the name or alias `text`, in any case.
pub(crate) fn find<T: Copy>(text: &str, spellings: &[(&str, T)], known: &'static [&'static str]) -> Result<T, UnknownName> {
    let found = spellings.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    found.map(|(_, value)| *value).ok_or_else(|| UnknownName { given: text.into(), known })
}

/// Serializes the number in the `Unknown` value of an open enum.
pub(crate) fn serialize_unknown<S: serde::Serializer>(number: &impl fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("unknown-{number}"))
}

/// Schema for the output of [`serialize_unknown`].
#[cfg(feature = "cli")]
pub(crate) fn unknown_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "pattern": "^unknown--?[0-9]+$" })
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    named_enum! {
        /// Where fruit grows.
        #[derive(Default)]
        pub enum Place {
            /// On a tree.
            #[default]
            Tree = "tree",
            /// On a bush.
            LowBush = "low-bush" | "LowBush" | "1",
        }
    }

    named_enum! {
        /// Why the fruit fell.
        pub open enum Reason(i32) {
            /// The fruit was ripe.
            Ripe = "ripe",
            /// There was a storm.
            Storm = "storm",
        }
    }

    #[test]
    fn names_round_trip() {
        assert_eq!((Place::ALL, Place::NAMES), ([Place::Tree, Place::LowBush], ["tree", "low-bush"].as_slice()));
        assert_eq!(Place::ALL.map(|p| p.name().parse()), [Ok(Place::Tree), Ok(Place::LowBush)]);
        assert_eq!(["LOW-bush", "lowbush", "1"].map(str::parse), [const { Ok(Place::LowBush) }; 3]);
        assert_eq!((format!("{:>6}|", Place::Tree), Place::default()), ("  tree|".to_string(), Place::Tree));
        assert_eq!(to_value(Place::ALL).unwrap(), json!(["tree", "low-bush"]));
    }

    #[test]
    fn near_misses_get_a_suggestion() {
        let wrong = |text: &str| text.parse::<Place>().unwrap_err();
        assert_eq!(wrong("Tere").suggestion(), Some("tree"));
        assert_eq!(wrong("low_bush").to_string(), r#""low_bush" is not known; did you mean "low-bush"? (known: tree, low-bush)"#);
        assert_eq!(wrong("ground").to_string(), r#""ground" is not known (known: tree, low-bush)"#);
        assert_eq!(wrong("").suggestion(), None);
    }

    #[cfg(feature = "cli")]
    #[test]
    fn the_schema_describes_each_name() {
        let schema = schemars::schema_for!(Place);
        assert_eq!(schema.get("description"), Some(&json!("Where fruit grows.")));
        let values = json!([
            { "description": "On a tree.", "type": "string", "const": "tree" },
            { "description": "On a bush.", "type": "string", "const": "low-bush" },
        ]);
        assert_eq!(schema.get("oneOf"), Some(&values));
    }

    #[test]
    fn unknown_numbers_stay_visible() {
        let reasons = [Reason::Ripe, Reason::Storm, Reason::Unknown(77), Reason::Unknown(-1)];
        let names = ["ripe", "storm", "unknown-77", "unknown--1"];
        assert_eq!((reasons.map(|r| r.to_string()), to_value(reasons).unwrap()), (names.map(String::from), json!(names)));
        let schema = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Reason>();
        let validator = jsonschema::validator_for(schema.as_value()).unwrap();
        assert!(names.iter().all(|n| validator.is_valid(&json!(n))), "{schema:?}");
        assert!(!validator.is_valid(&json!("wind")) && !validator.is_valid(&json!(77)));
    }

    #[cfg(feature = "cli")]
    #[test]
    fn the_command_line_knows_names_aliases_and_comments() {
        use clap::ValueEnum;
        let values = Place::ALL.map(|p| p.to_possible_value().unwrap());
        assert!(values[1].matches("low-bush", false) && values[1].matches("lowbush", true) && values[1].matches("1", false));
        assert_eq!(values.map(|v| v.get_help().unwrap().to_string()), ["On a tree", "On a bush"]);
    }
}
