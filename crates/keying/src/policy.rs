//! Lifetime of keys, and timeouts of the key management.

use anabranch_core::time::Span;

/// Limits for the use of keys and for the demands of a peer.
///
/// Both endpoints count separately. The server waits an eighth longer, so that usually only the client requests new keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPolicy {
    /// Maximum age of keys.
    pub rekey_after: Span,
    /// Maximum number of bytes protected and opened with the same keys.
    pub rekey_bytes: u64,
    /// Maximum number of records protected or opened with the same keys. Three quarters of the cipher's limit apply as well; with
    /// packets of 1,400 bytes AES-GCM reaches them after 25 GB.
    pub rekey_records: u64,
    /// Age at which keys end the association. It is much larger than `rekey_after`, because a peer whose application does not read
    /// delays the exchange for new keys.
    pub expire_after: Span,
    /// Timeout of the first exchange, and of the first one after a restart.
    pub handshake_timeout: Span,
    /// Delay before a failed exchange for new keys is retried.
    pub retry_after: Span,
    /// Time for which old keys are kept for packets in flight, once the peer is known to use the new ones.
    pub drain: Span,
    /// Maximum time for which old keys are kept before that is known.
    pub unconfirmed_drain: Span,
    /// Number of exchanges that a peer may begin in a burst.
    pub peer_burst: u32,
    /// Time after which the peer may begin another exchange.
    pub peer_interval: Span,
}

/// Defaults: the hour and 100 GB that draft-porfiri-tsvwg-sctp-dtls-handshake recommends in section "Rekeying Policy", and the
/// drain times of its section "Drain Timer Considerations".
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
