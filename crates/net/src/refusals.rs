//! Refused attempts to open an association: their reasons, and the associations that may be refused.

use std::collections::BTreeSet;

use anabranch_core::time::Time;
use anabranch_core::{AssociationId, PathAddress, Refusal};
use thiserror::Error;

use crate::peer::udp_address;

/// Path of an attempt that was refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{}", self.text())]
pub struct RefusedPath {
    /// Path of the attempt.
    pub path: PathAddress,
    /// Reason of the refusal.
    pub refusal: Refusal,
}

impl RefusedPath {
    fn text(&self) -> String {
        let remote = udp_address(self.path);
        let host = remote.ip();
        match self.refusal {
            Refusal::PortClosed => {
                format!("port {} of {host} is closed: start the peer, or check the port", remote.port())
            }
            Refusal::Prohibited => {
                format!(
                    "a firewall or a routing rule forbids packets to {host}: change it, or take another path"
                )
            }
            Refusal::HostUnreachable => {
                format!("{host} is unreachable: check the address, and that the host is connected")
            }
            Refusal::NoRoute => format!("no route to {host}: check the address and this machine's network"),
        }
    }
}

/// Associations whose INIT is unanswered.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    pub(crate) opening: BTreeSet<AssociationId>,
    /// Time of the next check of routes and neighbours.
    pub(crate) next_check: Option<Time>,
}

impl Refusals {
    /// Registers an association that is being opened.
    pub(crate) fn watch(&mut self, now: Time, id: AssociationId) {
        self.opening.insert(id);
        self.next_check = Some(now);
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        self.next_check
    }
}
