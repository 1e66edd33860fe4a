//! Permission to open associations, by listed networks.

use std::net::{IpAddr, SocketAddr};

use anabranch_core::time::Span;
use anabranch_core::{
    AcceptFrom, AssociationEvent, Discard, Guard, Handled, ListedAddresses, Networks, PathState, RateLimit,
};
use anabranch_wire::{InitRepr, Tsn};

use crate::guard::net::{Net, PORT, at, config, ip};
use crate::rig::craft::{ABORT, COOKIE_ECHO, INIT_ACK, SHUTDOWN_COMPLETE, packet, raw};

const DROPPED: Handled = Handled::Discarded(Discard::NotAdmitted);

fn from(networks: &[&str]) -> AcceptFrom {
    let networks = networks.iter().map(|text| text.parse().expect("a network"));
    AcceptFrom::Networks(Networks::new(networks).expect("a list"))
}

fn server() -> SocketAddr {
    at(ip(0, 9), PORT)
}

/// Returns a server that admits 10.0.1.0/24.
fn choosy() -> Net {
    let mut net = Net::new();
    net.choosy_site(&[server()], from(&["10.0.1.0/24"]));
    net
}

fn init(tag: u32) -> Vec<u8> {
    let repr = InitRepr {
        initiate_tag: tag,
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn::new(1),
    };
    // The packet is long enough for any answer.
    packet(0, |w| w.init(&repr, [anabranch_wire::Param::ForwardTsnSupported; 8]))
}

/// Returns the type of the first chunk of each packet that was sent to an address.
fn answers(net: &Net, to: IpAddr) -> Vec<u8> {
    net.log.iter().filter(|datagram| datagram.to.ip() == to).map(|datagram| datagram.kind()).collect()
}

fn count(net: &Net, reason: Discard) -> u64 {
    net.sites[0].endpoint.discards().of(reason)
}

/// Returns the COOKIE ECHO of a client at 10.0.1.1, which the server has not received.
fn cookie_echo(net: &mut Net) -> Vec<u8> {
    let client = net.site(&[at(ip(1, 1), PORT)], None);
    net.loses = Box::new(|datagram| datagram.kind() == COOKIE_ECHO);
    net.connect(client, &[(ip(1, 1), server())], config());
    net.run(Span::from_millis(50));
    let echo = net.log.iter().find(|datagram| datagram.kind() == COOKIE_ECHO).expect("an echo");
    echo.bytes.clone()
}

#[test]
fn an_init_is_answered_up_to_the_edges_of_the_network_and_not_beyond() {
    let mut net = choosy();
    for (source, handled) in [
        (ip(0, 255), DROPPED),
        (ip(1, 0), Handled::Replied),
        (ip(1, 255), Handled::Replied),
        (ip(2, 0), DROPPED),
    ] {
        assert_eq!(net.inject(0, server().ip(), at(source, PORT), &init(7)), handled, "{source}");
        let expected: &[u8] = if handled == DROPPED { &[] } else { &[INIT_ACK] };
        assert_eq!(answers(&net, source), expected, "{source}");
    }
    assert_eq!(count(&net, Discard::NotAdmitted), 2);
}

#[test]
fn mapped_ipv6_sources_are_matched_as_ipv4() {
    let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
    let mut net = Net::new();
    let local = at(address("2001:db8::9"), PORT);
    net.choosy_site(&[local], from(&["2001:db8:1::/48", "10.0.1.0/24"]));
    for (source, handled) in [
        ("2001:db8:1::", Handled::Replied),
        ("2001:db8:1:ffff::1", Handled::Replied),
        ("2001:db8:2::", DROPPED),
        ("2001:db8:0:ffff::1", DROPPED),
        ("::ffff:10.0.1.200", Handled::Replied),
        ("::ffff:10.0.2.1", DROPPED),
        ("::10.0.1.1", DROPPED),
    ] {
        assert_eq!(net.inject(0, local.ip(), at(address(source), PORT), &init(7)), handled, "{source}");
    }
}

#[test]
fn source_that_is_not_admitted_gets_no_answer_to_any_packet() {
    let mut net = choosy();
    let echo = cookie_echo(&mut net);
    net.log.clear();
    let sent = [
        init(7),
        // Zero streams, a tag other than zero, and a truncated INIT: an admitted source receives the cause.
        raw(0, &[1, 0, 0, 20, 0, 0, 0, 1, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 1]),
        raw(5, &[1, 0, 0, 20, 0, 0, 0, 1, 0, 0, 16, 0, 0, 1, 0, 1, 0, 0, 0, 1]),
        raw(0, &[1, 0, 0, 4]),
        echo,
        packet(9, |w| w.cookie_echo(&[1; 60])),
        packet(9, |w| w.heartbeat(b"0123456789abcdef")),
        packet(9, |w| w.shutdown_ack()),
        packet(9, |w| w.shutdown(Tsn::new(1))),
        packet(9, |w| w.abort(false, [])),
    ];
    let stranger = at(ip(2, 1), PORT);
    for (index, bytes) in sent.iter().enumerate() {
        assert_eq!(net.inject(0, server().ip(), stranger, bytes), DROPPED, "packet {index}");
    }
    net.run(Span::from_secs(60));
    assert_eq!(answers(&net, stranger.ip()), []);
    assert_eq!(count(&net, Discard::NotAdmitted), sent.len() as u64);
    assert_eq!(net.sites[0].ids(), []);
    // RFC 9260 section 8.4: an admitted source is answered.
    let admitted = at(ip(1, 2), PORT);
    let heartbeat = packet(9, |w| w.heartbeat(b"0123456789abcdef"));
    assert_eq!(net.inject(0, server().ip(), admitted, &heartbeat), Handled::Replied);
    assert_eq!(answers(&net, admitted.ip()), [ABORT]);
}

#[test]
fn a_cookie_opens_no_association_from_a_source_that_is_not_admitted() {
    let mut net = choosy();
    let echo = cookie_echo(&mut net);
    for (source, opens) in [(ip(2, 1), false), (ip(1, 77), true)] {
        let handled = net.inject(0, server().ip(), at(source, PORT), &echo);
        assert_eq!(matches!(handled, Handled::New(_)), opens, "{source}: {handled:?}");
        assert_eq!(handled == DROPPED, !opens);
    }
}

/// Returns the server of [`choosy`] and a client at 10.0.1.1 and at 10.0.2.1, which is not admitted. The client connects over both
/// addresses, of which the one in network `first` is the primary path.
fn two_homed(first: u8) -> Net {
    let mut net = choosy();
    let second = 3 - first;
    let client = net.site(&[at(ip(1, 1), PORT), at(ip(2, 1), PORT)], None);
    net.connect(client, &[(ip(first, 1), server()), (ip(second, 1), server())], config());
    net.run(Span::from_secs(20));
    net
}

#[test]
fn a_peer_whose_first_address_is_admitted_uses_its_others() {
    for first in [1, 2] {
        let mut net = two_homed(first);
        let connected = |event: &AssociationEvent| *event == AssociationEvent::Connected;
        assert_eq!([0, 1].map(|site| net.sites[site].reported(connected)), [1, 1], "{first} first");
        let mut paths = net.sites[0].paths();
        paths.sort_by_key(|(remote, _)| *remote);
        let both = [1, 2].map(|network| (at(ip(network, 1), PORT), PathState::Active));
        assert_eq!(paths, both, "{first} first");
        net.log.clear();
        for from in [0, 1] {
            net.send(from, 20);
            net.read(1 - from, 200_000);
        }
        let long = |net: &Net, to| net.log.iter().any(|sent| sent.to.ip() == to && sent.bytes.len() > 1000);
        assert!(long(&net, ip(1, 1)) && long(&net, ip(2, 1)), "data goes to both");
    }
}

#[test]
fn a_further_address_needs_the_tag_of_the_association() {
    let mut net = choosy();
    let client = net.site(&[at(ip(1, 1), PORT)], None);
    net.connect(client, &[(ip(1, 1), server())], config());
    net.run(Span::from_secs(1));
    let (further, right) = (at(ip(2, 1), PORT), net.tag_to(server().ip()));
    for tag in (0..32).map(|bit| right ^ (1 << bit)).chain([0, u32::MAX]) {
        let heartbeat = packet(tag, |w| w.heartbeat(b"0123456789abcdef"));
        assert_eq!(net.inject(0, server().ip(), further, &heartbeat), DROPPED);
    }
    assert_eq!(net.sites[0].paths().len(), 1);
    let heartbeat = packet(right, |w| w.heartbeat(b"0123456789abcdef"));
    assert!(matches!(net.inject(0, server().ip(), further, &heartbeat), Handled::Delivered(_)));
    let unproved = net.sites[0].paths().into_iter().find(|(remote, _)| *remote == further);
    assert_eq!(unproved, Some((further, PathState::Unconfirmed)));
}

#[test]
fn address_listed_by_an_admitted_peer_opens_no_association() {
    let mut net = Net::new();
    net.choosy_site(&[server()], from(&["10.0.1.0/24"]));
    let client = net.site(&[at(ip(1, 1), PORT), at(ip(2, 1), PORT)], None);
    let listing = || anabranch_core::AssociationConfig { listed_addresses: ListedAddresses::Use, ..config() };
    net.connect(client, &[(ip(1, 1), server())], listing());
    net.run(Span::from_secs(5));
    assert_eq!(net.sites[0].ids().len(), 1);
    assert_eq!(net.inject(0, server().ip(), at(ip(2, 1), PORT), &init(7)), DROPPED);
}

#[test]
fn association_restarts_from_admitted_sources_only() {
    let mut net = two_homed(1);
    net.log.clear();
    let id = net.sites[0].ids()[0];
    let state = |net: &Net| format!("{:?}", net.sites[0].endpoint.association(id));
    let before = state(&net);
    assert_eq!(net.inject(0, server().ip(), at(ip(2, 1), PORT), &init(7)), DROPPED);
    assert_eq!(answers(&net, ip(2, 1)), []);
    assert!(state(&net) == before);
    assert_eq!(net.inject(0, server().ip(), at(ip(1, 1), PORT), &init(7)), Handled::Replied);
    assert_eq!(answers(&net, ip(1, 1)), [INIT_ACK]);
    // The client restarts, and the path it would try first is the one that is not admitted.
    net.sites.truncate(1);
    // A site's random numbers depend on its index, and the new client needs other ones than the old client.
    net.site(&[at(ip(9, 9), PORT)], None);
    let client = net.site(&[at(ip(1, 1), PORT), at(ip(2, 1), PORT)], None);
    net.connect(client, &[(ip(2, 1), server()), (ip(1, 1), server())], config());
    net.run(Span::from_secs(5));
    assert_eq!(net.sites[0].reported(|event| *event == AssociationEvent::Restarted), 1);
    assert_eq!(net.sites[0].ids(), [id]);
}

#[test]
fn association_ends_gracefully_despite_a_path_unable_to_open_it() {
    for first in [1, 2] {
        let mut net = two_homed(first);
        // The server has finished its part, and the client continues to ask over both paths.
        let mut lost = 0;
        net.loses = Box::new(move |datagram| {
            lost += u32::from(datagram.kind() == SHUTDOWN_COMPLETE);
            datagram.kind() == SHUTDOWN_COMPLETE && lost == 1
        });
        let now = net.now;
        net.sites[0].one().shutdown(now);
        net.run(Span::from_secs(60));
        let answers = net.log.iter().filter(|datagram| datagram.kind() == SHUTDOWN_COMPLETE);
        assert!(answers.count() > 1, "one was lost");
        let closed = |event: &AssociationEvent| *event == AssociationEvent::Closed;
        assert_eq!([0, 1].map(|site| net.sites[site].reported(closed)), [1, 1], "{first} first");
    }
}

#[test]
fn sources_that_are_not_admitted_take_no_share_of_the_limits() {
    let mut net = Net::new();
    let all = RateLimit { per_second: 1, burst: 2 };
    let guard = Guard { per_source: RateLimit { per_second: 1, burst: 1 }, in_all: all };
    net.choosy_guarded_site(&[server()], from(&["10.0.1.0/24"]), guard);
    for n in 0..1000_u16 {
        net.inject(0, server().ip(), at(ip(2, n as u8), n + 1), &init(7));
        net.inject(0, server().ip(), at(ip(2, n as u8), n + 1), &packet(9, |w| w.cookie_echo(&[1; 60])));
    }
    assert_eq!((count(&net, Discard::NotAdmitted), count(&net, Discard::Flood)), (2000, 0));
    assert_eq!(net.inject(0, server().ip(), at(ip(1, 1), PORT), &init(7)), Handled::Replied);
}
