//! Random sequences of transitions: after each, all totals equal the sums over the chunks' states.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use crate::path_id::{MAX_PATHS, PathId};
use crate::policy::LossCause;
use crate::profile::{CopyFate, Profile};
use crate::send::{
    AbandonCause, ChunkState, Delivered, MessageKey, Reliability, SendOptions, SendQueue, Sender,
    StreamScheduler,
};
use crate::time::{Span, Time};
use crate::units::{ChunkBytes, WindowBytes};

const PATHS: usize = 3;
const FIRST_TSN: u64 = (1 << 32) + 7;
const FIRST_WINDOW: WindowBytes = WindowBytes::new(50_000);

/// Transition of a chunk or message. `at` selects one of the chunks to which it applies.
#[derive(Clone, Debug)]
enum Step {
    Push {
        bytes: usize,
        reliability: Reliability,
    },
    /// Abandons one message whose lifetime is over.
    Expire,
    /// Abandons messages with lost chunks that may not be retransmitted.
    Exhaust,
    /// Abandons messages to make room for a new one.
    MakeRoom {
        bytes: u64,
        number: u32,
    },
    /// Cuts the next chunk, and sends it at once or binds it.
    Admit {
        path: usize,
        bound: bool,
    },
    TransmitBound {
        path: usize,
    },
    Unbind {
        path: usize,
    },
    Place {
        path: usize,
    },
    Copy {
        at: usize,
        path: usize,
    },
    Lose {
        at: usize,
        cause: LossCause,
    },
    Retransmit {
        at: usize,
        path: usize,
    },
    /// Acknowledges a chunk by a gap block.
    Acknowledge {
        at: usize,
        source: usize,
    },
    Renege {
        at: usize,
    },
    Keep {
        from: usize,
        count: u64,
    },
    Duplicate {
        at: usize,
        path: usize,
    },
    DuplicatesEnd {
        path: usize,
    },
    /// Moves the cumulative TSN over all consecutive acknowledged chunks.
    Discard,
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS;
    let at = || 0..40_usize;
    let cause =
        prop_oneof![Just(LossCause::FastRetransmit), Just(LossCause::Timeout), Just(LossCause::Rescheduled)];
    prop_oneof![
        3 => (1..4000_usize, reliability()).prop_map(|(bytes, reliability)| Step::Push { bytes, reliability }),
        1 => Just(Step::Expire),
        1 => Just(Step::Exhaust),
        1 => (1..9000_u64, 0..4_u32).prop_map(|(bytes, number)| Step::MakeRoom { bytes, number }),
        6 => (path(), any::<bool>()).prop_map(|(path, bound)| Step::Admit { path, bound }),
        2 => path().prop_map(|path| Step::TransmitBound { path }),
        1 => path().prop_map(|path| Step::Unbind { path }),
        1 => path().prop_map(|path| Step::Place { path }),
        2 => (at(), path()).prop_map(|(at, path)| Step::Copy { at, path }),
        3 => (at(), cause).prop_map(|(at, cause)| Step::Lose { at, cause }),
        2 => (at(), path()).prop_map(|(at, path)| Step::Retransmit { at, path }),
        5 => (at(), path()).prop_map(|(at, source)| Step::Acknowledge { at, source }),
        1 => at().prop_map(|at| Step::Renege { at }),
        1 => (at(), 0..9_u64).prop_map(|(from, count)| Step::Keep { from, count }),
        1 => (at(), path()).prop_map(|(at, path)| Step::Duplicate { at, path }),
        1 => path().prop_map(|path| Step::DuplicatesEnd { path }),
        3 => Just(Step::Discard),
    ]
}

fn reliability() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        2 => Just(Reliability::Full),
        1 => (0..3_u32).prop_map(Reliability::MaxRetransmissions),
        1 => (0..100_u64).prop_map(|ms| Reliability::Lifetime(Span::from_millis(ms))),
        1 => (0..100_u64, 0..3_u32).prop_map(|(ms, max_retransmissions)| {
            Reliability::LifetimeAndRetransmissions { lifetime: Span::from_millis(ms), max_retransmissions }
        }),
        1 => (0..4_u32).prop_map(Reliability::Priority),
    ]
}

fn sender(profile: Profile) -> Sender {
    let mut sender = Sender::new(
        Arc::new(profile),
        SendQueue::new(1, 0, StreamScheduler::default()),
        FIRST_TSN,
        Some(100_000),
    );
    sender.begin_window(FIRST_WINDOW);
    sender.learn_support(true);
    for index in 0..PATHS {
        sender.begin_path(PathId::new(index), Time::ZERO);
    }
    sender
}

/// Returns one of the TSNs whose chunk is in a matching state.
fn one(sender: &Sender, at: usize, fits: impl Fn(ChunkState) -> bool) -> Option<u64> {
    let found: Vec<u64> =
        sender.outstanding().iter().filter(|(_, chunk)| fits(chunk.state)).map(|(tsn, _)| tsn).collect();
    found.get(at % found.len().max(1)).copied()
}

/// Applies a step as an association does.
fn take(sender: &mut Sender, step: &Step, now: Time) {
    match *step {
        Step::Push { bytes, reliability } => {
            if sender.reserve(bytes as u64).is_ok() {
                let options = SendOptions { reliability, ..SendOptions::default() };
                sender.push(Bytes::from(vec![7; bytes]), options, now);
            }
        }
        Step::Expire => {
            if let Some(key) = sender.take_expired(now) {
                abandon(sender, key);
            }
        }
        Step::Exhaust => {
            while let Some((key, _)) = sender.take_exhausted(now) {
                abandon(sender, key);
            }
        }
        Step::MakeRoom { bytes, number } => make_room(sender, bytes, number),
        Step::Admit { path, bound } => admit(sender, PathId::new(path), bound, now),
        Step::TransmitBound { path } => {
            if let Some(tsn) = sender.bound().next_of(PathId::new(path)) {
                sender.transmit(tsn, now);
            }
        }
        Step::Unbind { path } => {
            sender.unbind(PathId::new(path));
        }
        Step::Place { path } => {
            sender.place(PathId::new(path));
        }
        Step::Copy { at, path } => {
            if let Some(tsn) = one(sender, at, |state| state == ChunkState::InFlight) {
                sender.copy(tsn, PathId::new(path), now);
            }
        }
        Step::Lose { at, cause } => {
            let fits = |state| matches!(state, ChunkState::InFlight | ChunkState::Lost(_));
            if let Some(tsn) = one(sender, at, fits) {
                sender.declare_lost(tsn, cause);
            }
        }
        Step::Retransmit { at, path } => {
            if let Some(tsn) = one(sender, at, |state| matches!(state, ChunkState::Lost(_))) {
                sender.prepare_retransmission(tsn, true);
                sender.retransmit(tsn, PathId::new(path), now);
            }
        }
        Step::Acknowledge { at, source } => acknowledge(sender, at, PathId::new(source), now),
        Step::Renege { at } => {
            if let Some(tsn) = one(sender, at, |state| state == ChunkState::Acked) {
                sender.renege(tsn);
            }
        }
        Step::Keep { from, count } => {
            let start = sender.outstanding().cumulative() + from as u64;
            sender.keep(start, start + count);
        }
        Step::Duplicate { at, path } => duplicate(sender, at, PathId::new(path)),
        Step::DuplicatesEnd { path } => sender.end_duplicates(PathId::new(path)),
        Step::Discard => discard(sender),
    }
}

fn admit(sender: &mut Sender, path: PathId, bound: bool, now: Time) {
    let Some(draft) = sender.cut(1_000) else { return };
    let admitted = sender.admit(draft, path);
    if bound {
        sender.bind(path, admitted.tsn);
    } else {
        sender.transmit(admitted.tsn, now);
    }
}

fn abandon(sender: &mut Sender, key: MessageKey) {
    let Some(withdrawn) = sender.withdraw(key) else { return };
    let (first, last) = withdrawn.tsns.unwrap_or((1, 0));
    for tsn in first..=last {
        sender.abandon_chunk(tsn);
    }
    assert_eq!(sender.withdraw(key), None, "a message is withdrawn once");
}

fn make_room(sender: &mut Sender, bytes: u64, number: u32) {
    if sender.find_room(bytes, Reliability::Priority(number)) {
        while let Some(key) = sender.take_candidate() {
            abandon(sender, key);
        }
        assert!(sender.has_room(bytes), "withdrawn bytes become free");
    }
}

fn acknowledge(sender: &mut Sender, at: usize, source: PathId, now: Time) {
    let sent = |state| matches!(state, ChunkState::InFlight | ChunkState::Lost(_));
    let Some(tsn) = one(sender, at, sent) else { return };
    let Some(credited) = sender.credited_copy(tsn, Some(source)) else { return };
    let lost = sender.outstanding().get(tsn).is_some_and(|chunk| chunk.state != ChunkState::InFlight);
    if lost {
        sender.revoke_loss(tsn, &credited);
    }
    sender.acknowledge(tsn, &credited);
    sender.end_overtaken_duplicates(credited.path, credited.stamps.sent_at);
    let delivered = Delivered { stamps: credited.stamps, certain: true, same_way: true };
    sender.deliver(credited.path, credited.bytes, delivered, now);
    sender.settle(credited.path, credited.bytes);
}

fn duplicate(sender: &mut Sender, at: usize, path: PathId) {
    let tsns: Vec<u64> = sender.duplicates(path).map(|copy| copy.tsn).collect();
    if let Some(&tsn) = tsns.get(at % tsns.len().max(1)) {
        let copy = sender.take_duplicate(path, tsn).expect("it is there");
        sender.settle(path, copy.bytes);
    }
}

fn discard(sender: &mut Sender) {
    while sender.outstanding().iter().next().is_some_and(|(_, chunk)| !chunk.state.is_awaited()) {
        let next = sender.outstanding().cumulative() + 1;
        assert_eq!(sender.discard().map(|discarded| discarded.tsn), Some(next));
    }
}

fn profiles() -> impl Strategy<Value = Profile> {
    let judging = Profile { copy_fate: CopyFate::Judged, ..Profile::rfc9260() };
    prop_oneof![
        Just(Profile::rfc9260()),
        Just(Profile::ns2()),
        Just(Profile::net().multipath()),
        Just(judging)
    ]
}

proptest! {
    #[test]
    fn totals_equal_the_sums_over_chunks_after_every_event(
        profile in profiles(),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut sender = sender(profile);
        let mut now = Time::ZERO;
        for step in &steps {
            now += Span::from_millis(1);
            take(&mut sender, step, now);
            sender.check();
        }
    }

    /// Ends all chunks; then every total is zero.
    #[test]
    fn state_is_empty_once_all_data_is_acked(
        profile in profiles(),
        steps in prop::collection::vec(step(), 1..150),
    ) {
        let mut sender = sender(profile);
        let now = Time::ZERO + Span::from_secs(1);
        steps.iter().for_each(|step| take(&mut sender, step, now));
        while sender.queue().next_payload(1_000).is_some() {
            admit(&mut sender, PathId::new(0), false, now);
        }
        for path in (0..MAX_PATHS).map(PathId::new) {
            while sender.place(path).is_some() {}
            while let Some(tsn) = sender.bound().next_of(path) {
                sender.transmit(tsn, now);
            }
        }
        while sender.outstanding().first_unacked().is_some() {
            acknowledge(&mut sender, 0, PathId::new(0), now);
        }
        discard(&mut sender);
        for path in (0..MAX_PATHS).map(PathId::new) {
            sender.end_duplicates(path);
            let bytes = *sender.bytes(path);
            prop_assert_eq!(bytes.in_flight + bytes.lost_unsent + bytes.bound + bytes.held, ChunkBytes::ZERO);
            prop_assert_eq!(sender.transmissions(path), 0);
        }
        prop_assert!(sender.is_done() && sender.is_idle());
        prop_assert_eq!(sender.window_outstanding(), WindowBytes::ZERO);
        sender.estimate_window();
        prop_assert_eq!(sender.window().available(), FIRST_WINDOW);
    }
}

#[test]
fn room_is_announced_once_to_a_refused_sender() {
    let mut sender = Sender::new(
        Arc::new(Profile::rfc9260()),
        SendQueue::new(1, 0, StreamScheduler::default()),
        FIRST_TSN,
        Some(100),
    );
    assert_eq!(sender.reserve(500), Ok(()), "an empty buffer takes one message of any size");
    sender.push(Bytes::from(vec![7; 90]), SendOptions::default(), Time::ZERO);
    assert!(!sender.take_writable(), "nobody waits");
    assert_eq!(sender.reserve(11), Err(10));
    assert!(sender.take_writable());
    assert!(!sender.take_writable());
    sender.push(Bytes::from(vec![7; 10]), SendOptions::default(), Time::ZERO);
    assert_eq!(sender.reserve(1), Err(0));
    assert!(!sender.take_writable(), "there is no room yet");
    sender.grow_buffer(101);
    assert!(sender.take_writable());
}

#[test]
fn lost_chunk_frees_its_share_of_the_peer_window_until_retransmission() {
    let mut sender = sender(Profile::rfc9260());
    sender.push(Bytes::from(vec![7; 600]), SendOptions::default(), Time::ZERO);
    let path = PathId::new(1);
    admit(&mut sender, path, false, Time::ZERO);
    let taken = FIRST_WINDOW - WindowBytes::new(600);
    assert_eq!(sender.window().available(), taken);
    let loss = sender.declare_lost(FIRST_TSN, LossCause::Timeout).expect("it was in flight");
    assert_eq!((loss.path, loss.again), (path, false));
    assert_eq!(sender.window().available(), FIRST_WINDOW);
    let again = sender.declare_lost(FIRST_TSN, LossCause::FastRetransmit).expect("it is outstanding");
    assert!(again.again && sender.window().available() == FIRST_WINDOW);
    let left = sender.retransmit(FIRST_TSN, PathId::new(0), Time::ZERO).expect("it was lost");
    assert_eq!(left.previous_path, path);
    assert_eq!(sender.window().available(), taken);
    sender.check();
}

#[test]
fn transmission_is_stamped_with_delivered_bytes_and_flight_start() {
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    let path = PathId::new(0);
    let mut sender = sender(Profile::rfc9260());
    for _ in 0..4 {
        sender.push(Bytes::from_static(&[1; 100]), SendOptions::default(), Time::ZERO);
    }
    let stamps = |sender: &Sender, at: u64| {
        sender.outstanding().latest_of(FIRST_TSN + at).expect("it was sent").stamps
    };
    admit(&mut sender, path, false, at(10));
    admit(&mut sender, path, false, at(20));
    assert_eq!((stamps(&sender, 0).first_sent_at, stamps(&sender, 1).first_sent_at), (at(10), at(10)));
    assert_eq!(stamps(&sender, 1).delivered, ChunkBytes::ZERO);

    acknowledge(&mut sender, 0, path, at(110));
    admit(&mut sender, path, false, at(120));
    let third = stamps(&sender, 2);
    assert_eq!((third.sent_at, third.first_sent_at, third.delivered_at), (at(120), at(10), at(110)));
    assert_eq!(third.delivered, ChunkBytes::new(116));

    acknowledge(&mut sender, 0, path, at(121));
    acknowledge(&mut sender, 0, path, at(220));
    admit(&mut sender, path, false, at(500));
    let after_idle = stamps(&sender, 3);
    assert_eq!((after_idle.first_sent_at, after_idle.delivered_at), (at(500), at(500)));
}

#[test]
fn copies_of_a_dropped_chunk_leave_the_flight_and_others_stay() {
    let mut sender = sender(Profile::rfc9260());
    let [first, second] = [PathId::new(0), PathId::new(1)];
    for at in 0..2 {
        sender.push(Bytes::from_static(&[1; 100]), SendOptions::default(), Time::ZERO);
        admit(&mut sender, first, false, Time::ZERO);
        assert!(sender.copy(FIRST_TSN + at, second, Time::ZERO).is_some());
    }
    for _ in 0..2 {
        acknowledge(&mut sender, 0, first, Time::ZERO);
    }
    let duplicates = |sender: &Sender| sender.duplicates(second).map(|copy| copy.tsn).collect::<Vec<_>>();
    assert_eq!(duplicates(&sender), [FIRST_TSN, FIRST_TSN + 1]);
    sender.renege(FIRST_TSN);
    assert_eq!(duplicates(&sender), [FIRST_TSN + 1]);
    sender.check();
}

#[test]
fn reneged_chunk_counts_toward_increment_once() {
    let mut sender = sender(Profile::ns2());
    let now = Time::ZERO;
    let (path, source) = (PathId::new(0), PathId::new(1));
    sender.push(Bytes::from(vec![7; 100]), SendOptions::default(), now);
    admit(&mut sender, path, false, now);
    let tsn = sender.outstanding().first_unacked().expect("one chunk is in flight");
    acknowledge(&mut sender, 0, source, now);
    assert!(sender.count_toward_increment(tsn));
    sender.renege(tsn);
    acknowledge(&mut sender, 0, source, now);
    assert!(!sender.count_toward_increment(tsn));
}

#[test]
fn either_of_two_limits_abandons_the_message() {
    let limits =
        Reliability::LifetimeAndRetransmissions { lifetime: Span::from_millis(100), max_retransmissions: 1 };
    let lost_once = || {
        let mut sender = sender(Profile::ns2());
        let options = SendOptions { reliability: limits, ..SendOptions::default() };
        sender.push(Bytes::from(vec![7; 100]), options, Time::ZERO);
        admit(&mut sender, PathId::new(0), false, Time::ZERO);
        let tsn = sender.outstanding().first_unacked().expect("one chunk is in flight");
        sender.declare_lost(tsn, LossCause::FastRetransmit);
        (sender, tsn)
    };
    let at = |ms| Time::ZERO + Span::from_millis(ms);

    let (mut expired, _) = lost_once();
    assert_eq!(expired.take_exhausted(at(99)), None);
    assert!(expired.take_expired(at(99)).is_none());
    assert!(expired.take_expired(at(100)).is_some());

    let (mut exhausted, tsn) = lost_once();
    assert_eq!(exhausted.take_exhausted(at(10)), None);
    exhausted.prepare_retransmission(tsn, true);
    exhausted.retransmit(tsn, PathId::new(0), at(20));
    exhausted.declare_lost(tsn, LossCause::FastRetransmit);
    let cause = exhausted.take_exhausted(at(30)).map(|(_, cause)| cause);
    assert_eq!(cause, Some(AbandonCause::Retransmissions));
}
