//! Batches of packets, as of a Wi-Fi transmission opportunity or a cable modem's grant.

use anabranch_core::time::{Span, Time};

use crate::error::{ConfigError, require};

/// Collects packets in the queue and sends them in batches at the link's rate. The transmission of a batch begins once its first
/// packet has waited for `period`, or once it has `most_packets`. Packets that arrive during the transmission belong to a later
/// batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aggregation {
    /// Maximum waiting time of the first packet of a batch, in addition to the transmission of the batch before. It is finite,
    /// since the last packets of a run would otherwise never be sent.
    pub period: Span,
    /// Maximum number of packets of a batch; `None` means no limit.
    pub most_packets: Option<u64>,
}

impl Aggregation {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        require(self.most_packets != Some(0), "aggregation", "must have at least one packet in a batch")
    }
}

/// State of the batch that is being sent.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    aggregation: Aggregation,
    /// Packets at the head of the queue that belong to the batch that is being sent.
    released: u64,
}

impl Batches {
    pub(crate) fn new(aggregation: Aggregation) -> Self {
        Batches { aggregation, released: 0 }
    }

    /// Releases the first of `waiting` packets, which arrived at `since`, or returns the time until which it waits.
    pub(crate) fn take(&mut self, now: Time, waiting: u64, since: Time) -> Result<(), Time> {
        if self.released == 0 {
            let due = since + self.aggregation.period;
            let most = self.aggregation.most_packets.unwrap_or(u64::MAX);
            if now < due && waiting < most {
                return Err(due);
            }
            self.released = waiting.min(most);
        }
        self.released -= 1;
        Ok(())
    }

    /// Removes packets of the batch that the queue dropped before their turn.
    pub(crate) fn leave_out(&mut self, dropped: u64) {
        self.released = self.released.saturating_sub(dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn batch_has_the_packets_that_wait_at_its_start() {
        let aggregation = Aggregation { period: Span::from_millis(5), most_packets: None };
        let mut batches = Batches::new(aggregation);
        assert_eq!(batches.take(at(1), 1, at(1)), Err(at(6)));
        assert_eq!(batches.take(at(3), 2, at(1)), Err(at(6)));
        assert_eq!([batches.take(at(6), 2, at(1)), batches.take(at(7), 2, at(3))], [Ok(()), Ok(())]);
        // Another packet has arrived during the transmission.
        assert_eq!(batches.take(at(8), 1, at(7)), Err(at(12)));
    }

    #[test]
    fn full_batch_is_sent_at_once_with_at_most_the_limit() {
        let aggregation = Aggregation { period: Span::from_millis(5), most_packets: Some(2) };
        let mut batches = Batches::new(aggregation);
        assert_eq!(batches.take(at(0), 1, at(0)), Err(at(5)));
        for waiting in [5, 4, 3, 2] {
            assert_eq!(batches.take(at(1), waiting, at(0)), Ok(()));
        }
        assert_eq!(batches.take(at(1), 1, at(0)), Err(at(5)), "the last one is alone in its batch");
        assert_eq!(batches.take(at(5), 1, at(0)), Ok(()));
        assert!(Aggregation { most_packets: Some(0), ..aggregation }.check().is_err());
    }
}
