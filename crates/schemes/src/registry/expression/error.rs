//! Errors in expressions, with suggestions.

use std::fmt;

use thiserror::Error;

use crate::registry::Role;

/// Owner of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Scheme of this name.
    Scheme(String),
    /// Component of this name.
    Component(String),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Scheme(name) => write!(f, "scheme `{name}`"),
            Owner::Component(name) => write!(f, "component `{name}`"),
        }
    }
}

/// Error in a scheme expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// The scheme does not exist.
    #[error("unknown scheme `{name}`{}; there are: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownScheme {
        /// Text as written.
        name: String,
        /// Nearest scheme name, or an expression with the nearest component name, if one is close.
        nearest: Option<String>,
        /// Names of all schemes.
        known: String,
    },
    /// A component appears in place of the scheme.
    #[error("`{name}` is a component, not a scheme: write `{example}`")]
    ComponentAsScheme {
        /// Name of the component.
        name: String,
        /// Expression with this component.
        example: String,
    },
    /// The component does not exist.
    #[error("unknown component `{name}`{}; there are: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownComponent {
        /// Text as written.
        name: String,
        /// Nearest name, if one is close.
        nearest: Option<String>,
        /// Names of all components.
        known: String,
    },
    /// A scheme appears in place of a component.
    #[error("`{name}` is a scheme and cannot be added to one: schemes come first; components are: {known}")]
    SchemeAsComponent {
        /// Name of the scheme.
        name: String,
        /// Names of all components.
        known: String,
    },
    /// The component is added twice.
    #[error("component `{name}` is added twice")]
    ComponentTwice {
        /// Name of the component.
        name: String,
    },
    /// Two components have the same role.
    #[error(
        "`{first}` and `{second}` both take the role of {role}, which a scheme has once; remove one of the two"
    )]
    SameRole {
        /// Name of the first component.
        first: String,
        /// Name of the second component.
        second: String,
        /// Shared role.
        role: Role,
    },
    /// The component needs several paths, and the scheme uses one.
    #[error(
        "impossible combination: `{component}` needs a scheme that sends new data on several paths, and `{base}` uses one; \
         components for `{base}`: {fitting}"
    )]
    NeedsMultipath {
        /// Name of the component.
        component: String,
        /// Name of the scheme.
        base: String,
        /// Components that fit the scheme.
        fitting: String,
    },
    /// The component would replace a role that defines the scheme.
    #[error(
        "impossible combination: `{component}` would replace the {role} that defines `{base}`; components for `{base}`: \
         {fitting}"
    )]
    Owned {
        /// Name of the component.
        component: String,
        /// Name of the scheme.
        base: String,
        /// Role of the component.
        role: Role,
        /// Components that fit the scheme.
        fitting: String,
    },
    /// The parameter does not exist.
    #[error("{owner} has no parameter `{name}`{}; it has: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownParameter {
        /// Scheme or component.
        owner: Owner,
        /// Text as written.
        name: String,
        /// Nearest name, if one is close.
        nearest: Option<String>,
        /// Names of all its parameters.
        known: String,
    },
    /// The parameter is set twice.
    #[error("`{name}` is set twice in {owner}")]
    ParameterTwice {
        /// Scheme or component.
        owner: Owner,
        /// Name of the parameter.
        name: String,
    },
    /// The parameter does not accept the value.
    #[error("`{name}={value}` in {owner}: expected {expected}")]
    BadValue {
        /// Scheme or component.
        owner: Owner,
        /// Name of the parameter.
        name: String,
        /// Text as written.
        value: String,
        /// Expected value.
        expected: String,
    },
    /// The syntax is invalid.
    #[error(
        "`{text}` is not a scheme: {problem}; write `name`, `name(parameter=value,…)` or `name+component`"
    )]
    Form {
        /// Text as written.
        text: String,
        /// Description of the error.
        problem: &'static str,
    },
    /// The name of a definition is taken.
    #[error("`{name}` is {taken} already; choose another name")]
    Shadows {
        /// Name of the definition.
        name: String,
        /// Owner of the name: a scheme, a component, or the list of all schemes.
        taken: &'static str,
    },
    /// Definitions refer to each other in a cycle.
    #[error("the definitions form a circle: {circle}; remove the reference in one of them")]
    Circle {
        /// Names of the cycle in order, with the first repeated at the end.
        circle: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|n| format!(", did you mean `{n}`?")).unwrap_or_default()
}

/// Joins names for a message.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Returns the candidate closest to a word, if it is close enough for a suggestion.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = candidates.into_iter().map(|c| (strsim::damerau_levenshtein(word, c), c));
    close.filter(|&(distance, c)| distance <= 2 && distance < c.len()).min().map(|(_, c)| c)
}
