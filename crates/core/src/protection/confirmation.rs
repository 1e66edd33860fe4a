//! Confirmation of the plain handshake under protection.
//!
//! Both sides begin their protected packets with a CONFIRMATION until each knows that the other's matches. It is not sent in a DATA
//! chunk, so an attacker cannot suppress it by changed TSNs. Until it matches, no other chunk of a packet is processed.

use anabranch_wire::{ConfirmationRepr, TRANSCRIPT_LEN};
use arrayvec::ArrayVec;

use super::boundary::contradiction;

/// Digest of an INIT and the INIT ACK that answered it.
pub(crate) type Transcript = [u8; TRANSCRIPT_LEN];

/// Number of handshakes of one association that this side can recognise. Two take place if both sides open it at once; the others
/// are for INITs that an attacker sends meanwhile.
const MOST_HANDSHAKES: usize = 4;

/// Handshakes in which an association has taken part, kept from the handshake on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshakes {
    /// Digest of the latest INIT that was sent.
    pub(crate) init: Transcript,
    /// Latest INITs of the peer that were answered while this side was opening the association.
    answered: ArrayVec<Transcript, MOST_HANDSHAKES>,
}

impl Handshakes {
    /// Records the answer to an INIT of a peer that opens the association at the same time.
    pub(crate) fn note_answered(&mut self, transcript: Transcript) {
        if self.answered.contains(&transcript) {
            return;
        }
        if self.answered.is_full() {
            self.answered.remove(0);
        }
        self.answered.push(transcript);
    }
}

/// State of the confirmation of an association that has agreed on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConfirmationState {
    /// Handshake from which this side has taken its values.
    own: Transcript,
    /// `true` once the peer's confirmation has arrived and matches.
    matched: bool,
    /// `true` once the peer has reported that this side's confirmation matches.
    is_known: bool,
}

impl ConfirmationState {
    pub(crate) fn new(own: Transcript) -> Self {
        ConfirmationState { own, matched: false, is_known: false }
    }

    /// Returns `true` once no further packet needs a confirmation.
    pub(crate) fn is_done(&self) -> bool {
        self.matched && self.is_known
    }

    /// Returns this side's confirmation. `ends` are the ends of the plain messages of both directions.
    pub(crate) fn ours(&self, ends: PlainEnds) -> ConfirmationRepr {
        ConfirmationRepr {
            matched: self.matched,
            transcript: self.own,
            sent: ends.sent,
            received: ends.received,
        }
    }

    /// Processes the peer's confirmation.
    ///
    /// # Errors
    /// Returns the text of the contradiction.
    pub(crate) fn take(
        &mut self,
        theirs: &ConfirmationRepr,
        handshakes: &Handshakes,
        ends: PlainEnds,
    ) -> Result<(), &'static str> {
        // The peer's values must come from a handshake of this side. In a collision, each side may use another one.
        if theirs.transcript != self.own && !handshakes.answered.contains(&theirs.transcript) {
            return Err(contradiction::HANDSHAKE);
        }
        if (theirs.sent, theirs.received) != (ends.received, ends.sent) {
            return Err(contradiction::MESSAGES);
        }
        self.matched = true;
        self.is_known |= theirs.matched;
        Ok(())
    }

    /// Processes a packet without a confirmation. The peer sends such packets once it knows that both match.
    ///
    /// # Errors
    /// Returns the text of the contradiction.
    pub(crate) fn take_none(&mut self) -> Result<(), &'static str> {
        if !self.matched {
            return Err(contradiction::UNCONFIRMED);
        }
        self.is_known = true;
        Ok(())
    }
}

/// Ends of the plain messages of both directions, as one side counts them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainEnds {
    pub(crate) sent: anabranch_wire::PlainEnd,
    pub(crate) received: anabranch_wire::PlainEnd,
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_wire::{PlainEnd, Ssn, Tsn};

    fn ends(sent: u32, received: u32) -> PlainEnds {
        let end = |tsn| PlainEnd { tsn: Tsn::new(tsn), next_ssn: Ssn::new(2) };
        PlainEnds { sent: end(sent), received: end(received) }
    }

    #[test]
    fn both_sides_stop_once_each_knows_that_the_other_matches() {
        let (mut a, mut b) = (ConfirmationState::new([1; 32]), ConfirmationState::new([1; 32]));
        let none = Handshakes::default();
        assert_eq!(a.take(&b.ours(ends(20, 10)), &none, ends(10, 20)), Ok(()));
        assert!(!a.is_done());
        assert_eq!(b.take(&a.ours(ends(10, 20)), &none, ends(20, 10)), Ok(()));
        assert!(b.is_done() && !a.is_done());
        assert_eq!(a.take_none(), Ok(()));
        assert!(a.is_done());
    }

    #[test]
    fn packet_without_confirmation_is_refused_before_one_matches() {
        assert_eq!(ConfirmationState::new([1; 32]).take_none(), Err(contradiction::UNCONFIRMED));
    }

    #[test]
    fn every_difference_is_a_contradiction() {
        let mut a = ConfirmationState::new([1; 32]);
        let none = Handshakes::default();
        let theirs = ConfirmationState::new([1; 32]).ours(ends(20, 10));
        let other = ConfirmationRepr { transcript: [2; 32], ..theirs };
        assert_eq!(a.take(&other, &none, ends(10, 20)), Err(contradiction::HANDSHAKE));
        let mut changed = [theirs; 4];
        changed[0].sent.tsn = Tsn::new(21);
        changed[1].received.tsn = Tsn::new(11);
        changed[2].sent.next_ssn = Ssn::new(3);
        changed[3].received.next_ssn = Ssn::new(1);
        for theirs in changed {
            assert_eq!(a.take(&theirs, &none, ends(10, 20)), Err(contradiction::MESSAGES));
        }
        assert!(!a.matched && a.take_none().is_err());
    }

    #[test]
    fn handshake_of_a_collision_is_recognised_and_few_are_kept() {
        let mut handshakes = Handshakes::default();
        (1..=5).for_each(|number| handshakes.note_answered([number; 32]));
        handshakes.note_answered([5; 32]);
        let mut a = ConfirmationState::new([9; 32]);
        let by = |number: u8| ConfirmationState::new([number; 32]).ours(ends(20, 10));
        assert_eq!(a.take(&by(1), &handshakes, ends(10, 20)), Err(contradiction::HANDSHAKE));
        for number in 2..=5 {
            assert_eq!(a.take(&by(number), &handshakes, ends(10, 20)), Ok(()));
        }
    }
}
