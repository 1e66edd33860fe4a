//! How a message is sent.

use crate::time::Span;

/// How long the sender tries to deliver a message (RFC 3758, and the policies of RFC 7496 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reliability {
    /// Until it is delivered or the association ends.
    #[default]
    Full,
    /// Until one of its chunks was retransmitted so often and is lost again (RFC 7496 section 3.1). With 0 nothing of the
    /// message is retransmitted. Further copies that a scheme sends of a chunk that is not lost do not count.
    MaxRetransmissions(u32),
    /// Until this much time has passed since it was handed over (RFC 3758 section 4.1).
    Lifetime(Span),
    /// Until the send buffer has no room for a message that matters more (RFC 7496 section 3.2): one of any other kind, or one
    /// with a smaller number here. Without a limited send buffer it is never given up.
    Priority(u32),
    /// Until the lifetime is over or the limit of retransmissions is reached, with both as in the variants of one limit.
    LifetimeAndRetransmissions {
        /// Time since the message was handed over.
        lifetime: Span,
        /// Retransmissions of one chunk.
        max_retransmissions: u32,
    },
}

impl Reliability {
    /// The lifetime, if there is one.
    pub fn lifetime(self) -> Option<Span> {
        match self {
            Reliability::Lifetime(lifetime) | Reliability::LifetimeAndRetransmissions { lifetime, .. } => {
                Some(lifetime)
            }
            Reliability::Full | Reliability::MaxRetransmissions(_) | Reliability::Priority(_) => None,
        }
    }

    /// The limit of retransmissions, if there is one.
    pub fn max_retransmissions(self) -> Option<u32> {
        match self {
            Reliability::MaxRetransmissions(most)
            | Reliability::LifetimeAndRetransmissions { max_retransmissions: most, .. } => Some(most),
            Reliability::Full | Reliability::Lifetime(_) | Reliability::Priority(_) => None,
        }
    }

    /// The number of the priority, if there is one.
    pub(crate) fn priority(self) -> Option<u32> {
        match self {
            Reliability::Priority(number) => Some(number),
            _ => None,
        }
    }

    /// The same with another lifetime; without effect on a message that has none.
    #[must_use]
    pub fn with_lifetime(self, lifetime: Span) -> Self {
        match self {
            Reliability::Lifetime(_) => Reliability::Lifetime(lifetime),
            Reliability::LifetimeAndRetransmissions { max_retransmissions, .. } => {
                Reliability::LifetimeAndRetransmissions { lifetime, max_retransmissions }
            }
            other => other,
        }
    }
}

/// Why a message was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonCause {
    /// Its limit of retransmissions was reached.
    Retransmissions,
    /// Its lifetime was over.
    Lifetime,
    /// A message that matters more needed its room.
    Priority,
    /// It was handed over before the handshake ended, on a stream that the peer does not take (RFC 9260 section 5.1.1).
    Streams,
}

/// How a message is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// The stream it belongs to.
    pub stream: u16,
    /// Payload protocol identifier, carried as it is.
    pub ppid: u32,
    /// Whether it may be delivered out of order.
    pub unordered: bool,
    /// Whether the receiver is asked to acknowledge it at once (the I bit, RFC 7053).
    pub immediate: bool,
    /// How long its delivery is tried.
    pub reliability: Reliability,
    /// The application's own number for it, which [`AssociationEvent::Abandoned`](crate::AssociationEvent) tells if it is given
    /// up. It is not sent.
    pub context: u64,
}
