//! Each pair of NAT types.

use anabranch_core::time::Span;
use anabranch_rendezvous::{Limits, Route};

use crate::rig::nat::NatType::{FullCone, PortRestricted, Restricted, Symmetric};
use crate::rig::nat::{Nat, NatType};
use crate::rig::world::{Networks, World, address};

/// Returns one socket behind a NAT of this type, and behind those of its provider.
fn behind(local: &str, public: &str, kinds: &[NatType]) -> Networks {
    let mut nats: Vec<Nat> = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        let outermost = at + 1 == kinds.len();
        // Addresses between the NATs of a home and of its provider (RFC 6598).
        let address = if outermost {
            address(&format!("{public}:1"))
        } else {
            address(&format!("100.64.0.{}:1", at + 1))
        };
        nats.push(Nat::new(*kind, address.ip()));
    }
    Networks::new(vec![(local, nats)])
}

/// Returns the route between a caller and a listener behind these NATs, over which packets pass in both directions.
fn route(caller: &[NatType], listener: &[NatType]) -> Option<Route> {
    let caller = behind("10.0.0.2:40000", "203.0.113.1", caller);
    let listener = behind("192.168.7.2:9899", "203.0.113.200", listener);
    let mut world = World::new(caller, listener, Limits::default());
    world.run(Span::from_secs(6));
    let paths = world.paths();
    assert!(paths.len() <= 1, "{paths:?}");
    let path = *paths.first()?;
    assert!(world.carries(path), "{path:?}");
    Some(path.route)
}

/// Routes by the types of the caller and of the listener. The table is repeated in `docs/src/rendezvous.md`.
const ROUTES: [(NatType, [(NatType, Route); 4]); 4] = {
    use Route::{Direct, Relayed};
    [
        (FullCone, [(FullCone, Direct), (Restricted, Direct), (PortRestricted, Direct), (Symmetric, Direct)]),
        (
            Restricted,
            [(FullCone, Direct), (Restricted, Direct), (PortRestricted, Direct), (Symmetric, Direct)],
        ),
        (
            PortRestricted,
            [(FullCone, Direct), (Restricted, Direct), (PortRestricted, Direct), (Symmetric, Relayed)],
        ),
        (
            Symmetric,
            [(FullCone, Direct), (Restricted, Direct), (PortRestricted, Relayed), (Symmetric, Relayed)],
        ),
    ]
};

#[test]
fn each_pair_of_nat_types_meets_by_the_expected_route() {
    for (caller, listeners) in ROUTES {
        for (listener, expected) in listeners {
            assert_eq!(route(&[caller], &[listener]), Some(expected), "{caller:?} calls {listener:?}");
        }
    }
    assert_eq!(ROUTES.map(|(caller, _)| caller), NatType::ALL);
}

#[test]
fn each_pair_behind_carrier_nats_on_both_sides_meets() {
    for caller in NatType::ALL {
        for listener in NatType::ALL {
            // The stricter of the two NATs in a row decides.
            let met = route(&[caller, PortRestricted], &[listener, PortRestricted]);
            let is_direct = caller != Symmetric && listener != Symmetric;
            let expected = if is_direct { Route::Direct } else { Route::Relayed };
            assert_eq!(met, Some(expected), "{caller:?} calls {listener:?}");
        }
    }
    assert_eq!(route(&[FullCone, Symmetric], &[FullCone, Symmetric]), Some(Route::Relayed));
    assert_eq!(route(&[FullCone, Symmetric], &[FullCone, FullCone]), Some(Route::Direct));
}

#[test]
fn sides_without_nat_meet_directly() {
    for kind in NatType::ALL {
        let world = |caller, listener| {
            let mut world = World::new(caller, listener, Limits::default());
            world.run(Span::from_secs(6));
            let path = *world.paths().first().expect("a path");
            assert!(path.route == Route::Direct && world.carries(path), "{kind:?}: {path:?}");
        };
        world(
            Networks::new(vec![("203.0.113.9:40000", vec![])]),
            behind("192.168.7.2:9899", "203.0.113.200", &[kind]),
        );
        world(
            behind("10.0.0.2:40000", "203.0.113.1", &[kind]),
            Networks::new(vec![("203.0.113.9:9899", vec![])]),
        );
    }
}
