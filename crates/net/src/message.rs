//! Received messages, and messages that wait to be sent.

use std::time::Instant;

use anabranch_core::SendOptions;
use anabranch_core::time::Span;
use bytes::Bytes;

/// Message that has not reached the endpoint.
#[derive(Clone, Debug)]
pub(crate) struct QueuedMessage {
    pub(crate) payload: Bytes,
    /// Options at the call that sends the message.
    pub(crate) options: SendOptions,
    /// Start of its lifetime, if it is limited.
    since: Option<Instant>,
}

impl QueuedMessage {
    pub(crate) fn new(payload: Bytes, options: SendOptions) -> Self {
        let since = options.reliability.lifetime().map(|_| Instant::now());
        QueuedMessage { payload, options, since }
    }

    /// Returns the options at `now`, with the time spent waiting subtracted from the lifetime.
    pub(crate) fn options(&self, now: impl FnOnce() -> Instant) -> SendOptions {
        let reliability = self.options.reliability;
        let (Some(lifetime), Some(since)) = (reliability.lifetime(), self.since) else {
            return self.options;
        };
        let waited = u64::try_from(now().saturating_duration_since(since).as_nanos()).unwrap_or(u64::MAX);
        let reliability = reliability.with_lifetime(lifetime - Span::from_nanos(waited));
        SendOptions { reliability, ..self.options }
    }
}

/// Received message, or a piece of one that is larger than the receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Stream of the message.
    pub stream: u16,
    /// Payload protocol identifier set by the peer.
    pub ppid: u32,
    /// Set if the message is unordered.
    pub unordered: bool,
    /// Set if this piece begins the message.
    pub beginning: bool,
    /// Set if this piece ends the message. If `beginning` is also set, the piece is the whole message.
    pub ending: bool,
    /// User data.
    pub payload: Bytes,
}

impl Message {
    /// Returns `true` if this is a whole message, and not a piece of one.
    pub fn is_whole(&self) -> bool {
        self.beginning && self.ending
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anabranch_core::Reliability;

    use super::*;

    #[test]
    fn the_lifetime_of_a_message_runs_while_it_waits() {
        let lifetime = |ms| Reliability::Lifetime(Span::from_millis(ms));
        let options = SendOptions { stream: 3, reliability: lifetime(100), ..SendOptions::default() };
        let message = QueuedMessage::new(Bytes::from_static(b"x"), options);
        let since = message.since.expect("it has a lifetime");
        let after = |ms| message.options(|| since + Duration::from_millis(ms));
        assert_eq!(after(30), SendOptions { reliability: lifetime(70), ..options });
        assert_eq!(after(101).reliability, lifetime(0));
    }

    #[test]
    fn waiting_shortens_the_lifetime_beside_a_retransmission_limit() {
        let limits = |ms| Reliability::LifetimeAndRetransmissions {
            lifetime: Span::from_millis(ms),
            max_retransmissions: 2,
        };
        let options = SendOptions { reliability: limits(100), ..SendOptions::default() };
        let message = QueuedMessage::new(Bytes::from_static(b"x"), options);
        let since = message.since.expect("it has a lifetime");
        assert_eq!(message.options(|| since + Duration::from_millis(30)).reliability, limits(70));
    }
}
