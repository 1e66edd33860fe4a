//! A timer for each retransmitted chunk.
//!
//! A chunk that is lost twice holds everything back until RACK or T3 finds it. RACK needs something that left later on the same
//! path and arrived; while the peer's window is closed nothing leaves. So a retransmission that is not acknowledged in time is
//! lost again.

use anabranch_core::policy::{
    Context, Event, Holes, LossDetection, LossTasks, Missing, MissingVerdict, PathFacts, SackView, SendKind,
    SentTransmission, Slot, View,
};
use anabranch_core::time::{Span, Time};

use crate::definition::Equation;

pub(super) const RULES: &[Equation] = &[Equation {
    name: "timer of a retransmission",
    rule: "not acknowledged within SRTT + max(4 RTTVAR, SRTT / 4) + 2 ms: lost again",
    file: file!(),
}];

/// Retransmissions that have a timer. What is beyond is left to RACK and T3.
const MOST_TIMERS: usize = 256;
/// A clock's granularity (RFC 9260 section 6.3.1, G, on the machines of today), for the links that vary by nothing.
const GRANULARITY: Span = Span::from_millis(2);

/// A retransmission in flight.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    tsn: u64,
    due: Time,
}

/// Loss by time for retransmissions, around a policy for everything else.
pub struct ChunkTimer {
    inner: Box<dyn LossDetection>,
    /// In the order of their TSNs.
    timers: Vec<InFlight>,
    /// No timer expires before this.
    earliest: Option<Time>,
}

impl ChunkTimer {
    /// `inner` finds all other losses.
    pub fn new(inner: Box<dyn LossDetection>) -> Self {
        ChunkTimer { inner, timers: Vec::with_capacity(MOST_TIMERS), earliest: None }
    }

    fn place(&self, tsn: u64) -> Result<usize, usize> {
        self.timers.binary_search_by_key(&tsn, |timer| timer.tsn)
    }

    fn start(&mut self, sent: &SentTransmission, view: &View<'_>) {
        let due = view.now + wait(view.path(sent.path));
        match self.place(sent.tsn) {
            Ok(at) => self.timers[at].due = due,
            Err(at) if self.timers.len() < MOST_TIMERS => {
                self.timers.insert(at, InFlight { tsn: sent.tsn, due });
            }
            Err(_) => return,
        }
        self.earliest = Some(self.earliest.map_or(due, |earliest| earliest.min(due)));
    }

    fn stop(&mut self, tsn: u64) {
        if let Ok(at) = self.place(tsn) {
            self.timers.remove(at);
        }
    }

    fn stop_up_to(&mut self, cumulative: u64) {
        let passed = self.timers.partition_point(|timer| timer.tsn <= cumulative);
        self.timers.drain(..passed);
    }

    fn has_expired(&self, tsn: u64, now: Time) -> bool {
        self.place(tsn).is_ok_and(|at| self.timers[at].due <= now)
    }
}

/// As long as RTO without its bounds (RFC 9260 section 6.3.1), and a quarter of a round trip at least, as RACK's reordering window.
fn wait(facts: &PathFacts) -> Span {
    let Some(smoothed) = facts.rtt.smoothed else { return facts.rto };
    smoothed + facts.rtt.variance.unwrap_or_default().times(4).max(smoothed.over(4)) + GRANULARITY
}

impl Slot for ChunkTimer {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        match *event {
            Event::Sent(sent) if sent.kind == SendKind::Retransmission => self.start(sent, view),
            Event::Acked(acked) => self.stop(acked.tsn),
            Event::Lost { tsn, .. } | Event::Abandoned { tsn, .. } => self.stop(tsn),
            Event::SackDone(done) => self.stop_up_to(done.cumulative),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.earliest.into_iter().chain(self.inner.deadline()).min()
    }
}

impl LossDetection for ChunkTimer {
    forward! { inner:
        fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes;
        fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict;
        fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool;
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        let mut tasks = self.inner.due(view);
        if self.earliest.is_some_and(|earliest| earliest <= view.now) {
            tasks.recheck |= self.timers.iter().any(|timer| timer.due <= view.now);
            self.earliest = self.timers.iter().map(|timer| timer.due).filter(|due| *due > view.now).min();
        }
        tasks
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        (!chunk.waits && self.has_expired(chunk.tsn, view.now)) || self.inner.overdue(chunk, view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::MissingReports;
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::policy::{LossCause, SackDone};
    use anabranch_core::profile::Profile;

    struct Rig {
        world: World,
        timer: ChunkTimer,
    }

    impl Rig {
        /// A path with a smoothed round trip of 100 ms that varies by 10 ms.
        fn new() -> Self {
            let mut world = World::new(Profile::rfc9260(), 1);
            world.paths[0].rtt.smoothed = Some(Span::from_millis(100));
            world.paths[0].rtt.variance = Some(Span::from_millis(10));
            let reports = MissingReports { trigger: 3, split: true, delayed_acks: true };
            Rig { world, timer: ChunkTimer::new(Box::new(reports)) }
        }

        fn send(&mut self, tsn: u64, kind: SendKind) {
            let sent = SentTransmission { path: path(0), previous_path: None, tsn, bytes: bytes(M), kind };
            self.world.dispatch(&mut self.timer, &Event::Sent(&sent));
        }

        fn later(&mut self, ms: u64) {
            self.world.now += Span::from_millis(ms);
        }

        fn is_overdue(&mut self, tsn: u64) -> bool {
            let chunk = Missing::sent_once(tsn, path(0), Time::default());
            let (timer, world) = (&mut self.timer, &self.world);
            let recheck = timer.due(&world.view()).recheck;
            recheck && timer.overdue(&chunk, &world.view())
        }
    }

    #[test]
    fn a_retransmission_is_lost_again_after_a_round_trip_and_four_deviations() {
        let mut rig = Rig::new();
        rig.send(7, SendKind::Retransmission);
        rig.later(141);
        assert!(!rig.is_overdue(7));
        rig.later(1);
        assert_eq!(rig.timer.deadline(), Some(rig.world.now));
        assert!(rig.is_overdue(7));
        assert_eq!(rig.timer.deadline(), None, "until it leaves again");
    }

    #[test]
    fn what_leaves_for_the_first_time_has_no_timer() {
        let mut rig = Rig::new();
        rig.send(7, SendKind::New);
        rig.send(8, SendKind::TailProbe);
        assert_eq!(rig.timer.deadline(), None);
    }

    #[test]
    fn an_acknowledgement_or_a_loss_ends_the_timer() {
        let mut rig = Rig::new();
        (1..=4).for_each(|tsn| rig.send(tsn, SendKind::Retransmission));
        rig.world.dispatch(
            &mut rig.timer,
            &Event::SackDone(&SackDone { paths: &[], new_cumulative: true, cumulative: 2 }),
        );
        let lost = Event::Lost {
            path: path(0),
            tsn: 3,
            bytes: bytes(M),
            sent_at: Time::default(),
            cause: LossCause::Timeout,
        };
        rig.world.dispatch(&mut rig.timer, &lost);
        rig.later(1_000);
        assert!(rig.is_overdue(4));
        let now = rig.world.now;
        assert!([1, 2, 3].into_iter().all(|tsn| !rig.timer.has_expired(tsn, now)));
    }

    #[test]
    fn the_number_of_timers_is_bounded() {
        let mut rig = Rig::new();
        (0..10_000).rev().for_each(|tsn| rig.send(tsn, SendKind::Retransmission));
        assert_eq!(rig.timer.timers.len(), MOST_TIMERS);
        assert!(rig.timer.timers.is_sorted_by_key(|timer| timer.tsn));
    }
}
