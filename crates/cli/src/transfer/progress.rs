//! Progress of one transfer over time: its rate, its last movement, and the current file.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anabranch_transfer::protocol::MAX_OPEN_OFFERS;
use anabranch_transfer::{Event, Totals};

use super::figures::per_second;
use super::layout::{Phase, Waiting};

/// Time constant of the smoothed rate, in seconds.
const SMOOTHING_S: f64 = 4.0;
/// Time without any movement after which a transfer counts as stalled. A block of 1 MiB at 1 Mbit/s takes less.
const STALLED_AFTER: Duration = Duration::from_secs(10);

/// Progress of one transfer.
#[derive(Debug)]
pub(super) struct Progress {
    began: Instant,
    /// Unset while a new receiver has not accepted the files.
    is_begun: bool,
    /// Awaited step of the receiver.
    waiting: Option<Waiting>,
    last: Instant,
    last_bytes: u64,
    bytes_per_s: Option<f64>,
    /// Counters that change with any progress.
    movement: (u64, u64, u64),
    moved_at: Instant,
    lost_at: Option<Instant>,
    /// Escaped names of files that have begun and are not done, oldest first.
    open: VecDeque<String>,
    /// Name of the file that was done last.
    done: Option<String>,
}

/// Rates at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Rate since the previous call, in bytes per second.
    pub(super) latest: f64,
    /// Smoothed rate over the last seconds, in bytes per second.
    pub(super) smoothed: f64,
    pub(super) phase: Phase,
}

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Progress {
            began: now,
            is_begun: true,
            waiting: None,
            last: now,
            last_bytes: 0,
            bytes_per_s: None,
            movement: (0, 0, 0),
            moved_at: now,
            lost_at: None,
            open: VecDeque::new(),
            done: None,
        }
    }

    /// Returns the time since the transfer began. The time that a new receiver took to connect and to answer is excluded.
    pub(super) fn elapsed(&self, now: Instant) -> Duration {
        now - self.began
    }

    /// Records that the transfer waits for this step of the receiver.
    pub(super) fn wait_for(&mut self, step: Waiting) {
        self.waiting = Some(step);
        self.is_begun &= step == Waiting::Return;
    }

    /// Returns the awaited step of the receiver.
    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.waiting
    }

    /// Records an event about files or the association.
    pub(super) fn event(&mut self, event: &Event, now: Instant) {
        match event {
            Event::Started { .. } if self.is_begun => (self.waiting, self.moved_at) = (None, now),
            Event::Started { .. } => *self = Progress::new(now),
            Event::Begun { name, .. } => {
                let name = name.to_string();
                if !self.open.contains(&name) && self.open.len() < MAX_OPEN_OFFERS {
                    self.open.push_back(name);
                }
            }
            Event::Done { name, .. } => {
                let name = name.to_string();
                self.open.retain(|open| *open != name);
                self.done = Some(name);
            }
            Event::Disconnected(_) => {
                self.open.clear();
                self.lost_at = Some(now);
            }
            Event::Reconnected => {
                (self.lost_at, self.moved_at) = (None, now);
            }
            _ => {}
        }
    }

    /// Returns the oldest file that is not done, or else the one that was done last.
    pub(super) fn file(&self) -> Option<&str> {
        self.open.front().or(self.done.as_ref()).map(String::as_str)
    }

    /// Computes rates from the counters. Call once per second.
    pub(super) fn pace(&mut self, totals: &Totals, now: Instant) -> Pace {
        let bytes = new_bytes(totals);
        let time = now - self.last;
        let latest = per_second(bytes.saturating_sub(self.last_bytes), time);
        (self.last, self.last_bytes) = (now, bytes);
        let weight = 1.0 - (-time.as_secs_f64() / SMOOTHING_S).exp();
        let before = self.bytes_per_s.unwrap_or(latest);
        let smoothed = before + weight * (latest - before);
        // The rate is undefined before the first bytes.
        self.bytes_per_s = (bytes > 0).then_some(smoothed);
        Pace { latest, smoothed, phase: self.phase(totals, now) }
    }

    fn phase(&mut self, totals: &Totals, now: Instant) -> Phase {
        let movement = (totals.held_bytes, totals.moved_bytes, totals.done_files + totals.failed_files);
        if std::mem::replace(&mut self.movement, movement) != movement {
            self.moved_at = now;
        }
        let idle = now - self.moved_at;
        match (self.waiting, self.lost_at) {
            (Some(step), _) => Phase::Waiting(step),
            (None, Some(lost_at)) => Phase::Disconnected(now - lost_at),
            (None, None) if idle >= STALLED_AFTER => Phase::Stalled(idle),
            (None, None) => Phase::Moving,
        }
    }
}

/// Returns the bytes that arrived in this run, without those that existed before.
pub(super) fn new_bytes(totals: &Totals) -> u64 {
    totals.held_bytes.saturating_sub(totals.reused_bytes)
}

#[cfg(test)]
mod tests {
    use anabranch_transfer::protocol::Outcome;

    use super::*;

    fn held(held_bytes: u64, reused_bytes: u64) -> Totals {
        Totals { held_bytes, reused_bytes, ..Totals::default() }
    }

    #[test]
    fn resumed_bytes_have_no_rate() {
        let began = Instant::now();
        let mut progress = Progress::new(began);
        let pace = progress.pace(&held(31_000_000, 31_000_000), began + Duration::from_secs(1));
        assert!(pace.latest.abs() + pace.smoothed.abs() < f64::EPSILON, "{pace:?}");
        let pace = progress.pace(&held(31_001_000, 31_000_000), began + Duration::from_secs(2));
        assert!((pace.latest - 1000.0).abs() < 1.0, "{pace:?}");
    }

    #[test]
    fn smoothed_rate_follows_a_change_within_seconds() {
        let began = Instant::now();
        let mut progress = Progress::new(began);
        let mut bytes = 0;
        let mut run = |seconds: std::ops::Range<u64>, per_second: u64| {
            let mut smoothed = 0.0;
            for second in seconds {
                bytes += per_second;
                smoothed = progress.pace(&held(bytes, 0), began + Duration::from_secs(second + 1)).smoothed;
            }
            smoothed
        };
        assert!((run(0..5, 1_000_000) - 1e6).abs() < 1.0, "a steady rate is shown as it is");
        let after = run(5..15, 100_000);
        assert!((100_000.0..200_000.0).contains(&after), "{after}");
    }

    #[test]
    fn idle_transfer_is_stalled_until_something_moves() {
        let began = Instant::now();
        let mut progress = Progress::new(began);
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(progress.pace(&held(5, 0), at(1)).phase, Phase::Moving);
        assert_eq!(progress.pace(&held(5, 0), at(10)).phase, Phase::Moving);
        assert_eq!(progress.pace(&held(5, 0), at(12)).phase, Phase::Stalled(Duration::from_secs(11)));
        let moved = Totals { moved_bytes: 1, ..held(5, 0) };
        assert_eq!(progress.pace(&moved, at(13)).phase, Phase::Moving);
    }

    #[test]
    fn lost_association_is_shown_until_reconnected() {
        let began = Instant::now();
        let mut progress = Progress::new(began);
        let at = |seconds| began + Duration::from_secs(seconds);
        progress.event(&Event::Disconnected("no route".into()), at(3));
        assert_eq!(progress.pace(&held(5, 0), at(8)).phase, Phase::Disconnected(Duration::from_secs(5)));
        progress.event(&Event::Reconnected, at(30));
        assert_eq!(progress.pace(&held(5, 0), at(31)).phase, Phase::Moving);
    }

    #[test]
    fn time_before_the_receiver_accepts_is_no_part_of_the_transfer() {
        let began = Instant::now();
        let mut progress = Progress::new(began);
        let at = |seconds| began + Duration::from_secs(seconds);
        let started = Event::Started { is_fetched: true, names: Vec::new() };
        for step in [Waiting::Receiver, Waiting::Answer] {
            progress.wait_for(step);
            assert_eq!(progress.pace(&held(0, 0), at(30)).phase, Phase::Waiting(step));
        }
        progress.event(&started, at(40));
        assert_eq!(progress.elapsed(at(43)), Duration::from_secs(3));
        progress.wait_for(Waiting::Return);
        assert_eq!(progress.pace(&held(5, 0), at(60)).phase, Phase::Waiting(Waiting::Return));
        progress.event(&started, at(70));
        assert_eq!(progress.pace(&held(5, 0), at(71)).phase, Phase::Moving);
        assert_eq!(progress.elapsed(at(71)), Duration::from_secs(31), "a receiver that returns resumes");
    }

    #[test]
    fn oldest_open_file_is_the_current_one() {
        let now = Instant::now();
        let mut progress = Progress::new(now);
        let begun = |name: &str| Event::Begun { name: name.into(), size_bytes: None, reused_bytes: 0 };
        let done =
            |name: &str| Event::Done { name: name.into(), size_bytes: None, outcome: Outcome::Identical };
        for event in [begun("film.mkv"), begun("a"), done("a"), begun("b\u{1b}[2J")] {
            progress.event(&event, now);
        }
        assert_eq!(progress.file(), Some("film.mkv"));
        progress.event(&done("film.mkv"), now);
        assert_eq!(progress.file(), Some("b\\u{1b}[2J"), "names are escaped");
        progress.event(&done("b\u{1b}[2J"), now);
        assert_eq!(progress.file(), Some("b\\u{1b}[2J"), "the last one stays");
    }
}
