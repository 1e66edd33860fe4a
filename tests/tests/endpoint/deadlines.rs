//! The earliest deadline of an endpoint is that of all its associations.

use anabranch_core::time::Time;
use anabranch_core::{AssociationId, Endpoint, PacketBuffer};

use crate::rig::{self, PORT, address, at};

fn endpoint() -> Endpoint {
    let config = rig::endpoint(vec![address(0, 1)], rig::association("cmt"));
    Endpoint::new(Time::ZERO, config, [1; 32])
}

fn drain(endpoint: &mut Endpoint, now: Time) {
    let mut packet = PacketBuffer::new();
    while endpoint.poll_transmit(now, &mut packet).is_some() {}
}

/// Calls another host, which does not answer.
fn connect(endpoint: &mut Endpoint, now: Time, peer: u8) -> AssociationId {
    let pair = [(address(0, 1), address(0, peer))];
    let id = endpoint.connect(now, PORT, &pair, rig::association("cmt")).expect("there is room");
    drain(endpoint, now);
    id
}

#[test]
fn second_association_keeps_its_deadline_apart_from_the_first() {
    let mut alone = endpoint();
    connect(&mut alone, at(50), 3);
    let later = alone.poll_timeout().expect("T1 runs");

    let mut both = endpoint();
    let first = connect(&mut both, at(0), 2);
    let sooner = both.poll_timeout().expect("T1 runs");
    assert!(sooner < later);
    connect(&mut both, at(50), 3);
    assert_eq!(both.poll_timeout(), Some(sooner));
    both.association_mut(first).expect("it is there").abort(at(60));
    drain(&mut both, at(60));
    assert_eq!(both.poll_timeout(), Some(later));
    assert!(both.forget(first));
    assert_eq!(both.poll_timeout(), Some(later));
    both.handle_timeout(later);
    let mut packet = PacketBuffer::new();
    let sent = both.poll_transmit(later, &mut packet).expect("the INIT again");
    assert_eq!(sent.address.remote, address(0, 3));
}

#[test]
fn the_id_of_a_forgotten_association_names_none_that_came_after_it() {
    let mut endpoint = endpoint();
    let first = connect(&mut endpoint, at(0), 2);
    let second = connect(&mut endpoint, at(0), 3);
    endpoint.association_mut(first).expect("it is there").abort(at(10));
    drain(&mut endpoint, at(10));
    assert!(endpoint.forget(first));
    let third = connect(&mut endpoint, at(20), 4);
    assert!(endpoint.association(first).is_none() && endpoint.association_mut(first).is_none());
    assert!(!endpoint.forget(first));
    assert_eq!(
        endpoint.associations().collect::<Vec<_>>(),
        [second, third],
        "in the order in which they began"
    );
    assert_eq!([first, second, third].map(AssociationId::number), [1, 2, 3]);
}
