//! Invalid content of a handshake, and the answers (RFC 9260 sections 3.3.2, 3.3.3, 5.1.2 and 5.2.1).

use std::net::IpAddr;

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, Discard, Handled};
use anabranch_wire::{Cause, Chunk, InitRepr, InitView, PacketView, Param, Tsn};

use crate::handshake::{data_flows, tags};
use crate::rig::craft::{ABORT, COOKIE_ECHO, ERROR, HEARTBEAT_ACK, INIT, INIT_ACK, packet};
use crate::rig::wires::{Packet, Wires};
use crate::rig::{PORT, address, association, endpoint};

const GOOD: InitRepr = InitRepr {
    initiate_tag: 77,
    a_rwnd: 1500,
    outbound_streams: 1,
    inbound_streams: 1,
    initial_tsn: Tsn::new(5),
};

/// Passes node 1 a packet from its peer.
fn inject(wires: &mut Wires, bytes: &[u8]) -> Handled {
    wires.inject(1, address(0, 1), address(0, 2), bytes)
}

/// Returns the causes of an ABORT in their debug format.
fn causes(packet: &Packet) -> Vec<String> {
    let view = PacketView::parse(&packet.bytes).expect("it is a packet");
    let chunk = view.chunks().next().expect("one chunk").expect("whole");
    let Ok(Chunk::Abort(abort)) = chunk.decode() else { panic!("it is an ABORT") };
    abort.causes().map(|cause| format!("{:?}", cause.expect("whole"))).collect()
}

/// Returns the INIT or INIT ACK in a packet.
fn init_in(packet: &Packet) -> InitView<'_> {
    let view = PacketView::parse(&packet.bytes).expect("it is a packet");
    let chunk = view.chunks().next().expect("one chunk").expect("whole");
    match chunk.decode() {
        Ok(Chunk::Init(init) | Chunk::InitAck(init)) => init,
        other => panic!("no INIT or INIT ACK: {other:?}"),
    }
}

//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# A receiver of an INIT chunk with the a_rwnd value set to a value smaller than 1500 MUST discard the packet, SHOULD
//# send a packet in response containing an ABORT chunk and using the Initiate Tag as the Verification Tag, and MUST NOT
//# change the state of any existing association.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# If, for whatever reason, the INIT chunk cannot be processed normally and an ABORT chunk has to be sent in response,
//# the Verification Tag of the packet containing the ABORT chunk MUST be the Initiate Tag of the received INIT chunk, and
//# the T bit of the ABORT chunk has to be set to 0, indicating that the Verification Tag is not reflected.
#[test]
fn init_with_a_window_below_1500_bytes_is_refused_without_effect() {
    let mut wires = Wires::connected(1);
    let before = format!("{:?}", wires.nodes[1].only());
    let narrow = packet(0, |w| w.init(&InitRepr { a_rwnd: 1499, ..GOOD }, []));
    assert_eq!(inject(&mut wires, &narrow), Handled::Replied);
    let abort = wires.log.last().expect("an answer");
    assert_eq!((abort.kinds(), abort.tag(), abort.bytes[13]), (vec![ABORT], 77, 0));
    assert_eq!(causes(abort), [format!("{:?}", Cause::InvalidParameter)]);
    assert_eq!(format!("{:?}", wires.nodes[1].only()), before);
    let stranger = wires.inject(1, address(0, 9), address(0, 2), &packet(0, |w| w.init(&GOOD, [])));
    assert_eq!((stranger, wires.log.last().map(Packet::kind)), (Handled::Replied, Some(INIT_ACK)));
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# The Advertised Receiver Window Credit MUST NOT be smaller than 1500.
//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# The Advertised Receiver Window Credit MUST NOT be smaller than 1500.
#[test]
fn handshake_never_advertises_less_than_1500_bytes() {
    let mut config = association("sctp");
    config.recv_buffer_bytes = 800;
    let mut wires = Wires::pair(1, &config);
    wires.connect_over(0, &[(address(0, 1), address(0, 2))], config);
    wires.run(Span::from_secs(1));
    for kind in [INIT, INIT_ACK] {
        assert_eq!(init_in(&wires.sent(kind)[0]).a_rwnd(), 1500);
    }
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# The receiver of an INIT chunk containing a Host Name Address parameter MUST send an ABORT chunk and MAY include an
//# "Unresolvable Address" error cause.
//= docs/rfc9260.txt#section-3.3.2.1.4
//= type=test
//# The receiver of an INIT chunk or an INIT ACK containing a Host Name Address parameter MUST send an ABORT chunk and MAY
//# include an "Unresolvable Address" error cause.
//= docs/rfc9260.txt#section-5.1.2
//= type=test
//# B)  If there is a Host Name Address parameter present in the received INIT or INIT ACK chunk, the endpoint MUST
//# immediately send an ABORT chunk and MAY include an "Unresolvable Address" error cause to its peer.
//= docs/rfc9260.txt#section-5.1.2
//= type=test
//# The ABORT chunk SHOULD be sent to the source IP address from which the last peer packet was received.
//= docs/rfc9260.txt#section-12.2.4.1
//= type=test
//# Endpoints receiving INIT or INIT ACK chunks containing the Host Name Address parameter MUST send an ABORT chunk in
//# response and MAY include an "Unresolvable Address" error cause.
#[test]
fn an_init_that_names_a_host_is_refused() {
    let mut wires = Wires::pair(1, &association("sctp"));
    let named = packet(0, |w| w.init(&GOOD, [Param::HostNameAddress(b"host.example\0")]));
    assert_eq!(inject(&mut wires, &named), Handled::Replied);
    let abort = wires.log.last().expect("an answer");
    assert_eq!((abort.kinds(), abort.tag(), abort.to), (vec![ABORT], 77, address(0, 1)));
    assert_eq!(causes(abort), [format!("{:?}", Cause::UnresolvableAddress(&[]))]);
    assert_eq!(wires.nodes[1].count(), 0);
}

//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# The value of 0 MUST NOT be used, and the value MUST NOT be greater than the MIS value sent in the INIT chunk.
#[test]
fn an_init_ack_asks_for_no_more_streams_than_the_init_allows() {
    let mut wires = Wires::pair(1, &association("sctp"));
    for (allowed, asked) in [(3, 3), (8, 8), (u16::MAX, 8)] {
        inject(&mut wires, &packet(0, |w| w.init(&InitRepr { inbound_streams: allowed, ..GOOD }, [])));
        let answer = init_in(wires.log.last().expect("an answer")).repr();
        assert_eq!((answer.outbound_streams, answer.inbound_streams), (asked, 8), "{allowed} allowed");
    }
}

/// Returns a node that waits for its INIT ACK, and its initiate tag.
fn caller() -> (Wires, u32) {
    let mut wires = Wires::pair(1, &association("sctp"));
    wires.loses = Box::new(|p| p.kind() == INIT_ACK);
    wires.connect(0, 1);
    wires.run(Span::from_millis(50));
    let tag = init_in(&wires.sent(INIT)[0]).initiate_tag();
    (wires, tag)
}

//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# The receiver of INIT ACK chunks containing a Host Name Address parameter MUST send an ABORT chunk and MAY include an
//# "Unresolvable Address" error cause.
//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# A receiver of an INIT ACK chunk with the a_rwnd value set to a value smaller than 1500 MUST discard the packet, SHOULD
//# send a packet in response containing an ABORT chunk and using the Initiate Tag as the Verification Tag, and MUST NOT
//# change the state of any existing association.
//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# If an endpoint in the COOKIE-WAIT state receives an INIT ACK chunk with the OS value set to 0, it MUST destroy the TCB
//# and SHOULD send an ABORT chunk.
//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# If an endpoint in the COOKIE-WAIT state receives an INIT ACK chunk with the MIS value set to 0, it MUST destroy the
//# TCB and SHOULD send an ABORT chunk.
#[test]
fn invalid_init_ack_ends_the_attempt_with_an_abort() {
    let cookie = Param::StateCookie(b"a cookie");
    let host = Param::HostNameAddress(b"host.example\0");
    let cases: [(InitRepr, &[Param<'_>]); 5] = [
        (InitRepr { outbound_streams: 0, ..GOOD }, &[cookie]),
        (InitRepr { inbound_streams: 0, ..GOOD }, &[cookie]),
        (InitRepr { a_rwnd: 1499, ..GOOD }, &[cookie]),
        (GOOD, &[cookie, host]),
        (GOOD, &[]),
    ];
    for (repr, params) in cases {
        let (mut wires, tag) = caller();
        let ack = packet(tag, |w| w.init_ack(&repr, params.iter().copied()));
        wires.inject(0, address(0, 2), address(0, 1), &ack);
        let abort = wires.log.last().expect("an answer");
        assert_eq!((abort.kinds(), abort.tag(), abort.bytes[13]), (vec![ABORT], 77, 0), "{repr:?}");
        let ended = |e: &AssociationEvent| matches!(e, AssociationEvent::Aborted(AbortReason::Protocol(_)));
        assert!(wires.nodes[0].events.iter().any(|(_, e)| ended(e)), "{repr:?}");
    }
}

//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# If an endpoint in the COOKIE-WAIT state receives an INIT ACK chunk with the Initiate Tag set to 0, it MUST destroy the
//# TCB and SHOULD send an ABORT chunk with the T bit set.
#[test]
fn an_init_ack_without_a_tag_is_answered_by_an_abort_under_our_own() {
    let (mut wires, tag) = caller();
    let ack =
        packet(tag, |w| w.init_ack(&InitRepr { initiate_tag: 0, ..GOOD }, [Param::StateCookie(b"a cookie")]));
    wires.inject(0, address(0, 2), address(0, 1), &ack);
    let abort = wires.log.last().expect("an answer");
    assert_eq!((abort.kinds(), abort.tag(), abort.bytes[13]), (vec![ABORT], tag, 1));
    assert!(wires.nodes[0].only().is_closed());
}

//= docs/rfc9260.txt#section-9.2
//= type=test
//# If a SHUTDOWN chunk is received in the COOKIE-WAIT or COOKIE ECHOED state, the SHUTDOWN chunk SHOULD be silently
//# discarded.
#[test]
fn only_init_ack_and_abort_count_before_the_peer_tag_is_known() {
    let (mut wires, tag) = caller();
    let mark = wires.log.len();
    for bytes in [
        packet(tag, |w| w.heartbeat(b"are you there")),
        packet(tag, |w| w.error([Cause::StaleCookie { staleness_us: 1 }])),
        packet(tag, |w| w.shutdown(Tsn::new(1))),
    ] {
        wires.inject(0, address(0, 2), address(0, 1), &bytes);
    }
    assert_eq!(wires.since(mark), []);
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(3));
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-3.3.6
//= type=test
//# An endpoint MUST send this chunk to its peer endpoint as a response to a HEARTBEAT chunk (see Section 8.3).
//= docs/rfc9260.txt#section-3.3.6
//= type=test
//# Heartbeat Information: variable length This field MUST contain the Heartbeat Info parameter (as defined in Section
//# 3.3.5) of the Heartbeat Request to which this Heartbeat Acknowledgement is responding.
//= docs/rfc9260.txt#section-6.4
//= type=test
//# An endpoint SHOULD transmit reply chunks (e.g., INIT ACK, COOKIE ACK, and HEARTBEAT ACK) in response to control chunks
//# to the same destination transport address from which it received the control chunk to which it is replying.
//= docs/rfc9260.txt#section-8.3
//= type=test
//# A receiver of a HEARTBEAT chunk MUST respond to a HEARTBEAT chunk with a HEARTBEAT ACK chunk after entering the
//# COOKIE-ECHOED state (sender of the INIT chunk) or the ESTABLISHED state (receiver of the INIT chunk), up until
//# reaching the SHUTDOWN-SENT state (sender of the SHUTDOWN chunk) or the SHUTDOWN-ACK-SENT state (receiver of the
//# SHUTDOWN chunk).
//= docs/rfc9260.txt#section-8.3
//= type=test
//# The receiver of the HEARTBEAT chunk SHOULD immediately respond with a HEARTBEAT ACK chunk that contains the Heartbeat
//# Information TLV, together with any other received TLVs, copied unchanged from the received HEARTBEAT chunk.
#[test]
fn a_heartbeat_is_answered_with_its_own_information_where_it_came_from() {
    let mut wires = Wires::connected(2);
    let tag = tags(&wires)[1];
    let mark = wires.log.len();
    wires.inject(1, address(1, 1), address(1, 2), &packet(tag, |w| w.heartbeat(b"any bytes at all")));
    let answer = wires.since(mark)[0].clone();
    assert_eq!((answer.kinds(), answer.from, answer.to), (vec![HEARTBEAT_ACK], address(1, 2), address(1, 1)));
    assert_eq!(&answer.bytes[20..36], b"any bytes at all");
}

//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# Implementation Note: An implementation MUST be prepared to receive an INIT ACK chunk that is quite large (more than
//# 1500 bytes) due to the variable size of the State Cookie and the variable address list.
//= docs/rfc9260.txt#section-3.3.11
//= type=test
//# Cookie: variable size This field MUST contain the exact cookie received in the State Cookie parameter from the
//# previous INIT ACK chunk.
#[test]
fn a_cookie_larger_than_a_packet_of_the_path_is_echoed_byte_for_byte() {
    let (mut wires, tag) = caller();
    let cookie: Vec<u8> = (0..4000_u32).map(|n| n as u8).collect();
    let ack = packet(tag, |w| w.init_ack(&GOOD, [Param::StateCookie(&cookie)]));
    wires.inject(0, address(0, 2), address(0, 1), &ack);
    let echo = wires.log.last().expect("an answer");
    assert_eq!((echo.kinds(), echo.tag()), (vec![COOKIE_ECHO], 77));
    assert_eq!(&echo.bytes[16..], &cookie[..]);
}

//= docs/rfc9260.txt#section-5.2.1
//= type=test
//# If the INIT chunk indicates that a new address has been added to the association, then the entire INIT chunk MUST be
//# discarded, and the state of the existing association SHOULD NOT be changed.
//= docs/rfc9260.txt#section-5.2.1
//= type=test
//# An ABORT chunk SHOULD be sent in a response that MAY include the "Restart of an Association with New Addresses" error
//# cause.
//= docs/rfc9260.txt#section-5.2.1
//= type=test
//# The error SHOULD list the addresses that were added to the restarting association.
#[test]
fn an_init_that_adds_an_address_while_our_cookie_is_on_its_way_is_refused() {
    let mut wires = Wires::pair(1, &association("sctp"));
    wires.loses = Box::new(|p| p.kind() == COOKIE_ECHO);
    wires.connect(0, 1);
    wires.run(Span::from_millis(50));
    let before = format!("{:?}", wires.nodes[0].only());
    let added = [10, 7, 7, 7];
    let init = packet(0, |w| w.init(&GOOD, [Param::Ipv4Address(added.into())]));
    assert_eq!(wires.inject(0, address(0, 2), address(0, 1), &init), Handled::Replied);
    let abort = wires.log.last().expect("an answer");
    assert_eq!((abort.kinds(), abort.tag()), (vec![ABORT], 77));
    assert!(causes(abort)[0].contains("RestartWithNewAddresses"), "{:?}", causes(abort));
    assert!(abort.bytes.windows(4).any(|bytes| bytes == added), "the address is listed");
    assert_eq!(format!("{:?}", wires.nodes[0].only()), before);
    let known = packet(0, |w| w.init(&GOOD, []));
    wires.inject(0, address(0, 2), address(0, 1), &known);
    assert_eq!(wires.log.last().map(Packet::kind), Some(INIT_ACK));
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(3));
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-8.4
//= type=test
//# 1)  If the OOTB packet is to or from a non-unicast address, a receiver SHOULD silently discard the packet.
#[test]
fn packets_from_or_to_a_group_of_hosts_are_dropped_without_an_answer() {
    let mut wires = Wires::pair(1, &association("sctp"));
    let one = address(0, 2);
    let group: IpAddr = [224, 0, 0, 1].into();
    let everybody: IpAddr = [255; 4].into();
    let nobody: IpAddr = [0; 4].into();
    let init = packet(0, |w| w.init(&GOOD, []));
    let ack = packet(9, |w| w.cookie_ack());
    let sack = packet(9, |w| w.sack(&anabranch_wire::SackRepr::default(), [], []));
    for (from, to) in [(group, one), (everybody, one), (nobody, one), (address(0, 1), group)] {
        for bytes in [&init, &ack, &sack] {
            let handled = wires.inject(1, from, to, bytes);
            assert_eq!(handled, Handled::Discarded(Discard::OutOfTheBlue), "{from} to {to}");
        }
    }
    assert_eq!(wires.log, []);
}

//= docs/rfc9260.txt#section-3.3.2.1.2
//= type=test
//# A sender MUST NOT use an IPv4-mapped IPv6 address [RFC4291] but SHOULD instead use an IPv4 Address parameter for an
//# IPv4 address.
#[test]
fn an_ipv4_address_is_listed_as_one_however_the_system_writes_it() {
    let mut wires = Wires::new();
    let config = association("sctp");
    let mapped = |address: IpAddr| match address {
        IpAddr::V4(v4) => IpAddr::V6(v4.to_ipv6_mapped()),
        v6 => v6,
    };
    wires.add(1, 2, config.clone());
    let listed = vec![mapped(address(0, 1)), mapped(address(1, 1))];
    let entropy = [1; 32];
    wires.nodes[0].endpoint =
        anabranch_core::Endpoint::new(wires.now, endpoint(listed, config.clone()), entropy);
    let pairs = [(address(0, 1), address(0, 2))];
    wires.nodes[0].endpoint.connect(wires.now, PORT, &pairs, config).expect("it can be opened");
    wires.drain();
    let init = wires.sent(INIT).remove(0);
    let addresses: Vec<IpAddr> = init_in(&init)
        .params()
        .filter_map(|param| match param {
            Ok(Param::Ipv4Address(v4)) => Some(v4.into()),
            Ok(Param::Ipv6Address(v6)) => Some(v6.into()),
            _ => None,
        })
        .collect();
    assert_eq!(addresses, [address(0, 1), address(1, 1)]);
}

//= docs/rfc9260.txt#section-3.3.2.1.5
//= type=test
//# The value indicating the Host Name Address parameter MUST NOT be used when sending this parameter and MUST be ignored
//# when receiving this parameter.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# The destination IP address of the INIT ACK chunk MUST be set to the source IP address of the INIT chunk to which this
//# INIT ACK chunk is responding.
//= docs/rfc9260.txt#section-5.1.2
//= type=test
//# If an SCTP endpoint lists in the 'Supported Address Types' parameter either IPv4 or IPv6 but uses the other family for
//# sending the packet containing the INIT chunk, or if it also lists addresses of the other family in the INIT chunk,
//# then the address family that is not listed in the 'Supported Address Types' parameter SHOULD also be considered as
//# supported by the receiver of the INIT chunk.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# An endpoint MUST send the INIT ACK chunk to the IP address from which it received the INIT chunk.
//= docs/rfc9260.txt#section-5.1.2
//= type=test
//# The packet containing the INIT ACK chunk MUST be sent to the source address of the packet containing the INIT chunk.
#[test]
fn a_parameter_that_names_address_types_limits_nothing() {
    // RFC 9260 section 5.1.2: the family that an INIT uses counts as supported, listed or not.
    let mut wires = Wires::pair(1, &association("sctp"));
    let types = [anabranch_wire::ParamType::IPV6_ADDRESS, anabranch_wire::ParamType::HOST_NAME_ADDRESS];
    let list = anabranch_wire::List::new(&types);
    inject(&mut wires, &packet(0, |w| w.init(&GOOD, [Param::SupportedAddressTypes(list)])));
    assert_eq!(wires.log.last().map(|p| (p.kind(), p.to)), Some((INIT_ACK, address(0, 1))));
    assert_eq!(wires.sent(ERROR), []);
}
