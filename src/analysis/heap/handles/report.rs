//! The report of `handles`.

use serde::Serialize;

use crate::base::{Name, named_enum, written_as};
use crate::model::{FeatureSource, HandleKind, HandleMemory, HandleModel, HandleUse};

named_enum! {
    /// Grouping keys of `handles --by`.
    pub enum HandleBy {
        /// Type of the handle.
        Type = "type",
        /// Type of the object.
        ObjectType = "object-type",
        /// Generation or segment kind of the object.
        Generation = "generation",
    }
}

/// Handles of one group.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleGroup {
    /// Handle type, type name of the objects (or their method table address), or generation; `null` if the objects are not in the dump or
    /// not in a segment.
    pub key: Option<Name>,
    /// Number of handles.
    pub count: u64,
    /// Total size of the objects in bytes; an object is counted once for each handle.
    pub bytes: u64,
}

/// Handles of one type.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleStat {
    /// Type of the handles.
    #[serde(rename = "type")]
    pub kind: HandleKind,
    /// Number of handles.
    pub count: u64,
}

/// Handles that the runtime or its library created for itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct HandleUseStat {
    /// The use.
    pub used_for: HandleUse,
    /// Number of handles.
    pub count: u64,
}

/// `handles`: the GC handles of all handle tables.
#[derive(Clone, Debug)]
pub struct HandlesReport {
    /// Number of handles of the requested types.
    pub total: u64,
    /// Number of handles by type.
    pub counts: Vec<HandleStat>,
    /// Strong handles that the runtime or its library created for itself, by use.
    pub uses: Vec<HandleUseStat>,
    /// Handle types that the runtime supports, including those without handles.
    pub supported: Vec<HandleKind>,
    /// Source of the features that determine the supported types.
    pub supported_by: FeatureSource,
    /// Number of handle tables walked: one per processor with server GC.
    pub tables: u64,
    /// The rows of the requested view.
    pub rows: HandlesRows,
    /// Number of handles or groups listed, if cut by `top`.
    pub shown: Option<u64>,
}

/// The rows that `handles` lists.
#[derive(Clone, Debug)]
pub enum HandlesRows {
    /// Each handle.
    Handles {
        /// The handles, in table order.
        handles: Vec<HandleModel>,
        /// Number of listed ref-counted handles whose reference count cannot be read. Whether these keep their objects alive is unknown.
        ref_counts_unknown: u64,
    },
    /// Only the counts by type.
    Counts,
    /// Sums by a key.
    By {
        /// The grouping key.
        by: HandleBy,
        /// Number of groups, listed or not.
        group_count: u64,
        /// The groups, largest first.
        groups: Vec<HandleGroup>,
    },
    /// The memory of the tables.
    Memory {
        /// The memory of the tables.
        memory: HandleMemory,
    },
}

/// `handles`: the GC handles of all handle tables.
#[derive(Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
struct HandlesJson<'r> {
    /// Number of handles of the requested types.
    total: u64,
    /// Number of handles by type.
    counts: &'r [HandleStat],
    /// Strong handles that the runtime or its library created for itself, by use.
    uses: &'r [HandleUseStat],
    /// Handle types that the runtime supports, including those without handles.
    supported: &'r [HandleKind],
    /// Source of the features that determine the supported types.
    supported_by: FeatureSource,
    /// Number of listed ref-counted handles whose reference count cannot be read. Whether these keep their objects alive is unknown; `null`
    /// with `stat` and `by`.
    ref_counts_unknown: Option<u64>,
    /// Number of handle tables walked: one per processor with server GC.
    tables: u64,
    /// The handles, in table order; `null` with `stat` and `by`.
    handles: Option<&'r [HandleModel]>,
    /// Number of handles or groups listed, if cut by `top`.
    shown: Option<u64>,
    /// With `by`: the grouping key.
    by: Option<HandleBy>,
    /// With `by`: the number of groups, listed or not.
    group_count: Option<u64>,
    /// With `by`: the groups, largest first.
    groups: Option<&'r [HandleGroup]>,
    /// With `memory`: the memory of the tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<&'r HandleMemory>,
}

impl HandlesReport {
    fn json(&self) -> HandlesJson<'_> {
        let HandlesReport { total, counts, uses, supported, supported_by, tables, rows, shown } = self;
        let all = HandlesJson {
            total: *total,
            counts,
            uses,
            supported,
            supported_by: *supported_by,
            ref_counts_unknown: None,
            tables: *tables,
            handles: None,
            shown: *shown,
            by: None,
            group_count: None,
            groups: None,
            memory: None,
        };
        match rows {
            HandlesRows::Handles { handles, ref_counts_unknown } => {
                HandlesJson { handles: Some(handles), ref_counts_unknown: Some(*ref_counts_unknown), ..all }
            }
            HandlesRows::Counts => all,
            HandlesRows::By { by, group_count, groups } => {
                HandlesJson { by: Some(*by), group_count: Some(*group_count), groups: Some(groups), ..all }
            }
            HandlesRows::Memory { memory } => HandlesJson { memory: Some(memory), ..all },
        }
    }
}

written_as!(HandlesReport as HandlesJson, json);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_the_fields_of_all_views_in_order() {
        let report = |rows| HandlesReport {
            total: 2,
            counts: Vec::new(),
            uses: Vec::new(),
            supported: Vec::new(),
            supported_by: FeatureSource::Descriptor,
            tables: 1,
            rows,
            shown: None,
        };
        let json = |rows| serde_json::to_string(&report(rows)).unwrap();
        let start = r#"{"total":2,"counts":[],"uses":[],"supported":[],"supported_by":"descriptor","ref_counts_unknown":"#;
        let handles = r#"0,"tables":1,"handles":[],"shown":null,"by":null,"group_count":null,"groups":null}"#;
        assert_eq!(json(HandlesRows::Handles { handles: Vec::new(), ref_counts_unknown: 0 }), format!("{start}{handles}"));
        let groups = r#"null,"tables":1,"handles":null,"shown":null,"by":"type","group_count":0,"groups":[]}"#;
        assert_eq!(json(HandlesRows::By { by: HandleBy::Type, group_count: 0, groups: Vec::new() }), format!("{start}{groups}"));
        let counts = r#"null,"tables":1,"handles":null,"shown":null,"by":null,"group_count":null,"groups":null}"#;
        assert_eq!(json(HandlesRows::Counts), format!("{start}{counts}"));
    }
}
