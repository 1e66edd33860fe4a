//! Requests of the peer for changes of streams, and their answers (RFC 6525 section 5.2).

use anabranch_wire::ReconfigResult;
use arrayvec::ArrayVec;

use crate::association::re_config_answer::AnswerList;
use crate::stream_set::StreamSet;

/// Reset of incoming streams that waits for data which precedes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deferred {
    pub(super) serial: u32,
    /// Last TSN before the reset, unwrapped.
    pub(super) last_tsn: u64,
    pub(super) streams: StreamSet,
}

/// Classification of a request by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judged {
    New,
    /// The request has arrived before, and had this result.
    Repeated(ReconfigResult),
    /// The number is neither the next nor a recent one.
    Wrong,
}

/// State of the requests of the peer.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// Number of the next request.
    expected: u32,
    /// Latest answers, the oldest first.
    latest: AnswerList,
    deferred: Option<Deferred>,
}

impl Answers {
    /// Returns the initial state: the numbers of the peer start with its initial TSN.
    pub(super) fn new(initial_tsn: u32) -> Self {
        Answers { expected: initial_tsn, latest: ArrayVec::new(), deferred: None }
    }

    /// Returns the number of the latest request, or the one before the first.
    pub(super) fn latest_serial(&self) -> u32 {
        self.expected.wrapping_sub(1)
    }

    /// Classifies a request.
    pub(super) fn judge(&self, serial: u32) -> Judged {
        if serial == self.expected {
            return Judged::New;
        }
        let known = self.latest.iter().find(|(answered, _)| *answered == serial);
        known.map_or(Judged::Wrong, |(_, result)| Judged::Repeated(*result))
    }

    /// Records the result of the next request.
    pub(super) fn record(&mut self, result: ReconfigResult) {
        if self.latest.is_full() {
            self.latest.remove(0);
        }
        self.latest.push((self.expected, result));
        self.expected = self.expected.wrapping_add(1);
    }

    /// Defers a reset. It replaces one that was deferred before: some peers repeat a request under a new number.
    pub(super) fn defer(&mut self, deferred: Deferred) {
        self.deferred = Some(deferred);
    }

    /// Takes the deferred reset once the data before it has arrived.
    pub(super) fn take_due(&mut self, cumulative: u64) -> Option<Deferred> {
        self.deferred.take_if(|deferred| deferred.last_tsn <= cumulative)
    }

    /// Replaces the result of a deferred request.
    pub(super) fn conclude(&mut self, serial: u32, result: ReconfigResult) {
        for (answered, recorded) in &mut self.latest {
            if *answered == serial {
                *recorded = result;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_request_has_its_former_result_and_other_numbers_are_wrong() {
        let mut answers = Answers::new(u32::MAX);
        assert_eq!(answers.judge(u32::MAX), Judged::New);
        assert_eq!(answers.judge(u32::MAX - 1), Judged::Wrong, "there was no request before the first");
        answers.record(ReconfigResult::DENIED);
        answers.record(ReconfigResult::PERFORMED);
        answers.record(ReconfigResult::NOTHING_TO_DO);
        assert_eq!(answers.judge(u32::MAX), Judged::Wrong, "it is too old");
        assert_eq!(answers.judge(0), Judged::Repeated(ReconfigResult::PERFORMED));
        assert_eq!(answers.judge(1), Judged::Repeated(ReconfigResult::NOTHING_TO_DO));
        assert_eq!((answers.judge(2), answers.judge(3)), (Judged::New, Judged::Wrong));
        assert_eq!(answers.latest_serial(), 1);
    }

    #[test]
    fn deferred_reset_is_due_with_its_last_tsn_and_then_has_another_result() {
        let mut answers = Answers::new(5);
        answers.record(ReconfigResult::IN_PROGRESS);
        answers.defer(Deferred { serial: 5, last_tsn: 100, streams: StreamSet::All });
        assert_eq!(answers.take_due(99), None);
        let due = answers.take_due(100).map(|deferred| deferred.serial);
        assert_eq!((due, answers.take_due(100)), (Some(5), None));
        answers.conclude(5, ReconfigResult::PERFORMED);
        assert_eq!(answers.judge(5), Judged::Repeated(ReconfigResult::PERFORMED));
    }
}
