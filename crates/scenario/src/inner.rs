//! Forms of values that are tables.

use std::marker::PhantomData;

use crate::document::{Node, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::{About, Presence};
use crate::form::{Form, mismatch};
use crate::reader::Reader;
use crate::section::{Described, Section as _, inline};
use crate::writer::Writer;

/// A table, with the name of its Python class.
pub(crate) struct Inner<T> {
    class: &'static str,
    /// Set if the table is written below its own header, and not in one line.
    has_header: bool,
    value: PhantomData<T>,
}

/// A list of tables with their own headers, with the name of their Python class.
pub(crate) struct Tables<T>(&'static str, PhantomData<T>);

/// A table in one line, or a single value in its place.
pub(crate) struct Short<T, F>(pub(crate) Inner<T>, pub(crate) F);

impl<T> Inner<T> {
    pub(crate) const fn new(class: &'static str) -> Self {
        Inner { class, has_header: false, value: PhantomData }
    }

    pub(crate) const fn with_header(class: &'static str) -> Self {
        Inner { class, has_header: true, value: PhantomData }
    }
}

impl<T> Tables<T> {
    pub(crate) const fn new(class: &'static str) -> Self {
        Tables(class, PhantomData)
    }
}

/// Returns the description of a table, with the keys that it must have.
fn expected<T: Described>() -> String {
    let fields = T::Rows::fields();
    let required =
        fields.iter().filter(|field| field.presence == Presence::Required && field.only.is_empty());
    let keys: Vec<String> = required.map(|field| format!("`{}`", field.key)).collect();
    if keys.is_empty() { "a table".to_owned() } else { format!("a table with {}", keys.join(" and ")) }
}

fn about(text: &str, python: String, class: &'static str) -> About {
    About { class: Some(class), ..About::plain(text, python) }
}

impl<T: Described> Form for Inner<T> {
    type Output = T;

    fn expected(&self) -> String {
        expected::<T>()
    }

    fn read(&self, node: &Node) -> Result<T, Fault> {
        Err(mismatch(self, node))
    }

    fn write(&self, value: &T) -> String {
        inline(&value.to_rows())
    }

    fn about(&self) -> About {
        about("table, see below", self.class.to_owned(), self.class)
    }

    fn read_key<'a>(&self, reader: &Reader<'a>, key: &'static str, node: &'a Node) -> Option<T> {
        match &node.value {
            Value::Table(_) => T::read(reader.as_table(node, reader.key(key))?),
            _ => self.read(node).map_err(|fault| reader.fault(key, fault)).ok(),
        }
    }

    fn write_key(&self, out: &mut Writer, key: &str, value: &T) {
        if self.has_header {
            out.table(key, false, |out| value.to_rows().write_rows(out));
        } else {
            out.raw(key, self.write(value));
        }
    }
}

impl<T: Described> Form for Tables<T> {
    type Output = Vec<T>;

    fn expected(&self) -> String {
        "a list of tables".to_owned()
    }

    fn read(&self, node: &Node) -> Result<Vec<T>, Fault> {
        Err(mismatch(self, node))
    }

    fn write(&self, value: &Vec<T>) -> String {
        let tables: Vec<String> = value.iter().map(|one| inline(&one.to_rows())).collect();
        format!("[{}]", tables.join(", "))
    }

    fn about(&self) -> About {
        about("list of tables, see below", format!("Sequence[{}]", self.0), self.0)
    }

    fn read_key<'a>(&self, reader: &Reader<'a>, key: &'static str, node: &'a Node) -> Option<Vec<T>> {
        let all: Vec<Option<T>> = reader.elements(key, node)?.into_iter().map(T::read).collect();
        all.into_iter().collect()
    }

    fn write_key(&self, out: &mut Writer, key: &str, value: &Vec<T>) {
        for one in value {
            out.table(key, true, |out| one.to_rows().write_rows(out));
        }
    }
}

impl<T: Described, F: Form<Output = T>> Form for Short<T, F> {
    type Output = T;

    fn expected(&self) -> String {
        format!("{}, or {}", self.1.expected(), self.0.expected())
    }

    fn read(&self, node: &Node) -> Result<T, Fault> {
        self.1.read(node).map_err(|fault| match fault.kind() {
            ProblemKind::InvalidValue => fault.with_expected(self.expected()),
            _ => fault,
        })
    }

    fn write(&self, value: &T) -> String {
        self.0.write(value)
    }

    fn about(&self) -> About {
        let (short, inner) = (self.1.about(), self.0.about());
        let python = format!("{} | {}", short.python, inner.python);
        About { python, class: inner.class, ..About::plain(format!("{}, or {}", short.text, inner.text), "") }
    }

    fn read_key<'a>(&self, reader: &Reader<'a>, key: &'static str, node: &'a Node) -> Option<T> {
        match &node.value {
            Value::Table(_) => self.0.read_key(reader, key, node),
            _ => self.read(node).map_err(|fault| reader.fault(key, fault)).ok(),
        }
    }
}
