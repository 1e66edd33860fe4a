//! Control messages and their encoding.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::block::Hash;
use crate::filter::{MAX_PATTERN_BYTES, Rule};
use crate::identity::SenderId;
use crate::name::{MAX_NAME_BYTES, MAX_PART_BYTES};
use crate::text::{self, PeerText};

/// Protocol version of this crate.
pub const PROTOCOL_VERSION: u16 = 5;

/// Maximum length of a control message, in bytes. No field can be longer, so the length bounds the memory that a message can
/// occupy.
pub const MAX_CONTROL_BYTES: usize = 64 << 10;
/// Maximum length of a text for people in a message, in bytes.
pub const MAX_TEXT_BYTES: usize = 1024;
/// Maximum number of runs of blocks in an answer; blocks beyond them are sent again.
pub const MAX_RUNS: usize = 2048;

/// Permission bits of offered files and links.
pub(crate) const FILE_BITS: u16 = 0o777;
/// Permission bits of offered folders.
pub(crate) const FOLDER_BITS: u16 = 0o1777;

/// First bytes of the first message in each direction, before the version.
const MAGIC: [u8; 4] = *b"ANBT";

/// A run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Index of the first block.
    pub first: u64,
    /// Number of blocks, never 0.
    pub count: u64,
}

/// Request of the side that connects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// The connecting side offers files.
    Push {
        /// Identity of the offering side.
        sender: SenderId,
        /// Requests of the offering side to the receiver.
        sender_requests: SenderRequests,
    },
    /// The connecting side requests offers of files, with this window.
    Pull {
        /// Maximum number of blocks that are in flight or not stored yet.
        window_blocks: u32,
        /// Treatment of symbolic links.
        links: Links,
        /// Set to request a listing of each folder at the end, so that the requesting side can remove other entries of the folder.
        delete: bool,
    },
}

/// Treatment of an offered file if a different file has its name. A file with the same content is never changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnClash {
    /// Refuses the new file.
    #[default]
    Refuse,
    /// Stores the new file beside the old one, with a number added to its name.
    Rename,
    /// Replaces the old file atomically when the new one is complete.
    Overwrite,
}

/// Requests of a sender to a receiver, whose own rules decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRequests {
    /// Treatment of a file whose name is in use.
    pub on_clash: OnClash,
    /// Set to compare the content of every file of the same size, regardless of the record of stored files.
    pub checksum: bool,
    /// Set to report the names that would be stored, and to store nothing.
    pub dry_run: bool,
    /// Set to remove at the end all entries of the sent folders that the sender does not have.
    pub delete: bool,
}

/// Treatment of symbolic links at the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Links {
    /// Offers links as links if they lead to something in the transferred folder, and excludes others.
    #[default]
    Copy,
    /// Offers the targets of links.
    Follow,
    /// Excludes links.
    Skip,
}

/// Reply of the side that accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Terms {
    /// The accepting side accepts offers of files, with this window.
    Take {
        /// Maximum number of blocks that are in flight or not stored yet.
        window_blocks: u32,
    },
    /// To offer files.
    Give {
        /// Identity of the offering side.
        sender: SenderId,
    },
    /// The accepting side refuses, and a message with the reason follows. A peer of another version learns this side's version from
    /// the reply.
    Refuse,
}

/// Time stamp of a file: seconds and nanoseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTime {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds to add, below 1,000,000,000.
    pub nanos: u32,
}

/// Kind of an offer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A file.
    File {
        /// Size in bytes.
        size_bytes: u64,
        /// Hash of the first block of a file with several blocks, which reveals that the file was changed in place.
        first: Option<Hash>,
    },
    /// Content of a pipe, whose size is known at its end.
    Stream {
        /// Random token of the stream, which is unchanged when the transfer resumes over another association.
        token: [u8; 16],
    },
    /// A symbolic link in a folder.
    Link {
        /// Target of the link: relative, and in the folder at the top of its name.
        #[serde(with = "text::raw")]
        target: PeerText,
    },
    /// A folder, before its content.
    Folder,
    /// End of a folder, after its content, with the time and permissions to set.
    FolderEnd,
}

/// Offer of a file, a stream, a link or a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Number of the offer, counted from 0 in the order of offers.
    pub id: u32,
    /// Name to store the entry under. [`Name`](crate::Name) defines the accepted names.
    #[serde(with = "text::raw")]
    pub name: PeerText,
    /// Kind of the offer.
    pub kind: Kind,
    /// Time of the last change of the entry's content.
    pub changed: FileTime,
    /// Permission bits: the lower nine, and for a folder the sticky bit.
    pub mode: u16,
}

/// Names in a folder at the source, sent when every offer is done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// Name of the folder. It or a folder that contains it was offered on this association.
    #[serde(with = "text::raw")]
    pub folder: PeerText,
    /// Names of the entries, without the name of the folder, in byte order across all listings of the folder.
    #[serde(with = "text::raw_list")]
    pub names: Vec<PeerText>,
    /// Set if the listings of the folder are complete with this one. Only then does the receiver remove entries.
    pub is_complete: bool,
}

/// Answer to an offered file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Requests the file, except for these blocks, which the receiver has.
    Take {
        /// In order, with gaps between them.
        have: Vec<Run>,
    },
    /// Requests only the root of the file's hashes, because the receiver has a file of this name and size.
    Compare,
}

/// Result for an offered file, link or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The entry is stored, complete and verified.
    Stored {
        /// Name of the stored entry, if it differs from the offered one.
        #[serde(with = "text::raw_option")]
        renamed: Option<PeerText>,
    },
    /// The receiver had the entry already.
    Identical,
    /// The entry was not stored.
    Failed(Failure),
    /// The entry would be stored. A dry run changes nothing.
    Planned,
}

/// Reason why an entry was not transferred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{text}")]
pub struct Failure {
    /// The kind of failure, for programs.
    pub reason: Reason,
    /// Text for people: the file, the error, and a remedy.
    #[serde(with = "text::raw")]
    pub text: PeerText,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// The name is in use by a different file.
    Clash,
    /// Another sender is transferring the same file.
    Busy,
    /// The name is refused.
    BadName,
    /// No permission, or a read-only file system.
    Permission,
    /// The disk or the quota is full, or a limit on file sizes is reached.
    NoSpace,
    /// The file does not exist, or its kind is not transferred.
    NotThere,
    /// The file was changed while it was sent.
    Changed,
    /// The received content differs from the sent content.
    Corrupt,
    /// This side does not accept or does not offer files.
    NotAllowed,
    /// The system refused for another reason.
    System,
    /// The peer violated the protocol.
    Protocol,
    /// The entry is a symbolic link that is not transferred.
    Link,
    /// The system temporarily has too few descriptors or too little memory for the entry.
    Resources,
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// First message, from the side that connects.
    Hello {
        /// Random number that all associations of a transfer share, so that a later association replaces an earlier one.
        session: [u8; 16],
        /// Request of this side.
        intent: Intent,
    },
    /// Reply to the first message.
    Welcome {
        /// Terms of the side that accepts.
        terms: Terms,
    },
    /// Refusal of the request, and the end of a transfer that either side cannot continue.
    Fail(Failure),
    /// From a side that pulls, before the names: a rule that excludes names. From a source, before its first listing: a rule by
    /// which it excludes names, so that matching entries stay at the receiver.
    Rule(Rule),
    /// From a side that pulls: a name to offer. An empty name requests all files.
    Want(String),
    /// From a side that pulls: the list of wanted names is complete.
    WantEnd,
    /// From a side that offers: a file, a stream, a link or a folder.
    Offer(Offer),
    /// An entry that was requested or found and is not offered.
    Passed {
        /// Name of the entry.
        #[serde(with = "text::raw")]
        name: PeerText,
        /// Reason why the entry is not offered.
        failure: Failure,
    },
    /// Names in a folder. The source offers no entry after the first listing.
    Listing(Listing),
    /// The receiver has removed an entry that is not at the source, would remove it in a dry run, or failed to remove it.
    Deleted {
        /// Name of the entry.
        #[serde(with = "text::raw")]
        name: PeerText,
        /// Reason why the entry could not be removed.
        failure: Option<Failure>,
    },
    /// The receiver has processed a folder whose listing is complete. Folders are reported in the order of their listings.
    Compared,
    /// Answer of the receiver to an offer that is not done immediately.
    Answer {
        /// Number of the offer.
        id: u32,
        /// Content that the receiver needs.
        answer: Answer,
    },
    /// Every block of a file was sent.
    End {
        /// Number of the offer.
        id: u32,
        /// Size of the file, in bytes.
        size_bytes: u64,
        /// Root over the hashes of all blocks in order, including those that the receiver had.
        root: Hash,
    },
    /// The source abandons a file.
    GiveUp {
        /// Number of the offer.
        id: u32,
        /// Reason why the source abandons the file.
        failure: Failure,
        /// Set if the source offers the file again.
        again: bool,
    },
    /// The receiver has stored a block, or has found it corrupt and requests it again.
    Block {
        /// Number of the offer.
        id: u32,
        /// Index of the block.
        index: u64,
        /// Set if the block is stored.
        good: bool,
    },
    /// An offer is done.
    Done {
        /// Number of the offer.
        id: u32,
        /// Result of the offer.
        outcome: Outcome,
    },
    /// The source has no further offers, and every offer is done.
    Finished,
    /// Keep-alive, sent every few seconds.
    Alive,
    /// Size of the whole transfer, which the source sends once on each association after counting its files. The size is only
    /// displayed, so the source may offer more or less if its files change.
    Total {
        /// Number of files.
        files: u64,
        /// User bytes of the files; `None` if one of them comes through a pipe.
        bytes: Option<u64>,
    },
}

/// Violation of the protocol by a peer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ProtocolError {
    /// The peer uses a different protocol.
    #[error("the peer does not speak the transfer protocol; check host and port")]
    Stranger,
    /// The peer uses another version of the protocol.
    #[error(
        "the peer speaks version {0} of the transfer protocol and this program version {PROTOCOL_VERSION}; \
         install the same version on both sides"
    )]
    Version(u16),
    /// A message that is too long, too short, or malformed.
    #[error("the peer sent a message that cannot be read; install the same version on both sides")]
    Garbled,
    /// A message that is not allowed at this point.
    #[error("the peer broke the transfer protocol ({0}); install the same version on both sides")]
    Unexpected(&'static str),
}

impl Message {
    /// Returns `true` if the message begins with the version.
    fn is_first(&self) -> bool {
        matches!(self, Message::Hello { .. } | Message::Welcome { .. })
    }

    /// Encodes the message. The first messages contain the version, in a form that every version can read.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.is_first() {
            bytes.extend_from_slice(&MAGIC);
            bytes.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
        }
        postcard::to_extend(self, bytes).expect("a vector takes everything and all lengths are known")
    }

    /// Decodes any message except for the first of a side.
    ///
    /// # Errors
    /// Returns [`ProtocolError::Garbled`] for anything that [`encode`](Self::encode) would not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        if bytes.len() > MAX_CONTROL_BYTES {
            return Err(ProtocolError::Garbled);
        }
        let (message, rest) =
            postcard::take_from_bytes::<Message>(bytes).map_err(|_| ProtocolError::Garbled)?;
        if rest.is_empty() && message.is_within_bounds() { Ok(message) } else { Err(ProtocolError::Garbled) }
    }

    /// Decodes the first message of a side.
    ///
    /// # Errors
    /// Returns [`ProtocolError::Stranger`], [`ProtocolError::Version`] and the errors of [`decode`](Self::decode).
    pub fn decode_first(bytes: &[u8]) -> Result<Self, ProtocolError> {
        let (magic, rest) = bytes.split_first_chunk::<4>().ok_or(ProtocolError::Stranger)?;
        if *magic != MAGIC {
            return Err(ProtocolError::Stranger);
        }
        let (version, rest) = rest.split_first_chunk::<2>().ok_or(ProtocolError::Stranger)?;
        match u16::from_be_bytes(*version) {
            PROTOCOL_VERSION => Message::decode(rest),
            other => Err(ProtocolError::Version(other)),
        }
    }

    fn is_within_bounds(&self) -> bool {
        let text = |failure: &Failure| failure.text.len() <= MAX_TEXT_BYTES;
        match self {
            Message::Fail(failure) | Message::GiveUp { failure, .. } => text(failure),
            Message::Passed { name, failure } => name.len() <= MAX_NAME_BYTES && text(failure),
            Message::Want(name) => name.len() <= MAX_NAME_BYTES,
            Message::Rule(rule) => rule.pattern.len() <= MAX_PATTERN_BYTES,
            Message::Offer(offer) => {
                offer.name.len() <= MAX_NAME_BYTES
                    && offer.changed.nanos < 1_000_000_000
                    && offer.mode & !mode_bits(&offer.kind) == 0
                    && is_target_within_bounds(&offer.kind)
            }
            Message::Listing(listing) => {
                let is_part =
                    |name: &PeerText| (1..=MAX_PART_BYTES).contains(&name.len()) && !name.raw().contains('/');
                listing.folder.len() <= MAX_NAME_BYTES && listing.names.iter().all(is_part)
            }
            Message::Deleted { name, failure } => {
                name.len() <= MAX_NAME_BYTES && failure.as_ref().is_none_or(text)
            }
            Message::Answer { answer: Answer::Take { have }, .. } => are_runs(have),
            Message::Done { outcome: Outcome::Failed(failure), .. } => text(failure),
            Message::Done { outcome: Outcome::Stored { renamed: Some(name) }, .. } => {
                name.len() <= MAX_NAME_BYTES
            }
            _ => true,
        }
    }
}

/// Returns the permission bits that an offer of this kind may have.
fn mode_bits(kind: &Kind) -> u16 {
    match kind {
        Kind::Folder | Kind::FolderEnd => FOLDER_BITS,
        Kind::File { .. } | Kind::Stream { .. } | Kind::Link { .. } => FILE_BITS,
    }
}

fn is_target_within_bounds(kind: &Kind) -> bool {
    match kind {
        Kind::Link { target } => target.len() <= MAX_NAME_BYTES,
        Kind::File { .. } | Kind::Stream { .. } | Kind::Folder | Kind::FolderEnd => true,
    }
}

/// Returns `true` if runs are in order, with gaps between them and within the range of indices.
fn are_runs(runs: &[Run]) -> bool {
    let mut next = Some(0);
    runs.len() <= MAX_RUNS
        && runs.iter().enumerate().all(|(at, run)| {
            let apart = next.is_some_and(|next| if at == 0 { run.first >= next } else { run.first > next });
            next = run.first.checked_add(run.count);
            apart && run.count > 0 && next.is_some()
        })
}

impl Failure {
    /// Creates a failure, and truncates a text that is too long.
    pub fn new(reason: Reason, text: impl Into<String>) -> Self {
        let mut text = text.into();
        let mut end = MAX_TEXT_BYTES;
        while !text.is_char_boundary(end.min(text.len())) {
            end -= 1;
        }
        text.truncate(end);
        Failure { reason, text: text.into() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn offer(name: &str) -> Message {
        let kind = Kind::File { size_bytes: 5, first: Some(Hash::of(b"x")) };
        Message::Offer(Offer {
            id: 7,
            name: name.into(),
            kind,
            changed: FileTime { seconds: -1, nanos: 999_999_999 },
            mode: 0o640,
        })
    }

    fn link(target: &str) -> Message {
        let changed = FileTime { seconds: 0, nanos: 0 };
        let kind = Kind::Link { target: target.into() };
        Message::Offer(Offer { id: 7, name: "d/link".into(), kind, changed, mode: 0o777 })
    }

    fn listing(folder: &str, names: &[&str]) -> Message {
        let names = names.iter().map(|name| (*name).into()).collect();
        Message::Listing(Listing { folder: folder.into(), names, is_complete: true })
    }

    #[test]
    fn written_message_is_read_unchanged() {
        let runs = vec![Run { first: 0, count: 2 }, Run { first: 3, count: u64::MAX - 3 }];
        for message in [
            offer("a/b"),
            link("../b"),
            Message::Answer { id: u32::MAX, answer: Answer::Take { have: runs } },
            Message::End { id: 0, size_bytes: u64::MAX, root: Hash::of(b"") },
            Message::Done { id: 1, outcome: Outcome::Stored { renamed: Some("b.1".into()) } },
            Message::Fail(Failure::new(Reason::NoSpace, "é".repeat(1000))),
            listing("a/b", &["x", "y"]),
            Message::Deleted { name: "a/b".into(), failure: Some(Failure::new(Reason::Permission, "no")) },
            Message::Compared,
            Message::Alive,
            Message::Total { files: u64::MAX, bytes: Some(u64::MAX) },
            Message::Total { files: 0, bytes: None },
        ] {
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
        let sender = SenderId::from_bytes([3; 16]);
        let sender_requests =
            SenderRequests { on_clash: OnClash::Rename, checksum: true, dry_run: false, delete: true };
        for first in [
            Message::Hello {
                session: [9; 16],
                intent: Intent::Pull { window_blocks: 4, links: Links::Follow, delete: true },
            },
            Message::Hello { session: [9; 16], intent: Intent::Push { sender, sender_requests } },
            Message::Welcome { terms: Terms::Give { sender } },
        ] {
            assert_eq!(Message::decode_first(&first.encode()), Ok(first));
        }
    }

    #[test]
    fn the_fuzz_target_begins_with_messages_of_this_version() {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/transfer_messages");
        let mut messages = 0;
        for seed in std::fs::read_dir(seeds).expect("a folder") {
            let path = seed.expect("an entry").path();
            let bytes = std::fs::read(&path).expect("a file");
            if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment")) {
                let read = Message::decode(&bytes).or_else(|_| Message::decode_first(&bytes));
                assert!(read.is_ok_and(|read| read.encode() == bytes), "{}", path.display());
                messages += 1;
            }
        }
        assert!(messages > 8, "{messages}");
    }

    #[test]
    fn other_version_and_other_protocol_are_distinguished() {
        let mut bytes = Message::Welcome { terms: Terms::Take { window_blocks: 1 } }.encode();
        bytes[5] = 9;
        assert_eq!(Message::decode_first(&bytes), Err(ProtocolError::Version(9)));
        assert!(ProtocolError::Version(9).to_string().contains("version 9"));
        assert_eq!(Message::decode_first(b"GET / HTTP/1.1"), Err(ProtocolError::Stranger));
        assert_eq!(Message::decode_first(b"ANBT\0"), Err(ProtocolError::Stranger));
    }

    #[test]
    fn message_beyond_a_bound_or_with_a_tail_is_garbled() {
        let have = |runs: &[(u64, u64)]| Message::Answer {
            id: 0,
            answer: Answer::Take { have: runs.iter().map(|&(first, count)| Run { first, count }).collect() },
        };
        let long_text = Failure { reason: Reason::System, text: "a".repeat(MAX_TEXT_BYTES + 1).into() };
        let mut longer = Message::Alive.encode();
        longer.push(0);
        for bytes in [
            offer(&"a".repeat(MAX_NAME_BYTES + 1)).encode(),
            link(&"a".repeat(MAX_NAME_BYTES + 1)).encode(),
            Message::Rule(Rule { includes: true, pattern: "a".repeat(MAX_PATTERN_BYTES + 1) }).encode(),
            have(&[(0, 0)]).encode(),
            have(&[(0, 2), (2, 1)]).encode(),
            have(&[(5, 2), (1, 1)]).encode(),
            have(&[(u64::MAX, 1)]).encode(),
            listing(&"a".repeat(MAX_NAME_BYTES + 1), &[]).encode(),
            listing("a", &[""]).encode(),
            listing("a", &["b/c"]).encode(),
            listing("a", &[&"b".repeat(MAX_PART_BYTES + 1)]).encode(),
            Message::Deleted { name: "a".repeat(MAX_NAME_BYTES + 1).into(), failure: None }.encode(),
            Message::Deleted { name: "a".into(), failure: Some(long_text) }.encode(),
            longer,
            vec![0; MAX_CONTROL_BYTES + 1],
            Vec::new(),
        ] {
            assert_eq!(Message::decode(&bytes), Err(ProtocolError::Garbled));
        }
    }

    proptest! {
        #[test]
        fn every_read_value_can_be_written_and_read_again(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert!(message.is_first() || Message::decode(&message.encode()) == Ok(message));
            }
        }
    }
}
