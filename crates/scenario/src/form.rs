//! Forms of values, with their description, reader and writer.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;
use anabranch_sim::QueueLimit;

use crate::document::{Node, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::key::is_name;
use crate::origin::Origin;
use crate::reader::Reader;
use crate::text::quoted;
use crate::units::{self, UnitError};
use crate::writer::{Writer, quote};

/// Form of a value.
pub(crate) trait Form {
    /// Type of the value.
    type Output;

    /// Returns the form in words, to follow "expected".
    fn expected(&self) -> String;

    /// Reads a value.
    fn read(&self, node: &Node) -> Result<Self::Output, Fault>;

    /// Returns a value as TOML.
    fn write(&self, value: &Self::Output) -> String;

    /// Describes the form.
    fn about(&self) -> About;

    /// Reads the value of a key and reports its faults. Forms with tables inside override it.
    fn read_key<'a>(&self, reader: &Reader<'a>, key: &'static str, node: &'a Node) -> Option<Self::Output> {
        self.read(node).map_err(|fault| reader.fault(key, fault)).ok()
    }

    /// Writes a key with its value outside of inline tables. Forms with headers of their own override it.
    fn write_key(&self, out: &mut Writer, key: &str, value: &Self::Output) {
        out.raw(key, self.write(value));
    }

    /// Writes a key with its value.
    fn put(&self, out: &mut Writer, key: &str, value: &Self::Output) {
        if out.is_inline() { out.raw(key, self.write(value)) } else { self.write_key(out, key, value) }
    }
}

/// A duration within a range, with its usual unit.
pub(crate) struct SpanIn(pub(crate) RangeInclusive<Span>, pub(crate) &'static str);

/// A rate from 1 bit/s to 1000 Gbit/s.
pub(crate) struct AnyRate;

/// A size in bytes within a range, with its usual unit.
pub(crate) struct SizeIn(pub(crate) RangeInclusive<u64>, pub(crate) &'static str);

/// A size in wire bytes.
pub(crate) struct WireSize(pub(crate) SizeIn);

/// Length of a queue.
pub(crate) struct AnyQueue;

/// A whole number within a range.
pub(crate) struct IntegerIn<T>(pub(crate) RangeInclusive<T>);

/// A number within a range, including its ends.
pub(crate) struct NumberIn(pub(crate) RangeInclusive<f64>);

/// A number from 0 to 1, or a string in percent.
pub(crate) struct Probability;

/// True or false.
pub(crate) struct Flag;

/// Any string but the empty one.
pub(crate) struct Text;

/// A string that can name an element of a list.
pub(crate) struct Name;

/// One of several words, each with its value.
pub(crate) struct OneOf<T: 'static>(pub(crate) &'static [(&'static str, T)]);

/// A list of different, nonempty strings, with their places.
pub(crate) struct PlacedTexts;

/// Longest time of a scenario: about a month and a half.
pub(crate) const LONGEST: Span = Span::from_secs(4_000_000);

/// Shortest time above zero.
pub(crate) const INSTANT: Span = Span::from_nanos(1);

/// A time from zero on.
pub(crate) const ANY_TIME: SpanIn = SpanIn(Span::ZERO..=LONGEST, "s");

/// A time above zero.
pub(crate) const SOME_TIME: SpanIn = SpanIn(INSTANT..=LONGEST, "s");

/// A time above zero, usually a short one.
pub(crate) const GAP: SpanIn = SpanIn(INSTANT..=LONGEST, "ms");

/// Longest delay of a packet on one link.
const LONGEST_DELAY: Span = Span::from_secs(3600);

/// Propagation delay of one link.
pub(crate) const DELAY: SpanIn = SpanIn(Span::ZERO..=LONGEST_DELAY, "ms");

/// A delay above zero.
pub(crate) const SOME_DELAY: SpanIn = SpanIn(INSTANT..=LONGEST_DELAY, "ms");

/// Wire bytes of a packet.
pub(crate) const PACKET_SIZE: SizeIn = SizeIn(1..=LARGEST_PACKET, "B");

/// Largest packet of IP.
pub(crate) const LARGEST_PACKET: u64 = 65_535;

/// Bytes of data that are sent, stored or awaited.
pub(crate) const DATA_SIZE: SizeIn = SizeIn(1..=MOST_DATA, "KiB");

/// Largest size of data.
pub(crate) const MOST_DATA: u64 = 1 << 50;

/// Highest rate of a scenario.
const FASTEST: Rate = Rate::from_bps(1_000_000_000_000);

impl Form for SpanIn {
    type Output = Span;

    fn expected(&self) -> String {
        units::expected_span()
    }

    fn read(&self, node: &Node) -> Result<Span, Fault> {
        let span = quantity(node, &self.expected(), units::parse_span)?;
        within(span, &self.0, units::format_span)
    }

    fn write(&self, value: &Span) -> String {
        quote(&units::format_span(*value))
    }

    fn about(&self) -> About {
        let text = match (*self.0.start(), *self.0.end()) {
            (Span::ZERO, LONGEST) => "time".to_owned(),
            (Span::ZERO, most) => format!("time, at most {}", units::format_span(most)),
            (INSTANT, LONGEST) => "time, more than 0".to_owned(),
            (INSTANT, most) => format!("time, more than 0, at most {}", units::format_span(most)),
            (least, most) => {
                format!("time, {} to {}", units::format_span(least), units::format_span(most))
            }
        };
        About::quantity(text, self.1)
    }
}

impl Form for AnyRate {
    type Output = Rate;

    fn expected(&self) -> String {
        units::expected_rate()
    }

    fn read(&self, node: &Node) -> Result<Rate, Fault> {
        let rate = quantity(node, &self.expected(), units::parse_rate)?;
        within(rate, &(Rate::from_bps(1)..=FASTEST), units::format_rate)
    }

    fn write(&self, value: &Rate) -> String {
        quote(&units::format_rate(*value))
    }

    fn about(&self) -> About {
        About::quantity("rate", "Mbit/s")
    }
}

impl Form for SizeIn {
    type Output = u64;

    fn expected(&self) -> String {
        if *self.0.end() <= LARGEST_PACKET { units::expected_packet_size() } else { units::expected_size() }
    }

    fn read(&self, node: &Node) -> Result<u64, Fault> {
        let size = quantity(node, &self.expected(), units::parse_size)?;
        within(size, &self.0, units::format_size)
    }

    fn write(&self, value: &u64) -> String {
        quote(&units::format_size(*value))
    }

    fn about(&self) -> About {
        let text = match (*self.0.start(), *self.0.end()) {
            (1, MOST_DATA) => "size".to_owned(),
            (least, most) => format!("size, {} B to {} B", grouped(least), grouped(most)),
        };
        About::quantity(text, self.1)
    }
}

impl Form for WireSize {
    type Output = WireBytes;

    fn expected(&self) -> String {
        self.0.expected()
    }

    fn read(&self, node: &Node) -> Result<WireBytes, Fault> {
        self.0.read(node).map(WireBytes::new)
    }

    fn write(&self, value: &WireBytes) -> String {
        self.0.write(&value.get())
    }

    fn about(&self) -> About {
        self.0.about()
    }
}

impl Form for AnyQueue {
    type Output = QueueLimit;

    fn expected(&self) -> String {
        units::expected_queue()
    }

    fn read(&self, node: &Node) -> Result<QueueLimit, Fault> {
        let queue = quantity(node, &self.expected(), units::parse_queue)?;
        match queue {
            QueueLimit::Unlimited => Ok(queue),
            QueueLimit::Packets(packets) => {
                let show = |packets| units::format_queue(QueueLimit::Packets(packets));
                within(packets, &(1..=1_000_000_000), show).map(QueueLimit::Packets)
            }
            QueueLimit::Bytes(bytes) => within(bytes.get(), &DATA_SIZE.0, units::format_size).map(|_| queue),
            QueueLimit::Time(span) => within(span, &SOME_TIME.0, units::format_span).map(|_| queue),
        }
    }

    fn write(&self, value: &QueueLimit) -> String {
        quote(&units::format_queue(*value))
    }

    fn about(&self) -> About {
        About::quantity("queue length", "packets")
    }
}

impl<T: Copy + Into<u64> + TryFrom<u64>> Form for IntegerIn<T> {
    type Output = T;

    fn expected(&self) -> String {
        format!("a whole number from {} to {}", (*self.0.start()).into(), (*self.0.end()).into())
    }

    fn read(&self, node: &Node) -> Result<T, Fault> {
        let Value::Integer(number) = node.value else { return Err(mismatch(self, node)) };
        let range = (*self.0.start()).into()..=(*self.0.end()).into();
        let inside = u64::try_from(number).ok().filter(|number| range.contains(number));
        let value = inside.and_then(|number| T::try_from(number).ok());
        value.ok_or_else(|| Fault::out_of_range(self.expected(), number.to_string()))
    }

    fn write(&self, value: &T) -> String {
        (*value).into().to_string()
    }

    fn about(&self) -> About {
        let (least, most) = ((*self.0.start()).into(), (*self.0.end()).into());
        About::plain(format!("{} to {}", grouped(least), grouped(most)), "int")
    }
}

impl Form for NumberIn {
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
        // The range excludes NaN too. Adding zero turns -0 into 0.
        if self.0.contains(&number) {
            Ok(number + 0.0)
        } else {
            Err(Fault::out_of_range(self.expected(), format!("{number:?}")))
        }
    }

    fn write(&self, value: &Self::Output) -> String {
        format!("{value:?}")
    }

    fn about(&self) -> About {
        About::plain(format!("{} to {}", self.0.start(), self.0.end()), "float")
    }
}

impl Form for Probability {
    type Output = f64;

    fn expected(&self) -> String {
        "a number from 0 to 1, or percent such as \"1 %\"".to_owned()
    }

    fn read(&self, node: &Node) -> Result<f64, Fault> {
        let Value::Text(text) = &node.value else {
            let range = NumberIn(0.0..=1.0);
            return range.read(node).map_err(|fault| fault.with_expected(self.expected()));
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

    fn write(&self, value: &Self::Output) -> String {
        format!("{value:?}")
    }

    fn about(&self) -> About {
        About::plain("probability", "float | str")
    }
}

impl Form for Flag {
    type Output = bool;

    fn expected(&self) -> String {
        "true or false".to_owned()
    }

    fn read(&self, node: &Node) -> Result<bool, Fault> {
        if let Value::Flag(flag) = node.value { Ok(flag) } else { Err(mismatch(self, node)) }
    }

    fn write(&self, value: &Self::Output) -> String {
        value.to_string()
    }

    fn about(&self) -> About {
        About::plain("`true`, `false`", "bool")
    }
}

impl Form for Text {
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

    fn write(&self, value: &Self::Output) -> String {
        quote(value)
    }

    fn about(&self) -> About {
        About::plain("string", "str")
    }
}

impl<T: Copy + PartialEq> Form for OneOf<T> {
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

    fn write(&self, value: &T) -> String {
        quote(self.word(*value))
    }

    fn about(&self) -> About {
        let words: Vec<String> = self.0.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let code: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
        About::plain(code.join(", "), format!("Literal[{}]", words.join(", ")))
    }
}

impl<T: Copy + PartialEq> OneOf<T> {
    /// Returns the word for a value.
    pub(crate) fn word(&self, value: T) -> &'static str {
        self.0.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
    }
}

impl Form for Name {
    type Output = String;

    fn expected(&self) -> String {
        "up to 64 ASCII letters, digits, `-` and `_`, not all of them digits".to_owned()
    }

    fn read(&self, node: &Node) -> Result<String, Fault> {
        let name = Text.read(node)?;
        if is_name(&name) { Ok(name) } else { Err(Fault::invalid(self.expected(), quoted(&name))) }
    }

    fn write(&self, value: &String) -> String {
        quote(value)
    }

    fn about(&self) -> About {
        About::plain("name", "str")
    }
}

/// A string of a list and its place.
pub(crate) type Placed = (String, Origin);

impl Form for PlacedTexts {
    type Output = Vec<Placed>;

    fn expected(&self) -> String {
        "a list of strings".to_owned()
    }

    fn read(&self, node: &Node) -> Result<Vec<Placed>, Fault> {
        let Value::List(items) = &node.value else {
            let fault = mismatch(self, node);
            return Err(match &node.value {
                Value::Text(_) => fault.with_help(format!("write [{}]", node.value)),
                _ => fault,
            });
        };
        let mut texts: Vec<Placed> = Vec::new();
        let mut seen = BTreeSet::new();
        for item in items {
            let text = Text.read(item).map_err(|fault| fault.at(&item.origin))?;
            if !seen.insert(text.clone()) {
                let message = format!("{} is in the list twice", item.value);
                return Err(Fault::explained(ProblemKind::Duplicate, message, "remove one of the two")
                    .at(&item.origin));
            }
            texts.push((text, item.origin.clone()));
        }
        if texts.is_empty() { Err(Fault::invalid(self.expected(), "an empty list")) } else { Ok(texts) }
    }

    fn write(&self, value: &Self::Output) -> String {
        list(value.iter().map(|(text, _)| text.as_str()))
    }

    fn about(&self) -> About {
        About::plain("list of strings", "Sequence[str]")
    }
}

/// A list of different, nonempty strings.
pub(crate) struct Texts;

impl Form for Texts {
    type Output = Vec<String>;

    fn expected(&self) -> String {
        PlacedTexts.expected()
    }

    fn read(&self, node: &Node) -> Result<Vec<String>, Fault> {
        Ok(PlacedTexts.read(node)?.into_iter().map(|(text, _)| text).collect())
    }

    fn write(&self, value: &Vec<String>) -> String {
        list(value.iter().map(String::as_str))
    }

    fn about(&self) -> About {
        PlacedTexts.about()
    }
}

/// Returns strings as a TOML list.
fn list<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let texts: Vec<String> = texts.map(quote).collect();
    format!("[{}]", texts.join(", "))
}

/// Returns a number with a comma after each thousand.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// Returns the fault of a value that has another form.
pub(crate) fn mismatch(form: &impl Form, node: &Node) -> Fault {
    Fault::invalid(form.expected(), node.value.to_string())
}

/// Reads a string as a quantity. The fault of a number names the missing unit.
fn quantity<T>(
    node: &Node,
    expected: &str,
    parse: impl Fn(&str) -> Result<T, UnitError>,
) -> Result<T, Fault> {
    match &node.value {
        Value::Text(text) => {
            parse(text).map_err(|error| {
                // The caller's description is more specific, since it knows the purpose of the value.
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
