//! Error causes of ERROR and ABORT chunks (RFC 9260 section 3.3.10).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | cause code                    | length, these four included   |
//!  +-------------------------------+-------------------------------+
//!  | information: length - 4 bytes                                 |
//!  +---------------------------------------------------------------+
//! ```

mod data;
#[cfg(test)]
mod dtls;
mod reconfiguration;
mod setup;
mod teardown;

use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError};
use crate::list::List;
use crate::param::{ParamList, ParamType};
use crate::reader::{Reader, TLV_HEADER_LEN, Tlv, Tlvs};
use crate::serial::{StreamId, Tsn};
use std::fmt;

/// Code of an error cause (RFC 9260 section 3.3.10).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CauseCode(pub u16);

macro_rules! cause_codes {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl CauseCode {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Returns the name of the cause, or `None` if this crate does not know the code.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

cause_codes! {
    /// RFC 9260 section 3.3.10.1.
    INVALID_STREAM = 1, "Invalid Stream Identifier";
    /// RFC 9260 section 3.3.10.2.
    MISSING_PARAMETER = 2, "Missing Mandatory Parameter";
    /// RFC 9260 section 3.3.10.3.
    STALE_COOKIE = 3, "Stale Cookie";
    /// RFC 9260 section 3.3.10.4.
    OUT_OF_RESOURCE = 4, "Out of Resource";
    /// RFC 9260 section 3.3.10.5.
    UNRESOLVABLE_ADDRESS = 5, "Unresolvable Address";
    /// RFC 9260 section 3.3.10.6.
    UNRECOGNIZED_CHUNK = 6, "Unrecognized Chunk Type";
    /// RFC 9260 section 3.3.10.7.
    INVALID_PARAMETER = 7, "Invalid Mandatory Parameter";
    /// RFC 9260 section 3.3.10.8.
    UNRECOGNIZED_PARAMETERS = 8, "Unrecognized Parameters";
    /// RFC 9260 section 3.3.10.9.
    NO_USER_DATA = 9, "No User Data";
    /// RFC 9260 section 3.3.10.10.
    COOKIE_WHILE_SHUTTING_DOWN = 10, "Cookie Received While Shutting Down";
    /// RFC 9260 section 3.3.10.11.
    RESTART_WITH_NEW_ADDRESSES = 11, "Restart of an Association with New Addresses";
    /// RFC 9260 section 3.3.10.12.
    USER_INITIATED_ABORT = 12, "User-Initiated Abort";
    /// RFC 9260 section 3.3.10.13.
    PROTOCOL_VIOLATION = 13, "Protocol Violation";
    /// draft-ietf-tsvwg-sctp-dtls-chunk.
    MISSING_DTLS_SUPPORT = 100, "Missing DTLS Chunk Support";
    /// draft-ietf-tsvwg-sctp-dtls-chunk.
    NO_COMMON_KEY_MANAGEMENT = 101, "No Common DTLS Key Management Method";
    /// draft-ietf-tsvwg-sctp-dtls-chunk.
    TIE_BREAKER_COLLISION = 102, "DTLS Key Management Tie Breaker Collision";
    /// draft-ietf-tsvwg-sctp-dtls-chunk.
    INCOMPATIBLE_KEY_MANAGEMENT_ROLES = 103, "Incompatible DTLS Key Management Roles";
    /// RFC 5061 section 4.3.1.
    DELETE_LAST_ADDRESS = 0xA0, "Request to Delete Last Remaining IP Address";
    /// RFC 5061 section 4.3.2.
    RESOURCE_SHORTAGE = 0xA1, "Operation Refused Due to Resource Shortage";
    /// RFC 5061 section 4.3.3.
    DELETE_SOURCE_ADDRESS = 0xA2, "Request to Delete Source IP Address";
    /// RFC 5061 section 4.3.4.
    ILLEGAL_ASCONF_ACK = 0xA3, "Association Aborted Due to Illegal ASCONF-ACK";
    /// RFC 5061 section 4.3.5.
    NO_AUTHORIZATION = 0xA4, "Request Refused - No Authorization";
    /// RFC 4895 section 3.4.
    UNSUPPORTED_HMAC = 0x0105, "Unsupported HMAC Identifier";
}

impl fmt::Display for CauseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "cause code {}", self.0),
        }
    }
}

impl fmt::Debug for CauseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CauseCode({self})")
    }
}

/// Error cause of a chunk, with its information not decoded yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawCause<'a> {
    code: CauseCode,
    bytes: &'a [u8],
}

impl<'a> RawCause<'a> {
    fn from_tlv(tlv: Tlv<'a>) -> Self {
        let [high, low, _, _] = tlv.header;
        Self { code: CauseCode(u16::from_be_bytes([high, low])), bytes: tlv.bytes }
    }

    /// Returns the cause code.
    pub const fn code(&self) -> CauseCode {
        self.code
    }

    /// Returns the information that follows the header, without padding.
    pub fn info(&self) -> &'a [u8] {
        self.bytes.get(TLV_HEADER_LEN..).unwrap_or_default()
    }

    /// Returns the whole cause with its header and without padding.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Decodes the information according to the code.
    pub fn decode(&self) -> Result<Cause<'a>, ParseError> {
        let info = Reader::new(self.info(), TLV_HEADER_LEN);
        let bytes = info.rest();
        Ok(match self.code {
            CauseCode::INVALID_STREAM => Cause::InvalidStream(data::read_stream(info)?),
            CauseCode::MISSING_PARAMETER => Cause::MissingParameter(setup::read_missing(info)?),
            CauseCode::STALE_COOKIE => Cause::StaleCookie { staleness_us: setup::read_staleness(info)? },
            CauseCode::OUT_OF_RESOURCE => info.end().map(|()| Cause::OutOfResource)?,
            CauseCode::UNRESOLVABLE_ADDRESS => Cause::UnresolvableAddress(bytes),
            CauseCode::UNRECOGNIZED_CHUNK => Cause::UnrecognizedChunk(bytes),
            CauseCode::INVALID_PARAMETER => info.end().map(|()| Cause::InvalidParameter)?,
            CauseCode::UNRECOGNIZED_PARAMETERS => Cause::UnrecognizedParameters(ParamList::read(bytes)),
            CauseCode::NO_USER_DATA => Cause::NoUserData(data::read_tsn(info)?),
            CauseCode::COOKIE_WHILE_SHUTTING_DOWN => info.end().map(|()| Cause::CookieWhileShuttingDown)?,
            CauseCode::RESTART_WITH_NEW_ADDRESSES => Cause::RestartWithNewAddresses(ParamList::read(bytes)),
            CauseCode::USER_INITIATED_ABORT => Cause::UserInitiatedAbort(bytes),
            CauseCode::PROTOCOL_VIOLATION => Cause::ProtocolViolation(bytes),
            CauseCode::DELETE_LAST_ADDRESS => Cause::DeleteLastAddress(bytes),
            CauseCode::RESOURCE_SHORTAGE => Cause::ResourceShortage(bytes),
            CauseCode::DELETE_SOURCE_ADDRESS => Cause::DeleteSourceAddress(bytes),
            CauseCode::ILLEGAL_ASCONF_ACK => info.end().map(|()| Cause::IllegalAsconfAck)?,
            CauseCode::NO_AUTHORIZATION => Cause::NoAuthorization(bytes),
            CauseCode::UNSUPPORTED_HMAC => {
                Cause::UnsupportedHmac { hmac_id: reconfiguration::read_hmac(info)? }
            }
            _ => return self.decode_dtls(info),
        })
    }

    /// Decodes a cause of the DTLS chunk. These causes carry no information.
    fn decode_dtls(&self, info: Reader<'a>) -> Result<Cause<'a>, ParseError> {
        let cause = match self.code {
            CauseCode::MISSING_DTLS_SUPPORT => Cause::MissingDtlsSupport,
            CauseCode::NO_COMMON_KEY_MANAGEMENT => Cause::NoCommonKeyManagement,
            CauseCode::TIE_BREAKER_COLLISION => Cause::TieBreakerCollision,
            CauseCode::INCOMPATIBLE_KEY_MANAGEMENT_ROLES => Cause::IncompatibleKeyManagementRoles,
            _ => return Ok(Cause::Unknown(*self)),
        };
        info.end().map(|()| cause)
    }
}

impl fmt::Debug for RawCause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawCause({}, {} bytes)", self.code, self.info().len())
    }
}

/// Error cause, as read from a chunk or to be written into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Cause<'a> {
    /// DATA arrived for a stream that does not exist.
    InvalidStream(StreamId),
    /// An INIT or INIT ACK lacks parameters of these types.
    MissingParameter(List<'a, ParamType>),
    /// The cookie expired before it arrived.
    StaleCookie {
        /// Time between expiry and arrival of the cookie, in microseconds.
        staleness_us: u32,
    },
    /// The sender has no memory for another association.
    OutOfResource,
    /// Address parameter of an unsupported kind, header included; see [`RawParam::parse`].
    ///
    /// [`RawParam::parse`]: crate::RawParam::parse
    UnresolvableAddress(&'a [u8]),
    /// Whole chunk, header included, whose type asks to be reported; see [`RawChunk::parse`].
    ///
    /// [`RawChunk::parse`]: crate::RawChunk::parse
    UnrecognizedChunk(&'a [u8]),
    /// A parameter of an INIT or INIT ACK has an invalid value.
    InvalidParameter,
    /// Parameters of an INIT ACK whose types ask to be reported.
    UnrecognizedParameters(ParamList<'a>),
    /// The DATA chunk with this TSN has no user data.
    NoUserData(Tsn),
    /// A COOKIE ECHO arrived in state SHUTDOWN-ACK-SENT.
    CookieWhileShuttingDown,
    /// New addresses that a restart would add.
    RestartWithNewAddresses(ParamList<'a>),
    /// Reason that the aborting user gave; may be empty.
    UserInitiatedAbort(&'a [u8]),
    /// The receiver violated the protocol in a way that no other cause names; the bytes may explain it.
    ProtocolViolation(&'a [u8]),
    /// The ASCONF parameter, header included, that would delete the last address; see [`RawParam::parse`].
    ///
    /// [`RawParam::parse`]: crate::RawParam::parse
    DeleteLastAddress(&'a [u8]),
    /// The ASCONF parameter that the sender has no resources for.
    ResourceShortage(&'a [u8]),
    /// The ASCONF parameter that would delete the source address of its packet.
    DeleteSourceAddress(&'a [u8]),
    /// An ASCONF-ACK arrived without an ASCONF to match.
    IllegalAsconfAck,
    /// The ASCONF parameter that the sender of the cause refuses to carry out.
    NoAuthorization(&'a [u8]),
    /// An AUTH arrived with an HMAC that its receiver did not offer.
    UnsupportedHmac {
        /// HMAC identifier.
        hmac_id: u16,
    },
    /// The sender requires DTLS chunks, and the receiver did not offer them.
    MissingDtlsSupport,
    /// The receiver offered no key management method that the sender supports.
    NoCommonKeyManagement,
    /// Both peers can act as client and as server of the key management, and chose the same tie breaker.
    TieBreakerCollision,
    /// Both peers can act only as client of the key management, or both only as server.
    IncompatibleKeyManagementRoles,
    /// Cause with a code that this crate does not know.
    Unknown(RawCause<'a>),
}

impl Cause<'_> {
    /// Returns the cause code.
    pub const fn code(&self) -> CauseCode {
        match self {
            Self::InvalidStream(_) => CauseCode::INVALID_STREAM,
            Self::MissingParameter(_) => CauseCode::MISSING_PARAMETER,
            Self::StaleCookie { .. } => CauseCode::STALE_COOKIE,
            Self::OutOfResource => CauseCode::OUT_OF_RESOURCE,
            Self::UnresolvableAddress(_) => CauseCode::UNRESOLVABLE_ADDRESS,
            Self::UnrecognizedChunk(_) => CauseCode::UNRECOGNIZED_CHUNK,
            Self::InvalidParameter => CauseCode::INVALID_PARAMETER,
            Self::UnrecognizedParameters(_) => CauseCode::UNRECOGNIZED_PARAMETERS,
            Self::NoUserData(_) => CauseCode::NO_USER_DATA,
            Self::CookieWhileShuttingDown => CauseCode::COOKIE_WHILE_SHUTTING_DOWN,
            Self::RestartWithNewAddresses(_) => CauseCode::RESTART_WITH_NEW_ADDRESSES,
            Self::UserInitiatedAbort(_) => CauseCode::USER_INITIATED_ABORT,
            Self::ProtocolViolation(_) => CauseCode::PROTOCOL_VIOLATION,
            Self::DeleteLastAddress(_) => CauseCode::DELETE_LAST_ADDRESS,
            Self::ResourceShortage(_) => CauseCode::RESOURCE_SHORTAGE,
            Self::DeleteSourceAddress(_) => CauseCode::DELETE_SOURCE_ADDRESS,
            Self::IllegalAsconfAck => CauseCode::ILLEGAL_ASCONF_ACK,
            Self::NoAuthorization(_) => CauseCode::NO_AUTHORIZATION,
            Self::UnsupportedHmac { .. } => CauseCode::UNSUPPORTED_HMAC,
            Self::MissingDtlsSupport => CauseCode::MISSING_DTLS_SUPPORT,
            Self::NoCommonKeyManagement => CauseCode::NO_COMMON_KEY_MANAGEMENT,
            Self::TieBreakerCollision => CauseCode::TIE_BREAKER_COLLISION,
            Self::IncompatibleKeyManagementRoles => CauseCode::INCOMPATIBLE_KEY_MANAGEMENT_ROLES,
            Self::Unknown(raw) => raw.code(),
        }
    }

    /// Writes the cause alone, without padding, and returns its length. Serves to quote it in [`Param::ErrorCause`].
    ///
    /// [`Param::ErrorCause`]: crate::Param::ErrorCause
    pub fn put(&self, space: &mut [u8]) -> Result<usize, NoSpace> {
        let mut cursor = Cursor::new(space);
        self.write(&mut cursor)?;
        Ok(cursor.at())
    }

    pub(crate) fn write(&self, cursor: &mut Cursor<'_>) -> Result<(), NoSpace> {
        cursor.tlv(self.code().0.to_be_bytes(), |info| self.write_info(info))
    }

    fn write_info(&self, info: &mut Cursor<'_>) -> Result<(), NoSpace> {
        match *self {
            Self::InvalidStream(stream) => data::write_stream(info, stream),
            Self::MissingParameter(types) => setup::write_missing(info, types),
            Self::StaleCookie { staleness_us } => info.u32(staleness_us),
            Self::OutOfResource
            | Self::InvalidParameter
            | Self::CookieWhileShuttingDown
            | Self::IllegalAsconfAck
            | Self::MissingDtlsSupport
            | Self::NoCommonKeyManagement
            | Self::TieBreakerCollision
            | Self::IncompatibleKeyManagementRoles => Ok(()),
            Self::UnsupportedHmac { hmac_id } => info.u16(hmac_id),
            Self::NoUserData(tsn) => info.u32(tsn.get()),
            Self::UnrecognizedParameters(params) | Self::RestartWithNewAddresses(params) => {
                params.write(info)
            }
            Self::UnresolvableAddress(bytes)
            | Self::UnrecognizedChunk(bytes)
            | Self::UserInitiatedAbort(bytes)
            | Self::ProtocolViolation(bytes)
            | Self::DeleteLastAddress(bytes)
            | Self::ResourceShortage(bytes)
            | Self::DeleteSourceAddress(bytes)
            | Self::NoAuthorization(bytes) => info.put(bytes),
            Self::Unknown(raw) => info.put(raw.info()),
        }
    }
}

/// Iterator over the causes of a chunk, undecoded. It ends after the first error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawCauses<'a>(Tlvs<'a>);

impl<'a> RawCauses<'a> {
    pub(crate) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self(Tlvs::new(bytes, offset))
    }

    /// Iterates over the causes in `bytes`, for causes that a parameter quotes.
    pub const fn parse(bytes: &'a [u8]) -> Self {
        Self::new(bytes, 0)
    }

    /// Returns an iterator over the same causes that decodes them.
    pub const fn decoded(self) -> Causes<'a> {
        Causes(self.0)
    }
}

impl<'a> Iterator for RawCauses<'a> {
    type Item = Result<RawCause<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|tlv| tlv.map(RawCause::from_tlv))
    }
}

impl std::iter::FusedIterator for RawCauses<'_> {}

/// Iterator over the causes of a chunk that decodes each cause when it is reached.
///
/// If the information of a cause is malformed, the iterator returns an error and continues. It ends after a malformed length field.
#[derive(Clone, Debug)]
pub struct Causes<'a>(Tlvs<'a>);

impl<'a> Iterator for Causes<'a> {
    type Item = Result<Cause<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let decode =
            |tlv: Tlv<'a>| RawCause::from_tlv(tlv).decode().map_err(|error| error.shifted(tlv.offset));
        self.0.next().map(|tlv| tlv.and_then(decode))
    }
}

impl std::iter::FusedIterator for Causes<'_> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_cause, tlv};
    use proptest::prelude::*;

    #[test]
    fn unknown_codes_are_read_completely() {
        for code in [0, 14, 0xA5, 0xFFFF] {
            let bytes = tlv(code, b"info");
            let raw = RawCauses::new(&bytes, 0).next().unwrap().unwrap();
            assert_eq!((raw.bytes(), raw.info()), (&bytes[..], &b"info"[..]));
            assert_cause(code, b"info", Cause::Unknown(raw));
        }
    }

    #[test]
    fn known_and_unknown_codes_have_a_name() {
        assert_eq!(CauseCode::NO_USER_DATA.to_string(), "No User Data");
        assert_eq!(format!("{:?}", CauseCode(500)), "CauseCode(cause code 500)");
        let bytes = tlv(12, b"abc");
        let raw = RawCauses::new(&bytes, 0).next().unwrap().unwrap();
        assert_eq!(format!("{raw:?}"), "RawCause(User-Initiated Abort, 3 bytes)");
    }

    proptest! {
        #[test]
        fn reading_random_bytes_terminates(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(RawCauses::new(&bytes, 0).count() <= bytes.len() / 4 + 1);
            prop_assert!(RawCauses::new(&bytes, 0).decoded().count() <= bytes.len() / 4 + 1);
        }
    }
}
