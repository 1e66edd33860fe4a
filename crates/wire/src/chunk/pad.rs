//! PAD chunk: fills a packet up to the length of a path MTU probe (RFC 4820 section 3).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 0x84   | flags = 0     | length                        |
//!  +---------------+---------------+---------------+---------------+
//!  | padding data, which the receiver passes over                  |
//!  +---------------------------------------------------------------+
//! ```

use super::{CHUNK_HEADER_LEN, ChunkType};
use crate::error::NoSpace;
use crate::writer::PacketWriter;

impl PacketWriter<'_> {
    /// Adds a PAD chunk of `len` bytes, header included. `len` is at least four.
    pub fn pad(&mut self, len: usize) -> Result<(), NoSpace> {
        let zeros = len.checked_sub(CHUNK_HEADER_LEN).ok_or(NoSpace)?;
        self.chunk(ChunkType::PAD, 0, |cursor| {
            cursor.claim(zeros)?.fill(0);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{only, only_chunk, write};

    #[test]
    fn the_length_counts_the_header() {
        for len in 4..20 {
            let packet = write(|packet| packet.pad(len));
            assert_eq!(only_chunk(&packet).bytes().len(), len);
            assert_eq!(only!(Pad, &packet).value(), &[0; 16][..len - 4]);
        }
    }

    #[test]
    fn shorter_than_a_header_is_refused() {
        let mut buf = [0; 40];
        let mut packet = PacketWriter::new(&mut buf, crate::Header::default()).unwrap();
        for len in 0..4 {
            assert_eq!(packet.pad(len), Err(NoSpace));
        }
        assert!(packet.is_empty());
    }
}
