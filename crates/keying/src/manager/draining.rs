//! Old keys that are kept for packets in flight (section "Drain Timer Considerations").

use anabranch_core::Association;
use anabranch_core::time::{Span, Time};

use crate::exchange::Part;
use crate::policy::KeyPolicy;

/// Keys that newer ones have replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    /// Primary keys of this epoch, and the restart keys of the same exchange. The peer has had time to store newer ones.
    Primary(u64),
    /// Keys with which a restart was made.
    Restart,
}

impl Replaced {
    fn remove(self, association: &mut Association) {
        match self {
            Self::Primary(epoch) => {
                association.remove_receive_key(epoch);
                association.remove_restart_keys(epoch);
            }
            Self::Restart => {
                association.retire_restart_keys();
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Draining {
    keys: Replaced,
    until: Time,
    confirmed: bool,
}

impl Draining {
    /// Starts the drain timer. A client knows already that the peer has received its last message. A server knows once the first
    /// packet under the new keys arrives.
    pub(super) fn new(now: Time, keys: Replaced, part: Part, policy: &KeyPolicy) -> Self {
        match part {
            Part::Client => Draining { keys, until: now + policy.drain, confirmed: true },
            Part::Server => Draining { keys, until: now + policy.unconfirmed_drain, confirmed: false },
        }
    }

    /// Removes the keys.
    pub(super) fn end(self, association: &mut Association) {
        self.keys.remove(association);
    }

    pub(super) fn until(&self) -> Time {
        self.until
    }

    pub(super) fn is_over(&mut self, now: Time, newest_is_used: bool, drain: Span) -> bool {
        if newest_is_used && !self.confirmed {
            self.confirmed = true;
            self.until = self.until.min(now + drain);
        }
        now >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::ZERO + Span::from_secs(seconds)
    }

    #[test]
    fn old_keys_are_kept_until_two_minutes_after_the_peer_uses_new_ones() {
        let policy = KeyPolicy::default();
        let mut draining = Draining::new(at(0), Replaced::Primary(3), Part::Server, &policy);
        assert!(!draining.is_over(at(100), false, policy.drain));
        assert!(!draining.is_over(at(110), true, policy.drain));
        assert!(!draining.is_over(at(229), true, policy.drain));
        assert!(draining.is_over(at(230), true, policy.drain));
    }

    #[test]
    fn a_peer_that_never_uses_them_does_not_keep_the_old_ones() {
        let policy = KeyPolicy::default();
        let mut draining = Draining::new(at(0), Replaced::Primary(3), Part::Server, &policy);
        assert!(
            !draining.is_over(at(302), false, policy.drain) && draining.is_over(at(303), false, policy.drain)
        );
        let mut late = Draining::new(at(0), Replaced::Primary(3), Part::Server, &policy);
        assert!(!late.is_over(at(300), true, policy.drain) && late.is_over(at(303), true, policy.drain));
    }

    #[test]
    fn client_drains_old_keys_at_once() {
        let policy = KeyPolicy::default();
        let mut draining = Draining::new(at(0), Replaced::Primary(3), Part::Client, &policy);
        assert!(
            !draining.is_over(at(119), false, policy.drain) && draining.is_over(at(120), false, policy.drain)
        );
    }
}
