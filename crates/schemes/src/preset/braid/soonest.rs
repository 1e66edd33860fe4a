//! Path of a retransmission, chosen for all lost chunks that wait.
//!
//! The receiver delivers data beyond the holes only once all of them are filled. A path that carries one chunk sooner than the
//! others may carry all waiting chunks later, and a slow path may get a chunk that a fast one would have carried before. The
//! paths therefore share the waiting chunks so that the last one arrives as early as possible.

use anabranch_core::MAX_PATHS;
use anabranch_core::policy::{
    Context, Decision, LostChunk, PathFacts, Reason, Refusal, Refused, RetransmitChoice, RetransmitPath, View,
};

use crate::definition::Equation;
use crate::preset::braid::in_order::{holding, rate, seconds};
use crate::retransmit::{if_room, nowhere};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "path of a retransmission",
    rule: "a_i = max(h_i, SRTT_i) + the time until path i has room; r_i = cwnd_i / SRTT_i; T = the least time with sum of (M + r_i (T - a_i)) \
           over the paths with a_i <= T >= all bytes that wait for retransmission; the chunk takes the path with room and the \
           least a_i <= T, and otherwise waits",
    file: file!(),
}];

/// Retransmits on the path with the earliest arrival, among those that shorten the time until all waiting chunks have arrived.
#[derive(Clone, Copy, Debug)]
pub struct SoonestForAll;

/// Path that can carry waiting chunks.
#[derive(Clone, Copy, Debug)]
struct Carrier<'a> {
    facts: &'a PathFacts,
    /// Seconds until the acknowledgement of a chunk that is assigned to the path now.
    arrival: f64,
    /// Rate in bytes per second.
    rate: f64,
}

impl<'a> Carrier<'a> {
    /// Returns `None` before the first round trip of the path.
    fn new(facts: &'a PathFacts, view: &View<'_>) -> Option<Self> {
        let smoothed = seconds(facts.rtt.smoothed?);
        let rate = rate(facts, smoothed).max(1.0);
        let arrival = holding(facts, view)?.max(smoothed) + wait(facts, rate, view);
        Some(Carrier { facts, arrival, rate })
    }
}

/// Returns the seconds until the path has room for a packet.
fn wait(facts: &PathFacts, rate: f64, view: &View<'_>) -> f64 {
    let most = facts.pacing.in_flight_cap.map_or(facts.cwnd, |cap| cap.min(facts.cwnd));
    let excess = (facts.in_flight + facts.largest_chunk) - most.max(facts.largest_chunk);
    let paced = facts.paced_until.map_or(0.0, |until| until.since(view.now).as_secs_f64());
    paced.max(if facts.in_flight < most { 0.0 } else { excess.get() as f64 / rate })
}

/// Returns the measured active paths in the order of arrival, and their number.
fn in_order_of_arrival<'a>(view: &View<'a>) -> ([Option<Carrier<'a>>; MAX_PATHS], usize) {
    let (mut order, mut count) = ([None::<Carrier<'a>>; MAX_PATHS], 0);
    for new in
        view.active().filter(|facts| !facts.estimates.withdrawn).filter_map(|facts| Carrier::new(facts, view))
    {
        let later = |other: &Carrier<'_>| new.arrival < other.arrival;
        let place = order[..count].iter().flatten().position(later).unwrap_or(count);
        order[place..=count].rotate_right(1);
        order[place] = Some(new);
        count += 1;
    }
    (order, count)
}

/// Returns the seconds until the last of these bytes arrives, if the paths share them so that this is as early as possible.
fn common_finish(order: &[Option<Carrier<'_>>], bytes: f64) -> f64 {
    let (mut finish, mut rates, mut credit) = (0.0, 0.0, 0.0);
    for carrier in order.iter().flatten() {
        if rates > 0.0 && finish <= carrier.arrival {
            break;
        }
        rates += carrier.rate;
        // Each path has carried its first chunk at its arrival, and further bytes at its rate from then on.
        credit += carrier.facts.largest_chunk.get() as f64 - carrier.rate * carrier.arrival;
        finish = ((bytes - credit) / rates).max(carrier.arrival);
    }
    finish
}

ignores_events! { SoonestForAll }

impl RetransmitPath for SoonestForAll {
    copied!(RetransmitPath);

    fn route(&mut self, _: &LostChunk, view: &View<'_>, _: &mut Context<'_>) -> Decision<RetransmitChoice> {
        let (order, count) = in_order_of_arrival(view);
        let waiting = view.paths.iter().map(|path| path.lost_unsent.get()).sum::<u64>() as f64;
        let finish = common_finish(&order[..count], waiting);
        let carriers = || order[..count].iter().flatten();
        let with_room =
            |carrier: &&Carrier<'_>| carrier.arrival <= finish && carrier.facts.admits_retransmission();
        let Some(carrier) = carriers().find(with_room).or_else(|| carriers().next()) else {
            return unmeasured(view);
        };
        let reason = Reason::figure("all that wait arrive soonest", "all_ms", finish * 1000.0);
        let id = carrier.facts.id;
        let others = view.paths.iter().filter(|path| path.id != id);
        let refused: Refused = others
            .map(|path| (path.id, if path.is_active() { Refusal::Preference } else { Refusal::State }))
            .collect();
        if_room(carrier.facts, reason, refused)
    }

    /// No single chunk and no chance determines the answer.
    fn wait_holds(&self, _: &View<'_>) -> bool {
        true
    }
}

/// Returns the first active path with room. None has been measured.
fn unmeasured(view: &View<'_>) -> Decision<RetransmitChoice> {
    let with_room = view.active().find(|path| path.admits_retransmission());
    let Some(path) = with_room.or_else(|| view.active().next()) else { return nowhere() };
    if_room(path, Reason::rule("no round-trip sample yet"), Refused::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{M, World, bytes, lost_on, path};
    use anabranch_core::PathState;
    use anabranch_core::policy::{LossCause, WaitFor};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::{Rate, Span};

    /// Creates paths with these round-trip times in milliseconds and windows in chunks, and this number of waiting chunks.
    fn world<const N: usize>(paths: [(u64, u64); N], waiting: u64) -> World {
        let mut world = World::new(Profile::net().multipath(), N);
        for (facts, (rtt, cwnd)) in world.paths.iter_mut().zip(paths) {
            let rtt = Span::from_millis(rtt);
            (facts.estimates.propagation, facts.rtt.smoothed) = (Some(rtt), Some(rtt));
            facts.cwnd = bytes(cwnd * M);
        }
        world.paths[0].lost_unsent = bytes(waiting * M);
        world
    }

    fn route(world: &mut World) -> RetransmitChoice {
        world.route(&mut SoonestForAll, lost_on(0, LossCause::FastRetransmit)).choice
    }

    fn fill(world: &mut World, index: usize) {
        world.paths[index].in_flight = world.paths[index].cwnd;
    }

    #[test]
    fn path_with_earliest_arrival_is_used_while_it_has_room() {
        assert_eq!(route(&mut world([(300, 100), (20, 10)], 50)), RetransmitChoice::Path(path(1)));
    }

    #[test]
    fn full_fast_path_is_awaited_if_it_carries_all_before_slow_path_arrives() {
        // The fast path carries a chunk each 2 ms from 22 ms on, and the slow one needs 100 ms for its first.
        for (waiting, expected) in
            [(39, RetransmitChoice::Wait(WaitFor::Window)), (41, RetransmitChoice::Path(path(1)))]
        {
            let mut world = world([(20, 10), (100, 10)], waiting);
            fill(&mut world, 0);
            assert_eq!(route(&mut world), expected, "{waiting}");
        }
    }

    #[test]
    fn slow_path_takes_no_chunk_while_paced_fast_path_carries_all_sooner() {
        let mut world = world([(20, 10), (100, 10)], 20);
        world.paths[0].paced_until = Some(world.now + Span::from_millis(2));
        assert_eq!(route(&mut world), RetransmitChoice::Wait(WaitFor::Window));
        world.paths[0].lost_unsent = bytes(50 * M);
        assert_eq!(route(&mut world), RetransmitChoice::Path(path(1)));
    }

    #[test]
    fn queue_in_front_of_chunk_delays_its_path() {
        for (in_flight, smoothed, expected) in [(48, 30, 0), (52, 30, 1), (48, 60, 1)] {
            let mut world = world([(20, 100), (50, 100)], 1);
            let facts = &mut world.paths[0];
            facts.estimates.bottleneck_rate = Some(Rate::from_bps(8 * 1000 * M));
            facts.rtt.smoothed = Some(Span::from_millis(smoothed));
            facts.in_flight = bytes(in_flight * M);
            assert_eq!(route(&mut world), RetransmitChoice::Path(path(expected)), "{in_flight} {smoothed}");
        }
    }

    #[test]
    fn common_finish_is_the_least_time_in_which_all_bytes_arrive() {
        let world = world([(20, 10), (100, 10)], 0);
        let view = world.view();
        let (order, count) = in_order_of_arrival(&view);
        for (chunks, ms) in [(1, 20.0), (11, 40.0), (41, 100.0), (42, 100.0), (48, 110.0)] {
            let finish = common_finish(&order[..count], (chunks * M) as f64);
            assert!((finish * 1000.0 - ms).abs() < 1e-6, "{chunks}: {finish}");
        }
    }

    #[test]
    fn only_active_paths_serve_and_measured_ones_first() {
        let mut world = world([(5, 10), (20, 10)], 1);
        world.paths[0].state = PathState::PotentiallyFailed;
        assert_eq!(route(&mut world), RetransmitChoice::Path(path(1)));
        world.paths[1].estimates.propagation = None;
        assert_eq!(route(&mut world), RetransmitChoice::Path(path(1)));
        world.paths[1].state = PathState::Inactive;
        assert_eq!(route(&mut world), RetransmitChoice::Wait(WaitFor::Window));
    }
}
