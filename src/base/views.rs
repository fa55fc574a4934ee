//! Enums of the views of a report, which JSON shows as fields that are `null` unless their view was requested.

/// Declares an enum of the views of a report, and a struct of the fields of all views.
///
/// ```text
/// views! {
///     /// The rows that `roots` lists.
///     pub enum RootsRows as RootsFields {
///         /// The roots.
///         Listed {
///             /// The roots, ordered by kind and address.
///             roots: Vec<RootModel>,
///         },
///         /// The roots by object type.
///         ByType {
///             /// Types, most frequent first.
///             types: Vec<RootType>,
///         },
///     }
/// }
/// ```
///
/// gives `RootsRows`, its `Serialize` and `JsonSchema`, and `fields()`, which returns references to the fields of the enum's value as a
/// `RootsFields` in which those of the other views are `None`. JSON has all of them, in the order of their declaration. The report has the enum as a
/// field with `#[serde(flatten)]`; if JSON has other fields in between, the report implements `Serialize` by another struct ([`written_as!`](super::written_as)).
macro_rules! views {
    (
        $(#[$meta:meta])*
        pub enum $Rows:ident as $Fields:ident {
            $(
                $(#[$about:meta])*
                $View:ident $({ $( $(#[doc = $text:literal])* $field:ident: $Type:ty ),+ $(,)? })?
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub enum $Rows {
            $( $(#[$about])* $View $({ $( $(#[doc = $text])* $field: $Type ),+ })? ),+
        }

        /// The fields of all views.
        #[derive(Clone, Copy, Default, serde::Serialize)]
        #[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
        pub(crate) struct $Fields<'r> {
            $($($(
                $(#[doc = $text])*
                #[doc = " `null` in other views."]
                pub $field: Option<&'r $Type>,
            )+)?)+
        }

        impl $Rows {
            /// Returns the fields of all views.
            // If only one view has fields, it has all of them.
            #[allow(clippy::needless_update)]
            pub(crate) fn fields(&self) -> $Fields<'_> {
                match self {
                    $( $Rows::$View $({ $($field),+ })? => $Fields { $($($field: Some($field),)+)? ..$Fields::default() } ),+
                }
            }
        }

        $crate::base::written_as!($Rows as $Fields, fields);
    };
}

/// Implements `Serialize` and `JsonSchema` for a type: those of the struct that one of its methods returns.
macro_rules! written_as {
    ($Type:ident as $Written:ident, $method:ident) => {
        impl serde::Serialize for $Type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serde::Serialize::serialize(&self.$method(), serializer)
            }
        }

        #[cfg(feature = "cli")]
        impl schemars::JsonSchema for $Type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Type).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                <$Written<'_> as schemars::JsonSchema>::json_schema(generator)
            }
        }
    };
}

pub(crate) use {views, written_as};

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::to_string;

    views! {
        /// The plants that are listed.
        pub enum Rows as Fields {
            /// The trees.
            Trees {
                /// The trees.
                trees: Vec<u32>,
                /// Number of trees.
                count: u64,
            },
            /// The numbers only.
            Nothing,
            /// One bush.
            Bush {
                /// The bush.
                bush: String,
            },
        }
    }

    /// The plants of a garden.
    #[derive(Serialize)]
    #[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
    struct Garden {
        /// The area.
        area: u32,
        /// The plants.
        #[serde(flatten)]
        rows: Rows,
        /// The owner.
        owner: Option<u32>,
    }

    #[test]
    fn json_has_the_fields_of_all_views_in_order() {
        let json = |rows| to_string(&Garden { area: 7, rows, owner: None }).unwrap();
        let trees = Rows::Trees { trees: vec![1, 2], count: 9 };
        assert_eq!(json(trees), r#"{"area":7,"trees":[1,2],"count":9,"bush":null,"owner":null}"#);
        assert_eq!(json(Rows::Nothing), r#"{"area":7,"trees":null,"count":null,"bush":null,"owner":null}"#);
        assert_eq!(json(Rows::Bush { bush: "box".into() }), r#"{"area":7,"trees":null,"count":null,"bush":"box","owner":null}"#);
    }

    #[cfg(feature = "cli")]
    #[test]
    fn the_schema_has_the_fields_of_all_views() {
        use serde_json::json;
        let schema = schemars::generate::SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<Garden>();
        assert_eq!(schema.get("required"), Some(&json!(["area", "trees", "count", "bush", "owner"])));
        assert_eq!(schema.get("description"), Some(&json!("The plants of a garden.")));
        let bush = json!({ "description": "The bush.\n`null` in other views.", "type": ["string", "null"] });
        assert_eq!(schema.get("properties").and_then(|all| all.get("bush")), Some(&bush));
    }
}
