//! Tests of shares, catching up and forgetting, computed by hand.

use super::*;
use crate::registry::{Kind, Parameter, Value};
use crate::testing::{ASK, M, World, bytes, path};
use anabranch_core::policy::{SentTransmission, StateCause};
use anabranch_core::profile::Profile;

fn weights(text: &str) -> Weights {
    let parameter = Parameter {
        name: "weights",
        kind: Kind::Weights,
        unit: "",
        default: Value::Weights(Weights::EQUAL),
        about: "",
        source: "",
    };
    match parameter.read(text) {
        Ok(Value::Weights(weights)) => weights,
        other => panic!("{text}: {other:?}"),
    }
}

fn scheduler(text: &str) -> Weighted {
    Weighted::new(weights(text), Length::Chunks(10.0))
}

/// Sends one packet of `size` chunk bytes on the scheduler's choice, through a window that never fills.
fn send(world: &mut World, scheduler: &mut Weighted, size: u64) -> usize {
    let ask = SendAsk { chunk: bytes(size), ..ASK };
    let Pick::Path(id) = world.with(|view, context| scheduler.pick(&ask, view, context)).choice else {
        panic!("it has room")
    };
    left(world, scheduler, id.index(), size, SendKind::New);
    id.index()
}

fn left(world: &mut World, scheduler: &mut Weighted, index: usize, size: u64, kind: SendKind) {
    let (path, bytes) = (path(index), bytes(size));
    let sent = SentTransmission { path, previous_path: None, tsn: 1, bytes, kind };
    world.dispatch(scheduler, &Event::Sent(&sent));
}

fn world(paths: usize) -> World {
    World::new(Profile::rfc9260_multipath(), paths)
}

#[test]
fn three_to_one_gives_every_fourth_packet_to_the_second_path() {
    let (mut world, mut scheduler) = (world(2), scheduler("3:1"));
    // In quarters of a packet, after crediting: (3,1) 0, (2,2) 0 as the first of equals, (1,3) 1, (4,0) 0, and again.
    let paths: Vec<usize> = (0..8).map(|_| send(&mut world, &mut scheduler, M)).collect();
    assert_eq!(paths, [0, 0, 1, 0, 0, 0, 1, 0]);
}

#[test]
fn a_thousand_packets_are_shared_as_the_weights_say() {
    let cases: [(&str, &[i32]); 5] = [
        ("3:1", &[750, 250]),
        ("1:3", &[250, 750]),
        // Thirds of 1000 packets are 333.3.
        ("1", &[333, 333, 333]),
        ("1:2:7", &[100, 200, 700]),
        // Paths beyond the list use its last number: 1000 * 499/501 = 996.0, and 2.0 each.
        ("499:1", &[996, 2, 2]),
    ];
    for (text, expected) in cases {
        let (mut world, mut scheduler) = (world(expected.len()), scheduler(text));
        let mut counts = vec![0_i32; expected.len()];
        for _ in 0..1000 {
            counts[send(&mut world, &mut scheduler, M)] += 1;
        }
        let near = counts.iter().zip(expected).all(|(count, share)| (count - share).abs() <= 1);
        assert!(near, "{text}: {counts:?}");
    }
}

#[test]
fn bytes_are_shared_and_not_packets() {
    let (mut world, mut scheduler) = (world(2), scheduler("1:1"));
    let mut carried = [0; 2];
    for packet in 0..1000 {
        let size = if packet % 2 == 0 { M } else { 116 };
        carried[send(&mut world, &mut scheduler, size)] += size;
    }
    // 500 * (1468 + 116) = 792000 B in total; packet by packet, path 0 would carry 734000 B of them.
    assert!(carried.iter().all(|bytes| bytes.abs_diff(396_000) <= M), "{carried:?}");
}

#[test]
fn the_reason_names_the_credit() {
    let (mut world, scheduler) = (world(2), &mut scheduler("3:1"));
    let decision = world.pick(scheduler);
    // 1468 * 3/4
    assert_eq!((decision.reason.figure, decision.reason.value), ("credit_bytes", 1101.0));
    assert_eq!(decision.refused.as_slice(), [(path(1), Refusal::Preference)]);
}

#[test]
fn a_path_that_was_full_catches_up_as_far_as_the_limit() {
    let (mut world, mut scheduler) = (world(2), scheduler("1:1"));
    world.paths[1].in_flight = bytes(4380);
    for _ in 0..100 {
        assert_eq!(send(&mut world, &mut scheduler, M), 0);
    }
    world.paths[1].in_flight = bytes(0);
    // Path 1 has +10 packets of credit and path 0 -10. Each packet on path 1 moves both by a half, so after 19 of them path 1 has
    // 10 - 9.5 = 0.5 and path 0 -0.5. With the next packet that is 1 to 0, after one more 0 to 0, and 0.5 to 0.5 selects path 0.
    let paths: Vec<usize> = (0..22).map(|_| send(&mut world, &mut scheduler, M)).collect();
    assert_eq!(paths[..20], [1; 20]);
    assert_eq!(paths[20..], [0, 1]);
}

#[test]
fn path_out_of_service_gains_no_credit_and_restarts() {
    let (mut world, mut scheduler) = (world(2), scheduler("1:1"));
    world.paths[1].state = PathState::PotentiallyFailed;
    for _ in 0..10 {
        assert_eq!(send(&mut world, &mut scheduler, M), 0);
    }
    assert_eq!(scheduler.credits, [0.0; MAX_PATHS], "alone, a path is never off its share");
    scheduler.credits = [-100.0, 5000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    world.paths[1].state = PathState::Active;
    let cause = StateCause::Promoted(Reason::rule("fewest errors"));
    let (from, to) = (PathState::PotentiallyFailed, PathState::Active);
    world.dispatch(&mut scheduler, &Event::PathState { path: path(1), from, to, cause });
    world.dispatch(&mut scheduler, &Event::PathAdded(path(0)));
    assert_eq!(scheduler.credits, [0.0; MAX_PATHS]);
}

#[test]
fn only_new_data_is_shared_out() {
    let (mut world, mut scheduler) = (world(2), scheduler("1:1"));
    for kind in [SendKind::Retransmission, SendKind::Copy, SendKind::HeadOfLine, SendKind::TailProbe] {
        left(&mut world, &mut scheduler, 0, M, kind);
        assert_eq!(scheduler.credits, [0.0; MAX_PATHS], "{kind:?}");
    }
    left(&mut world, &mut scheduler, 0, M, SendKind::WindowProbe);
    assert_eq!(scheduler.credits[..2], [-734.0, 734.0]);
}

#[test]
fn full_path_behind_its_share_is_skipped() {
    let (mut world, mut scheduler) = (world(2), scheduler("1:1000"));
    world.paths[1].in_flight = bytes(4380);
    assert_eq!(send(&mut world, &mut scheduler, M), 0);
    world.paths[0].in_flight = bytes(4380);
    let decision = world.pick(&mut scheduler);
    assert_eq!(decision.choice, Pick::Wait(WaitFor::Window));
    assert_eq!(decision.refused.len(), 2);
}
