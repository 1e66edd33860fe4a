//! Links that change while a run goes on.

use anabranch_core::time::{Rate, Span};

use crate::error::{ConfigError, require};
use crate::loss::LossModel;

/// A change of a link, which holds from its moment on.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// Another rate. The packet in the serialiser finishes at the old one. A capacity trace ends.
    Rate(Rate),
    /// Another propagation delay, for packets that leave the serialiser from now on. Packets do not overtake:
    /// when the delay falls, they arrive no earlier than those already on their way, so a burst may come
    /// together.
    Delay(Span),
    /// Another loss model, at the same place of the link, for packets that reach the link from now on.
    Loss(LossModel),
    /// The end of an outage.
    Up,
    /// An outage. Packets that reach the link are dropped. Those in the queue go through the serialiser at
    /// the usual pace and are dropped as they leave it. Those already propagating arrive.
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
