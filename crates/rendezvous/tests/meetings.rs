//! Calls with several networks, failures and limits.

use anabranch_core::time::{Rate, Span};
use anabranch_rendezvous::{CallerEvent, Failure, Limits, ListenerEvent, Message, Refusal, Route};

use crate::rig::nat::NatType::{PortRestricted, Symmetric};
use crate::rig::nat::{Nat, NatType};
use crate::rig::world::{Networks, World, address};

/// Returns a side with two networks, each behind a NAT of its own.
fn two(local: [&str; 2], public: u8, kinds: [NatType; 2]) -> Networks {
    let nat =
        |at: usize| Nat::new(kinds[at], address(&format!("203.0.113.{}:1", usize::from(public) + at)).ip());
    Networks::new(vec![(local[0], vec![nat(0)]), (local[1], vec![nat(1)])])
}

fn both(caller: [NatType; 2], listener: [NatType; 2], limits: Limits) -> World {
    let caller = two(["10.0.0.2:40000", "10.1.0.2:40000"], 1, caller);
    let listener = two(["192.168.7.2:9899", "192.168.8.2:9899"], 100, listener);
    World::new(caller, listener, limits)
}

fn failure(world: &World) -> Option<Failure> {
    world.caller_events.iter().find_map(|event| match event {
        CallerEvent::Failed(failure) => Some(*failure),
        _ => None,
    })
}

#[test]
fn each_network_of_the_caller_gets_a_path_to_another_of_the_listener() {
    let mut world = both([PortRestricted; 2], [PortRestricted; 2], Limits::default());
    world.run(Span::from_secs(3));
    let paths = world.paths();
    assert_eq!(paths.iter().map(|path| path.socket).collect::<Vec<_>>(), [0, 1]);
    assert_ne!(paths[0].remote.ip(), paths[1].remote.ip());
    for path in paths {
        assert!(path.route == Route::Direct && world.carries(path), "{path:?}");
    }
    assert_eq!(world.server.totals().relays, 0);
}

#[test]
fn only_the_network_behind_a_symmetric_nat_is_relayed() {
    let mut world = both([Symmetric, PortRestricted], [PortRestricted; 2], Limits::default());
    world.run(Span::from_secs(6));
    let paths = world.paths();
    // The direct path is the primary one.
    assert_eq!(
        paths.iter().map(|path| (path.socket, path.route)).collect::<Vec<_>>(),
        [(1, Route::Direct), (0, Route::Relayed)]
    );
    for path in paths {
        assert!(world.carries(path), "{path:?}");
    }
}

#[test]
fn caller_without_admitted_key_learns_no_address() {
    let mut world = both([PortRestricted; 2], [PortRestricted; 2], Limits::default());
    world.admitted.clear();
    world.run(Span::from_secs(7));
    assert_eq!(failure(&world), Some(Failure::NoListener));
    let caller = world.caller_key.public();
    assert!(world.listener_events.contains(&ListenerEvent::Ignored(caller)));
    assert!(!world.listener_events.contains(&ListenerEvent::Called(caller)));
}

#[test]
fn listener_that_is_not_registered_fails_the_call() {
    let mut world = both([PortRestricted; 2], [PortRestricted; 2], Limits::default());
    world.listener.set_sockets(world.now, []);
    world.run(Span::from_secs(61));
    assert_eq!(world.server.occupancy().0, 0, "its registration expires");
    world.caller_events.clear();
    world.call();
    world.run(Span::from_secs(7));
    assert_eq!(failure(&world), Some(Failure::NoListener));
}

#[test]
fn silent_server_is_reported_to_both_sides_and_found_again() {
    let mut world = both([PortRestricted; 2], [PortRestricted; 2], Limits::default());
    world.is_served = false;
    world.caller_events.clear();
    world.call();
    world.run(Span::from_secs(60));
    assert_eq!(failure(&world), Some(Failure::NoServer));
    let reports = |world: &World| {
        world.listener_events.iter().filter(|event| **event == ListenerEvent::Unreachable).count()
    };
    assert_eq!(reports(&world), 1);
    world.is_served = true;
    world.listener_events.clear();
    world.run(Span::from_secs(10));
    let registered = |event: &&ListenerEvent<usize>| matches!(event, ListenerEvent::Registered { .. });
    assert_eq!(world.listener_events.iter().filter(registered).count(), 2);
    world.is_served = false;
    world.run(Span::from_secs(60));
    assert_eq!(reports(&world), 1, "a second silence is reported too");
}

#[test]
fn listener_behind_a_restarted_nat_is_found_at_its_new_address() {
    let mut world = both([PortRestricted; 2], [PortRestricted; 2], Limits::default());
    world.run(Span::from_secs(5));
    for nat in world.listener_networks.nats.iter_mut().flatten() {
        nat.restart();
    }
    // Sockets are registered every 20 s, and forgotten after 60 s.
    world.run(Span::from_secs(65));
    world.caller_events.clear();
    world.call();
    world.run(Span::from_secs(3));
    let paths = world.paths();
    assert_eq!(paths.len(), 2);
    for path in paths {
        assert!(world.carries(path), "{path:?}");
    }
}

#[test]
fn relay_follows_a_changed_address() {
    let mut world = both([Symmetric; 2], [Symmetric; 2], Limits::default());
    world.run(Span::from_secs(6));
    for nat in world.caller_networks.nats.iter_mut().chain(&mut world.listener_networks.nats).flatten() {
        nat.restart();
    }
    world.run(Span::from_secs(16));
    for path in world.paths() {
        assert!(path.route == Route::Relayed && world.carries(path), "{path:?}");
    }
}

#[test]
fn relay_is_joined_again_after_an_outage() {
    let mut world = both([Symmetric; 2], [Symmetric; 2], Limits::default());
    world.run(Span::from_secs(6));
    world.is_served = false;
    world.run(Span::from_secs(45));
    for nat in world.caller_networks.nats.iter_mut().chain(&mut world.listener_networks.nats).flatten() {
        nat.restart();
    }
    world.is_served = true;
    world.run(Span::from_secs(16));
    for path in world.paths() {
        assert!(path.route == Route::Relayed && world.carries(path), "{path:?}");
    }
}

#[test]
fn relay_sends_nothing_to_an_address_that_stopped_joining() {
    let mut world = both([Symmetric; 2], [Symmetric; 2], Limits::default());
    world.run(Span::from_secs(6));
    let path = world.paths()[0];
    assert!(world.carries(path));
    let at_listener = world.at_listener_socket(path);
    // The caller's process has ended. Its address may be that of another host soon.
    world.caller = None;
    let relayed = |world: &mut World| {
        let before = world.server.totals().relayed;
        world.send_from_listener(at_listener, path.remote, b"DATA");
        world.run(Span::from_millis(200));
        world.server.totals().relayed - before
    };
    world.run(Span::from_secs(30));
    assert_eq!(relayed(&mut world), 1);
    world.run(Span::from_secs(31));
    assert_eq!(relayed(&mut world), 0);
}

#[test]
fn refused_relays_are_reported() {
    for (limits, is_exhausted, refusal) in [
        (Limits { relays: 0, ..Limits::default() }, false, Refusal::Disabled),
        (Limits::default(), true, Refusal::Full),
    ] {
        let mut world = both([Symmetric; 2], [Symmetric; 2], limits);
        world.ports.is_exhausted = is_exhausted;
        world.run(Span::from_secs(7));
        assert_eq!(failure(&world), Some(Failure::NoRelay(refusal)));
    }
}

#[test]
fn relays_above_the_maximum_are_refused_to_the_same_network() {
    let mut world = both([Symmetric; 2], [Symmetric; 2], Limits { relays: 1, ..Limits::default() });
    world.run(Span::from_secs(7));
    let paths = world.paths();
    assert_eq!(paths.len(), 1);
    assert!(world.carries(paths[0]));
    assert_eq!(world.ports.open.len(), 1);
}

#[test]
fn relay_drops_what_exceeds_its_rate() {
    let limits = Limits { relay_rate: Rate::from_bps(8_000_000), ..Limits::default() };
    let mut world = both([Symmetric; 2], [Symmetric; 2], limits);
    world.run(Span::from_secs(6));
    let path = world.paths()[0];
    world.at_listener.clear();
    // 2 Mbyte within a second, twice the rate.
    for _ in 0..1000 {
        world.send_from_caller(path, &[1; 2000]);
        world.run(Span::from_millis(1));
    }
    world.run(Span::from_millis(100));
    let bytes: usize = world.at_listener.iter().map(|(_, _, bytes)| bytes.len()).sum();
    assert!((1_000_000..1_200_000).contains(&bytes), "{bytes} bytes");
}

#[test]
fn relay_ends_at_its_maximum_of_bytes_with_a_report() {
    let limits = Limits { relay_bytes: 10_000, ..Limits::default() };
    let mut world = both([Symmetric; 2], [Symmetric; 2], limits);
    world.run(Span::from_secs(6));
    let path = world.paths()[0];
    for _ in 0..12 {
        world.send_from_caller(path, &[1; 1000]);
    }
    world.run(Span::from_millis(500));
    assert_eq!(world.at_listener.len(), 10);
    assert_eq!(world.caller_events.last(), Some(&CallerEvent::RelayEnded(path.socket, Refusal::Bytes)));
}

#[test]
fn idle_relays_are_closed() {
    let mut world = both([Symmetric; 2], [Symmetric; 2], Limits::default());
    world.run(Span::from_secs(6));
    assert_eq!(world.ports.open.len(), 2);
    for _ in 0..30 {
        assert!(world.carries(world.paths()[0]));
        world.run(Span::from_secs(10));
    }
    assert_eq!(world.ports.open.len(), 1, "the used one stays");
    world.run(Span::from_secs(140));
    assert_eq!((world.ports.open.len(), world.server.occupancy().2), (0, 0));
}

#[test]
fn stranger_cannot_use_a_relay_of_others() {
    let mut world = both([Symmetric; 2], [Symmetric; 2], Limits::default());
    world.run(Span::from_secs(6));
    let path = world.paths()[0];
    let stranger = address("203.0.113.66:1");
    let port = anabranch_rendezvous::PortNumber { via: 0, port: path.remote.port() };
    let dropped = world.server.handle_relayed(world.now, port, stranger, b"INIT");
    assert_eq!(dropped, anabranch_rendezvous::Relayed::Dropped);
    let join = Message::Join { token: [0; 16], cookie: [0; 20] }.to_bytes();
    let dropped = world.server.handle_relayed(world.now, port, stranger, &join);
    assert_eq!(dropped, anabranch_rendezvous::Relayed::Dropped);
    assert!(world.carries(path));
}
