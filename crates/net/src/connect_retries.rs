//! Further attempts to connect after an attempt without an authenticated answer of the peer.

use std::time::Duration;

use tokio::time::Instant;

use crate::error::ConnectError;

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);

/// Number of attempts after which an unauthenticated answer is believed.
const BELIEVED_AFTER: u32 = 3;

/// Rules for further attempts after a failed attempt to connect.
///
/// Any host on the path can forge an unauthenticated answer, such as an ABORT before there are keys, so it does not end the
/// attempts at once. Each attempt needs a new endpoint, because the peer may still keep the association of the previous attempt under
/// that endpoint's UDP port.
#[derive(Clone, Copy, Debug)]
pub struct ConnectRetries {
    until: Instant,
    believes_refusals: bool,
    /// Set if another attempt may follow one that the system or the network refused.
    awaits_peer: bool,
    /// Number of attempts that ended with an unauthenticated answer.
    answered: u32,
}

impl ConnectRetries {
    /// Allows attempts until this time has passed. After three, an answer that the peer does not protect packets is believed.
    pub fn within(time: Duration) -> Self {
        ConnectRetries {
            until: Instant::now() + time,
            believes_refusals: false,
            awaits_peer: false,
            answered: 0,
        }
    }

    /// Allows a single attempt, for callers with their own retries.
    pub fn none() -> Self {
        ConnectRetries::within(Duration::ZERO)
    }

    /// Also believes a refusal (`ConnectError::RefusedByPeer`) after three attempts, for callers that do not wait for a peer to
    /// start.
    #[must_use]
    pub fn accepting_refusals(self) -> Self {
        ConnectRetries { believes_refusals: true, ..self }
    }

    /// Sets whether another attempt may follow one that the system or the network refused (`ConnectError::Unreachable`), because
    /// the peer is about to be started or was reachable before. An answer of the peer sets this as well.
    #[must_use]
    pub fn awaiting_peer(self, awaits_peer: bool) -> Self {
        ConnectRetries { awaits_peer, ..self }
    }

    /// Returns the remaining time for further attempts.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    /// Records a failed attempt. Returns `true` if another one may follow after [`pause`](Self::pause).
    pub fn admits_another(&mut self, error: &ConnectError) -> bool {
        let is_answer =
            error.is_unproven() || (self.believes_refusals && matches!(error, ConnectError::RefusedByPeer));
        self.answered += u32::from(is_answer);
        let may_succeed = match error {
            _ if is_answer => self.answered < BELIEVED_AFTER,
            ConnectError::Unreachable(_) => self.awaits_peer,
            error => error.is_transient(),
        };
        self.awaits_peer |= error.is_transient();
        may_succeed && self.left() > PAUSE
    }

    /// Waits until the next attempt may begin.
    pub async fn pause(&self) {
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    const UNPROVEN: ConnectError = ConnectError::NotProtected("the peer does not protect its packets");

    fn admitted(mut retries: ConnectRetries, error: &ConnectError) -> usize {
        (0..100).take_while(|_| retries.admits_another(error)).count()
    }

    #[test]
    fn interrupted_handshake_is_repeated_until_the_deadline() {
        for error in [ConnectError::KeysInterrupted("it was restarted"), ConnectError::RefusedByPeer] {
            assert_eq!(admitted(ConnectRetries::within(LONG), &error), 100);
            assert_eq!(admitted(ConnectRetries::within(PAUSE), &error), 0);
            assert_eq!(admitted(ConnectRetries::none(), &error), 0);
        }
    }

    #[test]
    fn answer_in_the_clear_is_believed_after_three_attempts() {
        assert_eq!(admitted(ConnectRetries::within(LONG), &UNPROVEN), 2);
        let believing = || ConnectRetries::within(LONG).accepting_refusals();
        assert_eq!(admitted(believing(), &ConnectError::RefusedByPeer), 2);
        assert_eq!(admitted(believing(), &ConnectError::KeysInterrupted("it was restarted")), 100);
    }

    #[test]
    fn refused_attempt_is_repeated_for_a_peer_that_is_awaited_or_has_answered() {
        let absent = ConnectError::Unreachable(Vec::new());
        assert_eq!(admitted(ConnectRetries::within(LONG), &absent), 0);
        assert_eq!(admitted(ConnectRetries::within(LONG).awaiting_peer(true), &absent), 100);
        let mut answered = ConnectRetries::within(LONG);
        assert!(answered.admits_another(&ConnectError::KeysInterrupted("it was restarted")));
        assert_eq!(admitted(answered, &absent), 100);
    }

    #[test]
    fn verdict_and_silence_are_final() {
        let denied = ConnectError::Denied { why: "the peer does not accept this side's identity", by: None };
        for error in [denied, ConnectError::NotAccepted("unknown_ca"), ConnectError::NoAnswer] {
            assert_eq!(admitted(ConnectRetries::within(LONG), &error), 0, "{error:?}");
        }
    }
}
