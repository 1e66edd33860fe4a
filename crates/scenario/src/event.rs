//! `[[path.event]]`: changes of a link in the course of a run.

use anabranch_core::time::{Rate, Span};

use crate::direction::{Direction, ONE};
use crate::document::Node;
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{ANY_TIME, AnyRate, DELAY, Flag, Form};
use crate::loss::{Loss, LossList, Losses};
use crate::reader::Reader;
use crate::section::{Section as _, inline, keys_of, section};
use crate::writer::Writer;

/// A change to one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Time of the change, from the start of the run.
    pub at: Span,
    /// The direction that changes.
    pub direction: Direction,
    /// New values; those that are `None` stay the same.
    pub change: Change,
    /// Losses from then on, which replace all earlier ones.
    pub loss: Option<Vec<Loss>>,
}

section! {
    /// New values of one direction of a link.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Change {
        /// `false`: arriving packets are dropped, queued packets are dropped when they leave the queue, packets in flight
        /// arrive.
        up: Option<bool> = "up" [optional "no change"] Flag;
        /// The packet in transmission finishes at the old rate.
        rate: Option<Rate> = "rate" [optional "no change"] AnyRate;
        /// Applies to packets that leave the queue later; packets do not overtake each other.
        delay: Option<Span> = "delay" [optional "no change"] DELAY;
    }
}

section! {
    /// A change of one link in the course of a run. Values of missing keys do not change.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct EventRows {
        /// Time of the change, from the start of the run.
        at: Span = "at" [required] ANY_TIME;
        /// The direction that changes.
        direction: Option<Direction> = "direction" [optional "both"] ONE;
        /// New values.
        change: Change = "" [flatten] ();
        /// Replaces the model of the link's first loss process, and keeps its `where`; only the first entry of a list counts.
        /// Without `direction` in event or table, the change applies forward only.
        loss: Option<Losses> = "loss" [optional "no change"] LossList;
    }
}

impl From<&Event> for EventRows {
    fn from(event: &Event) -> EventRows {
        let Event { at, direction, change, ref loss } = *event;
        EventRows { at, direction: Some(direction), change, loss: loss.as_deref().map(Losses::one_way) }
    }
}

impl Event {
    /// Returns the keys that the event changes.
    fn changes(&self) -> Vec<String> {
        let mut keys = keys_of(&EventRows::from(self));
        keys.retain(|key| key != "at" && key != "direction");
        keys
    }
}

/// Form of a list of events in the order of their times. An event that changes both directions becomes one for each.
pub(crate) struct EventList;

impl Form for EventList {
    type Output = Vec<Event>;

    fn expected(&self) -> String {
        "a list of tables".to_owned()
    }

    fn read(&self, node: &Node) -> Result<Vec<Event>, Fault> {
        Err(Fault::invalid(self.expected(), node.value.to_string()))
    }

    fn write(&self, value: &Vec<Event>) -> String {
        let tables: Vec<String> = value.iter().map(|event| inline(&EventRows::from(event))).collect();
        format!("[{}]", tables.join(", "))
    }

    fn about(&self) -> About {
        About { class: Some("LinkEvent"), ..About::plain("list of tables, see below", "Sequence[LinkEvent]") }
    }

    fn read_key<'a>(&self, reader: &Reader<'a>, key: &'static str, node: &'a Node) -> Option<Vec<Event>> {
        read_all(reader.elements(key, node)?)
    }

    fn write_key(&self, out: &mut Writer, key: &str, value: &Vec<Event>) {
        for event in value {
            out.table(key, true, |out| EventRows::from(event).write_rows(out));
        }
    }
}

/// An event, the keys that it changes, and the index of its table.
type PlacedEvent = (Event, Vec<String>, usize);

fn read_all(mut readers: Vec<Reader<'_>>) -> Option<Vec<Event>> {
    let read: Vec<Option<Vec<Event>>> = readers.iter_mut().map(read).collect();
    let placed = |(index, events): (usize, Option<Vec<Event>>)| {
        let place = |event: Event| (event.changes(), event);
        events.map(|events| {
            events.into_iter().map(place).map(|(keys, event)| (event, keys, index)).collect::<Vec<_>>()
        })
    };
    let all: Option<Vec<Vec<PlacedEvent>>> = read.into_iter().enumerate().map(placed).collect();
    let mut all: Option<Vec<PlacedEvent>> = all.map(|all| all.into_iter().flatten().collect());
    if let Some(all) = &mut all {
        all.sort_by_key(|(event, ..)| event.at);
        refuse_contradictions(all, &readers);
    }
    readers.into_iter().for_each(Reader::finish);
    Some(all?.into_iter().map(|(event, ..)| event).collect())
}

/// Reports two events that set the same key of a direction at the same time.
fn refuse_contradictions(all: &[PlacedEvent], readers: &[Reader<'_>]) {
    for (later, (event, keys, index)) in all.iter().enumerate() {
        let at_once = all[..later].iter().rev().take_while(|(earlier, ..)| earlier.at == event.at);
        let same = at_once.filter(|(earlier, ..)| earlier.direction == event.direction);
        let twice = |(_, earlier, _): &PlacedEvent| keys.iter().find(|key| earlier.contains(key)).cloned();
        if let Some(key) = same.into_iter().find_map(twice) {
            let message = format!("two events set `{key}` at the same time in the same direction");
            let help = "remove one or give them different times";
            readers[*index].fault(&key, Fault::explained(ProblemKind::Conflict, message, help));
        }
    }
}

fn read(reader: &mut Reader<'_>) -> Option<Vec<Event>> {
    let EventRows { at, direction, change, loss } = EventRows::read_rows(reader)?;
    let Losses { forward, reverse } = loss.unwrap_or_default();
    let event = |direction, loss| Event { at, direction, change, loss };
    let events = match direction {
        Some(direction) => vec![event(direction, forward)],
        None => vec![event(Direction::Forward, forward), event(Direction::Reverse, reverse)],
    };
    let events: Vec<Event> = events.into_iter().filter(|event| !event.changes().is_empty()).collect();
    if events.is_empty() {
        let help = "give one or more of `up`, `rate`, `delay` and `loss`";
        reader.fault_here(Fault::explained(ProblemKind::Conflict, "this event has no effect", help));
        return None;
    }
    Some(events)
}
