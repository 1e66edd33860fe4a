//! ECNE and CWR chunks: echo a congestion mark and confirm the echo. RFC 4960 appendix A defines their layout;
//! RFC 9260 only reserves the types.
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 12, 13 | flags = 0     | length = 8                    |
//!  +---------------+---------------+---------------+---------------+
//!  | lowest TSN in the packet that was marked                      |
//!  +---------------------------------------------------------------+
//! ```

use super::ChunkType;
use crate::error::NoSpace;
use crate::serial::Tsn;
use crate::writer::PacketWriter;

impl PacketWriter<'_> {
    /// Adds an ECNE. `lowest_tsn` is the lowest TSN of the marked packet.
    pub fn ecne(&mut self, lowest_tsn: Tsn) -> Result<(), NoSpace> {
        self.chunk(ChunkType::ECNE, 0, |cursor| cursor.u32(lowest_tsn.get()))
    }

    /// Adds a CWR that answers an ECNE with this lowest TSN.
    pub fn cwr(&mut self, lowest_tsn: Tsn) -> Result<(), NoSpace> {
        self.chunk(ChunkType::CWR, 0, |cursor| cursor.u32(lowest_tsn.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Chunk;
    use crate::testing::{only_chunk, write};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn round_trip(tsn: u32) {
            let lowest_tsn = Tsn::new(tsn);
            let packet = write(|packet| packet.ecne(lowest_tsn));
            prop_assert_eq!(only_chunk(&packet).decode(), Ok(Chunk::Ecne { lowest_tsn }));
            let packet = write(|packet| packet.cwr(lowest_tsn));
            prop_assert_eq!(only_chunk(&packet).decode(), Ok(Chunk::Cwr { lowest_tsn }));
        }
    }
}
