//! Names in messages: relative paths with `/` between their parts, which never lead out of the folder that they are stored in.

use std::fmt;

use thiserror::Error;

use crate::identity::Owner;

/// Maximum length of a name, in bytes.
pub const MAX_NAME_BYTES: usize = 4096;
/// Maximum length of one part of a name, in bytes, as in common file systems.
pub const MAX_PART_BYTES: usize = 255;
/// Maximum number of parts of a name.
pub const MAX_PARTS: usize = 128;

/// Ending of the part file, which contains the received content of an unfinished file.
pub(crate) const PART_ENDING: &str = ".anabranch-part";
/// Ending of the journal, which records the blocks in the part file.
pub(crate) const JOURNAL_ENDING: &str = ".anabranch-journal";
/// Beginning of all reserved names that belong to no other file.
pub(crate) const OWN_BEGINNING: &str = ".anabranch-";
/// Name of the record of stored files, at the top of a folder.
pub(crate) const RECORD_NAME: &str = ".anabranch-stored";
/// Beginning of the temporary name of a symbolic link that is to replace something else.
pub(crate) const LINK_DRAFT: &str = ".anabranch-link-";
/// Number of bytes of a long name that are kept in the names of its part file and journal, which would be too long otherwise.
const KEPT_BYTES: usize = 160;

/// Name of a file or folder, relative to the top of the transfer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name(String);

/// Reason why a name is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadName {
    /// The name is empty, or has an empty part.
    #[error("a part of it is empty")]
    Empty,
    /// The name is absolute.
    #[error("it is absolute")]
    Absolute,
    /// A part is `.` or `..`.
    #[error("it contains `.` or `..`")]
    Dots,
    /// The name contains a NUL byte or another control character.
    #[error("it contains a control character")]
    Control,
    /// The name is too long for common file systems.
    #[error("it is too long: at most {MAX_PART_BYTES} B a part, {MAX_PARTS} parts and {MAX_NAME_BYTES} B")]
    TooLong,
    /// The name is reserved for the program's own files.
    #[error(
        "names that end in `{PART_ENDING}` or `{JOURNAL_ENDING}` or begin with `{OWN_BEGINNING}` are the program's own"
    )]
    Reserved,
    /// The name is a device on some systems, with any ending.
    #[error("it is the name of a device on Windows")]
    Device,
    /// The name contains a character that some systems cannot store.
    #[error("it contains `{0}`, which some systems cannot store")]
    Character(char),
    /// A part ends in a dot or a space, which some systems remove.
    #[error("a part of it ends in a dot or a space, which some systems remove")]
    Trailing,
}

/// Reason why a symbolic link is refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BadLink {
    /// The target of the link is empty, too long or contains a control character.
    #[error("its target is empty, too long or contains a control character")]
    Target,
    /// The link leads out of the transferred folder.
    #[error("it leads out of the folder that is transferred")]
    Outside,
    /// The target has `..` behind a name, so its destination depends on other links.
    #[error("its target has `..` behind a name, so its destination depends on other links")]
    Winding,
    /// The link is transferred alone, without the folder that contains it.
    #[error("it is in no folder that is transferred with it")]
    Alone,
}

impl Name {
    /// Creates a name if it can be stored below a folder.
    ///
    /// # Errors
    /// Returns the reason why the name is refused.
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

    /// Returns the name as it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the last part.
    pub fn last(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// Returns the first part.
    pub(crate) fn top(&self) -> &str {
        self.0.split('/').next().unwrap_or(&self.0)
    }

    /// Returns the name of the folder that contains the file; `None` at the top of the transfer.
    pub fn parent(&self) -> Option<&str> {
        self.0.rsplit_once('/').map(|(parent, _)| parent)
    }

    /// Returns the name of an entry of this folder.
    pub(crate) fn below(&self, last: &str) -> Result<Name, BadName> {
        Name::new(&format!("{}/{last}", self.0))
    }

    /// Returns `true` if it is `folder` or below it.
    pub(crate) fn is_at_or_below(&self, folder: &Name) -> bool {
        let rest = self.0.strip_prefix(folder.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// Returns a name in the same folder.
    pub(crate) fn beside(&self, last: &str) -> String {
        match self.parent() {
            Some(parent) => format!("{parent}/{last}"),
            None => last.to_owned(),
        }
    }

    /// Checks that a symbolic link with this name and target stays in the folder that is the first part of the name.
    ///
    /// The target begins with `..` parts, resolved from a folder that is not a link, and continues with names only. A link on this
    /// path was checked in the same way, so it stays inside too.
    ///
    /// # Errors
    /// Returns the reason why the link is refused.
    ///
    /// ```
    /// use anabranch_transfer::{BadLink, Name};
    /// let name = Name::new("photos/2026/best.jpg").expect("a name");
    /// assert_eq!(name.check_link("../2025/one.jpg"), Ok(()));
    /// assert_eq!(name.check_link("../../one.jpg"), Err(BadLink::Outside));
    /// ```
    pub fn check_link(&self, target: &str) -> Result<(), BadLink> {
        if target.is_empty() || target.len() > MAX_NAME_BYTES || target.chars().any(char::is_control) {
            return Err(BadLink::Target);
        }
        if target.starts_with('/') || cfg!(windows) && target.contains(['\\', ':']) {
            return Err(BadLink::Outside);
        }
        let Some(mut up) = self.0.split('/').count().checked_sub(2) else { return Err(BadLink::Alone) };
        let mut is_down = false;
        for part in target.split('/').filter(|part| !part.is_empty() && *part != ".") {
            match part {
                ".." if is_down => return Err(BadLink::Winding),
                ".." => up = up.checked_sub(1).ok_or(BadLink::Outside)?,
                part if part.len() > MAX_PART_BYTES => return Err(BadLink::Target),
                _ => is_down = true,
            }
        }
        Ok(())
    }

    /// Returns the names of the folders that contain the file, from the top.
    pub(crate) fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }

    /// Returns the name of its part file.
    pub(crate) fn part(&self, owner: Owner) -> String {
        self.beside(&hidden(self.last(), owner, PART_ENDING))
    }

    /// Returns the name of its journal.
    pub(crate) fn journal(&self, owner: Owner) -> String {
        self.beside(&hidden(self.last(), owner, JOURNAL_ENDING))
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
    let folded = fold(part);
    if folded.ends_with(PART_ENDING) || folded.ends_with(JOURNAL_ENDING) || folded.starts_with(OWN_BEGINNING)
    {
        return Err(BadName::Reserved);
    }
    if cfg!(windows) && part.contains(['\\', ':']) {
        return Err(BadName::Absolute);
    }
    Ok(())
}

/// Returns a name in the form in which file systems compare it that ignore case and zero-width characters.
fn fold(part: &str) -> String {
    let is_ignored = |c: &char| matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    // The name is converted to upper case and then to lower case, because some characters, such as the long s, are equal in one
    // case only.
    part.chars().filter(|c| !is_ignored(c)).collect::<String>().to_uppercase().to_lowercase()
}

/// Names that a receiver accepts, among those that stay in its folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRules {
    /// Names that this system can store.
    #[default]
    System,
    /// Names that every system can store.
    Portable,
}

impl NameRules {
    /// Checks a name.
    ///
    /// # Errors
    /// Returns the reason why the name is refused.
    ///
    /// ```
    /// use anabranch_transfer::{BadName, Name, NameRules};
    /// let name = Name::new("photos/aux.jpg").expect("it leads nowhere else");
    /// assert_eq!(NameRules::Portable.check(&name), Err(BadName::Device));
    /// ```
    pub fn check(self, name: &Name) -> Result<(), BadName> {
        // Unix systems can store every `Name`.
        if self == NameRules::Portable || cfg!(windows) {
            name.as_str().split('/').try_for_each(check_portable)
        } else {
            Ok(())
        }
    }
}

/// Checks a part by the rules of Windows, which are the strictest.
fn check_portable(part: &str) -> Result<(), BadName> {
    if let Some(bad) = part.chars().find(|c| matches!(c, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\')) {
        return Err(BadName::Character(bad));
    }
    if part.chars().any(char::is_control) {
        return Err(BadName::Control);
    }
    if part.ends_with(['.', ' ']) {
        return Err(BadName::Trailing);
    }
    if is_device(part) {
        return Err(BadName::Device);
    }
    Ok(())
}

/// Returns `true` for the name of a device, which Windows reserves in every folder and with any ending.
fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end_matches(' ').to_uppercase();
    let is_numbered = |stem: &str| {
        stem.strip_prefix("COM").or(stem.strip_prefix("LPT")).is_some_and(|number| {
            let mut digits = number.chars();
            // Windows interprets superscripts as digits.
            matches!((digits.next(), digits.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
        })
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") || is_numbered(&stem)
}

/// Returns the name of a hidden file for `last`, which is short enough and differs for each name and sender.
fn hidden(last: &str, owner: Owner, ending: &str) -> String {
    if last.len() <= KEPT_BYTES {
        return format!(".{last}.{owner}{ending}");
    }
    let mut end = KEPT_BYTES;
    while !last.is_char_boundary(end) {
        end -= 1;
    }
    let hash = blake3::hash(last.as_bytes()).to_hex();
    format!(".{}~{}.{owner}{ending}", &last[..end], &hash[..32])
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
    fn names_that_leave_the_folder_or_are_reserved_are_refused() {
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
            (".anabranch-stored", BadName::Reserved),
            ("d/.Anabranch-Stored", BadName::Reserved),
            (".anabranch-\u{17f}tored", BadName::Reserved),
            (".ana\u{200d}branch-stored", BadName::Reserved),
            (".anabranch-sender", BadName::Reserved),
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
    fn portable_names_are_those_that_every_system_stores() {
        for (text, why) in [
            ("CON", BadName::Device),
            ("a/aux.txt", BadName::Device),
            ("nul.tar.gz", BadName::Device),
            ("con .txt", BadName::Device),
            ("Com1", BadName::Device),
            ("lpt\u{b9}.txt", BadName::Device),
            ("conout$", BadName::Device),
            ("prn/x", BadName::Device),
            ("end.", BadName::Trailing),
            ("end /x", BadName::Trailing),
            ("a:b", BadName::Character(':')),
            ("a\\b", BadName::Character('\\')),
            ("what?", BadName::Character('?')),
            ("x/<y>", BadName::Character('<')),
        ] {
            let name = Name::new(text).expect(text);
            assert_eq!(NameRules::Portable.check(&name), Err(why), "{text:?}");
            assert_eq!(NameRules::System.check(&name).is_ok(), cfg!(not(windows)), "{text:?}");
        }
        for text in ["console", "com10", "com", "a.con", "aux_", ".hidden", "a b", "é/ü", "lpt"] {
            assert_eq!(NameRules::Portable.check(&Name::new(text).expect(text)), Ok(()), "{text:?}");
        }
    }

    #[test]
    fn long_names_have_part_files_of_their_own_that_are_not_too_long() {
        let one = Name::new(&format!("d/{}1", "é".repeat(127))).expect("a name");
        let two = Name::new(&format!("d/{}2", "é".repeat(127))).expect("a name");
        let owner = Owner::default();
        assert_ne!(one.part(owner), two.part(owner));
        for name in [&one, &two] {
            for file in [name.part(owner), name.journal(owner)] {
                assert!(file.starts_with("d/.é") && file.len() <= 2 + MAX_PART_BYTES, "{file}");
            }
        }
        assert_eq!(Name::new("a").expect("a name").part(owner), ".a.0000000000000000.anabranch-part");
        let other = crate::SenderId::from_bytes([1; 16]).owner();
        assert_ne!(one.part(other), one.part(owner), "another sender has another part file");
    }

    #[test]
    fn a_link_stays_in_the_folder_at_the_top_of_its_name() {
        let check = |name: &str, target: &str| Name::new(name).expect(name).check_link(target);
        for (name, target) in [
            ("p/l", "x"),
            ("p/l", "./x//y/"),
            ("p/l", "."),
            ("p/l", "...hidden/x"),
            ("p/a/l", ".."),
            ("p/a/b/l", ".././../x"),
        ] {
            assert_eq!(check(name, target), Ok(()), "{name} {target}");
        }
        for (name, target, why) in [
            ("l", "x", BadLink::Alone),
            ("p/l", "..", BadLink::Outside),
            ("p/l", "../p/x", BadLink::Outside),
            ("p/a/l", "../../x", BadLink::Outside),
            ("p/l", "/etc/passwd", BadLink::Outside),
            ("p/a/l", "x/../y", BadLink::Winding),
            ("p/l", "x/../../y", BadLink::Winding),
            ("p/l", "", BadLink::Target),
            ("p/l", "a\0b", BadLink::Target),
            ("p/l", "a\x1b[2J", BadLink::Target),
        ] {
            assert_eq!(check(name, target), Err(why), "{name} {target}");
        }
        assert_eq!(check("p/l", &"a/".repeat(2049)), Err(BadLink::Target));
        let parents: Vec<String> = Name::new("a/b/c").expect("a name").parents().map(str::to_owned).collect();
        assert_eq!(parents, ["a", "a/b"]);
    }

    proptest! {
        #[test]
        fn combined_accepted_links_stay_inside_the_folder(
            links in prop::collection::vec((r"p(/[ab]){1,3}", r"(\.\./|\./|[ab]/){0,4}[ab.]{0,2}"), 1..5),
        ) {
            let top = tempfile::tempdir().expect("a folder");
            let inside = top.path().join("p").canonicalize().unwrap_or(top.path().canonicalize().expect("there").join("p"));
            for (name, target) in links {
                let (Ok(name), path) = (Name::new(&name), top.path().join(&name)) else { continue };
                if name.check_link(&target).is_err() {
                    continue;
                }
                // Links are created as a receiver stores them: folders are real ones, and existing entries stay.
                let is_real = name.parents().all(|parent| {
                    let parent = top.path().join(parent);
                    let _ = std::fs::create_dir(&parent);
                    parent.symlink_metadata().is_ok_and(|there| there.is_dir())
                });
                if is_real {
                    #[cfg(unix)]
                    let _ = std::os::unix::fs::symlink(&target, &path);
                }
            }
            let mut left = vec![inside.clone()];
            while let Some(folder) = left.pop() {
                for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                    if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                        left.push(entry.path());
                    }
                    if let Ok(real) = entry.path().canonicalize() {
                        prop_assert!(real.starts_with(&inside), "{:?} leads to {real:?}", entry.path());
                    }
                }
            }
        }

        #[test]
        fn accepted_name_stays_below_the_folder(text in r"[a./\\\x00\x7f:é-]{0,12}") {
            if let Ok(name) = Name::new(&text) {
                let (part, journal) = (name.part(Owner::default()), name.journal(Owner::default()));
                for path in [name.as_str().to_owned(), part.clone(), journal.clone()] {
                    prop_assert!(!path.is_empty());
                    prop_assert!(Path::new(&path).components().all(|part| matches!(part, Component::Normal(_))));
                    prop_assert!(!path.contains('\0'));
                    prop_assert_eq!(Path::new(&path).components().count(), path.split('/').count());
                }
                prop_assert!(Name::new(&part).is_err() && Name::new(&journal).is_err());
            }
        }
    }
}
