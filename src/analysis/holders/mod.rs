//! References, roots, paths and retained sizes: the commands under "What holds what" in `help`.

pub(super) mod inspect;
pub(super) mod liveness;
pub(super) mod path_fold;
pub(super) mod path_tree;
pub(super) mod paths;
pub(super) mod refs;
pub(super) mod retained;
pub(super) mod roots;
pub(super) mod young;
