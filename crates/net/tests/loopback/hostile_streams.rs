//! Peers that announce stream control and violate it.

use anabranch_core::time::Span;
use anabranch_net::{AbortReason, CloseReason, Endpoint};
use anabranch_tests::hostile::udp::Socket;
use anabranch_tests::hostile::{Peer, craft};
use anabranch_wire::{DataFlags, DataRepr, Param, RawParam, Ssn, StreamId};

use crate::loopback::rig::{any_port, quick, server, within};

/// Parameter by which endpoints announce stream control.
const ANNOUNCEMENT: &[u8] = b"\xBA\xDC\x00\x10anabranch\x00\x00\x01";

const CONTROL: u32 = 0x6162_0001;

/// Returns the messages of an attack, given the first stream of the peer.
type Attack = fn(u16) -> Vec<Sent>;

/// Message of a hostile peer.
struct Sent {
    stream: u16,
    ssn: u16,
    ppid: u32,
    unordered: bool,
    payload: Vec<u8>,
}

fn data(stream: u16, ssn: u16, bytes: usize) -> Sent {
    Sent { stream, ssn, ppid: 0, unordered: false, payload: vec![6; bytes] }
}

fn report(bytes: &[u8]) -> Sent {
    Sent { stream: 0, ssn: 0, ppid: CONTROL, unordered: true, payload: bytes.to_vec() }
}

fn send(peer: &mut Peer<Socket>, sent: &Sent) {
    let repr = DataRepr {
        flags: DataFlags { beginning: true, ending: true, unordered: sent.unordered, ..DataFlags::default() },
        tsn: peer.next_tsn,
        stream: StreamId::new(sent.stream),
        ssn: Ssn::new(sent.ssn),
        ppid: sent.ppid,
    };
    peer.next_tsn = peer.next_tsn.next();
    let packet = peer.packet(|w| w.data(&repr, &sent.payload));
    peer.send(&packet);
}

/// Opens an association, sends the messages, and returns the reason for its end.
async fn end_after(endpoint: &Endpoint, seed: u64, messages: Attack) -> CloseReason {
    let socket = Socket::new(any_port(66), endpoint.local_addresses()[0]).expect("a socket");
    let mut peer = Peer::new(socket, seed);
    peer.ports = [40_000 + seed as u16, endpoint.sctp_port()];
    peer.params.push(Param::Unknown(RawParam::parse(ANNOUNCEMENT).expect("a parameter")));
    let attacking = std::thread::spawn(move || {
        peer.call().expect("a handshake");
        let own = u16::from(peer.tag < peer.own_tag);
        for sent in messages(own) {
            send(&mut peer, &sent);
            peer.pass(Span::from_millis(1));
        }
        peer.pass(Span::from_millis(100));
        peer.drawn_of(craft::ABORT).count()
    });
    let theirs = within(endpoint.accept()).await.expect("accepted");
    // The streams have no reader.
    let ended = within(theirs.closed()).await.expect_err("it was aborted");
    assert!(attacking.join().expect("it attacks") > 0, "the peer gets an ABORT");
    ended
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_violates_stream_control_is_aborted() {
    let endpoint = server(&[1], quick().stream_control());
    let overdrawn = "message of a stream without credit";
    let not_its_stream = "message of a stream that the peer may not open";
    let malformed = "malformed message of stream control";
    let cases: [(Attack, &str); 6] = [
        (|own| (0..70).map(|ssn| data(own, ssn, 1000)).collect(), overdrawn),
        (|own| vec![data(1 - own, 0, 10)], not_its_stream),
        (|own| vec![Sent { ppid: CONTROL, ..data(own, 0, 1) }], malformed),
        (|_| vec![report(&[3, 0, 0, 1])], malformed),
        (|_| vec![report(&[5, 255, 255])], malformed),
        (
            |own| {
                let finish = Sent { payload: vec![1], ppid: CONTROL, ..data(own, 0, 1) };
                vec![finish, data(own, 1, 10)]
            },
            not_its_stream,
        ),
    ];
    for (seed, (messages, why)) in (1..).zip(cases) {
        let ended = end_after(&endpoint, seed, messages).await;
        assert_eq!(ended, CloseReason::Aborted(AbortReason::Protocol(why)), "case {seed}");
    }
}
