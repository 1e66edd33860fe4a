//! Peers that violate the protocol: raw messages on the streams of an association.

use anabranch_core::SendOptions;
use anabranch_datachannel::{ChannelEvent, CloseCause, Limits, MessageKind, Settings};

use crate::pair::{CLIENT, Pair, SERVER};

const CONTROL: u32 = 50;
const BINARY: u32 = 53;

const LIMITS: Limits = Limits { channels: 3, name_bytes: 16, received_bytes: 1000, sent_bytes: 1 << 20 };

/// DATA_CHANNEL_OPEN of a reliable channel with this label.
fn opening(label: &str) -> Vec<u8> {
    [&[3, 0, 1, 0, 0, 0, 0, 0, 0, label.len() as u8, 0, 0], label.as_bytes()].concat()
}

/// Sends a raw message of the client to the server.
fn send_raw(pair: &mut Pair, stream: u16, ppid: u32, payload: &[u8]) {
    let (now, payload) = (pair.now, payload.to_vec().into());
    let options = SendOptions { stream, ppid, ..SendOptions::default() };
    pair.association(CLIENT).send_at(now, payload, options).expect("it can be sent");
}

fn incoming(id: u16, label: &str) -> ChannelEvent {
    ChannelEvent::Incoming { id, settings: Settings::new(label) }
}

/// Returns the events of a server that receives this message.
fn events_after(stream: u16, ppid: u32, payload: &[u8]) -> Vec<ChannelEvent> {
    let mut pair = Pair::new(LIMITS, 0.0, 1);
    send_raw(&mut pair, stream, ppid, payload);
    pair.run(2);
    pair.take_events(SERVER)
}

#[test]
fn openings_that_violate_the_protocol_open_nothing() {
    assert_eq!(events_after(0, CONTROL, &opening("good")), [incoming(0, "good")]);
    assert_eq!(events_after(1, CONTROL, &opening("a stream of the server")[..]), []);
    assert_eq!(events_after(0, CONTROL, &opening("a label of more than 16 bytes")), []);
    assert_eq!(events_after(0, CONTROL, b"\x03"), []);
    assert_eq!(events_after(0, CONTROL, b"\x09\x00"), []);
    assert_eq!(events_after(0, CONTROL, b"\x02"), []);
    assert_eq!(events_after(0, BINARY, b"no channel"), []);
    assert_eq!(events_after(0, 99, b"unknown kind"), []);
}

#[test]
fn rejected_stream_is_reset() {
    let mut pair = Pair::new(LIMITS, 0.0, 1);
    // The client has a negotiated channel there, which sees the reset.
    pair.add_negotiated(CLIENT, 1).expect("it is free");
    send_raw(&mut pair, 1, CONTROL, &opening("wrong role"));
    pair.run(5);
    let closed = ChannelEvent::Closed { id: 1, cause: CloseCause::Peer };
    assert!(pair.take_events(CLIENT).contains(&closed));
}

#[test]
fn acknowledgement_with_more_bytes_opens_the_channel() {
    let mut pair = Pair::new(LIMITS, 0.0, 1);
    pair.reads[CLIENT] = false;
    let id = pair.open(SERVER, Settings::new("x"));
    send_raw(&mut pair, id, CONTROL, &[2, 0, 0, 0]);
    pair.run(2);
    assert_eq!(pair.take_events(SERVER), [ChannelEvent::Opened(id)]);
}

#[test]
fn second_opening_of_a_channel_closes_it() {
    let mut pair = Pair::new(LIMITS, 0.0, 1);
    let id = pair.open(CLIENT, Settings::new("first"));
    pair.run(1);
    send_raw(&mut pair, id, CONTROL, &opening("second"));
    pair.run(5);
    let events = pair.take_events(SERVER);
    assert_eq!(events.len(), 2, "{events:?}");
    assert!(matches!(events[1], ChannelEvent::Closed { id: 0, cause: CloseCause::Violation(_) }));
}

#[test]
fn channels_above_the_limit_are_refused() {
    let mut pair = Pair::new(LIMITS, 0.0, 1);
    for id in [0, 2, 4, 6, 8] {
        send_raw(&mut pair, id, CONTROL, &opening("more"));
    }
    pair.run(5);
    let opened = [0, 2, 4].map(|id| incoming(id, "more"));
    assert_eq!(pair.take_events(SERVER), opened);
    assert_eq!(pair.channels[SERVER].discarded_messages(), 2);
}

#[test]
fn message_above_the_limit_closes_its_channel_only() {
    let mut pair = Pair::new(LIMITS, 0.0, 1);
    let (large, small) =
        (pair.open(CLIENT, Settings::new("large")), pair.open(CLIENT, Settings::new("small")));
    pair.run(1);
    pair.send(CLIENT, small, MessageKind::Binary, &[1; 1000]);
    pair.send(CLIENT, large, MessageKind::Binary, &[1; 1001]);
    pair.run(5);
    let events = pair.take_events(SERVER);
    let arrived = ChannelEvent::Message { id: small, kind: MessageKind::Binary, payload: vec![1; 1000] };
    assert!(events.contains(&arrived), "{events:?}");
    assert!(matches!(events.last(), Some(ChannelEvent::Closed { id: 0, cause: CloseCause::Violation(_) })));
    assert!(pair.channels[SERVER].settings(small).is_some());
}

#[test]
fn any_messages_leave_bounded_state_and_no_panic() {
    for seed in 0..200 {
        let mut dice = fastrand::Rng::with_seed(seed);
        let mut pair = Pair::new(LIMITS, 0.0, seed);
        for _ in 0..40 {
            let ppid = [50, 50, 50, 51, 53, 56, 57, 0][dice.usize(..8)];
            let mut payload =
                if dice.bool() { opening("any") } else { vec![dice.u8(..4); dice.usize(1..1400)] };
            let at = dice.usize(..payload.len());
            payload[at] = dice.u8(..);
            send_raw(&mut pair, dice.u16(..8), ppid, &payload);
            pair.run(u64::from(dice.bool()));
        }
        pair.run(10);
        let held = (0..16).filter(|id| pair.channels[SERVER].settings(*id).is_some()).count();
        assert!(held <= LIMITS.channels, "seed {seed}: {held} channels");
    }
}
