//! Ids of the objects of the two dumps. They have the values of [`ObjectId`](crate::gc::ObjectId), but separate types, so that an object of one dump
//! is never looked up in the other.

use crate::base::index_type;

index_type! {
    /// An object of the first dump.
    pub(super) struct Old;
}

index_type! {
    /// An object of the last dump.
    pub(super) struct New;
}
