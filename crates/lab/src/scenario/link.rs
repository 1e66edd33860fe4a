//! Links: rate, delay, queue and loss in both directions, and `[[link]]`, which paths may share.

use anabranch_core::time::{Rate, Span};

use super::background::{self, Background};
use super::document::Node;
use super::error::ProblemKind;
use super::event::{self, Event};
use super::fault::Fault;
use super::impairment::{self, Impairments, read_impairments};
use super::loss::{Loss, Sides, read_losses};
use super::names::Names;
use super::reader::Reader;
use super::shape::{AnyQueue, AnyRate, DELAY, Shape};
use super::units::{Queue, format_size};

/// A link that several paths may go through.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Unique among the links.
    pub name: String,
    /// What it is like.
    pub duplex: Duplex,
}

/// A link in both directions, what else it carries and what happens to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplex {
    /// The direction of the data.
    pub forward: OneWay,
    /// The direction back.
    pub reverse: OneWay,
    /// Traffic of others.
    pub background: Vec<Background>,
    /// Changes in the course of a run, by time.
    pub events: Vec<Event>,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct OneWay {
    /// The rate at which packets leave the queue.
    pub rate: Rate,
    /// Time from the end of sending to arrival.
    pub delay: Span,
    /// How long the queue may get.
    pub queue: Queue,
    /// What is lost, by processes independent of each other.
    pub loss: Vec<Loss>,
    /// What else it does to packets.
    pub impairments: Impairments,
}

/// Links of a scenario at most.
const MOST_LINKS: usize = 64;

/// The queue of a link that does not say.
const DEFAULT_QUEUE: Queue = Queue::Packets(50);

pub(super) fn read_links(mut readers: Vec<Reader<'_>>, names: &mut Names) -> Option<Vec<Link>> {
    names.limit(&mut readers, MOST_LINKS);
    let read = |mut reader: Reader<'_>| {
        let name = names.read(&mut reader);
        let duplex = read_duplex(&mut reader, &LinkRate { or_via: false });
        reader.finish();
        Some(Link { name: name?, duplex: duplex? })
    };
    let links: Vec<Option<Link>> = readers.into_iter().map(read).collect();
    links.into_iter().collect()
}

/// Reads the keys of a link, which a path with a link of its own has too.
pub(super) fn read_duplex(reader: &mut Reader<'_>, shape: &LinkRate) -> Option<Duplex> {
    let rate = reader.required("rate", shape);
    let delay = reader.required("delay", &DELAY);
    let queue = reader.or("queue", &AnyQueue, DEFAULT_QUEUE);
    let losses = read_losses(reader, Sides::Both);
    let impairments = read_impairments(reader);
    let forward = || {
        let loss = losses.as_ref()?.forward.clone().unwrap_or_default();
        Some(OneWay { rate: rate?, delay: delay?, queue: queue?, loss, impairments: impairments? })
    };
    let forward = forward();
    let lost_back = losses.and_then(|losses| losses.reverse);
    let reverse = reader.table("reverse").map(|back| read_reverse(back, forward.as_ref(), lost_back));
    let background = background::read_all(reader.tables("background"));
    let events = event::read_all(reader.tables("event"));
    Some(Duplex { forward: forward?, reverse: reverse??, background: background?, events: events? })
}

/// Reads the direction back, which is like the other one but for the loss, the impairments and what is said here.
fn read_reverse(
    mut reader: Reader<'_>,
    forward: Option<&OneWay>,
    lost_back: Option<Vec<Loss>>,
) -> Option<OneWay> {
    let rate = reader.optional("rate", &AnyRate);
    let delay = reader.optional("delay", &DELAY);
    let queue = reader.optional("queue", &AnyQueue);
    let losses = read_losses(&mut reader, Sides::One);
    let impairments = read_impairments(&mut reader);
    if reader.has("loss") && lost_back.is_some() {
        let message = "the loss of the direction back is given twice";
        let help = "give it here, or with `direction` in the `loss` of the link, not both";
        reader.fault("loss", Fault::because(ProblemKind::Conflict, message, help));
    }
    reader.finish();
    let (rate, delay, queue, losses, impairments) = (rate?, delay?, queue?, losses?, impairments?);
    let forward = forward?;
    Some(OneWay {
        rate: rate.unwrap_or(forward.rate),
        delay: delay.unwrap_or(forward.delay),
        queue: queue.unwrap_or(forward.queue),
        loss: losses.forward.or(lost_back).unwrap_or_default(),
        impairments,
    })
}

/// Complains about policers that no packet of the largest size passes: they would stop every association that fills its packets.
pub(super) fn check_bursts<'d>(
    root: &Reader<'_>,
    list: &str,
    mtu_bytes: u64,
    duplexes: impl Iterator<Item = Option<&'d Duplex>>,
) {
    for (index, duplex) in duplexes.enumerate() {
        let ways = duplex.into_iter().flat_map(|duplex| [&duplex.forward, &duplex.reverse]);
        let bursts = ways.filter_map(|way| way.impairments.policer).map(|policer| policer.burst.get());
        if let Some(burst) = bursts.min().filter(|burst| *burst < mtu_bytes) {
            let (burst, mtu) = (format_size(burst), format_size(mtu_bytes));
            let message = format!(
                "a `policer` with a burst of {burst} drops every packet as large as `association.mtu`, {mtu}"
            );
            let help = format!("give a burst of at least {mtu}, or a smaller `association.mtu`");
            root.fault_of_element(list, index, Fault::because(ProblemKind::Conflict, message, help));
        }
    }
}

/// Complains about keys of a link in a path that has none of its own.
pub(super) fn refuse_duplex(reader: &mut Reader<'_>) {
    let why = "a path with `via` has a link of its own only if it has a `rate`: give one, or move this to the [[link]]";
    let keys = ["delay", "queue", "loss", "reverse", "background", "event"];
    for key in keys.into_iter().chain(impairment::KEYS) {
        reader.refuse(key, why);
    }
}

/// The rate of a link.
pub(super) struct LinkRate {
    /// Whether the link is a path's, which could do without.
    pub(super) or_via: bool,
}

impl Shape for LinkRate {
    type Output = Rate;

    fn expected(&self) -> String {
        let rate = AnyRate.expected();
        if self.or_via { format!("{rate}; or `via` with the names of links") } else { rate }
    }

    fn read(&self, node: &Node) -> Result<Rate, Fault> {
        AnyRate.read(node)
    }
}
