//! Several dumps, compared: the commands under "Comparing dumps" in `help`.

pub(super) mod diff;
pub(super) mod track;
