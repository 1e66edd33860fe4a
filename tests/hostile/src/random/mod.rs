//! A peer that sends any message in any order, and the invariants against it.
//!
//! [`run`] consists of rounds. In each, a few associations at a time use a fresh [`Inbox`](crate::Inbox) in one of the roles of
//! [`Role`]. Most messages of the peer are possible at their point, with values from the [`dictionary`](crate::dictionary), so that
//! it proceeds far; some are arbitrary. After each round:
//!
//! * nothing outside of the inbox has changed, and neither have its initial files, unless they may be overwritten or are in a
//!   folder whose files may be removed;
//! * every new link leads to an entry of the folder that it came with, through any other links;
//! * every new file has a size and a root that the peer has sent in an `End` for that name, and every file that was
//!   reported as stored exists;
//! * no content from outside of the folder was offered or sent;
//! * all tasks that served the peer or connected to it have ended.
//!
//! Panics, memory and descriptors are those of the process: the caller of [`run`] reads them from [`resources`](crate::resources).

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

/// Minimum number of messages of a round. A round of a pipe has fewer, since it accepts only one file.
const ROUND_MESSAGES: u64 = 1500;
const PIPE_ROUND_MESSAGES: u64 = 150;

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seed of every choice of the peer. The times of received messages do not follow from it, since they depend on the machine.
    pub seed: u64,
    /// Number of messages that the peer sends.
    pub messages: u64,
}

/// Counterpart of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A server on a folder, which receives and offers.
    Server(OnClash),
    /// A server on a folder that leaves the handling of clashes to senders.
    ServerThatAsks,
    /// A server that receives into a pipe.
    ServerWithPipe,
    /// A server that lets senders remove entries.
    ServerThatDeletes,
    /// A client that sends.
    Push,
    /// A client that fetches into a folder.
    Pull,
    /// A client that fetches and removes entries that the peer reports as missing.
    PullThatDeletes,
    /// A client that fetches into a pipe.
    PullToPipe,
}

impl Role {
    /// All roles, in the order of the rounds.
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

    /// Returns `true` if the peer can remove entries.
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

/// Results of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Messages that the peer sent.
    pub messages: u64,
    /// Associations that the peer opened.
    pub associations: u64,
    /// Number of rounds.
    pub rounds: u64,
    /// Files that were reported as stored, with the content of their hashes.
    pub stored_files: u64,
    /// Segments that the peer received.
    pub heard_segments: u64,
    /// Files and folders whose removal was reported to the peer.
    pub heard_deletions: u64,
}

/// Violation of an invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Seed that repeats the round with `messages: 1`.
    pub seed: u64,
    /// Counterpart of the peer.
    pub role: Role,
    /// Description of the violation.
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

/// Runs rounds until this number of messages was sent. Call it in a tokio runtime. The first round has the given seed and its role,
/// so that a failed one can be repeated alone.
///
/// # Errors
/// Returns the first violation.
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
