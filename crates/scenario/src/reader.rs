//! Reads a table key by key and complains about the keys nobody asked for.

use crate::document::{Entry, Node, Table, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::key::{element, is_name};
use crate::origin::Origin;
use crate::report::Report;
use crate::text::quoted;

/// A table that was not given.
static EMPTY: Table = Table { entries: Vec::new() };

/// A table being read. [`Reader::finish`] has to be called when all keys have been asked for.
pub(crate) struct Reader<'a> {
    table: &'a Table,
    origin: Origin,
    path: String,
    report: &'a Report<'a>,
    known: Vec<&'static str>,
    refused: Vec<&'static str>,
    /// The key that selects which others apply, with its word; without one if it is wrong.
    selected: Option<(&'static str, Option<&'static str>)>,
}

impl<'a> Reader<'a> {
    /// A reader of a table that stands at `origin` and is called `path`, empty for the whole document.
    pub(crate) fn new(table: &'a Table, origin: Origin, path: String, report: &'a Report<'a>) -> Self {
        Reader { table, origin, path, report, known: Vec::new(), refused: Vec::new(), selected: None }
    }

    /// A reader of an empty table.
    pub(crate) fn of_nothing(report: &'a Report<'a>) -> Self {
        Reader::new(&EMPTY, Origin::Assumed, String::new(), report)
    }

    /// A key of this table as `--set` would write it.
    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns `true` if a key was given.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// The value of a key.
    pub(crate) fn peek(&self, key: &str) -> Option<&'a Node> {
        self.table.get(key)
    }

    /// The value of a key, which is known from then on.
    pub(crate) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// Sets the key that selects which others apply, with its word; without one if it is wrong.
    pub(crate) fn set_selected(&mut self, key: &'static str, word: Option<&'static str>) {
        self.selected = Some((key, word));
    }

    /// Returns the word that selects which keys apply.
    pub(crate) fn word(&self) -> Option<&'static str> {
        self.selected.and_then(|(_, word)| word)
    }

    /// Returns whether a key applies that has a meaning for these words only, and refuses it if it does not. `None` if the word
    /// is not known.
    pub(crate) fn applies(&mut self, key: &'static str, words: &[&str]) -> Option<bool> {
        let (selector, word) = self.selected?;
        let Some(word) = word else {
            self.know(&[key]);
            return None;
        };
        if !words.contains(&word) {
            let these: Vec<String> = words.iter().map(|word| format!("`{selector} = \"{word}\"`")).collect();
            let verb = if these.len() == 1 { "has" } else { "have" };
            self.refuse(key, &format!("only {} {verb} it", these.join(" and ")));
            return Some(false);
        }
        Some(true)
    }

    /// Returns `true` if the table stands for one direction of a link, so that tables in it need not name theirs.
    pub(crate) fn has_direction(&self) -> bool {
        self.path.ends_with(".reverse") || self.has("direction")
    }

    /// A table, taken as empty if it is not given. `None` if it is something else.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<Reader<'a>> {
        let path = self.key(key);
        match self.node(key) {
            None => Some(Reader::new(&EMPTY, Origin::Assumed, path, self.report)),
            Some(node) => self.as_table(node, path),
        }
    }

    /// The tables of a list. A value that is no list of tables is a fault.
    pub(crate) fn tables(&mut self, key: &'static str) -> Option<Vec<Reader<'a>>> {
        match self.node(key) {
            None => Some(Vec::new()),
            Some(node) => self.elements(key, node),
        }
    }

    /// The tables of a list, each called by its name or its index. A value that is no list of tables is a fault.
    pub(crate) fn elements(&self, key: &'static str, node: &'a Node) -> Option<Vec<Reader<'a>>> {
        let Value::List(items) = &node.value else {
            let expected = match self.path.split('.').next() {
                Some("") | None => format!("a list of tables, each under its own [[{key}]]"),
                Some(list) => format!("a list of tables, each under its own [[{list}.{key}]]"),
            };
            self.fault(key, Fault::invalid(expected, node.value.to_string()));
            return None;
        };
        let path = self.key(key);
        let named = items.iter().enumerate();
        named
            .map(|(index, item)| self.as_table(item, format!("{path}.{}", element(key, index, item))))
            .collect()
    }

    /// The tables below this one, whose keys are names of the author's choice, with the names and where they stand. A key that
    /// holds no table is a fault.
    pub(crate) fn named_tables(&self) -> Vec<(&'a str, &'a Origin, Option<Reader<'a>>)> {
        let entries = self.table.entries.iter();
        let table = |entry: &'a Entry| {
            let name = if is_name(&entry.key) { entry.key.clone() } else { quoted(&entry.key) };
            (entry.key.as_str(), &entry.origin, self.as_table(&entry.node, self.key(&name)))
        };
        entries.map(table).collect()
    }

    /// A node read as a table, or a fault.
    pub(crate) fn as_table(&self, node: &'a Node, path: String) -> Option<Reader<'a>> {
        match &node.value {
            Value::Table(table) => Some(Reader::new(table, node.origin.clone(), path, self.report)),
            other => {
                self.report.add(&node.origin, &path, Fault::invalid("a table", other.to_string()));
                None
            }
        }
    }

    /// Complains about a key that has a meaning elsewhere but none here.
    pub(crate) fn refuse(&mut self, key: &'static str, why: &str) {
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
    pub(crate) fn fault(&self, key: &str, fault: Fault) {
        let origin = self.table.get(key).map_or(&self.origin, |node| &node.origin);
        self.report.add(origin, &self.key(key), fault);
    }

    /// Reports a fault of the table as a whole.
    pub(crate) fn fault_here(&self, fault: Fault) {
        self.report.add(&self.origin, &self.path, fault);
    }

    /// Makes keys known without asking for their values, for a table that is known to be wrong already.
    pub(crate) fn know(&mut self, keys: &[&'static str]) {
        self.known.extend_from_slice(keys);
    }

    /// Reports a fault of something at a place of its own.
    pub(crate) fn fault_at(&self, origin: &Origin, key: &str, fault: Fault) {
        self.report.add(origin, &self.key(key), fault);
    }

    /// Reports a fault of the value of a key in a table below this one.
    pub(crate) fn fault_in(&self, table: &str, key: &str, fault: Fault) {
        let node = self.table.get(table);
        let inner =
            node.and_then(|node| if let Value::Table(table) = &node.value { table.get(key) } else { None });
        let origin = inner.or(node).map_or(&self.origin, |node| &node.origin);
        self.report.add(origin, &self.key(&format!("{table}.{key}")), fault);
    }

    /// Reports a fault of an element of a list as a whole.
    pub(crate) fn fault_of_element(&self, list: &str, index: usize, fault: Fault) {
        let Some(Node { value: Value::List(items), .. }) = self.table.get(list) else { return };
        let Some(item) = items.get(index) else { return };
        let path = self.key(&format!("{list}.{}", element(list, index, item)));
        self.report.add(&item.origin, &path, fault);
    }

    /// Reports a key that has to be given and was not.
    pub(crate) fn missing(&self, key: &str, expected: String) {
        self.report.missing(&self.origin, &self.key(key), expected);
    }

    /// Reports the keys that were given but not asked for.
    pub(crate) fn finish(self) {
        for Entry { key, origin, .. } in &self.table.entries {
            if self.known.contains(&key.as_str()) || self.refused.contains(&key.as_str()) {
                continue;
            }
            let path = if is_name(key) { self.key(key) } else { self.key(&quoted(key)) };
            let message = format!("unknown key `{path}`");
            let mut fault = Fault::unknown(ProblemKind::UnknownKey, message, key, &self.known);
            if !fault.has_proposal()
                && let Some(home) = self.report.home_of(key)
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
