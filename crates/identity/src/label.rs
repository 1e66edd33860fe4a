//! Names that users give to keys.

use std::fmt;
use std::str::FromStr;

/// Maximum length of a label, in bytes.
const LONGEST: usize = 128;

/// Name of a key: one line of printable characters, so that it can be displayed unescaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label(String);

/// Error of parsing a [`Label`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WrongLabel {
    /// The text is too long.
    #[error("a label has at most {LONGEST} bytes")]
    TooLong,
    /// The text contains a control character or an invisible one.
    #[error("a label has printable characters only")]
    Unprintable,
}

impl Label {
    /// Returns `true` if the label is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns `true` if a terminal displays a character as text: `escape_debug` escapes all others. `escape_debug` also escapes quotes
/// and the backslash, which are harmless in a label.
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
    fn label_with_control_or_hidden_characters_is_refused() {
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
