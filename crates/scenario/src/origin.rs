//! Where keys and values come from.

use std::ops::Range;

/// Where a key or value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// These bytes of the file.
    File(Range<usize>),
    /// The override with this index.
    Override(usize),
    /// Nowhere: assumed because it was not given.
    Assumed,
}
