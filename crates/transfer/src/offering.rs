//! Chosen files and folders that a server offers in place of a folder, and the catalogue that describes them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::name::{MAX_PART_BYTES, Name};
use crate::protocol::{Kind, MAX_CONTROL_BYTES};
use crate::send::{Found, SendSource, survey};
use crate::text::PeerText;

/// Maximum number of chosen files and folders.
pub const MAX_OFFERED: usize = 128;

/// Sources that a server offers, by the names under which they are fetched.
#[derive(Clone, Debug)]
pub struct Offering {
    catalogue: Catalogue,
    sources: Vec<SendSource>,
}

/// Reason why sources cannot be offered.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OfferingError {
    /// Too many sources.
    #[error("at most {MAX_OFFERED} files and folders can be offered at a time; put them into a folder")]
    TooMany,
    /// Two sources have the same name.
    #[error("two of the files and folders are called {0}: they would be fetched under one name; rename one")]
    SameName(PeerText),
    /// The source cannot be read, or filters exclude all of its content.
    #[error("{0}")]
    Unreadable(PeerText),
}

impl Offering {
    /// Surveys the sources. Requires a tokio runtime.
    ///
    /// # Errors
    /// Returns [`OfferingError`]. An unreadable entry below a folder is no error: it is reported when the folder is fetched.
    pub async fn survey(sources: Vec<SendSource>) -> Result<Self, OfferingError> {
        if sources.len() > MAX_OFFERED {
            return Err(OfferingError::TooMany);
        }
        let (mut entries, mut names) = (Vec::new(), BTreeSet::new());
        for source in &sources {
            let entry = entry(source.clone()).await?;
            if !names.insert(entry.name.clone()) {
                return Err(OfferingError::SameName(entry.name.into()));
            }
            entries.push(entry);
        }
        Ok(Offering { catalogue: Catalogue { entries }, sources })
    }

    /// Surveys the same sources again.
    ///
    /// # Errors
    /// Returns the errors of [`survey`](Self::survey).
    pub async fn survey_again(&self) -> Result<Self, OfferingError> {
        Self::survey(self.sources.clone()).await
    }

    /// Returns the catalogue to send to a peer.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    /// Returns the sources with these names, or all sources if `names` is empty. A peer cannot request a part of an offered folder.
    pub(crate) fn wanted(&self, names: &[String]) -> Vec<SendSource> {
        let all = self.catalogue.entries.iter().zip(&self.sources);
        let wanted = all.filter(|(entry, _)| names.is_empty() || names.contains(&entry.name));
        wanted.map(|(_, source)| source.clone()).collect()
    }
}

/// Sums up a source. Every name found in the source begins with the source's name.
async fn entry(source: SendSource) -> Result<Entry, OfferingError> {
    let mut sum: Option<Entry> = None;
    let mut found = survey(source);
    while let Some(item) = found.recv().await {
        let (name, kind) = match item {
            Found::Item { name, kind } => (name, kind),
            Found::Skipped { why } if sum.is_none() => return Err(OfferingError::Unreadable(why)),
            Found::Skipped { .. } => continue,
        };
        let first = name.split('/').next().unwrap_or_default();
        sum.get_or_insert_with(|| Entry::new(first, &kind)).count(&kind);
    }
    sum.ok_or_else(|| OfferingError::Unreadable("its content is omitted".into()))
}

/// Description of a server's offering.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalogue {
    entries: Vec<Entry>,
}

/// Kind of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryKind {
    /// A file of known size.
    File,
    /// The content of a pipe, whose size is known at its end.
    Stream,
    /// A symbolic link.
    Link,
    /// A folder with all of its content.
    Folder,
}

/// A file, a stream, a link, or a folder with all of its content. A receiver that has [confirmed](crate::Accept::confirmed) the
/// entry accepts at most these numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    name: String,
    kind: EntryKind,
    files: u64,
    folders: u64,
    links: u64,
    bytes: u64,
}

impl Entry {
    /// Creates an empty entry whose first offer is of this kind.
    fn new(name: &str, first: &Kind) -> Self {
        let kind = match first {
            Kind::File { .. } => EntryKind::File,
            Kind::Stream { .. } => EntryKind::Stream,
            Kind::Link { .. } => EntryKind::Link,
            Kind::Folder | Kind::FolderEnd => EntryKind::Folder,
        };
        Entry { name: name.to_owned(), kind, files: 0, folders: 0, links: 0, bytes: 0 }
    }

    fn count(&mut self, found: &Kind) {
        let counter = match found {
            Kind::File { size_bytes, .. } => {
                self.bytes = self.bytes.saturating_add(*size_bytes);
                &mut self.files
            }
            Kind::Stream { .. } => &mut self.files,
            Kind::Link { .. } => &mut self.links,
            Kind::Folder => &mut self.folders,
            Kind::FolderEnd => return,
        };
        *counter = counter.saturating_add(1);
    }

    /// Returns the name to fetch it by. The name can be requested and stored, and must be escaped for display.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the kind of the item with this name; all other items are in a folder.
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Returns the number of files in the entry.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Returns the number of folders in the entry, including the entry itself.
    pub fn folders(&self) -> u64 {
        self.folders
    }

    /// Returns the number of symbolic links in the entry.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Returns the number of bytes of the entry's files; `None` for a stream, whose size is unknown.
    pub fn bytes(&self) -> Option<u64> {
        (self.kind != EntryKind::Stream).then_some(self.bytes)
    }

    /// Returns `true` if the numbers match the kind.
    fn is_consistent(&self) -> bool {
        let numbers = (self.files, self.folders, self.links);
        match self.kind {
            EntryKind::File => numbers == (1, 0, 0),
            EntryKind::Stream => numbers == (1, 0, 0) && self.bytes == 0,
            EntryKind::Link => numbers == (0, 0, 1) && self.bytes == 0,
            EntryKind::Folder => self.folders > 0,
        }
    }
}

impl Catalogue {
    /// Returns the entries, with names that differ.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Encodes the catalogue.
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("all lengths are known")
    }

    /// Decodes a catalogue; `None` for bytes that no [`Offering`] produces, such as a name that cannot be requested.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() > MAX_CONTROL_BYTES {
            return None;
        }
        let (catalogue, rest) = postcard::take_from_bytes::<Catalogue>(bytes).ok()?;
        let names: BTreeSet<&str> = catalogue.entries.iter().map(|entry| entry.name.as_str()).collect();
        let is_name =
            |name: &&str| !name.contains('/') && name.len() <= MAX_PART_BYTES && Name::new(name).is_ok();
        let is_catalogue = rest.is_empty()
            && (1..=MAX_OFFERED).contains(&catalogue.entries.len())
            && names.len() == catalogue.entries.len()
            && names.iter().all(is_name)
            && catalogue.entries.iter().all(Entry::is_consistent);
        is_catalogue.then_some(catalogue)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn survey_of(paths: &[std::path::PathBuf]) -> Result<Offering, OfferingError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(Offering::survey(paths.iter().map(SendSource::path).collect()))
    }

    #[test]
    fn each_source_is_summed_up_under_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("photos/2026")).expect("a folder");
        fs::write(at("photos/2026/a"), [0; 100]).expect("written");
        fs::write(at("photos/b"), [0; 20]).expect("written");
        fs::write(at("film.mkv"), [0; 7]).expect("written");
        let offering = survey_of(&[at("film.mkv"), at("photos")]).expect("there");
        let entries = offering
            .catalogue()
            .entries()
            .iter()
            .map(|e| (e.name(), e.kind(), e.files(), e.folders(), e.bytes()));
        let entries: Vec<_> = entries.collect();
        let expected =
            [("film.mkv", EntryKind::File, 1, 0, Some(7)), ("photos", EntryKind::Folder, 2, 2, Some(120))];
        assert_eq!(entries, expected);
        assert_eq!(Catalogue::decode(&offering.catalogue().encode()).as_ref(), Some(offering.catalogue()));
        let wanted = |names: &[&str]| {
            offering.wanted(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).len()
        };
        assert_eq!((wanted(&[]), wanted(&["photos"])), (2, 1));
        assert_eq!(wanted(&["photos/b", "..", "other"]), 0, "nothing else is to be had");
    }

    #[test]
    fn unusable_source_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("a/x")).expect("a folder");
        fs::create_dir_all(at("b/x")).expect("a folder");
        assert_eq!(survey_of(&[at("a/x"), at("b/x")]).unwrap_err(), OfferingError::SameName("x".into()));
        assert!(survey_of(&[at("c")]).unwrap_err().to_string().contains("c"));
        assert_eq!(survey_of(&vec![at("a"); MAX_OFFERED + 1]).unwrap_err(), OfferingError::TooMany);
    }

    #[test]
    fn catalogue_with_unrequestable_names_is_refused() {
        let decoded = |names: &[&str]| {
            let entry = |name: &&str| {
                let file = Kind::File { size_bytes: 1, first: None };
                let mut entry = Entry::new(name, &file);
                entry.count(&file);
                entry
            };
            Catalogue::decode(&Catalogue { entries: names.iter().map(entry).collect() }.encode())
        };
        assert!(decoded(&["a", "b"]).is_some());
        let many: Vec<String> = (0..=MAX_OFFERED).map(|number| number.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let long = "x".repeat(256);
        for names in [&[][..], &["a", "a"], &["a/b"], &[".."], &["/a"], &[""], &[&long], &many] {
            assert_eq!(decoded(names), None, "{names:?}");
        }
    }

    #[test]
    fn catalogue_whose_numbers_do_not_fit_a_kind_is_refused() {
        let entry = |kind, files, folders, links, bytes| Entry {
            name: "a".to_owned(),
            kind,
            files,
            folders,
            links,
            bytes,
        };
        let decoded = |entry| Catalogue::decode(&Catalogue { entries: vec![entry] }.encode()).is_some();
        for good in [
            entry(EntryKind::File, 1, 0, 0, 9),
            entry(EntryKind::Stream, 1, 0, 0, 0),
            entry(EntryKind::Link, 0, 0, 1, 0),
            entry(EntryKind::Folder, 0, 1, 0, 0),
        ] {
            assert!(decoded(good.clone()), "{good:?}");
        }
        for bad in [
            entry(EntryKind::File, 2, 0, 0, 9),
            entry(EntryKind::File, 1, 1, 0, 9),
            entry(EntryKind::Stream, 1, 0, 0, 9),
            entry(EntryKind::Link, 1, 0, 1, 0),
            entry(EntryKind::Folder, 5, 0, 0, 0),
        ] {
            assert!(!decoded(bad.clone()), "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(catalogue) = Catalogue::decode(&bytes) {
                prop_assert_eq!(Catalogue::decode(&catalogue.encode()), Some(catalogue));
            }
        }
    }
}
