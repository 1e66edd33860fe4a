//! Two reasons for which the random sequences of added and removed addresses lost associations, each as a story of its own.
//! The ledger puts this file in the place of `tests/tests/asconf/random.rs`.

use anabranch_core::time::Span;
use anabranch_tests::network::Side;

use crate::rig::{add, connected, data_flows, extra, remove, setup};

#[test]
fn the_silence_of_an_address_that_has_gone_does_not_end_an_association_that_announces_another() {
    let mut duo = connected(setup(1));
    let (old, new) = (duo.setup.address(Side::A, 0), extra(Side::A, 0));
    duo.network.set_filter(|_| false);
    duo.send_all(Side::A, 10_000, 10);
    add(&mut duo, Side::A, new);
    remove(&mut duo, Side::A, old);
    // The announcement has not been repeated often enough for the peer to be given up.
    duo.run(Span::from_secs(220));
    assert!(!duo.is_over(Side::A), "given up: {:?}", duo.nodes[0].ended);
}

#[test]
fn an_asconf_from_a_new_address_shows_that_the_peer_is_there() {
    let mut setup = setup(1);
    setup.sides[1].profile.association_max_retrans = 4;
    let mut duo = connected(setup);
    let (old, new) = (duo.setup.address(Side::A, 0), extra(Side::A, 0));
    // B hears A, but A does not hear B.
    duo.network.set_filter(|packet| packet.from == Side::A);
    duo.send_all(Side::B, 10_000, 10);
    // Errors 1 to 4 of B are at 1, 3, 7 and 15 s.
    duo.run(Span::from_secs(20));
    add(&mut duo, Side::A, new);
    remove(&mut duo, Side::A, old);
    // The fifth is at 31 s.
    duo.run(Span::from_secs(20));
    duo.network.set_filter(move |packet| packet.source != old && packet.destination != old);
    data_flows(&mut duo);
}
