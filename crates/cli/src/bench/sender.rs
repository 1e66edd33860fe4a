//! Sending the data of a test.

use std::sync::Mutex;
use std::time::Duration;

use anabranch_net::{Association, SendError, SendOptions};
use bytes::Bytes;
use tokio::time::Instant;

use super::plan::{Limit, Plan};
use super::protocol::{CONTROL_STREAM, Figure};

/// Counts what is carried, from either end.
#[derive(Debug)]
pub(super) struct Tally {
    /// When the figures begin.
    from: Instant,
    latest: Instant,
    total_bytes: u64,
    bytes: u64,
    messages: u64,
}

impl Tally {
    pub(super) fn new(start: Instant, omit: Duration) -> Self {
        let from = start + omit;
        Tally { from, latest: from, total_bytes: 0, bytes: 0, messages: 0 }
    }

    /// Bytes that were carried now, and whether a message is complete with them.
    pub(super) fn add(&mut self, now: Instant, bytes: u64, whole: bool) {
        self.total_bytes += bytes;
        if now >= self.from {
            self.bytes += bytes;
            self.messages += u64::from(whole);
            self.latest = now;
        }
    }

    /// The peer has everything only now.
    pub(super) fn arrived(&mut self, now: Instant) {
        self.latest = self.latest.max(now);
    }

    /// From the very beginning.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Without what was left out, until the latest bytes.
    pub(super) fn figure(&self) -> Figure {
        let seconds = self.latest.duration_since(self.from).as_secs_f64();
        Figure { bytes: self.bytes, messages: self.messages, seconds }
    }
}

/// Sends until the plan's limit, with streams in turn. What was handed over is counted as it goes.
///
/// # Errors
/// Why a message was not taken.
pub(super) async fn send_all(
    association: &Association,
    plan: &Plan,
    start: Instant,
    tally: &Mutex<Tally>,
) -> Result<(), SendError> {
    let content = content(plan.length);
    let mut stream = 0;
    let mut sent_bytes = 0;
    while let Some(length) = next_length(plan, start.elapsed(), sent_bytes) {
        if let Some(due) =
            plan.rate_bps.map(|rate| Duration::from_secs_f64(sent_bytes as f64 * 8.0 / rate as f64))
        {
            let due = start + due;
            match end(plan, start) {
                Some(end) if due > end => break,
                _ => tokio::time::sleep_until(due).await,
            }
        }
        stream = stream % plan.streams + 1;
        let options = SendOptions { stream: CONTROL_STREAM + stream, ..SendOptions::default() };
        let payload = content.slice(..length as usize);
        // A test by time ends in time although the send buffer may be full.
        match end(plan, start) {
            Some(end) => match tokio::time::timeout_at(end, association.send(payload, options)).await {
                Ok(sent) => sent?,
                Err(_) => break,
            },
            None => association.send(payload, options).await?,
        }
        sent_bytes += length;
        lock(tally).add(Instant::now(), length, true);
    }
    Ok(())
}

/// Nothing under this lock can be left half done by a panic.
pub(super) fn lock(tally: &Mutex<Tally>) -> std::sync::MutexGuard<'_, Tally> {
    tally.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// When a test by time ends.
fn end(plan: &Plan, start: Instant) -> Option<Instant> {
    match plan.limit {
        Limit::TimeMs(time) => Some(start + plan.omit() + Duration::from_millis(time)),
        Limit::Bytes(_) => None,
    }
}

/// User bytes of the next message, if there is to be one.
fn next_length(plan: &Plan, elapsed: Duration, sent_bytes: u64) -> Option<u64> {
    match plan.limit {
        Limit::TimeMs(time) => (elapsed < plan.omit() + Duration::from_millis(time)).then_some(plan.length),
        Limit::Bytes(bytes) => {
            Some(plan.length.min(bytes.saturating_sub(sent_bytes))).filter(|length| *length > 0)
        }
    }
}

/// Bytes that no middle box takes for padding.
fn content(length: u64) -> Bytes {
    (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

#[cfg(test)]
mod tests {
    use super::super::plan::tests::PLAN;
    use super::*;

    #[test]
    fn what_is_left_out_counts_toward_the_whole_only() {
        let start = Instant::now();
        let mut tally = Tally::new(start, Duration::from_secs(1));
        tally.add(start + Duration::from_millis(900), 10, true);
        tally.add(start + Duration::from_millis(1500), 7, false);
        tally.add(start + Duration::from_millis(3000), 5, true);
        assert_eq!(tally.total_bytes(), 22);
        assert_eq!(tally.figure(), Figure { bytes: 12, messages: 1, seconds: 2.0 });
        assert_eq!(tally.figure().rate_bps(), 48.0);
        tally.arrived(start + Duration::from_millis(4000));
        assert_eq!(tally.figure().seconds, 3.0);
    }

    #[test]
    fn the_last_message_is_as_long_as_what_is_left() {
        let plan = Plan { limit: Limit::Bytes(250), ..PLAN };
        let lengths: Vec<_> = [0, 100, 200, 250].map(|sent| next_length(&plan, Duration::ZERO, sent)).into();
        assert_eq!(lengths, [Some(100), Some(100), Some(50), None]);
    }

    #[test]
    fn a_test_by_time_lasts_as_long_as_both_its_parts() {
        let plan = Plan { limit: Limit::TimeMs(1000), omit_ms: 500, ..PLAN };
        assert_eq!(next_length(&plan, Duration::from_millis(1400), 0), Some(100));
        assert_eq!(next_length(&plan, Duration::from_millis(1500), 0), None);
    }
}
