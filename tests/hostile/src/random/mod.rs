//! A peer that says anything in any order, and what must hold whatever it says.
//!
//! [`run`] goes in rounds. In each, a few associations at a time meet a fresh [`Inbox`](crate::Inbox) in one of the roles of
//! [`Role`]. What the peer says is mostly what could come next, with values from the [`dictionary`](crate::dictionary), so that
//! it gets far; now and then it is anything at all. After each round:
//!
//! * nothing outside of the inbox has changed, and what was in it has not, unless it is to be overwritten, or is in a folder from
//!   which things may be removed;
//! * every link that is new there leads to something in the folder that it came with, through whatever other links;
//! * every file that is new there is one whose size and root the peer has sent in an `End` for that name, and every file
//!   that was reported as stored is there;
//! * no content from outside of the folder was offered or sent;
//! * whatever served or spoke to the peer has come to its end.
//!
//! Panics, memory and descriptors are those of the process: who calls [`run`] asks [`resources`](crate::resources) for them.

mod actor;
mod arbitrary;
mod claims;
mod receiver;
mod rounds;
mod source;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_transfer::OnClash;

/// Messages of a round, at least. A round of a pipe has fewer: it takes one file only.
const ROUND_MESSAGES: u64 = 1500;
const PIPE_ROUND_MESSAGES: u64 = 150;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Every choice of the peer follows from it. What is heard when does not: it depends on the machine.
    pub seed: u64,
    /// How many messages the peer is to send.
    pub messages: u64,
}

/// What meets the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A server on a folder, which receives and offers.
    Server(OnClash),
    /// A server on a folder that leaves clashes to whoever sends.
    ServerThatAsks,
    /// A server that receives into a pipe.
    ServerWithPipe,
    /// A server that lets senders remove things.
    ServerThatDeletes,
    /// A client that sends.
    Push,
    /// A client that fetches into a folder.
    Pull,
    /// A client that fetches and removes what the peer says that it does not have.
    PullThatDeletes,
    /// A client that fetches into a pipe.
    PullToPipe,
}

impl Role {
    /// All of them, in the order of the rounds.
    const ALL: [Role; 11] = [
        Role::Server(OnClash::Refuse),
        Role::Push,
        Role::Pull,
        Role::Server(OnClash::Rename),
        Role::PullToPipe,
        Role::Server(OnClash::Overwrite),
        Role::ServerWithPipe,
        Role::ServerThatAsks,
        Role::Push,
        Role::ServerThatDeletes,
        Role::PullThatDeletes,
    ];

    /// Whether the peer has things removed.
    fn deletes(self) -> bool {
        matches!(self, Role::ServerThatDeletes | Role::PullThatDeletes)
    }

    fn messages(self) -> u64 {
        match self {
            Role::ServerWithPipe | Role::PullToPipe => PIPE_ROUND_MESSAGES,
            Role::Server(_) | Role::ServerThatAsks | Role::ServerThatDeletes => ROUND_MESSAGES,
            Role::Push | Role::Pull | Role::PullThatDeletes => ROUND_MESSAGES,
        }
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Messages that the peer sent.
    pub messages: u64,
    /// Associations.
    pub associations: u64,
    /// Rounds.
    pub rounds: u64,
    /// Files that were reported as stored, and are what their hashes said.
    pub stored_files: u64,
    /// Segments that the peer was sent.
    pub heard_segments: u64,
    /// Files and folders of which the peer heard that they were removed.
    pub heard_deletions: u64,
}

/// Something that must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Repeats the round with `messages: 1`.
    pub seed: u64,
    /// What met the peer.
    pub role: Role,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { seed, role, what } = self;
        write!(f, "seed {seed}, {role:?}: {what}")
    }
}

impl std::error::Error for Violation {}

/// Counters that the associations of all rounds share.
#[derive(Debug, Default)]
struct Counts {
    messages: AtomicU64,
    associations: AtomicU64,
    stored_files: AtomicU64,
    heard_segments: AtomicU64,
    heard_deletions: AtomicU64,
}

/// Runs rounds until so many messages were sent. To be called in a tokio runtime. The first round has the seed given and the
/// role that belongs to it, so that one that failed can be repeated alone.
///
/// # Errors
/// The first thing that must not be.
pub async fn run(options: Options) -> Result<Figures, Violation> {
    let counts = Arc::new(Counts::default());
    let mut rounds = 0;
    while counts.messages.load(Ordering::Relaxed) < options.messages {
        let seed = options.seed.wrapping_add(rounds);
        let role = Role::ALL[usize::try_from(seed % Role::ALL.len() as u64).unwrap_or(0)];
        let left = options.messages - counts.messages.load(Ordering::Relaxed);
        let most = role.messages().min(left.max(100));
        let failed = |what| Violation { seed, role, what };
        rounds::round(role, seed, most, &counts).await.map_err(failed)?;
        rounds += 1;
    }
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    Ok(Figures {
        messages: get(&counts.messages),
        associations: get(&counts.associations),
        rounds,
        stored_files: get(&counts.stored_files),
        heard_segments: get(&counts.heard_segments),
        heard_deletions: get(&counts.heard_deletions),
    })
}
