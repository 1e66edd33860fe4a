use super::*;
use proptest::prelude::*;

fn order(scheduler: StreamScheduler) -> StreamOrder {
    StreamOrder::new(scheduler).expect("a scheduler that distinguishes streams")
}

fn priority(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).expect("a priority above zero")
}

/// Sends this number of messages from streams that always have one, of the length that `bytes` returns, and returns their streams.
fn serve(order: &mut StreamOrder, messages: usize, bytes: impl Fn(u16) -> u64) -> Vec<u16> {
    let mut served = Vec::new();
    for _ in 0..messages {
        let stream = order.first().expect("an active stream");
        order.note_chunk(stream);
        order.end_turn(stream, bytes(stream));
        served.push(stream);
    }
    served
}

#[test]
fn default_scheduler_distinguishes_no_streams() {
    assert!(StreamOrder::new(StreamScheduler::default()).is_none());
}

#[test]
fn round_robin_alternates_by_message_of_any_length() {
    let mut order = order(StreamScheduler::RoundRobin);
    [7, 2, 5].into_iter().for_each(|stream| order.activate(stream));
    assert_eq!(serve(&mut order, 6, |stream| u64::from(stream) * 1000), [7, 2, 5, 7, 2, 5]);
    order.deactivate(2);
    assert_eq!(serve(&mut order, 3, |_| 1), [7, 5, 7]);
    order.activate(2);
    assert_eq!(serve(&mut order, 3, |_| 1), [5, 7, 2]);
}

#[test]
fn round_robin_per_packet_keeps_a_packet_to_one_stream() {
    let mut order = order(StreamScheduler::RoundRobinPerPacket);
    [1, 2].into_iter().for_each(|stream| order.activate(stream));
    assert!(order.shares_packet(1) && order.shares_packet(2), "the packet is empty");
    assert_eq!(serve(&mut order, 3, |_| 10), [1, 1, 1]);
    assert!(order.shares_packet(1) && !order.shares_packet(2));
    order.end_packet();
    assert_eq!(serve(&mut order, 2, |_| 10), [2, 2]);
    // A stream that ran out of messages in its packet gets its next turn behind the other.
    order.deactivate(2);
    assert!(!order.shares_packet(1));
    order.end_packet();
    assert_eq!(order.first(), Some(1));
}

#[test]
fn larger_priority_sends_first_and_equal_ones_take_turns() {
    let mut order = order(StreamScheduler::Priority);
    order.set_priority(1, priority(512));
    order.set_priority(3, priority(512));
    [0, 1, 2, 3].into_iter().for_each(|stream| order.activate(stream));
    assert_eq!(serve(&mut order, 4, |_| 1), [1, 3, 1, 3]);
    order.deactivate(1);
    assert_eq!(serve(&mut order, 2, |_| 1), [3, 3]);
    order.deactivate(3);
    assert_eq!(serve(&mut order, 3, |_| 1), [0, 2, 0]);
    order.activate(1);
    assert_eq!(order.first(), Some(1), "it overtakes streams that waited before it");
}

#[test]
fn changed_priority_applies_to_waiting_messages() {
    let mut order = order(StreamScheduler::Priority);
    [0, 1].into_iter().for_each(|stream| order.activate(stream));
    assert_eq!(order.first(), Some(0));
    order.set_priority(1, priority(257));
    assert_eq!(order.first(), Some(1));
    order.set_priority(1, priority(1));
    assert_eq!(order.first(), Some(0));
}

#[test]
fn idle_stream_with_a_larger_weight_precedes_all_that_wait_in_the_round() {
    let mut order = order(StreamScheduler::WeightedFairQueueing);
    [1, 2, 3].into_iter().for_each(|stream| order.activate(stream));
    assert_eq!(serve(&mut order, 4, |_| 1000), [1, 2, 3, 1]);
    order.set_priority(7, priority(4096));
    order.activate(7);
    assert_eq!(serve(&mut order, 1, |_| 10), [7]);
    order.deactivate(7);
    assert_eq!(serve(&mut order, 3, |_| 1000), [2, 3, 1]);
}

#[test]
fn idle_time_gives_a_fair_stream_credit_of_one_long_message_at_most() {
    for scheduler in [StreamScheduler::FairCapacity, StreamScheduler::WeightedFairQueueing] {
        let mut order = order(scheduler);
        order.activate(0);
        serve(&mut order, 1000, |_| 1024);
        order.activate(1);
        let served = serve(&mut order, 36, |_| 1024);
        let of_new = served.iter().filter(|&&stream| stream == 1).count();
        // 16 before their share, and half of the others.
        assert!((25..=27).contains(&of_new), "{served:?}");
    }
}

/// Waits of a stream that sends `bytes` in each turn of all others, in messages of others.
fn waits_beside_64_downloads(messages_per_round: usize, bytes: u64) -> Vec<usize> {
    let mut order = order(StreamScheduler::WeightedFairQueueing);
    (0..64).for_each(|stream| order.activate(stream));
    let lengths = |stream| if stream == 64 { bytes } else { 16 << 10 };
    // Several rounds, so that the idle stream may start early.
    serve(&mut order, 64 * 3, lengths);
    let mut waits = Vec::new();
    for _ in 0..4 * messages_per_round {
        order.activate(64);
        let mut waited = 0;
        while serve(&mut order, 1, lengths) != [64] {
            waited += 1;
        }
        waits.push(waited);
        order.deactivate(64);
        serve(&mut order, 64 / messages_per_round, lengths);
    }
    waits
}

#[test]
fn stream_below_its_share_waits_for_no_message_of_64_others() {
    for (messages, bytes) in [(4, 100), (16, 1000), (2, 8 << 10)] {
        assert_eq!(
            waits_beside_64_downloads(messages, bytes),
            vec![0; 4 * messages],
            "{messages} of {bytes} B"
        );
    }
    let beyond = waits_beside_64_downloads(16, 4 << 10);
    assert!(beyond.iter().any(|waited| *waited > 8), "{beyond:?}");
}

proptest! {
    /// Bounds the difference of two busy streams by one message of each: the bound of start-time fair queueing.
    #[test]
    fn busy_streams_get_bytes_in_proportion_to_weights(
        streams in prop::collection::vec((1_u64..10_000, 1_u16..1000), 2..8),
        weighted: bool,
    ) {
        let scheduler = if weighted { StreamScheduler::WeightedFairQueueing } else { StreamScheduler::FairCapacity };
        let mut order = order(scheduler);
        for (stream, &(_, weight)) in (0..).zip(&streams) {
            order.set_priority(stream, priority(weight));
            order.activate(stream);
        }
        let bytes = |stream: u16| streams[usize::from(stream)].0;
        let served = serve(&mut order, 500, bytes);
        let weight = |at: usize| if weighted { f64::from(streams[at].1) } else { 1.0 };
        let share = |at: usize| {
            let sent = served.iter().filter(|&&stream| usize::from(stream) == at).count() as u64;
            (sent * streams[at].0) as f64 / weight(at)
        };
        for a in 0..streams.len() {
            for b in 0..a {
                let bound = streams[a].0 as f64 / weight(a) + streams[b].0 as f64 / weight(b);
                prop_assert!((share(a) - share(b)).abs() <= bound * 1.001 + 1.0, "{a} {b} {served:?}");
            }
        }
    }

    /// Activates, deactivates and serves streams at random: the order contains each active stream once.
    #[test]
    fn order_contains_exactly_the_active_streams(
        steps in prop::collection::vec((0_u8..5, 0_u16..6, 1_u16..9), 0..100),
        which in 1_usize..6,
    ) {
        let mut order = order(StreamScheduler::ALL[which]);
        let mut active = BTreeSet::new();
        for (step, stream, number) in steps {
            match step {
                0 => { order.activate(stream); active.insert(stream); }
                1 => { order.deactivate(stream); active.remove(&stream); }
                2 => order.set_priority(stream, priority(number)),
                3 => {
                    order.end_packet();
                }
                _ => if order.first().is_some() { serve(&mut order, 1, |_| u64::from(number)); }
            }
            let ranked: BTreeSet<u16> = order.active.iter().map(|&(_, stream)| stream).collect();
            prop_assert_eq!(&ranked, &active);
            prop_assert_eq!(order.active.len(), active.len());
        }
    }
}
