//! Reduction rules, one per file, and their shared parts.

pub(crate) mod halving;

pub use halving::Halving;

pub(crate) use halving::{after_fast_retransmit, after_timeout, halve};

use anabranch_core::policy::LossCause;
use anabranch_core::profile::Profile;
use anabranch_core::units::ChunkBytes;

use crate::definition::{ChoiceParameter, Parameter, Value, Values};

/// Floors that apply regardless of a scheme's publication, so that schemes can be compared.
const FLOORS: [(&str, Floor); 3] =
    [("profile", Floor::Profile), ("2", Floor::Chunks(2)), ("4", Floor::Chunks(4))];

/// Minimum threshold after a reduction, for schemes that use the profile's or a number of chunks.
const FLOOR: ChoiceParameter<Floor> = ChoiceParameter {
    name: "floor",
    options: &FLOORS,
    default: "profile",
    about: "least slow-start threshold after a loss: the profile's, or 2 or 4 largest chunks",
    source: "RFC 9260 section 7.2.3: 4; ns-2's CMT agent: 2",
};

/// Minimum threshold after a reduction, for schemes whose publication has its own rule.
const OWN_FLOOR: ChoiceParameter<Floor> = ChoiceParameter {
    name: "floor",
    options: &[("published", Floor::Published), FLOORS[0], FLOORS[1], FLOORS[2]],
    default: "published",
    about: "least slow-start threshold after a loss: the publication's, the profile's, or 2 or 4 largest chunks",
    source: "",
};

pub(crate) const fn floor(default: &'static str) -> Parameter {
    Parameter { default: Value::Choice(default), ..FLOOR.parameter() }
}

pub(crate) const fn own_floor(source: &'static str) -> Parameter {
    Parameter { source, ..OWN_FLOOR.parameter() }
}

/// Returns the profile with the floor that the parameter selects.
pub(crate) fn floored(values: &Values, row: Profile) -> Profile {
    match OWN_FLOOR.get(values) {
        Floor::Chunks(chunks) => Profile { fast_retransmit_floor: chunks, timeout_floor: chunks, ..row },
        Floor::Published | Floor::Profile => row,
    }
}

/// Minimum threshold in a publication's own reduction rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The publication's.
    Published,
    /// Floor of the profile, so that schemes can be compared with equal floors.
    Profile,
    /// A number of chunks of maximum size.
    Chunks(u64),
}

impl Floor {
    /// Returns the floor that the parameter selects.
    pub(crate) fn from_values(values: &Values) -> Self {
        OWN_FLOOR.get(values)
    }

    pub(crate) fn bytes(
        self,
        published: ChunkBytes,
        cause: LossCause,
        largest: ChunkBytes,
        profile: &Profile,
    ) -> ChunkBytes {
        match (self, cause) {
            (Floor::Published, _) => published,
            (Floor::Chunks(chunks), _) => largest.times(chunks),
            (Floor::Profile, LossCause::Timeout) => largest.times(profile.timeout_floor),
            (Floor::Profile, _) => largest.times(profile.fast_retransmit_floor),
        }
    }
}

/// Rounds to the nearest number of bytes; negative numbers become zero.
pub(crate) fn nearest(bytes: f64) -> ChunkBytes {
    // The cast from float to integer saturates, so a negative number becomes zero.
    ChunkBytes::new(bytes.round() as u64)
}
