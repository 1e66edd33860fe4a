//! Time at which a file is synced to the disk.

/// Unit of files that is synced before a file counts as stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Files that are complete at the same time are synced together.
    #[default]
    Batch,
    /// Each file is synced alone, with its folder.
    Each,
}
