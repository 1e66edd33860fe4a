//! Rules that every preset and component obeys for any sequence of events and queries: no panic, no window below one chunk, no
//! choice that its view forbids, and equal results of two runs with the same seed.

use std::sync::Arc;

use anabranch_core::policy::{
    AckForm, AckTiming, AckedTransmission, Arrival, Context, Decision, DeliverySample, Event, EventKind,
    EventSet, HeadOfLine, HeadOfLineAction, HeadOfLineBlocking, Holes, Limiter, LivenessProof, LossCause,
    LostChunk, Missing, OpportunityCause, PathAck, PathSack, Pick, Policies, Randomness, Reason, RttFacts,
    SackDone, SackView, Scheduler, Scheme, SendAsk, SendKind, SendStamps, SentTransmission, Slot, StateCause,
    View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WindowBytes;
use anabranch_core::{PathCost, PathId, PathSet, PathState};

use crate::costs::honour_costs;
use crate::duplicates::duplicate_marked;
use crate::registry::{Addition, COMPONENTS, Kind, NamedScheme, PRESETS, Parameter, Role, parse};
use crate::testing::{ASK, M, World, bytes, path};

/// Number of variants of [`Event`]. A new variant does not compile until it has a number here, and then fails until it is scripted.
const VARIANTS: usize = 19;

fn variant(event: &Event<'_>) -> usize {
    match event {
        Event::PathAdded(_) => 0,
        Event::PathRemoved(_) => 1,
        Event::PathRebound(_) => 2,
        Event::PathState { .. } => 3,
        Event::Established => 4,
        Event::SendOpportunity(_) => 5,
        Event::Sent(_) => 6,
        Event::Acked(_) => 7,
        Event::SackDone(_) => 8,
        Event::RttSample { .. } => 9,
        Event::Lost { .. } => 10,
        Event::LossEvent { .. } => 11,
        Event::Spurious { .. } => 12,
        Event::Blocked { .. } => 13,
        Event::Idle(_) => 14,
        Event::Deadline => 15,
        Event::Bound { .. } => 16,
        Event::Unbound { .. } => 17,
        Event::Abandoned { .. } => 18,
    }
}

fn is_judged(chunk: &Missing, holes: &Holes) -> bool {
    match holes {
        Holes::All => true,
        Holes::NeverRecovered { below } => !chunk.recovered_before && chunk.tsn < *below,
        Holes::SentBefore(bounds) => bounds[chunk.path.index()] > Some((chunk.sent_at, chunk.tsn)),
    }
}

const STATES: [PathState; 4] =
    [PathState::Unconfirmed, PathState::Active, PathState::PotentiallyFailed, PathState::Inactive];
const PROOFS: [LivenessProof; 3] =
    [LivenessProof::Unambiguous, LivenessProof::Ambiguous, LivenessProof::Heartbeat];
const CAUSES: [LossCause; 3] = [LossCause::FastRetransmit, LossCause::Timeout, LossCause::Rescheduled];

/// Policies with random facts. The facts need not be consistent: policies must tolerate that.
struct Session {
    world: World,
    policies: Policies,
    dice: Randomness,
    told: [u32; VARIANTS],
    /// Set if time makes chunks lost, so that a retransmission may be declared lost without T3.
    loses_by_time: bool,
    /// Chunk type of acknowledgements, as returned first.
    form: AckForm,
    /// Set if events are delivered only to the slots that declare to read them.
    masked: bool,
    /// Set if paths have random costs, and chunks random marks.
    is_on_sockets: bool,
    /// Set if published figures are recorded besides windows.
    records_figures: bool,
    /// Record of all decisions, for comparing runs.
    log: Vec<String>,
}

impl Session {
    fn new(scheme: &NamedScheme, profile: Profile, seed: u8) -> Self {
        let by_time = |addition: &Addition| addition.component().role == Role::LossDetection;
        let mut session = Session::with(scheme.policies(), profile, seed);
        let own = scheme.preset().owns.contains(&Role::LossDetection);
        session.loses_by_time = own || scheme.additions().iter().any(by_time);
        session
    }

    fn with(policies: Policies, profile: Profile, seed: u8) -> Self {
        let mut session = Session {
            world: World::new(profile, 4),
            form: policies.ack.form(),
            policies,
            dice: Randomness::from_seed([seed.wrapping_add(100); 32]),
            told: [0; VARIANTS],
            loses_by_time: false,
            masked: false,
            is_on_sockets: false,
            records_figures: false,
            log: Vec::new(),
        };
        session.world.reseed(seed);
        session.world.association.peer_window_initial = WindowBytes::new(65_536);
        for index in 0..4 {
            session.dispatch(&Event::PathAdded(path(index)));
        }
        session.dispatch(&Event::Established);
        session
    }

    fn below(&mut self, n: u64) -> u64 {
        self.dice.context().below(n)
    }

    fn any_path(&mut self) -> PathId {
        path(self.below(4) as usize)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }

    /// Passes the event to the slots, estimator first, and applies published figures, as an association does.
    fn dispatch(&mut self, event: &Event<'_>) {
        self.told[variant(event)] += 1;
        let policies = &mut self.policies;
        let slots: [&mut dyn Slot; 9] = [
            &mut *policies.estimator,
            &mut *policies.congestion,
            &mut *policies.scheduler,
            &mut *policies.loss,
            &mut *policies.retransmit,
            &mut *policies.head_of_line,
            &mut *policies.ack,
            &mut *policies.buffer,
            &mut *policies.failover,
        ];
        for slot in slots {
            if !self.masked || slot.events(&self.world.profile).contains(event.kind()) {
                self.world.dispatch(slot, event);
            }
        }
        self.adopt(event);
    }

    fn adopt(&mut self, event: &Event<'_>) {
        let adding = matches!(event, Event::PathAdded(_)) && self.told[variant(&Event::Established)] == 0;
        for facts in &mut self.world.paths {
            let window = self.policies.congestion.window(facts.id);
            assert!(adding || window.cwnd >= facts.largest_chunk, "{window:?} after {event:?}");
            assert!(!self.policies.congestion.last_reason(facts.id).rule.is_empty());
            facts.cwnd = window.cwnd;
            facts.ssthresh = window.ssthresh;
            facts.partial_bytes_acked = window.partial_bytes_acked;
            facts.pacing = self.policies.congestion.pacing(facts.id);
            facts.estimates = self.policies.estimator.estimates(facts.id);
            assert!(facts.estimates.loss_rate.is_none_or(|rate| (0.0..=1.0).contains(&rate)));
            assert!(facts.estimates.seconds_per_byte.is_none_or(|q| q.is_finite() && q >= 0.0));
            self.log.push(format!("{window:?}"));
            if self.records_figures {
                self.log.push(format!("{:?} {:?}", facts.pacing, facts.estimates));
            }
        }
        if self.records_figures {
            self.log.push(format!("{:?}", self.earliest_deadline()));
        }
    }

    /// Randomises the facts of every path.
    fn randomise(&mut self) {
        self.world.now += Span::from_millis(self.dice.context().below(500));
        for index in 0..4 {
            let state = if self.below(3) > 0 { PathState::Active } else { self.one_of(&STATES) };
            let sent = self.below(1_000_000);
            let lost = self.below(sent + 1);
            let [flight, waiting, errors, half, burst, point] = [8, 4, 3, 2, 4, 1000].map(|n| self.below(n));
            let since = self.world.now;
            let facts = &mut self.world.paths[index];
            facts.state = state;
            facts.in_flight = bytes(flight * M);
            facts.lost_unsent = bytes(waiting * M);
            // Path.Max.Retrans is 5.
            facts.error_count = errors as u32 * 3;
            facts.potentially_failed_since = (state == PathState::PotentiallyFailed).then_some(since);
            facts.recovery_point = (half == 0).then_some(point);
            facts.exempt_packets = half as u32;
            facts.burst_left = burst as u32;
            // Independent of the pacing by its own congestion control.
            facts.paced_until = (waiting == 0).then_some(since + Span::from_millis(1 + burst));
            facts.sent = bytes(sent);
            facts.lost = bytes(lost);
            self.randomise_scheduler_facts(index);
            self.world.paths[index].held = bytes(self.dice.context().below(60) * M);
        }
        let last = self.any_path();
        self.world.association.last_new_data_path = Some(last);
        self.randomise_head_of_line();
    }

    fn randomise_head_of_line(&mut self) {
        let [carriers, limit, there, ever] = [16, 4, 5, 5].map(|n| self.below(n));
        let sent_at = (ever > 0).then(|| self.recent_time());
        let head = HeadOfLine {
            tsn: 100 + self.below(3),
            bytes: bytes(M),
            path: self.any_path(),
            in_flight_on: (0..4).filter(|index| carriers >> index & 1 == 1).map(path).collect(),
            sent_at,
            transmissions: 1,
        };
        self.world.association.head_of_line = (there > 0).then_some(head);
        self.world.association.send_buffer_limit = limit.checked_sub(1).map(|n| n * 40_000);
    }

    fn randomise_scheduler_facts(&mut self, index: usize) {
        let [bound, share, known, rtt, least, variance] = [40, 5, 4, 400, 100, 100].map(|n| self.below(n));
        let [queued, window, rto] = [200_000, 100_000, 3000].map(|n| self.below(n));
        let facts = &mut self.world.paths[index];
        facts.bound = bytes(bound.saturating_sub(20) * M);
        facts.within_share = share > 0;
        facts.rto = Span::from_millis(rto);
        facts.rtt = if known > 0 {
            let [smoothed, min, variance] = [rtt, least, variance].map(|ms| Some(Span::from_millis(ms)));
            RttFacts { latest: smoothed, min, recent_min: min, smoothed, variance }
        } else {
            RttFacts::default()
        };
        if self.is_on_sockets {
            self.world.paths[index].cost =
                self.one_of(&[PathCost::Free, PathCost::Metered, PathCost::Backup]);
        }
        self.world.association.queued_bytes = queued;
        self.world.association.peer_window = WindowBytes::new(window);
    }

    fn transmission(&mut self) -> SentTransmission {
        let kinds = [
            SendKind::New,
            SendKind::Retransmission,
            SendKind::Copy,
            SendKind::HeadOfLine,
            SendKind::TailProbe,
            SendKind::WindowProbe,
        ];
        SentTransmission {
            path: self.any_path(),
            previous_path: (self.below(2) == 0).then(|| self.any_path()),
            tsn: self.below(1000),
            bytes: bytes(M),
            kind: self.one_of(&kinds),
        }
    }

    fn acked(&mut self) -> AckedTransmission {
        AckedTransmission {
            path: self.any_path(),
            tsn: self.below(1000),
            bytes: bytes(M),
            stamps: SendStamps { sent_at: self.recent_time(), ..SendStamps::default() },
            sent_once: self.below(2) == 0,
            certain: self.below(2) == 0,
            cumulative: self.below(2) == 0,
            sack_path: (self.below(2) == 0).then(|| self.any_path()),
        }
    }

    fn path_ack(&mut self) -> PathAck {
        let [cumulative, gap, rest, lost] = [4, 4, 30, 3].map(|n| self.below(n) * M);
        PathAck {
            cumulative: bytes(cumulative),
            gap: bytes(gap),
            gap_after_pseudo: bytes(gap / 2),
            new_pseudo_cumulative: cumulative > 0 || self.below(2) == 0,
            in_flight_before: bytes(cumulative + gap + rest),
            outstanding_at_start: bytes(cumulative + gap + rest + lost),
            in_flight_after: bytes(rest),
            sample: self.sample(),
        }
    }

    fn sample(&mut self) -> Option<DeliverySample> {
        let limiters =
            [Limiter::Window, Limiter::Pacing, Limiter::PeerWindow, Limiter::Scheduler, Limiter::Application];
        let [there, delivered, elapsed, lost, kbps] = [4, 30, 500, 3, 20_000].map(|n| self.below(n));
        let stamps = SendStamps {
            sent_at: self.recent_time(),
            delivered: bytes(delivered * M),
            in_flight: bytes(delivered * M),
            limiter: self.one_of(&limiters),
            ..SendStamps::default()
        };
        (there > 0).then(|| DeliverySample {
            stamps,
            delivered: bytes(delivered * M),
            send_elapsed: Span::from_millis(elapsed),
            ack_elapsed: Span::from_millis(elapsed / 2),
            lost: bytes(lost * M),
            rtt: (there > 1).then(|| Span::from_millis(elapsed)),
            rate: (there > 2).then(|| Rate::from_bps(kbps * 1_000)),
        })
    }

    fn dispatch_sack(&mut self) {
        let paths = [(); 4].map(|()| self.path_ack());
        let new_cumulative = paths.iter().any(|ack| !ack.cumulative.is_zero());
        self.dispatch(&Event::SackDone(&SackDone { paths: &paths, new_cumulative, cumulative: 100 }));
    }

    fn dispatch_state_change(&mut self) {
        let id = self.any_path();
        let (from, to) = (self.one_of(&STATES), self.one_of(&STATES));
        let cause = match self.below(3) {
            0 => StateCause::Errors(Reason::rule("errors")),
            1 => StateCause::Proof(self.one_of(&PROOFS)),
            _ => StateCause::Promoted(Reason::rule("fewest errors")),
        };
        self.dispatch(&Event::PathState { path: id, from, to, cause });
    }

    /// Dispatches one event of each kind with random contents.
    fn dispatch_all_events(&mut self) {
        let (sent, acked) = (self.transmission(), self.acked());
        let [added, removed, rebound, measured, lost] = [(); 5].map(|()| self.any_path());
        let cause = self.one_of(&CAUSES);
        self.dispatch_sack();
        self.dispatch_state_change();
        self.dispatch(&Event::Bound { path: sent.path, tsn: sent.tsn, bytes: sent.bytes });
        self.dispatch(&Event::Sent(&sent));
        self.dispatch(&Event::Unbound { path: acked.path, tsn: acked.tsn, bytes: acked.bytes });
        self.dispatch(&Event::Acked(&acked));
        let rtt = Span::from_millis(80);
        self.dispatch(&Event::RttSample { path: measured, rtt, heartbeat: cause == LossCause::Timeout });
        self.dispatch(&Event::Lost {
            path: lost,
            tsn: 7,
            bytes: bytes(M),
            sent_at: acked.stamps.sent_at,
            cause,
        });
        self.dispatch(&Event::Abandoned { path: lost, tsn: 8, bytes: bytes(M) });
        self.dispatch(&Event::LossEvent { path: lost, cause });
        self.dispatch(&Event::Spurious { path: lost, misjudged: measured, tsn: 7 });
        self.dispatch(&Event::Blocked { hole: (cause == LossCause::Timeout).then_some(lost) });
        self.dispatch(&Event::Idle(measured));
        self.reach_a_deadline();
        self.dispatch(&Event::PathRebound(rebound));
        if self.below(10) == 0 {
            self.dispatch(&Event::PathRemoved(removed));
            self.dispatch(&Event::PathAdded(added));
        }
        self.open_turns(sent.path);
    }

    fn open_turns(&mut self, id: PathId) {
        let causes = [
            OpportunityCause::Sack,
            OpportunityCause::Timeout(id),
            OpportunityCause::PathRestored(id),
            OpportunityCause::Application,
            OpportunityCause::Policy,
        ];
        for cause in causes {
            self.dispatch(&Event::SendOpportunity(cause));
            self.ask_where_to_send();
        }
        // Only the scheduler learns that a paced path may send again.
        let scheduler = &mut *self.policies.scheduler;
        if !self.masked || scheduler.events(&self.world.profile).contains(EventKind::SendOpportunity) {
            self.world.dispatch(scheduler, &Event::SendOpportunity(OpportunityCause::Pacing));
        }
        self.ask_where_to_send();
    }

    fn ask<T: std::fmt::Debug>(
        &mut self,
        ask: impl FnOnce(&mut Policies, &View<'_>, &mut Context<'_>) -> T,
    ) -> T {
        let policies = &mut self.policies;
        let answer = self.world.with(|view, context| ask(policies, view, context));
        self.log.push(format!("{answer:?}"));
        answer
    }

    fn ask_where_to_send(&mut self) {
        let ask = SendAsk { duplicate: self.is_on_sockets && self.below(2) == 0, ..ASK };
        let decision = self.ask(|policies, view, context| policies.scheduler.pick(&ask, view, context));
        assert!(!decision.reason.rule.is_empty());
        self.check_pick(&decision);
        self.ask(|policies, view, _| policies.scheduler.replan(view));
        self.ask_about_head_of_line();
        let lost = LostChunk { tsn: 7, bytes: bytes(M), path: self.any_path(), cause: self.one_of(&CAUSES) };
        let decision = self.ask(|policies, view, context| policies.retransmit.route(&lost, view, context));
        assert!(!decision.reason.rule.is_empty());
        if let Some(id) = decision.choice.path() {
            assert!(!decision.choice.copies().contains(id));
            let view = self.world.view();
            assert!(view.path(id).admits_retransmission());
            assert!(view.path(id).is_active() || view.active().next().is_none());
            assert!(decision.refused.iter().all(|&(other, _)| other != id));
        }
    }

    /// Checks a choice against the rules of core.
    fn check_pick(&mut self, decision: &Decision<Pick>) {
        assert!(decision.reason.value.is_finite(), "{decision:?}");
        let chosen: PathSet = match decision.choice {
            Pick::Path(id) | Pick::Bind(id) => [id].into_iter().collect(),
            Pick::Copies(paths) => paths,
            Pick::Wait(_) => return,
        };
        assert!(!chosen.is_empty() && decision.refused.iter().all(|&(other, _)| !chosen.contains(other)));
        for id in chosen.iter() {
            let view = self.world.view();
            let facts = view.path(id);
            let room = view.admits_new_data(id) && facts.burst_left > 0 && facts.paced_until.is_none();
            assert!(facts.is_active() && facts.within_share, "{decision:?}");
            assert!(room || matches!(decision.choice, Pick::Bind(_)), "{decision:?}");
            self.ask(|policies, view, _| policies.buffer.admits(id, bytes(M), view));
        }
        if let Pick::Bind(id) = decision.choice {
            let tsn = self.below(1000);
            self.dispatch(&Event::Bound { path: id, tsn, bytes: bytes(M) });
        }
    }

    fn path_sack(&mut self) -> PathSack {
        let lowest = 95 + self.below(20);
        let (new_gap_ack, new_cumulative_ack) = (self.below(2) == 0, self.below(2) == 0);
        PathSack {
            new_gap_ack,
            new_cumulative_ack,
            lowest_newly_acked: (new_gap_ack || new_cumulative_ack).then_some(lowest),
            highest_gap_acked: new_gap_ack.then_some(lowest + 4),
            latest_sent_at: (self.below(2) == 0).then_some(self.world.now),
        }
    }

    fn earliest_deadline(&self) -> Option<Time> {
        let policies = &self.policies;
        let slots: [&dyn Slot; 9] = [
            &*policies.estimator,
            &*policies.congestion,
            &*policies.scheduler,
            &*policies.loss,
            &*policies.retransmit,
            &*policies.head_of_line,
            &*policies.ack,
            &*policies.buffer,
            &*policies.failover,
        ];
        slots.iter().filter_map(|slot| slot.deadline()).min()
    }

    /// Acts like core at a deadline: dispatches it, queries the loss policy for due tasks, and asks about chunks.
    fn reach_a_deadline(&mut self) {
        // One probe per path, and one iteration more to check that no task is left.
        for _ in 0..=4 {
            self.dispatch(&Event::Deadline);
            let tasks = self.ask(|policies, view, _| policies.loss.due(view));
            for id in tasks.probes.iter() {
                let view = self.world.view();
                assert!(view.path(id).is_active() && !view.path(id).in_flight.is_zero());
                let (tsn, kind) = (self.below(1000), SendKind::TailProbe);
                let sent = SentTransmission { path: id, previous_path: Some(id), tsn, bytes: bytes(M), kind };
                self.dispatch(&Event::Sent(&sent));
            }
            for _ in 0..if tasks.recheck.is_some() { 5 } else { 1 } {
                let chunk = self.missing_chunk();
                let overdue = self.ask(|policies, view, _| policies.loss.overdue(&chunk, view));
                assert!(self.loses_by_time || !overdue);
                assert!(!(overdue && chunk.waits), "it is lost already");
            }
        }
        let now = self.world.now;
        assert!(self.earliest_deadline().is_none_or(|at| at > now), "core would tell of it again and again");
    }

    fn missing_chunk(&mut self) -> Missing {
        let (tsn, path, sent_at) = (101 + self.below(20), self.any_path(), self.recent_time());
        Missing {
            transmissions: 1 + self.below(3) as u32,
            reports: self.below(5) as u32,
            recovered_before: self.below(2) == 0,
            waits: self.below(5) == 0,
            ..Missing::sent_once(tsn, path, sent_at)
        }
    }

    /// Returns a time within the last second, or the time zero.
    fn recent_time(&mut self) -> Time {
        let now = self.world.now.as_nanos();
        Time::from_nanos(now.saturating_sub(self.below(1000) * 1_000_000))
    }

    /// Checks the handling of the head-of-line chunk against the rules of core.
    fn ask_about_head_of_line(&mut self) {
        let (waits, peer_window_closed) = (self.below(4) > 0, self.below(2) == 0);
        let blocking = HeadOfLineBlocking { next_chunk: waits.then_some(bytes(M)), peer_window_closed };
        let action =
            self.ask(|policies, view, context| policies.head_of_line.handle(&blocking, view, context));
        let Some(decision) = action else { return };
        let (HeadOfLineAction::Copy(id) | HeadOfLineAction::Move(id)) = decision.choice;
        let view = self.world.view();
        let head = view.association.head_of_line.expect("only it is asked about");
        assert!(view.path(id).is_active() && view.path(id).admits_retransmission(), "{decision:?}");
        assert!(!head.in_flight_on.is_empty() && !head.in_flight_on.contains(id), "{decision:?}");
        assert!(!decision.reason.rule.is_empty() && decision.reason.value.is_finite());
        assert!(decision.refused.iter().all(|&(other, _)| other != id));
    }

    fn ask_about_losses(&mut self) {
        let paths = [(); 4].map(|()| self.path_sack());
        let sack = SackView {
            paths: &paths,
            cumulative: 100,
            highest_newly_acked: 90 + self.below(30),
            new_cumulative: self.below(2) == 0,
            flags: self.below(256) as u8,
            a_rwnd: WindowBytes::new(self.below(70_000)),
            peer_window: WindowBytes::new(self.below(70_000)),
        };
        let chunk = self.missing_chunk();
        let holes = self.ask(|policies, view, _| policies.loss.holes(&sack, view));
        let verdict = self.ask(|policies, view, _| policies.loss.missing(&chunk, &sack, view));
        assert!(!verdict.lost || is_judged(&chunk, &holes), "{verdict:?} of {chunk:?} beside {holes:?}");
        let again = verdict.lost && chunk.recovered_before;
        assert!(self.loses_by_time || !again, "only T3 may lose it again");
        self.ask(|policies, view, _| policies.loss.timed_out(&chunk, view));
    }

    fn ask_about_acks(&mut self) {
        let packets = self.below(300) as u32;
        let [gap, duplicate, immediate, first] = [(); 4].map(|()| self.below(5) == 0);
        let arrival = Arrival { packets, gap, duplicate, immediate, first };
        let decision = self.ask(|policies, view, _| policies.ack.timing(&arrival, view));
        if let AckTiming::Within(delay) = decision.choice {
            // RFC 9260 section 6.2: MUST NOT be more than 500 ms.
            assert!(delay <= Span::from_millis(500));
        }
        self.ask(|policies, view, _| policies.ack.flags(packets, gap, view.profile));
        let form = self.ask(|policies, _, _| policies.ack.form());
        assert_eq!(form, self.form, "the same for the whole life of an association");
    }

    fn ask_about_states(&mut self) {
        let id = self.any_path();
        let (by_heartbeat, proof) = (self.below(2) == 0, self.one_of(&PROOFS));
        let failed = self.ask(|policies, view, _| policies.failover.on_error(id, by_heartbeat, view)).choice;
        let facts = *self.world.view().path(id);
        let too_many = facts.error_count > self.world.profile.path_max_retrans;
        assert_eq!(failed == PathState::Inactive, too_many || facts.state == PathState::Inactive);
        self.ask(|policies, view, _| policies.failover.on_proof(id, proof, view));
        self.ask(|policies, view, _| policies.failover.probing(id, view));
        let promoted = self.ask(|policies, view, context| policies.failover.promote(view, context));
        if let Some(decision) = promoted {
            assert_eq!(self.world.view().path(decision.choice).state, PathState::PotentiallyFailed);
        }
    }

    fn round(&mut self) {
        self.randomise();
        self.dispatch_all_events();
        self.ask_about_losses();
        self.ask_about_acks();
        self.ask_about_states();
    }
}

/// Runs a scheme for some rounds under each profile of its row.
fn run(text: &str, rounds: u32) {
    let scheme = parse(text).expect(text);
    for name in Profile::NAMES {
        let profile = scheme.profile(Profile::named(name, scheme.is_multipath()).expect("a profile"));
        let mut session = Session::new(&scheme, profile, 1);
        (0..rounds).for_each(|_| session.round());
    }
}

/// Returns the decisions of a scheme in 50 rounds with a seed.
pub(crate) fn decisions(text: &str, profile: &str, seed: u8) -> Vec<String> {
    let scheme = parse(text).expect(text);
    let profile = Profile::named(profile, scheme.is_multipath()).expect("a profile");
    let mut session = Session::new(&scheme, profile, seed);
    (0..50).for_each(|_| session.round());
    session.log
}

/// Runs policies for 40 rounds under each profile of a row, with all events and with those that slots declare to read. Returns
/// `true` if both runs record the same decisions and figures.
fn is_masked_like_unmasked(policies: impl Fn() -> Policies, row: impl Fn(&str) -> Profile) -> bool {
    is_masked_like_unmasked_if(false, policies, row)
}

fn is_masked_like_unmasked_if(
    is_on_sockets: bool,
    policies: impl Fn() -> Policies,
    row: impl Fn(&str) -> Profile,
) -> bool {
    Profile::NAMES.iter().all(|name| {
        let [all, declared] = [false, true].map(|masked| {
            let mut session = Session::with(policies(), row(name), 1);
            (session.loses_by_time, session.masked, session.records_figures) = (true, masked, true);
            session.is_on_sockets = is_on_sockets;
            (0..40).for_each(|_| session.round());
            session.log
        });
        all == declared
    })
}

/// Checks the declared events of a scheme.
fn check_declared_events(text: &str) {
    let scheme = parse(text).expect(text);
    let row = |name: &str| scheme.profile(Profile::named(name, scheme.is_multipath()).expect("a profile"));
    assert!(
        is_masked_like_unmasked(|| scheme.policies(), row),
        "{text} reads an event that it does not declare"
    );
}

/// Returns a scheme as associations on sockets use it.
fn wrapped(scheme: Arc<dyn Scheme>) -> Arc<dyn Scheme> {
    honour_costs(duplicate_marked(scheme))
}

/// Returns the extreme values of a parameter, or all of them.
fn extremes(parameter: &Parameter) -> Vec<String> {
    match parameter.kind {
        Kind::Switch => vec!["true".to_owned(), "false".to_owned()],
        Kind::Choice(choice) => choice.names().into_iter().map(str::to_owned).collect(),
        Kind::Count { min, max } | Kind::Milliseconds { min, max } => vec![min.to_string(), max.to_string()],
        Kind::Decimal { min, max } => vec![min.to_string(), max.to_string()],
        Kind::Length => ["0B", "1MTU", "100MTU"].map(str::to_owned).to_vec(),
        Kind::Weights => ["1", "1000:1", "1:1:7"].map(str::to_owned).to_vec(),
    }
}

#[test]
fn every_preset_handles_every_event() {
    for preset in PRESETS {
        run(preset.name, 300);
    }
}

#[test]
fn every_preset_handles_events_at_parameter_bounds() {
    for preset in PRESETS {
        for parameter in preset.parameters {
            for value in extremes(parameter) {
                run(&format!("{}({}={value})", preset.name, parameter.name), 40);
            }
        }
    }
}

#[test]
fn every_preset_decides_the_same_with_declared_events_alone() {
    for preset in PRESETS {
        check_declared_events(preset.name);
        for parameter in preset.parameters {
            for value in extremes(parameter) {
                check_declared_events(&format!("{}({}={value})", preset.name, parameter.name));
            }
        }
    }
}

#[test]
fn every_component_decides_the_same_with_declared_events_alone() {
    for component in COMPONENTS {
        for preset in PRESETS.iter().filter(|preset| component.fits(preset)) {
            check_declared_events(&format!("{}+{}", preset.name, component.name));
        }
    }
}

#[test]
fn declaration_without_an_event_that_is_read_is_found() {
    /// A scheduler that reads losses and does not declare them.
    struct Narrow {
        lost: bool,
    }

    impl Slot for Narrow {
        fn events(&self, _: &Profile) -> EventSet {
            EventSet::of(&[EventKind::Sent])
        }

        fn on_event(&mut self, event: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {
            self.lost |= matches!(event, Event::Lost { .. });
        }
    }

    impl Scheduler for Narrow {
        fn pick(&mut self, _: &SendAsk, _: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
            let rule = if self.lost { "after a loss" } else { "before a loss" };
            Decision::new(Pick::Wait(WaitFor::Window), Reason::rule(rule))
        }
    }

    let scheme = parse("cmt").expect("a preset");
    let policies = || Policies { scheduler: Box::new(Narrow { lost: false }), ..scheme.policies() };
    assert!(!is_masked_like_unmasked(policies, |name| Profile::named(name, true).expect("a profile")));
}

#[test]
fn every_component_handles_every_event_in_each_scheme() {
    for component in COMPONENTS {
        for preset in PRESETS.iter().filter(|preset| component.fits(preset)) {
            run(&format!("{}+{}", preset.name, component.name), 100);
        }
    }
}

#[test]
fn every_preset_keeps_the_rules_with_costs_and_marked_messages() {
    for preset in PRESETS {
        let scheme = wrapped(parse(preset.name).expect("a preset").into_scheme());
        let row = |name: &str| scheme.profile(Profile::named(name, preset.multipath).expect("a profile"));
        let policies = || scheme.policies();
        assert!(is_masked_like_unmasked_if(true, policies, row), "{}", preset.name);
    }
}

#[test]
fn schemes_decide_without_costs_and_marks_as_without_the_wrappers() {
    for preset in PRESETS {
        let scheme = parse(preset.name).expect("a preset").into_scheme();
        let profile = || scheme.profile(Profile::named("net", preset.multipath).expect("a profile"));
        let logs = [scheme.policies(), wrapped(scheme.clone()).policies()].map(|policies| {
            let mut session = Session::with(policies, profile(), 1);
            session.loses_by_time = true;
            (0..40).for_each(|_| session.round());
            session.log
        });
        assert!(logs[0] == logs[1], "{}", preset.name);
    }
}

#[test]
fn the_script_has_every_kind_of_event() {
    let mut session = Session::new(&parse("cmt").expect("a preset"), Profile::ns2_multipath(), 1);
    (0..100).for_each(|_| session.round());
    assert!(session.told.iter().all(|&times| times > 0), "{:?}", session.told);
}

#[test]
fn one_seed_gives_one_sequence_of_decisions_and_another_seed_another() {
    for preset in PRESETS {
        let log = |seed| decisions(preset.name, "ns2", seed);
        assert!(log(1) == log(1), "{} differs from itself", preset.name);
        assert!(log(1) != log(2), "{} takes no notice of what it is told", preset.name);
    }
}

#[test]
fn policies_of_two_associations_share_no_state() {
    let scheme = parse("cmt").expect("a preset");
    let mut first = Session::new(&scheme, Profile::ns2_multipath(), 1);
    let second = Session::new(&scheme, Profile::ns2_multipath(), 1);
    let before = second.policies.congestion.window(path(0));
    (0..20).for_each(|_| first.round());
    assert_ne!(first.policies.congestion.window(path(0)), before);
    assert_eq!(second.policies.congestion.window(path(0)), before);
}
