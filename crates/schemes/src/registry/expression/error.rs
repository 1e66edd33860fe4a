//! Errors in expressions, with suggestions.

use std::fmt;

use thiserror::Error;

use crate::registry::Role;

/// The owner of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A scheme's.
    Scheme(String),
    /// A component's.
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

/// What is wrong with a scheme expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// No such scheme.
    #[error("unknown scheme `{name}`{}; there are: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownScheme {
        /// The text as written.
        name: String,
        /// The nearest scheme, or an expression with the nearest component, if one is near.
        nearest: Option<String>,
        /// All schemes.
        known: String,
    },
    /// A component where a scheme has to stand.
    #[error("`{name}` is a component, not a scheme: write `{example}`")]
    ComponentAsScheme {
        /// The component.
        name: String,
        /// An expression that has it.
        example: String,
    },
    /// No such component.
    #[error("unknown component `{name}`{}; there are: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownComponent {
        /// The text as written.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All components.
        known: String,
    },
    /// A scheme where a component has to stand.
    #[error("`{name}` is a scheme and cannot be added to one: schemes stand first; components are: {known}")]
    SchemeAsComponent {
        /// The scheme.
        name: String,
        /// All components.
        known: String,
    },
    /// A component that is there already.
    #[error("component `{name}` is added twice")]
    ComponentTwice {
        /// The component.
        name: String,
    },
    /// Two components of one role.
    #[error("`{first}` and `{second}` both take the role of {role}, which a scheme has once; leave one out")]
    SameRole {
        /// The one that came first.
        first: String,
        /// The other one.
        second: String,
        /// Their role.
        role: Role,
    },
    /// A component for several paths on a scheme that uses one.
    #[error(
        "impossible combination: `{component}` needs a scheme that sends new data on several paths, and `{base}` uses one; \
         what can be added to `{base}`: {fitting}"
    )]
    NeedsMultipath {
        /// The component.
        component: String,
        /// The scheme.
        base: String,
        /// What can be added instead.
        fitting: String,
    },
    /// A component that would replace what defines the scheme.
    #[error(
        "impossible combination: `{component}` would replace the {role} that makes `{base}` what it is; \
         what can be added to `{base}`: {fitting}"
    )]
    Owned {
        /// The component.
        component: String,
        /// The scheme.
        base: String,
        /// The role that both want.
        role: Role,
        /// What can be added instead.
        fitting: String,
    },
    /// No such parameter.
    #[error("{owner} has no parameter `{name}`{}; it has: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownParameter {
        /// What was to have it.
        owner: Owner,
        /// The text as written.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All of them.
        known: String,
    },
    /// A parameter that is given two values.
    #[error("`{name}` is set twice in {owner}")]
    ParameterTwice {
        /// What has it.
        owner: Owner,
        /// The parameter.
        name: String,
    },
    /// A value that the parameter does not take.
    #[error("`{name}={value}` in {owner}: expected {expected}")]
    BadValue {
        /// What has the parameter.
        owner: Owner,
        /// The parameter.
        name: String,
        /// The text as written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// A syntax error.
    #[error(
        "`{text}` is not a scheme: {problem}; write `name`, `name(parameter=value,…)` or `name+component`"
    )]
    Form {
        /// The text as written.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A definition whose name is taken.
    #[error("`{name}` is {taken} already; choose another name")]
    Shadows {
        /// The name.
        name: String,
        /// What has it: a scheme, a component, or the list of all schemes.
        taken: &'static str,
    },
    /// Definitions that need each other.
    #[error("the definitions go in a circle: {circle}; one of them has to do without the others")]
    Circle {
        /// The names in their order, the first one again at the end.
        circle: String,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|n| format!(", did you mean `{n}`?")).unwrap_or_default()
}

/// Names for a sentence that lists them.
pub(super) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// The candidate closest to a word, if it is close enough to be meant.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = candidates.into_iter().map(|c| (strsim::damerau_levenshtein(word, c), c));
    close.filter(|&(distance, c)| distance <= 2 && distance < c.len()).min().map(|(_, c)| c)
}
