//! Parameter by which both peers offer the DTLS chunk and its key management methods (draft-ietf-tsvwg-sctp-dtls-chunk of July
//! 2026, section "DTLS Key Management Parameter").
//!
//! ```text
//!  | type = 0x8006                 | length = 9 + methods          |
//!  | tie breaker: a random number                                  |
//!  | reserved|R|S|C| method        | method        | and so on     |
//! ```
//!
//! The R bit offers a protected restart. The S and C bits report that the sender can act as server and as client of the key
//! management.

use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::list::{List, item};
use crate::reader::Reader;
use std::fmt;

const CLIENT: u8 = 0x01;
const SERVER: u8 = 0x02;
const RESTART: u8 = 0x04;

/// Key management method for the DTLS chunk (registry "DTLS Key Management Method").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyManagementMethod(pub u8);

impl KeyManagementMethod {
    /// Pre-shared keys.
    pub const PRE_SHARED: Self = Self(0);
    /// TLS 1.3 over user messages (draft-porfiri-tsvwg-sctp-dtls-handshake).
    pub const TLS: Self = Self(192);
    /// TLS 1.3 with confirmation: protected packets begin with a [`CONFIRMATION`](crate::ChunkType::CONFIRMATION) until both
    /// peers know that their plaintext handshake was not altered (Anabranch, from the range for private use).
    pub const TLS_CONFIRMED: Self = Self(225);
}

impl fmt::Debug for KeyManagementMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::PRE_SHARED => f.write_str("KeyManagementMethod(pre-shared)"),
            Self::TLS => f.write_str("KeyManagementMethod(TLS)"),
            Self::TLS_CONFIRMED => f.write_str("KeyManagementMethod(TLS, confirmed)"),
            Self(other) => write!(f, "KeyManagementMethod({other})"),
        }
    }
}

item!(KeyManagementMethod, 1, |[id]: [u8; 1]| KeyManagementMethod(id), |method: KeyManagementMethod| [
    method.0
]);

/// Key management offer of one peer. Keys are derived from the parameter's bytes as sent, including reserved bits, not from
/// this struct (see [`RawParam::bytes`](crate::RawParam::bytes)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DtlsKeyManagement<'a> {
    /// Tie breaker: if both peers can act as client and server, the one with the larger number is the server.
    pub tie_breaker: u32,
    /// Set if the sender can act as client.
    pub client: bool,
    /// Set if the sender can act as server.
    pub server: bool,
    /// Set if the sender keeps keys for a protected restart.
    pub restart: bool,
    /// Offered methods in order of preference, at least one.
    pub methods: List<'a, KeyManagementMethod>,
}

pub(super) fn read(mut value: Reader<'_>) -> Result<DtlsKeyManagement<'_>, ParseError> {
    let tie_breaker = value.u32()?;
    let [flags] = value.bytes()?;
    let list = List::read(value.rest()).filter(|methods| !methods.is_empty());
    let methods = list.ok_or(value.error(ParseErrorKind::WrongLength))?;
    let has = |flag| flags & flag != 0;
    Ok(DtlsKeyManagement {
        tie_breaker,
        client: has(CLIENT),
        server: has(SERVER),
        restart: has(RESTART),
        methods,
    })
}

pub(super) fn write(value: &mut Cursor<'_>, offer: DtlsKeyManagement<'_>) -> Result<(), NoSpace> {
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    value.u32(offer.tie_breaker)?;
    value.put(&[flag(offer.client, CLIENT) | flag(offer.server, SERVER) | flag(offer.restart, RESTART)])?;
    value.items(offer.methods.iter()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_param, param_error, tlv};
    use crate::{Param, RawParam};

    #[test]
    fn layouts() {
        let methods = [KeyManagementMethod::TLS, KeyManagementMethod::PRE_SHARED];
        let offer = DtlsKeyManagement {
            tie_breaker: 0x0102_0304,
            client: true,
            server: false,
            restart: false,
            methods: List::new(&methods),
        };
        assert_param(0x8006, &[1, 2, 3, 4, 1, 192, 0], Param::DtlsKeyManagement(offer));
        let server = DtlsKeyManagement { client: false, server: true, ..offer };
        assert_param(0x8006, &[1, 2, 3, 4, 2, 192, 0], Param::DtlsKeyManagement(server));
        let all = DtlsKeyManagement { client: true, restart: true, ..server };
        assert_param(0x8006, &[1, 2, 3, 4, 7, 192, 0], Param::DtlsKeyManagement(all));
    }

    #[test]
    fn reserved_bits_are_ignored() {
        let bytes = tlv(0x8006, &[1, 2, 3, 4, 0xF9, 192]);
        let Ok(Param::DtlsKeyManagement(offer)) = RawParam::parse(&bytes).unwrap().decode() else { panic!() };
        assert!(offer.client && !offer.server && !offer.restart);
    }

    #[test]
    fn without_a_method_it_is_an_error() {
        for len in 0..=5 {
            assert_eq!(param_error(0x8006, &[0; 5][..len]), ParseErrorKind::WrongLength, "{len} bytes");
        }
    }
}
