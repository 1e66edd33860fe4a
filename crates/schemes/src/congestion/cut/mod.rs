//! Rules of reduction, one file each, and what they share.

mod balia;
mod halving;
mod resource_pooling_v1;
mod resource_pooling_v2;
mod rtt_ratio;
mod srtt_fraction;

pub use balia::BaliaCut;
pub use halving::Halving;
pub use resource_pooling_v1::ResourcePoolingV1Cut;
pub use resource_pooling_v2::ResourcePoolingV2Cut;
pub use rtt_ratio::{CutWindow, RttRatioCut};
pub use srtt_fraction::SrttFractionCut;

pub(crate) use halving::{after_fast_retransmit, after_timeout, halve};

use anabranch_core::policy::LossCause;
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;

/// The least threshold that a publication's own rule leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The publication's.
    Published,
    /// The profile's, so that schemes can be compared with equal floors.
    Profile,
}

impl Floor {
    pub(crate) fn bytes(
        self,
        published: ChunkBytes,
        cause: LossCause,
        largest: ChunkBytes,
        profile: &Profile,
    ) -> ChunkBytes {
        match (self, cause) {
            (Floor::Published, _) => published,
            (Floor::Profile, LossCause::Timeout) => largest.times(profile.timeout_floor),
            (Floor::Profile, _) => largest.times(profile.fast_retransmit_floor),
        }
    }
}

/// Bytes, rounded to the nearest; nothing if there are less than none.
pub(crate) fn nearest(bytes: f64) -> ChunkBytes {
    // A float-to-integer cast saturates, so that a negative number is zero.
    ChunkBytes::new(bytes.round() as u64)
}
