//! Largest or smallest value in a moving window. Three values suffice to know the best one and its successors when it leaves the
//! window (Kathleen Nichols' algorithm, as in Linux `lib/win_minmax.c`). The algorithm needs constant memory and no scan. The
//! position is any ascending count, such as nanoseconds or rounds.

use std::cmp::Reverse;

/// Largest value of the positions within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedMax<V> {
    /// Best value of the window, best one after it, and best one after that; each with its position.
    best: Option<[(u64, V); 3]>,
}

impl<V> Default for WindowedMax<V> {
    fn default() -> Self {
        WindowedMax { best: None }
    }
}

impl<V: Copy + Ord> WindowedMax<V> {
    /// Adds a value, and returns the largest of the last `window`. Positions must not decrease.
    pub fn update(&mut self, at: u64, value: V, window: u64) -> V {
        let new = (at, value);
        let Some(best) = &mut self.best else { return self.restart(new) };
        if value >= best[0].1 || at.saturating_sub(best[2].0) > window {
            return self.restart(new);
        }
        if value >= best[1].1 {
            (best[1], best[2]) = (new, new);
        } else if value >= best[2].1 {
            best[2] = new;
        }
        let passed = at.saturating_sub(best[0].0);
        if passed > window {
            *best = [best[1], best[2], new];
            if at.saturating_sub(best[0].0) > window {
                *best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && passed > window / 4 {
            // A quarter of the window has passed without a second best: it is searched in the second quarter.
            (best[1], best[2]) = (new, new);
        } else if best[2].0 == best[1].0 && passed > window / 2 {
            best[2] = new;
        }
        best[0].1
    }

    /// Returns the largest value as of the latest update.
    pub fn get(&self) -> Option<V> {
        self.best.map(|best| best[0].1)
    }

    /// Returns the position of the largest value.
    pub fn at(&self) -> Option<u64> {
        self.best.map(|best| best[0].0)
    }

    /// Removes all values but this one.
    pub fn reset(&mut self, at: u64, value: V) {
        self.restart((at, value));
    }

    fn restart(&mut self, new: (u64, V)) -> V {
        self.best = Some([new; 3]);
        new.1
    }
}

/// Smallest value of the positions within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedMin<V> {
    largest: WindowedMax<Reverse<V>>,
}

impl<V> Default for WindowedMin<V> {
    fn default() -> Self {
        WindowedMin { largest: WindowedMax::default() }
    }
}

impl<V: Copy + Ord> WindowedMin<V> {
    /// Adds a value, and returns the smallest of the last `window`. Positions must not decrease.
    pub fn update(&mut self, at: u64, value: V, window: u64) -> V {
        self.largest.update(at, Reverse(value), window).0
    }

    /// Returns the smallest value as of the latest update.
    pub fn get(&self) -> Option<V> {
        self.largest.get().map(|value| value.0)
    }

    /// Returns the position of the smallest value.
    pub fn at(&self) -> Option<u64> {
        self.largest.at()
    }

    /// Removes all values but this one.
    pub fn reset(&mut self, at: u64, value: V) {
        self.largest.reset(at, Reverse(value));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_value_leaves_with_its_window_and_the_next_best_follows() {
        let mut filter = WindowedMax::default();
        assert_eq!(filter.get(), None::<u32>);
        let values = [(0, 10), (3, 7), (6, 8), (9, 5), (11, 1), (17, 1), (30, 0)];
        let largest = values.map(|(at, value)| filter.update(at, value, 10));
        assert_eq!(largest, [10, 10, 10, 10, 8, 5, 0]);
    }

    #[test]
    fn the_smallest_is_the_largest_the_other_way_round() {
        let mut filter = WindowedMin::default();
        let smallest = [(0, 5), (5, 9), (9, 7), (11, 8)].map(|(at, value)| filter.update(at, value, 10));
        assert_eq!(smallest, [5, 5, 5, 7]);
        assert_eq!((filter.get(), filter.at()), (Some(7), Some(9)));
        filter.reset(12, 100);
        assert_eq!(filter.get(), Some(100));
    }

    proptest! {
        /// Checks that the result is a value of the window and at least the current value. It may miss the second largest, which
        /// saves memory.
        #[test]
        fn maximum_is_a_value_of_the_window_and_at_least_the_latest(
            steps in prop::collection::vec((0..8_u64, 0..50_u32), 1..100),
        ) {
            let (mut at, mut filter, mut seen) = (0, WindowedMax::default(), Vec::new());
            for (step, value) in steps {
                at += step;
                seen.push((at, value));
                let largest = filter.update(at, value, 20);
                let of_window = seen.iter().any(|&(when, known)| known == largest && at - when <= 20);
                prop_assert!(of_window && largest >= value, "{largest} of {seen:?}");
            }
        }
    }
}
