//! What can be wrong with the description of a network.

use crate::datagram::Address;

/// Why a part was not added to a world.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// Names are what random streams belong to, so each must be unique.
    #[error("the name {0:?} is taken")]
    DuplicateName(String),
    /// An address belongs to one host.
    #[error("the address {0} belongs to another host")]
    DuplicateAddress(Address),
    /// A route leads from one known interface to another.
    #[error("no host has the address {0}")]
    UnknownAddress(Address),
    /// There is one route for each pair of addresses.
    #[error("there already is a route from {0} to {1}")]
    DuplicateRoute(Address, Address),
    /// A packet cannot go from one family of addresses to the other.
    #[error("{0} and {1} are not of one address family")]
    MixedFamilies(Address, Address),
    /// A route or traffic source needs at least one link.
    #[error("{0} passes no link")]
    NoLinks(String),
    /// A probability is a number from 0 to 1.
    #[error("{name} is {value}, which is no probability")]
    NotAProbability {
        /// Which one.
        name: &'static str,
        /// What it was.
        value: f64,
    },
    /// A quantity is out of its range.
    #[error("{name} {what}")]
    OutOfRange {
        /// Which one.
        name: &'static str,
        /// What it must be.
        what: &'static str,
    },
}

pub(crate) fn probability(name: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(ConfigError::NotAProbability { name, value }) }
}

pub(crate) fn require(holds: bool, name: &'static str, what: &'static str) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError::OutOfRange { name, what }) }
}
