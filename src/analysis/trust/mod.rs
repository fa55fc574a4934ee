//! Checks and copies of a dump: the commands under "Checks and copies" in `help`.

pub(super) mod trim;
pub(super) mod verify;
