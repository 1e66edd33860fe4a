//! Shared functions of the tests of partial reliability.

use anabranch_core::time::Span;
use anabranch_core::{AbandonCause, AssociationEvent, Reliability, Statistics};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::{Packet, Side};
use anabranch_tests::sight;
use anabranch_wire::{Chunk, PacketView};

pub(crate) const A: usize = Side::A as usize;
pub(crate) const B: usize = Side::B as usize;

/// First TSN of both sides.
pub(crate) const FIRST_TSN: u32 = 1_000;

/// Returns a setup with a one-way delay of 25 ms.
pub(crate) fn setup(pairs: usize, scheme: &str) -> Setup {
    Setup::new(pairs, scheme, "rfc9260").with(|config| config.initial_tsn = Some(FIRST_TSN))
}

/// Returns a connected pair with confirmed paths, which keeps all packets.
pub(crate) fn connected(setup: Setup) -> Duo {
    let mut duo = Duo::connected(setup);
    duo.run(Span::from_secs(1));
    duo.kept = Some(Vec::new());
    duo
}

pub(crate) fn lifetime(ms: u64) -> Reliability {
    Reliability::Lifetime(Span::from_millis(ms))
}

pub(crate) fn retransmissions(most: u32) -> Reliability {
    Reliability::MaxRetransmissions(most)
}

/// Sends an ordered message on stream 0 from A.
pub(crate) fn send(duo: &mut Duo, size: usize, reliability: Reliability) {
    send_on(duo, 0, size, reliability);
}

/// Sends an ordered message from A.
pub(crate) fn send_on(duo: &mut Duo, stream: u16, size: usize, reliability: Reliability) {
    let sent = duo.send_limited(Side::A, size, stream, false, reliability);
    sent.expect("there is an association").expect("it takes the message");
}

pub(crate) fn statistics(duo: &Duo, side: usize) -> Statistics {
    duo.nodes[side].association().statistics()
}

/// Returns the abandoned messages that A has reported: context, cause, and `true` if some data had been sent.
pub(crate) fn abandoned(duo: &Duo) -> Vec<(u64, AbandonCause, bool)> {
    let told = duo.nodes[A].told.iter();
    told.filter_map(|event| match *event {
        AssociationEvent::Abandoned { context, cause, sent, .. } => Some((context, cause, sent)),
        _ => None,
    })
    .collect()
}

/// Loses every transmission of these TSNs.
pub(crate) fn lose(lost: Vec<u32>) -> impl FnMut(&Packet) -> bool {
    move |packet| !sight::tsns(packet).iter().any(|tsn| lost.contains(tsn))
}

/// Returns the new cumulative TSN and the streams of a packet's FORWARD-TSN.
pub(crate) fn forward_tsn(packet: &Packet) -> Option<(u32, Vec<(u16, u16)>)> {
    let view = PacketView::parse(&packet.bytes).ok()?;
    view.chunks().flatten().find_map(|chunk| match chunk.decode() {
        Ok(Chunk::ForwardTsn(forward)) => {
            let streams = forward.streams().map(|(stream, ssn)| (stream.get(), ssn.get()));
            Some((forward.new_cum_tsn().get(), streams.collect()))
        }
        _ => None,
    })
}

/// Returns every FORWARD-TSN that was kept.
pub(crate) fn forwards(duo: &Duo) -> Vec<(u32, Vec<(u16, u16)>)> {
    duo.kept.iter().flatten().filter_map(|(_, packet)| forward_tsn(packet)).collect()
}

/// Lets time pass until all other data has arrived and the peer has received the news of abandoned messages.
pub(crate) fn come_to_rest(duo: &mut Duo, within: Span) {
    rest(duo, within);
    // The last FORWARD-TSN may still be in flight, or lost.
    duo.run(Span::from_secs(8));
    assert_eq!(duo.flows[A].passed_without_a_word(), 0);
}

/// Lets time pass until everything that is not abandoned has arrived, and A holds nothing.
pub(crate) fn rest(duo: &mut Duo, within: Span) {
    let at_rest = |duo: &Duo| {
        duo.all_arrived(Side::A) && duo.nodes[A].association().buffered_bytes() == 0 && none_outstanding(duo)
    };
    assert!(duo.run_until(within, at_rest), "{:?}", statistics(duo, A));
}

fn none_outstanding(duo: &Duo) -> bool {
    let facts = duo.nodes[A].association().paths();
    facts.iter().all(|path| path.in_flight.is_zero() && path.lost_unsent.is_zero())
}
