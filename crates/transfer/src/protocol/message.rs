//! Control messages and their encoding.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::block::Hash;
use crate::filter::{MAX_PATTERN_BYTES, Rule};
use crate::identity::SenderId;
use crate::name::{MAX_NAME_BYTES, MAX_PART_BYTES};
use crate::text::{self, PeerText};

/// The version of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u16 = 5;

/// Most bytes of a control message. Nothing in it can be longer, so this bounds what a message can make us hold.
pub const MAX_CONTROL_BYTES: usize = 64 << 10;
/// Most bytes of a text that a message carries for people.
pub const MAX_TEXT_BYTES: usize = 1024;
/// Most runs of blocks in an answer; what is beyond them is sent again.
pub const MAX_RUNS: usize = 2048;

/// Permission bits that files and links are offered with.
pub(crate) const FILE_BITS: u16 = 0o777;
/// Permission bits that folders are offered with.
pub(crate) const FOLDER_BITS: u16 = 0o1777;

/// The first bytes of the first message in each direction, before the version.
const MAGIC: [u8; 4] = *b"ANBT";

/// A run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Index of the first block.
    pub first: u64,
    /// Number of blocks, never 0.
    pub count: u64,
}

/// What the side that connects asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Intent {
    /// To offer files.
    Push {
        /// The side that offers.
        sender: SenderId,
        /// What it asks of the receiver.
        wishes: Wishes,
    },
    /// To be offered files, and to take so many blocks at a time.
    Pull {
        /// Blocks that may be on their way or not be stored yet.
        window_blocks: u32,
        /// What to do with symbolic links.
        links: Links,
        /// To be told at the end what each folder holds, so that what else is in it here can be removed.
        delete: bool,
    },
}

/// What to do where there is another file of the same name. One with the same content is always left as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum OnClash {
    /// Refuse the new one.
    #[default]
    Refuse,
    /// Put the new one beside it, with a number behind its name.
    Rename,
    /// Replace the old one, at once, when the new one is complete.
    Overwrite,
}

/// What a sender asks of a receiver, whose own rules decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wishes {
    /// What to do where there is another file.
    pub on_clash: OnClash,
    /// To compare the content of every file of the same size, instead of believing what was recorded.
    pub checksum: bool,
    /// To say what would be stored, and to store nothing.
    pub dry_run: bool,
    /// To remove at the end what is in the folders that are sent and not in those of the sender.
    pub delete: bool,
}

/// What a source does with the symbolic links that it finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Links {
    /// Offers them as links if they lead to something in the folder that is transferred, and leaves others out.
    #[default]
    Copy,
    /// Offers what they lead to.
    Follow,
    /// Leaves them out.
    Skip,
}

/// What the side that accepts agrees to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Terms {
    /// To be offered files, and to take so many blocks at a time.
    Take {
        /// Blocks that may be on their way or not be stored yet.
        window_blocks: u32,
    },
    /// To offer files.
    Give {
        /// The side that offers.
        sender: SenderId,
    },
    /// Nothing: the reason follows. It lets a peer of another version see which one this is.
    Refuse,
}

/// A time stamp of a file: seconds and nanoseconds since 1970, UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTime {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds after them, below 1,000,000,000.
    pub nanos: u32,
}

/// What is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A file.
    File {
        /// Its size.
        size_bytes: u64,
        /// The hash of its first block, if it has more than one: a file that was changed in place shows by it.
        first: Option<Hash>,
    },
    /// What comes through a pipe: its size is known at the end.
    Stream {
        /// Drawn at random, and the same when it goes on over another association.
        token: [u8; 16],
    },
    /// A symbolic link in a folder.
    Link {
        /// Where it leads: relative, and to something in the folder at the top of its name.
        #[serde(with = "text::raw")]
        target: PeerText,
    },
    /// A folder, before what is in it.
    Folder,
    /// The same folder after what is in it: now it gets its time and permissions.
    FolderEnd,
}

/// Something that is offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Numbered from 0 in the order of offers.
    pub id: u32,
    /// Where to put it; see [`Name`](crate::Name) for what is taken.
    #[serde(with = "text::raw")]
    pub name: PeerText,
    /// A file, a stream or a folder.
    pub kind: Kind,
    /// When its content was changed last.
    pub changed: FileTime,
    /// Permission bits: the lower nine, and for a folder the sticky bit.
    pub mode: u16,
}

/// What a folder holds at the source, said when everything is done that was offered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listing {
    /// The folder, which was offered on this association or is in one that was.
    #[serde(with = "text::raw")]
    pub folder: PeerText,
    /// Names in it without the folder's, in the order of their bytes, also over all listings of that folder.
    #[serde(with = "text::raw_list")]
    pub names: Vec<PeerText>,
    /// Whether these, with those said before, are all that the folder holds. Only then is anything removed from it.
    pub is_complete: bool,
}

/// What becomes of an offered file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// Send it, except for these blocks, which are here.
    Take {
        /// In order, with gaps between them.
        have: Vec<Run>,
    },
    /// Send the root of its hashes only: there is a file of this name and size.
    Compare,
}

/// The result for an offered file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It is there, complete and verified.
    Stored {
        /// Under this name, if it is not the one that was offered.
        #[serde(with = "text::raw_option")]
        renamed: Option<PeerText>,
    },
    /// The receiver had it already.
    Identical,
    /// It was not stored.
    Failed(Failure),
    /// It would be stored, and nothing was done: that is all that is asked.
    Planned,
}

/// Why something was not transferred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Error)]
#[error("{text}")]
pub struct Failure {
    /// The kind of failure, for programs.
    pub reason: Reason,
    /// For people: what is wrong with which file, and what to do.
    #[serde(with = "text::raw")]
    pub text: PeerText,
}

/// Kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reason {
    /// There is another file of that name.
    Clash,
    /// Somebody else is sending the same file.
    Busy,
    /// The name is not taken.
    BadName,
    /// No permission, or a read-only file system.
    Permission,
    /// The disk or the quota is full, or a limit on file sizes is reached.
    NoSpace,
    /// There is no such file, or it is of a kind that is not transferred.
    NotThere,
    /// The file was changed while it was sent.
    Changed,
    /// What arrived is not what was sent.
    Corrupt,
    /// This side does not take or does not offer files.
    NotAllowed,
    /// The system refused for another reason.
    System,
    /// The peer broke the protocol.
    Protocol,
    /// It is a symbolic link that is not transferred.
    Link,
    /// The system has too few descriptors or too little memory for it at the moment.
    Resources,
}

/// A control message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// First, from the side that connects.
    Hello {
        /// Drawn at random, and the same for all associations of a transfer: a later one takes an earlier one's place.
        session: [u8; 16],
        /// What this side asks for.
        intent: Intent,
    },
    /// The answer to it.
    Welcome {
        /// What the side that accepts agrees to.
        terms: Terms,
    },
    /// The other answer, and how either side ends a transfer that cannot go on.
    Fail(Failure),
    /// From a side that pulls, before the names: leave out what this says. From a source, before its first listing: it leaves this
    /// out, so what it fits stays at the receiver.
    Rule(Rule),
    /// From a side that pulls: offer this. An empty name is everything.
    Want(String),
    /// From a side that pulls: the list of wanted names is complete.
    WantEnd,
    /// From a side that offers: a file, a stream or a folder.
    Offer(Offer),
    /// What was wanted or found and is not offered.
    Passed {
        /// Its name.
        #[serde(with = "text::raw")]
        name: PeerText,
        /// Why it is not offered.
        failure: Failure,
    },
    /// What a folder holds. Nothing is offered after the first of them.
    Listing(Listing),
    /// The receiver has removed something that is not at the source, would remove it in a dry run, or could not.
    Deleted {
        /// Its name.
        #[serde(with = "text::raw")]
        name: PeerText,
        /// Why it is still there, where it should not be.
        failure: Option<Failure>,
    },
    /// The receiver is done with a folder whose listing is complete; in the order of those.
    Compared,
    /// The receiver's answer to an offer that is not done at once.
    Answer {
        /// The number of the offer.
        id: u32,
        /// What the receiver needs of it.
        answer: Answer,
    },
    /// Every block of a file was sent.
    End {
        /// The number of the offer.
        id: u32,
        /// Size of the file.
        size_bytes: u64,
        /// The root over the hashes of all blocks in order, those that the receiver had included.
        root: Hash,
    },
    /// The source gives a file up.
    GiveUp {
        /// The number of the offer.
        id: u32,
        /// Why the source gives it up.
        failure: Failure,
        /// Whether it is offered again.
        again: bool,
    },
    /// The receiver holds a block, or did not get it right and wants it again.
    Block {
        /// The number of the offer.
        id: u32,
        /// The index of the block.
        index: u64,
        /// Whether it is held.
        good: bool,
    },
    /// An offer is done.
    Done {
        /// The number of the offer.
        id: u32,
        /// Whether it was stored.
        outcome: Outcome,
    },
    /// Nothing more is offered, and every offer is done.
    Finished,
    /// Keep-alive, sent every few seconds.
    Alive,
    /// Size of the whole transfer, from the source: once on each association, when it has counted ahead of its offers. It is only
    /// shown, so a source that was changed meanwhile may offer more or less.
    Total {
        /// Number of files.
        files: u64,
        /// Their user bytes; `None` if one comes through a pipe.
        bytes: Option<u64>,
    },
}

/// What is wrong with what a peer sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ProtocolError {
    /// Not this protocol at all.
    #[error("the peer does not speak the transfer protocol; check host and port")]
    Stranger,
    /// Another version of it.
    #[error(
        "the peer speaks version {0} of the transfer protocol and this program version {PROTOCOL_VERSION}; \
         install the same version on both sides"
    )]
    Version(u16),
    /// A message that is too long, too short, or not one.
    #[error("the peer sent a message that cannot be read; install the same version on both sides")]
    Garbled,
    /// A message that has no place here.
    #[error("the peer broke the transfer protocol ({0}); install the same version on both sides")]
    Unexpected(&'static str),
}

impl Message {
    /// Whether it is one of those that begin with the version.
    fn is_first(&self) -> bool {
        matches!(self, Message::Hello { .. } | Message::Welcome { .. })
    }

    /// As bytes. The first messages say which version this is, in a form that every version can read.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.is_first() {
            bytes.extend_from_slice(&MAGIC);
            bytes.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
        }
        postcard::to_extend(self, bytes).expect("a vector takes everything and all lengths are known")
    }

    /// From bytes, wherever it is not the first.
    ///
    /// # Errors
    /// [`ProtocolError::Garbled`] for anything that [`encode`](Self::encode) would not write.
    pub fn decode(bytes: &[u8]) -> Result<Self, ProtocolError> {
        if bytes.len() > MAX_CONTROL_BYTES {
            return Err(ProtocolError::Garbled);
        }
        let (message, rest) =
            postcard::take_from_bytes::<Message>(bytes).map_err(|_| ProtocolError::Garbled)?;
        if rest.is_empty() && message.is_within_bounds() { Ok(message) } else { Err(ProtocolError::Garbled) }
    }

    /// The first message of a side.
    ///
    /// # Errors
    /// [`ProtocolError::Stranger`] and [`ProtocolError::Version`] besides those of [`decode`](Self::decode).
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

/// Permission bits that an offer of this kind may have.
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

/// Whether runs are in order, with gaps between them and nothing beyond what can be counted.
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
    /// A failure whose text is cut where it gets too long.
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
    fn what_is_written_is_read() {
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
        let wishes = Wishes { on_clash: OnClash::Rename, checksum: true, dry_run: false, delete: true };
        for first in [
            Message::Hello {
                session: [9; 16],
                intent: Intent::Pull { window_blocks: 4, links: Links::Follow, delete: true },
            },
            Message::Hello { session: [9; 16], intent: Intent::Push { sender, wishes } },
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
    fn another_version_and_another_protocol_are_told_apart() {
        let mut bytes = Message::Welcome { terms: Terms::Take { window_blocks: 1 } }.encode();
        bytes[5] = 9;
        assert_eq!(Message::decode_first(&bytes), Err(ProtocolError::Version(9)));
        assert!(ProtocolError::Version(9).to_string().contains("version 9"));
        assert_eq!(Message::decode_first(b"GET / HTTP/1.1"), Err(ProtocolError::Stranger));
        assert_eq!(Message::decode_first(b"ANBT\0"), Err(ProtocolError::Stranger));
    }

    #[test]
    fn what_exceeds_a_bound_or_has_something_behind_it_is_garbled() {
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
        fn whatever_is_read_can_be_written_and_read_again(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = Message::decode(&bytes) {
                prop_assert!(message.is_first() || Message::decode(&message.encode()) == Ok(message));
            }
        }
    }
}
