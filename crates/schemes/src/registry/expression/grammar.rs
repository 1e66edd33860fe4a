//! Syntax of expressions, independent of the meaning of names.

use crate::registry::expression::ExpressionError;

/// Name with its arguments: the text between two `+`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Term<'a> {
    pub(super) name: &'a str,
    pub(super) arguments: Vec<Argument<'a>>,
}

/// `name=value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Argument<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
}

impl Term<'_> {
    /// Returns the term as written, without blanks.
    pub(super) fn canonical(&self) -> String {
        let arguments = self.arguments.iter().map(|argument| {
            let value: String = argument.value.split_whitespace().collect();
            (argument.name, value)
        });
        format!("{}{}", self.name, parenthesised(arguments))
    }
}

/// Returns arguments in parentheses, as they follow a name; empty if there are none.
pub(super) fn parenthesised<'a>(arguments: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let texts: Vec<String> = arguments.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    if texts.is_empty() { String::new() } else { format!("({})", texts.join(",")) }
}

/// Splits a list at commas outside parentheses.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut parts = split_outside(text, ',');
    parts.retain(|part| !part.is_empty());
    parts
}

/// Splits at a character outside parentheses. The parts are trimmed and may be empty.
fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if character == separator && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// Returns the name at the start of an expression.
pub(super) fn base_name(text: &str) -> &str {
    text.split(['(', '+']).next().unwrap_or(text).trim()
}

/// Parses the terms of an expression, at least one.
pub(super) fn terms(text: &str) -> Result<Vec<Term<'_>>, ExpressionError> {
    let text = text.trim();
    let form = |problem| ExpressionError::Form { text: text.to_owned(), problem };
    if text.is_empty() {
        return Err(form("it is empty"));
    }
    check_parentheses(text).map_err(form)?;
    let parts = split_outside(text, '+');
    if parts.iter().any(|part| part.is_empty()) {
        return Err(form("one side of a `+` is empty"));
    }
    parts.into_iter().map(term).collect()
}

/// Checks that parentheses are balanced and not nested.
fn check_parentheses(text: &str) -> Result<(), &'static str> {
    let mut open = false;
    for character in text.chars().filter(|c| matches!(c, '(' | ')')) {
        if (character == '(') == open {
            return Err("parentheses do not match");
        }
        open = !open;
    }
    if open { Err("a parenthesis is not closed") } else { Ok(()) }
}

fn term(text: &str) -> Result<Term<'_>, ExpressionError> {
    let form = |problem| ExpressionError::Form { text: text.to_owned(), problem };
    let (name, inside) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => {
            let inside = rest.strip_suffix(')').filter(|inside| !inside.contains(')'));
            (name.trim_end(), inside.ok_or_else(|| form("something follows the parameters without a `+`"))?)
        }
    };
    if name.is_empty() {
        return Err(form("the parameters follow no name"));
    }
    let written = inside.split(',').map(str::trim).filter(|argument| !argument.is_empty());
    let arguments = written.map(|argument| match argument.split_once('=') {
        Some((name, value)) => Ok(Argument { name: name.trim(), value: value.trim() }),
        None => Err(form("a parameter needs a value")),
    });
    Ok(Term { name, arguments: arguments.collect::<Result<_, _>>()? })
}
