//! Origins of keys and values.

use std::ops::Range;

/// Origin of a key or value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// These bytes of the file.
    File(Range<usize>),
    /// The override with this index.
    Override(usize),
    /// Nowhere: assumed because it was not given.
    Assumed,
}
