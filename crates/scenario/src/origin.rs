//! Origins of keys and values.

use std::ops::Range;

/// Origin of a key or value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Bytes of the file.
    File(Range<usize>),
    /// Index of an override.
    Override(usize),
    /// Default of a missing value.
    Assumed,
}
