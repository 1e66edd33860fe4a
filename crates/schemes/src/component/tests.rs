//! Checks that every scheduler component obeys the rules of core.

use super::*;
use crate::definition::{Role, Values};
use crate::registry::parse;
use crate::testing::{ASK, M, World, bytes, path};
use anabranch_core::policy::{Event, Pick, Scheduler, Scheme, SendAsk, SendKind, SentTransmission, WaitFor};
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_core::units::WindowBytes;
use anabranch_core::{PathSet, PathState};

fn component(name: &str) -> &'static Component {
    COMPONENTS.iter().find(|component| component.name == name).expect(name)
}

/// Returns a component's scheduler with parameters set as in `name=value`.
fn scheduler(name: &str, settings: &[&str]) -> Box<dyn Scheduler> {
    let component = component(name);
    let mut values = Values::defaults(component.parameters);
    for setting in settings {
        let (parameter, value) = setting.split_once('=').expect("a setting");
        let at = component.parameters.iter().position(|p| p.name == parameter).expect(parameter);
        values.values[at] = component.parameters[at].read(value).expect(setting);
    }
    (component.apply)(&values, parse("cmt").expect("a preset").policies()).scheduler
}

/// Returns the schedulers of all components that have one.
fn schedulers() -> impl Iterator<Item = (&'static str, Box<dyn Scheduler>)> {
    let places = |component: &&Component| component.role == Role::Scheduler;
    COMPONENTS.iter().filter(places).map(|component| (component.name, scheduler(component.name, &[])))
}

/// Creates paths of these round-trip times in milliseconds with data queued. The fastest is full.
fn world(rtts: &[u64]) -> World {
    let mut world = World::new(Profile::rfc9260_multipath(), rtts.len());
    for (facts, rtt) in world.paths.iter_mut().zip(rtts) {
        facts.rtt.smoothed = Some(Span::from_millis(*rtt));
        facts.rtt.latest = facts.rtt.smoothed;
        facts.cwnd = bytes(10 * M);
    }
    let fastest = rtts.iter().enumerate().min_by_key(|(_, rtt)| **rtt).map_or(0, |(index, _)| index);
    world.paths[fastest].in_flight = bytes(10 * M);
    world.association.queued_bytes = 20 * (M - 16);
    world.association.peer_window = WindowBytes::new(50_000);
    world
}

/// Returns the paths on which a choice places data.
fn placed(choice: Pick) -> PathSet {
    match choice {
        Pick::Path(id) | Pick::Bind(id) => [id].into_iter().collect(),
        Pick::Copies(paths) => paths,
        Pick::Wait(_) => PathSet::EMPTY,
    }
}

#[test]
fn inactive_path_gets_no_data_while_another_is_active() {
    for state in [PathState::Unconfirmed, PathState::PotentiallyFailed, PathState::Inactive] {
        for failed in 0..3 {
            for (name, mut scheduler) in schedulers() {
                let mut world = world(&[20, 30, 100]);
                world.paths[failed].state = state;
                for _ in 0..50 {
                    let choice = world.pick(&mut *scheduler).choice;
                    assert!(!placed(choice).contains(path(failed)), "{name}: {choice:?}, {failed} {state:?}");
                    assert_ne!(choice, Pick::Wait(WaitFor::Path(path(failed))), "{name}");
                    take(&mut world, &mut *scheduler, choice);
                }
            }
        }
    }
}

/// Applies a choice like core: sends a packet, or binds a chunk.
fn take(world: &mut World, scheduler: &mut dyn Scheduler, choice: Pick) {
    if let Pick::Bind(id) = choice {
        world.paths[id.index()].bound += bytes(M);
        return;
    }
    for path in placed(choice).iter() {
        world.paths[path.index()].in_flight += bytes(M);
        world.association.last_new_data_path = Some(path);
        let (kind, bytes) = (SendKind::New, bytes(M));
        let sent = SentTransmission { path, previous_path: None, tsn: 1, bytes, kind };
        world.dispatch(scheduler, &Event::Sent(&sent));
    }
}

#[test]
fn no_scheduler_waits_with_an_empty_flight_and_free_path() {
    for (name, mut scheduler) in schedulers() {
        for (active, measured) in [(0b11, 0b11), (0b11, 0b10), (0b11, 0b00), (0b01, 0b01), (0b10, 0b01)] {
            let mut world = world(&[20, 100]);
            for index in 0..2 {
                let facts = &mut world.paths[index];
                facts.in_flight = bytes(0);
                facts.state = if active >> index & 1 == 1 { PathState::Active } else { PathState::Inactive };
                facts.rtt.smoothed = facts.rtt.smoothed.filter(|_| measured >> index & 1 == 1);
                facts.rtt.latest = facts.rtt.smoothed;
            }
            let choice = world.pick(&mut *scheduler).choice;
            assert!(!placed(choice).is_empty(), "{name}: {choice:?}");
        }
    }
}

#[test]
fn path_beyond_its_buffer_share_gets_no_chunk() {
    for (name, mut scheduler) in schedulers() {
        let mut world = world(&[20, 100]);
        for within in [false, true] {
            world.paths[0].within_share = within;
            world.paths[1].within_share = false;
            let choice = world.pick(&mut *scheduler).choice;
            assert!(!placed(choice).contains(path(1)), "{name}: {choice:?}");
            assert!(within || placed(choice).is_empty(), "{name}: {choice:?}");
        }
    }
}

#[test]
fn a_window_probe_leaves_at_once_on_a_path_with_room() {
    let probe = SendAsk { window_probe: true, ..ASK };
    for (name, mut scheduler) in schedulers() {
        let mut world = world(&[20, 100]);
        world.paths[0].in_flight = bytes(0);
        let choice = world.with(|view, context| scheduler.pick(&probe, view, context)).choice;
        assert_eq!(choice, Pick::Path(path(0)), "{name}");
    }
}

#[test]
fn views_without_figures_are_handled() {
    for (name, mut scheduler) in schedulers() {
        let mut world = world(&[20, 100, 50]);
        for facts in &mut world.paths {
            facts.rtt = Default::default();
            facts.cwnd = bytes(0);
            facts.ssthresh = bytes(0);
        }
        world.paths[1].rtt.smoothed = Some(Span::ZERO);
        world.paths[2].rtt.smoothed = Some(Span::from_nanos(u64::MAX));
        world.paths[2].bound = bytes(1 << 30);
        world.association.queued_bytes = u64::MAX;
        let decision = world.pick(&mut *scheduler);
        assert!(decision.reason.value.is_finite(), "{name}: {decision:?}");
        scheduler.replan(&world.view());
        for facts in &mut world.paths {
            facts.state = PathState::Inactive;
        }
        assert!(placed(world.pick(&mut *scheduler).choice).is_empty(), "{name}");
        assert!(!scheduler.replan(&world.view()), "{name}");
    }
}

#[test]
fn every_path_is_either_chosen_or_refused() {
    for (name, mut scheduler) in schedulers() {
        // The scheduler of `sctp` names only the path in use.
        if name == "backup" {
            continue;
        }
        let mut world = world(&[20, 30, 100]);
        for _ in 0..30 {
            let decision = world.pick(&mut *scheduler);
            let refused: PathSet = decision.refused.iter().map(|&(id, _)| id).collect();
            let chosen = placed(decision.choice);
            assert_eq!(refused.len(), decision.refused.len(), "{name}: {decision:?}");
            assert!(chosen.iter().all(|id| !refused.contains(id)), "{name}: {decision:?}");
            assert_eq!(chosen.len() + refused.len(), 3, "{name}: {decision:?}");
            take(&mut world, &mut *scheduler, decision.choice);
        }
    }
}

/// Returns the choice of a component with these settings.
fn choice(name: &str, settings: &[&str], world: &mut World) -> Pick {
    world.pick(&mut *scheduler(name, settings)).choice
}

fn wait_for_the_first() -> Pick {
    Pick::Wait(WaitFor::Path(path(0)))
}

#[test]
fn each_name_builds_its_scheduler() {
    // Full path of 20 ms and one of 100 ms with room for ten chunks; 20 chunks are queued, and the peer's window is 50000 B.
    let to = |index| Pick::Path(path(index));
    let expected = [
        ("round-robin", to(1)),
        ("weighted", to(1)),
        ("min-rtt", to(1)),
        // (1 + 20/10) 20 ms < 100 ms and 20/10 * 100 ms >= 40 ms.
        ("ecf", wait_for_the_first()),
        // 1.2 * 10 * (2^5 - 1) chunks by far exceed 50000 B.
        ("blest", wait_for_the_first()),
        // 30 ms and 10 ms against 50 ms.
        ("sttf", Pick::Bind(path(0))),
        ("otias", Pick::Bind(path(0))),
        ("redundant", to(1)),
        ("min-rtt-var", to(1)),
        ("acpf", to(1)),
        // 10 chunks in 20 ms for 40 ms exceed the bound data, which is zero.
        ("stms", Pick::Bind(path(0))),
        // 20 chunks fit into the window and are the last.
        ("dems", Pick::Bind(path(0))),
        ("backup", wait_for_the_first()),
    ];
    for (name, pick) in expected {
        assert_eq!(choice(name, &[], &mut world(&[20, 100])), pick, "{name}");
    }
    let mut open = world(&[20, 100]);
    open.paths[0].in_flight = bytes(0);
    open.association.last_new_data_path = Some(path(0));
    assert_eq!(choice("round-robin", &[], &mut open), to(1));
    assert_eq!(choice("weighted", &[], &mut open), to(0));
    assert_eq!(choice("redundant", &[], &mut open), Pick::Copies([path(0), path(1)].into_iter().collect()));
}

#[test]
fn weights_and_their_limit_reach_the_scheduler() {
    let mut world = world(&[20, 100]);
    world.paths[0].in_flight = bytes(0);
    assert_eq!(choice("weighted", &["weights=1:2"], &mut world), Pick::Path(path(1)));
    // With a zero limit no credit is kept, and the larger weight always wins.
    let mut forgetful = scheduler("weighted", &["weights=1:2", "limit=0B"]);
    for _ in 0..5 {
        let choice = world.pick(&mut *forgetful).choice;
        assert_eq!(choice, Pick::Path(path(1)));
        take(&mut world, &mut *forgetful, choice);
    }
}

#[test]
fn the_rank_of_unmeasured_paths_reaches_the_scheduler() {
    let mut world = world(&[20, 100, 50]);
    world.paths[1].rtt.smoothed = None;
    assert_eq!(choice("min-rtt", &[], &mut world), Pick::Path(path(1)));
    assert_eq!(choice("min-rtt", &["unmeasured=last"], &mut world), Pick::Path(path(2)));
}

#[test]
fn the_rules_of_ecf_reach_the_scheduler() {
    let with = |chunks: u64, settings: &[&str]| {
        let mut world = world(&[20, 100]);
        world.paths[1].rtt.variance = Some(Span::from_millis(15));
        let mut scheduler = scheduler("ecf", settings);
        let mut pick = |chunks| {
            world.association.queued_bytes = chunks * (M - 16);
            world.pick(&mut *scheduler).choice == wait_for_the_first()
        };
        (pick(20), pick(chunks))
    };
    // (1 + 50/10) 20 ms = 120 ms: below 1.25 * 115 ms, not below 115 ms.
    assert_eq!(with(50, &[]), (true, true));
    assert_eq!(with(50, &["beta=0"]), (true, false));
    // (1 + 56/10) 20 ms = 132 ms: below 1.25 * 115 = 143.75 ms, not below 1.25 * 100 ms.
    assert_eq!(with(56, &[]), (true, true));
    assert_eq!(with(56, &["deviations=0"]), (true, false));
    // 4/10 * 100 ms = 40 ms < 40 ms + 15 ms; one whole window takes 100 ms.
    assert_eq!(with(4, &[]), (true, false));
    assert_eq!(with(4, &["whole-windows=true"]), (true, true));
}

/// Returns the demand expected of the fastest path, in chunks of its window after `steps` round trips, blocked before each or not.
fn wanted(settings: &[&str], blocked: bool, steps: u32) -> f64 {
    let mut world = world(&[20, 100]);
    world.paths[0].ssthresh = bytes(20 * M);
    let mut scheduler = scheduler("blest", settings);
    world.pick(&mut *scheduler);
    for _ in 0..steps {
        if blocked {
            world.dispatch(&mut *scheduler, &Event::Blocked { hole: Some(path(1)) });
        }
        world.now += Span::from_millis(100);
        world.pick(&mut *scheduler);
    }
    let value = world.pick(&mut *scheduler).reason.value / M as f64;
    (value * 1000.0).round() / 1000.0
}

#[test]
fn the_rules_of_blest_reach_the_scheduler() {
    // X = 10 (2^5 - 1) = 310 chunks in slow start, (10 + 4/2) 5 = 60 otherwise.
    assert_eq!(wanted(&[], false, 0), 372.0);
    assert_eq!(wanted(&["slow-start=false"], false, 0), 72.0);
    assert_eq!(wanted(&["lambda=1.1"], false, 0), 341.0);
    // 1.19 * 310 and 1.24 * 310.
    assert_eq!(wanted(&[], false, 1), 368.9);
    assert_eq!(wanted(&[], true, 1), 384.4);
    // 1.15 * 310, 1.3 * 310.
    assert_eq!(wanted(&["step-down=0.05"], false, 1), 356.5);
    assert_eq!(wanted(&["step-up=0.1"], true, 1), 403.0);
    assert_eq!(wanted(&["lambda-min=1.15"], false, 9), 356.5);
    assert_eq!(wanted(&["lambda-max=1.25"], true, 9), 387.5);
    assert_eq!(wanted(&["evidence=closed-window"], true, 1), 384.4);
    assert_eq!(wanted(&["evidence=retransmission"], true, 1), 368.9);
}

#[test]
fn rtt_choice_of_sttf_and_rounding_of_otias_reach_the_scheduler() {
    let mut world = world(&[20, 100]);
    world.paths[0].rtt.latest = Some(Span::from_millis(80));
    assert_eq!(choice("sttf", &["rtt=smoothed"], &mut world), Pick::Bind(path(0)));
    assert_eq!(choice("sttf", &["rtt=latest"], &mut world), Pick::Path(path(1)));
    // 20 ms * 2.5 or 3.5 against 50 ms, with 20 of 10 chunks ahead.
    world.paths[0].bound = bytes(20 * M);
    assert_eq!(choice("otias", &["rounding=down"], &mut world), Pick::Bind(path(0)));
    assert_eq!(choice("otias", &["rounding=begun"], &mut world), Pick::Path(path(1)));
}
