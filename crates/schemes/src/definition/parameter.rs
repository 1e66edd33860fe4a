//! Parameters of schemes as data.

use std::fmt;

use anabranch_core::time::Span;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

/// Values that a parameter accepts.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// Integer between two inclusive bounds.
    Count {
        /// Smallest permitted value.
        min: u32,
        /// Largest permitted value.
        max: u32,
    },
    /// One of several names.
    Choice(&'static dyn Names),
    /// Time in milliseconds between two inclusive bounds.
    Milliseconds {
        /// Smallest permitted value.
        min: u32,
        /// Largest permitted value.
        max: u32,
    },
    /// Decimal number between two inclusive bounds.
    Decimal {
        /// Smallest permitted value.
        min: f64,
        /// Largest permitted value.
        max: f64,
    },
    /// Nonnegative number of bytes, or of a path's largest chunks (`2MTU`).
    Length,
    /// One number per path, separated by colons (`3:1`); further paths use the last number.
    Weights,
}

/// Names that a choice accepts.
pub trait Names: fmt::Debug + Sync {
    /// Returns the names in display order.
    fn names(&self) -> Vec<&'static str>;
}

/// Parameter that accepts one of several names, each of which selects a variant.
#[derive(Clone, Copy, Debug)]
pub struct ChoiceParameter<T: 'static> {
    /// Name in expressions.
    pub name: &'static str,
    /// Accepted names and their variants.
    pub options: &'static [(&'static str, T)],
    /// Name of the default.
    pub default: &'static str,
    /// Effect of the parameter, in one sentence.
    pub about: &'static str,
    /// Source of the rule or value.
    pub source: &'static str,
}

impl<T: fmt::Debug + Sync> Names for ChoiceParameter<T> {
    fn names(&self) -> Vec<&'static str> {
        self.options.iter().map(|(name, _)| *name).collect()
    }
}

impl<T: Copy + fmt::Debug + Sync> ChoiceParameter<T> {
    /// Returns the entry for the parameter table of a scheme or component.
    pub const fn parameter(&'static self) -> Parameter {
        Parameter {
            name: self.name,
            kind: Kind::Choice(self),
            unit: "",
            default: Value::Choice(self.default),
            about: self.about,
            source: self.source,
        }
    }

    /// Returns the chosen variant, or that of the default if there is no such parameter.
    ///
    /// # Panics
    /// Panics if the default is not one of the options.
    pub fn get(&self, values: &Values) -> T {
        let chosen = match values.get(self.name) {
            Some(Value::Choice(name)) => name,
            _ => self.default,
        };
        let option = self.options.iter().find(|(name, _)| *name == chosen);
        option.unwrap_or_else(|| panic!("`{}` has no option `{chosen}`", self.name)).1
    }
}

/// Length in bytes, or in a path's largest chunks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Number of bytes.
    Bytes(u64),
    /// Multiple of the largest chunk of the path to which it is applied.
    Chunks(f64),
}

impl Length {
    /// Returns the length in bytes, for a path with this largest chunk.
    pub fn bytes(self, largest_chunk: ChunkBytes) -> f64 {
        match self {
            Length::Bytes(bytes) => bytes as f64,
            Length::Chunks(chunks) => chunks * largest_chunk.get() as f64,
        }
    }
}

/// Relative shares of paths in order of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    shares: [u32; MAX_PATHS],
}

impl Weights {
    /// Equal shares of all paths.
    pub const EQUAL: Weights = Weights { shares: [1; MAX_PATHS] };

    /// Returns the share of a path.
    pub fn of(&self, path: PathId) -> u32 {
        self.shares[path.index()]
    }

    fn read(text: &str) -> Option<Self> {
        let parts: Option<Vec<u32>> =
            text.split(':').map(|part| part.trim().parse().ok().filter(|n| (1..=1000).contains(n))).collect();
        let parts = parts.filter(|parts| parts.len() <= MAX_PATHS)?;
        let last = *parts.last()?;
        let mut shares = [last; MAX_PATHS];
        shares[..parts.len()].copy_from_slice(&parts);
        Some(Weights { shares })
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.shares[MAX_PATHS - 1];
        let used = self.shares.iter().rposition(|share| *share != last).map_or(1, |at| at + 2);
        let parts: Vec<String> = self.shares[..used].iter().map(u32::to_string).collect();
        f.write_str(&parts.join(":"))
    }
}

/// Parameter of a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Name in expressions.
    pub name: &'static str,
    /// Accepted values.
    pub kind: Kind,
    /// Unit of the parameter, empty if it has no unit.
    pub unit: &'static str,
    /// Value without an explicit setting.
    pub default: Value,
    /// Effect of the parameter, in one sentence.
    pub about: &'static str,
    /// Source of the rule or value.
    pub source: &'static str,
}

/// Value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Value of a switch.
    Switch(bool),
    /// Value of a count, or of a time in milliseconds.
    Number(u32),
    /// Value of a choice.
    Choice(&'static str),
    /// Value of a decimal.
    Decimal(f64),
    /// Value of a length.
    Length(Length),
    /// Value of weights.
    Weights(Weights),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Switch(on) => write!(f, "{on}"),
            Value::Number(n) => write!(f, "{n}"),
            Value::Choice(name) => f.write_str(name),
            Value::Decimal(number) => write!(f, "{number}"),
            Value::Length(Length::Bytes(bytes)) => write!(f, "{bytes}B"),
            Value::Length(Length::Chunks(chunks)) => write!(f, "{chunks}MTU"),
            Value::Weights(weights) => write!(f, "{weights}"),
        }
    }
}

impl Parameter {
    /// Creates a parameter that is `true` or `false`.
    pub const fn switch(
        name: &'static str,
        default: bool,
        about: &'static str,
        source: &'static str,
    ) -> Self {
        Parameter { name, kind: Kind::Switch, unit: "", default: Value::Switch(default), about, source }
    }

    /// Parses a value of an expression.
    ///
    /// # Errors
    /// Describes the expected value.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        match self.kind {
            Kind::Switch => match text {
                "true" => Ok(Value::Switch(true)),
                "false" => Ok(Value::Switch(false)),
                _ => Err("true or false".to_owned()),
            },
            Kind::Choice(choice) => {
                let names = choice.names();
                let name = names.iter().find(|name| **name == text);
                name.map(|name| Value::Choice(name)).ok_or_else(|| format!("one of {}", names.join(", ")))
            }
            Kind::Count { min, max } => number(text, min, max).ok_or(format!("a number from {min} to {max}")),
            Kind::Milliseconds { min, max } => {
                number(text.strip_suffix("ms").unwrap_or(text).trim_end(), min, max)
                    .ok_or(format!("milliseconds from {min} to {max}, such as {min}ms"))
            }
            Kind::Decimal { min, max } => decimal(text)
                .filter(|n| (min..=max).contains(n))
                .map(Value::Decimal)
                .ok_or(format!("a number from {min} to {max}")),
            Kind::Length => {
                length(text).map(Value::Length).ok_or("a length such as 1468B or 1.5MTU".to_owned())
            }
            Kind::Weights => Weights::read(text)
                .map(Value::Weights)
                .ok_or(format!("up to {MAX_PATHS} whole numbers from 1 to 1000, such as 3:1")),
        }
    }
}

fn number(text: &str, min: u32, max: u32) -> Option<Value> {
    text.parse().ok().filter(|n| (min..=max).contains(n)).map(Value::Number)
}

fn decimal(text: &str) -> Option<f64> {
    text.parse().ok().filter(|n: &f64| n.is_finite())
}

fn length(text: &str) -> Option<Length> {
    if let Some(chunks) = text.strip_suffix("MTU") {
        return decimal(chunks.trim_end()).filter(|n| (0.0..=1e6).contains(n)).map(Length::Chunks);
    }
    let bytes = text.strip_suffix('B').unwrap_or(text).trim_end();
    bytes.parse().ok().filter(|n| *n <= 1 << 40).map(Length::Bytes)
}

/// Values of all parameters of a preset or component.
#[derive(Clone, Debug)]
pub struct Values {
    pub(crate) parameters: &'static [Parameter],
    pub(crate) values: Vec<Value>,
}

impl Values {
    /// Returns the values with every parameter at its default.
    pub fn defaults(parameters: &'static [Parameter]) -> Self {
        Values { parameters, values: parameters.iter().map(|p| p.default).collect() }
    }

    /// Iterates over the parameters with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Parameter, Value)> {
        self.parameters.iter().zip(self.values.iter().copied())
    }

    fn get(&self, name: &str) -> Option<Value> {
        let at = self.parameters.iter().position(|p| p.name == name)?;
        self.values.get(at).copied()
    }

    /// Returns the value of a switch; `false` if there is no such parameter.
    pub fn switch(&self, name: &str) -> bool {
        self.get(name) == Some(Value::Switch(true))
    }

    /// Returns a number; 0 if there is no such parameter.
    pub fn number(&self, name: &str) -> u32 {
        match self.get(name) {
            Some(Value::Number(n)) => n,
            _ => 0,
        }
    }

    /// Returns a time; zero if there is no such parameter.
    pub fn milliseconds(&self, name: &str) -> Span {
        Span::from_millis(u64::from(self.number(name)))
    }

    /// Returns a decimal; 0 if there is no such parameter.
    pub fn decimal(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Value::Decimal(n)) => n,
            _ => 0.0,
        }
    }

    /// Returns a length; zero bytes if there is no such parameter.
    pub fn length(&self, name: &str) -> Length {
        match self.get(name) {
            Some(Value::Length(length)) => length,
            _ => Length::Bytes(0),
        }
    }

    /// Returns weights; equal ones if there is no such parameter.
    pub fn weights(&self, name: &str) -> Weights {
        match self.get(name) {
            Some(Value::Weights(weights)) => weights,
            _ => Weights::EQUAL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(kind: Kind, default: Value) -> Parameter {
        Parameter { name: "x", kind, unit: "", default, about: "a", source: "s" }
    }

    const LETTER: ChoiceParameter<char> = ChoiceParameter {
        name: "x",
        options: &[("a", 'A'), ("b", 'B')],
        default: "a",
        about: "a",
        source: "s",
    };

    #[test]
    fn a_choice_is_the_variant_of_the_name_that_was_given() {
        const LIST: &[Parameter] = &[LETTER.parameter()];
        let mut values = Values::defaults(LIST);
        assert_eq!(LETTER.get(&values), 'A');
        values.values[0] = Value::Choice("b");
        assert_eq!(LETTER.get(&values), 'B');
        assert_eq!(LETTER.get(&Values::defaults(&[])), 'A', "what has no such parameter has its default");
    }

    #[test]
    fn numbers_are_accepted_within_inclusive_bounds_only() {
        let count = parameter(Kind::Count { min: 2, max: 100 }, Value::Number(3));
        for n in [2, 3, 100] {
            assert_eq!(count.read(&n.to_string()), Ok(Value::Number(n)));
        }
        for text in ["1", "101", "-3", "3.0", "", "3ms", "three", "4294967298"] {
            assert_eq!(count.read(text), Err("a number from 2 to 100".to_owned()), "{text}");
        }
    }

    #[test]
    fn times_may_have_a_unit() {
        let delay = parameter(Kind::Milliseconds { min: 0, max: 500 }, Value::Number(200));
        for text in ["200", "200ms", "200 ms"] {
            assert_eq!(delay.read(text), Ok(Value::Number(200)));
        }
        for text in ["501", "501ms", "0.2s", "200s", "ms"] {
            assert!(delay.read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn switches_and_choices_take_their_names_as_written() {
        let switch = parameter(Kind::Switch, Value::Switch(true));
        assert_eq!(
            [switch.read("true"), switch.read("false")],
            [Ok(Value::Switch(true)), Ok(Value::Switch(false))]
        );
        assert!(switch.read("True").is_err() && switch.read("1").is_err());
        let choice = LETTER.parameter();
        assert_eq!(choice.read("b"), Ok(Value::Choice("b")));
        assert_eq!(choice.read("c"), Err("one of a, b".to_owned()));
    }

    #[test]
    fn a_value_that_is_missing_or_of_another_kind_reads_as_off_or_zero() {
        const LIST: &[Parameter] = &[
            Parameter {
                name: "n",
                kind: Kind::Count { min: 1, max: 9 },
                unit: "",
                default: Value::Number(7),
                about: "a",
                source: "s",
            },
            Parameter {
                name: "s",
                kind: Kind::Switch,
                unit: "",
                default: Value::Switch(true),
                about: "a",
                source: "s",
            },
        ];
        let values = Values::defaults(LIST);
        assert_eq!((values.number("n"), values.switch("s")), (7, true));
        assert_eq!(values.milliseconds("n"), Span::from_millis(7));
        assert_eq!((values.number("s"), values.switch("n")), (0, false));
        assert_eq!((values.number("x"), values.switch("x")), (0, false));
    }
}
