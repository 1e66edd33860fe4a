//! Buffers that grow with the bandwidth-delay product of the paths.

use anabranch_core::BufferGrowth;
use anabranch_core::time::Span;
use anabranch_tests::duo::{Duo, Reading, Setup};
use anabranch_tests::network::{Link, Side};

const A: usize = Side::A as usize;
const B: usize = Side::B as usize;
const INITIAL: u64 = 64 << 10;

/// Returns a pair with a round trip of 100 ms. The links of this setup have no rate limit, so the windows limit the throughput.
fn duo(largest: Option<u64>) -> Duo {
    let growth = largest.map(|bytes| BufferGrowth { largest_recv_bytes: bytes, largest_send_bytes: bytes });
    let mut setup = Setup::new(2, "cmt", "net").with(|config| {
        config.recv_buffer_bytes = INITIAL;
        config.send_buffer_bytes = Some(INITIAL);
        config.buffer_growth = growth;
    });
    setup.link = Link::good(Span::from_millis(50));
    Duo::connected(setup)
}

/// Returns the sender's send buffer and the receiver's receive buffer.
fn buffers(duo: &Duo) -> (u64, u64) {
    let limit = duo.nodes[A].association().association_facts().send_buffer_limit;
    (limit.expect("it is limited"), duo.nodes[B].association().recv_buffer_bytes())
}

/// Sends as fast as the send buffer permits until this number of messages has arrived, and returns the duration in seconds.
fn seconds_for(duo: &mut Duo, messages: usize) -> f64 {
    let began = duo.now;
    let mut left = messages;
    while left > 0 {
        while left > 0 && duo.send(Side::A, 8_000, 0, false).expect("it is up").is_ok() {
            left -= 1;
        }
        duo.settle();
        duo.run(Span::from_millis(10));
    }
    assert!(duo.run_until(Span::from_secs(300), |duo| duo.all_arrived(Side::A)));
    duo.now.since(began).as_secs_f64()
}

#[test]
fn limiting_buffers_grow_up_to_their_maximum() {
    let largest = 1 << 20;
    let (mut fixed, mut growing) = (duo(None), duo(Some(largest)));
    let (slow, fast) = (seconds_for(&mut fixed, 1_500), seconds_for(&mut growing, 1_500));
    assert!(fast * 3.0 < slow, "{fast} s with, {slow} s without");
    assert_eq!(buffers(&fixed), (INITIAL, INITIAL));
    assert_eq!(buffers(&growing), (largest, largest));
}

#[test]
fn buffers_that_limit_no_transfer_keep_their_size() {
    let mut duo = duo(Some(1 << 20));
    // One message in each round trip.
    for _ in 0..20 {
        duo.send_all(Side::A, 8_000, 1);
        duo.run(Span::from_millis(200));
    }
    assert!(duo.all_arrived(Side::A));
    assert_eq!(buffers(&duo).1, INITIAL);
}

#[test]
fn buffer_of_an_application_that_does_not_read_keeps_its_size() {
    let mut duo = duo(Some(1 << 20));
    duo.reading[B] = Reading::ByHand;
    for _ in 0..200 {
        while duo.send(Side::A, 8_000, 0, false).expect("it is up").is_ok() {}
        duo.settle();
        duo.run(Span::from_millis(100));
    }
    assert!(duo.nodes[B].association().held_bytes() > INITIAL / 2);
    assert_eq!(buffers(&duo).1, INITIAL);
}

#[test]
fn buffers_without_permission_do_not_grow() {
    let mut duo = duo(None);
    seconds_for(&mut duo, 200);
    assert_eq!(buffers(&duo), (INITIAL, INITIAL));
}
