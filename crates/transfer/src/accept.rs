//! Choice of the offered names that a receiver stores.

use thiserror::Error;

use crate::filter::Filters;
use crate::name::{BadName, Name};
use crate::offering::{Catalogue, Entry};
use crate::protocol::{MAX_WANTED, MAX_WANTED_BYTES};
use crate::text::PeerText;

/// Names that a receiver accepts. Names are compared byte by byte: case and Unicode normalisation make a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accept {
    wanted: Wanted,
    hidden: bool,
    filters: Filters,
    confirmed: Option<Confirmed>,
}

/// Catalogue that the user has confirmed, as an upper bound of the accepted content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Confirmed {
    pub(crate) entries: Vec<Entry>,
    /// Bound of each stream, whose size is unknown.
    pub(crate) most_stream_bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    All,
    /// Requested names, at least one.
    Names(Vec<Name>),
}

/// Decision on an offered name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The name is stored.
    Accepted,
    /// The first part of the name begins with a dot, and the receiver did not ask for such names.
    Hidden,
    /// A filter excludes the name.
    Excluded,
    /// The name is neither requested nor below a requested name: the peer answers a different request.
    NotRequested,
}

/// Reason why a list of names is no valid request.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum BadRequest {
    /// A name that no file can have.
    #[error("`{}` cannot be asked for: {why}", .name)]
    Name {
        /// The name as it was given.
        name: PeerText,
        /// Rule that the name breaks.
        why: BadName,
    },
    /// The list is empty.
    #[error("no name is asked for; name at least one, or accept everything")]
    Nothing,
    /// More names or bytes than a transfer may request.
    #[error(
        "the request is too large: at most {MAX_WANTED} names with {MAX_WANTED_BYTES} B in all; request their folder"
    )]
    TooMuch,
}

impl Accept {
    /// Accepts everything, except for names whose first part begins with a dot unless `hidden` is set.
    pub fn all(hidden: bool) -> Self {
        Accept { wanted: Wanted::All, hidden, filters: Filters::default(), confirmed: None }
    }

    /// Accepts these names and everything below them. Empty parts and `.` are removed, so `photos/` and `./photos` are `photos`.
    ///
    /// # Errors
    /// Returns [`BadRequest`] if a name leads out of the folder or cannot exist, and if there are no names or too many.
    ///
    /// ```
    /// use anabranch_transfer::Accept;
    /// assert_eq!(Accept::names(["photos/"]), Accept::names(["photos"]));
    /// assert!(Accept::names(["../photos"]).is_err());
    /// ```
    pub fn names<T: AsRef<str>>(names: impl IntoIterator<Item = T>) -> Result<Self, BadRequest> {
        let names: Vec<Name> =
            names.into_iter().map(|name| requested(name.as_ref())).collect::<Result<_, _>>()?;
        let bytes: usize = names.iter().map(|name| name.as_str().len()).sum();
        if names.is_empty() {
            return Err(BadRequest::Nothing);
        }
        if names.len() > MAX_WANTED || bytes > MAX_WANTED_BYTES {
            return Err(BadRequest::TooMuch);
        }
        Ok(Accept {
            wanted: Wanted::Names(names),
            hidden: false,
            filters: Filters::default(),
            confirmed: None,
        })
    }

    /// Accepts the entries of a catalogue that the user has confirmed. Kind, numbers and bytes of each entry are upper bounds. A
    /// stream, whose size is unknown, may have `most_stream_bytes`. An offer beyond these bounds ends the transfer.
    ///
    /// # Errors
    /// Returns the errors of [`names`](Self::names).
    pub fn confirmed(catalogue: &Catalogue, most_stream_bytes: u64) -> Result<Self, BadRequest> {
        let entries = catalogue.entries().to_vec();
        let accept = Accept::names(entries.iter().map(Entry::name))?;
        Ok(Accept { confirmed: Some(Confirmed { entries, most_stream_bytes }), ..accept })
    }

    /// Returns the same choice without the names that `filters` exclude.
    #[must_use]
    pub fn with_filters(mut self, filters: Filters) -> Self {
        self.filters = filters;
        self
    }

    pub(crate) fn filters(&self) -> &Filters {
        &self.filters
    }

    pub(crate) fn bounds(&self) -> Option<&Confirmed> {
        self.confirmed.as_ref()
    }

    /// Names that are requested from a source; empty if everything is accepted.
    pub(crate) fn wanted(&self) -> &[Name] {
        match &self.wanted {
            Wanted::All => &[],
            Wanted::Names(names) => names,
        }
    }

    pub(crate) fn judge(&self, name: &Name, is_folder: bool) -> Verdict {
        match &self.wanted {
            _ if !self.filters.takes_all_of(name, is_folder) => Verdict::Excluded,
            Wanted::All if name.as_str().starts_with('.') && !self.hidden => Verdict::Hidden,
            Wanted::All => Verdict::Accepted,
            Wanted::Names(names) if names.iter().any(|wanted| name.is_at_or_below(wanted)) => {
                Verdict::Accepted
            }
            Wanted::Names(_) => Verdict::NotRequested,
        }
    }
}

impl Default for Accept {
    /// Accepts everything that is not hidden.
    fn default() -> Self {
        Accept::all(false)
    }
}

fn requested(text: &str) -> Result<Name, BadRequest> {
    let bad = |why| BadRequest::Name { name: text.into(), why };
    if text.starts_with('/') {
        return Err(bad(BadName::Absolute));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    Name::new(&parts.join("/")).map_err(bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(accept: &Accept, name: &str) -> Verdict {
        accept.judge(&Name::new(name).expect("a name"), false)
    }

    #[test]
    fn only_requested_names_and_their_contents_are_accepted() {
        let accept = Accept::names(["video.mkv", "photos/", "./d//e/.", ".profile"]).expect("names");
        for name in ["video.mkv", "video.mkv/x", "photos", "photos/.hidden/x", "d/e", "d/e/f", ".profile"] {
            assert_eq!(judge(&accept, name), Verdict::Accepted, "{name}");
        }
        for name in
            [".bashrc", ".ssh/authorized_keys", "video.mkv.1", "video", "Video.mkv", "d", "d/ee", "x/photos"]
        {
            assert_eq!(judge(&accept, name), Verdict::NotRequested, "{name}");
        }
        // The same letter in two normalisation forms is not the same name.
        let accept = Accept::names(["caf\u{e9}"]).expect("a name");
        assert_eq!(judge(&accept, "cafe\u{301}"), Verdict::NotRequested);
    }

    #[test]
    fn request_for_all_omits_hidden_top_level_names_by_default() {
        for (name, is_hidden) in
            [(".bashrc", true), (".ssh/keys", true), ("...", true), ("a", false), ("a/.b", false)]
        {
            let verdict = if is_hidden { Verdict::Hidden } else { Verdict::Accepted };
            assert_eq!(judge(&Accept::all(false), name), verdict, "{name}");
            assert_eq!(judge(&Accept::all(true), name), Verdict::Accepted, "{name}");
        }
        assert_eq!(Accept::default(), Accept::all(false));
    }

    #[test]
    fn a_request_that_cannot_be_met_is_refused_before_it_is_made() {
        for (name, why) in [
            ("..", BadName::Dots),
            ("a/../b", BadName::Dots),
            ("/etc", BadName::Absolute),
            ("", BadName::Empty),
            ("./", BadName::Empty),
            ("a\x1b[2J", BadName::Control),
        ] {
            let refused = Accept::names([name]).expect_err(name);
            assert_eq!(refused, BadRequest::Name { name: name.into(), why });
            assert!(!refused.to_string().contains('\x1b'));
        }
        assert_eq!(Accept::names([] as [&str; 0]), Err(BadRequest::Nothing));
        assert_eq!(Accept::names(vec!["a"; MAX_WANTED + 1]), Err(BadRequest::TooMuch));
        let long = "a/".repeat(100) + &"b".repeat(200);
        assert_eq!(Accept::names(vec![long; MAX_WANTED_BYTES / 400 + 1]), Err(BadRequest::TooMuch));
    }
}
