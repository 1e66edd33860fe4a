//! Off-path attackers.

use anabranch_core::Handled;
use anabranch_core::time::Span;
use anabranch_wire::{DataRepr, InitRepr, SackRepr, Tsn};

use crate::guard::net::{PORT, at, ip, pair};
use crate::rig::craft::packet;

/// Returns chunks that would have an effect with the right tag.
fn tempting(tag: u32) -> Vec<Vec<u8>> {
    vec![
        packet(tag, |w| w.sack(&SackRepr::default(), [], [])),
        packet(tag, |w| w.data(&DataRepr::default(), b"data")),
        packet(tag, |w| w.heartbeat(b"0123456789abcdef")),
        packet(tag, |w| w.heartbeat_ack(b"0123456789abcdef")),
        packet(tag, |w| w.shutdown(Tsn::new(1))),
        packet(tag, |w| w.shutdown_ack()),
        packet(tag, |w| w.shutdown_complete(false)),
        packet(tag, |w| w.shutdown_complete(true)),
        packet(tag, |w| w.abort(false, [])),
        packet(tag, |w| w.abort(true, [])),
        packet(tag, |w| w.cookie_echo(&[9; 60])),
        packet(tag, |w| w.cookie_ack()),
        packet(tag, |w| w.forward_tsn(Tsn::new(1), [])),
    ]
}

#[test]
fn attacker_without_the_tag_has_no_effect() {
    let mut net = pair();
    let right = net.tag_to(ip(0, 9));
    let id = net.sites[1].ids()[0];
    let state = |net: &crate::guard::net::Net| format!("{:?}", net.sites[1].endpoint.association(id));
    let before = state(&net);
    for tag in (0..32).map(|bit| right ^ (1 << bit)).chain([0, 1, u32::MAX]) {
        for bytes in tempting(tag) {
            for from in [at(ip(0, 1), PORT), at(ip(0, 1), PORT + 1), at(ip(7, 7), PORT)] {
                let handled = net.inject(1, ip(0, 9), from, &bytes);
                assert!(matches!(handled, Handled::Discarded(_) | Handled::Replied), "{handled:?}");
            }
        }
    }
    assert!(state(&net) == before);
    assert_eq!(net.sites[1].ids(), [id]);
    net.send(0, 10);
    net.read(1, 100_000);
}

#[test]
fn forged_init_of_the_peer_has_no_effect() {
    let mut net = pair();
    let id = net.sites[1].ids()[0];
    let before = format!("{:?}", net.sites[1].endpoint.association(id));
    for n in 0..50 {
        let repr = InitRepr {
            initiate_tag: 77 + n,
            a_rwnd: 10_000,
            outbound_streams: 1,
            inbound_streams: 1,
            initial_tsn: Tsn::new(5),
        };
        let init = packet(0, |w| w.init(&repr, []));
        for port in [PORT, PORT + 1] {
            net.inject(1, ip(0, 9), at(ip(0, 1), port), &init);
        }
    }
    assert!(format!("{:?}", net.sites[1].endpoint.association(id)) == before);
    net.run(Span::from_secs(1));
    net.send(0, 10);
    net.read(1, 100_000);
}
