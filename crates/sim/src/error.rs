//! Errors in the description of a network.

use crate::datagram::Address;

/// Reason for which a part was not added to a world.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    /// A name is used twice. Random streams belong to names, so each must be unique.
    #[error("the name {0:?} is taken")]
    DuplicateName(String),
    /// An address has two hosts.
    #[error("the address {0} belongs to another host")]
    DuplicateAddress(Address),
    /// A route begins or ends at an unknown interface.
    #[error("no host has the address {0}")]
    UnknownAddress(Address),
    /// A pair of addresses has two routes.
    #[error("there already is a route from {0} to {1}")]
    DuplicateRoute(Address, Address),
    /// A route connects addresses of different families.
    #[error("{0} and {1} are not of one address family")]
    MixedFamilies(Address, Address),
    /// A route or traffic source has no link.
    #[error("{0} passes no link")]
    NoLinks(String),
    /// A probability is outside 0 to 1.
    #[error("{name} is {value}, which is not a probability")]
    NotAProbability {
        /// Name of the parameter.
        name: &'static str,
        /// Value that was given.
        value: f64,
    },
    /// A quantity is out of its range.
    #[error("{name} {what}")]
    OutOfRange {
        /// Name of the parameter.
        name: &'static str,
        /// Permitted range.
        what: &'static str,
    },
}

pub(crate) fn probability(name: &'static str, value: f64) -> Result<(), ConfigError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(ConfigError::NotAProbability { name, value }) }
}

pub(crate) fn require(holds: bool, name: &'static str, what: &'static str) -> Result<(), ConfigError> {
    if holds { Ok(()) } else { Err(ConfigError::OutOfRange { name, what }) }
}
