//! Names as they travel: relative, with `/` between their parts, and never a way out of the folder they are put in.

use std::fmt;

use thiserror::Error;

/// Most bytes of a name.
pub const MAX_NAME_BYTES: usize = 4096;
/// Most bytes of one part of a name, as file systems have it.
pub const MAX_PART_BYTES: usize = 255;
/// Most parts of a name.
pub const MAX_PARTS: usize = 128;

/// Ending of the file that holds what has arrived of another one.
const PART_ENDING: &str = ".anabranch-part";
/// Ending of the file that says which blocks of it are there.
const JOURNAL_ENDING: &str = ".anabranch-journal";
/// What is kept of a long name in the names of its part file and journal, so that those are not too long.
const KEPT_BYTES: usize = 160;

/// The name of a file or folder, relative to where the transfer begins.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Why a name is not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadName {
    /// Nothing, or nothing between two slashes.
    #[error("a part of it is empty")]
    Empty,
    /// It begins at the root.
    #[error("it is absolute")]
    Absolute,
    /// `.` or `..`.
    #[error("it contains `.` or `..`")]
    Dots,
    /// A NUL byte or another control character.
    #[error("it contains a control character")]
    Control,
    /// Too long for the file systems there are.
    #[error("it is too long: at most {MAX_PART_BYTES} B a part, {MAX_PARTS} parts and {MAX_NAME_BYTES} B")]
    TooLong,
    /// A part file or a journal of ours.
    #[error("names that end in `{PART_ENDING}` or `{JOURNAL_ENDING}` are kept for unfinished files")]
    Reserved,
}

impl Name {
    /// Takes a name if it can be put below a folder.
    ///
    /// # Errors
    /// What is wrong with it.
    ///
    /// ```
    /// use anabranch_transfer::{BadName, Name};
    /// assert!(Name::new("photos/2026/one.jpg").is_ok());
    /// assert_eq!(Name::new("../one.jpg"), Err(BadName::Dots));
    /// assert_eq!(Name::new("/etc/passwd"), Err(BadName::Absolute));
    /// ```
    pub fn new(text: &str) -> Result<Self, BadName> {
        if text.len() > MAX_NAME_BYTES || text.split('/').count() > MAX_PARTS {
            return Err(BadName::TooLong);
        }
        if text.starts_with('/') {
            return Err(BadName::Absolute);
        }
        text.split('/').try_for_each(check_part)?;
        Ok(Name(text.to_owned()))
    }

    /// As it travels.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last part.
    pub fn last(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The folder it is in, if that is not where the transfer begins.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }

    /// A name in the same folder.
    pub(crate) fn beside(&self, last: &str) -> String {
        match self.parent() {
            Some(parent) => format!("{parent}/{last}"),
            None => last.to_owned(),
        }
    }

    /// Where what has arrived of it is kept.
    pub(crate) fn part(&self) -> String {
        self.beside(&hidden(self.last(), PART_ENDING))
    }

    /// Where it is written down what has arrived of it.
    pub(crate) fn journal(&self) -> String {
        self.beside(&hidden(self.last(), JOURNAL_ENDING))
    }
}

fn check_part(part: &str) -> Result<(), BadName> {
    if part.is_empty() {
        return Err(BadName::Empty);
    }
    if part == "." || part == ".." {
        return Err(BadName::Dots);
    }
    if part.chars().any(char::is_control) {
        return Err(BadName::Control);
    }
    if part.len() > MAX_PART_BYTES {
        return Err(BadName::TooLong);
    }
    // File systems that ignore case exist.
    let lower = part.to_lowercase();
    if lower.ends_with(PART_ENDING) || lower.ends_with(JOURNAL_ENDING) {
        return Err(BadName::Reserved);
    }
    if cfg!(windows) && part.contains(['\\', ':']) {
        return Err(BadName::Absolute);
    }
    Ok(())
}

/// A hidden file's name for `last`, short enough, and another one for another name.
fn hidden(last: &str, ending: &str) -> String {
    if last.len() <= KEPT_BYTES {
        return format!(".{last}{ending}");
    }
    let mut end = KEPT_BYTES;
    while !last.is_char_boundary(end) {
        end -= 1;
    }
    let hash = blake3::hash(last.as_bytes()).to_hex();
    format!(".{}~{}{ending}", &last[..end], &hash[..32])
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        crate::text::write_escaped(f, &self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ways_out_and_names_of_our_own_are_refused() {
        for (text, why) in [
            ("", BadName::Empty),
            ("a//b", BadName::Empty),
            ("a/", BadName::Empty),
            ("/a", BadName::Absolute),
            ("..", BadName::Dots),
            ("a/../../b", BadName::Dots),
            ("./a", BadName::Dots),
            ("a\0b", BadName::Control),
            ("a\x1b[2Jb", BadName::Control),
            (".a.anabranch-part", BadName::Reserved),
            ("d/.A.ANABRANCH-Journal", BadName::Reserved),
            ("x.anabranch-part/y", BadName::Reserved),
        ] {
            assert_eq!(Name::new(text), Err(why), "{text:?}");
        }
        assert_eq!(Name::new(&"a".repeat(256)), Err(BadName::TooLong));
        assert_eq!(Name::new(&"a/".repeat(128)), Err(BadName::TooLong));
        for text in ["a", "a b/ü/...", "..a", "a..", ".hidden", &"é".repeat(127)] {
            assert_eq!(Name::new(text).expect("a name").as_str(), text);
        }
    }

    #[test]
    fn long_names_have_part_files_of_their_own_that_are_not_too_long() {
        let one = Name::new(&format!("d/{}1", "é".repeat(127))).expect("a name");
        let two = Name::new(&format!("d/{}2", "é".repeat(127))).expect("a name");
        assert_ne!(one.part(), two.part());
        for name in [&one, &two] {
            for file in [name.part(), name.journal()] {
                assert!(file.starts_with("d/.é") && file.len() <= 2 + MAX_PART_BYTES, "{file}");
            }
        }
        assert_eq!(Name::new("a").expect("a name").part(), ".a.anabranch-part");
    }

    proptest! {
        #[test]
        fn a_name_that_is_taken_only_ever_leads_down(text in r"[a./\\\x00\x7f:é-]{0,12}") {
            if let Ok(name) = Name::new(&text) {
                for path in [name.as_str().to_owned(), name.part(), name.journal()] {
                    prop_assert!(!path.is_empty());
                    prop_assert!(Path::new(&path).components().all(|part| matches!(part, Component::Normal(_))));
                    prop_assert!(!path.contains('\0'));
                    prop_assert_eq!(Path::new(&path).components().count(), path.split('/').count());
                }
                prop_assert!(Name::new(&name.part()).is_err() && Name::new(&name.journal()).is_err());
            }
        }
    }
}
