//! The disciplines that manage a queue, behind one interface for the link.

use anabranch_core::time::{Rate, Time};
use anabranch_core::units::WireBytes;

use super::codel::{CoDel, CoDelState};
use super::fifo::{Fifo, Queued};
use super::fq_codel::{FqCoDel, FqCoDelState};
use super::pie::{Pie, PieState};
use super::red::{Red, RedState};
use crate::error::ConfigError;
use crate::rng::{Seeds, Stream};
use crate::route::RouteId;

/// Rule by which a queue drops packets before it is full.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Discipline {
    /// No discipline: packets are dropped only if the queue is full.
    #[default]
    DropTail,
    /// Random early detection.
    Red(Red),
    /// Controlled delay, RFC 8289.
    CoDel(CoDel),
    /// Flow queues with controlled delay, RFC 8290. If the queue is full, the longest flow queue loses packets.
    FqCoDel(FqCoDel),
    /// Proportional integral controller enhanced, RFC 8033.
    Pie(Pie),
}

impl Discipline {
    /// Checks the ranges of the parameters.
    ///
    /// # Errors
    /// Returns [`ConfigError::OutOfRange`] with the name of the parameter.
    pub fn validate(&self) -> Result<(), ConfigError> {
        match self {
            Discipline::DropTail => Ok(()),
            Discipline::Red(red) => red.validate(),
            Discipline::CoDel(codel) => codel.validate(),
            Discipline::FqCoDel(fq) => fq.validate(),
            Discipline::Pie(pie) => pie.validate(),
        }
    }
}

/// Reason for which a discipline drops a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Full,
    Early,
}

/// State of a discipline with the packets that it manages.
#[derive(Clone, Debug)]
pub(crate) struct Managed {
    /// Packets that wait, unless flows have queues of their own.
    fifo: Fifo,
    rule: Rule,
}

#[derive(Clone, Debug)]
enum Rule {
    Red(RedState),
    CoDel(CoDel, CoDelState),
    FqCoDel(Box<FqCoDelState>),
    Pie(PieState),
}

impl Managed {
    /// Returns none for a discipline that manages nothing.
    pub(crate) fn new(discipline: Discipline, link: &str, seeds: Seeds) -> Option<Self> {
        let stream = || -> Stream { seeds.stream(&["link", link, "queue"]) };
        let rule = match discipline {
            Discipline::DropTail => return None,
            Discipline::Red(red) => Rule::Red(RedState::new(red, stream())),
            Discipline::CoDel(codel) => Rule::CoDel(codel, CoDelState::default()),
            Discipline::FqCoDel(fq) => Rule::FqCoDel(Box::new(FqCoDelState::new(fq, stream().next_u64()))),
            Discipline::Pie(pie) => Rule::Pie(PieState::new(pie, stream())),
        };
        Some(Managed { fifo: Fifo::default(), rule })
    }

    pub(crate) fn packets(&self) -> u64 {
        match &self.rule {
            Rule::FqCoDel(fq) => fq.packets(),
            _ => self.fifo.packets(),
        }
    }

    pub(crate) fn bytes(&self) -> WireBytes {
        match &self.rule {
            Rule::FqCoDel(fq) => fq.bytes(),
            _ => self.fifo.bytes(),
        }
    }

    /// Returns the time of arrival of the packet that has waited longest.
    pub(crate) fn oldest(&self) -> Option<Time> {
        match &self.rule {
            Rule::FqCoDel(fq) => fq.oldest(),
            _ => self.fifo.front().map(|head| head.since),
        }
    }

    /// Queues a packet. `fits` returns `true` if a packet of this size has room beside the queued ones. Dropped packets, among which may
    /// be the new one, are passed to `drop`.
    pub(crate) fn enqueue(
        &mut self,
        queued: Queued,
        route: RouteId,
        rate: Rate,
        fits: impl Fn(u64, WireBytes, WireBytes) -> bool,
        mut drop: impl FnMut(Queued, Reason),
    ) {
        let now = queued.since;
        if let Rule::FqCoDel(fq) = &mut self.rule {
            let had_room = fits(fq.packets(), fq.bytes(), queued.size);
            fq.enqueue(queued, route);
            if !had_room {
                fq.drop_from_longest(|queued| drop(queued, Reason::Full));
                // Packets that are smaller than the new one may not have made room enough.
                while fq.packets() > 1 && !fits(fq.packets() - 1, fq.bytes(), WireBytes::ZERO) {
                    fq.drop_from_longest(|queued| drop(queued, Reason::Full));
                }
            }
            return;
        }
        let has_room = fits(self.fifo.packets(), self.fifo.bytes(), queued.size);
        let drops_early = match &mut self.rule {
            Rule::Red(red) => red.drops(now, &self.fifo, rate),
            Rule::Pie(pie) => {
                if !has_room {
                    pie.overflowed();
                }
                has_room && pie.drops(now, &self.fifo)
            }
            Rule::CoDel(..) | Rule::FqCoDel(_) => false,
        };
        match (drops_early, has_room) {
            (true, _) => drop(queued, Reason::Early),
            (false, false) => drop(queued, Reason::Full),
            (false, true) => self.fifo.push(queued),
        }
    }

    /// Takes the next packet out. A queue that is not empty gives one.
    pub(crate) fn dequeue(&mut self, now: Time, mut drop: impl FnMut(Queued, Reason)) -> Option<Queued> {
        let early = |queued| drop(queued, Reason::Early);
        match &mut self.rule {
            Rule::CoDel(config, codel) => codel.dequeue(config, now, &mut self.fifo, early),
            Rule::FqCoDel(fq) => fq.dequeue(now, early),
            Rule::Red(red) => {
                let head = self.fifo.pop();
                if head.is_none() {
                    red.ran_empty(now);
                }
                head
            }
            Rule::Pie(pie) => {
                let head = self.fifo.pop()?;
                pie.dequeued(now, &head, &self.fifo);
                Some(head)
            }
        }
    }
}
