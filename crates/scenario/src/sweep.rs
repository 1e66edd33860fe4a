//! Sweeps, such as `path.path-2.loss=0,0.05,0.1`: one scenario for each value.

use std::fmt;
use std::str::FromStr;

use crate::overrides::Override;

/// Maximum number of values of a sweep, for which a table has room.
const MOST: usize = 100;

/// One key of a scenario with a list of values, `key=value,value`.
///
/// Key and values have the form of an [`Override`]. Commas within quotes, brackets or parentheses do not separate values.
///
/// ```
/// let sweep: anabranch_scenario::Sweep = "path.*.loss=0,0.05".parse().unwrap();
/// assert_eq!(sweep.values, ["0", "0.05"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Dotted key.
    pub key: String,
    /// Values as written: at least one, and all different.
    pub values: Vec<String>,
}

/// Error about text that is not a sweep.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SweepError {
    /// The key or the values are missing.
    #[error("expected KEY=VALUE,VALUE such as path.path-1.loss=0,0.05,0.1, found `{}`", .0.escape_debug())]
    Shape(String),
    /// A value between two commas is empty.
    #[error("`{}` has an empty value between its commas", .0.escape_debug())]
    Empty(String),
    /// A value occurs twice.
    #[error("`{}` has the value `{}` twice", .key.escape_debug(), .value.escape_debug())]
    Twice {
        /// Dotted key.
        key: String,
        /// Repeated value.
        value: String,
    },
    /// A table cannot show that many values.
    #[error("`{}` has more than {MOST} values", .0.escape_debug())]
    Many(String),
}

impl FromStr for Sweep {
    type Err = SweepError;

    fn from_str(text: &str) -> Result<Self, SweepError> {
        let (key, list) = match text.split_once('=') {
            Some((key, list)) if !key.trim().is_empty() && !list.trim().is_empty() => (key.trim(), list),
            _ => return Err(SweepError::Shape(text.to_owned())),
        };
        let key = key.to_owned();
        let mut values: Vec<String> = Vec::new();
        for value in split(list) {
            match value.trim() {
                "" => return Err(SweepError::Empty(key)),
                value if values.iter().any(|other| other == value) => {
                    return Err(SweepError::Twice { key, value: value.to_owned() });
                }
                value => values.push(value.to_owned()),
            }
        }
        if values.len() > MOST {
            return Err(SweepError::Many(key));
        }
        Ok(Sweep { key, values })
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.values.join(","))
    }
}

impl Sweep {
    /// Returns the overrides that set each value in a scenario.
    pub fn overrides(&self) -> impl Iterator<Item = Override> {
        self.values.iter().map(|value| Override {
            key: self.key.clone(),
            value: value.clone(),
            option: "--sweep",
        })
    }
}

/// Splits text at commas outside of quotes and brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    let (mut depth, mut quote) = (0_i32, None);
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(character),
            (None, '[' | '{' | '(') => depth += 1,
            (None, ']' | '}' | ')') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_inside_quotes_and_brackets_do_not_divide() {
        let values = |text: &str| text.parse::<Sweep>().expect("a sweep").values;
        assert_eq!(values("a.b= 1 , 2 ms,3"), ["1", "2 ms", "3"]);
        assert_eq!(values("a=\"x,y\",'z,'"), ["\"x,y\"", "'z,'"]);
        assert_eq!(values("a=[1,2],{ p = 1, r = 2 }"), ["[1,2]", "{ p = 1, r = 2 }"]);
        assert_eq!(values("flow.f.scheme=cmt(trigger=4,rtx=rtx-asap),sctp").len(), 2);
    }

    #[test]
    fn every_value_becomes_an_override_of_the_sweep() {
        let sweep: Sweep = "run.duration='2 s','3 s'".parse().expect("a sweep");
        let each: Vec<String> = sweep.overrides().map(|set| format!("{} {set}", set.option)).collect();
        assert_eq!(each, ["--sweep run.duration='2 s'", "--sweep run.duration='3 s'"]);
    }

    #[test]
    fn invalid_sweep_is_refused_with_the_reason() {
        let many: Vec<String> = (0..=MOST).map(|value| value.to_string()).collect();
        let many = format!("a={}", many.join(","));
        let cases = [
            ("loss", "expected KEY=VALUE,VALUE"),
            ("loss=", "expected KEY=VALUE,VALUE"),
            ("=1,2", "expected KEY=VALUE,VALUE"),
            ("loss=1,,2", "`loss` has an empty value"),
            ("loss=1,2,1", "`loss` has the value `1` twice"),
            (&many, "more than 100 values"),
        ];
        for (text, expected) in cases {
            let error = text.parse::<Sweep>().expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
