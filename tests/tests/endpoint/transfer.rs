//! Data arrives in both directions, across TSN wraps, and with any size.

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, PathId, SendError};
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::Side;

const SCHEMES: [&str; 4] = ["sctp", "naive-cmt", "cmt", "cmt-pf"];

fn arrives(duo: &mut Duo, from: Side, within: Span) {
    assert!(
        duo.run_until(within, |duo| duo.all_arrived(from)),
        "something is missing: {:?}",
        duo.flows[from.index()]
    );
}

//= docs/rfc9260.txt#section-3.3.2
//= type=test
//# If an INIT chunk is received with all mandatory parameters that are specified for the INIT chunk, then the receiver
//# SHOULD process the INIT chunk and send back an INIT ACK.
//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# If an INIT ACK chunk is received with all mandatory parameters that are specified for the INIT ACK chunk, then the
//# receiver SHOULD process the INIT ACK chunk and send back a COOKIE ECHO chunk.
//= docs/rfc9260.txt#section-3.3.2.1.2
//= type=test
//# If the INIT chunk does not contain any IP Address parameters, the endpoint receiving the INIT chunk MUST use the
//# source address associated with the received IP datagram as its sole destination address for the association.
#[test]
fn a_message_arrives_over_a_new_association() {
    let mut duo = Duo::new(Setup::new(1, "sctp", "rfc9260"));
    duo.connect();
    duo.send_all(Side::A, 100, 1);
    // Two round trips of handshake and half a round trip for the message, which waits from the beginning.
    arrives(&mut duo, Side::A, Span::from_millis(125));
    assert!(duo.nodes.iter().all(|n| n.was_told(&AssociationEvent::Connected)));
}

#[test]
fn a_paths_delivery_rate_is_what_arrived_in_the_time_that_it_took() {
    let mut duo = Duo::connected(Setup::new(1, "sctp", "rfc9260"));
    let acknowledged = |duo: &Duo| duo.nodes[0].association().buffered_bytes() == 0;
    // An acknowledgement ends the idle time.
    duo.send_all(Side::A, 1_000, 1);
    assert!(duo.run_until(Span::from_secs(5), acknowledged));
    // Two chunks of 1,016 B are acknowledged together, one round trip of 50 ms after they left.
    let start = duo.now;
    duo.send_all(Side::A, 1_000, 2);
    assert!(duo.run_until(Span::from_secs(5), acknowledged));
    assert_eq!(duo.now.since(start), Span::from_millis(50));
    let rate = duo.nodes[0].association().paths()[0].delivery_rate.map(|rate| rate.as_bps());
    assert_eq!(rate, Some(2 * 1_016 * 8 * 1_000 / 50));
}

#[test]
fn everything_arrives_both_ways_at_once_under_every_scheme_and_profile() {
    for scheme in SCHEMES {
        for profile in ["rfc9260", "ns2"] {
            let mut duo = Duo::connected(Setup::new(3, scheme, profile));
            for side in Side::BOTH {
                duo.send_all(side, 5_000, 60);
            }
            arrives(&mut duo, Side::A, Span::from_secs(30));
            arrives(&mut duo, Side::B, Span::from_secs(30));
        }
    }
}

//= docs/rfc9260.txt#section-1.6
//= type=test
//# Since the space is finite, all arithmetic dealing with Transmission Sequence Numbers MUST be performed modulo 2^32.
//= docs/rfc9260.txt#section-1.6
//= type=test
//# That is, the next TSN a DATA chunk MUST use after transmitting TSN = 2^32 - 1 is TSN = 0.
//= docs/rfc9260.txt#section-6.5
//= type=test
//# In particular, when the Stream Sequence Number reaches the value 65535, the next Stream Sequence Number MUST be set to
//# 0.
#[test]
fn sequence_numbers_of_both_kinds_wrap_unnoticed() {
    let setup = Setup::new(2, "cmt", "rfc9260").with(|config| {
        config.initial_tsn = Some(u32::MAX - 3);
        config.first_ssn = u16::MAX - 3;
    });
    let mut duo = Duo::connected(setup);
    for side in Side::BOTH {
        duo.send_all(side, 2_000, 20);
    }
    arrives(&mut duo, Side::A, Span::from_secs(10));
    arrives(&mut duo, Side::B, Span::from_secs(10));
}

//= docs/rfc9260.txt#section-6.9
//= type=test
//# If the data receiver runs out of buffer space while still waiting for more fragments to complete the reassembly of the
//# message, it SHOULD dispatch part of its inbound message through a partial delivery API (see Section 11), freeing some
//# of its receive buffer space so that the rest of the message can be received.
#[test]
fn a_message_larger_than_the_receive_buffer_arrives_in_parts() {
    let setup = Setup::new(1, "sctp", "rfc9260").with(|config| config.recv_buffer_bytes = 4_000);
    let mut duo = Duo::connected(setup);
    duo.send_all(Side::A, 50_000, 1);
    arrives(&mut duo, Side::A, Span::from_secs(60));
    let flow = &duo.flows[Side::A.index()];
    assert_eq!((flow.delivered_bytes, flow.delivered_messages), (50_000, 1));
    assert!(duo.nodes[Side::B.index()].association().statistics().peak_held_bytes <= 8_000);
}

#[test]
fn a_chunk_larger_than_the_whole_receive_buffer_arrives() {
    let setup = Setup::new(1, "sctp", "rfc9260").with(|config| {
        config.mtu_bytes = 9_000;
        config.recv_buffer_bytes = 2_000;
    });
    let mut duo = Duo::connected(setup);
    duo.send_all(Side::A, 8_000, 3);
    arrives(&mut duo, Side::A, Span::from_secs(1));
}

#[test]
fn refused_sender_is_notified_of_free_space() {
    let setup = Setup::new(1, "sctp", "rfc9260").with(|config| config.send_buffer_bytes = Some(3_000));
    let mut duo = Duo::connected(setup);
    duo.send_all(Side::A, 2_000, 1);
    let refused = duo.send(Side::A, 2_000, 0, false);
    assert_eq!(refused, Some(Err(SendError::BufferFull { free_bytes: 1_000 })));
    duo.run(Span::from_millis(60));
    assert!(duo.nodes[Side::A.index()].was_told(&AssociationEvent::Writable));
    duo.send_all(Side::A, 2_000, 1);
    arrives(&mut duo, Side::A, Span::from_secs(1));
}

//= docs/rfc9260.txt#section-6.9
//= type=test
//# Instead, if the PMTU has been reduced, then IP fragmentation MUST be used.
#[test]
fn a_chunk_cut_for_a_larger_path_is_sent_again_whole_on_a_smaller_one() {
    // The second path uses IPv6, whose packets hold 20 bytes less. B has taken it out of service, fragments for the first one, and
    // needs it after the first one fails.
    let mut setup = Setup::new(2, "sctp", "rfc9260");
    setup.ipv6 = 0b10;
    let mut duo = Duo::connected(setup);
    let now = duo.now;
    let b = duo.nodes[Side::B.index()].try_association_mut().expect("it is up");
    b.remove_path(now, PathId::new(1)).expect("it has two paths");
    duo.cut(0, true);
    duo.send_all(Side::B, 1_452, 1);
    let (now, local, remote) = (duo.now, duo.setup.address(Side::B, 1), duo.setup.address(Side::A, 1));
    let b = duo.nodes[Side::B.index()].try_association_mut().expect("it is up");
    b.add_path(now, (local, remote)).expect("there is room");
    arrives(&mut duo, Side::B, Span::from_secs(120));
    assert_eq!(duo.reading, [Reading::WhenTold; 2]);
}
