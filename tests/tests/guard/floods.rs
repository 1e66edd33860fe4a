//! Floods of handshakes from forged addresses.

use std::net::IpAddr;

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Discard, Guard, Handled, RateLimit};
use anabranch_wire::{InitRepr, Tsn};

use crate::guard::net::{Net, PORT, at, config, ip};
use crate::rig::craft::{COOKIE_ECHO, INIT_ACK, cookie_of, packet};

/// A guard that examines a tenth of the flood.
const GUARD: Guard = Guard {
    per_source: RateLimit { per_second: 5, burst: 10 },
    in_all: RateLimit { per_second: 200, burst: 20 },
};

fn init(n: u32) -> Vec<u8> {
    let repr = InitRepr {
        initiate_tag: n + 1,
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn::new(n),
    };
    packet(0, |w| w.init(&repr, []))
}

/// Returns the address of a stranger, spread over the address space.
fn stranger(n: u32) -> IpAddr {
    IpAddr::from((0x0B00_0000 + n.wrapping_mul(2_654_435_761) % 0x7000_0000).to_be_bytes())
}

#[test]
fn clients_get_through_a_flood_of_forged_inits_and_cookies() {
    let mut net = Net::new();
    let server = at(ip(0, 9), PORT);
    net.guarded_site(&[server], Some(config()), GUARD);
    let clients = 1..=5_u8;
    let call = |net: &mut Net, client: u8| {
        net.connect(usize::from(client), &[(ip(1, client), server)], config());
    };
    for client in clients.clone() {
        net.site(&[at(ip(1, client), PORT)], None);
        call(&mut net, client);
    }
    // The flood has two thousand of each in a second, at times independent of those of the clients.
    let (mut dice, mut n) = (1_u64, 0);
    let mut waiting: Vec<u8> = clients.collect();
    while !waiting.is_empty() {
        assert!(n < 1_000_000, "{waiting:?} are still waiting after {:?}", net.now);
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        net.run(Span::from_nanos((dice >> 33) % 1_000_000));
        net.inject(0, server.ip(), at(stranger(n), 1), &init(n));
        net.inject(0, server.ip(), at(stranger(n), 2), &packet(n, |w| w.cookie_echo(&[1; 60])));
        net.log.clear();
        n += 1;
        waiting.retain(|client| {
            net.sites[usize::from(*client)].reported(|event| *event == AssociationEvent::Connected) == 0
        });
        for &client in &waiting {
            // A client whose association was aborted connects again.
            let site = &mut net.sites[usize::from(client)];
            if site.reported(|event| matches!(event, AssociationEvent::Aborted(_))) > 0 {
                site.events.clear();
                call(&mut net, client);
            }
        }
    }
    let discards = net.sites[0].endpoint.discards();
    assert!(discards.of(Discard::Flood) > 1000, "{discards:?}");
    assert!(net.sites[0].ids().len() >= 5);
}

#[test]
fn flood_of_one_source_affects_no_other() {
    let mut net = Net::new();
    let server = at(ip(0, 9), PORT);
    net.guarded_site(&[server], Some(config()), GUARD);
    let client = net.site(&[at(ip(1, 1), PORT)], None);
    for n in 0..1000 {
        net.inject(0, server.ip(), at(ip(7, 7), n as u16 + 1), &init(n));
    }
    // A source has ten of its own, and after those by chance some of the ten for all sources.
    let refused = net.sites[0].endpoint.discards().of(Discard::Flood);
    assert!((980..990).contains(&refused), "{refused}");
    net.connect(client, &[(ip(1, 1), server)], config());
    net.run(Span::from_millis(100));
    assert_eq!(net.sites[client].reported(|event| *event == AssociationEvent::Connected), 1);
}

/// Opens an association from `from`; the COOKIE ECHO may name another source. Returns `false` if there is no place.
fn open(net: &mut Net, from: std::net::SocketAddr, named: std::net::SocketAddr, n: u32) -> bool {
    net.inject(0, ip(0, 9), from, &init(n));
    let Some(answer) = net.log.drain(..).find(|datagram| datagram.kind() == INIT_ACK) else { return false };
    let tag = u32::from_be_bytes(answer.bytes[16..20].try_into().expect("4"));
    let echo = packet(tag, |w| w.cookie_echo(&cookie_of(&answer.bytes).expect("a cookie")));
    let handled = net.inject(0, ip(0, 9), named, &echo);
    net.log.clear();
    matches!(handled, Handled::New(_))
}

/// The test covers the 64 places of a host, and those that a flood leaves.
#[test]
fn one_source_leaves_places_of_a_host_to_others() {
    let unlimited = RateLimit { per_second: 1_000_000, burst: 1_000_000 };
    let guard = Guard { per_source: unlimited, in_all: unlimited };
    let mut net = Net::new();
    net.guarded_site(&[at(ip(0, 9), PORT)], Some(config()), guard);
    let source = |host: u8, n: u32| at(ip(7, host), 1_000 + n as u16);
    let mut number = 0..;
    let mut flood = |net: &mut Net, host: u8, named: u8| {
        let ports = number.by_ref().take(100);
        ports.filter(|&n| open(net, source(host, n), source(named, n), n)).count()
    };
    // A source has at most eight places for each free one. Another source in the COOKIE ECHO changes nothing.
    assert_eq!(flood(&mut net, 1, 2), 57);
    assert_eq!(flood(&mut net, 1, 3), 0);
    assert_eq!(flood(&mut net, 2, 2), 7);
    assert_eq!(net.sites[0].ids().len(), 64);
}

/// Returns a server, a client whose COOKIE ECHO is lost, and that packet.
fn held_back(guard: Guard) -> (Net, Vec<u8>) {
    let mut net = Net::new();
    let server = at(ip(0, 9), PORT);
    net.guarded_site(&[server], Some(config()), guard);
    let client = net.site(&[at(ip(1, 1), PORT)], None);
    net.loses = Box::new(|datagram| datagram.kind() == COOKIE_ECHO);
    net.connect(client, &[(ip(1, 1), server)], config());
    net.run(Span::from_millis(50));
    let echo = net.log.iter().find(|datagram| datagram.kind() == COOKIE_ECHO).expect("an echo").bytes.clone();
    (net, echo)
}

#[test]
fn genuine_cookie_is_accepted_despite_forgeries_of_its_sender() {
    let (mut net, echo) = held_back(Guard::default());
    // The attacker has a genuine cookie of its own, and changes it in every way or sends it unchanged.
    let own = init(77);
    net.inject(0, ip(0, 9), at(ip(7, 7), 7), &own);
    let answer = net.log.iter().rfind(|datagram| datagram.kind() == INIT_ACK).expect("a cookie").clone();
    let cookie = cookie_of(&answer.bytes).expect("a cookie");
    let victim = at(ip(1, 1), PORT);
    for n in 0..20_000_u32 {
        let mut forged = cookie.clone();
        let at = n as usize % forged.len();
        forged[at] ^= (n >> 8) as u8;
        let tag =
            if n % 2 == 0 { n } else { u32::from_be_bytes(answer.bytes[16..20].try_into().expect("4")) };
        let handled = net.inject(0, ip(0, 9), victim, &packet(tag, |w| w.cookie_echo(&forged)));
        assert!(!matches!(handled, Handled::New(_)) || forged == cookie, "{n}");
        net.log.clear();
    }
    let discards = net.sites[0].endpoint.discards();
    // The cookie's own share limits the number of verifications of copies with only another HMAC.
    let (forged, limited) = (discards.of(Discard::CookieForged), discards.of(Discard::Flood));
    assert!(forged > 15_000 && limited > 1_000 && forged + limited > 19_900, "{discards:?}");
    assert!(matches!(net.inject(0, ip(0, 9), victim, &echo), Handled::New(_)));
}

#[test]
fn repeated_cookie_is_not_always_opened_and_delays_no_other() {
    let (mut net, echo) = held_back(Guard::default());
    // The attacker sends a hundred copies of its own cookie each second, with any source.
    let own = init(77);
    net.inject(0, ip(0, 9), at(ip(7, 7), 7), &own);
    let answer = net.log.iter().rfind(|datagram| datagram.kind() == INIT_ACK).expect("a cookie").clone();
    let tag = u32::from_be_bytes(answer.bytes[16..20].try_into().expect("4"));
    let copy = packet(tag, |w| w.cookie_echo(&cookie_of(&answer.bytes).expect("a cookie")));
    for n in 0..1_000 {
        net.run(Span::from_millis(10));
        net.inject(0, ip(0, 9), at(stranger(n), 1), &copy);
    }
    let refused = net.sites[0].endpoint.discards().of(Discard::Flood);
    assert!(refused > 900, "{refused}");
    assert!(matches!(net.inject(0, ip(0, 9), at(ip(1, 1), PORT), &echo), Handled::New(_)));
}

#[test]
fn client_connects_at_once_despite_1000_forged_inits_per_second() {
    let mut net = Net::new();
    let server = at(ip(0, 9), PORT);
    net.guarded_site(&[server], Some(config()), Guard::default());
    for n in 0..1_000 {
        net.run(Span::from_millis(10));
        net.inject(0, server.ip(), at(ip(1, 1), 1 + n as u16), &init(n));
        net.log.clear();
    }
    for port in 0..20 {
        let client = net.site(&[at(ip(1, 1), 7000 + port)], None);
        net.connect(client, &[(ip(1, 1), server)], config());
        for n in 0..100 {
            net.inject(0, server.ip(), at(ip(1, 1), 1 + n as u16), &init(n));
            net.run(Span::from_millis(1));
        }
        let up = net.sites[client].reported(|event| *event == AssociationEvent::Connected);
        assert_eq!(up, 1, "{port}: {:?}", net.sites[0].endpoint.discards());
    }
}
