//! Links: both directions, cross traffic and events; and `[[link]]`, which paths may share.

use anabranch_core::time::{Rate, Span};
use anabranch_sim::QueueLimit;

use crate::background::Background;
use crate::error::ProblemKind;
use crate::event::{Event, EventList};
use crate::fault::Fault;
use crate::form::{AnyQueue, AnyRate, DELAY, Form as _, Name};
use crate::impairment::Impairments;
use crate::inner::{Inner, Tables};
use crate::loss::{Loss, LossList, Losses};
use crate::names::Names;
use crate::reader::Reader;
use crate::section::{Described, Section as _, section};
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
    pub rate: Rate,
    /// Time from the end of the transmission to the arrival.
    pub delay: Span,
    /// Limit of the queue.
    pub queue: QueueLimit,
    /// Loss processes, independent of each other.
    pub loss: Vec<Loss>,
    /// Other effects on packets.
    pub impairments: Impairments,
}

/// Maximum number of links of a scenario.
const MOST_LINKS: usize = 64;

/// Queue of a link without `queue`.
const DEFAULT_QUEUE: QueueLimit = QueueLimit::Packets(50);

section! {
    /// One direction of a link. In `reverse`, missing `rate`, `delay` and `queue` are those of the forward direction. Loss,
    /// policer, jitter and aggregation apply only if given.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct OneWayRows {
        /// Transmission rate.
        rate: Option<Rate> = "rate" [optional "required; in `reverse`, as forward"] AnyRate;
        /// One-way propagation delay.
        delay: Option<Span> = "delay" [optional "required; in `reverse`, as forward"] DELAY;
        /// Capacity of a drop-tail queue. In profile `ns2` the packet in transmission counts, in the others it does not.
        queue: Option<QueueLimit> = "queue" [optional "`\"50 packets\"`; in `reverse`, as forward"] AnyQueue;
        /// Random loss, forward by default.
        loss: Option<Losses> = "loss" [optional "none"] LossList;
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
        /// Settings of the reverse direction that differ from the forward one.
        reverse: Option<OneWayRows> = "reverse"
            [optional "`rate`, `delay` and `queue` as forward, and none of the others"] Inner::<OneWayRows>::with_header("Reverse");
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
    for (key, expected) in [("rate", expected_rate), ("delay", DELAY.expected())] {
        if !reader.has(key) {
            reader.missing(key, expected);
        }
    }
    let DuplexRows { way, reverse, background, events } = rows?;
    let losses = way.loss.unwrap_or_default();
    let queue = way.queue.unwrap_or(DEFAULT_QUEUE);
    let loss = losses.forward.unwrap_or_default();
    let forward = OneWay { rate: way.rate?, delay: way.delay?, queue, loss, impairments: way.impairments };
    let reverse = reverse_of(reader, &forward, reverse, losses.reverse)?;
    Some(Duplex { forward, reverse, background, events })
}

/// Returns the reverse direction: that of the forward one, except for loss, impairments and its own keys.
fn reverse_of(
    reader: &Reader<'_>,
    forward: &OneWay,
    rows: Option<OneWayRows>,
    lost_back: Option<Vec<Loss>>,
) -> Option<OneWay> {
    let like_forward = OneWay { loss: Vec::new(), impairments: Impairments::default(), ..forward.clone() };
    let Some(OneWayRows { rate, delay, queue, loss, impairments }) = rows else {
        return Some(OneWay { loss: lost_back.unwrap_or_default(), ..like_forward });
    };
    if loss.is_some() && lost_back.is_some() {
        let message = "the loss of the direction back is given twice";
        let help = "give it here, or with `direction` in the `loss` of the link, not both";
        reader.fault_in("reverse", "loss", Fault::explained(ProblemKind::Conflict, message, help));
        return None;
    }
    Some(OneWay {
        rate: rate.unwrap_or(forward.rate),
        delay: delay.unwrap_or(forward.delay),
        queue: queue.unwrap_or(forward.queue),
        loss: loss.and_then(|losses| losses.forward).or(lost_back).unwrap_or_default(),
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
        OneWayRows {
            rate: Some(way.rate),
            delay: Some(way.delay),
            queue: Some(way.queue),
            loss: Some(Losses::one_way(&way.loss)),
            impairments: way.impairments,
        }
    }
}

impl From<&Duplex> for DuplexRows {
    fn from(duplex: &Duplex) -> DuplexRows {
        DuplexRows {
            way: OneWayRows::from(&duplex.forward),
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
    let why = "a path with `via` has a link of its own only if it has a `rate`: give one, or move this to the [[link]]";
    for field in DuplexRows::fields() {
        reader.refuse(field.key, why);
    }
}
