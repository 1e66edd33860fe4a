//! `[[path.background]]`: cross traffic on a link.

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;
use anabranch_sim::TrafficKind;

use crate::direction::{Direction, ONE};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::form::{ANY_TIME, AnyRate, GAP, IntegerIn, NumberIn, OneOf, PACKET_SIZE, SOME_TIME, WireSize};
use crate::reader::Reader;
use crate::section::{Described, section};

/// Sources of traffic in one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Times at which packets are sent.
    pub source: TrafficKind,
    /// Size of a packet.
    pub packet: WireBytes,
    /// Largest piece that packets are split into.
    pub fragment: Option<WireBytes>,
    /// Direction of the packets.
    pub direction: Direction,
    /// Time of the first packet.
    pub start: Span,
    /// Time of the end; `None` for the end of the run.
    pub stop: Option<Span>,
    /// Number of such sources, each with a random stream of its own.
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Cbr,
    Poisson,
    Pareto,
}

section! {
    /// Cross traffic on one link.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct BackgroundRows {
        /// Packets at a constant rate, on and off for Pareto-distributed times, or with exponential gaps.
        kind: Kind = "kind" [selects required]
            OneOf(&[("cbr", Kind::Cbr), ("pareto", Kind::Pareto), ("poisson", Kind::Poisson)]);
        /// Rate of one source, in bits on the wire; for `pareto` while it is on.
        rate: Rate = "rate" [required] AnyRate;
        /// Each gap varies by up to this fraction.
        jitter: Option<f64> = "jitter" [only ["cbr"] or 0.5] NumberIn(0.0..=1.0);
        /// Mean time on.
        burst: Option<Span> = "burst" [only ["pareto"] or Span::from_millis(500)] GAP;
        /// Mean time off.
        idle: Option<Span> = "idle" [only ["pareto"] or Span::from_millis(500)] GAP;
        /// Shape of both distributions, more than 1.
        shape: Option<f64> = "shape" [only ["pareto"] or 1.5] NumberIn(1.0..=100.0);
        /// Packets are split into pieces of at most this many wire bytes, sent back to back; at most `packet`.
        fragment: Option<WireBytes> = "fragment" [only ["pareto"] optional "not split"] WireSize(PACKET_SIZE);
        /// Wire bytes of a packet.
        packet: WireBytes = "packet" [required] WireSize(PACKET_SIZE);
        /// The direction of the packets.
        direction: Direction = "direction" [or Direction::Forward] ONE;
        /// Time of the first packet.
        start: Span = "start" [or Span::from_millis(100)] ANY_TIME;
        /// Time of the end, later than `start`.
        stop: Option<Span> = "stop" [optional "with the run"] SOME_TIME;
        /// Number of such sources, each with its own random stream.
        count: u64 = "count" [or 1_u64] IntegerIn::<u64>(1..=1000);
    }
}

impl Described for Background {
    type Rows = BackgroundRows;

    fn from_rows(rows: BackgroundRows, reader: &mut Reader<'_>) -> Option<Background> {
        check(&rows, reader);
        let BackgroundRows { rate, packet, fragment, direction, start, stop, count, .. } = rows;
        let source = match rows.kind {
            Kind::Cbr => TrafficKind::Cbr { rate, jitter: rows.jitter? },
            Kind::Poisson => TrafficKind::Poisson { rate },
            Kind::Pareto => {
                TrafficKind::ParetoOnOff { rate, burst: rows.burst?, idle: rows.idle?, shape: rows.shape? }
            }
        };
        Some(Background { source, packet, fragment, direction, start, stop, count })
    }

    fn to_rows(&self) -> BackgroundRows {
        let Background { packet, fragment, direction, start, stop, count, .. } = *self;
        let (kind, rate, jitter, pareto) = match self.source {
            TrafficKind::Cbr { rate, jitter } => (Kind::Cbr, rate, Some(jitter), None),
            TrafficKind::Poisson { rate } => (Kind::Poisson, rate, None, None),
            TrafficKind::ParetoOnOff { rate, burst, idle, shape } => {
                (Kind::Pareto, rate, None, Some((burst, idle, shape)))
            }
        };
        let (burst, idle, shape) = (pareto.map(|p| p.0), pareto.map(|p| p.1), pareto.map(|p| p.2));
        BackgroundRows {
            kind,
            rate,
            jitter,
            burst,
            idle,
            shape,
            fragment,
            packet,
            direction,
            start,
            stop,
            count,
        }
    }
}

fn check(rows: &BackgroundRows, reader: &Reader<'_>) {
    let conflict = |key, message: &str, help| {
        reader.fault(key, Fault::explained(ProblemKind::Conflict, message, help));
    };
    if rows.stop.is_some_and(|stop| stop <= rows.start) {
        conflict("stop", "this source stops before it starts", "make `stop` later than `start`");
    }
    if rows.fragment.is_some_and(|fragment| fragment > rows.packet) {
        let message = "`fragment` is larger than `packet`, so no packet would be split";
        conflict("fragment", message, "reduce it or omit it");
    }
    if rows.shape == Some(1.0) {
        let message = format!("`{}` is 1: burst and idle times would have no mean", reader.key("shape"));
        let help = "use more than 1; 1.5 is usual";
        reader.fault("shape", Fault::explained(ProblemKind::OutOfRange, message, help));
    }
}
