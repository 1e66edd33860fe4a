//! Counters of an association and of an endpoint.

use crate::send::AbandonCause;

/// Numbers of messages that were abandoned for one cause (RFC 7496 section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbandonedMessages {
    /// Messages of which no part had been sent.
    pub unsent: u64,
    /// Messages of which a part had been sent.
    pub sent: u64,
}

impl AbandonedMessages {
    /// Returns the sum of both.
    pub fn total(&self) -> u64 {
        self.unsent + self.sent
    }
}

/// Counts of abandoned messages and data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Abandoned {
    /// Messages whose limit of retransmissions was reached.
    pub by_retransmissions: AbandonedMessages,
    /// Messages whose lifetime was over.
    pub by_lifetime: AbandonedMessages,
    /// Messages that made room for others.
    pub by_priority: AbandonedMessages,
    /// Messages on streams that the peer does not accept.
    pub by_streams: AbandonedMessages,
    /// Chunks with a TSN that were not known to have arrived.
    pub chunks: u64,
    /// User bytes that were not known to have arrived, in chunks or not.
    pub bytes: u64,
}

impl Abandoned {
    /// Returns the number of messages abandoned for any cause.
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

/// Counters of an association.
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
    /// HEARTBEATs that were not answered within an RTO.
    pub heartbeat_timeouts: u64,
    /// SACKs that led to at least one fast retransmission, as ns-2 counts them.
    pub fast_retransmit_events: u64,
    /// Chunks marked for fast retransmission.
    pub fast_retransmitted_chunks: u64,
    /// TSNs that the peer reported as duplicates.
    pub duplicates_reported: u64,
    /// DATA chunks received, including duplicates.
    pub chunks_received: u64,
    /// Duplicate DATA chunks received.
    pub duplicates_received: u64,
    /// DATA chunks dropped for lack of receive buffer.
    pub chunks_dropped: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// SACKs ignored because a newer one had been processed.
    pub sacks_ignored: u64,
    /// TSNs that a SACK no longer covered.
    pub reneged: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
    /// Retransmission packets sent although their path's window was full.
    pub exempt_packets: u64,
    /// Transmissions of the head-of-line chunk before it was lost.
    pub opportunistic_retransmissions: u64,
    /// Copies of chunks that the scheduler or the retransmission policy sent on further paths.
    pub copies_sent: u64,
    /// Tail probes.
    pub tail_probes: u64,
    /// Paths that became potentially failed after the silence that the failover policy permits.
    pub silences: u64,
    /// Paths that no longer carried large packets, and returned to their base size.
    pub black_holes: u64,
    /// ASCONF chunks sent, including retransmissions.
    pub asconfs_sent: u64,
    /// ASCONF chunks processed, without retransmissions.
    pub asconfs_received: u64,
    /// RE-CONFIG chunks with a request sent, including retransmissions.
    pub re_configs_sent: u64,
    /// Requests of the peer for changes of streams, without retransmissions.
    pub stream_requests_received: u64,
    /// Paths put into service because none was active.
    pub promotions: u64,
    /// Scheduler decisions that were overruled because of a full window, the path's state or the need for progress.
    pub overruled_picks: u64,
    /// Nanoseconds in which data waited, a window was open, and the peer's receive window was closed.
    pub blocked_by_peer_window_ns: u64,
    /// Largest number of user bytes in the receive buffer.
    pub peak_held_bytes: u64,
    /// User bytes delivered to the application.
    pub bytes_delivered: u64,
    /// Abandoned messages and data.
    pub abandoned: Abandoned,
    /// FORWARD-TSNs sent, including retransmissions.
    pub forward_tsns_sent: u64,
    /// FORWARD-TSNs received.
    pub forward_tsns_received: u64,
}

/// Reason for which an endpoint dropped a packet or a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Discard {
    /// The packet is too short, or a chunk exceeds it.
    Malformed,
    /// The checksum is wrong.
    Checksum,
    /// The verification tag does not match.
    VerificationTag,
    /// There is no association, and the packet cannot open one.
    OutOfTheBlue,
    /// The seal of a cookie does not verify.
    CookieForged,
    /// A cookie was stale; answered with an ERROR.
    CookieStale,
    /// A cookie is valid but does not fit the association's state.
    CookieUnexpected,
    /// An INIT violates a rule.
    BadInit,
    /// The code of an AUTH is wrong, which drops all chunks behind it, or a chunk lacks an AUTH.
    Unauthenticated,
    /// A chunk is not expected in the current state.
    Unexpected,
    /// A SACK acknowledges a TSN that was never sent.
    BadSack,
    /// The endpoint has the maximum number of associations.
    Full,
    /// There are more handshakes from one source, or in total, than the limits permit.
    Flood,
    /// The reply would have been more than three times as long as the packet.
    ShortQuestion,
    /// The packet belongs to no association, and its source may not open one ([`AcceptFrom`](crate::AcceptFrom)).
    NotAdmitted,
    /// A plain packet arrived for an association that requires protection.
    Unprotected,
    /// There are no keys for the epoch of a record, or no restart keys for a record under such keys.
    NoKey,
    /// A record was received before.
    Replayed,
    /// A record is not authentic: forged, under other keys, or more than 32,767 records late.
    NotAuthentic,
    /// The key of a record has met the maximum number of forgeries.
    KeySpent,
}

impl Discard {
    /// All reasons, in the order of their declaration.
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

/// Number of occurrences of each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discards {
    counts: [u64; Discard::ALL.len()],
}

impl Discards {
    pub(crate) fn count(&mut self, reason: Discard) {
        self.counts[reason as usize] += 1;
    }

    /// Returns the number of occurrences of `reason`.
    pub fn of(&self, reason: Discard) -> u64 {
        self.counts[reason as usize]
    }

    /// Returns the sum over all reasons.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}
