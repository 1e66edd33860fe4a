//! Waits of a scheduler, and their ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_core::policy::{LostChunk, Pick, RetransmitChoice, View, WaitFor};
use anabranch_core::time::{Span, Time};
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;
use anabranch_tests::steered::{Steered, path};

const A: usize = 0;

/// Returns a decision that delays new data until this time, and then sends it on the first path.
fn waits_until(at: Time) -> impl Fn(&View<'_>) -> Pick + Send + Sync + 'static {
    move |view| if view.now < at { Pick::Wait(WaitFor::Until(at)) } else { Pick::Path(path(0)) }
}

/// Returns a connected pair with one message queued at the first side.
fn waiting(pick: impl Fn(&View<'_>) -> Pick + Send + Sync + 'static) -> Duo {
    let scheme = Arc::new(Steered::new("cmt").pick(pick));
    let mut duo =
        Duo::connected(Setup::new(2, "cmt", "rfc9260").with_side(Side::A, |config| config.scheme = scheme));
    duo.run(Span::from_secs(1));
    duo.send_all(Side::A, 1_000, 1);
    duo.settle();
    duo
}

fn sent(duo: &Duo) -> u64 {
    duo.nodes[A].association().statistics().chunks_sent
}

#[test]
fn a_wait_until_a_time_ends_then_though_nothing_is_in_flight() {
    let at = Time::ZERO + Span::from_millis(5_250);
    let mut duo = waiting(waits_until(at));
    assert_eq!(sent(&duo), 0);
    assert_eq!(duo.nodes[A].association().statistics().overruled_picks, 0);
    duo.run(at.since(duo.now) - Span::from_nanos(1));
    assert_eq!(sent(&duo), 0, "a moment too early");
    duo.run(Span::from_nanos(1));
    assert_eq!(sent(&duo), 1);
}

#[test]
fn wait_until_a_past_time_is_overruled_with_an_empty_flight() {
    let duo = waiting(|view| Pick::Wait(WaitFor::Until(view.now)));
    assert_eq!(sent(&duo), 1);
    assert_eq!(duo.nodes[A].association().statistics().overruled_picks, 1);
}

#[test]
fn an_opportunity_before_that_time_asks_the_scheduler_again() {
    let far = Time::ZERO + Span::from_secs(1_000);
    let asked = AtomicUsize::new(0);
    let mut duo = waiting(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0 => Pick::Wait(WaitFor::Until(far)),
        _ => Pick::Path(path(0)),
    });
    assert_eq!(sent(&duo), 0);
    duo.shutdown(Side::A);
    duo.settle();
    assert_eq!(sent(&duo), 1);
}

#[test]
fn a_lost_chunk_waits_until_the_time_that_its_policy_names() {
    let at = Time::ZERO + Span::from_millis(20_250);
    let route = move |_: &LostChunk, view: &View<'_>| match view.now < at {
        true => RetransmitChoice::Wait(WaitFor::Until(at)),
        false => RetransmitChoice::Path(path(0)),
    };
    let scheme = Arc::new(Steered::new("cmt").pick(|_| Pick::Path(path(0))).route(route));
    let mut duo =
        Duo::connected(Setup::new(2, "cmt", "rfc9260").with_side(Side::A, |config| config.scheme = scheme));
    duo.run(Span::from_secs(1));
    duo.cut(0, true);
    duo.send_all(Side::A, 1_000, 1);
    duo.settle();
    duo.run(Span::from_secs(1));
    duo.cut(0, false);
    let resent = |duo: &Duo| duo.nodes[A].association().statistics().retransmissions;
    duo.run(at.since(duo.now) - Span::from_nanos(1));
    assert_eq!((resent(&duo), duo.all_arrived(Side::A)), (0, false));
    duo.run(Span::from_nanos(1));
    assert_eq!(resent(&duo), 1);
    duo.run(Span::from_secs(1));
    assert!(duo.all_arrived(Side::A));
}
