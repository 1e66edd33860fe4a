//! Counters of an association and of an endpoint.

use crate::send::AbandonCause;

/// Messages that were abandoned for one cause (RFC 7496 section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbandonedMessages {
    /// Nothing of them had been sent.
    pub unsent: u64,
    /// Something of them had been sent.
    pub sent: u64,
}

impl AbandonedMessages {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.unsent + self.sent
    }
}

/// What was abandoned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Messages whose limit of retransmissions was reached.
    pub by_retransmissions: AbandonedMessages,
    /// Messages whose lifetime was over.
    pub by_lifetime: AbandonedMessages,
    /// Messages that made room for others.
    pub by_priority: AbandonedMessages,
    /// Messages on streams that the peer does not take.
    pub by_streams: AbandonedMessages,
    /// Chunks with a TSN that were not known to have arrived.
    pub chunks: u64,
    /// User bytes that were not known to have arrived, in chunks or not.
    pub bytes: u64,
}

impl Abandoned {
    /// Messages, whatever the cause.
    pub fn messages(&self) -> u64 {
        let by_limit = self.by_retransmissions.total() + self.by_lifetime.total() + self.by_priority.total();
        by_limit + self.by_streams.total()
    }

    pub(crate) fn count_message(&mut self, cause: AbandonCause, sent: bool) {
        let messages = match cause {
            AbandonCause::Retransmissions => &mut self.by_retransmissions,
            AbandonCause::Lifetime => &mut self.by_lifetime,
            AbandonCause::Priority => &mut self.by_priority,
            AbandonCause::Streams => &mut self.by_streams,
        };
        if sent {
            messages.sent += 1;
        } else {
            messages.unsent += 1;
        }
    }
}

/// What an association has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Packets with DATA sent.
    pub data_packets_sent: u64,
    /// Chunks sent for the first time.
    pub chunks_sent: u64,
    /// Transmissions of a chunk after its first.
    pub retransmissions: u64,
    /// T3 expiries.
    pub timeouts: u64,
    /// HEARTBEATs that went unanswered.
    pub heartbeat_timeouts: u64,
    /// SACKs that led to at least one fast retransmission: what ns-2 counts.
    pub fast_retransmit_events: u64,
    /// Chunks marked for fast retransmission.
    pub fast_retransmitted_chunks: u64,
    /// TSNs that the peer reported as received twice.
    pub duplicates_reported: u64,
    /// DATA chunks received, duplicates included.
    pub chunks_received: u64,
    /// DATA chunks received that were duplicates.
    pub duplicates_received: u64,
    /// DATA chunks dropped for lack of receive buffer.
    pub chunks_dropped: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// SACKs ignored because they were older than one already seen.
    pub sacks_ignored: u64,
    /// TSNs that a SACK stopped covering.
    pub reneged: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Retransmission packets that left although their path's window was full.
    pub exempt_packets: u64,
    /// Transmissions of the head of line ahead of its loss.
    pub opportunistic_retransmissions: u64,
    /// Tail probes.
    pub tail_probes: u64,
    /// Paths that were taken out of service because they answered nothing for as long as the failover policy waits.
    pub silences: u64,
    /// Paths that carried no large packet any more, and went back to their base size.
    pub black_holes: u64,
    /// ASCONF chunks sent, those sent again included.
    pub asconfs_sent: u64,
    /// ASCONF chunks processed; retransmissions are left out.
    pub asconfs_received: u64,
    /// Paths put into service because none was active.
    pub promotions: u64,
    /// Scheduler decisions that a full window, the path's state or the duty to make progress overruled.
    pub overruled_picks: u64,
    /// Nanoseconds in which data waited, a window was open, and the peer's receive window was closed.
    pub blocked_by_peer_window_ns: u64,
    /// Most user bytes held by the receiver at once.
    pub peak_held_bytes: u64,
    /// User bytes handed to the application.
    pub bytes_delivered: u64,
    /// What was abandoned.
    pub abandoned: Abandoned,
    /// FORWARD-TSNs sent, those sent again included.
    pub forward_tsns_sent: u64,
    /// FORWARD-TSNs received.
    pub forward_tsns_received: u64,
}

/// Why an endpoint dropped a packet or a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Discard {
    /// Shorter than a packet, or a chunk that overruns it.
    Malformed,
    /// Checksum mismatch.
    Checksum,
    /// The verification tag is not ours.
    VerificationTag,
    /// No association, and nothing that could make one.
    OutOfTheBlue,
    /// A cookie whose seal does not verify.
    CookieForged,
    /// A cookie that came too late; answered with an ERROR.
    CookieStale,
    /// A cookie that was valid but does not fit the association's state.
    CookieUnexpected,
    /// An INIT that breaks a rule.
    BadInit,
    /// An AUTH whose code is wrong, with everything behind it, or a chunk that lacks one.
    Unauthenticated,
    /// A chunk that is not expected in the present state.
    Unexpected,
    /// A SACK for a TSN that was never sent.
    BadSack,
    /// The endpoint has as many associations as it may.
    Full,
    /// More handshakes from one source, or from all together, than are looked at.
    Flood,
    /// An answer would have been more than three times as long as what it answers.
    ShortQuestion,
    /// It belongs to no association, and its source may not open one ([`AcceptFrom`](crate::AcceptFrom)).
    NotAdmitted,
    /// It came without protection, to an association that takes nothing else.
    Unprotected,
    /// A record of an epoch that there are no keys for, or under restart keys when there are none.
    NoKey,
    /// A record that was there before.
    Replayed,
    /// A record that is not authentic: forged, of other keys, or more than 32,767 records late.
    NotAuthentic,
    /// A record under a key that has met too many forgeries to be trusted.
    KeySpent,
}

impl Discard {
    /// Every reason, in the order of their declaration.
    pub const ALL: [Discard; 20] = [
        Discard::Malformed,
        Discard::Checksum,
        Discard::VerificationTag,
        Discard::OutOfTheBlue,
        Discard::CookieForged,
        Discard::CookieStale,
        Discard::CookieUnexpected,
        Discard::BadInit,
        Discard::Unauthenticated,
        Discard::Unexpected,
        Discard::BadSack,
        Discard::Full,
        Discard::Flood,
        Discard::ShortQuestion,
        Discard::NotAdmitted,
        Discard::Unprotected,
        Discard::NoKey,
        Discard::Replayed,
        Discard::NotAuthentic,
        Discard::KeySpent,
    ];
}

/// How often each reason occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards {
    counts: [u64; Discard::ALL.len()],
}

impl Discards {
    pub(crate) fn count(&mut self, reason: Discard) {
        self.counts[reason as usize] += 1;
    }

    /// How often `reason` occurred.
    pub fn of(&self, reason: Discard) -> u64 {
        self.counts[reason as usize]
    }

    /// All of them together.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}
