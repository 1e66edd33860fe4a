//! Shared functions of these tests: endpoints wired up by hand, crafted packets, and transfers to compare.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod exchange;
pub(crate) mod fixed_window;
pub(crate) mod messages;
pub(crate) mod wires;

pub(crate) use anabranch_tests::hostile::craft;

use std::net::IpAddr;

use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{AcceptFrom, AssociationConfig, Encapsulation, EndpointConfig};
use anabranch_schemes::registry;

pub(crate) use craft::PORT;

/// Returns the address of a node on a network: node 1 is `10.<network>.0.1`.
pub(crate) fn address(network: u8, node: u8) -> IpAddr {
    [10, network, 0, node].into()
}

/// Returns the time at this number of milliseconds.
pub(crate) fn at(millis: u64) -> Time {
    Time::ZERO + Span::from_millis(millis)
}

/// Returns the standard's rules with this scheme, eight streams and the receive buffer of a present-day host.
pub(crate) fn association(scheme: &str) -> AssociationConfig {
    let scheme = registry::parse(scheme).expect("the scheme exists").into_scheme();
    let profile = Profile::named("rfc9260", scheme.is_multipath()).expect("the profile exists");
    AssociationConfig { streams: 8, recv_buffer_bytes: 256 * 1024, ..AssociationConfig::new(scheme, profile) }
}

/// Returns an endpoint that accepts associations with `config`.
pub(crate) fn endpoint(addresses: Vec<IpAddr>, config: AssociationConfig) -> EndpointConfig {
    EndpointConfig {
        port: PORT,
        addresses,
        encapsulation: Encapsulation::None,
        accept: Some(config),
        accept_from: AcceptFrom::Everyone,
        max_associations: 16,
        guard: None,
    }
}
