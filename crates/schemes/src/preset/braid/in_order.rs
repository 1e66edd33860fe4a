//! New data in the order of arrival, within the receive window.
//!
//! A chunk on a slow path occupies the receive buffer until it arrives, while faster paths fill it. If the chunk takes the time h,
//! faster paths send rate x h meanwhile, and all of that must fit beside the data in flight on the slow path.

use anabranch_core::MAX_PATHS;
use anabranch_core::policy::{
    Context, Decision, PathFacts, Pick, Reason, Refusal, Refused, Scheduler, SendAsk, View, WaitFor,
};
use anabranch_core::time::Span;
use anabranch_core::units::ChunkBytes;

use crate::definition::{Equation, text};
use crate::preset::braid::round_trips::MEMORY;

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "holding time",
        rule: text!(
            "h = base, plus the queue of the latest round trip if data was sent within {} and is in \
             flight; at least min((bytes in flight + M) / rate, {} SRTT)",
            FRESH,
            MOST_ROUNDS_QUEUED,
        ),
        file: file!(),
    },
    Equation {
        name: "order of paths",
        rule: text!(
            "by h (2 - (1 - loss rate)^n), n = N / M: the share of windows in which a loss costs another \
             round trip; N = the peer's window + all data that the cumulative TSN has not passed; a path \
             whose largest rate in {} is less than {} of that of all others together comes after them",
            MEMORY,
            TINY,
        ),
        file: file!(),
    },
    Equation {
        name: "in-order arrival",
        rule: text!(
            "path i gets a packet if f_i <= N - h_i (2 - (1 - loss rate)^k) sum of cwnd_j / SRTT_j over the \
             paths j before it, f_i = its bytes in flight or lost + M, k = f_i / M; the first path always \
             gets one; if the largest rate of i is less than {} of that sum, h_i is at least base plus the \
             longest queue of {}",
            SMALL,
            MEMORY,
        ),
        file: file!(),
    },
];

/// Time after which the queue of an unused path is unknown (RFC 9260's RTO.Min).
const FRESH: Span = Span::from_secs(1);

/// Maximum number of round trips for future queueing. A rate is the amount that a path has carried recently. A path that others
/// were preferred to has carried little, and would get less and less if it counted as slow for that reason. An existing queue shows
/// in the round-trip time itself.
const MOST_ROUNDS_QUEUED: f64 = 2.0;

/// Fraction of other paths' rate below which a path is not worth a risk. If its queue grows while it carries a chunk, because of
/// other flows or a lower rate, all paths wait for that chunk.
const SMALL: f64 = 0.1;

/// The same for its place in the order: a path of this rate is not worth a wait of the others.
const TINY: f64 = SMALL / 2.0;

/// Scheduler: paths in the order of their holding times.
#[derive(Clone, Copy, Debug, Default)]
pub struct InOrder;

/// Expected properties of a path.
#[derive(Clone, Copy, Debug)]
struct Expected<'a> {
    facts: &'a PathFacts,
    /// Seconds until the acknowledgement of data sent now.
    holding: f64,
    /// Holding time plus the average effect of losses. Only the order depends on it.
    rank: f64,
    /// Holding time with the longest recent queue.
    at_worst: f64,
    /// Rate in bytes per second.
    rate: f64,
    /// Maximum recent rate in bytes per second; zero before the first round trip.
    most: f64,
}

impl Expected<'_> {
    /// Returns `true` if the path precedes another one, where all paths together have these maximum rates.
    fn precedes(&self, other: &Self, all: f64) -> bool {
        let is_tiny = |path: &Self| path.most > 0.0 && path.most < TINY * (all - path.most);
        let rank = |path: &Self| (is_tiny(path), path.rank);
        rank(self) < rank(other)
    }
}

fn expected<'a>(facts: &'a PathFacts, window: f64, view: &View<'_>) -> Expected<'a> {
    let (Some(holding), Some(base)) = (holding(facts, view), facts.estimates.propagation) else {
        return Expected { facts, holding: 0.0, rank: 0.0, at_worst: 0.0, rate: 0.0, most: 0.0 };
    };
    let rank = holding * rounds_per_window(facts, window);
    let longest = facts.estimates.longest_queueing.map_or(0.0, |queue| queue.as_secs_f64());
    let rate = rate(facts, smoothed(facts, base));
    let most = facts.estimates.largest_rate.map_or(rate, |largest| rate.max(largest.as_bps() as f64 / 8.0));
    Expected { facts, holding, rank, at_worst: holding.max(seconds(base) + longest), rate, most }
}

/// Returns the mean number of round trips of a window in bytes, in which a loss costs another one.
pub(super) fn rounds_per_window(facts: &PathFacts, window: f64) -> f64 {
    let delivered = 1.0 - facts.estimates.loss_rate.unwrap_or(0.0).clamp(0.0, 1.0);
    2.0 - power(delivered, (window / facts.largest_chunk.get() as f64) as u32)
}

/// Returns the seconds until the acknowledgement of data sent now on a path; `None` before its first round trip.
pub(super) fn holding(facts: &PathFacts, view: &View<'_>) -> Option<f64> {
    let base = facts.estimates.propagation?;
    let used = facts.last_sent_at.is_some_and(|at| view.now.since(at) < FRESH) && !facts.in_flight.is_zero();
    let queued = match facts.estimates.bottleneck_rate {
        Some(rate) if rate.as_bps() > 0 => {
            (facts.in_flight + facts.largest_chunk).get() as f64 * 8.0 / rate.as_bps() as f64
        }
        _ => 0.0,
    };
    let latest = if used { present(facts, base) } else { seconds(base) };
    Some(latest.max(queued.min(MOST_ROUNDS_QUEUED * smoothed(facts, base))))
}

/// Returns the round-trip time with the present queue, in seconds.
fn present(facts: &PathFacts, base: Span) -> f64 {
    seconds(base) + facts.estimates.queueing.map_or(0.0, |queue| queue.as_secs_f64())
}

fn smoothed(facts: &PathFacts, base: Span) -> f64 {
    facts.rtt.smoothed.map_or(present(facts, base), seconds)
}

/// Returns the rate of a path's window in this round trip, in bytes per second.
pub(super) fn rate(facts: &PathFacts, round_trip_s: f64) -> f64 {
    facts.cwnd.get() as f64 / round_trip_s
}

/// Converts to seconds, and avoids zero on a link without delay.
pub(super) fn seconds(round_trip: Span) -> f64 {
    round_trip.as_secs_f64().max(1e-4)
}

/// Computes a power by squaring: products are the same on every machine.
fn power(base: f64, exponent: u32) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

/// Returns the size of the peer's buffer. Data that has arrived and waits for earlier data is included: better paths send it while
/// a chunk is in flight, and it must not be subtracted twice.
pub(super) fn buffer(view: &View<'_>) -> f64 {
    let held: ChunkBytes = view.paths.iter().map(|path| path.held).sum();
    (view.association.peer_window.get() + held.get()) as f64
}

/// Returns the expected properties of the active paths, best first, and their number.
fn in_order<'a>(view: &View<'a>, window: f64) -> ([Option<Expected<'a>>; MAX_PATHS], usize) {
    let (mut order, mut count, mut all) = ([None::<Expected<'a>>; MAX_PATHS], 0, 0.0);
    for facts in view.active().filter(|facts| !facts.estimates.withdrawn) {
        let new = expected(facts, window, view);
        (order[count], count, all) = (Some(new), count + 1, all + new.most);
    }
    for sorted in 1..count {
        let precedes =
            |at: &usize| order[sorted].zip(order[*at]).is_some_and(|(new, other)| new.precedes(&other, all));
        let place = (0..sorted).find(precedes).unwrap_or(sorted);
        order[place..=sorted].rotate_right(1);
    }
    (order, count)
}

/// Returns the refusals of the paths that the supervisor has withdrawn.
fn withdrawn(view: &View<'_>) -> Refused {
    let paths = view.active().filter(|facts| facts.estimates.withdrawn);
    paths.map(|facts| (facts.id, Refusal::Withdrawn)).collect()
}

ignores_events! { InOrder }

impl Scheduler for InOrder {
    copied!(Scheduler);

    fn pick(&mut self, _: &SendAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let window = buffer(view);
        let (order, count) = in_order(view, window);
        let (mut refused, mut rates) = (withdrawn(view), 0.0);
        for path in order[..count].iter().flatten() {
            let facts = path.facts;
            let holding = if path.most < SMALL * rates { path.at_worst } else { path.holding };
            let filled = (facts.in_flight + facts.lost_unsent + facts.largest_chunk).get() as f64;
            // The more chunks the path carries, the more likely is a loss, which holds the others for another round trip.
            let room = window - rates * holding * rounds_per_window(facts, filled);
            match view.refusal(facts.id) {
                None if rates <= 0.0 || filled <= room => {
                    let reason = Reason::figure("arrives in order", "room_bytes", room);
                    return Decision::with_refused(Pick::Path(facts.id), reason, refused);
                }
                refusal => refused.push((facts.id, refusal.unwrap_or(Refusal::Preference))),
            }
            rates += path.rate;
        }
        Decision::with_refused(
            Pick::Wait(WaitFor::Window),
            Reason::rule("a better path delivers it sooner"),
            refused,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Rate;
    use anabranch_core::units::WindowBytes;

    /// Creates paths with these round-trip times in milliseconds, windows of 100 chunks, and a peer's window of this many chunks.
    fn world(rtts: &[u64], window_chunks: u64) -> World {
        let mut world = World::new(Profile::net().multipath(), rtts.len());
        for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
            let rtt = Span::from_millis(*rtt);
            (facts.estimates.propagation, facts.rtt.smoothed) = (Some(rtt), Some(rtt));
            facts.cwnd = bytes(100 * M);
        }
        world.association.peer_window = WindowBytes::new(window_chunks * M);
        world
    }

    fn fill(world: &mut World, index: usize) {
        let facts = &mut world.paths[index];
        (facts.in_flight, facts.held, facts.last_sent_at) = (facts.cwnd, facts.cwnd, Some(world.now));
    }

    #[test]
    fn the_path_with_the_shortest_round_trip_is_first() {
        assert_eq!(world(&[100, 20, 50], 1000).pick(&mut InOrder).choice, Pick::Path(path(1)));
    }

    #[test]
    fn path_with_a_likely_loss_per_window_is_ranked_lower() {
        for (window, expected) in [(1, 0), (500, 1)] {
            let mut world = world(&[20, 30], window);
            world.paths[0].estimates.loss_rate = Some(0.05);
            assert_eq!(world.pick(&mut InOrder).choice, Pick::Path(path(expected)), "{window}");
        }
    }

    #[test]
    fn slow_path_takes_data_beyond_that_of_faster_paths() {
        // The fast path sends 100 chunks in 20 ms, so 500 in the 100 ms of the slow one.
        for (window, expected) in [(500, Pick::Path(path(1))), (300, Pick::Wait(WaitFor::Window))] {
            let mut world = world(&[20, 100], window);
            fill(&mut world, 0);
            assert_eq!(world.pick(&mut InOrder).choice, expected, "{window} and the 100 in flight");
        }
    }

    #[test]
    fn path_with_losses_takes_less_data() {
        // The fast path sends 500 chunks in the 100 ms of the slow one, and 950 if one of 100 chunks with 2.6 % loss is likely lost.
        for (in_flight, expected) in [(0, Pick::Path(path(1))), (100, Pick::Wait(WaitFor::Window))] {
            let mut world = world(&[20, 100], 650);
            fill(&mut world, 0);
            let slow = &mut world.paths[1];
            (slow.in_flight, slow.cwnd) = (bytes(in_flight * M), bytes(200 * M));
            assert_eq!(world.pick(&mut InOrder).choice, Pick::Path(path(1)), "without losses, {in_flight}");
            world.paths[1].estimates.loss_rate = Some(0.026);
            assert_eq!(world.pick(&mut InOrder).choice, expected, "{in_flight}");
        }
    }

    #[test]
    fn little_used_path_is_assumed_slower_by_at_most_two_rtts() {
        // The fast path sends 100 chunks in 20 ms, so 1,000 in two round trips of the slow one, which has 10 in flight.
        for (window, expected) in [(911, Pick::Path(path(1))), (910, Pick::Wait(WaitFor::Window))] {
            let mut world = world(&[20, 100], window);
            fill(&mut world, 0);
            let slow = &mut world.paths[1];
            (slow.in_flight, slow.estimates.bottleneck_rate) = (bytes(10 * M), Some(Rate::from_bps(1_000)));
            assert_eq!(world.pick(&mut InOrder).choice, expected, "{window} and the 100 in flight");
        }
    }

    #[test]
    fn reordered_data_is_counted_once_in_the_buffer() {
        let mut world = world(&[20, 100], 300);
        fill(&mut world, 0);
        world.paths[0].held = bytes(300 * M);
        assert_eq!(world.pick(&mut InOrder).choice, Pick::Path(path(1)));
    }

    #[test]
    fn path_that_adds_little_takes_only_data_that_fits_at_its_longest_queue() {
        // The fast path sends 100 chunks in 20 ms: 500 in the 100 ms of the slow one, and 1,000 in its longest round trip.
        for (tenths_of_the_rate, window, expected) in [
            (2, 500, Pick::Path(path(1))),
            (0, 500, Pick::Wait(WaitFor::Window)),
            (0, 901, Pick::Path(path(1))),
        ] {
            let mut world = world(&[20, 100], window);
            fill(&mut world, 0);
            let slow = &mut world.paths[1];
            slow.cwnd = bytes(M);
            slow.estimates.longest_queueing = Some(Span::from_millis(100));
            slow.estimates.largest_rate = Some(Rate::from_bps(tenths_of_the_rate * 8 * 500 * M));
            assert_eq!(world.pick(&mut InOrder).choice, expected, "{tenths_of_the_rate} {window}");
        }
    }

    #[test]
    fn path_that_adds_little_comes_after_a_faster_one() {
        // The slow path has the shorter round trip. In its longest one, of 220 ms, the fast path sends 1,100 chunks.
        let (slow, fast) = (Pick::Path(path(0)), Pick::Path(path(1)));
        let wait = Pick::Wait(WaitFor::Window);
        for (tenths_of_the_rate, window, first, second) in
            [(2, 500, slow, slow), (0, 500, fast, wait), (0, 1000, fast, slow)]
        {
            let mut world = world(&[20, 100], window);
            world.paths[0].cwnd = bytes(M);
            world.paths[0].estimates.longest_queueing = Some(Span::from_millis(200));
            world.paths[0].estimates.largest_rate = Some(Rate::from_bps(tenths_of_the_rate * 8 * 500 * M));
            world.paths[1].cwnd = bytes(500 * M);
            assert_eq!(world.pick(&mut InOrder).choice, first, "{tenths_of_the_rate} {window}");
            fill(&mut world, 1);
            assert_eq!(world.pick(&mut InOrder).choice, second, "{tenths_of_the_rate} {window}");
        }
    }

    #[test]
    fn unmeasured_path_is_used() {
        let mut world = world(&[20, 20], 1);
        world.paths[1].estimates.propagation = None;
        assert_eq!(world.pick(&mut InOrder).choice, Pick::Path(path(1)));
    }

    #[test]
    fn full_paths_are_refused_with_that_reason() {
        let mut world = world(&[20, 100], 500);
        fill(&mut world, 0);
        assert_eq!(world.pick(&mut InOrder).refused.as_slice(), [(path(0), Refusal::WindowFull)]);
    }

    #[test]
    fn powers_by_squaring() {
        assert!((power(0.9, 5) - 0.59049).abs() < 1e-12);
        assert!((power(0.5, 0) - 1.0).abs() < 1e-12 && power(0.99, u32::MAX) < 1e-9);
    }
}
