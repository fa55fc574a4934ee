//! Answers for other tools: the commands under "Files for other tools" in `help`.

pub(super) mod page;
