//! No split: first come, first served.

use anabranch_core::PathId;
use anabranch_core::policy::{BufferSharing, Context, Event, Slot, View};
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;

/// Every path may use all of the buffers.
#[derive(Debug, Default)]
pub struct Unshared;

impl Slot for Unshared {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl BufferSharing for Unshared {
    fn admits(&self, _: PathId, _: ChunkBytes, _: &View<'_>) -> bool {
        true
    }
}
