//! ERROR chunk: reports an error without ending the association (RFC 9260 section 3.3.10).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 9      | flags = 0     | length                        |
//!  +---------------+---------------+---------------+---------------+
//!  | error causes, at least one                                    |
//!  +---------------------------------------------------------------+
//! ```

use super::{CHUNK_HEADER_LEN, ChunkType, RawChunk};
use crate::cause::{Cause, Causes, RawCauses};
use crate::error::NoSpace;
use crate::writer::PacketWriter;

/// Received ERROR. Causes are decoded one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorView<'a> {
    causes: RawCauses<'a>,
}

impl<'a> ErrorView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Self {
        Self { causes: RawCauses::new(chunk.value(), CHUNK_HEADER_LEN) }
    }

    /// Iterates over the causes and decodes them.
    pub const fn causes(&self) -> Causes<'a> {
        self.causes.decoded()
    }

    /// Iterates over the undecoded causes.
    pub const fn raw_causes(&self) -> RawCauses<'a> {
        self.causes
    }
}

impl PacketWriter<'_> {
    /// Adds an ERROR with these causes.
    pub fn error<'p>(&mut self, causes: impl IntoIterator<Item = Cause<'p>>) -> Result<(), NoSpace> {
        self.chunk(ChunkType::ERROR, 0, |cursor| causes.into_iter().try_for_each(|cause| cause.write(cursor)))
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{cause, only, write};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(causes in prop::collection::vec(cause(), 1..5)) {
            let packet = write(|packet| packet.error(causes.iter().copied()));
            let view = only!(Error, &packet);
            prop_assert!(view.causes().eq(causes.iter().copied().map(Ok)));
            prop_assert!(view.raw_causes().map(|raw| raw.unwrap().decode()).eq(view.causes()));
        }
    }
}
