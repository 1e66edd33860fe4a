//! Messages as the application receives them, and those that wait to be sent.

use std::time::Instant;

use anabranch_core::SendOptions;
use anabranch_core::time::Span;
use bytes::Bytes;

/// A message that waits for room in the endpoint's send buffer.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) payload: Bytes,
    options: SendOptions,
    /// Since when its lifetime runs, if it has one.
    since: Option<Instant>,
}

impl Outgoing {
    pub(crate) fn new(payload: Bytes, options: SendOptions) -> Self {
        let since = options.reliability.lifetime().map(|_| Instant::now());
        Outgoing { payload, options, since }
    }

    /// How it is to be sent at `now`: its lifetime has run while it waited.
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

/// A message that has arrived, or a piece of one that is larger than the receive buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The stream it came on.
    pub stream: u16,
    /// Payload protocol identifier, as the peer set it.
    pub ppid: u32,
    /// Whether it took no part in the order of its stream.
    pub unordered: bool,
    /// Whether the message begins here.
    pub beginning: bool,
    /// Whether the message ends here; `true` for both is a whole message.
    pub ending: bool,
    /// The user data.
    pub payload: Bytes,
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
        let message = Outgoing::new(Bytes::from_static(b"x"), options);
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
        let message = Outgoing::new(Bytes::from_static(b"x"), options);
        let since = message.since.expect("it has a lifetime");
        assert_eq!(message.options(|| since + Duration::from_millis(30)).reliability, limits(70));
    }
}
