//! Beginning of an INIT, as ICMP messages quote it.

use crate::chunk_type::ChunkType;
use crate::header::{COMMON_HEADER_LEN, Header};

/// INIT of which at least the Initiate Tag is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedInit {
    /// Common header.
    pub header: Header,
    /// Initiate Tag.
    pub initiate_tag: u32,
}

impl QuotedInit {
    /// Number of bytes that are read: common header, chunk header and Initiate Tag.
    pub const LEN: usize = COMMON_HEADER_LEN + 8;

    /// Reads the beginning of a packet. Returns `None` if there are fewer than [`LEN`](Self::LEN) bytes, or if the first chunk is no
    /// INIT. The checksum is not verified, because it covers bytes that need not be quoted.
    pub fn read(quoted: &[u8]) -> Option<Self> {
        let word = |at: usize| quoted.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
        let port = |at: usize| quoted.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
        let header = Header { source_port: port(0)?, destination_port: port(2)?, verification_tag: word(4)? };
        let initiate_tag = word(COMMON_HEADER_LEN + 4)?;
        let chunk_type = quoted.get(COMMON_HEADER_LEN).map(|byte| ChunkType(*byte))?;
        (chunk_type == ChunkType::INIT).then_some(QuotedInit { header, initiate_tag })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::PacketWriter;
    use crate::{InitRepr, Param, Tsn};

    #[test]
    fn quoted_init_is_read_once_its_tag_is_there() {
        let header = Header { source_port: 7, destination_port: 9, verification_tag: 0 };
        let mut bytes = [0; 100];
        let mut writer = PacketWriter::new(&mut bytes, header).expect("room");
        let repr = InitRepr {
            initiate_tag: 0x0102_0304,
            a_rwnd: 1500,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn::new(5),
        };
        writer.init(&repr, std::iter::empty::<Param<'_>>()).expect("room");
        let length = writer.finish();
        let quoted = QuotedInit::read(&bytes[..length]).expect("an INIT");
        assert_eq!((quoted.header, quoted.initiate_tag), (header, 0x0102_0304));
        assert_eq!(QuotedInit::read(&bytes[..QuotedInit::LEN]), Some(quoted));
        assert!((0..QuotedInit::LEN).all(|length| QuotedInit::read(&bytes[..length]).is_none()));
        bytes[COMMON_HEADER_LEN] = ChunkType::INIT_ACK.0;
        assert_eq!(QuotedInit::read(&bytes), None);
    }
}
