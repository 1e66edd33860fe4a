//! Shared test support: packets with one chunk, one sample of every chunk, and strategies for `proptest`.

use crate::cursor::Cursor;
use crate::{
    AuthRepr, Cause, CauseCode, Chunk, ChunkType, ConfirmationRepr, DataFlags, DataRepr, DtlsKeyManagement,
    ErrorDetectionMethod, GapBlock, Header, IDataRepr, InitRepr, KeyManagementMethod, List, Mid, NoSpace,
    OutgoingReset, PacketView, PacketWriter, Param, ParamList, ParamType, ParseError, ParseErrorKind,
    PlainEnd, RawCauses, RawChunk, RawParam, ReconfigResult, SackRepr, SkippedMid, Ssn, StreamId, Tsn,
};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

pub(crate) const HEADER: Header =
    Header { source_port: 5000, destination_port: 9899, verification_tag: 0x0102_0304 };

/// Returns a packet that contains what `chunks` writes. The buffer is not zeroed, so that unwritten padding is noticed.
pub(crate) fn write(chunks: impl FnOnce(&mut PacketWriter<'_>) -> Result<(), NoSpace>) -> Vec<u8> {
    let mut buf = vec![0xEE; 12 + 65_536];
    let mut packet = PacketWriter::new(&mut buf, HEADER).unwrap();
    chunks(&mut packet).unwrap();
    let len = packet.finish();
    buf.truncate(len);
    buf
}

/// Returns the only chunk of a packet and checks header, checksum and padding.
pub(crate) fn only_chunk(packet: &[u8]) -> RawChunk<'_> {
    assert_eq!(packet.len() % 4, 0);
    let view = PacketView::parse(packet).unwrap();
    assert!(view.checksum_is_valid());
    assert_eq!(view.header(), HEADER);
    let mut chunks = view.chunks();
    let chunk = chunks.next().unwrap().unwrap();
    assert_eq!(chunks.next(), None);
    let padding = &packet[12 + chunk.bytes().len()..];
    assert!(padding.len() < 4 && padding.iter().all(|&byte| byte == 0));
    chunk
}

/// Returns the view of the only chunk of a packet, which must be of this variant.
macro_rules! only {
    ($variant:ident, $packet:expr) => {
        match $crate::testing::only_chunk($packet).decode() {
            Ok($crate::Chunk::$variant(view)) => view,
            other => panic!("not the chunk that was written: {other:?}"),
        }
    };
}
pub(crate) use only;

/// Decodes a chunk of this type, flags and value, and returns only the result.
pub(crate) fn decode(kind: u8, flags: u8, value: &[u8]) -> Result<(), ParseError> {
    let packet = write(|packet| packet.raw_parts(ChunkType(kind), flags, value));
    only_chunk(&packet).decode().map(|_: Chunk<'_>| ())
}

/// Returns the bytes of a parameter or cause with this type and value.
pub(crate) fn tlv(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(4 + value.len()).unwrap();
    [&kind.to_be_bytes()[..], &len.to_be_bytes(), value].concat()
}

/// Checks that the parameter with this type and value decodes to `param`, and that `param` encodes to its bytes.
pub(crate) fn assert_param(kind: u16, value: &[u8], param: Param<'_>) {
    let bytes = tlv(kind, value);
    assert_eq!(RawParam::parse(&bytes).unwrap().decode(), Ok(param));
    assert_eq!(param.kind(), ParamType(kind));
    let mut space = [0xEE; 64];
    let mut cursor = Cursor::new(&mut space);
    param.write(&mut cursor).unwrap();
    let len = cursor.at();
    assert_eq!(space[..len], bytes);
}

/// Returns the error of a malformed parameter with this type and value.
pub(crate) fn param_error(kind: u16, value: &[u8]) -> ParseErrorKind {
    RawParam::parse(&tlv(kind, value)).unwrap().decode().unwrap_err().kind
}

/// Checks that the cause with this code and information decodes to `cause`, and that `cause` encodes to its bytes.
pub(crate) fn assert_cause(code: u16, info: &[u8], cause: Cause<'_>) {
    let bytes = tlv(code, info);
    assert_eq!(RawCauses::new(&bytes, 0).next().unwrap().unwrap().decode(), Ok(cause));
    assert_eq!(cause.code(), CauseCode(code));
    let mut space = [0xEE; 64];
    let mut cursor = Cursor::new(&mut space);
    cause.write(&mut cursor).unwrap();
    let len = cursor.at();
    assert_eq!(space[..len], bytes);
}

/// Returns the error of a malformed cause with this code and information.
pub(crate) fn cause_error(code: u16, info: &[u8]) -> ParseErrorKind {
    RawCauses::new(&tlv(code, info), 0).next().unwrap().unwrap().decode().unwrap_err().kind
}

/// Function that writes one chunk.
pub(crate) type Sample = fn(&mut PacketWriter<'_>) -> Result<(), NoSpace>;

const DATA: DataRepr = DataRepr {
    flags: DataFlags::WHOLE,
    tsn: Tsn::new(0x1122_3344),
    stream: StreamId::new(3),
    ssn: Ssn::new(7),
    ppid: 51,
};

const SACK: SackRepr = SackRepr { cum_tsn: Tsn::new(0x1000), a_rwnd: 0x2_0000, flags: 0 };

const GAPS: [GapBlock; 2] = [GapBlock { start: 2, end: 4 }, GapBlock { start: 6, end: 6 }];

const DUPS: [Tsn; 2] = [Tsn::new(0xFFF), Tsn::new(0x1001)];

const INIT: InitRepr = InitRepr {
    initiate_tag: 0xAABB_CCDD,
    a_rwnd: 0x1_0000,
    outbound_streams: 10,
    inbound_streams: 2048,
    initial_tsn: Tsn::new(0x1000),
};

const INIT_PARAMS: [Param<'static>; 13] = [
    Param::Ipv4Address(Ipv4Addr::new(192, 0, 2, 1)),
    Param::Ipv6Address(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1)),
    Param::CookiePreservative { increment_ms: 1000 },
    Param::SupportedAddressTypes(List::new(&[
        ParamType::IPV4_ADDRESS,
        ParamType::IPV6_ADDRESS,
        ParamType::HOST_NAME_ADDRESS,
    ])),
    Param::EcnCapable,
    Param::ForwardTsnSupported,
    Param::SupportedExtensions(List::new(&[ChunkType::FORWARD_TSN])),
    Param::AdaptationIndication(6),
    Param::ZeroChecksumAcceptable(ErrorDetectionMethod::LOWER_LAYER_DTLS),
    Param::Random(&[9; 32]),
    Param::ChunkList(List::new(&[ChunkType(0xC1), ChunkType(0x80)])),
    Param::HmacAlgorithms(List::new(&[3, 1])),
    Param::DtlsKeyManagement(DtlsKeyManagement {
        tie_breaker: 0x1122_3344,
        client: true,
        server: true,
        restart: false,
        methods: List::new(&[KeyManagementMethod::TLS, KeyManagementMethod::PRE_SHARED]),
    }),
];

const CAUSES: [Cause<'static>; 8] = [
    Cause::InvalidStream(StreamId::new(99)),
    Cause::MissingParameter(List::new(&[ParamType::STATE_COOKIE])),
    Cause::StaleCookie { staleness_us: 1_000_000 },
    Cause::UnresolvableAddress(&[0, 11, 0, 6, b'h', 0]),
    Cause::UnrecognizedChunk(&[0x7F, 0, 0, 5, 1]),
    Cause::UnrecognizedParameters(ParamList::new(&[Param::HostNameAddress(b"x\0"), Param::EcnCapable])),
    Cause::NoUserData(Tsn::new(0x1000)),
    Cause::UnsupportedHmac { hmac_id: 4 },
];

const ASCONF_PARAMS: [Param<'static>; 3] = [
    Param::AddIp { correlation: 1, address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)) },
    Param::DeleteIp { correlation: 2, address: IpAddr::V6(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, 1)) },
    Param::SetPrimary { correlation: 3, address: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)) },
];

/// Cause 0xA0 (deletion of the last address), with the parameter that requested it.
const LAST_ADDRESS: &[u8] = &[0, 0xA0, 0, 20, 0xC0, 2, 0, 16, 0, 0, 0, 2, 0, 5, 0, 8, 192, 0, 2, 2];

const ASCONF_ACK_PARAMS: [Param<'static>; 2] =
    [Param::Success { correlation: 1 }, Param::ErrorCause { correlation: 2, causes: LAST_ADDRESS }];

const RESET_PARAMS: [Param<'static>; 2] = [
    Param::ReconfigResponse {
        response: 0x2000,
        result: ReconfigResult::PERFORMED,
        next_tsns: Some((Tsn::new(1), Tsn::new(2))),
    },
    Param::OutgoingReset(OutgoingReset {
        request: 0x1000,
        response: 0x2000,
        last_tsn: Tsn::new(0x1005),
        streams: List::new(&[StreamId::new(3), StreamId::new(7), StreamId::new(9)]),
    }),
];

const STREAM_PARAMS: [Param<'static>; 4] = [
    Param::AddOutgoingStreams { request: 0x1001, streams: 4 },
    Param::AddIncomingStreams { request: 0x1002, streams: 5 },
    Param::IncomingReset { request: 0x1003, streams: List::new(&[StreamId::new(2)]) },
    Param::SsnTsnReset { request: 0x1004 },
];

const ABORT_CAUSES: [Cause<'static>; 10] = [
    Cause::OutOfResource,
    Cause::InvalidParameter,
    Cause::CookieWhileShuttingDown,
    Cause::RestartWithNewAddresses(ParamList::new(&[Param::Ipv4Address(Ipv4Addr::new(192, 0, 2, 9))])),
    Cause::ProtocolViolation(b"seen"),
    Cause::UserInitiatedAbort(b"reason"),
    Cause::MissingDtlsSupport,
    Cause::NoCommonKeyManagement,
    Cause::TieBreakerCollision,
    Cause::IncompatibleKeyManagementRoles,
];

const CONFIRMATION: ConfirmationRepr = ConfirmationRepr {
    matched: true,
    transcript: [5; 32],
    sent: PlainEnd { tsn: Tsn::new(0x1003), next_ssn: Ssn::new(2) },
    received: PlainEnd { tsn: Tsn::new(0x2001), next_ssn: Ssn::new(1) },
};

const I_DATA: IDataRepr = IDataRepr {
    flags: DataFlags::WHOLE,
    tsn: Tsn::new(0x1001),
    stream: StreamId::new(5),
    mid: Mid::new(0x0102_0304),
    ppid_or_fsn: 0x2A,
};

const SKIPPED_MIDS: [SkippedMid; 2] = [
    SkippedMid { stream: StreamId::new(3), unordered: false, mid: Mid::new(7) },
    SkippedMid { stream: StreamId::new(3), unordered: true, mid: Mid::new(0) },
];

/// Padding, the header of a record of epoch 3, and the shortest ciphertext: a chunk header, the content type and a tag of 16 bytes.
const DTLS_VALUE: [u8; 25] =
    [0, 0x2B, 0x5A, 0xA5, 9, 9, 9, 9, 9, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7];

/// One sample of every chunk type, with values in all fields.
pub(crate) const SAMPLES: [(&str, Sample); 33] = [
    ("data", |packet| packet.data(&DATA, b"payload")),
    ("data-fragment", |packet| {
        let flags = DataFlags { unordered: true, immediate: true, ..DataFlags::default() };
        packet.data(&DataRepr { flags, tsn: DATA.tsn.next(), ..DATA }, b"middle of it")
    }),
    ("init", |packet| packet.init(&INIT, INIT_PARAMS)),
    ("init-ack", |packet| {
        packet
            .init_ack(&INIT, [Param::StateCookie(b"cookie"), Param::UnrecognizedParameter(&[0xFF, 1, 0, 4])])
    }),
    ("sack", |packet| packet.sack(&SACK, GAPS, DUPS)),
    ("sack-bare", |packet| packet.sack(&SackRepr { flags: 3, ..SACK }, [], [])),
    ("nr-sack", |packet| packet.nr_sack(&SACK, GAPS, [GapBlock { start: 8, end: 9 }], DUPS)),
    ("heartbeat", |packet| packet.heartbeat(b"information")),
    ("heartbeat-path-cost", |packet| packet.heartbeat_with_path_cost(b"information", 2)),
    ("heartbeat-ack", |packet| packet.heartbeat_ack(b"information")),
    ("abort", |packet| packet.abort(false, ABORT_CAUSES)),
    ("abort-reflected", |packet| packet.abort(true, [])),
    ("shutdown", |packet| packet.shutdown(Tsn::new(0x1000))),
    ("shutdown-ack", |packet| packet.shutdown_ack()),
    ("shutdown-complete", |packet| packet.shutdown_complete(true)),
    ("error", |packet| packet.error(CAUSES)),
    ("cookie-echo", |packet| packet.cookie_echo(b"cookie")),
    ("cookie-ack", |packet| packet.cookie_ack()),
    ("ecne", |packet| packet.ecne(Tsn::new(0x1000))),
    ("cwr", |packet| packet.cwr(Tsn::new(0x1000))),
    ("forward-tsn", |packet| packet.forward_tsn(Tsn::new(0x1005), [(StreamId::new(3), Ssn::new(7))])),
    ("i-data", |packet| packet.i_data(&I_DATA, b"text")),
    ("i-data-later", |packet| {
        let tsn = I_DATA.tsn.next();
        packet.i_data(&IDataRepr { flags: DataFlags::default(), tsn, ppid_or_fsn: 9, ..I_DATA }, b"text")
    }),
    ("i-forward-tsn", |packet| packet.i_forward_tsn(Tsn::new(0x1005), SKIPPED_MIDS)),
    ("auth", |packet| {
        let pending = packet.auth(AuthRepr { key_id: 0, hmac_id: 3 }, 32)?;
        packet.authenticate(pending, |_| [7; 32]);
        Ok(())
    }),
    ("asconf", |packet| packet.asconf(0x1000, IpAddr::V4(Ipv4Addr::UNSPECIFIED), ASCONF_PARAMS)),
    ("asconf-ack", |packet| packet.asconf_ack(0x1000, ASCONF_ACK_PARAMS)),
    ("re-config", |packet| packet.re_config(RESET_PARAMS)),
    ("re-config-streams", |packet| packet.re_config(STREAM_PARAMS)),
    ("pad", |packet| packet.pad(11)),
    ("dtls", |packet| packet.raw_parts(ChunkType::DTLS, 0, &DTLS_VALUE)),
    ("dtls-restart", |packet| packet.raw_parts(ChunkType::DTLS, 1, &DTLS_VALUE)),
    ("confirmation", |packet| packet.confirmation(&CONFIRMATION)),
];

/// Generates bytes of a length in this range.
pub(crate) fn bytes(len: Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), len)
}

pub(crate) fn tsns() -> impl Strategy<Value = Vec<Tsn>> {
    prop::collection::vec(any::<u32>().prop_map(Tsn::new), 0..40)
}

pub(crate) fn gaps() -> impl Strategy<Value = Vec<GapBlock>> {
    prop::collection::vec(any::<(u16, u16)>().prop_map(|(start, end)| GapBlock { start, end }), 0..40)
}

pub(crate) fn sack_repr() -> impl Strategy<Value = SackRepr> {
    any::<(u32, u32, u8)>().prop_map(|(tsn, a_rwnd, flags)| SackRepr {
        cum_tsn: Tsn::new(tsn),
        a_rwnd,
        flags,
    })
}

/// Leaks the values: parameters and causes borrow, but strategies return owned values. The slices are small.
fn leaked<T>(values: Vec<T>) -> &'static [T] {
    values.leak()
}

fn some_bytes() -> impl Strategy<Value = &'static [u8]> {
    bytes(0..24).prop_map(leaked)
}

fn chunk_types() -> impl Strategy<Value = List<'static, ChunkType>> {
    bytes(0..9).prop_map(|types| List::new(leaked(types.into_iter().map(ChunkType).collect())))
}

fn param_types() -> impl Strategy<Value = List<'static, ParamType>> {
    prop::collection::vec(any::<u16>().prop_map(ParamType), 0..9).prop_map(|types| List::new(leaked(types)))
}

fn streams() -> impl Strategy<Value = List<'static, StreamId>> {
    prop::collection::vec(any::<u16>().prop_map(StreamId::new), 0..9)
        .prop_map(|streams| List::new(leaked(streams)))
}

fn outgoing_reset() -> impl Strategy<Value = Param<'static>> {
    (any::<(u32, u32, u32)>(), streams()).prop_map(|((request, response, tsn), streams)| {
        Param::OutgoingReset(OutgoingReset { request, response, last_tsn: Tsn::new(tsn), streams })
    })
}

fn reconfig_response() -> impl Strategy<Value = Param<'static>> {
    any::<(u32, u32, Option<(u32, u32)>)>().prop_map(|(response, result, tsns)| {
        let next_tsns = tsns.map(|(sender, receiver)| (Tsn::new(sender), Tsn::new(receiver)));
        Param::ReconfigResponse { response, result: ReconfigResult(result), next_tsns }
    })
}

fn key_management() -> impl Strategy<Value = DtlsKeyManagement<'static>> {
    (any::<(u32, bool, bool, bool)>(), bytes(1..6)).prop_map(
        |((tie_breaker, client, server, restart), methods)| {
            let methods = List::new(leaked(methods.into_iter().map(KeyManagementMethod).collect()));
            DtlsKeyManagement { tie_breaker, client, server, restart, methods }
        },
    )
}

/// Generates a whole parameter of a type that the crate does not know.
fn unknown_param() -> impl Strategy<Value = Param<'static>> {
    (0x9000_u16..0xA000, bytes(0..24)).prop_map(|(kind, value)| {
        let ([a, b], [c, d]) = (kind.to_be_bytes(), (4 + value.len() as u16).to_be_bytes());
        let whole = leaked([&[a, b, c, d][..], &value].concat());
        Param::Unknown(RawParam::parse(whole).unwrap())
    })
}

/// Generates any parameter.
pub(crate) fn param() -> impl Strategy<Value = Param<'static>> {
    prop_oneof![
        any::<u32>().prop_map(|address| Param::Ipv4Address(address.into())),
        any::<u128>().prop_map(|address| Param::Ipv6Address(address.into())),
        some_bytes().prop_map(Param::StateCookie),
        some_bytes().prop_map(Param::UnrecognizedParameter),
        any::<u32>().prop_map(|increment_ms| Param::CookiePreservative { increment_ms }),
        some_bytes().prop_map(Param::HostNameAddress),
        param_types().prop_map(Param::SupportedAddressTypes),
        Just(Param::EcnCapable),
        some_bytes().prop_map(Param::Random),
        chunk_types().prop_map(Param::ChunkList),
        prop::collection::vec(any::<u16>(), 0..5)
            .prop_map(|codes| Param::HmacAlgorithms(List::new(leaked(codes)))),
        chunk_types().prop_map(Param::SupportedExtensions),
        key_management().prop_map(Param::DtlsKeyManagement),
        Just(Param::ForwardTsnSupported),
        any::<u32>().prop_map(Param::AdaptationIndication),
        any::<u32>().prop_map(|identifier| Param::ZeroChecksumAcceptable(ErrorDetectionMethod(identifier))),
        any::<(u32, IpAddr)>().prop_map(|(correlation, address)| Param::AddIp { correlation, address }),
        any::<(u32, IpAddr)>().prop_map(|(correlation, address)| Param::DeleteIp { correlation, address }),
        any::<(u32, IpAddr)>().prop_map(|(correlation, address)| Param::SetPrimary { correlation, address }),
        (any::<u32>(), some_bytes())
            .prop_map(|(correlation, causes)| Param::ErrorCause { correlation, causes }),
        any::<u32>().prop_map(|correlation| Param::Success { correlation }),
        outgoing_reset(),
        (any::<u32>(), streams()).prop_map(|(request, streams)| Param::IncomingReset { request, streams }),
        any::<u32>().prop_map(|request| Param::SsnTsnReset { request }),
        reconfig_response(),
        any::<(u32, u16)>().prop_map(|(request, streams)| Param::AddOutgoingStreams { request, streams }),
        any::<(u32, u16)>().prop_map(|(request, streams)| Param::AddIncomingStreams { request, streams }),
        unknown_param(),
    ]
}

fn params() -> impl Strategy<Value = ParamList<'static>> {
    prop::collection::vec(param(), 0..4).prop_map(|params| ParamList::new(leaked(params)))
}

/// Generates any cause except unknown ones.
pub(crate) fn cause() -> impl Strategy<Value = Cause<'static>> {
    prop_oneof![
        any::<u16>().prop_map(|stream| Cause::InvalidStream(StreamId::new(stream))),
        param_types().prop_map(Cause::MissingParameter),
        any::<u32>().prop_map(|staleness_us| Cause::StaleCookie { staleness_us }),
        Just(Cause::OutOfResource),
        some_bytes().prop_map(Cause::UnresolvableAddress),
        some_bytes().prop_map(Cause::UnrecognizedChunk),
        Just(Cause::InvalidParameter),
        params().prop_map(Cause::UnrecognizedParameters),
        any::<u32>().prop_map(|tsn| Cause::NoUserData(Tsn::new(tsn))),
        Just(Cause::CookieWhileShuttingDown),
        params().prop_map(Cause::RestartWithNewAddresses),
        some_bytes().prop_map(Cause::UserInitiatedAbort),
        some_bytes().prop_map(Cause::ProtocolViolation),
        some_bytes().prop_map(Cause::DeleteLastAddress),
        some_bytes().prop_map(Cause::ResourceShortage),
        some_bytes().prop_map(Cause::DeleteSourceAddress),
        Just(Cause::IllegalAsconfAck),
        some_bytes().prop_map(Cause::NoAuthorization),
        any::<u16>().prop_map(|hmac_id| Cause::UnsupportedHmac { hmac_id }),
        Just(Cause::MissingDtlsSupport),
        Just(Cause::NoCommonKeyManagement),
        Just(Cause::TieBreakerCollision),
        Just(Cause::IncompatibleKeyManagementRoles),
    ]
}
