//! Small messages beside a bulk flow: the times at which each was sent by the application, transmitted, and delivered.

use anabranch_core::time::{Span, Time};
use anabranch_core::{Association, SendOptions};
use bytes::{BufMut, Bytes, BytesMut};

use crate::run::metrics::MessageDelays;
use anabranch_scenario::MessagesBeside;

/// Maximum number of messages of a run, whose times are all stored.
const MOST_MESSAGES: usize = 1_000_000;

/// Source of messages at regular times. Each message begins with its number.
#[derive(Debug)]
pub(crate) struct BesideSource {
    messages: MessagesBeside,
    stream: u16,
    next: Option<Time>,
    /// Time at which each message was due.
    handed: Vec<Time>,
    /// Set if the latest message did not fit into the send buffer.
    refused: bool,
}

impl BesideSource {
    pub(crate) fn new(messages: MessagesBeside, stream: u16) -> Self {
        BesideSource { messages, stream, next: None, handed: Vec::new(), refused: false }
    }

    /// Starts the messages, once the association is open.
    pub(crate) fn open(&mut self, now: Time) {
        self.next.get_or_insert(now);
    }

    /// Returns the time of the next message.
    pub(crate) fn due(&self) -> Option<Time> {
        // A send buffer that empties wakes the application, so there is no deadline while it is full.
        self.next.filter(|_| !self.refused && self.handed.len() < MOST_MESSAGES)
    }

    /// Sends the messages that are due.
    pub(crate) fn send(&mut self, now: Time, association: &mut Association) {
        let options =
            SendOptions { stream: self.stream, unordered: !self.messages.ordered, ..SendOptions::default() };
        self.refused = false;
        while let Some(at) = self.due().filter(|at| *at <= now) {
            let message = numbered(self.handed.len() as u64, self.messages.size_bytes as usize);
            if association.send_at(now, message, options).is_err() {
                self.refused = true;
                return;
            }
            // The delay of a message that had to wait for room counts from the time at which it was due.
            self.handed.push(at);
            self.next = Some(at + self.messages.interval);
        }
    }

    /// Returns the delays of messages that were due from `counted_from` on. A message that has not arrived by the end of the run
    /// counts with its waiting time so far, so that a starved stream does not appear fast.
    pub(crate) fn delays(
        &self,
        counted_from: Time,
        end: Time,
        left: &Arrivals,
        arrived: &Arrivals,
    ) -> MessageDelays {
        let counted = || self.handed.iter().enumerate().filter(|(_, at)| **at >= counted_from);
        let until = |moments: &Arrivals| {
            let mut delays: Vec<Span> =
                counted().map(|(number, at)| moments.at(number).unwrap_or(end).since(*at)).collect();
            delays.sort_unstable();
            delays
        };
        let (waits, delays) = (until(left), until(arrived));
        MessageDelays {
            sent: delays.len() as u64,
            delivered: counted().filter(|(number, _)| arrived.at(*number).is_some()).count() as u64,
            median_ms: quantile_ms(&delays, 50),
            p99_ms: quantile_ms(&delays, 99),
            max_ms: quantile_ms(&delays, 100),
            queue_p99_ms: quantile_ms(&waits, 99),
        }
    }
}

/// Times of first observation by the number of the message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrivals(Vec<Option<Time>>);

impl Arrivals {
    /// Records a message, which its beginning identifies.
    pub(crate) fn see(&mut self, now: Time, message: &[u8]) {
        let Some(number) = message.first_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)) else { return };
        let Some(number) = usize::try_from(number).ok().filter(|number| *number < MOST_MESSAGES) else {
            return;
        };
        if self.0.len() <= number {
            self.0.resize(number + 1, None);
        }
        self.0[number].get_or_insert(now);
    }

    fn at(&self, number: usize) -> Option<Time> {
        self.0.get(number).copied().flatten()
    }
}

fn numbered(number: u64, size: usize) -> Bytes {
    let mut bytes = BytesMut::with_capacity(size);
    bytes.put_u64(number);
    bytes.resize(size, 0xA5);
    bytes.freeze()
}

/// Returns the delay that this percentage of the messages does not exceed, or `None` without messages.
pub(crate) fn quantile_ms(sorted: &[Span], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100).checked_sub(1)?;
    sorted.get(rank).map(|delay| delay.as_secs_f64() * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(ms)
    }

    #[test]
    fn a_message_that_never_arrives_counts_with_its_age() {
        let messages = MessagesBeside { size_bytes: 100, interval: Span::from_millis(20), ordered: false };
        let source = BesideSource { handed: vec![at(0), at(20), at(40)], ..BesideSource::new(messages, 1) };
        let (mut left, mut arrived) = (Arrivals::default(), Arrivals::default());
        left.see(at(25), &numbered(1, 100));
        arrived.see(at(50), &numbered(1, 100));
        // A copy does not change the time of arrival.
        arrived.see(at(90), &numbered(1, 100));
        let delays = source.delays(at(20), at(1040), &left, &arrived);
        let expected = MessageDelays {
            sent: 2,
            delivered: 1,
            median_ms: Some(30.0),
            p99_ms: Some(1000.0),
            max_ms: Some(1000.0),
            queue_p99_ms: Some(1000.0),
        };
        assert_eq!(delays, expected);
    }

    #[test]
    fn numbers_out_of_range_and_short_messages_are_passed_over() {
        let mut seen = Arrivals::default();
        seen.see(at(1), &u64::MAX.to_be_bytes());
        seen.see(at(1), b"short");
        assert!(seen.0.is_empty());
    }

    #[test]
    fn no_messages_have_no_delay() {
        assert_eq!(quantile_ms(&[], 99), None);
        assert_eq!(quantile_ms(&[Span::from_millis(3)], 99), Some(3.0));
    }
}
