//! Identifiers of paths, and sets of paths.

/// Maximum number of paths of an association.
pub const MAX_PATHS: usize = 8;

/// Identifier of a path within its association. An id is not reused while a transmission refers to it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PathId(u8);

impl PathId {
    /// Returns the id with this index.
    ///
    /// # Panics
    /// Panics if `index` is not below [`MAX_PATHS`].
    pub fn new(index: usize) -> Self {
        assert!(index < MAX_PATHS, "path index {index} is not below {MAX_PATHS}");
        PathId(index as u8)
    }

    /// Returns the index of the path.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Set of paths of one association.
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
    /// Empty set.
    pub const EMPTY: PathSet = PathSet(0);

    /// Adds a path.
    pub fn insert(&mut self, path: PathId) {
        self.0 |= 1 << path.0;
    }

    /// Removes a path.
    pub fn remove(&mut self, path: PathId) {
        self.0 &= !(1 << path.0);
    }

    /// Returns `true` if a path is in the set.
    pub const fn contains(self, path: PathId) -> bool {
        self.0 & (1 << path.0) != 0
    }

    /// Returns `true` if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the number of paths.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the path with the lowest id.
    pub fn first(self) -> Option<PathId> {
        self.iter().next()
    }

    /// Returns the paths in order of id.
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

/// State of a path, which determines its use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathState {
    /// The peer has not yet proved that the address is its own (RFC 9260 section 5.4): no data.
    Unconfirmed,
    /// The path is in use.
    Active,
    /// The path missed a time-out and is being probed (CMT-PF, RFC 7829): no data while another path is active.
    PotentiallyFailed,
    /// The path has failed (RFC 9260 section 8.2).
    Inactive,
}
