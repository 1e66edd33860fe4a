//! What names a path, and sets of paths.

/// The most paths an association may have.
pub const MAX_PATHS: usize = 8;

/// Identifies a path within its association. An id is not given to another path while a transmission refers to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathId(u8);

impl PathId {
    /// The id with this index.
    ///
    /// # Panics
    /// If `index` is not below [`MAX_PATHS`].
    pub fn new(index: usize) -> Self {
        assert!(index < MAX_PATHS, "path index {index} is not below {MAX_PATHS}");
        PathId(index as u8)
    }

    /// Its index.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A set of paths of one association.
///
/// ```
/// use anabranch_core::{PathId, PathSet};
///
/// let set: PathSet = [2, 0].map(PathId::new).into_iter().collect();
/// assert!(set.contains(PathId::new(2)) && !set.contains(PathId::new(1)));
/// assert_eq!(set.iter().map(PathId::index).collect::<Vec<_>>(), [0, 2]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathSet(u8);

const _: () = assert!(MAX_PATHS <= 8, "one bit for each path");

impl PathSet {
    /// No path.
    pub const EMPTY: PathSet = PathSet(0);

    /// Adds a path.
    pub fn insert(&mut self, path: PathId) {
        self.0 |= 1 << path.0;
    }

    /// Takes a path out.
    pub fn remove(&mut self, path: PathId) {
        self.0 &= !(1 << path.0);
    }

    /// Whether a path is in it.
    pub const fn contains(self, path: PathId) -> bool {
        self.0 & (1 << path.0) != 0
    }

    /// Whether no path is in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// How many paths are in it.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// The path with the lowest id.
    pub fn first(self) -> Option<PathId> {
        self.iter().next()
    }

    /// The paths in order of id.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = PathId> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let lowest = (left != 0).then(|| PathId(left.trailing_zeros() as u8));
            left &= left.wrapping_sub(1);
            lowest
        })
    }
}

impl FromIterator<PathId> for PathSet {
    fn from_iter<I: IntoIterator<Item = PathId>>(paths: I) -> Self {
        let mut set = PathSet::EMPTY;
        paths.into_iter().for_each(|path| set.insert(path));
        set
    }
}

/// Whether and how a path may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The peer has not yet proved that it is there (RFC 9260 section 5.4): no data.
    Unconfirmed,
    /// In use.
    Active,
    /// Missed a time-out and is being probed (CMT-PF, RFC 7829): no data while another path is active.
    PotentiallyFailed,
    /// Failed (RFC 9260 section 8.2).
    Inactive,
}
