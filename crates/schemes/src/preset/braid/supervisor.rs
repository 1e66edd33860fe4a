//! Return to one path after several paths together delivered less in order than the best of them would alone.
//!
//! The scheduler places data by a model of the paths. If the model is wrong, chunks on one path can hold back the data of all
//! others. The supervisor only compares results, so that it needs no model of the cause.

use anabranch_core::time::{Span, Time};
use anabranch_core::{MAX_PATHS, PathId, PathSet};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "supervisor",
    rule: text!(
        "if less than {} of the goodput of the best path alone arrives in order in a period, all other \
         paths are withdrawn. One period later the goodput alone is measured for a period: if it is not \
         higher than together by the same factor, all paths return, and the expected goodput of this path \
         is corrected by the ratio of measured to expected for {}. Otherwise one path at a time is readmitted, \
         the first after {}, and withdrawn again by the same comparison. Each withdrawal of a path \
         doubles its time until the next attempt, up to {}. {} periods without a shortfall reset this time",
        SUFFICIENT,
        TRUST,
        FIRST_BACK_OFF,
        LONGEST_BACK_OFF,
        PERIODS_OF_SUCCESS,
    ),
    file: file!(),
}];

/// Fraction of the goodput of the best path alone below which several paths together have a shortfall.
const SUFFICIENT: f64 = 0.9;
/// Time from a withdrawal until the path is first readmitted.
const FIRST_BACK_OFF: Span = Span::from_secs(2);
/// Maximum time from a withdrawal until the path is readmitted.
const LONGEST_BACK_OFF: Span = Span::from_secs(64);
/// Number of periods without a shortfall after which all back-offs are reset.
const PERIODS_OF_SUCCESS: u32 = 10;
/// Time for which a correction of the expected goodput is used.
const TRUST: Span = Span::from_secs(60);

/// Goodput of one period, in bytes per second.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    /// End of the period.
    pub(super) now: Time,
    /// Goodput in order over all paths.
    pub(super) goodput: f64,
    /// Expected goodput of each active path alone; `None` for the others.
    pub(super) alone: [Option<f64>; MAX_PATHS],
}

impl Period {
    fn active(&self) -> PathSet {
        let ids = (0..MAX_PATHS).filter(|at| self.alone[*at].is_some());
        ids.map(PathId::new).collect()
    }
}

/// Stage of the supervision.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// Paths are compared with the best one.
    Watching,
    /// All but one path are withdrawn. Data of the others still arrives.
    Settling { kept: PathId, together: f64 },
    /// The goodput of one path alone is measured, to compare it with that of all.
    Measuring { kept: PathId, together: f64 },
    /// A path was readmitted, and its first period is not over.
    Trying(PathId),
}

/// Back-off of one path.
#[derive(Clone, Copy, Debug, Default)]
struct BackOff {
    /// Time until the next attempt after the latest withdrawal; zero before the first.
    length: Span,
    retry_at: Time,
}

/// Ratio of measured to expected goodput of a path alone.
#[derive(Clone, Copy, Debug)]
struct Correction {
    factor: f64,
    until: Time,
}

/// Supervisor of the paths of an association.
#[derive(Clone, Debug)]
pub(super) struct Supervisor {
    stage: Stage,
    withdrawn: PathSet,
    back_offs: [BackOff; MAX_PATHS],
    corrections: [Option<Correction>; MAX_PATHS],
    /// Number of periods over all paths since the latest shortfall.
    successes: u32,
}

impl Default for Supervisor {
    fn default() -> Self {
        Supervisor {
            stage: Stage::Watching,
            withdrawn: PathSet::EMPTY,
            back_offs: Default::default(),
            corrections: [None; MAX_PATHS],
            successes: 0,
        }
    }
}

impl Supervisor {
    /// Returns the paths that get no data.
    pub(super) fn withdrawn(&self) -> PathSet {
        self.withdrawn
    }

    /// Readmits all paths, because the set of usable paths has changed. Back-offs remain.
    pub(super) fn readmit_all(&mut self) {
        (self.withdrawn, self.stage) = (PathSet::EMPTY, Stage::Watching);
    }

    /// Forgets a path whose route has changed.
    pub(super) fn forget(&mut self, path: PathId) {
        (self.back_offs[path.index()], self.corrections[path.index()]) = (BackOff::default(), None);
        self.readmit_all();
    }

    /// Judges a period in which data always waited.
    pub(super) fn judge(&mut self, period: &Period) {
        match self.stage {
            Stage::Settling { kept, together } => self.stage = Stage::Measuring { kept, together },
            Stage::Measuring { kept, together } => self.compare(kept, together, period),
            Stage::Watching | Stage::Trying(_) => self.watch(period),
        }
    }

    fn watch(&mut self, period: &Period) {
        let Some((best, alone)) = self.best(period) else { return };
        let is_short = period.goodput < SUFFICIENT * alone;
        match self.stage {
            Stage::Trying(path) if is_short => self.withdraw(path, period.now),
            _ if is_short && self.admitted(period).iter().any(|path| path != best) => {
                self.keep_only(best, period);
            }
            _ if !is_short => self.succeed(),
            _ => {}
        }
        if !matches!(self.stage, Stage::Settling { .. }) {
            self.stage = self.readmit_next(period).map_or(Stage::Watching, Stage::Trying);
        }
    }

    /// Withdraws all paths but one.
    fn keep_only(&mut self, kept: PathId, period: &Period) {
        for path in self.admitted(period).iter().filter(|path| *path != kept) {
            self.withdraw(path, period.now);
        }
        self.withdrawn.remove(kept);
        self.stage = Stage::Settling { kept, together: period.goodput };
    }

    /// Compares the goodput of one path alone with that of all paths before.
    fn compare(&mut self, kept: PathId, together: f64, period: &Period) {
        self.stage = Stage::Watching;
        let Some(expected) = period.alone[kept.index()].filter(|expected| *expected > 0.0) else { return };
        let factor = (period.goodput / expected).min(1.0);
        self.corrections[kept.index()] = Some(Correction { factor, until: period.now + TRUST });
        if together >= SUFFICIENT * period.goodput {
            for path in self.withdrawn.iter() {
                self.back_offs[path.index()] = BackOff::default();
            }
            self.withdrawn = PathSet::EMPTY;
        }
    }

    fn withdraw(&mut self, path: PathId, now: Time) {
        self.withdrawn.insert(path);
        self.successes = 0;
        let back_off = &mut self.back_offs[path.index()];
        back_off.length = back_off.length.times(2).clamp(FIRST_BACK_OFF, LONGEST_BACK_OFF);
        back_off.retry_at = now + back_off.length;
    }

    /// Readmits the active path whose back-off ended first.
    fn readmit_next(&mut self, period: &Period) -> Option<PathId> {
        let retry_at = |path: &PathId| self.back_offs[path.index()].retry_at;
        let due = |path: &PathId| retry_at(path) <= period.now && period.alone[path.index()].is_some();
        let path = self.withdrawn.iter().filter(due).min_by_key(retry_at)?;
        self.withdrawn.remove(path);
        Some(path)
    }

    /// Counts a period without a shortfall, if all paths carried data.
    fn succeed(&mut self) {
        self.successes = if self.withdrawn.is_empty() { self.successes + 1 } else { 0 };
        if self.successes >= PERIODS_OF_SUCCESS {
            (self.successes, self.back_offs) = (0, Default::default());
        }
    }

    fn admitted(&self, period: &Period) -> PathSet {
        period.active().iter().filter(|path| !self.withdrawn.contains(*path)).collect()
    }

    /// Returns the path with the highest expected goodput alone, with this goodput as corrected by measurements.
    fn best(&self, period: &Period) -> Option<(PathId, f64)> {
        let corrected = |path: PathId| {
            let correction = self.corrections[path.index()].filter(|each| period.now < each.until);
            Some((path, period.alone[path.index()]? * correction.map_or(1.0, |each| each.factor)))
        };
        period.active().iter().filter_map(corrected).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Supervisor of three paths that carry 100, 50 and 20 bytes per second alone, at the end of periods of one second.
    struct Supervised {
        supervisor: Supervisor,
        second: u64,
        alone: [f64; 3],
    }

    impl Supervised {
        fn new() -> Self {
            Supervised { supervisor: Supervisor::default(), second: 0, alone: [100.0, 50.0, 20.0] }
        }

        /// Judges a period with this goodput, and returns the withdrawn paths.
        fn judge(&mut self, goodput: f64) -> Vec<usize> {
            self.second += 1;
            let now = Time::ZERO + Span::from_secs(self.second);
            let mut period = Period { now, goodput, alone: [None; MAX_PATHS] };
            self.alone.iter().enumerate().for_each(|(at, alone)| period.alone[at] = Some(*alone));
            self.supervisor.judge(&period);
            self.withdrawn()
        }

        fn withdrawn(&self) -> Vec<usize> {
            self.supervisor.withdrawn().iter().map(PathId::index).collect()
        }

        /// Judges equal periods until the withdrawn paths change, at most 200 of them, and returns their number.
        fn periods_until_change(&mut self, goodput: f64) -> u64 {
            let (before, began) = (self.withdrawn(), self.second);
            (0..200).find(|_| self.judge(goodput) != before);
            self.second - began
        }

        /// Withdraws the second and the third path: the first one alone delivers ten times as much.
        fn collapse(&mut self) {
            assert_eq!(self.judge(10.0), [1, 2]);
            assert_eq!((self.judge(10.0), self.judge(100.0)), (vec![1, 2], vec![1, 2]));
        }
    }

    #[test]
    fn goodput_below_nine_tenths_of_best_path_withdraws_the_others() {
        for (goodput, withdrawn) in [(170.0, vec![]), (90.0, vec![]), (89.0, vec![1, 2])] {
            assert_eq!(Supervised::new().judge(goodput), withdrawn, "{goodput}");
        }
    }

    #[test]
    fn paths_are_readmitted_one_at_a_time_while_goodput_suffices() {
        let mut paths = Supervised::new();
        paths.collapse();
        assert_eq!(paths.judge(100.0), [2]);
        assert_eq!(paths.judge(100.0), [] as [usize; 0]);
    }

    #[test]
    fn readmitted_path_with_shortfall_is_withdrawn_alone() {
        let mut paths = Supervised::new();
        paths.collapse();
        assert_eq!(paths.judge(100.0), [2], "the second path is tried");
        assert_eq!(paths.judge(10.0), [1], "it fails, and the third one is tried");
        assert_eq!(paths.judge(100.0), [1], "the third one is kept");
    }

    #[test]
    fn back_off_doubles_to_64_seconds() {
        let mut paths = Supervised::new();
        paths.alone = [100.0, 50.0, 0.0];
        paths.supervisor.withdraw(PathId::new(1), Time::ZERO);
        let waits: Vec<u64> = (0..7)
            .map(|_| {
                let waited = paths.periods_until_change(100.0);
                assert!(!paths.withdrawn().contains(&1));
                paths.judge(10.0);
                waited
            })
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 64, 64]);
    }

    #[test]
    fn ten_good_periods_over_all_paths_reset_the_back_off() {
        for (periods, back_off) in [(8, 4), (10, 2)] {
            let mut paths = Supervised::new();
            paths.collapse();
            (0..2).for_each(|_| drop(paths.judge(100.0)));
            (0..periods).for_each(|_| assert!(paths.judge(100.0).is_empty()));
            paths.judge(10.0);
            assert_eq!(paths.supervisor.back_offs[1].length, Span::from_secs(back_off), "{periods}");
        }
    }

    #[test]
    fn no_gain_alone_readmits_all_and_lowers_the_expectation() {
        let mut paths = Supervised::new();
        assert_eq!(paths.judge(50.0), [1, 2]);
        assert_eq!(paths.judge(50.0), [1, 2]);
        assert!(paths.judge(55.0).is_empty(), "alone it delivers 55");
        (0..57).for_each(|_| assert!(paths.judge(50.0).is_empty()));
        assert_eq!(paths.periods_until_change(50.0), 3, "the correction expires after 60 s");
    }

    #[test]
    fn kept_path_is_replaced_when_another_one_becomes_better() {
        let mut paths = Supervised::new();
        paths.collapse();
        paths.alone = [10.0, 50.0, 20.0];
        assert_eq!(paths.judge(10.0), [0, 2]);
    }

    #[test]
    fn inactive_paths_are_neither_tried_nor_kept() {
        let mut paths = Supervised::new();
        paths.collapse();
        let mut alone = [None; MAX_PATHS];
        alone[0] = Some(100.0);
        let now = Time::ZERO + Span::from_secs(50);
        paths.supervisor.judge(&Period { now, goodput: 10.0, alone });
        assert_eq!(paths.withdrawn(), [1, 2]);
        paths.supervisor.readmit_all();
        assert!(paths.withdrawn().is_empty());
        paths.supervisor.judge(&Period { now, goodput: 0.0, alone: [None; MAX_PATHS] });
        assert!(paths.withdrawn().is_empty());
    }

    #[test]
    fn new_route_forgets_back_off_and_correction() {
        let mut paths = Supervised::new();
        paths.collapse();
        (0..2).for_each(|at| paths.supervisor.forget(PathId::new(at)));
        assert!(paths.withdrawn().is_empty() && paths.supervisor.corrections[0].is_none());
        assert!(paths.supervisor.back_offs[1].length.is_zero());
    }
}
