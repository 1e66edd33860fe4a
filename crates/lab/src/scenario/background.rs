//! `[[path.background]]`: traffic of others on a link.

use anabranch_core::time::{Rate, Span};

use super::direction::{DIRECTIONS, Direction};
use super::error::ProblemKind;
use super::fault::Fault;
use super::reader::Reader;
use super::shape::{ANY_TIME, AnyRate, IntegerIn, NumberIn, OneOf, PACKET_SIZE, SOME_TIME};

/// Sources of traffic in one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Background {
    /// When packets are sent.
    pub source: TrafficModel,
    /// Size of a packet in wire bytes.
    pub packet_bytes: u64,
    /// Which way they go.
    pub direction: Direction,
    /// When the sources start.
    pub start: Span,
    /// When they stop; without it, with the run.
    pub stop: Option<Span>,
    /// Number of such sources, each with a random stream of its own.
    pub count: u64,
}

/// When a source sends packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TrafficModel {
    /// At a constant rate.
    Cbr {
        /// The rate of one source.
        rate: Rate,
        /// Each gap is longer or shorter by up to this fraction of it.
        jitter: f64,
    },
    /// With exponentially distributed gaps.
    Poisson {
        /// The mean rate of one source.
        rate: Rate,
    },
    /// On and off for Pareto distributed times.
    Pareto {
        /// The rate of one source while it is on.
        rate: Rate,
        /// Mean time on.
        burst: Span,
        /// Mean time off.
        idle: Span,
        /// Shape of both distributions; more than 1.
        shape: f64,
        /// Packets are split into pieces of at most this many wire bytes, sent back to back.
        fragment_bytes: Option<u64>,
    },
}

#[derive(Clone, Copy)]
enum Kind {
    Cbr,
    Poisson,
    Pareto,
}

const KINDS: &[(&str, Kind)] = &[("cbr", Kind::Cbr), ("pareto", Kind::Pareto), ("poisson", Kind::Poisson)];

/// Reads a list of sources, `None` if it is no list or one of them is wrong.
pub(super) fn read_all(readers: Option<Vec<Reader<'_>>>) -> Option<Vec<Background>> {
    let all: Vec<Option<Background>> = readers?.into_iter().map(read).collect();
    all.into_iter().collect()
}

fn read(mut reader: Reader<'_>) -> Option<Background> {
    let kind = reader.required("kind", &OneOf(KINDS));
    let rate = reader.required("rate", &AnyRate);
    let packet = reader.required("packet", &PACKET_SIZE);
    let direction = reader.or("direction", &OneOf(DIRECTIONS), Direction::Forward);
    let start = reader.or("start", &ANY_TIME, Span::from_millis(100));
    let stop = reader.optional("stop", &SOME_TIME);
    let count = reader.or("count", &IntegerIn(1..=1000), 1);
    let source = match kind {
        Some(kind) => read_source(&mut reader, kind, rate, packet),
        None => {
            // Which of these belong here is not known without the kind.
            reader.know(&["jitter", "burst", "idle", "shape", "fragment"]);
            None
        }
    };
    if let (Some(start), Some(Some(stop))) = (start, stop)
        && stop <= start
    {
        let message = "this source stops before it starts";
        reader
            .fault("stop", Fault::because(ProblemKind::Conflict, message, "make `stop` later than `start`"));
    }
    reader.finish();
    Some(Background {
        source: source?,
        packet_bytes: packet?,
        direction: direction?,
        start: start?,
        stop: stop?,
        count: count?,
    })
}

fn read_source(
    reader: &mut Reader<'_>,
    kind: Kind,
    rate: Option<Rate>,
    packet: Option<u64>,
) -> Option<TrafficModel> {
    match kind {
        Kind::Cbr => {
            let jitter = reader.or("jitter", &NumberIn(0.0..=1.0), 0.5);
            refuse_pareto(reader);
            Some(TrafficModel::Cbr { rate: rate?, jitter: jitter? })
        }
        Kind::Poisson => {
            reader.refuse(
                "jitter",
                "only `kind = \"cbr\"` has it: the gaps of a Poisson source are random as they are",
            );
            refuse_pareto(reader);
            Some(TrafficModel::Poisson { rate: rate? })
        }
        Kind::Pareto => read_pareto(reader, rate, packet),
    }
}

fn read_pareto(reader: &mut Reader<'_>, rate: Option<Rate>, packet: Option<u64>) -> Option<TrafficModel> {
    let half_a_second = Span::from_millis(500);
    let burst = reader.or("burst", &SOME_TIME, half_a_second);
    let idle = reader.or("idle", &SOME_TIME, half_a_second);
    let shape = reader.or("shape", &NumberIn(1.0..=100.0), 1.5);
    let fragment = reader.optional("fragment", &PACKET_SIZE);
    reader.refuse("jitter", "only `kind = \"cbr\"` has it");
    if let (Some(Some(fragment)), Some(packet)) = (fragment, packet)
        && fragment > packet
    {
        let message = "`fragment` is larger than `packet`, so nothing would be split";
        reader.fault(
            "fragment",
            Fault::because(ProblemKind::Conflict, message, "make it smaller or leave it out"),
        );
    }
    if shape == Some(1.0) {
        let message = format!("`{}` is 1: burst and idle times would have no mean", reader.key("shape"));
        reader.fault(
            "shape",
            Fault::because(ProblemKind::OutOfRange, message, "use more than 1; 1.5 is usual"),
        );
    }
    Some(TrafficModel::Pareto {
        rate: rate?,
        burst: burst?,
        idle: idle?,
        shape: shape?,
        fragment_bytes: fragment?,
    })
}

fn refuse_pareto(reader: &mut Reader<'_>) {
    for key in ["burst", "idle", "shape", "fragment"] {
        reader.refuse(key, "only `kind = \"pareto\"` has it");
    }
}
