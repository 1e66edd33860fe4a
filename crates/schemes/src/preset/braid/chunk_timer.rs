//! Timers of retransmitted chunks.
//!
//! A chunk that is lost twice blocks all later data until RACK or T3 detects the loss. RACK needs a chunk that was sent later on
//! the same path and delivered. While the peer's window is closed, no such chunk is sent. Therefore a retransmission that is not
//! acknowledged in time is lost again.
//!
//! Round-trip times of such chunks are not measured (Karn), so each wait is twice as long. If a queue grows far beyond SRTT, timers
//! without back-off would fill it with copies forever. The earliest chunk, for which all others wait, is retransmitted more often:
//! a burst of losses ends after some packets, and these retransmissions are the packets.

use anabranch_core::policy::{
    Context, Event, EventKind, EventSet, Holes, LossDetection, LossTasks, Missing, MissingVerdict, PathFacts,
    SackView, SendKind, SentTransmission, Slot, View,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "timer of a retransmission",
    rule: text!(
        "a retransmission without an acknowledgement within 2^n w is lost again; w = SRTT + max(4 \
         RTTVAR, SRTT / 4) + {}, n = number of expiries of the chunk's timer, at most {}; the earliest \
         of these chunks: within max(w, t / {}), t = the time since its first retransmission",
        GRANULARITY,
        MOST_DOUBLINGS,
        PART_OF_WAITING,
    ),
    file: file!(),
}];

/// Maximum number of retransmissions with a timer. RACK and T3 handle the others.
const MOST_TIMERS: usize = 256;
/// Clock granularity (RFC 9260 section 6.3.1, G, on current machines), for links without RTT variation.
const GRANULARITY: Span = Span::from_millis(2);

/// Maximum number of doublings of the wait: about a minute for the shortest wait.
const MOST_DOUBLINGS: u32 = 16;
/// Fraction of the waiting time between retransmissions of the earliest chunk, as with a failed path: about 15 in the first second
/// and 30 in the first minute.
const PART_OF_WAITING: u64 = 4;

/// Retransmitted chunk that is not acknowledged yet.
#[derive(Clone, Copy, Debug)]
struct Timer {
    tsn: u64,
    /// Send time of the retransmission.
    sent_at: Time,
    /// Expiry; `None` while the chunk waits for its next retransmission.
    due: Option<Time>,
    expiries: u32,
    first_retransmission: Time,
}

impl Timer {
    fn has_expired(&self, now: Time) -> bool {
        self.due.is_some_and(|due| due <= now)
    }
}

/// Detects losses of retransmissions by time, around a policy for all other chunks.
pub struct ChunkTimer {
    inner: Box<dyn LossDetection>,
    /// Timers in the order of their TSNs.
    timers: Vec<Timer>,
    /// Lower bound of all expiries.
    earliest: Option<Time>,
}

impl ChunkTimer {
    /// Creates the policy. `inner` detects all other losses.
    pub fn new(inner: Box<dyn LossDetection>) -> Self {
        ChunkTimer { inner, timers: Vec::with_capacity(MOST_TIMERS), earliest: None }
    }

    fn place(&self, tsn: u64) -> Result<usize, usize> {
        self.timers.binary_search_by_key(&tsn, |timer| timer.tsn)
    }

    fn start(&mut self, sent: &SentTransmission, view: &View<'_>) {
        let (wait, now) = (wait(view.path(sent.path)), view.now);
        let due = match self.place(sent.tsn) {
            Ok(at) => {
                let timer = &mut self.timers[at];
                let waited = now.since(timer.first_retransmission);
                let due = now
                    + if at == 0 {
                        wait.max(waited.over(PART_OF_WAITING))
                    } else {
                        wait.times(1 << timer.expiries)
                    };
                (timer.sent_at, timer.due) = (now, Some(due));
                due
            }
            Err(at) if self.timers.len() < MOST_TIMERS => {
                let timer = Timer {
                    tsn: sent.tsn,
                    sent_at: now,
                    due: Some(now + wait),
                    expiries: 0,
                    first_retransmission: now,
                };
                self.timers.insert(at, timer);
                now + wait
            }
            Err(_) => return,
        };
        self.earliest = Some(self.earliest.map_or(due, |earliest| earliest.min(due)));
    }

    /// Stops the timer while the chunk waits for its next retransmission. The loss of an earlier copy does not stop it.
    fn pause(&mut self, tsn: u64, sent_at: Time) {
        if let Some(timer) = self.place(tsn).ok().map(|at| &mut self.timers[at]) {
            timer.due = timer.due.filter(|_| timer.sent_at != sent_at);
        }
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

    /// Returns `true` if the chunk's timer has expired. Its next wait is twice as long.
    fn take_expired(&mut self, tsn: u64, now: Time) -> bool {
        let Ok(at) = self.place(tsn) else { return false };
        let timer = &mut self.timers[at];
        let expired = timer.has_expired(now);
        if expired {
            timer.due = None;
            timer.expiries = (timer.expiries + 1).min(MOST_DOUBLINGS);
        }
        expired
    }
}

/// Returns RTO without its bounds (RFC 9260 section 6.3.1), with a margin of at least a quarter of SRTT, as in RACK.
fn wait(facts: &PathFacts) -> Span {
    let Some(smoothed) = facts.rtt.smoothed else { return facts.rto };
    smoothed + facts.rtt.variance.unwrap_or_default().times(4).max(smoothed.over(4)) + GRANULARITY
}

impl Slot for ChunkTimer {
    fn events(&self, profile: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::Sent,
            EventKind::Acked,
            EventKind::Lost,
            EventKind::Abandoned,
            EventKind::SackDone,
        ])
        .union(self.inner.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        match *event {
            Event::Sent(sent) if sent.kind == SendKind::Retransmission => self.start(sent, view),
            Event::Acked(acked) => self.stop(acked.tsn),
            Event::Lost { tsn, sent_at, .. } => self.pause(tsn, sent_at),
            Event::Abandoned { tsn, .. } => self.stop(tsn),
            Event::SackDone(done) => self.stop_up_to(done.cumulative),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.earliest.into_iter().chain(self.inner.deadline()).min()
    }
}

impl LossDetection for ChunkTimer {
    fn copied(&self) -> Option<Box<dyn LossDetection>> {
        Some(Box::new(ChunkTimer { inner: self.inner.copied()?, timers: self.timers.clone(), ..*self }))
    }

    forward! { inner:
        fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes;
        fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict;
        fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool;
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        let mut tasks = self.inner.due(view);
        if self.earliest.is_some_and(|earliest| earliest <= view.now) {
            if self.timers.iter().any(|timer| timer.has_expired(view.now)) {
                tasks.recheck = Some(Holes::All);
            }
            self.earliest =
                self.timers.iter().filter_map(|timer| timer.due).filter(|due| *due > view.now).min();
        }
        tasks
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        (!chunk.waits && self.take_expired(chunk.tsn, view.now)) || self.inner.overdue(chunk, view)
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
        /// Creates a path with a smoothed round-trip time of 100 ms and a variation of 10 ms.
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

        fn lost(&mut self, tsn: u64, cause: LossCause) {
            let sent_at = self.world.now;
            let lost = Event::Lost { path: path(0), tsn, bytes: bytes(M), sent_at, cause };
            self.world.dispatch(&mut self.timer, &lost);
        }

        fn later(&mut self, ms: u64) {
            self.world.now += Span::from_millis(ms);
        }

        fn is_overdue(&mut self, tsn: u64) -> bool {
            let chunk = Missing::sent_once(tsn, path(0), Time::default());
            let (timer, world) = (&mut self.timer, &self.world);
            let recheck = timer.due(&world.view()).recheck;
            recheck.is_some() && timer.overdue(&chunk, &world.view())
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
    fn each_expiry_doubles_the_wait_of_a_chunk_that_is_not_the_earliest() {
        let mut rig = Rig::new();
        rig.send(7, SendKind::Retransmission);
        let mut waits = Vec::new();
        for _ in 0..5 {
            rig.send(8, SendKind::Retransmission);
            let left = rig.world.now;
            while !rig.is_overdue(8) {
                rig.later(1);
            }
            rig.lost(8, LossCause::FastRetransmit);
            waits.push(rig.world.now.since(left).as_nanos() / 1_000_000);
        }
        assert_eq!(waits, [142, 284, 568, 1136, 2272]);
    }

    #[test]
    fn earliest_chunk_waits_a_quarter_of_its_time_since_retransmission() {
        let mut rig = Rig::new();
        let began = rig.world.now;
        let mut left_at = Vec::new();
        while left_at.last().is_none_or(|last| *last < 1_000) {
            rig.send(7, SendKind::Retransmission);
            left_at.push(rig.world.now.since(began).as_nanos() / 1_000_000);
            while !rig.is_overdue(7) {
                rig.later(1);
            }
            rig.lost(7, LossCause::FastRetransmit);
        }
        assert_eq!(left_at, [0, 142, 284, 426, 568, 710, 888, 1110]);
    }

    #[test]
    fn loss_found_by_another_rule_does_not_double_the_wait() {
        let mut rig = Rig::new();
        rig.send(7, SendKind::Retransmission);
        rig.send(8, SendKind::Retransmission);
        rig.lost(8, LossCause::FastRetransmit);
        rig.later(1_000);
        rig.send(8, SendKind::Retransmission);
        rig.later(141);
        assert!(!rig.is_overdue(8));
        rig.later(1);
        assert!(rig.is_overdue(8));
    }

    #[test]
    fn loss_of_earlier_copy_does_not_stop_the_timer() {
        let mut rig = Rig::new();
        let copied_at = rig.world.now;
        rig.later(10);
        rig.send(7, SendKind::Retransmission);
        let cause = LossCause::FastRetransmit;
        let lost = Event::Lost { path: path(1), tsn: 7, bytes: bytes(M), sent_at: copied_at, cause };
        rig.world.dispatch(&mut rig.timer, &lost);
        rig.later(142);
        assert!(rig.is_overdue(7));
    }

    #[test]
    fn first_transmission_has_no_timer() {
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
        rig.lost(3, LossCause::Timeout);
        rig.later(1_000);
        assert!(rig.is_overdue(4));
        let now = rig.world.now;
        assert!([1, 2, 3].into_iter().all(|tsn| !rig.timer.take_expired(tsn, now)));
    }

    #[test]
    fn the_number_of_timers_is_bounded() {
        let mut rig = Rig::new();
        (0..10_000).rev().for_each(|tsn| rig.send(tsn, SendKind::Retransmission));
        assert_eq!(rig.timer.timers.len(), MOST_TIMERS);
        assert!(rig.timer.timers.is_sorted_by_key(|timer| timer.tsn));
    }
}
