//! Tests of the streams of an association, without an endpoint.

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::task::{Context, Poll, Waker};

use anabranch_core::DEFAULT_STREAM_PRIORITY;
use bytes::Bytes;

use super::control::{Ahead, InOrder};
use super::credit::{FIRST_WINDOW, LARGEST_WINDOW};
use super::table::{RecvEnd, SendEnd, StreamKey, StreamPeer, StreamTable, UNREAD_LIMIT, Violation};
use crate::message::Message;

const STREAMS: u16 = 8;

/// Returns the table of the side with even identifiers.
fn table(peer: StreamPeer) -> StreamTable {
    let mut table = StreamTable::default();
    table.begin(peer, true, STREAMS);
    table
}

fn message(stream: u16, bytes: usize) -> Message {
    let payload = Bytes::from(vec![7; bytes]);
    Message { stream, ppid: 0, unordered: false, beginning: true, ending: true, payload }
}

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn read(table: &mut StreamTable, key: StreamKey) -> Poll<Result<usize, RecvEnd>> {
    table.poll_message(key, &cx()).map_ok(|message| message.payload.len())
}

fn reports(table: &mut StreamTable) -> Vec<Ahead> {
    let bytes = table.take_reports(usize::MAX);
    let mut rest = &bytes[..];
    let next = || {
        let (report, others) = Ahead::decode(rest)?;
        rest = others;
        Some(report)
    };
    std::iter::from_fn(next).collect()
}

/// Opens a stream of the peer by a first message.
fn accepted(table: &mut StreamTable, stream: u16) -> StreamKey {
    assert_eq!(table.deliver(message(stream, 1)), Ok(()));
    let key = table.accept().expect("the peer opened it");
    assert_eq!(read(table, key), Poll::Ready(Ok(1)));
    key
}

#[test]
fn each_side_opens_identifiers_of_its_own() {
    let mut table = table(StreamPeer::Controls);
    let opened: Vec<u16> = std::iter::from_fn(|| table.open()).map(|key| key.stream).collect();
    assert_eq!(opened, [0, 2, 4, 6]);
    assert_eq!(table.deliver(message(3, 1)), Ok(()));
    assert_eq!(table.accept().map(|key| key.stream), Some(3));
}

#[test]
fn an_identifier_is_free_once_both_sides_have_ended_the_stream() {
    let mut table = table(StreamPeer::Controls);
    let first = table.open().expect("free");
    assert_eq!(table.end(first), Ok(()));
    assert_eq!(table.open().map(|key| key.stream), Some(2), "the peer has not ended 0");
    assert_eq!(table.end_of_peer(0, InOrder::Finish), Ok(()));
    let second = table.open().expect("free");
    assert_eq!((second.stream, second.incarnation), (0, 1));
    assert_eq!(table.end(first), Err(SendEnd::Ended), "the handle of the first use does not end the second");
}

#[test]
fn the_reader_gets_what_was_unread_when_its_identifier_is_used_again() {
    let mut table = table(StreamPeer::Controls);
    assert_eq!(table.deliver(message(1, 10)), Ok(()));
    let first = table.accept().expect("opened");
    assert_eq!((table.end_of_peer(1, InOrder::Finish), table.end(first)), (Ok(()), Ok(())));
    assert_eq!(table.deliver(message(1, 20)), Ok(()));
    let second = table.accept().expect("opened again");
    assert_eq!(read(&mut table, second), Poll::Ready(Ok(20)));
    assert_eq!(read(&mut table, first), Poll::Ready(Ok(10)));
    assert_eq!(read(&mut table, first), Poll::Ready(Err(RecvEnd::Finished)));
    assert_eq!(read(&mut table, second), Poll::Pending);
}

#[test]
fn a_peer_may_open_only_its_own_idle_identifiers() {
    let mut own = table(StreamPeer::Controls);
    assert_eq!(own.deliver(message(2, 1)), Err(Violation::NotItsStream));
    assert_eq!(own.deliver(message(STREAMS + 1, 1)), Err(Violation::NotItsStream));
    let mut reused = table(StreamPeer::Controls);
    accepted(&mut reused, 1);
    assert_eq!(reused.end_of_peer(1, InOrder::Finish), Ok(()));
    assert_eq!(reused.deliver(message(1, 1)), Err(Violation::NotItsStream), "this side has not ended it");
}

#[test]
fn a_stalled_stream_holds_its_window_and_others_their_own() {
    let mut table = table(StreamPeer::Controls);
    assert_eq!(table.deliver(message(1, FIRST_WINDOW as usize)), Ok(()));
    assert_eq!(table.deliver(message(1, 1)), Err(Violation::Overdrawn));
    assert_eq!(table.accept().map(|key| key.stream), Some(1));
    let other = accepted(&mut table, 3);
    for _ in 0..10 {
        assert_eq!(table.deliver(message(3, FIRST_WINDOW as usize - 1)), Ok(()));
        assert_eq!(read(&mut table, other), Poll::Ready(Ok(FIRST_WINDOW as usize - 1)));
    }
    assert_eq!(table.unread(), FIRST_WINDOW as usize);
}

#[test]
fn reading_reports_credit_and_a_blocked_sender_gets_more() {
    let mut table = table(StreamPeer::Controls);
    let key = accepted(&mut table, 1);
    assert_eq!(table.deliver(message(1, FIRST_WINDOW as usize - 1)), Ok(()));
    assert!(reports(&mut table).is_empty());
    assert_eq!(read(&mut table, key), Poll::Ready(Ok(FIRST_WINDOW as usize - 1)));
    assert_eq!(reports(&mut table), [Ahead::Credit { stream: 1, limit: 2 * FIRST_WINDOW }]);
    assert_eq!(table.report_of_peer(Ahead::Blocked { stream: 1 }), Ok(()));
    assert_eq!(reports(&mut table), [Ahead::Credit { stream: 1, limit: 3 * FIRST_WINDOW }]);
}

#[test]
fn windows_of_all_streams_grow_by_the_unread_limit_together() {
    let mut table = StreamTable::default();
    table.begin(StreamPeer::Controls, true, 32);
    let streams = (1..32).step_by(2);
    let mut windows: BTreeMap<u16, u64> = streams.clone().map(|stream| (stream, FIRST_WINDOW)).collect();
    for stream in streams.clone() {
        accepted(&mut table, stream);
    }
    for _ in 0..10 {
        for stream in streams.clone() {
            assert_eq!(table.report_of_peer(Ahead::Blocked { stream }), Ok(()));
        }
        for report in reports(&mut table) {
            let Ahead::Credit { stream, limit } = report else { continue };
            // One byte of each stream was read.
            windows.insert(stream, limit - 1);
        }
    }
    let grown = windows.values().map(|window| window - FIRST_WINDOW).sum::<u64>();
    let limit = UNREAD_LIMIT as u64;
    assert!((limit / 2..=limit).contains(&grown), "{grown} of {limit}");
}

#[test]
fn a_writer_waits_for_credit_and_says_so_once() {
    let mut table = table(StreamPeer::Controls);
    let key = table.open().expect("free");
    table.spend(key, FIRST_WINDOW as usize);
    assert!(table.poll_credit(key, &cx()).is_pending() && table.poll_credit(key, &cx()).is_pending());
    assert_eq!(reports(&mut table), [Ahead::Blocked { stream: 0 }]);
    assert_eq!(table.report_of_peer(Ahead::Credit { stream: 0, limit: FIRST_WINDOW + 1 }), Ok(()));
    assert_eq!(table.poll_credit(key, &cx()), Poll::Ready(Ok(())));
}

#[test]
fn a_discarded_stream_tells_its_sender_and_gives_its_bytes_back() {
    let mut table = table(StreamPeer::Controls);
    let key = accepted(&mut table, 1);
    assert_eq!(table.deliver(message(1, 40_000)), Ok(()));
    table.discard(key, 5);
    assert_eq!(table.unread(), 0);
    let stop = Ahead::Stop { stream: 1, incarnation: 0, code: 5 };
    assert_eq!(reports(&mut table), [Ahead::Credit { stream: 1, limit: 40_001 + FIRST_WINDOW }, stop]);
    assert_eq!((table.deliver(message(1, 20_000)), table.unread()), (Ok(()), 0));
    table.discard(key, 6);
    assert!(reports(&mut table).is_empty(), "it is told once");
}

#[test]
fn a_stopped_writer_gets_the_code_and_can_still_end_its_stream() {
    let mut table = table(StreamPeer::Controls);
    let key = table.open().expect("free");
    assert!(table.poll_stopped(key, &cx()).is_pending());
    assert_eq!(table.report_of_peer(Ahead::Stop { stream: 0, incarnation: 0, code: 9 }), Ok(()));
    assert_eq!(table.poll_stopped(key, &cx()), Poll::Ready(SendEnd::Stopped { code: 9 }));
    assert_eq!(table.poll_credit(key, &cx()), Poll::Ready(Err(SendEnd::Stopped { code: 9 })));
    assert_eq!(table.end(key), Ok(()));
}

#[test]
fn a_late_stop_does_not_concern_the_next_use_of_the_identifier() {
    let mut table = table(StreamPeer::Controls);
    let first = table.open().expect("free");
    assert_eq!((table.end(first), table.end_of_peer(0, InOrder::Finish)), (Ok(()), Ok(())));
    let second = table.open().expect("free again");
    assert_eq!(table.report_of_peer(Ahead::Stop { stream: 0, incarnation: 0, code: 9 }), Ok(()));
    assert_eq!(table.poll_credit(second, &cx()), Poll::Ready(Ok(())));
}

#[test]
fn reports_may_overtake_the_first_message_but_not_name_missing_streams() {
    let mut table = table(StreamPeer::Controls);
    assert_eq!(table.report_of_peer(Ahead::Blocked { stream: 1 }), Ok(()));
    assert_eq!(table.report_of_peer(Ahead::Blocked { stream: STREAMS }), Err(Violation::Malformed));
}

#[test]
fn reports_share_messages_of_bounded_length() {
    let mut table = table(StreamPeer::Controls);
    for stream in [0, 2, 4, 6] {
        let key = table.open().expect("free");
        table.spend(key, FIRST_WINDOW as usize);
        assert!(table.poll_credit(key, &cx()).is_pending(), "stream {stream}");
    }
    let lengths: Vec<usize> = std::iter::repeat_with(|| table.take_reports(7).len()).take(3).collect();
    assert_eq!(lengths, [6, 6, 0]);
}

#[test]
fn a_reset_follows_the_messages_that_arrived() {
    let mut table = table(StreamPeer::Controls);
    assert_eq!(table.deliver(message(1, 10)), Ok(()));
    assert_eq!(table.end_of_peer(1, InOrder::Reset { code: 3 }), Ok(()));
    let key = table.accept().expect("opened");
    assert_eq!(read(&mut table, key), Poll::Ready(Ok(10)));
    assert_eq!(read(&mut table, key), Poll::Ready(Err(RecvEnd::Reset { code: 3 })));
}

#[test]
fn a_restart_ends_all_streams_of_before() {
    let mut table = table(StreamPeer::Controls);
    let (own, theirs) = (table.open().expect("free"), accepted(&mut table, 1));
    table.restart();
    assert_eq!(read(&mut table, theirs), Poll::Ready(Err(RecvEnd::Restarted)));
    assert_eq!(table.poll_credit(own, &cx()), Poll::Ready(Err(SendEnd::Restarted)));
    assert_eq!(table.end(own), Err(SendEnd::Restarted));
    table.discard(theirs, 0);
    let again = table.open().expect("all are free");
    assert_eq!((again.stream, table.poll_credit(again, &cx())), (0, Poll::Ready(Ok(()))));
}

#[test]
fn a_stalled_stream_of_another_stack_is_cut_and_bounded() {
    let mut table = table(StreamPeer::Resets);
    let key = accepted(&mut table, 2);
    for _ in 0..1000 {
        assert_eq!(table.deliver(message(2, 64 << 10)), Ok(()));
        assert!(table.unread() as u64 <= LARGEST_WINDOW);
    }
    let mut total = 0;
    let end = loop {
        match read(&mut table, key) {
            Poll::Ready(Ok(bytes)) => total += bytes as u64,
            other => break other,
        }
    };
    assert_eq!((end, table.unread()), (Poll::Ready(Err(RecvEnd::Stalled)), 0));
    assert!(total > LARGEST_WINDOW / 2);
    assert!(reports(&mut table).is_empty(), "another stack does not understand reports");
    assert_eq!(table.take_resets(), [[].into(), [2].into()], "its reset is requested");
}

#[test]
fn streams_of_another_stack_end_by_resets_and_can_be_used_again() {
    let mut table = table(StreamPeer::Resets);
    let key = table.open().expect("free");
    assert_eq!((table.end(key), table.deliver(message(0, 10))), (Ok(()), Ok(())));
    table.reset_by_peer(&[]);
    assert_eq!(read(&mut table, key), Poll::Ready(Ok(10)));
    assert_eq!(read(&mut table, key), Poll::Ready(Err(RecvEnd::Finished)));
    assert_eq!(table.open().map(|key| (key.stream, key.incarnation)), Some((0, 1)));
    table.reset_by_peer(&[7]);
    assert_eq!(table.deliver(message(7, 1)), Ok(()), "a reset of an unused stream means nothing");
}

#[test]
fn arbitrary_peers_never_upset_the_accounts() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut table = table(if rng.bool() { StreamPeer::Controls } else { StreamPeer::Resets });
        let mut keys = Vec::new();
        for _ in 0..500 {
            let stream = rng.u16(0..STREAMS + 1);
            let handled = match rng.u8(0..7) {
                0 => table.end_of_peer(stream, InOrder::Finish),
                1 => table.report_of_peer(Ahead::Credit { stream, limit: rng.u64(..) }),
                2 => table.report_of_peer(Ahead::Stop { stream, incarnation: rng.u32(0..3), code: 1 }),
                3 => table.report_of_peer(Ahead::Blocked { stream }),
                _ => {
                    table.deliver(Message { beginning: rng.bool(), ..message(stream, rng.usize(1..60_000)) })
                }
            };
            // The association ends with a violation; the table must bear what follows.
            let _ = handled;
            keys.extend(table.accept());
            keys.extend(if rng.bool() { table.open() } else { None });
            if let Some(&key) = rng.choice(&keys) {
                match rng.u8(0..5) {
                    0 => table.discard(key, 1),
                    1 => drop(table.end(key)),
                    2 => table.spend(key, rng.usize(0..60_000)),
                    _ => drop(read(&mut table, key)),
                }
            }
        }
        keys.into_iter().for_each(|key| table.discard(key, 0));
        std::iter::from_fn(|| table.accept())
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|key| table.discard(key, 0));
        assert_eq!(table.unread(), 0, "seed {seed}");
    }
}

#[test]
fn priority_of_a_stream_ends_with_its_incarnation() {
    let mut table = table(StreamPeer::Controls);
    let priority = NonZeroU16::new(9).expect("above zero");
    let first = table.open().expect("a free stream");
    table.set_priority(first, priority);
    assert_eq!(table.take_priority(), Some((first.stream, priority)));
    assert_eq!(table.take_priority(), None);
    table.end(first).expect("open until now");
    table.set_priority(first, priority);
    assert_eq!(table.take_priority(), None, "the stream has ended");
    table.report_of_peer(Ahead::Stop { stream: first.stream, incarnation: 0, code: 0 }).expect("a stream");
    table.end_of_peer(first.stream, InOrder::Finish).expect("open until now");
    let second = table.open().expect("a free stream");
    assert_eq!(second.stream, first.stream);
    assert_eq!(table.take_priority(), Some((second.stream, DEFAULT_STREAM_PRIORITY)));
    table.set_priority(first, priority);
    assert_eq!(table.take_priority(), None, "it belongs to an earlier incarnation");
}
