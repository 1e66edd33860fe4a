//! Copies of packets that a real peer has sent.

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Guard, Handled};
use anabranch_tests::duo;
use anabranch_tests::hostile::{Peer, Target, craft};
use anabranch_wire::{DataFlags, DataRepr, PacketView};

/// End of an association.
#[derive(Clone, Copy, Debug)]
enum End {
    Shutdown,
    ShutdownByTheEndpoint,
    Abort,
    AbortByTheEndpoint,
}

const ENDS: [End; 4] = [End::Shutdown, End::ShutdownByTheEndpoint, End::Abort, End::AbortByTheEndpoint];

/// Message of the peer in each association.
const MESSAGE: &[u8] = b"pay Mallory once";

fn target() -> Target {
    target_under("cmt")
}

fn target_under(scheme: &str) -> Target {
    let mut config = duo::config(scheme, "net");
    config.mtu_bytes = 1_200;
    config.mtu_search_up_to_bytes = Some(9_000);
    Target::new(config, Some(Guard::default()), false)
}

fn data(peer: &Peer<Target>) -> Vec<u8> {
    let repr = DataRepr { tsn: peer.next_tsn, flags: DataFlags::WHOLE, ..DataRepr::default() };
    peer.packet(|w| w.data(&repr, MESSAGE))
}

/// Answers the endpoint's SHUTDOWN as a real peer would in its state.
fn part(peer: &mut Peer<Target>) {
    for bytes in peer.pass(Span::from_millis(1)) {
        let answer = match craft::kinds(&bytes).first() {
            Some(&craft::SHUTDOWN) => peer.packet(|w| w.shutdown_ack()),
            Some(&craft::SHUTDOWN_ACK) => peer.packet(|w| w.shutdown_complete(false)),
            _ => continue,
        };
        peer.send(&answer);
    }
}

/// Runs an association that delivers the message; at its end nothing of it remains.
fn live(peer: &mut Peer<Target>, end: End) {
    peer.call().expect("it accepts");
    let message = data(peer);
    peer.send(&message);
    let id = peer.wire.live().expect("an association");
    let now = peer.wire.now;
    match end {
        End::Shutdown => {
            let seen = peer.seen_tsn;
            let shutdown = peer.packet(|w| w.shutdown(seen));
            peer.send(&shutdown);
        }
        End::Abort => {
            let abort = peer.packet(|w| w.abort(false, []));
            peer.send(&abort);
        }
        End::ShutdownByTheEndpoint => {
            peer.wire.endpoint.association_mut(id).expect("it exists").shutdown(now);
        }
        End::AbortByTheEndpoint => peer.wire.endpoint.association_mut(id).expect("it exists").abort(now),
    }
    peer.wire.drain();
    part(peer);
    part(peer);
    peer.wire.forget_closed();
    assert_eq!((peer.wire.associations(), peer.wire.delivered_bytes), (0, MESSAGE.len() as u64), "{end:?}");
}

#[test]
fn replayed_data_of_an_ended_association_is_not_delivered() {
    for end in ENDS {
        for wait in [1, 10, 55, 59, 61, 600] {
            let mut peer = Peer::new(target(), 1);
            live(&mut peer, end);
            let captured: Vec<_> = [craft::COOKIE_ECHO, craft::DATA]
                .map(|kind| peer.sent_of(kind).next().expect("it was sent").clone())
                .into();
            peer.pass(Span::from_secs(wait));
            for _ in 0..3 {
                captured.iter().for_each(|packet| peer.send(packet));
                peer.pass(Span::from_secs(1));
            }
            assert_eq!(peer.wire.associations(), 0, "{end:?}, {wait} s later");
            assert_eq!(peer.wire.delivered_bytes, MESSAGE.len() as u64, "{end:?}, {wait} s later");
        }
    }
}

#[test]
fn replay_after_a_restart_does_not_reopen_the_first_one() {
    let mut peer = Peer::new(target(), 1);
    peer.call().expect("it accepts");
    let first = data(&peer);
    peer.send(&first);
    let echo = peer.sent_of(craft::COOKIE_ECHO).next().expect("it was sent").clone();
    // The peer restarts with other tags, and that association is aborted.
    peer.renew();
    peer.call().expect("it accepts the restart");
    assert_eq!(peer.wire.events.iter().filter(|(_, e)| *e == AssociationEvent::Restarted).count(), 1);
    let abort = peer.packet(|w| w.abort(false, []));
    peer.send(&abort);
    peer.wire.forget_closed();
    assert_eq!(peer.wire.associations(), 0);
    peer.send(&echo);
    peer.send(&first);
    assert_eq!((peer.wire.associations(), peer.wire.delivered_bytes), (0, MESSAGE.len() as u64));
}

#[test]
fn replayed_packets_draw_at_most_three_times_their_length() {
    for end in ENDS {
        let mut peer = Peer::new(target(), 1);
        live(&mut peer, end);
        let captured: Vec<_> = [craft::COOKIE_ECHO, craft::DATA]
            .map(|kind| peer.sent_of(kind).next().expect("it was sent").clone())
            .into();
        peer.pass(Span::from_secs(2));
        let (sent, drawn) = (peer.sent.bytes, peer.drawn.bytes);
        captured.iter().for_each(|packet| peer.send(packet));
        peer.pass(Span::from_secs(120));
        let (sent, drawn) = (peer.sent.bytes - sent, peer.drawn.bytes - drawn);
        assert!(drawn <= 3 * sent, "{end:?}: {drawn} B for {sent} B");
    }
}

#[test]
fn silent_address_after_cookie_echo_gets_three_times_its_bytes() {
    for scheme in ["sctp", "cmt", "cmt-pf", "bonded"] {
        echo_and_be_silent(scheme);
    }
}

fn echo_and_be_silent(scheme: &str) {
    let mut peer = Peer::new(target_under(scheme), 1);
    let cookie = peer.fetch_cookie().expect("a cookie");
    let (sent, drawn) = (peer.sent.bytes, peer.drawn.bytes);
    // An attacker has recorded the packets of a peer that no longer exists.
    let echo = peer.packet(|w| w.cookie_echo(&cookie));
    peer.send(&echo);
    let message = data(&peer);
    peer.send(&message);
    assert!(matches!(peer.wire.handled, Some(Handled::Delivered(_))));
    // The application has much data to send, and the path carries large packets.
    let id = peer.wire.live().expect("an association");
    for _ in 0..20 {
        let association = peer.wire.endpoint.association_mut(id).expect("it exists");
        association.send(vec![1; 1_000].into(), Default::default()).expect("it takes the message");
    }
    peer.wire.drain();
    let came = peer.pass(Span::from_secs(120));
    let longest = came.iter().map(Vec::len).max().unwrap_or(0);
    let (sent, drawn) = (peer.sent.bytes - sent, peer.drawn.bytes - drawn);
    assert!(drawn <= 3 * sent, "{scheme}: {drawn} B for {sent} B");
    assert!(longest <= 64, "{scheme}: {longest} B at once");
    // The association ends, and leaves no state.
    peer.pass(Span::from_secs(3_600));
    peer.wire.forget_closed();
    assert_eq!((peer.wire.associations(), peer.wire.endpoint.poll_timeout()), (0, None), "{scheme}");
}

#[test]
fn the_mtu_is_probed_and_data_flows_once_the_address_has_answered() {
    let mut peer = Peer::new(target(), 1);
    peer.call().expect("it accepts");
    peer.pass(Span::from_millis(10));
    let probes = peer.drawn_of(craft::HEARTBEAT).filter(|bytes| bytes.len() > 1_200);
    assert!(probes.count() > 0, "its MTU is probed");
    let id = peer.wire.live().expect("an association");
    let association = peer.wire.endpoint.association_mut(id).expect("it exists");
    association.send(vec![1; 1_000].into(), Default::default()).expect("it takes the message");
    peer.wire.drain();
    peer.pass(Span::ZERO);
    assert_eq!(peer.drawn_of(craft::DATA).count(), 1);
}

#[test]
fn cookies_of_more_associations_than_are_remembered_open_none_again() {
    // Three hundred in a second and a life of sixty seconds are more than 16,384.
    let mut config = duo::config("sctp", "net");
    config.listed_addresses = anabranch_core::ListedAddresses::Ignore;
    let mut peer = Peer::new(Target::new(config, None, false), 1).forgetful();
    let mut echoes = Vec::new();
    for _ in 0..17_000 {
        peer.renew();
        let cookie = peer.fetch_cookie().expect("a cookie");
        let echo = peer.packet(|w| w.cookie_echo(&cookie));
        peer.send(&echo);
        let abort = peer.packet(|w| w.abort(false, []));
        peer.send(&abort);
        peer.wire.forget_closed();
        assert_eq!(peer.wire.associations(), 0);
        peer.wire.events.clear();
        echoes.push(echo);
        peer.pass(Span::from_millis(3));
    }
    for (index, echo) in echoes.iter().enumerate() {
        let drawn = peer.ask(echo);
        assert_eq!(peer.wire.associations(), 0, "{index}");
        let kind = PacketView::parse(&drawn[0]).expect("a packet").chunks().flatten().next().expect("one");
        // The oldest cookies count as stale, which restarts a real peer's handshake.
        assert!([craft::ABORT, craft::ERROR].contains(&kind.kind().0), "{index}");
    }
}

#[test]
fn ipv6_replays_open_no_association() {
    let config = duo::config("cmt", "net");
    let mut peer = Peer::new(Target::new(config, Some(Guard::default()), true), 1);
    live(&mut peer, End::Abort);
    let captured: Vec<_> = [craft::COOKIE_ECHO, craft::DATA]
        .map(|kind| peer.sent_of(kind).next().expect("it was sent").clone())
        .into();
    let (sent, drawn) = (peer.sent.bytes, peer.drawn.bytes);
    captured.iter().for_each(|packet| peer.send(packet));
    peer.pass(Span::from_secs(120));
    assert_eq!((peer.wire.associations(), peer.wire.delivered_bytes), (0, MESSAGE.len() as u64));
    assert!(peer.drawn.bytes - drawn <= 3 * (peer.sent.bytes - sent));
    // A flood of INITs or of forged cookies from its network does not exclude it.
    for n in 0..2_000_u32 {
        let forged = craft::packet(n, |w| w.cookie_echo(&[3; 90]));
        peer.send(&forged);
        let repr = anabranch_wire::InitRepr { initiate_tag: n + 1, ..peer.init_repr() };
        let init = craft::packet(0, |w| w.init(&repr, []));
        peer.send(&init);
        peer.pass(Span::from_millis(10));
    }
    peer.renew();
    peer.call().expect("it gets in");
}
