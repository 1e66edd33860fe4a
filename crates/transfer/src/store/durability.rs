//! When a file is on the disk.

/// What waits to be on the disk before a file counts as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The files that are complete together, all at once.
    #[default]
    Batch,
    /// Each file alone, with its folder.
    Each,
}
