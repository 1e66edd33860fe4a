//! Floods of handshakes from forged addresses.

use std::net::IpAddr;

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Discard, Guard, Rate};
use anabranch_wire::{InitRepr, Tsn};

use crate::net::{Net, PORT, at, config, ip};
use crate::rig::craft::packet;

/// A tenth of what floods in is looked at.
const GUARD: Guard =
    Guard { per_source: Rate { per_second: 5, burst: 10 }, in_all: Rate { per_second: 200, burst: 20 } };

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

/// Spreads over the address space.
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
    // Two thousand of each in a second, at times that have nothing to do with the clients'.
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
            net.sites[usize::from(*client)].told(|event| *event == AssociationEvent::Connected) == 0
        });
        for &client in &waiting {
            // Whoever was given up calls again.
            let site = &mut net.sites[usize::from(client)];
            if site.told(|event| matches!(event, AssociationEvent::Aborted(_))) > 0 {
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
fn a_source_that_floods_hinders_no_other() {
    let mut net = Net::new();
    let server = at(ip(0, 9), PORT);
    net.guarded_site(&[server], Some(config()), GUARD);
    let client = net.site(&[at(ip(1, 1), PORT)], None);
    for n in 0..1000 {
        net.inject(0, server.ip(), at(ip(7, 7), n as u16 + 1), &init(n));
    }
    assert_eq!(net.sites[0].endpoint.discards().of(Discard::Flood), 990);
    net.connect(client, &[(ip(1, 1), server)], config());
    net.run(Span::from_millis(100));
    assert_eq!(net.sites[client].told(|event| *event == AssociationEvent::Connected), 1);
}
