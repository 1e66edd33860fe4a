//! Overrides, such as `path.path-1.loss=0.02`, which set a value of the document before it is read.

use std::fmt;
use std::str::FromStr;

use crate::document::{Node, Table, Value, parse_value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::key::{NAMED, element};
use crate::origin::Origin;
use crate::text::printable;

/// Maximum number of parts of a key. Maximum number of parts of a key. The longest key of a scenario has six.
const DEEPEST: usize = 12;

/// Lists of tables, which overrides do not create.
const LISTS: [&str; 5] = ["path", "flow", "link", "background", "event"];

/// Value from outside the file, `key=value`.
///
/// The key is dotted. List elements are named by their name, or by their index from 0, or `*` for all of them:
/// `path.path-1.loss=0.02`, `path.*.background.0.rate=2 Mbit/s`. A value that is not TOML is a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// Dotted key.
    pub key: String,
    /// Value as written.
    pub value: String,
    /// Option of the override, for messages; empty without one.
    pub option: &'static str,
}

/// Error about text that is not an override.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected KEY=VALUE such as path.path-1.loss=0.02, found `{}`", .0.escape_debug())]
pub struct OverrideError(String);

impl FromStr for Override {
    type Err = OverrideError;

    fn from_str(text: &str) -> Result<Self, OverrideError> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Override { key: key.trim().to_owned(), value: value.trim().to_owned(), option: "--set" })
            }
            _ => Err(OverrideError(text.to_owned())),
        }
    }
}

impl fmt::Display for Override {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl Override {
    /// Sets the value in the document. An unknown key is also set, and is reported when the document is read.
    pub(crate) fn apply(&self, root: &mut Table, index: usize) -> Result<(), Fault> {
        let origin = Origin::Override(index);
        let parts: Vec<&str> = self.key.split('.').collect();
        if parts.len() > DEEPEST || parts.iter().any(|part| part.is_empty()) {
            let message = format!("`{}` is not the key of a value", printable(&self.key));
            let help = "write it as in path.path-1.loss, without empty parts";
            return Err(Fault::explained(ProblemKind::UnknownKey, message, help));
        }
        let node = self.node(&origin)?;
        if parts[0] == "flow" && parts.len() > 1 {
            add_default_flow(root);
        }
        let mut place = Placement { node: &node, origin: &origin, set: 0 };
        place.in_table(root, &parts, "")?;
        if place.set > 0 {
            return Ok(());
        }
        let message = format!("`{}` matches nothing", printable(&self.key));
        Err(Fault::explained(ProblemKind::UnknownName, message, "the scenario has no such elements"))
    }

    /// Returns the value as TOML. A value that is not TOML is a bare string, unless it begins like other TOML.
    fn node(&self, origin: &Origin) -> Result<Node, Fault> {
        let text = self.value.as_str();
        match parse_value(text, origin) {
            Ok(node) => Ok(node),
            Err(error) if text.starts_with(['[', '{', '"', '\'']) => {
                let message = format!("the value of `{}` is not TOML: {error}", printable(&self.key));
                let help = "quote the whole for the shell, as in --set 'run.schemes=[\"cmt\", \"cmt-pf\"]'";
                Err(Fault::explained(ProblemKind::Syntax, message, help))
            }
            Err(_) => Ok(Node { value: Value::Text(text.to_owned()), origin: origin.clone() }),
        }
    }
}

/// Adds the default flow to a scenario without flows.
pub(crate) fn add_default_flow(root: &mut Table) {
    let given = match root.get("flow").map(|node| &node.value) {
        Some(Value::List(flows)) => !flows.is_empty(),
        other => other.is_some(),
    };
    if !given {
        let flow = Node { value: Value::Table(Table::default()), origin: Origin::Assumed };
        root.set("flow", Node { value: Value::List(vec![flow]), origin: Origin::Assumed });
    }
}

/// Override of a value at all places that match a key.
struct Placement<'a> {
    node: &'a Node,
    origin: &'a Origin,
    set: usize,
}

impl Placement<'_> {
    fn in_table(&mut self, table: &mut Table, parts: &[&str], above: &str) -> Result<(), Fault> {
        let [part, rest @ ..] = parts else { return Ok(()) };
        if rest.is_empty() {
            table.set(part, self.node.clone());
            self.set += 1;
            return Ok(());
        }
        let here = if above.is_empty() { (*part).to_owned() } else { format!("{above}.{part}") };
        if table.get(part).is_none() {
            if LISTS.contains(part) {
                return self.in_list(&mut [], part, rest, &here);
            }
            table.set(part, Node { value: Value::Table(Table::default()), origin: self.origin.clone() });
        }
        match table.get_mut(part) {
            Some(node) => self.in_node(node, part, rest, &here),
            None => Ok(()),
        }
    }

    fn in_node(&mut self, node: &mut Node, key: &str, parts: &[&str], here: &str) -> Result<(), Fault> {
        match &mut node.value {
            Value::Table(table) => self.in_table(table, parts, here),
            Value::List(items) => self.in_list(items, key, parts, here),
            other => {
                let message = format!("`{}` is {}, which has no keys", printable(here), other.type_name());
                let help = format!("set `{}` itself", printable(here));
                Err(Fault::explained(ProblemKind::UnknownKey, message, help))
            }
        }
    }

    fn in_list(&mut self, items: &mut [Node], key: &str, parts: &[&str], here: &str) -> Result<(), Fault> {
        let [wanted, rest @ ..] = parts else { return Ok(()) };
        let names: Vec<String> =
            items.iter().enumerate().map(|(index, item)| element(key, index, item)).collect();
        let chosen: Vec<usize> = if *wanted == "*" {
            (0..items.len()).collect()
        } else {
            let by_name = names.iter().position(|name| name == wanted);
            let by_index = || wanted.parse().ok().filter(|index| *index < names.len());
            by_name.or_else(by_index).into_iter().collect()
        };
        if chosen.is_empty() && *wanted != "*" {
            return Err(no_such_element(key, wanted, &names));
        }
        for index in chosen {
            let here = format!("{here}.{}", names[index]);
            if rest.is_empty() {
                items[index] = self.node.clone();
                self.set += 1;
            } else {
                self.in_node(&mut items[index], "", rest, &here)?;
            }
        }
        Ok(())
    }
}

fn no_such_element(key: &str, wanted: &str, names: &[String]) -> Fault {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = printable(wanted);
    let message = if NAMED.contains(&key) {
        format!("no {key} is named `{wanted}`")
    } else {
        format!("`{}` has no element `{wanted}`", printable(key))
    };
    Fault::unknown(ProblemKind::UnknownName, message, &wanted, &names)
}
