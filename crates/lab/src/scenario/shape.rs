//! What a value may look like, and how it is read.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use anabranch_core::time::{Rate, Span};

use super::document::{Node, Value};
use super::error::ProblemKind;
use super::fault::Fault;
use super::origin::Origin;
use super::units::{self, Queue, UnitError};

/// The form of a value: how it is described in errors and how it is read.
pub(super) trait Shape {
    /// What reading gives.
    type Output;

    /// The form in words, to follow "expected".
    fn expected(&self) -> String;

    /// Reads a value.
    fn read(&self, node: &Node) -> Result<Self::Output, Fault>;
}

/// A duration within a range.
pub(super) struct SpanIn(pub(super) RangeInclusive<Span>);

/// A rate from 1 bit/s to 1000 Gbit/s.
pub(super) struct AnyRate;

/// A size in bytes within a range.
pub(super) struct SizeIn(pub(super) RangeInclusive<u64>);

/// The length of a queue.
pub(super) struct AnyQueue;

/// A whole number within a range.
pub(super) struct IntegerIn(pub(super) RangeInclusive<u64>);

/// A number within a range, whose ends are included.
pub(super) struct NumberIn(pub(super) RangeInclusive<f64>);

/// A number from 0 to 1, or a string in percent.
pub(super) struct Probability;

/// True or false.
pub(super) struct Flag;

/// Any string but the empty one.
pub(super) struct Text;

/// One of some words, each of which stands for a value.
pub(super) struct OneOf<T: 'static>(pub(super) &'static [(&'static str, T)]);

/// A list of strings, none empty, none twice, each with its place.
pub(super) struct TextList;

/// The longest time a scenario may name: about a month and a half.
pub(super) const LONGEST: Span = Span::from_secs(4_000_000);

/// The shortest time that is not zero.
pub(super) const INSTANT: Span = Span::from_nanos(1);

/// Any time from zero on.
pub(super) const ANY_TIME: SpanIn = SpanIn(Span::ZERO..=LONGEST);

/// Any time longer than zero.
pub(super) const SOME_TIME: SpanIn = SpanIn(INSTANT..=LONGEST);

/// How long a packet is on its way over one link.
pub(super) const DELAY: SpanIn = SpanIn(Span::ZERO..=Span::from_secs(3600));

/// Wire bytes of a packet.
pub(super) const PACKET_SIZE: SizeIn = SizeIn(1..=LARGEST_PACKET);

/// The largest packet that IP can carry.
pub(super) const LARGEST_PACKET: u64 = 65_535;

/// Bytes of data to be sent, stored or waited for.
pub(super) const DATA_SIZE: SizeIn = SizeIn(1..=1 << 50);

/// The highest rate a scenario may name.
const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);

impl Shape for SpanIn {
    type Output = Span;

    fn expected(&self) -> String {
        units::expected_span()
    }

    fn read(&self, node: &Node) -> Result<Span, Fault> {
        let span = quantity(node, &self.expected(), units::parse_span)?;
        within(span, &self.0, units::format_span)
    }
}

impl Shape for AnyRate {
    type Output = Rate;

    fn expected(&self) -> String {
        units::expected_rate()
    }

    fn read(&self, node: &Node) -> Result<Rate, Fault> {
        let rate = quantity(node, &self.expected(), units::parse_rate)?;
        within(rate, &(Rate::from_bps(1)..=FASTEST), units::format_rate)
    }
}

impl Shape for SizeIn {
    type Output = u64;

    fn expected(&self) -> String {
        if *self.0.end() <= LARGEST_PACKET { units::expected_packet_size() } else { units::expected_size() }
    }

    fn read(&self, node: &Node) -> Result<u64, Fault> {
        let size = quantity(node, &self.expected(), units::parse_size)?;
        within(size, &self.0, units::format_size)
    }
}

impl Shape for AnyQueue {
    type Output = Queue;

    fn expected(&self) -> String {
        units::expected_queue()
    }

    fn read(&self, node: &Node) -> Result<Queue, Fault> {
        let queue = quantity(node, &self.expected(), units::parse_queue)?;
        match queue {
            Queue::Packets(packets) => {
                let show = |packets| units::format_queue(Queue::Packets(packets));
                within(packets, &(1..=1_000_000_000), show).map(Queue::Packets)
            }
            Queue::Bytes(bytes) => within(bytes, &DATA_SIZE.0, units::format_size).map(Queue::Bytes),
            Queue::Delay(span) => within(span, &SOME_TIME.0, units::format_span).map(Queue::Delay),
        }
    }
}

impl Shape for IntegerIn {
    type Output = u64;

    fn expected(&self) -> String {
        format!("a whole number from {} to {}", self.0.start(), self.0.end())
    }

    fn read(&self, node: &Node) -> Result<u64, Fault> {
        let Value::Integer(number) = node.value else { return Err(mismatch(self, node)) };
        let inside = u64::try_from(number).ok().filter(|number| self.0.contains(number));
        inside.ok_or_else(|| Fault::out_of_range(self.expected(), number.to_string()))
    }
}

impl Shape for NumberIn {
    type Output = f64;

    fn expected(&self) -> String {
        format!("a number from {} to {}", self.0.start(), self.0.end())
    }

    fn read(&self, node: &Node) -> Result<f64, Fault> {
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => return Err(mismatch(self, node)),
        };
        // The range leaves out NaN too. Adding zero turns -0 into 0.
        if self.0.contains(&number) {
            Ok(number + 0.0)
        } else {
            Err(Fault::out_of_range(self.expected(), format!("{number:?}")))
        }
    }
}

impl Shape for Probability {
    type Output = f64;

    fn expected(&self) -> String {
        "a number from 0 to 1, or percent such as \"1 %\"".to_owned()
    }

    fn read(&self, node: &Node) -> Result<f64, Fault> {
        let Value::Text(text) = &node.value else {
            let range = NumberIn(0.0..=1.0);
            return range.read(node).map_err(|fault| fault.expecting(self.expected()));
        };
        let number = text.trim().strip_suffix('%').map(str::trim_end);
        let digits = number.filter(|number| number.chars().all(|c| c.is_ascii_digit() || c == '.'));
        let percent: f64 =
            digits.and_then(|number| number.parse().ok()).ok_or_else(|| mismatch(self, node))?;
        let range = "\"0 %\" to \"100 %\"".to_owned();
        if percent <= 100.0 {
            Ok(percent / 100.0)
        } else {
            Err(Fault::out_of_range(range, node.value.to_string()))
        }
    }
}

impl Shape for Flag {
    type Output = bool;

    fn expected(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, node: &Node) -> Result<bool, Fault> {
        if let Value::Flag(flag) = node.value { Ok(flag) } else { Err(mismatch(self, node)) }
    }
}

impl Shape for Text {
    type Output = String;

    fn expected(&self) -> String {
        "a string".to_owned()
    }

    fn read(&self, node: &Node) -> Result<String, Fault> {
        match &node.value {
            Value::Text(text) if text.is_empty() => Err(Fault::invalid("a string that is not empty", "\"\"")),
            Value::Text(text) => Ok(text.clone()),
            _ => Err(mismatch(self, node)),
        }
    }
}

impl<T: Copy> Shape for OneOf<T> {
    type Output = T;

    fn expected(&self) -> String {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        units::or_list(&words)
    }

    fn read(&self, node: &Node) -> Result<T, Fault> {
        let Value::Text(text) = &node.value else { return Err(mismatch(self, node)) };
        let known = self.0.iter().find(|(word, _)| word == text);
        known
            .map(|(_, value)| *value)
            .ok_or_else(|| mismatch(self, node).near(text, self.0.iter().map(|(word, _)| *word)))
    }
}

/// A string of a list and where it stands.
pub(super) type Placed = (String, Origin);

impl Shape for TextList {
    type Output = Vec<Placed>;

    fn expected(&self) -> String {
        "a list of strings".to_owned()
    }

    fn read(&self, node: &Node) -> Result<Vec<Placed>, Fault> {
        let Value::List(items) = &node.value else {
            let fault = mismatch(self, node);
            return Err(match &node.value {
                Value::Text(_) => fault.helping(format!("write [{}]", node.value)),
                _ => fault,
            });
        };
        let mut texts: Vec<Placed> = Vec::new();
        let mut seen = BTreeSet::new();
        for item in items {
            let text = Text.read(item).map_err(|fault| fault.at(&item.origin))?;
            if !seen.insert(text.clone()) {
                let message = format!("{} is in the list twice", item.value);
                return Err(Fault::because(ProblemKind::Duplicate, message, "leave one out").at(&item.origin));
            }
            texts.push((text, item.origin.clone()));
        }
        if texts.is_empty() { Err(Fault::invalid(self.expected(), "an empty list")) } else { Ok(texts) }
    }
}

/// The fault of a value that does not have the form at all.
pub(super) fn mismatch(shape: &impl Shape, node: &Node) -> Fault {
    Fault::invalid(shape.expected(), node.value.to_string())
}

/// Reads a string as a quantity; a number in its place lacks its unit.
fn quantity<T>(
    node: &Node,
    expected: &str,
    parse: impl Fn(&str) -> Result<T, UnitError>,
) -> Result<T, Fault> {
    match &node.value {
        Value::Text(text) => {
            parse(text).map_err(|error| {
                // The form is described better here, where it is known what the value is for.
                let expected = if error.out_of_range { &error.expected } else { expected };
                Fault::invalid(expected, error.found).proposing(error.nearest)
            })
        }
        Value::Integer(_) | Value::Float(_) => {
            Err(Fault::invalid(expected, format!("{} without a unit", node.value)))
        }
        other => Err(Fault::invalid(expected, other.to_string())),
    }
}

fn within<T: PartialOrd + Copy>(
    value: T,
    range: &RangeInclusive<T>,
    show: impl Fn(T) -> String,
) -> Result<T, Fault> {
    if range.contains(&value) {
        return Ok(value);
    }
    let expected = format!("{} to {}", show(*range.start()), show(*range.end()));
    Err(Fault::out_of_range(expected, show(value)))
}
