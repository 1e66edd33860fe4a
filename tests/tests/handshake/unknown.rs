//! Unknown chunks and parameters: their high bits decide on their treatment (RFC 9260 section 3.2).

use anabranch_core::time::Span;
use anabranch_wire::{Cause, Chunk, InitRepr, PacketView, Param, RawParam, Tsn};

use crate::handshake::{data_flows, tags};
use crate::rig::craft::{COOKIE_ECHO, ERROR, HEARTBEAT, HEARTBEAT_ACK, INIT_ACK, fix_checksum, packet, raw};
use crate::rig::wires::{Packet, Wires};
use crate::rig::{address, association};

/// The four pairs of high bits, with `true` if they stop the processing, and `true` if they request a report.
const RULES: [(u8, bool, bool); 4] =
    [(0b00, true, false), (0b01, true, true), (0b10, false, false), (0b11, false, true)];

#[test]
fn unknown_chunk_is_skipped_stopped_and_reported_by_its_type() {
    for (bits, stops, reports) in RULES {
        let mut wires = Wires::connected(1);
        let ours = tags(&wires)[1];
        let unknown = [bits << 6 | 0x2A, 0x55, 0, 7, 1, 2, 3, 0];
        let heartbeat = packet(ours, |w| w.heartbeat(b"are you there"));
        let bytes = raw(ours, &[&unknown[..], &heartbeat[12..]].concat());
        let mark = wires.log.len();
        wires.inject(1, address(0, 1), address(0, 2), &bytes);
        let answers: Vec<u8> = wires.since(mark).iter().flat_map(Packet::kinds).collect();
        assert_eq!(answers.contains(&HEARTBEAT_ACK), !stops, "bits {bits:02b}");
        assert_eq!(answers.contains(&ERROR), reports, "bits {bits:02b}");
        if let Some(error) = wires.since(mark).iter().find(|p| p.kind() == ERROR) {
            assert_eq!(causes(&error.bytes), [format!("{:?}", Cause::UnrecognizedChunk(&unknown[..7]))]);
        }
        data_flows(&mut wires);
    }
}

/// Returns the causes of all ERROR chunks in a packet in their debug format.
fn causes(bytes: &[u8]) -> Vec<String> {
    let view = PacketView::parse(bytes).expect("it is a packet");
    let errors = view.chunks().filter_map(|chunk| match chunk.expect("whole").decode() {
        Ok(Chunk::Error(error)) => Some(error),
        _ => None,
    });
    errors.flat_map(|error| error.causes().map(|cause| format!("{:?}", cause.expect("whole")))).collect()
}

/// Returns an unknown parameter with these high bits.
fn parameter(bits: u8) -> [u8; 8] {
    [bits << 6 | 0x0F, 0x42, 0, 8, 1, 2, 3, 4]
}

//= docs/rfc9260.txt#section-3.2.2
//= type=test
//# If the receiver of an INIT chunk detects unrecognized parameters and has to report them according to Section 3.2.1, it
//# MUST put the "Unrecognized Parameter" parameter(s) in the INIT ACK chunk sent in response to the INIT chunk.
//= docs/rfc9260.txt#section-3.3.3.1.2
//= type=test
//# This parameter is returned to the originator of the INIT chunk when the INIT chunk contains an unrecognized parameter
//# that has a type that indicates it SHOULD be reported to the sender.
#[test]
fn unknown_init_parameter_is_reported_in_init_ack_by_its_type() {
    for (bits, stops, reports) in RULES {
        let (first, second) = (parameter(bits), parameter(0b11));
        let repr = InitRepr {
            initiate_tag: 99,
            a_rwnd: 10_000,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn::new(5),
        };
        let list = [&first, &second].map(|p| Param::Unknown(RawParam::parse(p).expect("a parameter")));
        let mut wires = Wires::pair(1, &association("sctp"));
        let init = packet(0, |w| w.init(&repr, list));
        wires.inject(1, address(0, 1), address(0, 2), &init);
        let answer = wires.sent(INIT_ACK).remove(0);
        let view = PacketView::parse(&answer.bytes).expect("it is a packet");
        let chunk = view.chunks().next().expect("one chunk").expect("whole");
        let Ok(Chunk::InitAck(ack)) = chunk.decode() else { panic!("no INIT ACK") };
        let reported: Vec<Vec<u8>> = ack
            .params()
            .filter_map(|param| match param {
                Ok(Param::UnrecognizedParameter(bytes)) => Some(bytes.to_vec()),
                _ => None,
            })
            .collect();
        let mut expected = Vec::new();
        expected.extend(reports.then(|| first.to_vec()));
        expected.extend((!stops).then(|| second.to_vec()));
        assert_eq!(reported, expected, "bits {bits:02b}");
    }
}

/// Returns an INIT ACK with more parameters at its end.
fn lengthened(ack: &Packet, parameters: &[u8]) -> Packet {
    let mut bytes = [&ack.bytes[..], parameters].concat();
    let length = (bytes.len() - 12) as u16;
    bytes[14..16].copy_from_slice(&length.to_be_bytes());
    fix_checksum(&mut bytes);
    Packet { bytes, ..ack.clone() }
}

//= docs/rfc9260.txt#section-3.2.2
//= type=test
//# If the receiver of any other chunk (e.g., INIT ACK) detects unrecognized parameters and has to report them according
//# to Section 3.2.1, it SHOULD bundle the ERROR chunk containing the "Unrecognized Parameters" error cause with the chunk
//# sent in response (e.g., COOKIE ECHO).
//= docs/rfc9260.txt#section-3.2.2
//= type=test
//# Any time a COOKIE ECHO chunk is sent in a packet, it MUST be the first chunk.
#[test]
fn unknown_init_ack_parameter_is_reported_with_cookie_echo_by_its_type() {
    for (bits, stops, reports) in RULES {
        let (first, second) = (parameter(bits), parameter(0b11));
        let mut wires = Wires::pair(1, &association("sctp"));
        wires.loses = Box::new(|p| p.kind() == INIT_ACK);
        wires.connect(0, 1);
        wires.run(Span::from_millis(50));
        let ack = lengthened(&wires.sent(INIT_ACK)[0], &[first, second].concat());
        wires.replay(&ack);
        let echo = wires.sent(COOKIE_ECHO).remove(0);
        let mut expected = Vec::new();
        expected.extend(reports.then_some(first));
        expected.extend((!stops).then_some(second));
        let expected = if expected.is_empty() { Vec::new() } else { vec![rendered(&expected)] };
        assert_eq!(causes(&echo.bytes), expected, "bits {bits:02b}");
        wires.run(Span::from_secs(1));
        data_flows(&mut wires);
    }
}

/// Returns the debug format of the cause that reports these parameters.
fn rendered(parameters: &[[u8; 8]]) -> String {
    let list: Vec<_> =
        parameters.iter().map(|p| Param::Unknown(RawParam::parse(p).expect("a parameter"))).collect();
    format!("{:?}", Cause::UnrecognizedParameters(anabranch_wire::ParamList::new(&list)))
}

//= docs/rfc9260.txt#section-5.4
//= type=test
//# An endpoint MUST NOT send any chunks to an UNCONFIRMED address, with the following exceptions:
#[test]
fn error_for_an_unconfirmed_source_is_sent_to_a_confirmed_address() {
    let mut wires = Wires::pair(2, &association("sctp"));
    wires.loses = Box::new(|p| p.kind() == HEARTBEAT);
    wires.connect_over(0, &[(address(0, 1), address(0, 2))], association("sctp"));
    wires.run(Span::from_millis(500));
    let ours = tags(&wires)[1];
    let bytes = raw(ours, &[0b01 << 6 | 0x2A, 0x55, 0, 4]);
    for (network, what) in [(0, "confirmed"), (1, "unconfirmed")] {
        let mark = wires.log.len();
        wires.inject(1, address(network, 1), address(network, 2), &bytes);
        let report = wires.since(mark).iter().find(|p| p.kind() == ERROR).expect("a report");
        assert_eq!((report.from, report.to), (address(0, 2), address(0, 1)), "{what}");
    }
}
