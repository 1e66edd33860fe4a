//! Changes of links during a run.

use anabranch_core::time::{Rate, Span};

use crate::error::{ConfigError, require};
use crate::loss::LossModel;

/// A change of a link, in force from its time on.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// New rate. The packet in the serialiser finishes at the old one. A capacity trace ends.
    Rate(Rate),
    /// New propagation delay, for packets that leave the serialiser from now on. Packets do not overtake: after a decrease, they
    /// arrive no earlier than those already on their way, so several may arrive at one time.
    Delay(Span),
    /// New loss model, at the same place of the link, for packets that reach the link from now on.
    Loss(LossModel),
    /// The end of an outage.
    Up,
    /// Start of an outage. Packets that reach the link are dropped. Packets in the queue pass the serialiser at the usual pace and
    /// are dropped behind it. Packets that are already propagating arrive.
    Down,
}

impl LinkChange {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            LinkChange::Rate(rate) => require(rate.as_bps() > 0, "rate", "must be more than zero"),
            LinkChange::Loss(loss) => loss.check(),
            LinkChange::Delay(_) | LinkChange::Up | LinkChange::Down => Ok(()),
        }
    }
}
