//! COOKIE ECHO and COOKIE ACK chunks: complete the handshake (RFC 9260 sections 3.3.11 and 3.3.12).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 10     | flags = 0     | length = 4 + cookie           |
//!  +---------------+---------------+---------------+---------------+
//!  | the cookie of the INIT ACK, without its parameter header      |
//!  +---------------------------------------------------------------+
//!
//!  +---------------+---------------+---------------+---------------+
//!  | type = 11     | flags = 0     | length = 4                    |
//!  +---------------+---------------+---------------+---------------+
//! ```

use super::{CHUNK_HEADER_LEN, ChunkType};
use crate::error::NoSpace;
use crate::writer::PacketWriter;

/// Returns the length of a COOKIE ECHO with a cookie of `cookie_len` bytes, without padding.
pub const fn cookie_echo_len(cookie_len: usize) -> usize {
    CHUNK_HEADER_LEN.saturating_add(cookie_len)
}

impl PacketWriter<'_> {
    /// Adds a COOKIE ECHO, which must be the first chunk of its packet (RFC 9260 section 3.3.11).
    pub fn cookie_echo(&mut self, cookie: &[u8]) -> Result<(), NoSpace> {
        self.raw_parts(ChunkType::COOKIE_ECHO, 0, cookie)
    }

    /// Adds a COOKIE ACK, which must be the first chunk of its packet (RFC 9260 section 3.3.12).
    pub fn cookie_ack(&mut self) -> Result<(), NoSpace> {
        self.raw_parts(ChunkType::COOKIE_ACK, 0, &[])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chunk;
    use crate::testing::{bytes, only_chunk, write};
    use proptest::prelude::*;

    #[test]
    fn the_answer_has_no_fields() {
        let packet = write(|packet| packet.cookie_ack());
        assert_eq!(packet[12..], [11, 0, 0, 4]);
        assert_eq!(only_chunk(&packet).decode(), Ok(Chunk::CookieAck));
    }

    proptest! {
        #[test]
        fn round_trip(cookie in bytes(0..500)) {
            let packet = write(|packet| packet.cookie_echo(&cookie));
            let chunk = only_chunk(&packet);
            prop_assert_eq!(chunk.decode(), Ok(Chunk::CookieEcho { cookie: &cookie }));
            prop_assert_eq!(chunk.bytes().len(), cookie_echo_len(cookie.len()));
        }
    }
}
