//! Reads a table key by key, and reports unknown keys.

use crate::document::{Entry, Node, Table, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::key::{element, is_name};
use crate::origin::Origin;
use crate::report::Report;
use crate::text::quoted;

/// Table in place of a missing one.
static EMPTY: Table = Table { entries: Vec::new() };

/// Keys with a former name: the former name and the current one.
const RENAMED: [(&str, &str); 2] = [("is", "expression"), ("reader", "read_rate")];

/// Reader of a table. [`Reader::finish`] must be called after all keys have been read.
pub(crate) struct Reader<'a> {
    table: &'a Table,
    origin: Origin,
    path: String,
    report: &'a Report<'a>,
    known: Vec<&'static str>,
    refused: Vec<&'static str>,
    /// Key that selects the applicable keys, with its word, or `None` if the word is invalid.
    selected: Option<(&'static str, Option<&'static str>)>,
    /// Set if the table describes one direction of a link.
    one_way: bool,
}

impl<'a> Reader<'a> {
    /// Returns a reader of the table at `origin`. `path` is empty for the whole document.
    pub(crate) fn new(table: &'a Table, origin: Origin, path: String, report: &'a Report<'a>) -> Self {
        let (known, refused) = (Vec::new(), Vec::new());
        Reader { table, origin, path, report, known, refused, selected: None, one_way: false }
    }

    /// Returns a reader of an empty table.
    pub(crate) fn empty(report: &'a Report<'a>) -> Self {
        Reader::new(&EMPTY, Origin::Assumed, String::new(), report)
    }

    /// Returns a key of this table in the form of `--set`.
    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// Returns `true` if a key was given.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.get(key).is_some()
    }

    /// Returns the value of a key.
    pub(crate) fn peek(&self, key: &str) -> Option<&'a Node> {
        self.table.get(key)
    }

    /// Returns the value of a key, and marks the key as known.
    pub(crate) fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.table.get(key)
    }

    /// Sets the key that selects the applicable keys, with its word, or `None` if the word is invalid.
    pub(crate) fn set_selected(&mut self, key: &'static str, word: Option<&'static str>) {
        self.selected = Some((key, word));
    }

    /// Returns the word that selects the applicable keys.
    pub(crate) fn word(&self) -> Option<&'static str> {
        self.selected.and_then(|(_, word)| word)
    }

    /// Returns `true` if a key applies that is valid only for these words. Reports it if it does not apply. Returns `None` if the
    /// selecting word is invalid.
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

    /// Records that the table describes one direction of a link.
    pub(crate) fn set_one_way(&mut self) {
        self.one_way = true;
    }

    /// Returns `true` if the table belongs to one direction of a link, so that tables in it have no direction.
    pub(crate) fn has_direction(&self) -> bool {
        self.one_way || self.has("direction")
    }

    /// Returns a table, which is empty if it is missing. Returns `None` for another value.
    pub(crate) fn table(&mut self, key: &'static str) -> Option<Reader<'a>> {
        let path = self.key(key);
        match self.node(key) {
            None => Some(Reader::new(&EMPTY, Origin::Assumed, path, self.report)),
            Some(node) => self.as_table(node, path),
        }
    }

    /// Returns the tables of a list. Reports another value.
    pub(crate) fn tables(&mut self, key: &'static str) -> Option<Vec<Reader<'a>>> {
        match self.node(key) {
            None => Some(Vec::new()),
            Some(node) => self.elements(key, node),
        }
    }

    /// Returns the tables of a list, each with its name or its index. Reports another value.
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

    /// Returns the tables below this one whose keys are names, with the names and their places. Reports a key with another value.
    pub(crate) fn named_tables(&self) -> Vec<(&'a str, &'a Origin, Option<Reader<'a>>)> {
        let entries = self.table.entries.iter();
        let table = |entry: &'a Entry| {
            let name = if is_name(&entry.key) { entry.key.clone() } else { quoted(&entry.key) };
            (entry.key.as_str(), &entry.origin, self.as_table(&entry.node, self.key(&name)))
        };
        entries.map(table).collect()
    }

    /// Returns a node as a table, or reports it.
    pub(crate) fn as_table(&self, node: &'a Node, path: String) -> Option<Reader<'a>> {
        match &node.value {
            Value::Table(table) => Some(Reader::new(table, node.origin.clone(), path, self.report)),
            other => {
                self.report.add(&node.origin, &path, Fault::invalid("a table", other.to_string()));
                None
            }
        }
    }

    /// Reports a key that is valid elsewhere but not here.
    pub(crate) fn refuse(&mut self, key: &'static str, why: &str) {
        self.refused.push(key);
        if let Some(entry) = self.entry(key) {
            let message = format!("`{}` is not valid here", self.key(key));
            self.report.add(
                &entry.origin,
                &self.key(key),
                Fault::explained(ProblemKind::Conflict, message, why),
            );
        }
    }

    /// Reports the fault of a key's value.
    pub(crate) fn fault(&self, key: &str, fault: Fault) {
        let origin = self.table.get(key).map_or(&self.origin, |node| &node.origin);
        self.report.add(origin, &self.key(key), fault);
    }

    /// Reports a fault of the whole table.
    pub(crate) fn fault_here(&self, fault: Fault) {
        self.report.add(&self.origin, &self.path, fault);
    }

    /// Marks keys as known without reading their values, for a table that is invalid already.
    pub(crate) fn know(&mut self, keys: &[&'static str]) {
        self.known.extend_from_slice(keys);
    }

    /// Reports a fault with its own place.
    pub(crate) fn fault_at(&self, origin: &Origin, key: &str, fault: Fault) {
        self.report.add(origin, &self.key(key), fault);
    }

    /// Reports the fault of a key's value in a table below this one.
    pub(crate) fn fault_in(&self, table: &str, key: &str, fault: Fault) {
        let node = self.table.get(table);
        let inner =
            node.and_then(|node| if let Value::Table(table) = &node.value { table.get(key) } else { None });
        let origin = inner.or(node).map_or(&self.origin, |node| &node.origin);
        self.report.add(origin, &self.key(&format!("{table}.{key}")), fault);
    }

    /// Reports a fault of a whole list element.
    pub(crate) fn fault_of_element(&self, list: &str, index: usize, fault: Fault) {
        let Some(Node { value: Value::List(items), .. }) = self.table.get(list) else { return };
        let Some(item) = items.get(index) else { return };
        let path = self.key(&format!("{list}.{}", element(list, index, item)));
        self.report.add(&item.origin, &path, fault);
    }

    /// Reports a missing key.
    pub(crate) fn missing(&self, key: &str, expected: String) {
        self.report.missing(&self.origin, &self.key(key), expected);
    }

    /// Reports the given keys that are unknown.
    pub(crate) fn finish(self) {
        for Entry { key, origin, .. } in &self.table.entries {
            if self.known.contains(&key.as_str()) || self.refused.contains(&key.as_str()) {
                continue;
            }
            let path = if is_name(key) { self.key(key) } else { self.key(&quoted(key)) };
            let message = format!("unknown key `{path}`");
            let mut fault = Fault::unknown(ProblemKind::UnknownKey, message, key, &self.known);
            let renamed = RENAMED.iter().find(|(old, new)| old == key && self.known.contains(new));
            if let Some((_, new)) = renamed {
                fault = fault.with_help(format!("`{key}` was renamed to `{new}`"));
            } else if !fault.has_proposal()
                && let Some(home) = self.report.home_of(key)
            {
                fault = fault.with_help(format!("`{key}` belongs under {home}"));
            }
            self.report.add(origin, &path, fault);
        }
    }

    fn entry(&self, key: &str) -> Option<&'a Entry> {
        self.table.entries.iter().find(|entry| entry.key == key)
    }
}
