//! Capacity for associations, and the share of one source.

use crate::endpoint::Endpoint;
use crate::source::Source;

/// Number of associations that one source may have for each free place.
const SHARE: usize = 8;

impl Endpoint {
    /// Returns `true` if there is room for an association from this source. On an endpoint with a guard, a source may have up to
    /// [`SHARE`] times as many places as are free (the dynamic threshold of Choudhury and Hahne, 1998). A single source leaves a
    /// ninth of all places free, two sources leave a seventeenth. No association is closed for another one.
    pub(super) fn has_place_for(&self, source: Source) -> bool {
        let free = self.config.max_associations.saturating_sub(self.table.len());
        free > 0
            && (self.config.guard.is_none() || self.table.opened_from(source) < SHARE.saturating_mul(free))
    }
}
