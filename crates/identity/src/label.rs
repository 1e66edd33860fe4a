//! Names that people give to keys.

use std::fmt;
use std::str::FromStr;

/// Bytes of a label.
const LONGEST: usize = 128;

/// A name for a key: one line of printable characters, so that it can be shown as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label(String);

/// A text is no [`Label`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongLabel {
    /// It is too long.
    #[error("a label has at most {LONGEST} bytes")]
    TooLong,
    /// A terminal would obey one of its characters, or not show it.
    #[error("a label has printable characters only")]
    Unprintable,
}

impl Label {
    /// Whether there is no text.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether a terminal shows a character and obeys none: `escape_debug` writes all others as numbers. Quotes and the backslash it
/// writes with a backslash, which is no concern here.
fn is_shown(character: char) -> bool {
    matches!(character, '"' | '\'' | '\\') || character.escape_debug().len() == 1
}

impl FromStr for Label {
    type Err = WrongLabel;

    fn from_str(text: &str) -> Result<Self, WrongLabel> {
        let text = text.trim();
        if text.len() > LONGEST {
            return Err(WrongLabel::TooLong);
        }
        if !text.chars().all(is_shown) {
            return Err(WrongLabel::Unprintable);
        }
        Ok(Label(text.to_owned()))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_terminal_obeys_or_hides_is_no_label() {
        for text in ["a\u{1b}[2J", "a\nb", "a\u{202e}b", "a\u{200b}b", "\u{9b}2J", "a\u{e0041}"] {
            assert_eq!(text.parse::<Label>(), Err(WrongLabel::Unprintable), "{text:?}");
        }
        assert_eq!("x".repeat(129).parse::<Label>(), Err(WrongLabel::TooLong));
        for text in ["", "Anna's \"laptop\" \\o/", "Käse チーズ \u{1f9c0}"] {
            assert_eq!(text.parse::<Label>().expect(text).as_str(), text);
        }
    }

    proptest! {
        #[test]
        fn a_label_is_read_as_it_was_written(text in any::<String>()) {
            if let Ok(label) = text.parse::<Label>() {
                prop_assert_eq!(label.to_string().parse(), Ok(label));
            }
        }
    }
}
