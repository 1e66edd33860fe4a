//! Events that every policy slot receives.

use crate::path_id::{PathId, PathState};
use crate::policy::Reason;
use crate::policy::delivery::{DeliverySample, SendStamps};
use crate::time::{Span, Time};
use crate::units::ChunkBytes;

/// What opened a send opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpportunityCause {
    /// A SACK.
    Sack,
    /// A T3 expiry on a path.
    Timeout(PathId),
    /// A HEARTBEAT-ACK that brought a path into service.
    PathRestored(PathId),
    /// The application queued data, or the association came up.
    Application,
    /// A policy's own deadline.
    Policy,
    /// The time of paced paths has come: the opportunity before goes on. Told to the scheduler alone, so that a packet costs no
    /// round of all slots.
    Pacing,
}

/// What kind of transmission left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendKind {
    /// A chunk's first transmission.
    New,
    /// A lost chunk again.
    Retransmission,
    /// A further copy of a chunk that the scheduler sends on several paths at once.
    Copy,
    /// A further copy of the head of line while it is still in flight elsewhere ([`HeadOfLineAction::Copy`](crate::policy::HeadOfLineAction)).
    HeadOfLine,
    /// The latest chunk of a path again, to draw out an acknowledgement.
    TailProbe,
    /// A chunk beyond the peer's window with nothing else outstanding.
    WindowProbe,
}

/// A transmission that left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentTransmission {
    /// The path it left on.
    pub path: PathId,
    /// The path of the chunk's transmission before it, if there was one.
    pub previous_path: Option<PathId>,
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Chunk bytes.
    pub bytes: ChunkBytes,
    /// What kind.
    pub kind: SendKind,
}

/// A transmission that an acknowledgement credits. Of several copies of a chunk in flight it is the one on the path that the
/// SACK came in on, since the receiver answers on the path of the latest DATA; if there is none, the latest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckedTransmission {
    /// The path it was sent on.
    pub path: PathId,
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Chunk bytes.
    pub bytes: ChunkBytes,
    /// What it carried since it was sent.
    pub stamps: SendStamps,
    /// Whether the chunk was sent only once, so that the ack is unambiguous.
    pub sent_once: bool,
    /// Unambiguous arrival: the chunk was sent once, or the peer reports this copy as a duplicate.
    pub certain: bool,
    /// Whether the cumulative part of the SACK covered it.
    pub cumulative: bool,
    /// The path that the SACK came in on, if it is one: the time between them has the delay back on that path.
    pub sack_path: Option<PathId>,
}

impl AckedTransmission {
    /// Whether the SACK came in on the path that the chunk went out on: only then is the time between them the path's own.
    pub fn came_back_the_same_way(&self) -> bool {
        self.sack_path == Some(self.path)
    }
}

/// What one SACK acknowledged on one path.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PathAck {
    /// Bytes newly acked by the cumulative TSN.
    pub cumulative: ChunkBytes,
    /// Bytes newly acked by gap blocks.
    pub gap: ChunkBytes,
    /// Of those, the bytes at or after the point where the path's pseudo-cumulative TSN advanced in this SACK.
    pub gap_after_pseudo: ChunkBytes,
    /// Whether the path's pseudo-cumulative TSN (CUC version 2) advanced.
    pub new_pseudo_cumulative: bool,
    /// Bytes in flight before this SACK's acknowledgements were taken off, losses it revealed already taken off.
    pub in_flight_before: ChunkBytes,
    /// Outstanding when the SACK arrived, chunks lost and not yet sent again included.
    pub outstanding_at_start: ChunkBytes,
    /// Bytes in flight now.
    pub in_flight_after: ChunkBytes,
    /// How fast the path delivers, if this SACK tells.
    pub sample: Option<DeliverySample>,
}

impl PathAck {
    /// All bytes newly acked on the path.
    pub fn newly_acked(&self) -> ChunkBytes {
        self.cumulative + self.gap
    }
}

/// The result of one SACK.
#[derive(Clone, Copy, Debug)]
pub struct SackDone<'a> {
    /// Per path, indexed by path id.
    pub paths: &'a [PathAck],
    /// Whether the association's cumulative TSN advanced.
    pub new_cumulative: bool,
    /// The cumulative TSN after it, unwrapped.
    pub cumulative: u64,
}

/// Why a chunk or a path's window counts as having suffered a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Enough missing reports.
    FastRetransmit,
    /// T3 expired.
    Timeout,
    /// It was not lost: a policy took it off its path because it held the receive buffer up ([`HeadOfLineAction::Move`](crate::policy::HeadOfLineAction)).
    Rescheduled,
}

/// What showed that a path works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofOfLife {
    /// An ack for a chunk that was sent once: it can only have travelled on this path.
    Unambiguous,
    /// An ack for a chunk that was sent more than once.
    Ambiguous,
    /// A HEARTBEAT-ACK.
    Heartbeat,
}

/// What changed a path's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateCause {
    /// T3 or a HEARTBEAT went unanswered.
    Errors(Reason),
    /// The path answered.
    Proof(ProofOfLife),
    /// No path was left, and the failover policy put this one into service.
    Promoted(Reason),
}

/// The stream of events that every slot receives.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A path was added; its first window is to be set.
    PathAdded(PathId),
    /// A path was removed.
    PathRemoved(PathId),
    /// A path changed its UDP port or address.
    PathRebound(PathId),
    /// A path changed state.
    PathState {
        /// Which.
        path: PathId,
        /// From.
        from: PathState,
        /// To.
        to: PathState,
        /// Why.
        cause: StateCause,
    },
    /// The peer's first advertised window is known and the association is up.
    Established,
    /// A send opportunity begins.
    SendOpportunity(OpportunityCause),
    /// A chunk was cut from the queue, has its TSN, and waits for a place in this path's window.
    Bound {
        /// The path.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Chunk bytes.
        bytes: ChunkBytes,
    },
    /// A chunk that was bound to a path and not sent is without a path again.
    Unbound {
        /// The path it was bound to.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Chunk bytes.
        bytes: ChunkBytes,
    },
    /// A transmission left.
    Sent(&'a SentTransmission),
    /// A transmission was acknowledged.
    Acked(&'a AckedTransmission),
    /// A SACK has been processed.
    SackDone(&'a SackDone<'a>),
    /// A round-trip time was measured.
    RttSample {
        /// On this path.
        path: PathId,
        /// The sample.
        rtt: Span,
        /// Whether a HEARTBEAT gave it.
        heartbeat: bool,
    },
    /// A chunk was declared lost.
    Lost {
        /// The path of its latest transmission.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Chunk bytes.
        bytes: ChunkBytes,
        /// When its latest transmission left.
        sent_at: Time,
        /// By what.
        cause: LossCause,
    },
    /// A chunk that had left was given up with its message (RFC 3758): it is in flight no more, and neither acknowledged nor
    /// retransmitted. One that had not left is [`Unbound`](Self::Unbound).
    Abandoned {
        /// The path of its latest transmission.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Chunk bytes.
        bytes: ChunkBytes,
    },
    /// A path has suffered a loss that its window answers: at most once per window for fast retransmit, and at every T3.
    LossEvent {
        /// Which path.
        path: PathId,
        /// By what.
        cause: LossCause,
    },
    /// A loss turned out not to have been one: the receiver reported a copy as duplicate.
    Spurious {
        /// The path of the needless copy.
        path: PathId,
        /// The path of the transmission before it, which was taken for lost and was not.
        misjudged: PathId,
        /// Unwrapped TSN.
        tsn: u64,
    },
    /// New data could not leave although some was queued and a window was open.
    Blocked {
        /// The path whose hole holds the cumulative TSN back, if one does.
        hole: Option<PathId>,
    },
    /// A path has sent nothing for one RTO; again after each further one, 32 times in a row at most.
    Idle(PathId),
    /// A slot's deadline has come.
    Deadline,
}
