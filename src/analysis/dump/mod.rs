//! The dump and its runtime: the commands under "The dump" in `help`.

pub(super) mod analyze;
pub(super) mod answers;
pub(super) mod app;
pub(super) mod contracts;
pub(super) mod env;
pub(super) mod info;
pub(super) mod memory_map;
pub(super) mod modules;
