//! Handshakes that are forged in a client's name.

use anabranch_core::time::Span;
use anabranch_core::{AssociationEvent, Guard, Handled};
use anabranch_wire::{InitRepr, Tsn};

use crate::net::{Net, PORT, at, config, ip};
use crate::rig::craft::{COOKIE_ECHO, INIT_ACK, cookie_of, packet};

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

#[test]
fn a_client_gets_in_although_a_thousand_inits_a_second_are_forged_in_its_name() {
    let mut net = Net::new();
    let (server, client) = (at(ip(0, 9), PORT), ip(1, 1));
    net.guarded_site(&[server], Some(config()), Guard::default());
    let mut next = 0_u16;
    let mut forge = |net: &mut Net| {
        next += 1;
        net.inject(0, server.ip(), at(client, next), &init(next.into()));
        net.run(Span::from_millis(1));
        net.log.clear();
    };
    (0..1_000).for_each(|_| forge(&mut net));
    for port in 0..20 {
        let site = net.site(&[at(client, 30_000 + port)], None);
        net.connect(site, &[(client, server)], config());
        (0..100).for_each(|_| forge(&mut net));
        let is_up = net.sites[site].told(|event| *event == AssociationEvent::Connected) == 1;
        assert!(is_up, "connection {port} was kept out: {:?}", net.sites[0].endpoint.discards());
    }
}

#[test]
fn a_cookie_is_taken_although_a_hundred_are_forged_in_its_senders_name() {
    let mut net = Net::new();
    let (server, client) = (at(ip(0, 9), PORT), at(ip(1, 1), PORT));
    net.guarded_site(&[server], Some(config()), Guard::default());
    let site = net.site(&[client], None);
    // The client's own COOKIE ECHO is under way for a while.
    net.loses = Box::new(|datagram| datagram.kind() == COOKIE_ECHO);
    net.connect(site, &[(client.ip(), server)], config());
    net.run(Span::from_millis(50));
    let echo = net.log.iter().find(|datagram| datagram.kind() == COOKIE_ECHO).expect("an echo").bytes.clone();
    // The attacker gets a cookie of its own, and changes the last byte of it.
    net.inject(0, server.ip(), at(ip(7, 7), 7), &init(77));
    let answer =
        net.log.iter().rfind(|datagram| datagram.kind() == INIT_ACK).expect("a cookie").bytes.clone();
    let mut forged = cookie_of(&answer).expect("a cookie");
    *forged.last_mut().expect("not empty") ^= 1;
    for tag in 0..100 {
        net.inject(0, server.ip(), client, &packet(tag, |w| w.cookie_echo(&forged)));
    }
    let handled = net.inject(0, server.ip(), client, &echo);
    assert!(matches!(handled, Handled::New(_)), "the client's own cookie was refused: {handled:?}");
}
