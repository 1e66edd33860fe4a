//! Sender of a test's data.

use std::sync::Mutex;
use std::time::Duration;

use anabranch_net::{Association, SendError, SendOptions};
use bytes::Bytes;
use tokio::time::Instant;

use super::plan::{Limit, Plan};
use super::protocol::{CONTROL_STREAM, Figure};

/// Maximum time that a message waits for its turn. A peer may request a rate at which it would wait for years.
const LONGEST_WAIT: Duration = Duration::from_secs(10 * 86_400);

/// Counter of the data of one direction at either end.
#[derive(Debug)]
pub(super) struct Tally {
    omit: Duration,
    /// Length of the period that counts, for a receiver in a test by time.
    period: Option<Duration>,
    /// Beginning of the figures. In a test by time, the receiver's figures begin with the first message, which shifts the sender's
    /// period by the one-way delay.
    from: Option<Instant>,
    latest: Option<Instant>,
    total_bytes: u64,
    bytes: u64,
    messages: u64,
}

impl Tally {
    /// Returns the counter of a sender that begins now.
    pub(super) fn of_sender(plan: &Plan, start: Instant) -> Self {
        Tally {
            omit: plan.omit(),
            period: None,
            from: Some(start + plan.omit()),
            latest: None,
            total_bytes: 0,
            bytes: 0,
            messages: 0,
        }
    }

    /// Returns the counter of a receiver that begins now.
    pub(super) fn of_receiver(plan: &Plan, start: Instant) -> Self {
        let period = plan.time();
        let from = period.is_none().then_some(start + plan.omit());
        Tally { period, from, ..Tally::of_sender(plan, start) }
    }

    /// Counts bytes that were sent or received now. `whole` is set if they complete a message.
    pub(super) fn add(&mut self, now: Instant, bytes: u64, whole: bool) {
        self.total_bytes += bytes;
        let from = *self.from.get_or_insert(now + self.omit);
        if now >= from && self.period.is_none_or(|period| now < from + period) {
            self.bytes += bytes;
            self.messages += u64::from(whole);
            self.latest = Some(now);
        }
    }

    /// Records that the peer has received everything now.
    pub(super) fn arrived(&mut self, now: Instant) {
        self.latest = self.latest.max(Some(now));
    }

    /// Returns the bytes from the very beginning.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Returns the figures of a running test: without the part left out, up to now or to the latest bytes.
    pub(super) fn figure_at(&self, now: Instant) -> Figure {
        let until = match self.period {
            Some(period) => self.from.map(|from| now.min(from + period)),
            None => self.latest,
        };
        self.figure(until.zip(self.from).map_or(Duration::ZERO, |(until, from)| until.duration_since(from)))
    }

    /// Returns the figures of a test that has ended: those of the whole period, or up to the latest bytes.
    pub(super) fn final_figure(&self) -> Figure {
        match (self.period, self.latest.zip(self.from)) {
            (Some(period), _) => self.figure(period),
            (None, Some((latest, from))) => self.figure(latest.duration_since(from)),
            (None, None) => self.figure(Duration::ZERO),
        }
    }

    fn figure(&self, time: Duration) -> Figure {
        Figure { bytes: self.bytes, messages: self.messages, seconds: time.as_secs_f64() }
    }
}

/// Sends until the plan's limit, with streams in turn, and counts the sent data. A test by time lasts to its end even if the rate
/// allows no further message before.
///
/// # Errors
/// Returns the reason why a message was not accepted.
pub(super) async fn send_all(
    association: &Association,
    plan: &Plan,
    start: Instant,
    tally: &Mutex<Tally>,
) -> Result<(), SendError> {
    let content = content(plan.message_bytes());
    let end = plan.time().map(|time| start + plan.omit() + time);
    let (mut stream, mut sent_bytes) = (0, 0);
    while let Some(length) =
        next_length(plan, sent_bytes).filter(|_| end.is_none_or(|end| Instant::now() < end))
    {
        if let Some(due) = due(plan, sent_bytes, length) {
            tokio::time::sleep_until(start + due).await;
        }
        stream = stream % plan.streams + 1;
        let options = SendOptions { stream: CONTROL_STREAM + stream, ..SendOptions::default() };
        let payload = content.slice(..length as usize);
        // A test by time ends in time even if the send buffer is full.
        match end {
            Some(end) => match tokio::time::timeout_at(end, association.send(payload, options)).await {
                Ok(sent) => sent?,
                Err(_) => break,
            },
            None => association.send(payload, options).await?,
        }
        sent_bytes += length;
        lock(tally).add(Instant::now(), length, true);
    }
    if let Some(end) = end {
        tokio::time::sleep_until(end).await;
    }
    Ok(())
}

/// Returns the time after the start at which the next message is sent under the plan's rate. A test by time begins with a message,
/// and its last message has time to arrive. In a test by bytes, a message is sent after the time that its bytes take at the rate.
fn due(plan: &Plan, sent_bytes: u64, length: u64) -> Option<Duration> {
    let rate = plan.rate_bps?;
    let paid_bytes = match plan.limit {
        Limit::TimeMs(_) => sent_bytes,
        Limit::Bytes(_) => sent_bytes.saturating_add(length),
    };
    let due = Duration::try_from_secs_f64(paid_bytes as f64 * 8.0 / rate as f64);
    Some(due.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT))
}

/// Locks the counter. A panic cannot leave it half updated.
pub(super) fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Returns the user bytes of the next message, or `None` at the limit.
fn next_length(plan: &Plan, sent_bytes: u64) -> Option<u64> {
    let left = plan.target_bytes().saturating_sub(sent_bytes);
    Some(plan.message_bytes().min(left)).filter(|length| *length > 0)
}

/// Returns bytes that no middlebox mistakes for padding.
fn content(length: u64) -> Bytes {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::PLAN;
    use super::*;

    fn at(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn omitted_seconds_count_toward_the_total_only() {
        let start = Instant::now();
        let mut tally = Tally::of_sender(&Plan { omit_ms: 1000, ..PLAN }, start);
        tally.add(at(start, 900), 10, true);
        tally.add(at(start, 1500), 7, false);
        tally.add(at(start, 3000), 5, true);
        assert_eq!(tally.total_bytes(), 22);
        assert_eq!(tally.final_figure(), Figure { bytes: 12, messages: 1, seconds: 2.0 });
        assert_eq!(tally.final_figure().rate_bps(), 48.0);
        tally.arrived(at(start, 4000));
        assert_eq!(tally.final_figure().seconds, 3.0);
    }

    #[test]
    fn receiver_counts_bytes_that_arrive_within_the_time() {
        let start = Instant::now();
        let plan = Plan { limit: Limit::TimeMs(2000), omit_ms: 500, ..PLAN };
        let mut tally = Tally::of_receiver(&plan, start);
        assert_eq!(tally.figure_at(at(start, 70)).seconds, 0.0);
        // The first message was in flight for 100 ms, and the figures exclude the 500 ms after it.
        for (time, bytes) in [(100, 1), (599, 2), (600, 4), (2599, 8), (2600, 16)] {
            tally.add(at(start, time), bytes, true);
        }
        assert_eq!(tally.total_bytes(), 31);
        assert_eq!(tally.final_figure(), Figure { bytes: 12, messages: 2, seconds: 2.0 });
        assert_eq!(tally.figure_at(at(start, 1600)).seconds, 1.0);
        assert_eq!(tally.figure_at(at(start, 9000)).seconds, 2.0);
    }

    #[test]
    fn last_message_has_the_length_of_the_remainder() {
        let plan = Plan { limit: Limit::Bytes(250), ..PLAN };
        let lengths: Vec<_> = [0, 100, 200, 250].map(|sent| next_length(&plan, sent)).into();
        assert_eq!(lengths, [Some(100), Some(100), Some(50), None]);
        let timed = Plan { limit: Limit::TimeMs(1000), rate_bps: Some(2000), ..PLAN };
        let lengths: Vec<_> = [0, 225, 240, 250].map(|sent| next_length(&timed, sent)).into();
        assert_eq!(lengths, [Some(62), Some(25), Some(10), None]);
    }

    #[test]
    fn messages_are_due_as_the_rate_pays_for_them() {
        let timed = Plan { limit: Limit::TimeMs(1000), rate_bps: Some(8000), ..PLAN };
        assert_eq!(due(&timed, 0, 100), Some(Duration::ZERO));
        assert_eq!(due(&timed, 900, 100), Some(Duration::from_millis(900)));
        let by_bytes = Plan { limit: Limit::Bytes(1000), ..timed };
        assert_eq!(due(&by_bytes, 900, 100), Some(Duration::from_secs(1)));
        assert_eq!(due(&Plan { rate_bps: None, ..timed }, 900, 100), None);
        let ages = Plan { limit: Limit::Bytes(u64::MAX / 2), rate_bps: Some(1), ..PLAN };
        assert_eq!(due(&ages, u64::MAX, 100), Some(LONGEST_WAIT));
    }
}
