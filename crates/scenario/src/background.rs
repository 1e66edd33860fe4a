//! `[[path.background]]`: cross traffic on a link.

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;
use anabranch_sim::TrafficKind;

use crate::direction::{Direction, ONE};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::form::{
    ANY_TIME, AnyRate, GAP, IntegerIn, NumberIn, OneOf, PACKET_SIZE, SOME_TIME, SizeIn, WireSize,
};
use crate::reader::Reader;
use crate::section::{Described, section};

/// Sources of traffic in one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// Traffic of a source.
    pub source: BackgroundSource,
    /// Direction of the packets.
    pub direction: Direction,
    /// Time of the first packet.
    pub start: Span,
    /// Time of the end; `None` for the end of the run.
    pub stop: Option<Span>,
    /// Number of such sources, each with a random stream of its own.
    pub count: u64,
}

/// Traffic of one source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BackgroundSource {
    /// Packets that do not react to losses.
    Packets {
        /// Times at which packets are sent.
        times: TrafficKind,
        /// Size of a packet.
        packet: WireBytes,
        /// Largest piece that packets are split into.
        fragment: Option<WireBytes>,
    },
    /// Data with congestion control.
    Reacting(Reacting),
}

/// Data with congestion control.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reacting {
    /// Mean rate of user data.
    pub rate: Rate,
    /// Pieces of data that the source sends.
    pub pieces: Pieces,
    /// Congestion control.
    pub control: Control,
}

/// Pieces of data that a source with congestion control sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pieces {
    /// Transfers with Poisson arrivals and bounded Pareto sizes, each in an association of its own.
    Transfers {
        /// Smallest size in bytes.
        min_bytes: u64,
        /// Largest size in bytes.
        max_bytes: u64,
        /// Shape of the distribution, above 1.
        shape: f64,
    },
    /// Equal segments of a video at equal times, in one association.
    Segments {
        /// Time from one segment to the next.
        every: Span,
    },
}

/// Congestion control of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Reno's, in the form of RFC 9260.
    NewReno,
    /// CUBIC.
    Cubic,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Cbr,
    Poisson,
    Pareto,
    Transfers,
    Video,
}

/// Most sources with congestion control of one table, since each has hundreds of hosts.
const MOST_REACTING: u64 = 16;

/// Size of a transfer.
const TRANSFER: SizeIn = SizeIn(1..=1_000_000_000, "B");

section! {
    /// Cross traffic on one link.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct BackgroundRows {
        /// Packets at a constant rate, on and off for Pareto-distributed times, or with exponential gaps. `transfers` and `video`
        /// [react to losses](simulator.md#cross-traffic): short transfers with Poisson arrivals, and segments at equal times.
        kind: Kind = "kind" [selects required] OneOf(&[
            ("cbr", Kind::Cbr),
            ("pareto", Kind::Pareto),
            ("poisson", Kind::Poisson),
            ("transfers", Kind::Transfers),
            ("video", Kind::Video),
        ]);
        /// Rate of one source, in bits on the wire; for `pareto` while it is on. For `transfers` and `video`, mean rate of user data.
        rate: Rate = "rate" [required] AnyRate;
        /// Each gap varies by up to this fraction.
        jitter: Option<f64> = "jitter" [only ["cbr"] or 0.5] NumberIn(0.0..=1.0);
        /// Mean time on.
        burst: Option<Span> = "burst" [only ["pareto"] or Span::from_millis(500)] GAP;
        /// Mean time off.
        idle: Option<Span> = "idle" [only ["pareto"] or Span::from_millis(500)] GAP;
        /// Shape of the Pareto distributions, more than 1.
        shape: Option<f64> = "shape" [only ["pareto", "transfers"] or 1.5] NumberIn(1.0..=100.0);
        /// Smallest size of a transfer.
        min_size: Option<u64> = "min_size" [only ["transfers"] or 10_000_u64] TRANSFER;
        /// Largest size of a transfer, more than `min_size`.
        max_size: Option<u64> = "max_size" [only ["transfers"] or 10_000_000_u64] TRANSFER;
        /// Time from one segment to the next.
        segment: Option<Span> = "segment" [only ["video"] or Span::from_secs(2)] GAP;
        /// Congestion control.
        control: Option<Control> = "control" [only ["transfers", "video"] or Control::Cubic]
            OneOf(&[("cubic", Control::Cubic), ("newreno", Control::NewReno)]);
        /// Packets are split into pieces of at most this many wire bytes, sent back to back; at most `packet`.
        fragment: Option<WireBytes> = "fragment" [only ["pareto"] optional "not split"] WireSize(PACKET_SIZE);
        /// Wire bytes of a packet.
        packet: Option<WireBytes> = "packet" [only ["cbr", "pareto", "poisson"] required] WireSize(PACKET_SIZE);
        /// The direction of the packets.
        direction: Direction = "direction" [or Direction::Forward] ONE;
        /// Time of the first packet.
        start: Span = "start" [or Span::from_millis(100)] ANY_TIME;
        /// Time of the end, later than `start`.
        stop: Option<Span> = "stop" [optional "with the run"] SOME_TIME;
        /// Number of such sources, each with its own random stream; at most 16 of `transfers` and `video`.
        count: u64 = "count" [or 1_u64] IntegerIn::<u64>(1..=1000);
    }
}

impl Described for Background {
    type Rows = BackgroundRows;

    fn from_rows(rows: BackgroundRows, reader: &mut Reader<'_>) -> Option<Background> {
        check(&rows, reader);
        let source = source_of(&rows)?;
        let BackgroundRows { direction, start, stop, count, .. } = rows;
        Some(Background { source, direction, start, stop, count })
    }

    fn to_rows(&self) -> BackgroundRows {
        let Background { source, direction, start, stop, count } = *self;
        let rows = BackgroundRows { direction, start, stop, count, ..EMPTY };
        match source {
            BackgroundSource::Packets { times, packet, fragment } => {
                times_to_rows(times, BackgroundRows { packet: Some(packet), fragment, ..rows })
            }
            BackgroundSource::Reacting(Reacting { rate, pieces, control }) => {
                pieces_to_rows(pieces, BackgroundRows { rate, control: Some(control), ..rows })
            }
        }
    }
}

/// Rows without values.
const EMPTY: BackgroundRows = BackgroundRows {
    kind: Kind::Poisson,
    rate: Rate::from_bps(0),
    jitter: None,
    burst: None,
    idle: None,
    shape: None,
    min_size: None,
    max_size: None,
    segment: None,
    control: None,
    fragment: None,
    packet: None,
    direction: Direction::Forward,
    start: Span::ZERO,
    stop: None,
    count: 1,
};

fn source_of(rows: &BackgroundRows) -> Option<BackgroundSource> {
    let rate = rows.rate;
    let times = match rows.kind {
        Kind::Cbr => TrafficKind::Cbr { rate, jitter: rows.jitter? },
        Kind::Poisson => TrafficKind::Poisson { rate },
        Kind::Pareto => {
            TrafficKind::ParetoOnOff { rate, burst: rows.burst?, idle: rows.idle?, shape: rows.shape? }
        }
        Kind::Transfers | Kind::Video => {
            let (pieces, control) = (pieces_of(rows)?, rows.control?);
            return Some(BackgroundSource::Reacting(Reacting { rate, pieces, control }));
        }
    };
    Some(BackgroundSource::Packets { times, packet: rows.packet?, fragment: rows.fragment })
}

fn pieces_of(rows: &BackgroundRows) -> Option<Pieces> {
    if rows.kind == Kind::Video {
        return Some(Pieces::Segments { every: rows.segment? });
    }
    Some(Pieces::Transfers { min_bytes: rows.min_size?, max_bytes: rows.max_size?, shape: rows.shape? })
}

fn times_to_rows(times: TrafficKind, rows: BackgroundRows) -> BackgroundRows {
    match times {
        TrafficKind::Cbr { rate, jitter } => {
            BackgroundRows { kind: Kind::Cbr, rate, jitter: Some(jitter), ..rows }
        }
        TrafficKind::Poisson { rate } => BackgroundRows { kind: Kind::Poisson, rate, ..rows },
        TrafficKind::ParetoOnOff { rate, burst, idle, shape } => BackgroundRows {
            kind: Kind::Pareto,
            rate,
            burst: Some(burst),
            idle: Some(idle),
            shape: Some(shape),
            ..rows
        },
    }
}

fn pieces_to_rows(pieces: Pieces, rows: BackgroundRows) -> BackgroundRows {
    match pieces {
        Pieces::Transfers { min_bytes, max_bytes, shape } => BackgroundRows {
            kind: Kind::Transfers,
            min_size: Some(min_bytes),
            max_size: Some(max_bytes),
            shape: Some(shape),
            ..rows
        },
        Pieces::Segments { every } => BackgroundRows { kind: Kind::Video, segment: Some(every), ..rows },
    }
}

fn check(rows: &BackgroundRows, reader: &Reader<'_>) {
    let conflict = |key, message: &str, help| {
        reader.fault(key, Fault::explained(ProblemKind::Conflict, message, help));
    };
    if rows.stop.is_some_and(|stop| stop <= rows.start) {
        conflict("stop", "this source stops before it starts", "make `stop` later than `start`");
    }
    if let (Some(fragment), Some(packet)) = (rows.fragment, rows.packet)
        && fragment > packet
    {
        let message = "`fragment` is larger than `packet`, so no packet would be split";
        conflict("fragment", message, "reduce it or omit it");
    }
    if matches!(rows.kind, Kind::Transfers | Kind::Video) && rows.count > MOST_REACTING {
        let message = format!("more than {MOST_REACTING} sources with congestion control");
        conflict("count", &message, "increase `rate` instead");
    }
    if let (Some(min), Some(max)) = (rows.min_size, rows.max_size)
        && min >= max
    {
        conflict("max_size", "`max_size` is not more than `min_size`", "increase it or reduce `min_size`");
    }
    if rows.shape == Some(1.0) {
        let message = format!("`{}` is 1: the distribution would have no mean", reader.key("shape"));
        let help = "use more than 1; 1.5 is usual";
        reader.fault("shape", Fault::explained(ProblemKind::OutOfRange, message, help));
    }
}
