//! Shared parts of the coupled growth rules: windows and round-trip times of all paths, and growth by fractions of a byte.

use anabranch_core::policy::{Event, Reason, View, Window};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

use crate::congestion::growth::standard::slow_start;
use crate::congestion::{Acknowledged, Change};

/// Path in the view of coupled rules.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Flow {
    pub(crate) path: PathId,
    /// Congestion window in bytes.
    pub(crate) cwnd: f64,
    /// Smoothed round-trip time in seconds, greater than zero.
    pub(crate) rtt: f64,
}

impl Flow {
    /// Returns the rate in bytes per second.
    pub(crate) fn rate(&self) -> f64 {
        self.cwnd / self.rtt
    }
}

/// Coupled paths. Inactive paths carry no data, and the rate of a path without a round-trip time is unknown, so both are excluded.
/// The path in question takes part regardless of its state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flows {
    all: [Flow; MAX_PATHS],
    count: usize,
}

impl Flows {
    pub(crate) fn of(path: PathId, windows: &[Window; MAX_PATHS], view: &View<'_>) -> Self {
        let mut flows = Flows { all: [Flow { path, cwnd: 0.0, rtt: 1.0 }; MAX_PATHS], count: 0 };
        for facts in view.paths.iter().filter(|facts| facts.is_active() || facts.id == path) {
            let cwnd = windows[facts.id.index()].cwnd;
            let Some(rtt) = facts.rtt.smoothed.filter(|rtt| !rtt.is_zero() && !cwnd.is_zero()) else {
                continue;
            };
            flows.all[flows.count] = Flow { path: facts.id, cwnd: cwnd.get() as f64, rtt: rtt.as_secs_f64() };
            flows.count += 1;
        }
        flows
    }

    pub(crate) fn all(&self) -> &[Flow] {
        &self.all[..self.count]
    }

    /// Returns the path in question, or `None` if its round-trip time is not known yet.
    pub(crate) fn find(&self, path: PathId) -> Option<Flow> {
        self.all().iter().find(|flow| flow.path == path).copied()
    }
}

/// Returns the maximum, or zero if there are no numbers.
pub(crate) fn largest(figures: impl Iterator<Item = f64>) -> f64 {
    figures.fold(0.0, f64::max)
}

/// Result of a coupled rule: the growth per acknowledged byte, in largest chunks, and the deciding figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gain {
    /// Largest chunks per acknowledged byte. 1 / cwnd is growth by one chunk per window.
    pub(crate) per_byte: f64,
    pub(crate) reason: Reason,
}

/// Fractions of bytes left over from growth, so that many small steps equal a large one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fractions([f64; MAX_PATHS]);

impl Fractions {
    pub(crate) fn on_event(&mut self, event: &Event<'_>) {
        if let Event::PathAdded(path) = event {
            self.0[path.index()] = 0.0;
        }
    }

    /// Grows as in the standard's slow start, and above ssthresh by the rule's gain. All bytes toward the next step are spent at
    /// once, because no step waits for a whole window. A path without a round-trip time is uncoupled.
    pub(crate) fn grow(
        &mut self,
        acknowledged: &Acknowledged<'_>,
        gain: impl FnOnce(Flow, &Flows) -> Gain,
    ) -> Option<Change> {
        let (window, chunk) = (acknowledged.window(), acknowledged.facts().largest_chunk);
        if let Some(change) = slow_start(window, acknowledged.bytes, chunk) {
            return Some(change);
        }
        let flows = Flows::of(acknowledged.path, acknowledged.windows, acknowledged.view);
        let gain = match flows.find(acknowledged.path) {
            Some(own) => gain(own, &flows),
            None => uncoupled(window),
        };
        let by = gain.per_byte * window.partial_bytes_acked.get() as f64 * chunk.get() as f64;
        let cwnd = self.whole(acknowledged.path, window.cwnd, by);
        Some(Change {
            window: Window { cwnd, partial_bytes_acked: ChunkBytes::ZERO, ..window },
            reason: gain.reason,
        })
    }

    /// Returns `cwnd` changed by `by` bytes, which may be negative, and by the fraction left over.
    pub(crate) fn whole(&mut self, path: PathId, cwnd: ChunkBytes, by: f64) -> ChunkBytes {
        let sum = self.0[path.index()] + by;
        let whole = sum.floor();
        self.0[path.index()] = sum - whole;
        if whole < 0.0 { cwnd - ChunkBytes::new(-whole as u64) } else { cwnd + ChunkBytes::new(whole as u64) }
    }
}

/// Returns the gain of one chunk per window (RFC 9260 section 7.2.2).
fn uncoupled(window: Window) -> Gain {
    Gain {
        per_byte: 1.0 / window.cwnd.get().max(1) as f64,
        reason: Reason::rule("grows uncoupled without a round-trip time"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing;
    use crate::testing::{World, bytes, path};
    use anabranch_core::PathState;
    use anabranch_core::time::Span;

    fn flows(world: &World, of: usize) -> Vec<usize> {
        let windows = std::array::from_fn(|index| Window {
            cwnd: world.paths.get(index).map_or(bytes(0), |facts| facts.cwnd),
            ..Window::default()
        });
        Flows::of(path(of), &windows, &world.view()).all().iter().map(|flow| flow.path.index()).collect()
    }

    #[test]
    fn only_active_paths_with_an_rtt_and_the_growing_path_are_coupled() {
        let mut world = testing::paths(&[(10_000, 100), (20_000, 50), (30_000, 50), (40_000, 10)]);
        assert_eq!(flows(&world, 0), [0, 1, 2, 3]);
        world.paths[1].state = PathState::PotentiallyFailed;
        world.paths[2].rtt.smoothed = None;
        world.paths[3].rtt.smoothed = Some(Span::ZERO);
        assert_eq!(flows(&world, 0), [0]);
        assert_eq!(flows(&world, 1), [0, 1], "it may grow, so it counts");
        assert_eq!(flows(&world, 2), [0], "nothing is known of it");
        world.paths[0].cwnd = bytes(0);
        assert_eq!(flows(&world, 0), Vec::<usize>::new());
    }

    #[test]
    fn fractions_of_a_byte_add_up_and_down() {
        let mut fractions = Fractions::default();
        let mut seen = Vec::new();
        let mut cwnd = bytes(100);
        for by in [0.25, 0.5, 0.25, 2.75, 0.25, -0.5, -0.5, -3.0] {
            cwnd = fractions.whole(path(0), cwnd, by);
            seen.push(cwnd.get());
        }
        // Sums: 100.25, 100.75, 101, 103.75, 104, 103.5, 103, 100; the window is their integer part.
        assert_eq!(seen, [100, 100, 101, 103, 104, 103, 103, 100]);
    }

    #[test]
    fn a_path_that_is_added_starts_without_a_fraction() {
        let mut fractions = Fractions::default();
        fractions.whole(path(0), bytes(100), 0.75);
        fractions.on_event(&Event::PathAdded(path(1)));
        assert_eq!(fractions.0[0], 0.75);
        fractions.on_event(&Event::PathAdded(path(0)));
        assert_eq!(fractions.0[0], 0.0);
    }
}
