//! Parsed TOML document with the origin of every key and value.
//!
//! The tree is separate from the parser's, whose values can only refer to the file's text, so that values from the command line can
//! be added.

use std::fmt;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::origin::Origin;
use crate::text::quoted;

/// A value and its origin.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

/// A TOML value. Dates are omitted, because no key has a date as its value.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(String),
    /// Integer, saturated at the ends of the type.
    Integer(i128),
    Float(f64),
    Flag(bool),
    Date,
    List(Vec<Node>),
    Table(Table),
}

/// A table in the order of its keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
}

/// A key of a table with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) origin: Origin,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.node)
    }

    /// Sets a key, in place of an earlier value.
    pub(crate) fn set(&mut self, key: &str, node: Node) {
        self.entries.retain(|entry| entry.key != key);
        self.entries.push(Entry { key: key.to_owned(), origin: node.origin.clone(), node });
    }
}

impl Value {
    /// Returns the type in words, for errors.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Value::Text(_) => "a string",
            Value::Integer(_) | Value::Float(_) => "a number",
            Value::Flag(_) => "true or false",
            Value::Date => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

/// The value in words, for errors.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Text(text) => f.write_str(&quoted(text)),
            Value::Integer(number) => write!(f, "the number {number}"),
            Value::Float(number) => write!(f, "the number {number:?}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Date | Value::List(_) | Value::Table(_) => f.write_str(self.type_name()),
        }
    }
}

/// Message of the parser about text that is not TOML, with its place.
pub(crate) struct SyntaxError {
    pub(crate) message: String,
    pub(crate) at: Range<usize>,
}

impl SyntaxError {
    /// Returns the fault, with the parser's "expected" as a separate part.
    pub(crate) fn fault(&self) -> Fault {
        let (message, expected) = match self.message.split_once(", expected ") {
            Some((message, expected)) => (message, Some(expected)),
            None => (self.message.as_str(), None),
        };
        let fault = Fault::new(ProblemKind::Syntax).with_message(format!("not valid TOML: {message}"));
        match expected {
            Some(expected) => fault.with_expected(expected),
            None => fault.with_help("see toml.io for the syntax"),
        }
    }
}

/// Parses a file.
///
/// Only the first error is returned. Later ones are mostly consequences of it.
pub(crate) fn parse(text: &str) -> Result<Table, SyntaxError> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let first = errors.iter().min_by_key(|error| error.span().map_or(0, |span| span.start));
    match first {
        Some(error) => {
            let at = error.span().unwrap_or(0..0);
            Err(SyntaxError { message: error.message().to_owned(), at })
        }
        None => Ok(table(document.get_ref(), &Origin::File)),
    }
}

/// Parses the value of an override.
pub(crate) fn parse_value(text: &str, origin: &Origin) -> Result<Node, String> {
    let parsed = DeValue::parse(text).map_err(|error| error.message().to_owned())?;
    Ok(Node { value: value(parsed.get_ref(), &|_| origin.clone()), origin: origin.clone() })
}

fn table(source: &DeTable<'_>, origin: &dyn Fn(Range<usize>) -> Origin) -> Table {
    let entry = |(key, item): (&toml::Spanned<toml::de::DeString<'_>>, &toml::Spanned<DeValue<'_>>)| Entry {
        key: key.get_ref().to_string(),
        origin: origin(key.span()),
        node: Node { value: value(item.get_ref(), origin), origin: origin(item.span()) },
    };
    Table { entries: source.iter().map(entry).collect() }
}

fn value(source: &DeValue<'_>, origin: &dyn Fn(Range<usize>) -> Origin) -> Value {
    match source {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(number) => Value::Integer(integer(number.as_str(), number.radix())),
        DeValue::Float(number) => Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Date,
        DeValue::Array(items) => {
            let node = |item: &toml::Spanned<DeValue<'_>>| Node {
                value: value(item.get_ref(), origin),
                origin: origin(item.span()),
            };
            Value::List(items.iter().map(node).collect())
        }
        DeValue::Table(source) => Value::Table(table(source, origin)),
    }
}

/// Returns a number that the parser has checked, saturated at the ends of the type.
fn integer(text: &str, radix: u32) -> i128 {
    let end = if text.starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(text, radix).unwrap_or(end)
}
