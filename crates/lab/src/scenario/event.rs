//! `[[path.event]]`: what happens to a link in the course of a run.

use anabranch_core::time::{Rate, Span};

use super::direction::{DIRECTIONS, Direction};
use super::error::ProblemKind;
use super::fault::Fault;
use super::loss::{Loss, Losses, Sides, read_losses};
use super::reader::Reader;
use super::shape::{ANY_TIME, AnyRate, DELAY, Flag, OneOf};

/// A change to one direction of a link. What is `None` stays as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Time of the change, from the start of the run.
    pub at: Span,
    /// The direction that changes.
    pub direction: Direction,
    /// Whether the link carries packets from then on.
    pub up: Option<bool>,
    /// The rate from then on.
    pub rate: Option<Rate>,
    /// The delay from then on.
    pub delay: Option<Span>,
    /// What is lost from then on, in place of everything that was lost before.
    pub loss: Option<Vec<Loss>>,
}

/// An event and where its table stands.
type PlacedEvent = (Event, usize);

/// Reads a list of events and puts them in the order of their times. An event that changes both directions becomes
/// one for each.
pub(super) fn read_all(readers: Option<Vec<Reader<'_>>>) -> Option<Vec<Event>> {
    let mut readers = readers?;
    let read: Vec<Option<Vec<Event>>> = readers.iter_mut().map(read).collect();
    let placed = |(index, events): (usize, Option<Vec<Event>>)| {
        events.map(|events| events.into_iter().map(|event| (event, index)).collect::<Vec<PlacedEvent>>())
    };
    let all: Option<Vec<Vec<PlacedEvent>>> = read.into_iter().enumerate().map(placed).collect();
    let mut all: Option<Vec<PlacedEvent>> = all.map(|all| all.into_iter().flatten().collect());
    if let Some(all) = &mut all {
        all.sort_by_key(|(event, _)| event.at);
        refuse_contradictions(all, &readers);
    }
    readers.into_iter().for_each(Reader::finish);
    Some(all?.into_iter().map(|(event, _)| event).collect())
}

fn refuse_contradictions(all: &[PlacedEvent], readers: &[Reader<'_>]) {
    for (later, (event, index)) in all.iter().enumerate() {
        let at_once = all[..later].iter().rev().take_while(|(earlier, _)| earlier.at == event.at);
        if let Some(key) = at_once.into_iter().find_map(|(earlier, _)| earlier.contradicts(event)) {
            let message = format!("two events set `{key}` at the same time in the same direction");
            let help = "leave one out or give them different times";
            readers[*index].fault(key, Fault::because(ProblemKind::Conflict, message, help));
        }
    }
}

impl Event {
    /// The key that both events set, if they do so at the same time.
    fn contradicts(&self, other: &Event) -> Option<&'static str> {
        if self.at != other.at || self.direction != other.direction {
            return None;
        }
        let both = [
            ("up", self.up.is_some() && other.up.is_some()),
            ("rate", self.rate.is_some() && other.rate.is_some()),
            ("delay", self.delay.is_some() && other.delay.is_some()),
            ("loss", self.loss.is_some() && other.loss.is_some()),
        ];
        both.into_iter().find(|(_, set)| *set).map(|(key, _)| key)
    }

    fn changes_something(&self) -> bool {
        self.up.is_some() || self.rate.is_some() || self.delay.is_some() || self.loss.is_some()
    }
}

fn read(reader: &mut Reader<'_>) -> Option<Vec<Event>> {
    let at = reader.required("at", &ANY_TIME);
    let up = reader.optional("up", &Flag);
    let rate = reader.optional("rate", &AnyRate);
    let delay = reader.optional("delay", &DELAY);
    let sides = if reader.has("direction") { Sides::One } else { Sides::Both };
    let losses = read_losses(reader, sides);
    let direction = reader.optional("direction", &OneOf(DIRECTIONS));
    let (at, up, rate, delay) = (at?, up?, rate?, delay?);
    let Losses { forward, reverse } = losses?;
    let event = |direction, loss| Event { at, direction, up, rate, delay, loss };
    let events = match direction? {
        Some(direction) => vec![event(direction, forward)],
        None => vec![event(Direction::Forward, forward), event(Direction::Reverse, reverse)],
    };
    let events: Vec<Event> = events.into_iter().filter(Event::changes_something).collect();
    if events.is_empty() {
        let help = "give one or more of `up`, `rate`, `delay` and `loss`";
        reader.fault_here(Fault::because(ProblemKind::Conflict, "this event changes nothing", help));
        return None;
    }
    Some(events)
}
