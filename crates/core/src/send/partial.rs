//! State of partial reliability at the sender.

use crate::path_id::PathId;
use crate::send::limited::{LimitedMessages, MessageKey};
use crate::send::lost::LostList;
use crate::send::skipped::{SkippedMessages, SkippedNumber};
use crate::time::Time;

/// Support of FORWARD-TSN by the peer (RFC 3758 section 3.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Support {
    /// The handshake has not ended.
    #[default]
    Unknown,
    Yes,
    No,
}

/// Messages with a limit of reliability, and abandoned ones.
#[derive(Clone, Debug)]
pub(crate) struct PartialReliability {
    pub(super) support: Support,
    pub(super) messages: LimitedMessages,
    pub(super) skipped: SkippedMessages,
    /// TSN up to which all is acknowledged or abandoned: Advanced.Peer.Ack.Point of RFC 3758 section 3.5.
    pub(super) ack_point: u64,
    /// Chunks that were abandoned in flight and may still be found lost.
    pub(super) watched: LostList,
    /// Chunks with a limit that were declared lost since the latest check.
    pub(super) lost: Vec<u64>,
    /// Messages to abandon for room. The memory is reused.
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

    /// Assigns a TSN to a chunk of a message with a limit. The limit ends here if the peer does not support FORWARD-TSN.
    pub(super) fn assign(&mut self, key: MessageKey, tsn: u64, ending: bool) {
        match self.support {
            Support::Yes => self.messages.assign(key, tsn, ending),
            Support::Unknown | Support::No => self.messages.settle(key),
        }
    }

    /// Removes records up to the cumulative TSN.
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

/// Latest FORWARD-TSN that is not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentForwardTsn {
    /// TSN up to which it moves the peer.
    pub(super) up_to: u64,
    /// Ack point when it was sent.
    pub(super) ack_point: u64,
    pub(super) path: PathId,
    pub(super) at: Time,
}

/// State of FORWARD-TSNs to the peer.
#[derive(Clone, Debug, Default)]
pub(super) struct ForwardTsnState {
    pub(super) due: bool,
    pub(super) sent: Option<SentForwardTsn>,
    /// Streams that the next one names. The memory is reused.
    pub(super) streams: Vec<SkippedNumber>,
}
