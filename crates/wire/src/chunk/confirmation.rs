//! CONFIRMATION chunk: repeats, in a protected packet, fields that its sender received in the clear. No specification defines this
//! chunk. Anabranch uses it only between peers that negotiated [`KeyManagementMethod::TLS_CONFIRMED`](crate::KeyManagementMethod).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 0xBA   | 0 0 0 0 0 0 0 M | length = 48                 |
//!  +---------------+---------------+---------------+---------------+
//!  | transcript of the handshake: 32 bytes                         |
//!  +---------------------------------------------------------------+
//!  | last TSN that was sent in the clear                           |
//!  +---------------------------------------------------------------+
//!  | last TSN that was received in the clear                       |
//!  +---------------------------------------------------------------+
//!  | next SSN to be sent on stream 0 | next SSN to be received     |
//!  +---------------------------------------------------------------+
//! ```
//!
//! The M bit reports that the receiver's own CONFIRMATION arrived and matches. The high bits of the type are 10, so a receiver that
//! does not know the chunk skips it without a report (RFC 9260 section 3.2).

use super::{CHUNK_HEADER_LEN, ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError};
use crate::serial::{Ssn, Tsn};
use crate::writer::PacketWriter;

/// Length of a transcript, in bytes.
pub const TRANSCRIPT_LEN: usize = 32;

/// Length of a CONFIRMATION, in bytes.
pub const CONFIRMATION_LEN: usize = CHUNK_HEADER_LEN + TRANSCRIPT_LEN + 12;

/// M bit of the flags.
const MATCHED: u8 = 0x01;

/// End of the plaintext messages of one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlainEnd {
    /// Last TSN, or the initial TSN minus one if there was no message.
    pub tsn: Tsn,
    /// Next SSN of stream 0.
    pub next_ssn: Ssn,
}

/// Fields of a CONFIRMATION.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConfirmationRepr {
    /// Set once the receiver's own CONFIRMATION has arrived and matches.
    pub matched: bool,
    /// Digest of the INIT and INIT ACK from which the sender took its parameters.
    pub transcript: [u8; TRANSCRIPT_LEN],
    /// End of the plaintext messages that the sender sent.
    pub sent: PlainEnd,
    /// End of the plaintext messages that the sender received.
    pub received: PlainEnd,
}

impl ConfirmationRepr {
    pub(super) fn decode(chunk: RawChunk<'_>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let transcript = fields.bytes()?;
        let [sent, received] = [Tsn::new(fields.u32()?), Tsn::new(fields.u32()?)];
        let [next_sent, next_received] = [Ssn::new(fields.u16()?), Ssn::new(fields.u16()?)];
        fields.end()?;
        Ok(ConfirmationRepr {
            matched: chunk.flags() & MATCHED != 0,
            transcript,
            sent: PlainEnd { tsn: sent, next_ssn: next_sent },
            received: PlainEnd { tsn: received, next_ssn: next_received },
        })
    }
}

impl PacketWriter<'_> {
    /// Adds a CONFIRMATION.
    pub fn confirmation(&mut self, repr: &ConfirmationRepr) -> Result<(), NoSpace> {
        let flags = if repr.matched { MATCHED } else { 0 };
        self.chunk(ChunkType::CONFIRMATION, flags, |cursor| {
            cursor.put(&repr.transcript)?;
            cursor.u32(repr.sent.tsn.get())?;
            cursor.u32(repr.received.tsn.get())?;
            cursor.u16(repr.sent.next_ssn.get())?;
            cursor.u16(repr.received.next_ssn.get())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseErrorKind;
    use crate::testing::{decode, only, write};
    use proptest::prelude::*;

    #[test]
    fn confirmation_is_laid_out_as_documented() {
        let repr = ConfirmationRepr {
            matched: true,
            transcript: [7; 32],
            sent: PlainEnd { tsn: Tsn::new(0x0102_0304), next_ssn: Ssn::new(0x0A0B) },
            received: PlainEnd { tsn: Tsn::new(0x0506_0708), next_ssn: Ssn::new(0x0C0D) },
        };
        let packet = write(|packet| packet.confirmation(&repr));
        let tail = [1, 2, 3, 4, 5, 6, 7, 8, 0x0A, 0x0B, 0x0C, 0x0D];
        assert_eq!(packet[12..], [&[0xBA, 1, 0, 48][..], &[7; 32], &tail].concat());
        assert_eq!(packet.len(), 12 + CONFIRMATION_LEN);
    }

    #[test]
    fn confirmation_of_other_length_is_error() {
        let kind = ChunkType::CONFIRMATION.0;
        for len in (0..60).filter(|&len| len + CHUNK_HEADER_LEN != CONFIRMATION_LEN) {
            assert_eq!(
                decode(kind, 0, &[0; 60][..len]).unwrap_err().kind,
                ParseErrorKind::WrongLength,
                "{len} bytes"
            );
        }
    }

    proptest! {
        #[test]
        fn round_trip(matched: bool, transcript: [u8; 32], tsns: [u32; 2], ssns: [u16; 2]) {
            let end = |at: usize| PlainEnd { tsn: Tsn::new(tsns[at]), next_ssn: Ssn::new(ssns[at]) };
            let repr = ConfirmationRepr { matched, transcript, sent: end(0), received: end(1) };
            let packet = write(|packet| packet.confirmation(&repr));
            prop_assert_eq!(only!(Confirmation, &packet), repr);
        }
    }
}
