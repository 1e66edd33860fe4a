//! Common header of a packet (RFC 9260 section 3.1).

use crate::error::ParseError;
use crate::reader::Reader;

/// Length of the common header, in bytes.
pub const COMMON_HEADER_LEN: usize = 12;

/// Common header without its checksum, which only whole packets have (RFC 9260 section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Header {
    /// Sender's port.
    pub source_port: u16,
    /// Receiver's port.
    pub destination_port: u16,
    /// Tag that the receiver chose, or zero with an INIT.
    pub verification_tag: u32,
}

impl Header {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, ParseError> {
        Ok(Self {
            source_port: reader.u16()?,
            destination_port: reader.u16()?,
            verification_tag: reader.u32()?,
        })
    }

    /// Returns the encoded header with a zero checksum.
    pub(crate) fn to_wire(self) -> [u8; COMMON_HEADER_LEN] {
        let ([a, b], [c, d]) = (self.source_port.to_be_bytes(), self.destination_port.to_be_bytes());
        let [e, f, g, h] = self.verification_tag.to_be_bytes();
        [a, b, c, d, e, f, g, h, 0, 0, 0, 0]
    }
}
