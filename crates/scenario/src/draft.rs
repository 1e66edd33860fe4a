//! Scenarios with their parsed document, so that values can be overridden without parsing it again.

use std::sync::Arc;

use crate::document::{self, Table, Value};
use crate::error::ScenarioError;
use crate::origin::Origin;
use crate::overrides::{self, Override};
use crate::report::Report;
use crate::whole::read;
use crate::{Scenario, sections};

/// Text of a scenario file that is TOML, and may lack values that overrides add.
#[derive(Debug)]
pub struct Draft {
    text: String,
    file: String,
    root: Table,
}

/// A scenario with its document.
#[derive(Clone, Debug)]
pub struct Document {
    draft: Arc<Draft>,
    overrides: Vec<Override>,
    scenario: Arc<Scenario>,
}

impl Draft {
    /// Parses the text of a scenario. The name of the file is only used in errors.
    ///
    /// # Errors
    /// Returns the first error of TOML syntax in the text.
    pub fn parse(text: &str, file: &str) -> Result<Draft, ScenarioError> {
        match document::parse(text) {
            Ok(root) => Ok(Draft { text: text.to_owned(), file: file.to_owned(), root }),
            Err(error) => {
                let report = Report::new(file, text, &[]);
                report.add(&Origin::File(error.at.clone()), "", error.fault());
                report.finish(None)
            }
        }
    }

    /// Returns the name of the file in errors.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Reads the scenario with these values, later ones over earlier ones.
    ///
    /// # Errors
    /// Returns all errors of the scenario.
    pub fn read(self: &Arc<Draft>, overrides: Vec<Override>) -> Result<Document, ScenarioError> {
        let scenario = Arc::new(self.read_scenario(&overrides)?);
        Ok(Document { draft: Arc::clone(self), overrides, scenario })
    }

    pub(crate) fn read_scenario(&self, overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        let report = Report::new(&self.file, &self.text, overrides).with_homes(sections::home_of);
        let mut root = self.root_with(overrides, &report);
        overrides::add_default_flow(&mut root);
        let scenario = read(&root, &report);
        report.finish(scenario)
    }

    fn root_with(&self, overrides: &[Override], report: &Report<'_>) -> Table {
        let mut root = self.root.clone();
        for (index, set) in overrides.iter().enumerate() {
            if let Err(fault) = set.apply(&mut root, index) {
                report.add(&Origin::Override(index), &set.key, fault);
            }
        }
        root
    }
}

impl Document {
    /// Returns the document with more values.
    ///
    /// # Errors
    /// Returns all errors of the scenario.
    pub fn with(&self, more: Vec<Override>) -> Result<Document, ScenarioError> {
        self.draft.read([self.overrides.clone(), more].concat())
    }

    /// Returns the document that it was read from.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &str {
        &self.draft.text
    }

    /// Returns the values that were put into it.
    pub fn overrides(&self) -> &[Override] {
        &self.overrides
    }

    /// Returns the scenario.
    pub fn scenario(&self) -> &Arc<Scenario> {
        &self.scenario
    }

    /// Returns the given keys in alphabetical order, with their values.
    pub fn given(&self) -> Vec<(String, RawValue)> {
        let report = Report::new("", "", &self.overrides);
        let root = self.draft.root_with(&self.overrides, &report);
        entries(root).collect()
    }
}

/// Value in a scenario file.
#[derive(Clone, Debug, PartialEq)]
pub enum RawValue {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i128),
    /// Another number.
    Float(f64),
    /// True or false.
    Flag(bool),
    /// A list.
    List(Vec<RawValue>),
    /// A table.
    Table(Vec<(String, RawValue)>),
}

/// Returns the keys of a table with their values.
pub(crate) fn entries(table: Table) -> impl Iterator<Item = (String, RawValue)> {
    table.entries.into_iter().filter_map(|entry| Some((entry.key, RawValue::of(entry.node.value)?)))
}

impl RawValue {
    /// Returns a value; `None` for a date, which no key of a scenario takes.
    fn of(value: Value) -> Option<RawValue> {
        Some(match value {
            Value::Text(text) => RawValue::Text(text),
            Value::Integer(number) => RawValue::Integer(number),
            Value::Float(number) => RawValue::Float(number),
            Value::Flag(flag) => RawValue::Flag(flag),
            Value::Date => return None,
            Value::List(items) => {
                RawValue::List(items.into_iter().filter_map(|item| RawValue::of(item.value)).collect())
            }
            Value::Table(table) => RawValue::Table(entries(table).collect()),
        })
    }
}
