//! Credit of one stream: the bytes that its sender may send ahead of the application that reads them.
//!
//! Both sides count the bytes of messages since the association was established, over all uses of a stream identifier, so that a
//! late or repeated report never raises the credit twice. A message may begin while its predecessors have not reached the limit. It
//! may then exceed the limit by its own length: a message that is longer than the window can be sent.

/// Credit that a stream has at the beginning.
pub(crate) const FIRST_WINDOW: u64 = 64 << 10;

/// Credit up to which the window of a stream grows.
pub(crate) const LARGEST_WINDOW: u64 = 4 << 20;

/// Credit of the sending side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendCredit {
    sent: u64,
    limit: u64,
    /// Latest limit that the receiver was told of as stopping the sender.
    reported: Option<u64>,
}

impl SendCredit {
    /// Returns the credit for a peer that grants some.
    pub(crate) fn granted() -> Self {
        SendCredit { sent: 0, limit: FIRST_WINDOW, reported: None }
    }

    /// Returns the credit for a peer that has only the window of the association.
    pub(crate) fn unlimited() -> Self {
        SendCredit { sent: 0, limit: u64::MAX, reported: None }
    }

    pub(crate) fn admits_message(&self) -> bool {
        self.sent < self.limit
    }

    pub(crate) fn spend(&mut self, bytes: usize) {
        self.sent = self.sent.saturating_add(bytes as u64);
    }

    /// Restores the credit of messages that are not sent.
    pub(crate) fn refund(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_sub(bytes);
    }

    /// Returns `true` if no message may begin, once for each limit.
    pub(crate) fn is_newly_blocked(&mut self) -> bool {
        !self.admits_message() && self.reported.replace(self.limit) != Some(self.limit)
    }

    pub(crate) fn raise(&mut self, limit: u64) {
        self.limit = self.limit.max(limit);
    }
}

/// Error: the peer began a message without credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overdrawn;

/// Credit of the receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecvCredit {
    received: u64,
    consumed: u64,
    limit: u64,
    window: u64,
}

impl RecvCredit {
    pub(crate) fn new() -> Self {
        RecvCredit { received: 0, consumed: 0, limit: FIRST_WINDOW, window: FIRST_WINDOW }
    }

    /// Counts a message or piece. `begins` is set for the first piece of a message.
    pub(crate) fn receive(&mut self, bytes: usize, begins: bool) -> Result<(), Overdrawn> {
        if begins && self.received >= self.limit {
            return Err(Overdrawn);
        }
        self.received += bytes as u64;
        Ok(())
    }

    /// Counts bytes that were read or discarded. Returns the limit to report, once it has risen by half of the window.
    pub(crate) fn consume(&mut self, bytes: usize) -> Option<u64> {
        self.consumed += bytes as u64;
        self.due()
    }

    fn due(&mut self) -> Option<u64> {
        let limit = self.consumed + self.window;
        (limit.saturating_sub(self.limit) >= self.window / 2).then(|| {
            self.limit = limit;
            limit
        })
    }

    /// Returns the bytes that were received and not consumed.
    pub(crate) fn unread(&self) -> u64 {
        self.received - self.consumed
    }

    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Doubles the window of a sender that waits for credit although the application keeps up: the window is smaller than the stream
    /// sends in a round trip. `room` is what all windows may grow. Returns the limit to report.
    pub(crate) fn sender_is_blocked(&mut self, room: u64) -> Option<u64> {
        if self.unread() > self.window / 2 {
            return None;
        }
        self.window += self.window.min(LARGEST_WINDOW - self.window).min(room);
        self.due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_begins_while_the_limit_is_not_reached_and_may_exceed_it() {
        let mut credit = SendCredit::granted();
        credit.spend(FIRST_WINDOW as usize - 1);
        assert!(credit.admits_message());
        credit.spend(1_000_000);
        assert!(!credit.admits_message());
        credit.raise(FIRST_WINDOW + 999_999);
        assert!(!credit.admits_message());
        credit.raise(FIRST_WINDOW + 1_000_000);
        assert!(credit.admits_message());
    }

    #[test]
    fn late_reports_do_not_lower_the_limit() {
        let mut credit = SendCredit::granted();
        credit.raise(2 * FIRST_WINDOW);
        let before = credit;
        credit.raise(FIRST_WINDOW);
        assert_eq!(credit, before);
    }

    #[test]
    fn refunded_bytes_can_be_spent_again() {
        let mut credit = SendCredit::granted();
        credit.spend(FIRST_WINDOW as usize);
        assert!(!credit.admits_message());
        credit.refund(1);
        assert!(credit.admits_message());
    }

    #[test]
    fn a_message_may_not_begin_without_credit_but_its_pieces_may_follow() {
        let mut credit = RecvCredit::new();
        assert_eq!(credit.receive(FIRST_WINDOW as usize, true), Ok(()));
        assert_eq!(credit.receive(500, false), Ok(()));
        assert_eq!(credit.receive(1, true), Err(Overdrawn));
    }

    #[test]
    fn credit_is_reported_in_steps_of_half_a_window() {
        let mut credit = RecvCredit::new();
        let half = FIRST_WINDOW as usize / 2;
        assert_eq!(credit.receive(2 * half, true), Ok(()));
        assert_eq!(credit.consume(half - 1), None);
        assert_eq!(credit.consume(1), Some(FIRST_WINDOW + half as u64));
        assert_eq!(credit.unread(), half as u64);
    }

    #[test]
    fn a_sender_with_the_credit_of_its_receiver_is_never_refused() {
        let (mut sender, mut receiver) = (SendCredit::granted(), RecvCredit::new());
        let mut rng = fastrand::Rng::with_seed(7);
        let mut in_flight = std::collections::VecDeque::new();
        for _ in 0..100_000 {
            match rng.u8(0..3) {
                0 if sender.admits_message() => {
                    let bytes = 1 + rng.usize(0..50_000);
                    sender.spend(bytes);
                    in_flight.push_back(bytes);
                }
                1 => {
                    if let Some(bytes) = in_flight.pop_front() {
                        assert_eq!(receiver.receive(bytes, true), Ok(()));
                    }
                }
                _ if receiver.unread() > 0 => {
                    let bytes = 1 + rng.u64(0..receiver.unread());
                    receiver.consume(bytes as usize).into_iter().for_each(|limit| sender.raise(limit));
                    if sender.is_newly_blocked() {
                        receiver
                            .sender_is_blocked(FIRST_WINDOW)
                            .into_iter()
                            .for_each(|limit| sender.raise(limit));
                    }
                }
                _ => {}
            }
            assert!(receiver.unread() <= LARGEST_WINDOW + 50_000);
        }
        assert!(receiver.window() > FIRST_WINDOW, "the sender waited for credit and the reader kept up");
    }

    #[test]
    fn the_window_grows_only_while_the_reader_keeps_up() {
        let mut credit = RecvCredit::new();
        assert_eq!(credit.receive(FIRST_WINDOW as usize, true), Ok(()));
        assert_eq!((credit.sender_is_blocked(u64::MAX), credit.window()), (None, FIRST_WINDOW));
        credit.consume(FIRST_WINDOW as usize);
        credit.sender_is_blocked(1000);
        assert_eq!(credit.window(), FIRST_WINDOW + 1000, "the room for all windows limits it");
        for _ in 0..10 {
            credit.sender_is_blocked(u64::MAX);
        }
        assert_eq!(credit.window(), LARGEST_WINDOW);
    }

    #[test]
    fn the_sender_reports_each_limit_that_stops_it_once() {
        let mut credit = SendCredit::granted();
        assert!(!credit.is_newly_blocked());
        credit.spend(FIRST_WINDOW as usize);
        assert!(credit.is_newly_blocked() && !credit.is_newly_blocked());
        credit.raise(FIRST_WINDOW + 1);
        credit.spend(1);
        assert!(credit.is_newly_blocked());
    }
}
