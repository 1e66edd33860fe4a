//! AUTH chunk: authenticates the chunks that follow it in its packet (RFC 4895 section 4.1).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | type = 15     | flags = 0     | length = 8 + code             |
//!  +---------------+---------------+---------------+---------------+
//!  | shared key identifier         | number of the HMAC            |
//!  +-------------------------------+-------------------------------+
//!  | code over this chunk with zeros here, and all that follows    |
//!  +---------------------------------------------------------------+
//! ```
//!
//! This crate does not compute authentication codes. It reports the bytes that a code covers and inserts the code afterwards.

use super::{ChunkType, RawChunk};
use crate::error::{NoSpace, ParseError};
use crate::writer::PacketWriter;

/// Length of an AUTH up to its code, in bytes.
pub const AUTH_HEADER_LEN: usize = 8;

/// Fields of an AUTH except its code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct AuthRepr {
    /// Shared key identifier; 0 selects the null key.
    pub key_id: u16,
    /// HMAC identifier: 1 is SHA-1, 3 is SHA-256 (RFC 4895 section 3.3).
    pub hmac_id: u16,
}

/// Received AUTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuthView<'a> {
    repr: AuthRepr,
    code: &'a [u8],
}

impl<'a> AuthView<'a> {
    pub(super) fn decode(chunk: RawChunk<'a>) -> Result<Self, ParseError> {
        let mut fields = chunk.fields();
        let repr = AuthRepr { key_id: fields.u16()?, hmac_id: fields.u16()? };
        Ok(Self { repr, code: fields.rest() })
    }

    /// Returns all fields except the code.
    pub const fn repr(&self) -> AuthRepr {
        self.repr
    }

    /// Returns the code. The receiver checks its length, which depends on the HMAC.
    pub const fn code(&self) -> &'a [u8] {
        self.code
    }
}

/// AUTH whose code has not been inserted yet.
#[derive(Debug)]
#[must_use = "without its code the chunk authenticates nothing"]
pub struct PendingAuth {
    at: usize,
    code_len: usize,
}

impl PacketWriter<'_> {
    /// Adds an AUTH with room for a code of `code_len` bytes. Once the chunks after it are written,
    /// [`authenticate`](Self::authenticate) inserts the code.
    pub fn auth(&mut self, repr: AuthRepr, code_len: usize) -> Result<PendingAuth, NoSpace> {
        let at = self.len();
        self.chunk(ChunkType::AUTH, 0, |cursor| {
            cursor.u16(repr.key_id)?;
            cursor.u16(repr.hmac_id)?;
            cursor.claim(code_len)?.fill(0);
            Ok(())
        })?;
        Ok(PendingAuth { at, code_len })
    }

    /// Computes the code and inserts it. `code` receives the AUTH with zeros in place of the code and everything after it. If
    /// `code` returns more bytes than the AUTH has room for, the rest is ignored.
    pub fn authenticate<C: AsRef<[u8]>>(&mut self, pending: PendingAuth, code: impl FnOnce(&[u8]) -> C) {
        let Some(covered) = self.written_mut().get_mut(pending.at..) else { return };
        let code = code(covered);
        let place = covered.get_mut(AUTH_HEADER_LEN..AUTH_HEADER_LEN + pending.code_len);
        for (byte, value) in place.into_iter().flatten().zip(code.as_ref()) {
            *byte = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseErrorKind;
    use crate::testing::{bytes, decode, only_chunk, write};
    use crate::{Chunk, PacketView};
    use proptest::prelude::*;

    const REPR: AuthRepr = AuthRepr { key_id: 1, hmac_id: 3 };

    #[test]
    fn hmac_covers_the_zeroed_chunk_and_all_following_bytes() {
        let mut seen = Vec::new();
        let packet = write(|packet| {
            packet.cookie_ack()?;
            let pending = packet.auth(REPR, 5)?;
            packet.shutdown_ack()?;
            packet.authenticate(pending, |covered| {
                seen = covered.to_vec();
                [9; 5]
            });
            Ok(())
        });
        let expected = [15, 0, 0, 13, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 4];
        assert_eq!(seen, expected);
        assert_eq!(&packet[16..29], [15, 0, 0, 13, 0, 1, 0, 3, 9, 9, 9, 9, 9]);
        let mut chunks = PacketView::parse(&packet).unwrap().chunks();
        assert_eq!(chunks.rest(), &packet[12..]);
        chunks.next();
        assert_eq!(chunks.rest(), &packet[16..], "what an AUTH that comes next covers");
    }

    #[test]
    fn shorter_than_its_fields_is_an_error() {
        for len in 0..4 {
            assert_eq!(decode(0x0F, 0, &[0; 4][..len]).unwrap_err().kind, ParseErrorKind::WrongLength);
        }
        assert!(decode(0x0F, 0, &[0; 4]).is_ok());
    }

    proptest! {
        #[test]
        fn round_trip(key_id: u16, hmac_id: u16, code in bytes(0..70)) {
            let repr = AuthRepr { key_id, hmac_id };
            let packet = write(|packet| {
                let pending = packet.auth(repr, code.len())?;
                packet.authenticate(pending, |_| &code);
                Ok(())
            });
            let Ok(Chunk::Auth(view)) = only_chunk(&packet).decode() else { panic!("no AUTH") };
            prop_assert_eq!((view.repr(), view.code()), (repr, &code[..]));
        }
    }
}
