//! Options of a message: stream, order and reliability.

use crate::time::Span;

/// Limit up to which the sender tries to deliver a message (RFC 3758, and the policies of RFC 7496 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reliability {
    /// No limit: the message is delivered unless the association ends.
    #[default]
    Full,
    /// Number of retransmissions of a chunk after which its next loss abandons the message (RFC 7496 section 3.1). The value 0
    /// permits no retransmission. Copies that a scheme sends of a chunk that is not lost do not count.
    MaxRetransmissions(u32),
    /// Time from the call that sends the message until it is abandoned (RFC 3758 section 4.1).
    Lifetime(Span),
    /// Priority in a full send buffer (RFC 7496 section 3.2): the message is abandoned if a message of any other kind, or with a
    /// smaller number, needs the room. In an unlimited send buffer, the message is never abandoned.
    Priority(u32),
    /// Lifetime and limit of retransmissions, each as in the variants of one limit; the first that is reached counts.
    LifetimeAndRetransmissions {
        /// Time from the call that sends the message.
        lifetime: Span,
        /// Maximum number of retransmissions of one chunk.
        max_retransmissions: u32,
    },
}

impl Reliability {
    /// Returns the lifetime, if there is one.
    pub fn lifetime(self) -> Option<Span> {
        match self {
            Reliability::Lifetime(lifetime) | Reliability::LifetimeAndRetransmissions { lifetime, .. } => {
                Some(lifetime)
            }
            Reliability::Full | Reliability::MaxRetransmissions(_) | Reliability::Priority(_) => None,
        }
    }

    /// Returns the limit of retransmissions, if there is one.
    pub fn max_retransmissions(self) -> Option<u32> {
        match self {
            Reliability::MaxRetransmissions(most)
            | Reliability::LifetimeAndRetransmissions { max_retransmissions: most, .. } => Some(most),
            Reliability::Full | Reliability::Lifetime(_) | Reliability::Priority(_) => None,
        }
    }

    /// Returns the number of the priority, if there is one.
    pub(crate) fn priority(self) -> Option<u32> {
        match self {
            Reliability::Priority(number) => Some(number),
            _ => None,
        }
    }

    /// Returns the same limits with another lifetime; without effect on a message that has none.
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

/// Reason for which a message was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbandonCause {
    /// The limit of retransmissions was reached.
    Retransmissions,
    /// The lifetime was over.
    Lifetime,
    /// A message of higher priority needed the room.
    Priority,
    /// The message was sent before the handshake ended, on a stream that the peer does not accept (RFC 9260 section 5.1.1).
    Streams,
}

/// Options of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOptions {
    /// Stream identifier.
    pub stream: u16,
    /// Payload protocol identifier, passed to the receiver unchanged.
    pub ppid: u32,
    /// `true` if the message may be delivered out of order.
    pub unordered: bool,
    /// `true` if the receiver is asked to acknowledge the message at once (the I bit, RFC 7053).
    pub immediate: bool,
    /// `true` if a copy on a second path is worth its bytes. The scheme decides whether it sends one.
    pub duplicate: bool,
    /// Limit of the attempts to deliver it.
    pub reliability: Reliability,
    /// Number chosen by the application. [`AssociationEvent::Abandoned`](crate::AssociationEvent) returns it if the message is
    /// abandoned. It is not sent.
    pub context: u64,
}

impl SendOptions {
    /// Returns options of a message on this stream.
    pub fn on_stream(stream: u16) -> Self {
        SendOptions { stream, ..SendOptions::default() }
    }

    /// Permits delivery out of order.
    #[must_use]
    pub fn unordered(self) -> Self {
        SendOptions { unordered: true, ..self }
    }

    /// Asks for a copy on a second path, if the scheme finds room for it.
    #[must_use]
    pub fn duplicated(self) -> Self {
        SendOptions { duplicate: true, ..self }
    }

    /// Abandons the message this long after the call that sends it (RFC 3758 section 4.1).
    #[must_use]
    pub fn expires_after(self, lifetime: impl Into<Span>) -> Self {
        SendOptions { reliability: Reliability::Lifetime(lifetime.into()), ..self }
    }
}
