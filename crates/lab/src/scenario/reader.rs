//! Reads a table key by key and complains about the keys nobody asked for.

use super::document::{Entry, Node, Table, Value};
use super::error::ProblemKind;
use super::fault::Fault;
use super::key::{element, is_name};
use super::origin::Origin;
use super::report::Report;
use super::shape::Shape;
use super::text::quoted;

/// A table that was not given.
static EMPTY: Table = Table { entries: Vec::new() };

/// Where keys belong that are easily written under the wrong header.
const HOMES: [(&str, &str); 31] = [
    ("about", "[scheme.NAME]"),
    ("aggregation", "[[path]], above its other tables"),
    ("at", "[[path.event]]"),
    ("deadline", "[[flow]]"),
    ("delay", "[[path]], above its other tables"),
    ("duration", "[run]"),
    ("encapsulation", "[association]"),
    ("interval", "[[flow]]"),
    ("is", "[scheme.NAME]"),
    ("jitter", "[[path]], above its other tables, or [[path.background]]"),
    ("loss", "[[path]], above its other tables"),
    ("message", "[association]"),
    ("mtu", "[association]"),
    ("ordered", "[association]"),
    ("packet", "[[path.background]]"),
    ("paths", "[[flow]]"),
    ("policer", "[[path]], above its other tables"),
    ("profile", "[run]"),
    ("queue", "[[path]], above its other tables"),
    ("recv_buffer", "[association]"),
    ("reverse", "[[path]], above its other tables"),
    ("scheme", "[[flow]]"),
    ("schemes", "[run]"),
    ("seeds", "[run]"),
    ("send_buffer", "[association]"),
    ("size", "[[flow]]"),
    ("streams", "[association]"),
    ("trace", "[[flow]]"),
    ("up", "[[path.event]]"),
    ("via", "[[path]], above its other tables"),
    ("warmup", "[run]"),
];

/// A table being read. [`Reader::finish`] has to be called when all keys have been asked for.
pub(super) struct Reader<'a> {
    table: &'a Table,
    origin: Origin,
    path: String,
    report: &'a Report<'a>,
    known: Vec<&'static str>,
    refused: Vec<&'static str>,
}

impl<'a> Reader<'a> {
    /// A reader of a table that stands at `origin` and is called `path`, empty for the whole document.
    pub(super) fn new(table: &'a Table, origin: Origin, path: String, report: &'a Report<'a>) -> Self {
        Reader { table, origin, path, report, known: Vec::new(), refused: Vec::new() }
    }

    /// A key of this table as `--set` would write it.
    pub(super) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Whether a key was given.
    pub(super) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value of a key, which is known from then on.
    pub(super) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// A value that need not be given: `None` if it is wrong, `Some(None)` if it is not given.
    pub(super) fn optional<S: Shape>(&mut self, key: &'static str, shape: &S) -> Option<Option<S::Output>> {
        let Some(node) = self.node(key) else { return Some(None) };
        match shape.read(node) {
            Ok(value) => Some(Some(value)),
            Err(fault) => {
                self.fault(key, fault);
                None
            }
        }
    }

    /// A value with a default.
    pub(super) fn or<S: Shape>(
        &mut self,
        key: &'static str,
        shape: &S,
        default: S::Output,
    ) -> Option<S::Output> {
        self.optional(key, shape).map(|value| value.unwrap_or(default))
    }

    /// A value that has to be given.
    pub(super) fn required<S: Shape>(&mut self, key: &'static str, shape: &S) -> Option<S::Output> {
        let value = self.optional(key, shape)?;
        if value.is_none() {
            self.missing(key, shape.expected());
        }
        value
    }

    /// A table, taken as empty if it is not given. `None` if it is something else.
    pub(super) fn table(&mut self, key: &'static str) -> Option<Reader<'a>> {
        let path = self.key(key);
        match self.node(key) {
            None => Some(Reader::new(&EMPTY, Origin::Assumed, path, self.report)),
            Some(node) => self.as_table(node, path),
        }
    }

    /// The tables of a list, each called by its name or its index. A value that is no list of tables is a fault.
    pub(super) fn tables(&mut self, key: &'static str) -> Option<Vec<Reader<'a>>> {
        let path = self.key(key);
        match self.node(key) {
            None => Some(Vec::new()),
            Some(Node { value: Value::List(items), .. }) => {
                let named = items.iter().enumerate();
                named
                    .map(|(index, item)| self.as_table(item, format!("{path}.{}", element(key, index, item))))
                    .collect()
            }
            Some(node) => {
                let expected = match self.path.split('.').next() {
                    Some("") | None => format!("a list of tables, each under its own [[{key}]]"),
                    Some(list) => format!("a list of tables, each under its own [[{list}.{key}]]"),
                };
                self.fault(key, Fault::invalid(expected, node.value.to_string()));
                None
            }
        }
    }

    /// The tables below this one, whose keys are names of the author's choice, with the names and where they stand. A key that
    /// holds no table is a fault.
    pub(super) fn named_tables(&self) -> Vec<(&'a str, &'a Origin, Option<Reader<'a>>)> {
        let entries = self.table.entries.iter();
        let table = |entry: &'a Entry| {
            let name = if is_name(&entry.key) { entry.key.clone() } else { quoted(&entry.key) };
            (entry.key.as_str(), &entry.origin, self.as_table(&entry.node, self.key(&name)))
        };
        entries.map(table).collect()
    }

    /// A node read as a table, or a fault.
    pub(super) fn as_table(&self, node: &'a Node, path: String) -> Option<Reader<'a>> {
        match &node.value {
            Value::Table(table) => Some(Reader::new(table, node.origin.clone(), path, self.report)),
            other => {
                self.report.add(&node.origin, &path, Fault::invalid("a table", other.to_string()));
                None
            }
        }
    }

    /// Complains about a key that has a meaning elsewhere but none here.
    pub(super) fn refuse(&mut self, key: &'static str, why: &str) {
        self.refused.push(key);
        if let Some(entry) = self.entry(key) {
            let message = format!("`{}` does not go here", self.key(key));
            self.report.add(
                &entry.origin,
                &self.key(key),
                Fault::because(ProblemKind::Conflict, message, why),
            );
        }
    }

    /// Reports a fault of the value of a key.
    pub(super) fn fault(&self, key: &str, fault: Fault) {
        let origin = self.table.get(key).map_or(&self.origin, |node| &node.origin);
        self.report.add(origin, &self.key(key), fault);
    }

    /// Reports a fault of the table as a whole.
    pub(super) fn fault_here(&self, fault: Fault) {
        self.report.add(&self.origin, &self.path, fault);
    }

    /// Makes keys known without asking for their values, for a table that is known to be wrong already.
    pub(super) fn know(&mut self, keys: &[&'static str]) {
        self.known.extend_from_slice(keys);
    }

    /// Reports a fault of something at a place of its own.
    pub(super) fn fault_at(&self, origin: &Origin, key: &str, fault: Fault) {
        self.report.add(origin, &self.key(key), fault);
    }

    /// Reports a fault of the value of a key in a table below this one.
    pub(super) fn fault_in(&self, table: &str, key: &str, fault: Fault) {
        let node = self.table.get(table);
        let inner =
            node.and_then(|node| if let Value::Table(table) = &node.value { table.get(key) } else { None });
        let origin = inner.or(node).map_or(&self.origin, |node| &node.origin);
        self.report.add(origin, &self.key(&format!("{table}.{key}")), fault);
    }

    /// Reports a fault of an element of a list as a whole.
    pub(super) fn fault_of_element(&self, list: &str, index: usize, fault: Fault) {
        let Some(Node { value: Value::List(items), .. }) = self.table.get(list) else { return };
        let Some(item) = items.get(index) else { return };
        let path = self.key(&format!("{list}.{}", element(list, index, item)));
        self.report.add(&item.origin, &path, fault);
    }

    /// Reports a key that has to be given and was not.
    pub(super) fn missing(&self, key: &str, expected: String) {
        self.report.missing(&self.origin, &self.key(key), expected);
    }

    /// Reports the keys that were given but not asked for.
    pub(super) fn finish(self) {
        for Entry { key, origin, .. } in &self.table.entries {
            if self.known.contains(&key.as_str()) || self.refused.contains(&key.as_str()) {
                continue;
            }
            let path = if is_name(key) { self.key(key) } else { self.key(&quoted(key)) };
            let message = format!("unknown key `{path}`");
            let mut fault = Fault::unknown(ProblemKind::UnknownKey, message, key, &self.known);
            if !fault.has_proposal()
                && let Some((_, home)) = HOMES.iter().find(|(known, _)| known == key)
            {
                fault = fault.helping(format!("`{key}` belongs under {home}"));
            }
            self.report.add(origin, &path, fault);
        }
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.table.entries.iter().find(|entry| entry.key == key)
    }
}
