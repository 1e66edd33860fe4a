//! Scheme expressions: `name` or `name(parameter=value,…)`, and lists of them, in which commas inside parentheses do not split.

use std::fmt;
use std::sync::Arc;

use anabranch_core::policy::{Policies, Scheme};
use anabranch_core::profile::Profile;
use thiserror::Error;

use crate::registry::{PRESETS, Preset, Values};

/// A preset with its parameters chosen: what an association is configured with.
#[derive(Clone, Debug)]
pub struct NamedScheme {
    preset: &'static Preset,
    values: Values,
    text: String,
}

impl NamedScheme {
    /// The preset it is made from.
    pub fn preset(&self) -> &'static Preset {
        self.preset
    }

    /// The values of its parameters.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// As an association's configuration wants it.
    pub fn into_scheme(self) -> Arc<dyn Scheme> {
        Arc::new(self)
    }
}

impl fmt::Display for NamedScheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Scheme for NamedScheme {
    fn policies(&self) -> Policies {
        (self.preset.build)(&self.values)
    }

    fn is_multipath(&self) -> bool {
        self.preset.multipath
    }

    fn profile(&self, row: Profile) -> Profile {
        (self.preset.profile)(&self.values, row)
    }
}

/// What is wrong with a scheme expression.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ExpressionError {
    /// No such scheme.
    #[error("unknown scheme `{name}`{}; there are: {}", did_you_mean(.nearest.as_deref()), names())]
    UnknownScheme {
        /// As written.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
    },
    /// No such parameter.
    #[error("scheme `{scheme}` has no parameter `{name}`{}; it has: {known}", did_you_mean(.nearest.as_deref()))]
    UnknownParameter {
        /// The scheme.
        scheme: String,
        /// As written.
        name: String,
        /// The nearest name, if one is near.
        nearest: Option<String>,
        /// All of them.
        known: String,
    },
    /// A value that the parameter does not take.
    #[error("`{name}={value}` in scheme `{scheme}`: expected {expected}")]
    BadValue {
        /// The scheme.
        scheme: String,
        /// The parameter.
        name: String,
        /// As written.
        value: String,
        /// What would be right.
        expected: String,
    },
    /// The form is wrong.
    #[error("`{text}` is not a scheme: {problem}; write `name` or `name(parameter=value,…)`")]
    Form {
        /// As written.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
}

fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|n| format!(", did you mean `{n}`?")).unwrap_or_default()
}

fn names() -> String {
    PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", ")
}

fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<String> {
    candidates
        .map(|c| (strsim::damerau_levenshtein(word, c), c))
        .filter(|&(distance, c)| distance <= 2 && distance < c.len())
        .min()
        .map(|(_, c)| c.to_owned())
}

/// Splits a list at commas that are not inside parentheses.
pub fn split_list(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|p| !p.is_empty());
    parts
}

/// Reads a list of schemes; `all` stands for every preset with its defaults.
///
/// # Errors
/// [`ExpressionError`] for the first one that is wrong.
pub fn parse_list(text: &str) -> Result<Vec<NamedScheme>, ExpressionError> {
    let mut schemes = Vec::new();
    for part in split_list(text) {
        if part == "all" {
            for preset in PRESETS {
                schemes.push(parse(preset.name)?);
            }
        } else {
            schemes.push(parse(part)?);
        }
    }
    if schemes.is_empty() {
        return Err(ExpressionError::Form { text: text.to_owned(), problem: "it is empty" });
    }
    Ok(schemes)
}

/// Reads one scheme.
///
/// # Errors
/// [`ExpressionError`].
pub fn parse(text: &str) -> Result<NamedScheme, ExpressionError> {
    let text = text.trim();
    let form = |problem| ExpressionError::Form { text: text.to_owned(), problem };
    let (name, arguments) = match text.split_once('(') {
        None => (text, ""),
        Some((name, rest)) => {
            (name.trim_end(), rest.strip_suffix(')').ok_or_else(|| form("a parenthesis is not closed"))?)
        }
    };
    if arguments.contains(['(', ')']) {
        return Err(form("parentheses do not match"));
    }
    let preset = PRESETS.iter().find(|p| p.name == name).ok_or_else(|| ExpressionError::UnknownScheme {
        name: name.to_owned(),
        nearest: nearest(name, PRESETS.iter().map(|p| p.name)),
    })?;
    let mut values = Values::defaults(preset.parameters);
    for argument in arguments.split(',').map(str::trim).filter(|a| !a.is_empty()) {
        set(preset, &mut values, argument)?;
    }
    Ok(NamedScheme { preset, values, text: text.to_owned() })
}

fn set(preset: &Preset, values: &mut Values, argument: &str) -> Result<(), ExpressionError> {
    let Some((name, value)) = argument.split_once('=') else {
        return Err(ExpressionError::Form {
            text: argument.to_owned(),
            problem: "a parameter needs a value",
        });
    };
    let (name, value) = (name.trim(), value.trim());
    let Some(at) = preset.parameters.iter().position(|p| p.name == name) else {
        return Err(ExpressionError::UnknownParameter {
            scheme: preset.name.to_owned(),
            name: name.to_owned(),
            nearest: nearest(name, preset.parameters.iter().map(|p| p.name)),
            known: preset.parameters.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
        });
    };
    values.values[at] = preset.parameters[at].read(value).map_err(|expected| ExpressionError::BadValue {
        scheme: preset.name.to_owned(),
        name: name.to_owned(),
        value: value.to_owned(),
        expected,
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_parentheses_do_not_split_a_list() {
        let text = "sctp, cmt(rtx=rtx-asap,trigger=4,sfr=false,cuc=false,dac=false),cmt-pf";
        assert_eq!(
            split_list(text),
            ["sctp", "cmt(rtx=rtx-asap,trigger=4,sfr=false,cuc=false,dac=false)", "cmt-pf"]
        );
    }

    #[test]
    fn parameters_change_what_they_name_and_nothing_else() {
        let scheme = parse("cmt(rtx=rtx-asap, trigger=4,sfr=false)").expect("valid");
        assert_eq!(scheme.values().choice("rtx"), "rtx-asap");
        assert_eq!(scheme.values().number("trigger"), 4);
        assert!(!scheme.values().switch("sfr") && scheme.values().switch("cuc"));
    }

    #[test]
    fn naive_cmt_is_cmt_with_its_repairs_off() {
        let naive = parse("naive-cmt").expect("valid");
        assert!(!["sfr", "cuc", "dac"].iter().any(|name| naive.values().switch(name)));
    }

    #[test]
    fn all_stands_for_every_preset() {
        assert_eq!(parse_list("all").map(|l| l.len()), Ok(PRESETS.len()));
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_right() {
        let cases = [
            ("cmtt", "unknown scheme `cmtt`, did you mean `cmt`?; there are: sctp, naive-cmt, cmt, cmt-pf"),
            ("cmt(rtxx=1)", "scheme `cmt` has no parameter `rtxx`, did you mean `rtx`?"),
            ("cmt(trigger=0)", "`trigger=0` in scheme `cmt`: expected a number from 1 to 100"),
            ("cmt(rtx=rtx-best)", "expected one of rtx-same, rtx-asap, rtx-cwnd, rtx-ssthresh, rtx-lossrate"),
            ("cmt(sfr=no)", "expected true or false"),
            ("cmt(trigger)", "a parameter needs a value"),
            ("cmt(trigger=3", "a parenthesis is not closed"),
        ];
        for (text, expected) in cases {
            let error = parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        assert!(parse_list(" , ").is_err());
    }
}
