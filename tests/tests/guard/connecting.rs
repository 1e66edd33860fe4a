//! Associations that are opened although paths are dead.

use anabranch_core::time::{Span, Time};
use anabranch_core::{AbortReason, AssociationEvent, Handled, PathState};

use crate::guard::net::{Net, PORT, at, config, ip};
use crate::rig::craft::{INIT, INIT_ACK};

/// Returns a client and a server with an address on each of these networks, of which those below `dead` carry nothing.
fn networks(count: u8, dead: u8) -> Net {
    let mut net = Net::new();
    let addresses = |host| (0..count).map(|n| at(ip(n, host), PORT)).collect::<Vec<_>>();
    net.site(&addresses(1), None);
    net.site(&addresses(9), Some(config()));
    net.loses = Box::new(move |datagram| match datagram.to.ip() {
        std::net::IpAddr::V4(v4) => v4.octets()[2] < dead,
        std::net::IpAddr::V6(_) => false,
    });
    let pairs: Vec<_> = (0..count).map(|n| (ip(n, 1), at(ip(n, 9), PORT))).collect();
    net.connect(0, &pairs, config());
    net
}

fn connected(net: &mut Net) -> Time {
    net.until("connected", |net| net.sites[0].reported(|event| *event == AssociationEvent::Connected) == 1);
    net.now
}

#[test]
fn a_dead_first_path_costs_a_quarter_of_a_second() {
    let mut net = networks(2, 1);
    let took = connected(&mut net).since(Time::ZERO);
    assert!(took < Span::from_millis(300), "{took:?}");
    let mut net = networks(4, 3);
    let took = connected(&mut net).since(Time::ZERO);
    assert!(took < Span::from_secs(1), "{took:?}");
    net.send(0, 20);
    net.read(1, 200_000);
}

#[test]
fn a_path_that_answers_at_once_leaves_the_others_alone() {
    let mut net = networks(4, 0);
    connected(&mut net);
    net.run(Span::from_secs(2));
    assert_eq!(net.log.iter().filter(|datagram| datagram.kind() == INIT).count(), 1);
    assert_eq!(net.sites[0].paths().iter().filter(|path| path.1 == PathState::Active).count(), 4);
}

//= docs/rfc9260.txt#section-3.3.3
//= type=test
//# If such an INIT ACK chunk is received in any state other than CLOSED or COOKIE-WAIT, it SHOULD be discarded silently
//# (see Section 5.2.3).
//= docs/rfc9260.txt#section-5.2.3
//= type=test
//# If an INIT ACK chunk is received by an endpoint in any state other than the COOKIE-WAIT or CLOSED state, the endpoint
//# SHOULD discard the INIT ACK chunk.
#[test]
fn late_answers_affect_no_other_request() {
    let mut net = networks(3, 0);
    // All INITs are answered; the answers are kept back.
    net.loses = Box::new(|datagram| datagram.kind() == INIT_ACK);
    net.run(Span::from_millis(700));
    let answers: Vec<_> = net.log.iter().filter(|datagram| datagram.kind() == INIT_ACK).cloned().collect();
    assert_eq!(answers.len(), 3);
    net.loses = Box::new(|_| false);
    for (index, answer) in answers.iter().enumerate() {
        let handled = net.inject(0, answer.to.ip(), answer.from, &answer.bytes);
        assert!(matches!(handled, Handled::Delivered(_)), "{index}: {handled:?}");
        net.run(Span::from_millis(30));
    }
    let inits: Vec<_> = net.log.iter().filter(|datagram| datagram.kind() == INIT).cloned().collect();
    for init in &inits {
        net.inject(1, init.to.ip(), init.from, &init.bytes);
    }
    net.run(Span::from_secs(2));
    assert_eq!((net.sites[0].ids().len(), net.sites[1].ids().len()), (1, 1));
    assert_eq!(net.sites[1].reported(|event| *event == AssociationEvent::Restarted), 0);
    net.send(0, 20);
    net.read(1, 200_000);
}

#[test]
fn an_init_goes_round_the_paths_once_in_each_time_out() {
    let mut net = networks(3, 3);
    net.run(Span::from_secs(60));
    let inits: Vec<_> = net.log.iter().filter(|datagram| datagram.kind() == INIT).collect();
    let second = |at: &Time| at.since(Time::ZERO) < Span::from_secs(1);
    let first: Vec<_> = inits.iter().filter(|init| second(&init.sent)).map(|init| init.to.ip()).collect();
    assert_eq!(first, [ip(0, 9), ip(1, 9), ip(2, 9)]);
    assert!(inits.len() <= 3 * 5, "{} INITs in fifteen seconds", inits.len());
}

#[test]
fn attempt_ends_after_the_configured_time_of_silence() {
    let mut net = networks(2, 2);
    net.run(Span::from_millis(14_990));
    assert_eq!(net.sites[0].events, []);
    net.run(Span::from_millis(20));
    let ended = AssociationEvent::Aborted(AbortReason::NoAnswer);
    assert_eq!(net.sites[0].reported(|event| *event == ended), 1);
    let mark = net.log.len();
    net.run(Span::from_secs(60));
    assert_eq!(net.log.len(), mark);
}

#[test]
fn endpoint_that_stopped_accepting_refuses_and_continues() {
    let mut net = crate::guard::net::pair();
    net.sites[1].endpoint.stop_accepting();
    let other = net.site(&[at(ip(0, 2), PORT)], None);
    net.connect(other, &[(ip(0, 2), at(ip(0, 9), PORT))], config());
    net.run(Span::from_secs(1));
    let refused = AssociationEvent::Aborted(AbortReason::ByPeer);
    assert_eq!(net.sites[other].reported(|event| *event == refused), 1);
    net.send(0, 20);
    net.read(1, 200_000);
}
