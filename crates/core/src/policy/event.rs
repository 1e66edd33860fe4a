//! Events for policies.

use crate::path_id::{PathId, PathState};
use crate::policy::Reason;
use crate::policy::delivery::{DeliverySample, SendStamps};
use crate::time::{Span, Time};
use crate::units::ChunkBytes;

/// Cause of a send opportunity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpportunityCause {
    /// Arrival of a SACK.
    Sack,
    /// Expiry of T3 on a path.
    Timeout(PathId),
    /// HEARTBEAT-ACK that brought a path into service.
    PathRestored(PathId),
    /// New data of the application, or establishment of the association.
    Application,
    /// Deadline of a policy.
    Policy,
    /// Pacing timer: the opportunity before continues. Only the scheduler receives this event, so that a packet does not cost a
    /// call of all slots.
    Pacing,
}

/// Kind of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendKind {
    /// First transmission of a chunk.
    New,
    /// Retransmission of a lost chunk.
    Retransmission,
    /// Further copy of a chunk that the scheduler sends on several paths at once.
    Copy,
    /// Copy of the head-of-line chunk while it is in flight on another path
    /// ([`HeadOfLineAction::Copy`](crate::policy::HeadOfLineAction)).
    HeadOfLine,
    /// Retransmission of the latest chunk of a path to elicit an acknowledgement.
    TailProbe,
    /// Chunk beyond the peer's window, without other outstanding chunks.
    WindowProbe,
}

/// Transmission that was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SentTransmission {
    /// Path of the transmission.
    pub path: PathId,
    /// Path of the chunk's previous transmission, if there was one.
    pub previous_path: Option<PathId>,
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Length of the chunk with its header.
    pub bytes: ChunkBytes,
    /// Kind of the transmission.
    pub kind: SendKind,
}

/// Transmission that an acknowledgement credits. If several copies of a chunk are in flight, it is the one on the path of the SACK,
/// because the receiver answers on the path of the latest DATA; without such a copy, it is the latest one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckedTransmission {
    /// Path of the transmission.
    pub path: PathId,
    /// Unwrapped TSN.
    pub tsn: u64,
    /// Length of the chunk with its header.
    pub bytes: ChunkBytes,
    /// Values recorded when the transmission was sent.
    pub stamps: SendStamps,
    /// `true` if the chunk was sent only once, so that the acknowledgement is unambiguous.
    pub sent_once: bool,
    /// `true` if the arrival of this transmission is certain: the chunk was sent once, or the peer reports this copy as a
    /// duplicate.
    pub certain: bool,
    /// `true` if the cumulative TSN of the SACK covered the chunk.
    pub cumulative: bool,
    /// Path on which the SACK arrived, if it is known. The time until then includes the delay back on that path.
    pub sack_path: Option<PathId>,
}

impl AckedTransmission {
    /// Returns `true` if the SACK arrived on the path of the chunk: only then is the time between them the RTT of the path.
    pub fn returned_on_same_path(&self) -> bool {
        self.sack_path == Some(self.path)
    }
}

/// Bytes that one SACK acknowledged on one path.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PathAck {
    /// Bytes newly acknowledged by the cumulative TSN.
    pub cumulative: ChunkBytes,
    /// Bytes newly acknowledged by gap blocks.
    pub gap: ChunkBytes,
    /// Part of `gap` at or after the TSN at which the path's pseudo-cumulative TSN advanced in this SACK.
    pub gap_after_pseudo: ChunkBytes,
    /// `true` if the path's pseudo-cumulative TSN (CUC version 2) advanced.
    pub new_pseudo_cumulative: bool,
    /// Bytes in flight after the losses of this SACK were subtracted, and before its acknowledgements were.
    pub in_flight_before: ChunkBytes,
    /// Bytes outstanding when the SACK arrived, including lost chunks that were not retransmitted yet.
    pub outstanding_at_start: ChunkBytes,
    /// Bytes in flight now.
    pub in_flight_after: ChunkBytes,
    /// Delivery-rate sample of this SACK, if it has one.
    pub sample: Option<DeliverySample>,
}

impl PathAck {
    /// Returns all bytes newly acknowledged on the path.
    pub fn newly_acked(&self) -> ChunkBytes {
        self.cumulative + self.gap
    }
}

/// Result of one SACK.
#[derive(Clone, Copy, Debug)]
pub struct SackDone<'a> {
    /// Acknowledged bytes, indexed by path id.
    pub paths: &'a [PathAck],
    /// `true` if the association's cumulative TSN advanced.
    pub new_cumulative: bool,
    /// Cumulative TSN after the SACK, unwrapped.
    pub cumulative: u64,
}

/// Cause of the loss of a chunk, or of a path's window cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Enough missing reports.
    FastRetransmit,
    /// Expiry of T3.
    Timeout,
    /// Move to another path by a policy, because the chunk blocked the receive buffer
    /// ([`HeadOfLineAction::Move`](crate::policy::HeadOfLineAction)).
    Rescheduled,
}

/// Proof that a path works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LivenessProof {
    /// Acknowledgement of a chunk that was sent once: it can only have used this path.
    Unambiguous,
    /// Acknowledgement of a chunk that was sent more than once.
    Ambiguous,
    /// HEARTBEAT-ACK.
    Heartbeat,
}

/// Cause of a change of a path's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StateCause {
    /// Unanswered T3 or HEARTBEAT.
    Errors(Reason),
    /// Answer on the path.
    Proof(LivenessProof),
    /// Promotion by the failover policy, because no path was in service.
    Promoted(Reason),
}

/// Event for the slots that [declare](crate::policy::Slot::events) to read its kind.
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
        /// Path that changed.
        path: PathId,
        /// State before.
        from: PathState,
        /// State after.
        to: PathState,
        /// Cause of the change.
        cause: StateCause,
    },
    /// The peer's first advertised window is known and the association is established.
    Established,
    /// A send opportunity starts.
    SendOpportunity(OpportunityCause),
    /// A chunk was cut from the queue, has its TSN, and waits for room in this path's window.
    Bound {
        /// Path to which the chunk is bound.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Length of the chunk with its header.
        bytes: ChunkBytes,
    },
    /// A chunk that was bound to a path and not sent lost its path.
    Unbound {
        /// Path to which the chunk was bound.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Length of the chunk with its header.
        bytes: ChunkBytes,
    },
    /// A chunk was transmitted.
    Sent(&'a SentTransmission),
    /// A transmission was acknowledged.
    Acked(&'a AckedTransmission),
    /// A SACK has been processed.
    SackDone(&'a SackDone<'a>),
    /// A round-trip time was measured.
    RttSample {
        /// Path of the sample.
        path: PathId,
        /// Measured round-trip time.
        rtt: Span,
        /// `true` if a HEARTBEAT measured the sample.
        heartbeat: bool,
    },
    /// A chunk was declared lost.
    Lost {
        /// Path of the latest transmission.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Length of the chunk with its header.
        bytes: ChunkBytes,
        /// Send time of the latest transmission.
        sent_at: Time,
        /// Cause of the loss.
        cause: LossCause,
    },
    /// A chunk that had been sent was abandoned with its message (RFC 3758): it is no longer in flight, and neither acknowledged
    /// nor retransmitted. For one that was never sent, [`Unbound`](Self::Unbound) is reported.
    Abandoned {
        /// Path of the latest transmission.
        path: PathId,
        /// Unwrapped TSN.
        tsn: u64,
        /// Length of the chunk with its header.
        bytes: ChunkBytes,
    },
    /// A path has a loss that cuts its window: at most once per window for fast retransmit, and at every T3 expiry.
    LossEvent {
        /// Path with the loss.
        path: PathId,
        /// Cause of the loss.
        cause: LossCause,
    },
    /// A retransmission was spurious: the receiver reported a copy as duplicate.
    Spurious {
        /// Path of the spurious copy.
        path: PathId,
        /// Path of the previous transmission, which was wrongly declared lost.
        misjudged: PathId,
        /// Unwrapped TSN.
        tsn: u64,
    },
    /// New data could not be sent although some was queued and a window was open.
    Blocked {
        /// Path of the head-of-line chunk, if one blocks.
        hole: Option<PathId>,
    },
    /// A path has sent nothing for one RTO. The event is repeated after each further RTO, up to 32 times in a row.
    Idle(PathId),
    /// The deadline of a slot has passed.
    Deadline,
}
