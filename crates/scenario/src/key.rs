//! Addresses of list elements in keys.

use crate::document::{Node, Value};

/// Returns the segment of a list element in the path of a key: its valid name, or else its index.
pub(crate) fn element(key: &str, index: usize, node: &Node) -> String {
    let Value::Table(table) = &node.value else { return index.to_string() };
    match table.get("name").map(|name| &name.value) {
        Some(Value::Text(name)) if is_name(name) => name.clone(),
        _ if NAMED.contains(&key) => default_name(key, index),
        _ => index.to_string(),
    }
}

/// Lists whose elements have names.
pub(crate) const NAMED: [&str; 3] = ["path", "flow", "link"];

/// Returns the name of an element without one.
pub(crate) fn default_name(key: &str, index: usize) -> String {
    format!("{key}-{}", index + 1)
}

/// Returns `true` if text can name an element or a key: short, printable and unlike an index, so that `--set` can address it.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    (1..=64).contains(&text.len()) && text.chars().all(plain) && !text.chars().all(|c| c.is_ascii_digit())
}
