//! Descriptions of keys, for completions, the book and Python.

/// Description of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Key in scenario files.
    pub key: &'static str,
    /// Help text in Markdown.
    pub help: String,
    /// Form of the key's value.
    pub about: About,
    /// Effect of leaving the key out.
    pub presence: Presence,
    /// Words of the selecting key for which the key applies; empty if it always applies.
    pub only: &'static [&'static str],
}

/// Effect of leaving a key out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    /// The absence of the key is an error.
    Required,
    /// An absent key has this TOML value.
    Default(String),
    /// Another rule applies, in words.
    Optional(&'static str),
}

/// Description of a form of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// The form in words, in Markdown.
    pub text: String,
    /// The type in Python.
    pub python: String,
    /// Usual unit of values; empty without a unit.
    pub unit: &'static str,
    /// Name of the Python class if the value is a table or a list of tables.
    pub class: Option<&'static str>,
}

impl About {
    /// Describes values that are not tables.
    pub(crate) fn plain(text: impl Into<String>, python: impl Into<String>) -> About {
        About { text: text.into(), python: python.into(), unit: "", class: None }
    }

    /// Describes text with a unit.
    pub(crate) fn quantity(text: impl Into<String>, unit: &'static str) -> About {
        About { unit, ..About::plain(text, "str") }
    }
}
