//! SHUTDOWN, SHUTDOWN ACK and SHUTDOWN COMPLETE chunks: close an association in three steps (RFC 9260
//! sections 3.3.8, 3.3.9 and 3.3.13).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 7      | flags = 0     | length = 8                    |
//!  +---------------+---------------+---------------+---------------+
//!  | cumulative TSN, as in a SACK                                  |
//!  +---------------------------------------------------------------+
//!
//!  +---------------+---------------+---------------+---------------+
//!  | type = 8      | flags = 0     | length = 4                    |
//!  +---------------+---------------+---------------+---------------+
//!
//!  +---------------+---------------+---------------+---------------+
//!  | type = 14     | 0 0 0 0 0 0 0 T | length = 4                  |
//!  +---------------+---------------+---------------+---------------+
//! ```

use super::{ChunkType, TAG_REFLECTED};
use crate::error::NoSpace;
use crate::serial::Tsn;
use crate::writer::PacketWriter;

/// Length of a SHUTDOWN, in bytes.
pub const SHUTDOWN_LEN: usize = 8;

impl PacketWriter<'_> {
    /// Adds a SHUTDOWN that acknowledges everything up to this TSN.
    pub fn shutdown(&mut self, cum_tsn: Tsn) -> Result<(), NoSpace> {
        self.chunk(ChunkType::SHUTDOWN, 0, |cursor| cursor.u32(cum_tsn.get()))
    }

    /// Adds a SHUTDOWN ACK.
    pub fn shutdown_ack(&mut self) -> Result<(), NoSpace> {
        self.raw_parts(ChunkType::SHUTDOWN_ACK, 0, &[])
    }

    /// Adds a SHUTDOWN COMPLETE, which must be the only chunk of its packet (RFC 9260 section 6.10).
    pub fn shutdown_complete(&mut self, tag_reflected: bool) -> Result<(), NoSpace> {
        self.raw_parts(ChunkType::SHUTDOWN_COMPLETE, u8::from(tag_reflected) * TAG_REFLECTED, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chunk;
    use crate::testing::{only_chunk, write};
    use proptest::prelude::*;

    #[test]
    fn the_last_two_steps_have_no_fields() {
        let packet = write(|packet| packet.shutdown_ack());
        assert_eq!(packet[12..], [8, 0, 0, 4]);
        assert_eq!(only_chunk(&packet).decode(), Ok(Chunk::ShutdownAck));
        for tag_reflected in [false, true] {
            let packet = write(|packet| packet.shutdown_complete(tag_reflected));
            assert_eq!(packet[12..], [14, u8::from(tag_reflected), 0, 4]);
            assert_eq!(only_chunk(&packet).decode(), Ok(Chunk::ShutdownComplete { tag_reflected }));
        }
    }

    proptest! {
        #[test]
        fn round_trip(tsn: u32) {
            let packet = write(|packet| packet.shutdown(Tsn::new(tsn)));
            let chunk = only_chunk(&packet);
            prop_assert_eq!(chunk.decode(), Ok(Chunk::Shutdown { cum_tsn: Tsn::new(tsn) }));
            prop_assert_eq!(chunk.bytes().len(), SHUTDOWN_LEN);
        }
    }
}
