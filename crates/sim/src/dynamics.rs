//! Links that change while a run goes on.

use anabranch_core::time::{Rate, Span, Time};

use crate::error::{ConfigError, require};
use crate::loss::LossModel;

/// A change of a link, which holds from its moment on.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkChange {
    /// Another rate. The packet in the serialiser finishes at the old one.
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

/// Changes of one link in the order of their times; those of one moment in the order given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schedule {
    changes: std::collections::VecDeque<(Time, LinkChange)>,
}

impl Schedule {
    pub(crate) fn new(mut changes: Vec<(Time, LinkChange)>) -> Self {
        changes.sort_by_key(|(time, _)| *time);
        Schedule { changes: changes.into() }
    }

    /// When the next change is due.
    pub(crate) fn next_time(&self) -> Option<Time> {
        self.changes.front().map(|(time, _)| *time)
    }

    /// Takes the next change if it is due.
    pub(crate) fn pop(&mut self, now: Time) -> Option<LinkChange> {
        if self.next_time()? > now {
            return None;
        }
        self.changes.pop_front().map(|(_, change)| change)
    }
}
