//! Tests of the metadata reader: a blob made by hand, mutations of a real one.
use super::*;
