//! ABORT chunk: ends an association at once (RFC 9260 section 3.3.7).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 6      | 0 0 0 0 0 0 0 T | length                      |
//!  +---------------+---------------+---------------+---------------+
//!  | error causes, possibly none                                   |
//!  +---------------------------------------------------------------+
//! ```
//!
//! If the T bit is set, the packet carries the receiver's own verification tag, because the sender has no
//! association and knows no other tag (section 8.5.1).

use super::{CHUNK_HEADER_LEN, ChunkType, RawChunk, TAG_REFLECTED};
use crate::cause::{Cause, Causes, RawCauses};
use crate::error::NoSpace;
use crate::writer::PacketWriter;

/// Length of an ABORT or ERROR up to its causes, in bytes.
pub const ABORT_HEADER_LEN: usize = CHUNK_HEADER_LEN;

/// Received ABORT. Causes are decoded one at a time, so that a malformed cause does not invalidate the ABORT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbortView<'a> {
    tag_reflected: bool,
    causes: RawCauses<'a>,
}

impl<'a> AbortView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Self {
        let causes = RawCauses::new(chunk.value(), CHUNK_HEADER_LEN);
        Self { tag_reflected: chunk.flags() & TAG_REFLECTED != 0, causes }
    }

    /// Returns `true` if the packet carries the receiver's own verification tag (T bit).
    pub const fn tag_reflected(&self) -> bool {
        self.tag_reflected
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
    /// Adds an ABORT with these causes. Its packet must not contain DATA (RFC 9260 section 3.3.7).
    pub fn abort<'p>(
        &mut self,
        tag_reflected: bool,
        causes: impl IntoIterator<Item = Cause<'p>>,
    ) -> Result<(), NoSpace> {
        self.chunk(ChunkType::ABORT, u8::from(tag_reflected) * TAG_REFLECTED, |cursor| {
            causes.into_iter().try_for_each(|cause| cause.write(cursor))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{ParseError, ParseErrorKind};
    use crate::testing::{cause, only, write};
    use proptest::prelude::*;

    #[test]
    fn a_bad_cause_does_not_hide_the_abort() {
        let packet = write(|packet| packet.raw_parts(ChunkType::ABORT, 0xFF, &[0, 9, 0, 5, 1]));
        let view = only!(Abort, &packet);
        assert!(view.tag_reflected());
        let causes: Vec<_> = view.causes().collect();
        assert_eq!(causes, [Err(ParseError::new(ParseErrorKind::WrongLength, 8))]);
    }

    proptest! {
        #[test]
        fn round_trip(tag_reflected: bool, causes in prop::collection::vec(cause(), 0..5)) {
            let packet = write(|packet| packet.abort(tag_reflected, causes.iter().copied()));
            let view = only!(Abort, &packet);
            prop_assert_eq!(view.tag_reflected(), tag_reflected);
            prop_assert!(view.causes().eq(causes.iter().copied().map(Ok)));
            prop_assert!(view.raw_causes().map(|raw| raw.unwrap().decode()).eq(view.causes()));
        }
    }
}
