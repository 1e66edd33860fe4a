//! Links: both directions, cross traffic and events; and `[[link]]`, which paths may share.

use std::path::{Path, PathBuf};

use anabranch_core::time::{Rate, Span};

use crate::background::Background;
use crate::direction::Direction;
use crate::error::ProblemKind;
use crate::event::{Event, EventList};
use crate::fault::Fault;
use crate::form::{AnyRate, DELAY, Form as _, Name};
use crate::impairment::Impairments;
use crate::inner::{Inner, Tables};
use crate::loss::{Loss, LossList, Losses};
use crate::names::Names;
use crate::queue::{Queue, QueueForm};
use crate::reader::Reader;
use crate::section::{Described, Section as _, section};
use crate::trace::{CAPACITY, CapacityFile, SERIES, SeriesFile, TraceFile};
use crate::units::format_size;

/// A link that several paths may use.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Name, unique among the links.
    pub name: String,
    /// Directions, cross traffic and events of the link.
    pub duplex: Duplex,
}

/// A link in both directions, with its cross traffic and its changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplex {
    /// Direction of the data.
    pub forward: OneWay,
    /// Opposite direction.
    pub reverse: OneWay,
    /// Time for which a packet occupies the medium besides its transmission, if both directions share one.
    pub half_duplex: Option<Span>,
    /// Cross traffic.
    pub background: Vec<Background>,
    /// Changes during a run, by time.
    pub events: Vec<Event>,
}

impl Duplex {
    /// Returns the smallest burst of its policers, in bytes.
    pub fn smallest_burst(&self) -> Option<u64> {
        let ways = [&self.forward, &self.reverse];
        ways.into_iter().filter_map(|way| way.impairments.policer).map(|policer| policer.burst.get()).min()
    }
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct OneWay {
    /// Rate at which packets leave the queue.
    pub capacity: Capacity,
    /// Time from the end of the transmission to the arrival.
    pub delay: Delay,
    /// Queue in front of the transmission.
    pub queue: Queue,
    /// Loss processes, independent of each other.
    pub loss: Vec<Loss>,
    /// Trace of a loss probability, in place of `loss`.
    pub loss_trace: Option<SeriesFile>,
    /// Trace of the times at which the link is up.
    pub outage_trace: Option<SeriesFile>,
    /// Other effects on packets.
    pub impairments: Impairments,
}

/// Capacity of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Capacity {
    /// Constant between events.
    Rate(Rate),
    /// As recorded.
    Trace(CapacityFile),
}

/// Propagation delay of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Delay {
    /// Constant between events.
    Span(Span),
    /// As recorded.
    Trace(SeriesFile),
}

impl OneWay {
    /// Returns the rate at the beginning of a run, unless the link follows a trace.
    pub fn rate(&self) -> Option<Rate> {
        if let Capacity::Rate(rate) = self.capacity { Some(rate) } else { None }
    }

    /// Returns the delay at the beginning of a run, unless the link follows a trace.
    pub fn delay(&self) -> Option<Span> {
        if let Delay::Span(delay) = self.delay { Some(delay) } else { None }
    }

    /// Returns the traces that the direction follows, with their keys.
    pub fn traces(&self) -> impl Iterator<Item = (&'static str, &TraceFile)> {
        let capacity = if let Capacity::Trace(trace) = &self.capacity { Some(&trace.file) } else { None };
        let delay = if let Delay::Trace(SeriesFile(file)) = &self.delay { Some(file) } else { None };
        let series = [("loss_trace", &self.loss_trace), ("outage_trace", &self.outage_trace)];
        let series = series.map(|(key, trace)| (key, trace.as_ref().map(|SeriesFile(file)| file)));
        let all = [("capacity", capacity), ("delay_trace", delay)].into_iter().chain(series);
        all.filter_map(|(key, file)| Some((key, file?)))
    }

    /// Replaces the paths of the traces.
    pub fn map_trace_paths(&mut self, map: impl Fn(&Path) -> PathBuf) {
        if let Capacity::Trace(trace) = &mut self.capacity {
            trace.file.path = map(&trace.file.path);
        }
        let delay = if let Delay::Trace(trace) = &mut self.delay { Some(trace) } else { None };
        for SeriesFile(file) in delay.into_iter().chain(&mut self.loss_trace).chain(&mut self.outage_trace) {
            file.path = map(&file.path);
        }
    }
}

/// Maximum number of links of a scenario.
const MOST_LINKS: usize = 64;

section! {
    /// One direction of a link. In `reverse`, missing `rate`, `delay`, `queue` and `outage_trace` are those of the forward direction.
    /// Loss, policer, jitter, aggregation and fading apply only if given.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct OneWayRows {
        /// Transmission rate.
        rate: Option<Rate> = "rate" [optional "required; in `reverse`, as forward"] AnyRate;
        /// [Trace](#traces) of the capacity, in place of `rate`.
        capacity: Option<CapacityFile> = "capacity" [optional "`rate`"] CAPACITY;
        /// One-way propagation delay.
        delay: Option<Span> = "delay" [optional "required; in `reverse`, as forward"] DELAY;
        /// [Trace](#traces) of the delay in ms, in place of `delay`.
        delay_trace: Option<SeriesFile> = "delay_trace" [optional "`delay`"] SERIES;
        /// Capacity of the queue, and with a table its [discipline](#queues). In profile `ns2` the packet in transmission counts, in
        /// the others it does not.
        queue: Option<Queue> = "queue" [optional "`\"50 packets\"`; in `reverse`, as forward"] QueueForm;
        /// Random loss, forward by default.
        loss: Option<Losses> = "loss" [optional "none"] LossList;
        /// [Trace](#traces) of a loss probability, in place of `loss`; forward by default.
        loss_trace: Option<SeriesFile> = "loss_trace" [optional "none"] SERIES;
        /// [Trace](#traces) with 1 while the link is up and 0 while it is down.
        outage_trace: Option<SeriesFile> = "outage_trace" [optional "none; in `reverse`, as forward"] SERIES;
        /// Other effects on packets.
        impairments: Impairments = "" [flatten] ();
    }
}

section! {
    /// A link in both directions, with its cross traffic and its changes.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct DuplexRows {
        /// The direction of the data.
        way: OneWayRows = "" [flatten] ();
        /// Both directions share a [medium](simulator.md#radio) and send in turn. Each packet occupies it for this time besides
        /// its transmission.
        half_duplex: Option<Span> = "half_duplex" [optional "each direction sends at any time"] DELAY;
        /// Settings of the reverse direction that differ from the forward one.
        reverse: Option<OneWayRows> = "reverse"
            [optional "`rate`, `delay`, `queue` and `outage_trace` as forward, and none of the others"] Inner::<OneWayRows>::with_header("Reverse");
        /// Cross traffic.
        background: Vec<Background> = "background" [list] Tables::<Background>::new("Background");
        /// Changes in the course of a run.
        events: Vec<Event> = "event" [list] EventList;
    }
}

section! {
    /// A link that paths share, `[[link]]`.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct LinkRows {
        /// The name, unique among the links.
        name: Option<String> = "name" [optional "`\"link-1\"`, …"] Name;
    }
}

pub(crate) fn read_links(mut readers: Vec<Reader<'_>>, names: &mut Names) -> Option<Vec<Link>> {
    names.limit(&mut readers, MOST_LINKS);
    let read = |reader: Reader<'_>| {
        let name = names.add(&reader);
        read_link(reader, |_| name)
    };
    let links: Vec<Option<Link>> = readers.into_iter().map(read).collect();
    links.into_iter().collect()
}

/// Reads a link whose name follows from its own keys.
pub(crate) fn read_link(
    mut reader: Reader<'_>,
    name: impl FnOnce(LinkRows) -> Option<String>,
) -> Option<Link> {
    let rows = LinkRows::read_rows(&mut reader);
    let duplex = read_duplex(&mut reader, AnyRate.expected());
    reader.finish();
    Some(Link { name: name(rows?)?, duplex: duplex? })
}

/// Reads the keys of a link, which a path with its own link has too.
pub(crate) fn read_duplex(reader: &mut Reader<'_>, expected_rate: String) -> Option<Duplex> {
    let rows = DuplexRows::read_rows(reader);
    for (key, trace, expected) in
        [("rate", "capacity", expected_rate), ("delay", "delay_trace", DELAY.expected())]
    {
        if !reader.has(key) && !reader.has(trace) {
            reader.missing(key, expected);
        }
    }
    let DuplexRows { way, half_duplex, reverse, background, events } = rows?;
    let mut sound = check_alternatives(&way, |key, fault| reader.fault(key, fault));
    if let Some(reverse) = &reverse {
        sound &= check_alternatives(reverse, |key, fault| reader.fault_in("reverse", key, fault));
    }
    let OneWayRows { rate, capacity, delay, delay_trace, queue, loss, loss_trace, outage_trace, impairments } =
        way;
    let losses = loss.unwrap_or_default();
    let forward = OneWay {
        capacity: capacity_of(rate, capacity)?,
        delay: delay_of(delay, delay_trace)?,
        queue: queue.unwrap_or(Queue::DEFAULT),
        loss: losses.forward.unwrap_or_default(),
        loss_trace,
        outage_trace,
        impairments,
    };
    let reverse = reverse_of(reader, &forward, reverse, losses.reverse)?;
    let duplex = Duplex { forward, reverse, half_duplex, background, events };
    (sound & check_radio(reader, &duplex) & check_events(reader, &duplex)).then_some(duplex)
}

fn capacity_of(rate: Option<Rate>, trace: Option<CapacityFile>) -> Option<Capacity> {
    trace.map(Capacity::Trace).or(rate.map(Capacity::Rate))
}

fn delay_of(delay: Option<Span>, trace: Option<SeriesFile>) -> Option<Delay> {
    trace.map(Delay::Trace).or(delay.map(Delay::Span))
}

/// Reports traces that are given beside the value in whose place they are used, or scaled without effect. Returns `true` if there is none.
fn check_alternatives(way: &OneWayRows, report: impl Fn(&str, Fault)) -> bool {
    let both = [
        ("rate", "capacity", way.rate.is_some() && way.capacity.is_some()),
        ("delay", "delay_trace", way.delay.is_some() && way.delay_trace.is_some()),
        ("loss", "loss_trace", way.loss.is_some() && way.loss_trace.is_some()),
    ];
    let series = [("loss_trace", &way.loss_trace), ("outage_trace", &way.outage_trace)];
    let scaled =
        series.into_iter().find(|(_, trace)| trace.as_ref().is_some_and(|trace| trace.0.scale != 1.0));
    if let Some((key, _)) = scaled {
        let message = format!("`{key}` cannot be scaled");
        let help = "remove `scale`, which is for rates and delays";
        report(key, Fault::explained(ProblemKind::Conflict, message, help));
    }
    let both: Vec<_> = both.into_iter().filter(|(.., both)| *both).collect();
    for (key, trace, _) in &both {
        let message = format!("`{trace}` and `{key}` exclude each other");
        let help =
            format!("keep `{trace}` to follow the trace, or `{key}` for a value that no trace changes");
        report(trace, Fault::explained(ProblemKind::Conflict, message, help));
    }
    both.is_empty() && scaled.is_none()
}

/// Reports keys that determine when a link sends together with a key of radio links. Returns `true` if there is none.
fn check_radio(reader: &Reader<'_>, duplex: &Duplex) -> bool {
    let ways = [&duplex.forward, &duplex.reverse];
    let has_trace = |way: &OneWay| way.rate().is_none();
    let conflicts = [
        ("fading", "capacity", ways.iter().any(|way| way.impairments.fading.is_some() && has_trace(way))),
        ("half_duplex", "capacity", duplex.half_duplex.is_some() && ways.iter().any(|way| has_trace(way))),
        (
            "half_duplex",
            "aggregation",
            duplex.half_duplex.is_some() && ways.iter().any(|way| way.impairments.aggregation.is_some()),
        ),
    ];
    let found = conflicts.into_iter().find(|(.., conflict)| *conflict);
    if let Some((key, other, _)) = found {
        let message = format!("`{key}` and `{other}` exclude each other on a link");
        let help = format!("remove `{other}` from both directions, or `{key}`");
        reader.fault(key, Fault::explained(ProblemKind::Conflict, message, help));
    }
    found.is_none()
}

/// Reports events that change a value which a trace or a fading channel determines. Returns `true` if there is none.
fn check_events(reader: &Reader<'_>, duplex: &Duplex) -> bool {
    let conflict = |event: &Event| {
        let way = match event.direction {
            Direction::Forward => &duplex.forward,
            Direction::Reverse => &duplex.reverse,
        };
        let changed = [
            ("rate", "capacity", event.change.rate.is_some()),
            ("rate", "fading", event.change.rate.is_some()),
            ("delay", "delay_trace", event.change.delay.is_some()),
            ("loss", "loss_trace", event.loss.is_some()),
            ("up", "outage_trace", event.change.up.is_some()),
        ];
        let follows = |key: &str| {
            way.traces().any(|(trace, _)| trace == key)
                || (key == "fading" && way.impairments.fading.is_some())
        };
        changed.into_iter().find(|(_, trace, is_changed)| *is_changed && follows(trace))
    };
    let found = duplex.events.iter().find_map(conflict);
    if let Some((key, trace, _)) = found {
        let message = format!("an event sets `{key}`, but `{trace}` determines it");
        let help = format!("remove the key from the event, or `{trace}` from the link");
        reader.fault("event", Fault::explained(ProblemKind::Conflict, message, help));
    }
    found.is_none()
}

/// Returns the reverse direction: that of the forward one, except for loss, impairments and its own keys.
fn reverse_of(
    reader: &Reader<'_>,
    forward: &OneWay,
    rows: Option<OneWayRows>,
    lost_back: Option<Vec<Loss>>,
) -> Option<OneWay> {
    let like_forward = OneWay {
        loss: lost_back.clone().unwrap_or_default(),
        loss_trace: None,
        impairments: Impairments::default(),
        ..forward.clone()
    };
    let Some(rows) = rows else { return Some(like_forward) };
    let own_loss = [("loss", rows.loss.is_some()), ("loss_trace", rows.loss_trace.is_some())];
    if let Some((key, _)) = own_loss.into_iter().find(|(_, given)| *given && lost_back.is_some()) {
        let message = "the loss of the direction back is given twice";
        let help = "give it here, or with `direction` in the `loss` of the link, not both";
        reader.fault_in("reverse", key, Fault::explained(ProblemKind::Conflict, message, help));
        return None;
    }
    let OneWayRows { rate, capacity, delay, delay_trace, queue, loss, loss_trace, outage_trace, impairments } =
        rows;
    Some(OneWay {
        capacity: capacity_of(rate, capacity).unwrap_or(like_forward.capacity),
        delay: delay_of(delay, delay_trace).unwrap_or(like_forward.delay),
        queue: queue.unwrap_or(forward.queue),
        loss: loss.and_then(|losses| losses.forward).unwrap_or(like_forward.loss),
        loss_trace,
        outage_trace: outage_trace.or(like_forward.outage_trace),
        impairments,
    })
}

impl Described for OneWayRows {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        self.clone()
    }

    fn read(mut reader: Reader<'_>) -> Option<Self> {
        reader.set_one_way();
        let rows = Self::read_rows(&mut reader);
        reader.finish();
        rows
    }
}

impl From<&OneWay> for OneWayRows {
    fn from(way: &OneWay) -> OneWayRows {
        let capacity = if let Capacity::Trace(trace) = &way.capacity { Some(trace.clone()) } else { None };
        let delay_trace = if let Delay::Trace(trace) = &way.delay { Some(trace.clone()) } else { None };
        let loss = way.loss_trace.is_none().then(|| Losses::one_way(&way.loss));
        OneWayRows {
            rate: way.rate(),
            capacity,
            delay: way.delay(),
            delay_trace,
            queue: Some(way.queue),
            loss,
            loss_trace: way.loss_trace.clone(),
            outage_trace: way.outage_trace.clone(),
            impairments: way.impairments,
        }
    }
}

impl From<&Duplex> for DuplexRows {
    fn from(duplex: &Duplex) -> DuplexRows {
        DuplexRows {
            way: OneWayRows::from(&duplex.forward),
            half_duplex: duplex.half_duplex,
            reverse: Some(OneWayRows::from(&duplex.reverse)),
            background: duplex.background.clone(),
            events: duplex.events.clone(),
        }
    }
}

/// Reports policers that drop every packet of the largest size. Such a policer would stop each association that fills its packets.
pub(crate) fn check_bursts<'d>(
    root: &Reader<'_>,
    list: &str,
    mtu_bytes: u64,
    duplexes: impl Iterator<Item = Option<&'d Duplex>>,
) {
    for (index, duplex) in duplexes.enumerate() {
        let burst = duplex.and_then(Duplex::smallest_burst);
        if let Some(burst) = burst.filter(|burst| *burst < mtu_bytes) {
            let (burst, mtu) = (format_size(burst), format_size(mtu_bytes));
            let message = format!(
                "a `policer` with a burst of {burst} drops every packet as large as `association.mtu`, {mtu}"
            );
            let help = format!("give a burst of at least {mtu}, or a smaller `association.mtu`");
            root.fault_of_element(list, index, Fault::explained(ProblemKind::Conflict, message, help));
        }
    }
}

/// Reports keys of a link in a path without its own link.
pub(crate) fn refuse_duplex(reader: &mut Reader<'_>) {
    let why = "a path with `via` has a link of its own only if it has a `rate` or a `capacity`: give one, or move this to the [[link]]";
    for field in DuplexRows::fields() {
        reader.refuse(field.key, why);
    }
}
