//! Parameters of INIT and INIT ACK, which some error causes contain too (RFC 9260 section 3.2.1).
//!
//! ```text
//!   0               1               2               3
//!  +---------------+---------------+---------------+---------------+
//!  | parameter type                | length, these four included   |
//!  +-------------------------------+-------------------------------+
//!  | value: length - 4 bytes                                       |
//!  +---------------------------------------------------------------+
//! ```

mod add_streams;
mod address;
mod auth;
mod cookie;
mod dtls;
mod extension;
mod reconfig_response;
mod reconfiguration;
mod stream_reset;
mod zero_checksum;

use crate::chunk_type::ChunkType;
use crate::cursor::Cursor;
use crate::error::{NoSpace, ParseError, ParseErrorKind};
use crate::list::{Item, List, item};
use crate::reader::{Reader, TLV_HEADER_LEN, Tlv, Tlvs};
use crate::serial::{StreamId, Tsn};
use crate::unknown::UnknownAction;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use dtls::{DtlsKeyManagement, KeyManagementMethod};
pub use reconfig_response::ReconfigResult;
pub use stream_reset::OutgoingReset;
pub use zero_checksum::ErrorDetectionMethod;

/// Type of a parameter (RFC 9260 section 3.2.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
//= docs/rfc9260.txt#section-3.2.1
//= type=implication
//# Parameter types MUST be unique across all chunks.
//= docs/rfc9260.txt#section-3.2.1
//= type=implication
//# The value '5' then is reserved across all chunks to represent an IPv4 address and MUST NOT be reused with a different
//# meaning in any other chunk.
pub struct ParamType(pub u16);

item!(ParamType, 2, |wire| ParamType(u16::from_be_bytes(wire)), |kind: ParamType| kind.0.to_be_bytes());

macro_rules! param_types {
    ($($(#[$doc:meta])* $name:ident = $value:literal, $text:literal;)*) => {
        impl ParamType {
            $($(#[$doc])* pub const $name: Self = Self($value);)*

            /// Returns the name of the parameter, or `None` if this crate does not know the type.
            pub const fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

param_types! {
    /// Information of a HEARTBEAT (RFC 9260 section 3.3.5). Not used in INIT.
    HEARTBEAT_INFO = 0x0001, "Heartbeat Info";
    /// IPv4 address of the sender (RFC 9260 section 3.3.2.1.1).
    IPV4_ADDRESS = 0x0005, "IPv4 Address";
    /// IPv6 address of the sender (RFC 9260 section 3.3.2.1.2).
    IPV6_ADDRESS = 0x0006, "IPv6 Address";
    /// State cookie (RFC 9260 section 3.3.3.1.1).
    STATE_COOKIE = 0x0007, "State Cookie";
    /// Parameter of the INIT that the sender did not recognize (RFC 9260 section 3.3.3.1.2).
    UNRECOGNIZED_PARAMETER = 0x0008, "Unrecognized Parameter";
    /// Request for a longer cookie lifetime (RFC 9260 section 3.3.2.1.3).
    COOKIE_PRESERVATIVE = 0x0009, "Cookie Preservative";
    /// Host name, which must no longer be sent (RFC 9260 section 3.3.2.1.4).
    HOST_NAME_ADDRESS = 0x000B, "Host Name Address";
    /// Address types that the sender supports (RFC 9260 section 3.3.2.1.5).
    SUPPORTED_ADDRESS_TYPES = 0x000C, "Supported Address Types";
    /// Request to reset streams on which the sender sends (RFC 6525 section 4.1).
    OUTGOING_RESET = 0x000D, "Outgoing SSN Reset Request";
    /// Request to reset streams on which the receiver sends (RFC 6525 section 4.2).
    INCOMING_RESET = 0x000E, "Incoming SSN Reset Request";
    /// Request to reset all streams and both TSNs (RFC 6525 section 4.3).
    SSN_TSN_RESET = 0x000F, "SSN/TSN Reset Request";
    /// Answer to one of these requests (RFC 6525 section 4.4).
    RECONFIG_RESPONSE = 0x0010, "Re-configuration Response";
    /// Request for more streams on which the sender sends (RFC 6525 section 4.5).
    ADD_OUTGOING_STREAMS = 0x0011, "Add Outgoing Streams Request";
    /// Request for more streams on which the receiver sends (RFC 6525 section 4.6).
    ADD_INCOMING_STREAMS = 0x0012, "Add Incoming Streams Request";
    /// Support for ECNE and CWR (RFC 4960 appendix A).
    ECN_CAPABLE = 0x8000, "ECN Capable";
    /// Method by which the sender detects errors in packets with a zero checksum (RFC 9653 section 4).
    ZERO_CHECKSUM_ACCEPTABLE = 0x8001, "Zero Checksum Acceptable";
    /// Random number for AUTH (RFC 4895 section 3.1).
    RANDOM = 0x8002, "Random";
    /// Chunk types that must be authenticated (RFC 4895 section 3.2).
    CHUNK_LIST = 0x8003, "Chunk List";
    /// HMAC algorithms that the sender supports (RFC 4895 section 3.3).
    HMAC_ALGORITHMS = 0x8004, "Requested HMAC Algorithm";
    /// Padding, whose value is ignored (RFC 4820 section 4).
    PADDING = 0x8005, "Padding";
    /// Offer of DTLS chunks and key management methods (draft-ietf-tsvwg-sctp-dtls-chunk).
    DTLS_KEY_MANAGEMENT = 0x8006, "DTLS Key Management";
    /// Extension chunks that the sender supports (RFC 5061 section 4.2.7).
    SUPPORTED_EXTENSIONS = 0x8008, "Supported Extensions";
    /// Cost of the path of a HEARTBEAT, an extension of this implementation. Not used in INIT. The type is unassigned, and other
    /// receivers skip it without a report.
    PATH_COST = 0xBF70, "Path Cost";
    /// Support for FORWARD TSN (RFC 3758 section 3.1).
    FORWARD_TSN_SUPPORTED = 0xC000, "Forward TSN Supported";
    /// Address that the sender adds (RFC 5061 section 4.2.1).
    ADD_IP = 0xC001, "Add IP Address";
    /// Address that the sender deletes (RFC 5061 section 4.2.2).
    DELETE_IP = 0xC002, "Delete IP Address";
    /// Error causes of a rejected ASCONF parameter (RFC 5061 section 4.2.3).
    ERROR_CAUSE = 0xC003, "Error Cause Indication";
    /// Address that the receiver shall use as primary (RFC 5061 section 4.2.4).
    SET_PRIMARY = 0xC004, "Set Primary Address";
    /// Acknowledgement of an ASCONF parameter (RFC 5061 section 4.2.5).
    SUCCESS = 0xC005, "Success Indication";
    /// Indication from the sender's upper layer (RFC 5061 section 4.2.6).
    ADAPTATION_INDICATION = 0xC006, "Adaptation Layer Indication";
}

impl ParamType {
    /// Returns the action of a receiver that does not know this type (RFC 9260 section 3.2.1).
    pub const fn unknown_action(self) -> UnknownAction {
        UnknownAction::of(self.0.to_be_bytes()[0])
    }
}

impl fmt::Display for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "parameter type 0x{:04x}", self.0),
        }
    }
}

impl fmt::Debug for ParamType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ParamType({self})")
    }
}

/// Parameter of a chunk, with its value not decoded yet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawParam<'a> {
    kind: ParamType,
    bytes: &'a [u8],
}

impl<'a> RawParam<'a> {
    /// Parses the parameter at the start of `bytes`, for parameters that a report quotes.
    ///
    /// Empty input is a truncated header. Bytes after the parameter are ignored.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        Tlvs::new(bytes, 0).first().map(Self::from_tlv)
    }

    pub(crate) fn from_tlv(tlv: Tlv<'a>) -> Self {
        let [high, low, _, _] = tlv.header;
        Self { kind: ParamType(u16::from_be_bytes([high, low])), bytes: tlv.bytes }
    }

    /// Returns the parameter type.
    pub const fn kind(&self) -> ParamType {
        self.kind
    }

    /// Returns the value that follows the header, without padding.
    pub fn value(&self) -> &'a [u8] {
        self.bytes.get(TLV_HEADER_LEN..).unwrap_or_default()
    }

    /// Returns the whole parameter with its header and without padding, as reports quote it.
    pub const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Decodes the value according to the type.
    pub fn decode(&self) -> Result<Param<'a>, ParseError> {
        let value = Reader::new(self.value(), TLV_HEADER_LEN);
        let bytes = value.rest();
        Ok(match self.kind {
            ParamType::IPV4_ADDRESS => Param::Ipv4Address(address::read_ipv4(value)?),
            ParamType::IPV6_ADDRESS => Param::Ipv6Address(address::read_ipv6(value)?),
            ParamType::STATE_COOKIE => Param::StateCookie(bytes),
            ParamType::UNRECOGNIZED_PARAMETER => Param::UnrecognizedParameter(bytes),
            ParamType::COOKIE_PRESERVATIVE => {
                Param::CookiePreservative { increment_ms: cookie::read_increment(value)? }
            }
            ParamType::HOST_NAME_ADDRESS => Param::HostNameAddress(bytes),
            ParamType::SUPPORTED_ADDRESS_TYPES => Param::SupportedAddressTypes(list(value)?),
            ParamType::ECN_CAPABLE => value.end().map(|()| Param::EcnCapable)?,
            ParamType::ZERO_CHECKSUM_ACCEPTABLE => Param::ZeroChecksumAcceptable(zero_checksum::read(value)?),
            ParamType::RANDOM => Param::Random(bytes),
            ParamType::CHUNK_LIST => Param::ChunkList(list(value)?),
            ParamType::HMAC_ALGORITHMS => Param::HmacAlgorithms(list(value)?),
            ParamType::DTLS_KEY_MANAGEMENT => Param::DtlsKeyManagement(dtls::read(value)?),
            ParamType::SUPPORTED_EXTENSIONS => Param::SupportedExtensions(list(value)?),
            ParamType::FORWARD_TSN_SUPPORTED => value.end().map(|()| Param::ForwardTsnSupported)?,
            ParamType::ADAPTATION_INDICATION => {
                Param::AdaptationIndication(extension::read_indication(value)?)
            }
            _ => return self.decode_request(value),
        })
    }

    /// Decodes the parameters of RE-CONFIG.
    fn decode_request(&self, value: Reader<'a>) -> Result<Param<'a>, ParseError> {
        match self.kind {
            ParamType::OUTGOING_RESET => stream_reset::read_outgoing(value),
            ParamType::INCOMING_RESET => stream_reset::read_incoming(value),
            ParamType::SSN_TSN_RESET => stream_reset::read_ssn_tsn(value),
            ParamType::RECONFIG_RESPONSE => reconfig_response::read(value),
            ParamType::ADD_OUTGOING_STREAMS => add_streams::read(value)
                .map(|(request, streams)| Param::AddOutgoingStreams { request, streams }),
            ParamType::ADD_INCOMING_STREAMS => add_streams::read(value)
                .map(|(request, streams)| Param::AddIncomingStreams { request, streams }),
            _ => self.decode_reconfiguration(value),
        }
    }

    /// Decodes the parameters of ASCONF and ASCONF-ACK.
    fn decode_reconfiguration(&self, value: Reader<'a>) -> Result<Param<'a>, ParseError> {
        let request = || reconfiguration::read_request(value);
        Ok(match self.kind {
            ParamType::ADD_IP => {
                request().map(|(correlation, address)| Param::AddIp { correlation, address })?
            }
            ParamType::DELETE_IP => {
                request().map(|(correlation, address)| Param::DeleteIp { correlation, address })?
            }
            ParamType::SET_PRIMARY => {
                request().map(|(correlation, address)| Param::SetPrimary { correlation, address })?
            }
            ParamType::ERROR_CAUSE => {
                let mut value = value;
                Param::ErrorCause { correlation: value.u32()?, causes: value.rest() }
            }
            ParamType::SUCCESS => Param::Success { correlation: reconfiguration::read_success(value)? },
            _ => Param::Unknown(*self),
        })
    }
}

/// Returns the address parameter for an address.
pub(crate) const fn address_param<'p>(address: IpAddr) -> Param<'p> {
    match address {
        IpAddr::V4(v4) => Param::Ipv4Address(v4),
        IpAddr::V6(v6) => Param::Ipv6Address(v6),
    }
}

fn list<'a, T: Item>(value: Reader<'a>) -> Result<List<'a, T>, ParseError> {
    List::read(value.rest()).ok_or(value.error(ParseErrorKind::WrongLength))
}

impl fmt::Debug for RawParam<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawParam({}, {} bytes)", self.kind, self.value().len())
    }
}

/// Parameter, as read from a chunk or to be written into one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Param<'a> {
    /// IPv4 address of the sender.
    Ipv4Address(Ipv4Addr),
    /// IPv6 address of the sender.
    Ipv6Address(Ipv6Addr),
    /// State cookie.
    StateCookie(&'a [u8]),
    /// Whole parameter, header included, that the sender did not recognize; see [`RawParam::parse`].
    UnrecognizedParameter(&'a [u8]),
    /// Request for a longer cookie lifetime.
    CookiePreservative {
        /// Requested extension of the lifetime, in milliseconds.
        increment_ms: u32,
    },
    /// Host name. Endpoints reject it without resolving it and never send it; only tests write it.
    HostNameAddress(&'a [u8]),
    /// Address types that the sender supports, as the types of their parameters.
    SupportedAddressTypes(List<'a, ParamType>),
    /// Support for ECNE and CWR.
    EcnCapable,
    /// Method by which the sender detects errors in packets with a zero checksum.
    ZeroChecksumAcceptable(ErrorDetectionMethod),
    /// Random number for AUTH.
    Random(&'a [u8]),
    /// Chunk types that must be authenticated.
    ChunkList(List<'a, ChunkType>),
    /// Identifiers of the HMAC algorithms that the sender supports, in order of preference.
    HmacAlgorithms(List<'a, u16>),
    /// Offer of DTLS chunks and key management methods.
    DtlsKeyManagement(DtlsKeyManagement<'a>),
    /// Extension chunks that the sender supports.
    SupportedExtensions(List<'a, ChunkType>),
    /// Support for FORWARD TSN.
    ForwardTsnSupported,
    /// Indication from the sender's upper layer.
    AdaptationIndication(u32),
    /// Address that the sender adds. All zeros mean the source address of the packet.
    AddIp {
        /// Correlation identifier of the sender, which the answer repeats.
        correlation: u32,
        /// Added address.
        address: IpAddr,
    },
    /// Address that the sender deletes. All zeros mean all addresses except the source address of the packet.
    DeleteIp {
        /// Correlation identifier of the sender, which the answer repeats.
        correlation: u32,
        /// Deleted address.
        address: IpAddr,
    },
    /// Address of the sender that the receiver shall use as primary. All zeros mean the source address of the packet.
    SetPrimary {
        /// Correlation identifier of the sender, which the answer repeats.
        correlation: u32,
        /// Primary address.
        address: IpAddr,
    },
    /// Error causes of a rejected ASCONF parameter.
    ErrorCause {
        /// Correlation identifier of the ASCONF parameter.
        correlation: u32,
        /// Whole causes, headers included; see [`RawCauses::parse`](crate::RawCauses::parse).
        causes: &'a [u8],
    },
    /// Acknowledgement of an ASCONF parameter.
    Success {
        /// Correlation identifier of the ASCONF parameter.
        correlation: u32,
    },
    /// Request to reset streams on which the sender sends.
    OutgoingReset(OutgoingReset<'a>),
    /// Request to reset streams on which the receiver sends.
    IncomingReset {
        /// Sequence number of the request.
        request: u32,
        /// Streams to reset. An empty list means all.
        streams: List<'a, StreamId>,
    },
    /// Request to reset all streams and both TSNs.
    SsnTsnReset {
        /// Sequence number of the request.
        request: u32,
    },
    /// Answer to a request of a RE-CONFIG chunk.
    ReconfigResponse {
        /// Sequence number of the request.
        response: u32,
        /// Result of the request.
        result: ReconfigResult,
        /// Next TSNs of the sender and of the receiver of the answer, in the answer to an SSN/TSN reset.
        next_tsns: Option<(Tsn, Tsn)>,
    },
    /// Request for more streams on which the sender sends.
    AddOutgoingStreams {
        /// Sequence number of the request.
        request: u32,
        /// Number of new streams.
        streams: u16,
    },
    /// Request for more streams on which the receiver sends.
    AddIncomingStreams {
        /// Sequence number of the request.
        request: u32,
        /// Number of new streams.
        streams: u16,
    },
    /// Parameter of a type that this crate does not know; see [`ParamType::unknown_action`].
    Unknown(RawParam<'a>),
}

impl Param<'_> {
    /// Returns the parameter type.
    pub const fn kind(&self) -> ParamType {
        match self {
            Self::Ipv4Address(_) => ParamType::IPV4_ADDRESS,
            Self::Ipv6Address(_) => ParamType::IPV6_ADDRESS,
            Self::StateCookie(_) => ParamType::STATE_COOKIE,
            Self::UnrecognizedParameter(_) => ParamType::UNRECOGNIZED_PARAMETER,
            Self::CookiePreservative { .. } => ParamType::COOKIE_PRESERVATIVE,
            Self::HostNameAddress(_) => ParamType::HOST_NAME_ADDRESS,
            Self::SupportedAddressTypes(_) => ParamType::SUPPORTED_ADDRESS_TYPES,
            Self::EcnCapable => ParamType::ECN_CAPABLE,
            Self::ZeroChecksumAcceptable(_) => ParamType::ZERO_CHECKSUM_ACCEPTABLE,
            Self::Random(_) => ParamType::RANDOM,
            Self::ChunkList(_) => ParamType::CHUNK_LIST,
            Self::HmacAlgorithms(_) => ParamType::HMAC_ALGORITHMS,
            Self::DtlsKeyManagement(_) => ParamType::DTLS_KEY_MANAGEMENT,
            Self::SupportedExtensions(_) => ParamType::SUPPORTED_EXTENSIONS,
            Self::ForwardTsnSupported => ParamType::FORWARD_TSN_SUPPORTED,
            Self::AdaptationIndication(_) => ParamType::ADAPTATION_INDICATION,
            Self::AddIp { .. } => ParamType::ADD_IP,
            Self::DeleteIp { .. } => ParamType::DELETE_IP,
            Self::SetPrimary { .. } => ParamType::SET_PRIMARY,
            Self::ErrorCause { .. } => ParamType::ERROR_CAUSE,
            Self::Success { .. } => ParamType::SUCCESS,
            Self::OutgoingReset(_) => ParamType::OUTGOING_RESET,
            Self::IncomingReset { .. } => ParamType::INCOMING_RESET,
            Self::SsnTsnReset { .. } => ParamType::SSN_TSN_RESET,
            Self::ReconfigResponse { .. } => ParamType::RECONFIG_RESPONSE,
            Self::AddOutgoingStreams { .. } => ParamType::ADD_OUTGOING_STREAMS,
            Self::AddIncomingStreams { .. } => ParamType::ADD_INCOMING_STREAMS,
            Self::Unknown(raw) => raw.kind(),
        }
    }

    /// Writes the parameter alone, without padding, and returns its length. Callers keep a copy of a sent parameter in this form.
    pub fn put(&self, space: &mut [u8]) -> Result<usize, NoSpace> {
        let mut cursor = Cursor::new(space);
        self.write(&mut cursor)?;
        Ok(cursor.at())
    }

    pub(crate) fn write(&self, cursor: &mut Cursor<'_>) -> Result<(), NoSpace> {
        cursor.tlv(self.kind().0.to_be_bytes(), |value| self.write_value(value))
    }

    fn write_value(&self, value: &mut Cursor<'_>) -> Result<(), NoSpace> {
        match *self {
            Self::Ipv4Address(address) => value.put(&address.octets()),
            Self::Ipv6Address(address) => value.put(&address.octets()),
            Self::StateCookie(bytes)
            | Self::UnrecognizedParameter(bytes)
            | Self::HostNameAddress(bytes)
            | Self::Random(bytes) => value.put(bytes),
            Self::CookiePreservative { increment_ms } => value.u32(increment_ms),
            Self::SupportedAddressTypes(types) => value.items(types.iter()).map(drop),
            Self::ChunkList(chunks) | Self::SupportedExtensions(chunks) => {
                value.items(chunks.iter()).map(drop)
            }
            Self::HmacAlgorithms(codes) => value.items(codes.iter()).map(drop),
            Self::DtlsKeyManagement(offer) => dtls::write(value, offer),
            Self::EcnCapable | Self::ForwardTsnSupported => Ok(()),
            Self::AdaptationIndication(indication) => value.u32(indication),
            Self::ZeroChecksumAcceptable(ErrorDetectionMethod(identifier)) => value.u32(identifier),
            Self::AddIp { correlation, address }
            | Self::DeleteIp { correlation, address }
            | Self::SetPrimary { correlation, address } => {
                reconfiguration::write_request(value, correlation, address)
            }
            Self::ErrorCause { correlation, causes } => {
                value.u32(correlation)?;
                value.put(causes)
            }
            Self::Success { correlation } => value.u32(correlation),
            Self::OutgoingReset(reset) => stream_reset::write_outgoing(value, reset),
            Self::IncomingReset { request, streams } => stream_reset::write_incoming(value, request, streams),
            Self::SsnTsnReset { request } => value.u32(request),
            Self::ReconfigResponse { response, result, next_tsns } => {
                reconfig_response::write(value, response, result, next_tsns)
            }
            Self::AddOutgoingStreams { request, streams } | Self::AddIncomingStreams { request, streams } => {
                add_streams::write(value, request, streams)
            }
            Self::Unknown(raw) => value.put(raw.value()),
        }
    }
}

/// Iterator over the parameters of a chunk or cause, undecoded. It ends after the first error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RawParams<'a>(Tlvs<'a>);

impl<'a> RawParams<'a> {
    pub(crate) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self(Tlvs::new(bytes, offset))
    }

    /// Returns an iterator over the same parameters that decodes them.
    pub const fn decoded(self) -> Params<'a> {
        Params(self.0)
    }
}

impl<'a> Iterator for RawParams<'a> {
    type Item = Result<RawParam<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|tlv| tlv.map(RawParam::from_tlv))
    }
}

impl std::iter::FusedIterator for RawParams<'_> {}

/// Iterator over the parameters of a chunk or cause that decodes each parameter when it is reached.
///
/// If the value of a parameter is malformed, the iterator returns an error and continues. It ends after a malformed length field.
#[derive(Clone, Debug)]
pub struct Params<'a>(Tlvs<'a>);

impl<'a> Iterator for Params<'a> {
    type Item = Result<Param<'a>, ParseError>;

    fn next(&mut self) -> Option<Self::Item> {
        let decode =
            |tlv: Tlv<'a>| RawParam::from_tlv(tlv).decode().map_err(|error| error.shifted(tlv.offset));
        self.0.next().map(|tlv| tlv.and_then(decode))
    }
}

impl std::iter::FusedIterator for Params<'_> {}

/// Parameters in an error cause: bytes of a packet if it was read, a slice if it is to be written.
#[derive(Clone, Copy)]
pub struct ParamList<'a>(ParamSource<'a>);

#[derive(Clone, Copy)]
enum ParamSource<'a> {
    Wire(&'a [u8]),
    Typed(&'a [Param<'a>]),
}

impl<'a> ParamList<'a> {
    /// Creates a list for writing.
    pub const fn new(params: &'a [Param<'a>]) -> Self {
        Self(ParamSource::Typed(params))
    }

    pub(crate) const fn read(bytes: &'a [u8]) -> Self {
        Self(ParamSource::Wire(bytes))
    }

    /// Iterates over the parameters in order. Offsets in errors count from the start of the cause.
    pub fn iter(self) -> impl Iterator<Item = Result<Param<'a>, ParseError>> + Clone + use<'a> {
        let (wire, typed): (_, &[_]) = match self.0 {
            ParamSource::Wire(bytes) => (bytes, &[]),
            ParamSource::Typed(params) => (Default::default(), params),
        };
        RawParams::new(wire, TLV_HEADER_LEN).decoded().chain(typed.iter().copied().map(Ok))
    }

    pub(crate) fn write(self, cursor: &mut Cursor<'_>) -> Result<(), NoSpace> {
        match self.0 {
            ParamSource::Wire(bytes) => cursor.put(bytes),
            ParamSource::Typed(params) => params.iter().try_for_each(|param| param.write(cursor)),
        }
    }
}

impl PartialEq for ParamList<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for ParamList<'_> {}

impl fmt::Debug for ParamList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{assert_param, param, tlv};
    use proptest::prelude::*;

    #[test]
    fn unknown_types_are_read_completely() {
        for kind in [0x0001, 0x3FFF, 0x4001, 0x8009, 0xC0DE] {
            let bytes = tlv(kind, b"value");
            let raw = RawParam::parse(&bytes).unwrap();
            assert_eq!((raw.bytes(), raw.value()), (&bytes[..], &b"value"[..]));
            assert_param(kind, b"value", Param::Unknown(raw));
        }
    }

    #[test]
    fn known_and_unknown_types_have_a_name() {
        assert_eq!(ParamType::STATE_COOKIE.to_string(), "State Cookie");
        assert_eq!(format!("{:?}", ParamType(0x4242)), "ParamType(parameter type 0x4242)");
        let bytes = tlv(7, b"abc");
        assert_eq!(format!("{:?}", RawParam::parse(&bytes).unwrap()), "RawParam(State Cookie, 3 bytes)");
    }

    #[test]
    fn a_list_in_a_cause_compares_by_its_parameters() {
        let typed = [Param::EcnCapable, Param::StateCookie(b"a")];
        let wire = ParamList::read(&[0x80, 0, 0, 4, 0, 7, 0, 5, b'a', 0, 0, 0]);
        assert_eq!(wire, ParamList::new(&typed));
        assert_eq!(format!("{wire:?}"), "[Ok(EcnCapable), Ok(StateCookie([97]))]");
        assert_ne!(ParamList::read(&[0x80, 0, 0, 9]), ParamList::new(&[]));
    }

    proptest! {
        #[test]
        fn reading_random_bytes_terminates(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert!(RawParams::new(&bytes, 0).count() <= bytes.len() / 4 + 1);
            prop_assert!(RawParams::new(&bytes, 0).decoded().count() <= bytes.len() / 4 + 1);
        }

        #[test]
        fn too_little_space_for_a_part_is_an_error(param in param(), len in 0_usize..40) {
            let mut space = vec![0; len];
            let mut room = [0; 200];
            let mut whole = Cursor::new(&mut room);
            param.write(&mut whole).unwrap();
            prop_assert_eq!(param.write(&mut Cursor::new(&mut space)).is_ok(), whole.at() <= len);
        }
    }
}
