//! A stranger leaves no state, and only a fresh cookie of this endpoint opens an association.

use anabranch_core::time::Span;
use anabranch_core::{AbortReason, AssociationEvent, Discard, Handled};
use anabranch_wire::{Cause, Chunk, PacketView};

use crate::handshake::data_flows;
use crate::rig::craft::{ABORT, COOKIE_ACK, COOKIE_ECHO, ERROR, INIT, INIT_ACK, fix_checksum, with_tag};
use crate::rig::wires::{Packet, Wires};
use crate::rig::{address, association};

/// Offset of the cookie in a COOKIE-ECHO packet.
const COOKIE: usize = 16;

/// Returns a pair with this cookie lifetime, and the first COOKIE-ECHO between them, which was lost.
fn echo(life: Span) -> (Wires, Packet) {
    let mut config = association("sctp");
    config.profile.cookie_life = life;
    let mut wires = Wires::pair(1, &config);
    wires.loses = Box::new(|p| p.kind() == COOKIE_ECHO);
    wires.connect(0, 1);
    wires.run(Span::from_millis(50));
    let echo = wires.sent(COOKIE_ECHO).remove(0);
    (wires, echo)
}

//= docs/rfc9260.txt#section-5.1
//= type=test
//# After sending an INIT ACK chunk with the State Cookie parameter, "Z" MUST NOT allocate any resources or keep any
//# states for the new association.
//= docs/rfc9260.txt#section-5.1
//= type=test
//# Moreover, "Z" MUST generate and send along with the INIT ACK chunk a State Cookie.
#[test]
fn no_state_is_kept_until_a_cookie_returns() {
    let (mut wires, echo) = echo(Span::from_secs(60));
    assert_eq!(wires.sent(INIT_ACK).len(), 1);
    assert_eq!(wires.nodes[1].count(), 0);
    assert_eq!(wires.nodes[1].endpoint.poll_timeout(), None);
    assert!(matches!(wires.replay(&echo), Handled::New(_)));
    assert_eq!(wires.nodes[1].count(), 1);
    wires.run(Span::from_millis(100));
    data_flows(&mut wires);
}

//= docs/rfc9260.txt#section-5.2.4
//= type=test
//# It SHOULD stop any T1-cookie timer that is running and send a COOKIE ACK chunk.
//= docs/rfc9260.txt#section-8.4
//= type=test
//# 4)  If the packet contains a COOKIE ECHO chunk as the first chunk, it MUST be processed as described in Section 5.1.
#[test]
fn an_echo_that_comes_again_is_acknowledged_and_changes_nothing() {
    let mut wires = Wires::connected(1);
    data_flows(&mut wires);
    let echo = wires.sent(COOKIE_ECHO).remove(0);
    for _ in 0..3 {
        let before = wires.sent(COOKIE_ACK).len();
        assert!(matches!(wires.replay(&echo), Handled::Delivered(_)));
        assert_eq!(wires.sent(COOKIE_ACK).len(), before + 1);
    }
    assert_eq!(wires.nodes[1].count(), 1);
    assert_eq!(wires.nodes[1].times_told(&AssociationEvent::Connected), 1);
    assert!(!wires.nodes[1].reported(&AssociationEvent::Restarted));
    data_flows(&mut wires);
}

#[test]
fn cookie_echo_replayed_after_the_end_is_refused() {
    let mut wires = Wires::connected(1);
    let echo = wires.sent(COOKIE_ECHO).remove(0);
    let now = wires.now;
    wires.nodes[0].only_mut().shutdown(now);
    wires.run(Span::from_secs(1));
    assert!(wires.nodes[1].reported(&AssociationEvent::Closed));
    let closed = wires.nodes[1].endpoint.associations().next().expect("it is not forgotten");
    for forgotten in [false, true] {
        assert!(!forgotten || wires.nodes[1].endpoint.forget(closed));
        assert_eq!(wires.replay(&echo), Handled::Replied);
        let answer = wires.log.last().expect("an answer");
        assert_eq!((answer.kind(), answer.tag(), answer.bytes[13]), (ABORT, echo.tag(), 1));
    }
    // After its lifetime it is too old.
    wires.run(Span::from_secs(60));
    assert_eq!(wires.replay(&echo), Handled::Discarded(Discard::CookieStale));
    assert_eq!(wires.nodes[1].count(), 0);
}

#[test]
fn association_unknown_to_the_peer_ends_at_its_first_answer() {
    let (mut wires, echo) = echo(Span::from_secs(60));
    // The peer ends its attempt before its COOKIE ECHO arrives.
    let now = wires.now;
    wires.nodes[0].only_mut().abort(now);
    wires.run(Span::from_millis(50));
    let old = wires.nodes[0].endpoint.associations().next().expect("it is not forgotten");
    assert!(wires.nodes[0].endpoint.forget(old));
    let Handled::New(new) = wires.replay(&echo) else { panic!("the cookie is valid") };
    wires.run(Span::from_secs(60));
    let gone = AssociationEvent::Aborted(AbortReason::ByPeer);
    assert!(wires.nodes[1].events.contains(&(new, gone)), "{:?}", wires.nodes[1].events);
}

/// Returns a pair with a cookie lifetime of two seconds, after its first COOKIE ECHO has become older than that.
fn connected_long_ago() -> (Wires, Packet) {
    let (mut wires, echo) = echo(Span::from_secs(2));
    wires.loses = Box::new(|_| false);
    wires.replay(&echo);
    wires.run(Span::from_secs(4));
    assert!(wires.nodes.iter().all(|n| n.reported(&AssociationEvent::Connected)));
    (wires, echo)
}

#[test]
fn stale_cookie_of_the_established_association_is_acknowledged() {
    // RFC 9260 section 5.2.4, step 3: with both tags of the association its age does not matter.
    let (mut wires, echo) = connected_long_ago();
    let mark = wires.log.len();
    assert!(matches!(wires.replay(&echo), Handled::Delivered(_)));
    let answers: Vec<u8> = wires.since(mark).iter().flat_map(Packet::kinds).collect();
    assert_eq!(answers, [COOKIE_ACK]);
    data_flows(&mut wires);
}

#[test]
fn stale_restart_cookie_is_reported_and_keeps_the_old_association() {
    let (mut wires, _) = connected_long_ago();
    wires.loses = Box::new(|p| p.kind() == COOKIE_ECHO);
    wires.log.clear();
    wires.replace(0, 7, association("sctp"));
    wires.connect(0, 1);
    wires.run(Span::from_millis(50));
    let echo = wires.sent(COOKIE_ECHO).remove(0);
    wires.run(Span::from_millis(2_500));
    let mark = wires.log.len();
    assert_eq!(wires.replay(&echo), Handled::Discarded(Discard::CookieStale));
    let answers: Vec<u8> = wires.since(mark).iter().flat_map(Packet::kinds).collect();
    assert_eq!(answers, [ERROR]);
    // The cookie is half a second older than the permitted two seconds, plus the transmission time.
    let staleness_us = staleness_us(&wires.since(mark)[0]);
    assert!((500_000..=550_000).contains(&staleness_us), "{staleness_us} µs");
    assert!(!wires.nodes[1].reported(&AssociationEvent::Restarted));
}

/// Returns the Measure of Staleness in an ERROR.
fn staleness_us(packet: &Packet) -> u32 {
    let view = PacketView::parse(&packet.bytes).expect("it is a packet");
    let chunk = view.chunks().next().expect("one chunk").expect("whole");
    let Ok(Chunk::Error(error)) = chunk.decode() else { panic!("it is an ERROR") };
    let cause = error.causes().next().expect("one cause").expect("whole");
    let Cause::StaleCookie { staleness_us } = cause else { panic!("{cause:?}") };
    staleness_us
}

//= docs/rfc9260.txt#section-5.2.6
//= type=test
//# When processing an ERROR chunk with a "Stale Cookie" error cause, an endpoint SHOULD first examine if an association
//# is in the process of being set up, i.e., the association is in the COOKIE-ECHOED state.
#[test]
fn stale_cookie_is_reported_and_the_handshake_restarts() {
    let (mut wires, _) = echo(Span::from_secs(2));
    wires.run(Span::from_secs(4));
    wires.loses = Box::new(|_| false);
    wires.run(Span::from_secs(20));
    assert_eq!(wires.sent(ERROR).len(), 1);
    assert_eq!(wires.nodes[1].endpoint.discards().of(Discard::CookieStale), 1);
    assert_eq!(wires.sent(INIT).len(), 2);
    assert!(wires.nodes.iter().all(|n| n.times_told(&AssociationEvent::Connected) == 1));
    data_flows(&mut wires);
}

#[test]
fn attempt_ends_after_repeated_stale_cookies() {
    let mut config = association("sctp");
    config.profile.cookie_life = Span::ZERO;
    let mut wires = Wires::pair(1, &config);
    wires.connect(0, 1);
    wires.run(Span::from_secs(300));
    assert!(wires.nodes[0].reported(&AssociationEvent::Aborted(AbortReason::NoAnswer)));
    assert!(wires.sent(INIT).len() <= 10, "{} INITs", wires.sent(INIT).len());
}

//= docs/rfc9260.txt#section-4
//= type=test
//# 1)  If the State Cookie in the received COOKIE ECHO chunk is invalid (i.e., failed to pass the integrity check), the
//# receiver MUST silently discard the packet.
//= docs/rfc9260.txt#section-5.1.5
//= type=test
//# If this comparison fails, the SCTP packet, including the COOKIE ECHO chunk and any DATA chunks, MUST be silently
//# discarded.
#[test]
fn a_cookie_with_any_byte_changed_is_dropped_without_an_answer() {
    let (mut wires, echo) = echo(Span::from_secs(60));
    let mark = wires.log.len();
    // The chunk's length excludes its padding, which no seal covers.
    let end = 12 + usize::from(u16::from_be_bytes([echo.bytes[14], echo.bytes[15]]));
    let forgeries = end - COOKIE;
    for at in COOKIE..end {
        let mut forged = echo.clone();
        forged.bytes[at] ^= 0x41;
        fix_checksum(&mut forged.bytes);
        assert_eq!(wires.replay(&forged), Handled::Discarded(Discard::CookieForged), "byte {at}");
    }
    assert_eq!(wires.nodes[1].endpoint.discards().of(Discard::CookieForged), forgeries as u64);
    assert_eq!((wires.nodes[1].count(), wires.since(mark).len()), (0, 0));
    assert!(matches!(wires.replay(&echo), Handled::New(_)));
}

//= docs/rfc9260.txt#section-5.1.5
//= type=test
//# If these values do not match, the packet MUST be silently discarded.
#[test]
fn a_genuine_cookie_under_a_wrong_tag_or_port_is_dropped() {
    let (mut wires, echo) = echo(Span::from_secs(60));
    let wrong_tag = Packet { bytes: with_tag(&echo.bytes, echo.tag() ^ 1), ..echo.clone() };
    let mut wrong_port = echo.clone();
    wrong_port.bytes[1] ^= 1;
    fix_checksum(&mut wrong_port.bytes);
    for packet in [wrong_tag, wrong_port] {
        assert_eq!(wires.replay(&packet), Handled::Discarded(Discard::CookieForged));
    }
    assert_eq!(wires.nodes[1].count(), 0);
}

#[test]
fn a_cookie_that_another_endpoint_sealed_is_dropped() {
    let (mut wires, echo) = echo(Span::from_secs(60));
    let other = wires.add(3, 1, association("sctp"));
    let handled = wires.inject(other, echo.from, address(0, 3), &echo.bytes);
    assert_eq!(handled, Handled::Discarded(Discard::CookieForged));
    assert_eq!(wires.nodes[other].count(), 0);
}

#[test]
fn a_cookie_survives_one_change_of_the_secret() {
    let (mut wires, echo) = echo(Span::from_secs(3600));
    wires.run(Span::from_secs(700));
    assert!(matches!(wires.replay(&echo), Handled::New(_)));
}

#[test]
fn a_cookie_does_not_survive_two_changes_of_the_secret() {
    let (mut wires, echo) = echo(Span::from_secs(3600));
    for _ in 0..2 {
        wires.run(Span::from_secs(700));
        // Any packet lets the endpoint update its time.
        wires.inject(1, address(0, 9), address(0, 2), &[0]);
    }
    assert_eq!(wires.replay(&echo), Handled::Discarded(Discard::CookieForged));
}

//= docs/rfc9260.txt#section-5.1.5
//= type=test
//# If secrets are kept only for a limited amount of time and the secret key to use is not available anymore, the packet
//# containing the COOKIE ECHO chunk MUST be silently discarded.
#[test]
fn a_long_silence_makes_every_old_cookie_worthless() {
    let (mut wires, echo) = echo(Span::from_secs(3600));
    wires.run(Span::from_secs(1300));
    assert_eq!(wires.replay(&echo), Handled::Discarded(Discard::CookieForged));
}
