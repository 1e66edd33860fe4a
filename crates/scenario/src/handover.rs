//! `handover` of a path: its link is down for a while, and a host behind it gets another address.

use anabranch_core::time::Span;
use anabranch_sim::Handover as Times;

use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::form::{ANY_TIME, DELAY, Flag, LONGEST, OneOf, SpanIn};
use crate::link::Duplex;
use crate::reader::Reader;
use crate::section::{Described, section};
use crate::units::format_span;

/// Host that gets another address at the end of a handover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mover {
    /// Host that opens the association.
    Left,
    /// The other host.
    Right,
    /// Both hosts keep their addresses.
    Neither,
}

/// Handovers of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// Times and outages.
    pub times: Times,
    /// Host that gets another address.
    pub mover: Mover,
}

section! {
    /// Handovers of a path.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct HandoverRows {
        /// Start of the first handover, from the start of the run. Unless `moves` is `none`, every flow of the path starts earlier.
        at: Span = "at" [required] ANY_TIME;
        /// Time between the starts of two handovers, more than `outage`.
        every: Option<Span> = "every" [optional "one handover"] SpanIn(Span::from_millis(100)..=LONGEST, "s");
        /// Draw the time from a handover to the next one at random, with `every` as the mean.
        random: bool = "random" [or false] Flag;
        /// Time for which the link is down in both directions.
        outage: Span = "outage" [or Span::from_millis(50)] DELAY;
        /// Host that has another address afterwards; `none` for a handover within one network.
        moves: Mover = "moves" [or Mover::Left]
            OneOf(&[("left", Mover::Left), ("right", Mover::Right), ("none", Mover::Neither)]);
    }
}

impl Described for Handover {
    type Rows = HandoverRows;

    fn from_rows(rows: HandoverRows, reader: &mut Reader<'_>) -> Option<Self> {
        let HandoverRows { at, every, random, outage, moves } = rows;
        let times = Times { first: at, every, is_random: random, outage };
        let conflict = if random && every.is_none() {
            Some((
                "random",
                "`random` needs a mean time between handovers".to_owned(),
                "give `every`".to_owned(),
            ))
        } else if times.check().is_err() {
            let outage = format_span(outage);
            let message = format!("a handover has an outage of {outage} and ends after the next one starts");
            Some(("every", message, format!("give more than {outage}, or a shorter `outage`")))
        } else {
            None
        };
        let Some((key, message, help)) = conflict else { return Some(Handover { times, mover: moves }) };
        reader.fault(key, Fault::explained(ProblemKind::Conflict, message, help));
        None
    }

    fn to_rows(&self) -> HandoverRows {
        let Times { first, every, is_random, outage } = self.times;
        HandoverRows { at: first, every, random: is_random, outage, moves: self.mover }
    }
}

/// Reports a handover of a path without its own link, or whose link has other outages. Returns `true` if there is none.
pub(crate) fn check_link(reader: &Reader<'_>, own: Option<&Duplex>) -> bool {
    let conflict = match own {
        None => Some((
            "a path without its own link has no handover",
            "give the path a `rate` or a `capacity`, or remove `handover`",
        )),
        Some(own) if own.events.iter().any(|event| event.change.up.is_some()) => {
            Some(("`handover` and events with `up` exclude each other", "remove one of them"))
        }
        Some(own) if [&own.forward, &own.reverse].iter().any(|way| way.outage_trace.is_some()) => {
            Some(("`handover` and `outage_trace` exclude each other", "remove one of them"))
        }
        Some(_) => None,
    };
    if let Some((message, help)) = conflict {
        reader.fault("handover", Fault::explained(ProblemKind::Conflict, message, help));
    }
    conflict.is_none()
}
