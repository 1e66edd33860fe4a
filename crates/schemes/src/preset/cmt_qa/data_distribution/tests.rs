//! Tests of Algorithm 2, line by line, and of its bounds.

use super::*;
use crate::testing::{ASK, M, World, bytes, path};
use anabranch_core::PathState;
use anabranch_core::profile::Profile;
use anabranch_core::units::{ChunkBytes, WindowBytes};

const RULES: DistributionRules = DistributionRules {
    piece: Piece::Round,
    distributed: Distributed::Period,
    allowance: Allowance::Running,
    queue_bound: QueueBound::Pooled,
    closeness: 0.0,
    replans: false,
};

/// Scheduler and a world in which bound data waits in the paths' queues.
struct Scene {
    world: World,
    dds: DataDistribution,
    tsn: u64,
}

impl Scene {
    /// Creates active paths with these windows and values of Q, the time 1 s, and a peer with an unlimited window.
    fn new(rules: DistributionRules, paths: &[(u64, f64)]) -> Self {
        let mut world = World::new(Profile::rfc9260_multipath(), paths.len());
        world.association.peer_window = WindowBytes::new(1 << 30);
        for (facts, &(cwnd, q)) in world.paths.iter_mut().zip(paths) {
            facts.cwnd = bytes(cwnd);
            facts.estimates.seconds_per_byte = Some(q);
        }
        Scene { world, dds: DataDistribution::new(rules), tsn: 1 }
    }

    fn dispatch(&mut self, event: &Event<'_>) {
        self.world.dispatch(&mut self.dds, event);
    }

    fn ask(&mut self) -> Decision<Pick> {
        self.world.pick(&mut self.dds)
    }

    /// Places one chunk. Returns `None` if it waits.
    fn bind(&mut self) -> Option<usize> {
        let Pick::Bind(id) = self.ask().choice else { return None };
        self.world.paths[id.index()].bound += bytes(M);
        self.tsn += 1;
        self.dispatch(&Event::Bound { path: id, tsn: self.tsn, bytes: bytes(M) });
        Some(id.index())
    }

    fn bind_some(&mut self, most: usize) -> Vec<usize> {
        std::iter::from_fn(|| self.bind()).take(most).collect()
    }

    /// Sends the data that waits on a path.
    fn send_all(&mut self, index: usize) {
        let facts = &mut self.world.paths[index];
        facts.in_flight += std::mem::replace(&mut facts.bound, ChunkBytes::ZERO);
    }

    fn ack_all(&mut self, index: usize) {
        self.world.paths[index].in_flight = ChunkBytes::ZERO;
    }

    /// Sends and acknowledges all placed data.
    fn deliver_all(&mut self) {
        for index in 0..self.world.paths.len() {
            self.send_all(index);
            self.ack_all(index);
        }
    }

    fn after_ms(&mut self, ms: u64) -> &mut Self {
        self.world.now += Span::from_millis(ms);
        self
    }
}

fn at(ms: u64) -> Time {
    Time::from_nanos(ms * 1_000_000)
}

fn waits_until(decision: &Decision<Pick>) -> Option<Time> {
    match decision.choice {
        Pick::Wait(WaitFor::Until(time)) => Some(time),
        _ => None,
    }
}

/// Windows of 10 packets. A window takes 100 ms on path 0 and 250 ms on path 1.
fn fast_and_slow(rules: DistributionRules) -> Scene {
    Scene::new(rules, &[(10 * M, 0.1 / 14_680.0), (10 * M, 0.25 / 14_680.0)])
}

#[test]
fn the_period_is_the_longest_time_for_a_window() {
    let mut scene = fast_and_slow(RULES);
    scene.bind();
    assert_eq!(scene.dds.ends, Some(at(1250)), "lines 1 to 8: max(100 ms, 250 ms)");
    assert_eq!(scene.dds.frequency[..2], [3, 1], "250 / 100 rounded up, 250 / 250");
}

#[test]
fn each_round_goes_to_the_path_that_delivers_it_first() {
    // Rounds of path 0 are 10, 11, 12 packets and arrive after 100, 200, 300 ms; path 1's first after 250 ms. So path 0, path 0,
    // path 1, path 0: 10 + 11, 10, and the rest.
    let mut scene = fast_and_slow(DistributionRules { allowance: Allowance::Period, ..RULES });
    // D_max would be 20 packets; a third path that is never chosen makes room for all.
    let third = PathFacts { cwnd: bytes(100 * M), ..scene.world.paths[1] };
    scene.world.paths.push(PathFacts { id: path(2), ..third });
    scene.world.paths[2].estimates.seconds_per_byte = Some(1.0);
    let order = scene.bind_some(35);
    assert_eq!(order[..21], [0; 21]);
    assert_eq!(order[21..31], [1; 10]);
    assert_eq!(order[31..], [0; 4]);
}

#[test]
fn chunk_by_chunk_the_rounds_are_the_same_while_windows_stand_still() {
    let order = |piece| {
        let mut scene = fast_and_slow(DistributionRules { piece, ..RULES });
        scene.world.paths[1].cwnd = bytes(200 * M);
        scene.world.paths[1].estimates.seconds_per_byte = Some(0.25 / (200.0 * 1468.0));
        scene.bind_some(100)
    };
    assert_eq!(order(Piece::Chunk), order(Piece::Round));
}

#[test]
fn a_round_is_finished_although_its_path_became_slow_and_a_chunk_is_not() {
    for (piece, expected) in [(Piece::Round, 0), (Piece::Chunk, 1)] {
        let mut scene = fast_and_slow(DistributionRules { piece, ..RULES });
        assert_eq!(scene.bind_some(3), [0, 0, 0]);
        scene.world.paths[0].estimates.seconds_per_byte = Some(1.0);
        assert_eq!(scene.bind(), Some(expected), "{piece:?}");
    }
}

#[test]
fn the_reason_has_the_predicted_arrival_or_what_is_left_of_the_round() {
    let mut scene = fast_and_slow(RULES);
    let first = scene.ask();
    assert_eq!((first.reason.rule, first.reason.figure), ("earliest predicted arrival", "arrival_s"));
    assert!((first.reason.value - 0.1).abs() < 1e-12);
    assert_eq!(first.refused.as_slice(), [(path(1), Refusal::Preference)]);
    scene.bind();
    let second = scene.ask();
    assert_eq!((second.reason.figure, second.reason.value), ("round_left_bytes", 9.0 * 1468.0));
    assert_eq!(second.refused.as_slice(), [(path(1), Refusal::Preference)]);
}

#[test]
fn of_equal_arrivals_the_first_path_is_taken() {
    let mut scene = Scene::new(RULES, &[(4 * M, 1e-5), (4 * M, 1e-5)]);
    assert_eq!(scene.bind_some(8), [0, 0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn empty_allowance_and_window_of_one_packet_terminate() {
    // The printed k(D = 0) is 0, and line 20 adds 1 MTU + (0 - 1) MTU = 0 forever. Here k is that of the next chunk.
    for piece in [Piece::Round, Piece::Chunk] {
        let mut scene = Scene::new(DistributionRules { piece, ..RULES }, &[(M, 1e-5), (M, 1e-5)]);
        assert_eq!(scene.bind_some(10), [0, 1], "one packet each is all that the windows take");
        assert_eq!(scene.dds.distributed[..2], [M, M]);
    }
}

#[test]
fn d_i_restarts_with_each_period() {
    let mut scene = fast_and_slow(RULES);
    scene.bind_some(10);
    scene.deliver_all();
    assert_eq!(scene.dds.distributed[0], 10 * M);
    scene.after_ms(249).bind();
    assert_eq!(scene.dds.distributed[0], 11 * M, "the second round of a period of 250 ms");
    scene.deliver_all();
    scene.after_ms(1).bind();
    assert_eq!(scene.dds.distributed[0], M);
}

#[test]
fn waiting_data_counts_in_the_next_period() {
    let mut scene = fast_and_slow(RULES);
    scene.bind_some(4);
    scene.after_ms(250).bind();
    assert_eq!(scene.dds.distributed[0], 5 * M);
}

#[test]
fn d_i_may_be_the_undelivered_data() {
    let mut scene = fast_and_slow(DistributionRules { distributed: Distributed::Undelivered, ..RULES });
    scene.world.paths[1].cwnd = bytes(20 * M);
    scene.world.paths[1].estimates.seconds_per_byte = Some(0.25 / (20.0 * 1468.0));
    scene.world.paths[0].in_flight = bytes(9 * M);
    scene.world.paths[0].bound = bytes(M);
    // 10 packets in flight and the next one: k = 2, 200 ms; that is still before path 1's 250 ms.
    let decision = scene.ask();
    assert_eq!(decision.choice, Pick::Bind(path(0)));
    assert!((decision.reason.value - 0.2).abs() < 1e-12);
    // 21 packets and the next: k = 3, 300 ms, and path 1 is earlier.
    scene.world.paths[0].bound = bytes(12 * M);
    scene.dds.round = None;
    assert_eq!(scene.ask().choice, Pick::Bind(path(1)));
}

#[test]
fn the_running_allowance_is_the_free_part_of_all_windows() {
    let mut scene = fast_and_slow(RULES);
    scene.world.paths[0].in_flight = bytes(7 * M);
    // 3 + 10 packets are free. Path 0's first round is 10, the second 11: all are placed there.
    assert_eq!(scene.bind_some(20), [0; 13]);
    let decision = scene.ask();
    assert_eq!(decision.choice, Pick::Wait(WaitFor::Window));
    let full = [(path(0), Refusal::WindowFull), (path(1), Refusal::WindowFull)];
    assert_eq!(decision.refused.as_slice(), full);
    scene.world.paths[0].in_flight = bytes(5 * M);
    assert_eq!(scene.bind_some(20), [0; 2], "two packets more were acknowledged");
}

#[test]
fn a_path_takes_part_only_while_its_own_window_has_room() {
    let mut scene = fast_and_slow(DistributionRules { queue_bound: QueueBound::Window, ..RULES });
    scene.world.paths[0].in_flight = bytes(7 * M);
    // Three packets of path 0's window are free, and ten of path 1's, which is not kept free for the faster one.
    assert_eq!(scene.bind_some(20), [0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!(scene.ask().choice, Pick::Wait(WaitFor::Window));
    scene.world.paths[0].in_flight = bytes(5 * M);
    assert_eq!(scene.bind_some(20), [0; 2], "two packets more were acknowledged");
}

#[test]
fn without_d_max_a_full_path_waits_for_its_window_not_the_period() {
    let rules =
        DistributionRules { queue_bound: QueueBound::Window, allowance: Allowance::PeerWindow, ..RULES };
    let mut scene = fast_and_slow(rules);
    assert_eq!(scene.bind_some(30).len(), 20, "both windows");
    let decision = scene.ask();
    assert_eq!(decision.choice, Pick::Wait(WaitFor::Window));
    let full = [(path(0), Refusal::WindowFull), (path(1), Refusal::WindowFull)];
    assert_eq!(decision.refused.as_slice(), full);
}

#[test]
fn clamped_bound_keeps_waiting_data_out_of_the_other_paths_room() {
    let mut scene = fast_and_slow(DistributionRules { queue_bound: QueueBound::Clamped, ..RULES });
    scene.world.paths[0].in_flight = bytes(7 * M);
    scene.world.paths[0].bound = bytes(8 * M);
    // Pooled, 3 + 10 - 8 packets would be free, but all ten of path 1's are. Path 0 may still get some of them.
    let placed = scene.bind_some(200);
    assert_eq!(scene.world.paths[1].bound, bytes(10 * M), "its window is filled: {placed:?}");
    assert!(placed.contains(&0), "beyond its window: {placed:?}");
}

#[test]
fn the_periods_allowance_is_spent_once_and_then_its_end_awaited() {
    let mut scene = fast_and_slow(DistributionRules { allowance: Allowance::Period, ..RULES });
    assert_eq!(scene.bind_some(30).len(), 20, "the free part of both windows as the period began");
    scene.world.paths[0].bound = bytes(0);
    scene.world.paths[0].in_flight = bytes(2 * M);
    assert_eq!(waits_until(&scene.after_ms(100).ask()), Some(at(1250)));
    scene.after_ms(150);
    assert_eq!(scene.bind(), Some(0), "a new period");
    assert_eq!(scene.dds.ends, Some(at(1500)));
}

#[test]
fn spent_period_ends_at_once_with_an_empty_flight() {
    let mut scene = fast_and_slow(DistributionRules { allowance: Allowance::Period, ..RULES });
    scene.bind_some(20);
    scene.deliver_all();
    assert!(matches!(scene.after_ms(10).ask().choice, Pick::Bind(_)));
    assert_eq!(scene.dds.deadline(), None);
    assert_eq!(scene.dds.ends, Some(at(1260)));
}

#[test]
fn the_peers_window_bounds_the_allowance() {
    for allowance in [Allowance::Period, Allowance::Running] {
        let mut scene = fast_and_slow(DistributionRules { allowance, ..RULES });
        scene.world.paths[0].in_flight = bytes(M);
        scene.world.association.peer_window = WindowBytes::new(3 * M);
        for left in [2, 1, 0] {
            assert_eq!(scene.bind(), Some(0), "{allowance:?}");
            // Core subtracts a bound chunk from the peer's window at once (equation 8).
            scene.world.association.peer_window = WindowBytes::new(left * M);
        }
        assert_eq!(scene.bind(), None, "{allowance:?}");
    }
}

#[test]
fn without_d_max_the_peers_window_alone_bounds_what_waits() {
    let mut scene = fast_and_slow(DistributionRules { allowance: Allowance::PeerWindow, ..RULES });
    assert_eq!(scene.bind_some(21), [0; 21], "more than both windows hold");
    assert_eq!(scene.bind_some(10), [1; 10], "250 ms, before the third round's 300 ms");
    scene.world.association.peer_window = WindowBytes::new(0);
    assert_eq!(scene.ask().choice, Pick::Wait(WaitFor::Window));
}

#[test]
fn a_period_does_not_begin_while_every_window_is_full() {
    for allowance in [Allowance::Period, Allowance::Running] {
        let mut scene = fast_and_slow(DistributionRules { allowance, ..RULES });
        scene.world.paths.iter_mut().for_each(|facts| facts.in_flight = bytes(10 * M));
        assert_eq!(scene.ask().choice, Pick::Wait(WaitFor::Window));
        assert_eq!((scene.dds.ends, scene.dds.deadline()), (None, None));
    }
}

#[test]
fn a_path_may_be_held_to_the_rounds_that_the_period_has_room_for() {
    let rules = DistributionRules { queue_bound: QueueBound::Frequency, ..RULES };
    let mut scene = Scene::new(rules, &[(2 * M, 0.1 / 2936.0), (2 * M, 0.15 / 2936.0)]);
    // P_d is 150 ms: path 0 has 2 rounds, of 2 and 3 packets, path 1 has one of 2. Bound data is acknowledged at once, except for
    // one packet that keeps the period alive.
    scene.world.paths[1].in_flight = bytes(M);
    let mut placed = Vec::new();
    while let Some(index) = scene.bind() {
        placed.push(index);
        scene.world.paths[index].bound = bytes(0);
    }
    assert_eq!(placed, [0, 0, 1, 1, 0, 0, 0], "100, 150, 200 ms");
    let decision = scene.ask();
    assert_eq!(waits_until(&decision), Some(at(1150)));
    let full = [(path(0), Refusal::BufferShare), (path(1), Refusal::BufferShare)];
    assert_eq!(decision.refused.as_slice(), full);
}

#[test]
fn inactive_withdrawn_or_exhausted_paths_get_no_data() {
    let mut scene = Scene::new(RULES, &[(4 * M, 1e-6), (4 * M, 2e-6), (4 * M, 3e-6), (4 * M, 4e-6)]);
    scene.world.paths[0].state = PathState::PotentiallyFailed;
    scene.world.paths[1].estimates.withdrawn = true;
    scene.world.paths[2].within_share = false;
    let decision = scene.ask();
    assert_eq!(decision.choice, Pick::Bind(path(3)));
    let expected = [(path(0), Refusal::State), (path(1), Refusal::State), (path(2), Refusal::BufferShare)];
    assert_eq!(decision.refused.as_slice(), expected);
}

#[test]
fn with_every_active_path_withdrawn_all_of_them_are_used() {
    let mut scene = fast_and_slow(RULES);
    scene.world.paths.iter_mut().for_each(|facts| facts.estimates.withdrawn = true);
    assert_eq!(scene.bind(), Some(0));
}

#[test]
fn one_path_gets_everything() {
    let mut scene = Scene::new(RULES, &[(4 * M, 1e-5)]);
    assert_eq!(scene.bind_some(9), [0; 4]);
    assert_eq!(scene.ask().choice, Pick::Wait(WaitFor::Window));
}

#[test]
fn unmeasured_paths_are_filled_in_turn() {
    let mut scene = Scene::new(RULES, &[(2 * M, 0.0), (2 * M, 0.0)]);
    for facts in &mut scene.world.paths {
        facts.estimates.seconds_per_byte = None;
        facts.rto = Span::from_secs(1);
    }
    assert_eq!(scene.bind_some(9), [0, 0, 1, 1]);
    assert_eq!(scene.dds.ends, Some(at(2000)), "an RTO");
}

#[test]
fn a_path_that_takes_no_time_makes_no_period_without_length() {
    let mut scene = Scene::new(RULES, &[(2 * M, 0.0)]);
    assert_eq!(scene.bind(), Some(0));
    assert_eq!(scene.dds.ends, Some(at(1001)));
}

#[test]
fn without_an_active_path_it_waits() {
    let mut scene = fast_and_slow(RULES);
    scene.world.paths.iter_mut().for_each(|facts| facts.state = PathState::Inactive);
    let decision = scene.ask();
    assert_eq!(decision.choice, Pick::Wait(WaitFor::Window));
    assert_eq!(decision.refused.as_slice(), [(path(0), Refusal::State), (path(1), Refusal::State)]);
}

#[test]
fn path_far_from_the_fastest_may_be_omitted() {
    // 250 ms are 2.5 times 100 ms.
    for (closeness, frequency) in [(0.0, 3), (2.6, 3), (2.4, 1)] {
        let mut scene = fast_and_slow(DistributionRules { closeness, ..RULES });
        let decision = scene.ask();
        assert_eq!(scene.dds.frequency[0], frequency, "the period is that of the paths in use");
        assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::Preference)]);
        assert_eq!(scene.bind_some(50).len(), if frequency == 1 { 10 } else { 20 });
    }
}

#[test]
fn data_waiting_on_a_withdrawn_path_moves_to_others() {
    let mut scene = fast_and_slow(RULES);
    scene.bind_some(3);
    let view = |scene: &mut Scene| scene.dds.replan(&scene.world.view());
    assert!(!view(&mut scene));
    scene.world.paths[0].estimates.withdrawn = true;
    assert!(view(&mut scene));
    scene.world.paths[1].estimates.withdrawn = true;
    assert!(!view(&mut scene), "withdrawn all, used all");
    for tsn in 2..=4 {
        scene.dispatch(&Event::Unbound { path: path(0), tsn, bytes: bytes(M) });
    }
    assert_eq!((scene.dds.distributed[0], scene.dds.given), (0, 0));
}

#[test]
fn waiting_data_stays_at_the_start_of_a_period_by_default() {
    for replans in [false, true] {
        let mut scene = fast_and_slow(DistributionRules { replans, ..RULES });
        scene.bind_some(3);
        scene.after_ms(249);
        assert!(!scene.dds.replan(&scene.world.view()));
        scene.after_ms(1);
        assert_eq!(scene.dds.replan(&scene.world.view()), replans);
    }
}

#[test]
fn a_window_probe_leaves_at_once_where_it_arrives_first() {
    let mut scene = fast_and_slow(RULES);
    let probe = SendAsk { window_probe: true, ..ASK };
    let pick = |scene: &mut Scene| scene.world.with(|view, context| scene.dds.pick(&probe, view, context));
    let decision = pick(&mut scene);
    assert_eq!(decision.choice, Pick::Path(path(0)));
    assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::Preference)]);
    scene.world.paths[0].in_flight = bytes(10 * M);
    let decision = pick(&mut scene);
    assert_eq!(decision.choice, Pick::Path(path(1)));
    assert_eq!(decision.refused.as_slice(), [(path(0), Refusal::WindowFull)]);
    scene.world.paths[1].state = PathState::Inactive;
    assert_eq!(pick(&mut scene).choice, Pick::Wait(WaitFor::Window));
}

#[test]
fn added_path_starts_a_new_period() {
    let mut scene = fast_and_slow(RULES);
    scene.bind_some(3);
    scene.dispatch(&Event::PathAdded(path(0)));
    assert_eq!((scene.dds.ends, scene.dds.distributed[0]), (None, 0));
}
