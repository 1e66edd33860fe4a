//! No buffer split: first come, first served.

use anabranch_core::PathId;
use anabranch_core::policy::{BufferSharing, View};
use anabranch_core::units::ChunkBytes;

/// Policy that lets every path use all of the buffers.
#[derive(Clone, Debug, Default)]
pub struct Unshared;

ignores_events! { Unshared }

impl BufferSharing for Unshared {
    copied!(BufferSharing);

    fn admits(&self, _: PathId, _: ChunkBytes, _: &View<'_>) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::profile::Profile;

    #[test]
    fn every_path_may_use_all_of_the_buffers() {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        world.paths[1].in_flight = bytes(1_000_000);
        world.association.send_buffer_free = Some(0);
        assert!((0..2).all(|index| Unshared.admits(path(index), bytes(M), &world.view())));
    }
}
