//! Text from an untrusted source. Some characters control a terminal, and others change the display of the remaining text.

use std::fmt::{self, Write};

/// Text from a peer or a file system. It can be displayed only with every character escaped that controls a terminal or that hides
/// or reorders others.
///
/// The raw text is not accessible outside of this crate, so it cannot be printed by mistake.
///
/// ```
/// use anabranch_transfer::PeerText;
/// assert_eq!(PeerText::from("a\x1b[2Jb\u{202e}").to_string(), "a\\u{1b}[2Jb\\u{202e}");
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerText(String);

impl PeerText {
    /// Returns the raw text, for the encoding of messages and for names that are checked.
    pub(crate) fn raw(&self) -> &str {
        &self.0
    }

    /// Returns the length of the raw text, in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if it is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for PeerText {
    fn from(text: String) -> Self {
        PeerText(text)
    }
}

impl From<&str> for PeerText {
    fn from(text: &str) -> Self {
        PeerText(text.to_owned())
    }
}

impl fmt::Display for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, &self.0)
    }
}

impl fmt::Debug for PeerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Returns the text with every unsafe character escaped, as `\u{1b}`. Escaping a text twice has the same result as escaping it
/// once.
pub fn escape(text: &str) -> String {
    PeerText::from(text).to_string()
}

pub(crate) fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for character in text.chars() {
        if is_escaped(character) {
            write!(f, "{}", character.escape_unicode())?;
        } else {
            f.write_char(character)?;
        }
    }
    Ok(())
}

/// Returns `true` for control characters (C0, DEL, C1), line separators and invisible characters: those that Unicode calls
/// default-ignorable, which include the controls of writing direction, and interlinear annotations.
fn is_escaped(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{34f}'
                | '\u{61c}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Encodes a raw text: for messages only.
pub(crate) mod raw {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::PeerText;

    pub(crate) fn serialize<S: Serializer>(text: &PeerText, to: S) -> Result<S::Ok, S::Error> {
        text.0.serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PeerText, D::Error> {
        String::deserialize(from).map(PeerText)
    }
}

/// Encodes an optional raw text.
pub(crate) mod raw_option {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::PeerText;

    #[allow(clippy::ref_option)]
    pub(crate) fn serialize<S: Serializer>(text: &Option<PeerText>, to: S) -> Result<S::Ok, S::Error> {
        text.as_ref().map(|text| &text.0).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PeerText>, D::Error> {
        Ok(Option::<String>::deserialize(from)?.map(PeerText))
    }
}

/// Encodes a list of raw texts.
pub(crate) mod raw_list {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::PeerText;

    pub(crate) fn serialize<S: Serializer>(texts: &[PeerText], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(texts.iter().map(|text| &text.0))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PeerText>, D::Error> {
        Ok(Vec::<String>::deserialize(from)?.into_iter().map(PeerText).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn control_and_hidden_characters_are_escaped() {
        for (text, shown) in [
            ("\x1b[2J\x07\r\n\t\x7f", r"\u{1b}[2J\u{7}\u{d}\u{a}\u{9}\u{7f}"),
            ("\u{9b}2J", r"\u{9b}2J"),
            ("exe.\u{202e}gpj", r"exe.\u{202e}gpj"),
            ("\u{2066}\u{2069}\u{61c}\u{200e}\u{200f}", r"\u{2066}\u{2069}\u{61c}\u{200e}\u{200f}"),
            ("a\u{2028}b\u{2029}c\u{200b}\u{feff}\u{ad}", r"a\u{2028}b\u{2029}c\u{200b}\u{feff}\u{ad}"),
            ("\u{e0041}", r"\u{e0041}"),
            ("Käse/チーズ/\u{1f9c0} \\u{1b}", "Käse/チーズ/\u{1f9c0} \\u{1b}"),
        ] {
            assert_eq!(PeerText::from(text).to_string(), shown);
            assert_eq!(escape(shown), shown, "twice is once");
            assert_eq!(format!("{:?}", PeerText::from(text)), format!("\"{shown}\""));
        }
    }

    proptest! {
        #[test]
        fn no_control_character_is_printed(text in any::<String>()) {
            let shown = escape(&text);
            prop_assert!(!shown.chars().any(is_escaped));
            prop_assert_eq!(escape(&shown), shown);
        }
    }
}
