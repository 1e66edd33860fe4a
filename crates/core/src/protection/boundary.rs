//! TSNs that were used in the clear before an association had keys.
//!
//! An attacker on the network path can change the TSNs of plain packets. The receiver would take the protected chunk with a TSN
//! that a plain packet has used up for a duplicate.

use anabranch_wire::{PlainEnd, Ssn, Tsn};

/// Payload protocol identifier of all key management messages, which are sent on stream 0, in order.
pub const KEY_MANAGEMENT_PPID: u32 = 4242;

/// Texts of contradictions between protected packets and plain ones.
pub(crate) mod contradiction {
    /// RFC 9260 section 6.5 would acknowledge the chunk and drop it.
    pub(crate) const STREAM: &str = "a protected message came on a stream that was not agreed on";
    /// The peer has acknowledged a message that it does not deliver.
    pub(crate) const STREAM_REFUSED: &str =
        "the peer dropped a protected message on a stream that was agreed on";
    pub(crate) const TSN: &str = "a protected message has a TSN that was used up before protection";
    pub(crate) const SSN: &str =
        "a protected message has a stream sequence number that its stream does not await";
    pub(crate) const UNCONFIRMED: &str = "the peer did not confirm the plain part of the handshake";
    pub(crate) const HANDSHAKE: &str = "the peer has seen another INIT or INIT ACK than this side";
    pub(crate) const MESSAGES: &str = "the peer has counted other key management messages than this side";
    pub(crate) const ACKNOWLEDGEMENT: &str = "the peer acknowledged TSNs that were never sent";
}

/// End of the plain messages of one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MessageEnd {
    /// Last TSN, unwrapped; one less than the initial TSN if there was no message.
    pub(crate) tsn: u64,
    /// Next SSN on stream 0.
    pub(crate) next_ssn: u16,
}

impl MessageEnd {
    pub(crate) fn to_wire(self) -> PlainEnd {
        PlainEnd { tsn: Tsn::from_unwrapped(self.tsn), next_ssn: Ssn::new(self.next_ssn) }
    }
}

/// Plain messages of both directions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlainBoundary {
    /// First TSN of the peer, from its INIT or INIT ACK.
    peer_initial: u64,
    received: MessageEnd,
    /// End of the own plain messages, known once there is a send key.
    sent: Option<MessageEnd>,
    /// `true` while messages of the application wait for a protected SACK of all plain messages.
    awaits_proof: bool,
}

impl PlainBoundary {
    /// Returns the boundary of an association in which the peer starts with these numbers.
    pub(crate) fn new(peer_initial: u64, first_ssn: u16) -> Self {
        let received = MessageEnd { tsn: peer_initial - 1, next_ssn: first_ssn };
        PlainBoundary { peer_initial, received, ..PlainBoundary::default() }
    }

    /// Records the received messages when plain packets no longer carry new DATA.
    pub(crate) fn end_receiving(&mut self, received: MessageEnd) {
        self.received = received;
    }

    /// Records the sent messages before packets are sealed; later calls have no effect.
    pub(crate) fn end_sending(&mut self, sent: MessageEnd) {
        self.sent.get_or_insert(sent);
    }

    /// Records that messages of the application wait for the acknowledgement of all plain messages.
    pub(crate) fn await_proof(&mut self) {
        self.awaits_proof = true;
    }

    /// Returns `true` once, after that acknowledgement has arrived.
    pub(crate) fn take_proof(&mut self, is_proved: bool) -> bool {
        is_proved && std::mem::take(&mut self.awaits_proof)
    }

    pub(crate) fn received(&self) -> MessageEnd {
        self.received
    }

    pub(crate) fn sent(&self) -> Option<MessageEnd> {
        self.sent
    }

    /// Returns `true` if a protected DATA chunk may have this TSN. A peer repeats a message of the key management in a record if
    /// its acknowledgement was lost; other messages were never sent in the clear.
    pub(crate) fn admits(&self, tsn: u64, is_key_management: bool) -> bool {
        tsn > self.received.tsn || (is_key_management && tsn >= self.peer_initial)
    }
}

/// Returns `true` if a chunk with these fields may belong to a message of the key management. A later fragment in an I-DATA chunk has
/// no payload protocol identifier; the first one of its message has a lower TSN and is checked.
pub(crate) fn is_key_management(ppid: Option<u32>, stream: u16, unordered: bool) -> bool {
    ppid.is_none_or(|ppid| ppid == KEY_MANAGEMENT_PPID) && stream == 0 && !unordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(tsn: u64) -> MessageEnd {
        MessageEnd { tsn, next_ssn: 2 }
    }

    #[test]
    fn user_message_below_boundary_is_not_admitted() {
        let mut boundary = PlainBoundary::new(100, 0);
        assert!(boundary.admits(100, false) && !boundary.admits(99, true));
        boundary.end_receiving(end(103));
        assert!(!boundary.admits(103, false) && boundary.admits(104, false));
    }

    #[test]
    fn repeated_key_management_message_is_admitted_from_initial_tsn_on() {
        let mut boundary = PlainBoundary::new(100, 0);
        boundary.end_receiving(end(103));
        assert!(boundary.admits(100, true) && boundary.admits(103, true) && !boundary.admits(99, true));
    }

    #[test]
    fn end_of_sending_is_recorded_once() {
        let mut boundary = PlainBoundary::new(1, 0);
        assert_eq!(boundary.sent(), None);
        boundary.end_sending(end(7));
        boundary.end_sending(end(9));
        assert_eq!(boundary.sent(), Some(end(7)));
    }

    #[test]
    fn proof_is_reported_once() {
        let mut boundary = PlainBoundary::new(1, 0);
        assert!(!boundary.take_proof(true));
        boundary.await_proof();
        assert!(!boundary.take_proof(false) && boundary.take_proof(true) && !boundary.take_proof(true));
    }

    #[test]
    fn key_management_is_ordered_on_stream_zero() {
        assert!(is_key_management(Some(KEY_MANAGEMENT_PPID), 0, false));
        assert!(is_key_management(None, 0, false), "a later fragment");
        for (ppid, stream, unordered) in
            [(7, 0, false), (KEY_MANAGEMENT_PPID, 1, false), (KEY_MANAGEMENT_PPID, 0, true)]
        {
            assert!(!is_key_management(Some(ppid), stream, unordered));
            assert!(!is_key_management(None, 1, unordered) && !is_key_management(None, stream, true));
        }
    }
}
