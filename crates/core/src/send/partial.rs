//! What the sender knows of messages that may be given up.

use crate::path_id::PathId;
use crate::send::limited::{LimitedMessages, MessageKey};
use crate::send::lost::LostList;
use crate::send::skipped::SkippedMessages;
use crate::time::Time;

/// Whether the peer takes FORWARD-TSN (RFC 3758 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Support {
    /// The handshake has not said.
    #[default]
    Unknown,
    Yes,
    No,
}

/// What the sender knows of messages that may be given up, and of those that were.
#[derive(Debug)]
pub(crate) struct PartialReliability {
    pub(super) support: Support,
    pub(super) messages: LimitedMessages,
    pub(super) skipped: SkippedMessages,
    /// All up to here is acknowledged or abandoned: Advanced.Peer.Ack.Point of RFC 3758 section 3.5.
    pub(super) ack_point: u64,
    /// Chunks that were abandoned in flight and may still turn out to be lost.
    pub(super) watched: LostList,
    /// Chunks with a limit that were declared lost since they were last looked at.
    pub(super) lost: Vec<u64>,
    /// Messages to abandon for room. Memory that is used again.
    pub(super) candidates: Vec<(u32, MessageKey)>,
}

impl PartialReliability {
    pub(super) fn new(initial_tsn: u64) -> Self {
        PartialReliability {
            support: Support::Unknown,
            messages: LimitedMessages::default(),
            skipped: SkippedMessages::default(),
            ack_point: initial_tsn - 1,
            watched: LostList::default(),
            lost: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// A chunk of a message with a limit got its TSN. From here on a message could be given up only with a FORWARD-TSN.
    pub(super) fn assign(&mut self, key: MessageKey, tsn: u64, ending: bool) {
        match self.support {
            Support::Yes => self.messages.assign(key, tsn, ending),
            Support::Unknown | Support::No => self.messages.settle(key),
        }
    }

    /// The cumulative TSN has passed these.
    pub(super) fn forget_up_to(&mut self, cumulative: u64) {
        if !self.messages.is_empty() {
            self.messages.forget_up_to(cumulative);
        }
        if !self.skipped.is_empty() {
            self.skipped.forget_up_to(cumulative);
        }
        if !self.watched.is_empty() {
            self.watched.forget_up_to(cumulative);
        }
    }
}

/// The latest FORWARD-TSN that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentForwardTsn {
    /// The TSN that it names.
    pub(super) up_to: u64,
    /// The ack point at that time.
    pub(super) ack_point: u64,
    pub(super) path: PathId,
    pub(super) at: Time,
}

/// State of FORWARD-TSNs to the peer.
#[derive(Debug, Default)]
pub(super) struct ForwardTsnState {
    pub(super) due: bool,
    pub(super) sent: Option<SentForwardTsn>,
    /// The streams of the next one. The memory is reused.
    pub(super) streams: Vec<(u16, u16)>,
}
