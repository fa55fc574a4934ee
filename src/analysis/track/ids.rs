//! Objects of the two dumps. Their ids are those of [`ObjectId`](crate::gc::ObjectId), in types of their own: an object of one
//! dump is never looked up in the other.

use crate::base::index_type;

index_type! {
    /// An object of the dump that was taken first.
    pub(super) struct Old;
}

index_type! {
    /// An object of the dump that was taken last.
    pub(super) struct New;
}
