//! Measures of delivery that need no picture: frames by type and outcome, stalls, delays.

use serde::Serialize;

use crate::statistics::total;
use crate::video::{Delivery, Fate, FrameType, Playout};

/// Frames of one type by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FateCounts {
    /// Shown frames.
    pub good: u64,
    /// Frames with a missing packet.
    pub lost: u64,
    /// Frames that were complete after their playout.
    pub late: u64,
    /// Frames in time whose references are missing.
    pub undecodable: u64,
}

/// Frames by type and outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(non_snake_case, reason = "these are the letters of the types, and keys of results")]
pub struct TypeCounts {
    /// I frames.
    pub I: FateCounts,
    /// P frames.
    pub P: FateCounts,
    /// B frames.
    pub B: FateCounts,
}

/// Delays of complete frames from transmission to the last packet. Percentiles are by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Delays {
    /// Number of complete frames.
    pub frames: u64,
    /// Mean delay in ms.
    pub mean_ms: f64,
    /// Median delay in ms.
    pub p50_ms: f64,
    /// 95th percentile in ms.
    pub p95_ms: f64,
    /// 99th percentile in ms.
    pub p99_ms: f64,
    /// Largest delay in ms.
    pub largest_ms: f64,
}

/// Outcome of a video.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VideoResult {
    /// Frames with a playout before the end of the run. All other figures are about these.
    pub frames: u64,
    /// Frames with a later playout.
    pub not_due: u64,
    /// Frames by type and outcome.
    pub fates: TypeCounts,
    /// Share of good frames; 0 without frames.
    pub decodable_frame_ratio: f64,
    /// Number of sequences of frames that are not good, in the display order.
    pub stalls: u64,
    /// Total time of stalls in seconds.
    pub stall_s: f64,
    /// Longest stall in seconds.
    pub longest_stall_s: f64,
    /// Delays, if any frame is complete.
    pub delay: Option<Delays>,
    /// Outcome of each frame in the display order, run-length encoded: a number of frames, and the first letter of their outcome
    /// (`t` for late).
    pub frame_fates: String,
}

impl FateCounts {
    fn add(&mut self, fate: Fate) {
        let count = match fate {
            Fate::Good => &mut self.good,
            Fate::Lost => &mut self.lost,
            Fate::Late => &mut self.late,
            Fate::Undecodable => &mut self.undecodable,
        };
        *count += 1;
    }

    /// Returns the number of frames that are not shown.
    pub fn dropped(&self) -> u64 {
        self.lost + self.late + self.undecodable
    }
}

impl TypeCounts {
    /// Returns the frames of a type.
    pub fn of(&self, kind: FrameType) -> &FateCounts {
        match kind {
            FrameType::I => &self.I,
            FrameType::P => &self.P,
            FrameType::B => &self.B,
        }
    }

    fn add(&mut self, kind: FrameType, fate: Fate) {
        let counts = match kind {
            FrameType::I => &mut self.I,
            FrameType::P => &mut self.P,
            FrameType::B => &mut self.B,
        };
        counts.add(fate);
    }

    /// Returns the frames of all types.
    pub fn total(&self) -> FateCounts {
        let sum =
            |count: fn(&FateCounts) -> u64| FrameType::ALL.iter().map(|kind| count(self.of(*kind))).sum();
        FateCounts {
            good: sum(|each| each.good),
            lost: sum(|each| each.lost),
            late: sum(|each| each.late),
            undecodable: sum(|each| each.undecodable),
        }
    }
}

impl VideoResult {
    /// Computes the measures of frames that were due, in any order. `not_due` is the number of other frames.
    pub fn of(mut due: Vec<Delivery>, not_due: u64, playout: &Playout) -> VideoResult {
        due.sort_by_key(|each| each.frame.display);
        let mut fates = TypeCounts::default();
        due.iter().for_each(|each| fates.add(each.frame.kind, each.fate));
        let shown_for_ms =
            |run: &[Delivery]| total(run.iter().map(|each| playout.shown_for_ms(each.frame.display)));
        let stalls: Vec<f64> = due
            .chunk_by(|a, b| (a.fate == Fate::Good) == (b.fate == Fate::Good))
            .filter(|run| run[0].fate != Fate::Good)
            .map(shown_for_ms)
            .collect();
        VideoResult {
            frames: due.len() as u64,
            not_due,
            fates,
            decodable_frame_ratio: fates.total().good as f64 / due.len().max(1) as f64,
            stalls: stalls.len() as u64,
            stall_s: seconds(total(stalls.iter().copied())),
            longest_stall_s: seconds(stalls.iter().copied().fold(0.0, f64::max)),
            delay: delays(due.iter().filter_map(Delivery::delay_ms).collect()),
            frame_fates: run_lengths(&due),
        }
    }
}

/// Returns milliseconds as seconds, rounded to the microsecond.
fn seconds(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1e6
}

fn delays(mut delays_ms: Vec<f64>) -> Option<Delays> {
    delays_ms.sort_by(f64::total_cmp);
    let largest_ms = *delays_ms.last()?;
    let rank = |percent: usize| delays_ms[(percent * delays_ms.len()).div_ceil(100).max(1) - 1];
    Some(Delays {
        frames: delays_ms.len() as u64,
        mean_ms: delays_ms.iter().sum::<f64>() / delays_ms.len() as f64,
        p50_ms: rank(50),
        p95_ms: rank(95),
        p99_ms: rank(99),
        largest_ms,
    })
}

fn run_lengths(shown: &[Delivery]) -> String {
    let letter = |fate| match fate {
        Fate::Good => 'g',
        Fate::Lost => 'l',
        Fate::Late => 't',
        Fate::Undecodable => 'u',
    };
    let runs = shown.chunk_by(|a, b| a.fate == b.fate);
    runs.map(|run| format!("{}{}", run.len(), letter(run[0].fate))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::Frame;

    #[test]
    fn measures_are_taken_in_the_order_of_display() {
        let fates = [Fate::Good, Fate::Lost, Fate::Late, Fate::Good, Fate::Undecodable];
        let frame = |(display, fate): (usize, Fate)| Delivery {
            frame: Frame { display, kind: FrameType::ALL[display % 3], size_bytes: 1, time_ms: 10.0 },
            fate,
            complete_ms: (fate != Fate::Lost).then_some(20.0 + display as f64),
        };
        let due: Vec<Delivery> = fates.into_iter().enumerate().rev().map(frame).collect();
        let each_100_ms =
            |display| Frame { display, kind: FrameType::I, size_bytes: 1, time_ms: display as f64 * 100.0 };
        let playout = Playout::of(&[0, 1, 2, 3, 4].map(each_100_ms), 50.0);
        let result = VideoResult::of(due, 2, &playout);
        assert_eq!(result.frame_fates, "1g1l1t1g1u");
        assert_eq!((result.stalls, result.stall_s, result.longest_stall_s), (2, 0.3, 0.2));
        assert_eq!(result.decodable_frame_ratio, 0.4);
        assert_eq!(result.fates.P, FateCounts { lost: 1, undecodable: 1, ..FateCounts::default() });
        let delay = result.delay.expect("complete frames");
        assert_eq!((delay.frames, delay.p50_ms, delay.p99_ms, delay.largest_ms), (4, 12.0, 14.0, 14.0));
        assert_eq!(delay.mean_ms, 12.25);
    }

    #[test]
    fn measures_of_a_clip_without_frames_are_undefined() {
        let none = VideoResult::of(Vec::new(), 3, &Playout::of(&[], 50.0));
        assert_eq!((none.decodable_frame_ratio, none.delay), (0.0, None));
        // A negative zero equals 0.0 and is printed as "-0.00".
        assert!(none.stall_s.is_sign_positive() && none.stall_s == 0.0);
    }
}
