//! When keys are replaced, and how long what waits.

use anabranch_core::time::Span;

/// When new keys are agreed on, and what a peer may cost.
///
/// Both sides count by themselves. The one with the role of the server waits an eighth longer, so that usually only one asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPolicy {
    /// The age of keys.
    pub rekey_after: Span,
    /// Bytes protected and opened with them.
    pub rekey_bytes: u64,
    /// Records protected or opened with them. Three quarters of what the cipher admits are a limit as well, and with packets of
    /// 1,400 bytes AES-GCM comes to that after 25 GB.
    pub rekey_records: u64,
    /// The age at which keys end the association. A peer whose application does not read holds up the agreement on new ones,
    /// so it is much larger than `rekey_after`.
    pub expire_after: Span,
    /// How long the first agreement may take, and the first one after a restart.
    pub handshake_timeout: Span,
    /// After an agreement on new keys has failed, the next try.
    pub retry_after: Span,
    /// How long keys are kept once the peer is known to use the next ones: for packets on their way.
    pub drain: Span,
    /// How long they are kept at most before that is known.
    pub unconfirmed_drain: Span,
    /// Agreements that a peer may begin at once.
    pub peer_burst: u32,
    /// Then it gains one more in this time.
    pub peer_interval: Span,
}

/// An hour and 100 GB are what draft-porfiri-tsvwg-sctp-dtls-handshake recommends in section "Rekeying Policy", and the times to
/// drain what it recommends in "Drain Timer Considerations".
impl Default for KeyPolicy {
    fn default() -> Self {
        KeyPolicy {
            rekey_after: Span::from_secs(3_600),
            rekey_bytes: 100_000_000_000,
            rekey_records: u64::MAX,
            expire_after: Span::from_secs(86_400),
            handshake_timeout: Span::from_secs(30),
            retry_after: Span::from_secs(10),
            drain: Span::from_secs(120),
            unconfirmed_drain: Span::from_secs(303),
            peer_burst: 8,
            peer_interval: Span::from_secs(1),
        }
    }
}
