//! `[scheme.NAME]`: schemes that a scenario defines.

use anabranch_schemes::registry::{ExpressionError, Vocabulary};

use crate::document::{Node, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{Form, Text, mismatch};
use crate::key::is_name;
use crate::origin::Origin;
use crate::reader::Reader;
use crate::section::{Section as _, section};
use crate::text::{printable, quoted};

/// Maximum number of definitions of a scenario.
const MOST_SCHEMES: usize = 64;

/// Maximum number of characters of an expression, enough for all parameters.
const LONGEST_EXPRESSION: usize = 500;

/// A name for a scheme expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemeDefinition {
    /// Name, which no other scheme or component has.
    pub name: String,
    /// Expression that the name replaces.
    pub expression: String,
    /// Purpose, in a sentence.
    pub about: Option<String>,
}

/// Returns the valid names in scheme expressions of a scenario.
pub(crate) fn vocabulary(definitions: &[SchemeDefinition]) -> Vocabulary {
    define(definitions.iter()).0
}

fn define<'a>(
    definitions: impl Iterator<Item = &'a SchemeDefinition>,
) -> (Vocabulary, Vec<(usize, ExpressionError)>) {
    let pairs: Vec<(&str, &str)> =
        definitions.map(|one| (one.name.as_str(), one.expression.as_str())).collect();
    Vocabulary::default().define(&pairs)
}

/// Reads the definitions in alphabetical order.
pub(crate) fn read_schemes(reader: Reader<'_>) -> Option<Vec<SchemeDefinition>> {
    let mut entries = reader.named_tables();
    if entries.len() > MOST_SCHEMES {
        let message = format!("a scenario defines at most {MOST_SCHEMES} schemes");
        let help = format!("these are {}", entries.len());
        reader.fault_here(Fault::explained(ProblemKind::OutOfRange, message, help));
        return None;
    }
    entries.sort_by_key(|(name, ..)| *name);
    let (mut definitions, mut origins, mut complete) = (Vec::new(), Vec::new(), true);
    for (name, origin, table) in entries {
        let (Some(table), true) = (table, check_name(&reader, name, origin)) else {
            complete = false;
            continue;
        };
        match read(table, name) {
            Some((definition, at)) => {
                definitions.push(definition);
                origins.push((origin, at));
            }
            None => complete = false,
        }
    }
    // References to missing definitions could not be distinguished from wrong ones.
    if !complete {
        return None;
    }
    let faults = define(definitions.iter()).1;
    for (index, error) in &faults {
        add_fault(&reader, &definitions[*index].name, origins[*index], error);
    }
    faults.is_empty().then_some(definitions)
}

/// Reports the error of a definition. `places` are those of its name and its expression.
fn add_fault(reader: &Reader<'_>, name: &str, places: (&Origin, &Origin), error: &ExpressionError) {
    let text = printable(&error.to_string());
    let (what, advice) = text.split_once("; ").unwrap_or((&text, "write it as in \"cmt(trigger=4)\""));
    let message = format!("scheme `{name}`: {what}");
    match error {
        ExpressionError::Shadows { .. } => {
            reader.fault_at(places.0, name, Fault::explained(ProblemKind::Duplicate, message, advice));
        }
        _ => {
            let fault = Fault::explained(ProblemKind::InvalidValue, message, advice);
            reader.fault_at(places.1, &format!("{name}.expression"), fault);
        }
    }
}

fn check_name(reader: &Reader<'_>, name: &str, origin: &Origin) -> bool {
    if is_name(name) {
        return true;
    }
    let expected = "up to 64 ASCII letters, digits, `-` and `_`, not all of them digits";
    let fault = Fault::invalid(expected, quoted(name));
    reader.fault_at(origin, &quoted(name), fault.with_message("this is not the name of a scheme"));
    false
}

section! {
    /// A name for a scheme expression, `[scheme.NAME]`.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct SchemeRows {
        /// Scheme expression that the name stands for.
        expression: String = "expression" [required] Expression;
        /// Description, shown in the report.
        about: Option<String> = "about" [optional "none"] Text;
    }
}

/// Reads a definition, and the place of its expression.
fn read<'a>(mut reader: Reader<'a>, name: &str) -> Option<(SchemeDefinition, &'a Origin)> {
    let at = reader.peek("expression").map(|node| &node.origin);
    let rows = SchemeRows::read_rows(&mut reader);
    reader.finish();
    let SchemeRows { expression, about } = rows?;
    Some((SchemeDefinition { name: name.to_owned(), expression, about }, at?))
}

impl From<&SchemeDefinition> for SchemeRows {
    fn from(scheme: &SchemeDefinition) -> SchemeRows {
        SchemeRows { expression: scheme.expression.clone(), about: scheme.about.clone() }
    }
}

/// A scheme expression. Only its length is checked here.
struct Expression;

impl Form for Expression {
    type Output = String;

    fn expected(&self) -> String {
        "a scheme in a string such as \"cmt(trigger=4)\"".to_owned()
    }

    fn read(&self, node: &Node) -> Result<String, Fault> {
        let Value::Text(text) = &node.value else { return Err(mismatch(self, node)) };
        match text.chars().count() {
            0 => Err(mismatch(self, node)),
            length if length > LONGEST_EXPRESSION => {
                let expected = format!("at most {LONGEST_EXPRESSION} characters");
                Err(Fault::out_of_range(expected, format!("{length} of them")))
            }
            _ => Ok(text.clone()),
        }
    }

    fn write(&self, value: &String) -> String {
        Text.write(value)
    }

    fn about(&self) -> About {
        About::plain(format!("string, at most {LONGEST_EXPRESSION} characters"), "str")
    }
}
