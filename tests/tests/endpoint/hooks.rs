//! The endpoint calls every hook of every slot and reports every kind of event, so that no policy waits in vain.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use anabranch_core::policy::{
    AckForm, AckPolicy, AckTiming, Arrival, BufferSharing, CongestionControl, Context, Decision, Estimates,
    Event, HeadOfLineAction, HeadOfLineBlocking, HeadOfLineHandling, Holes, LivenessEffect, LivenessProof,
    LossDetection, LossTasks, LostChunk, Missing, MissingVerdict, Pacing, PathEstimator, PathFailover, Pick,
    Policies, Probing, Reason, RetransmitChoice, RetransmitPath, SackView, Scheduler, Scheme, SendAsk, Slot,
    View, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{PathId, PathState};
use anabranch_tests::capricious::Capricious;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;

/// Number of calls of each slot's hooks and of each event.
type Calls = Arc<Mutex<BTreeMap<String, u32>>>;

/// A policy that counts calls and forwards them.
struct Counting<P: ?Sized> {
    slot: &'static str,
    calls: Calls,
    inner: Box<P>,
}

impl<P: ?Sized> Counting<P> {
    fn boxed(slot: &'static str, calls: &Calls, inner: Box<P>) -> Box<Self> {
        Box::new(Counting { slot, calls: Arc::clone(calls), inner })
    }

    fn count(&self, what: &str) {
        let mut calls = self.calls.lock().expect("no other test panicked");
        *calls.entry(format!("{}: {what}", self.slot)).or_default() += 1;
    }
}

/// Returns the name of an event. A new kind does not compile until it has one.
fn name(event: &Event<'_>) -> &'static str {
    match event {
        Event::PathAdded(_) => "PathAdded",
        Event::PathRemoved(_) => "PathRemoved",
        Event::PathRebound(_) => "PathRebound",
        Event::PathState { .. } => "PathState",
        Event::Established => "Established",
        Event::SendOpportunity(_) => "SendOpportunity",
        Event::Bound { .. } => "Bound",
        Event::Unbound { .. } => "Unbound",
        Event::Sent(_) => "Sent",
        Event::Acked(_) => "Acked",
        Event::SackDone(_) => "SackDone",
        Event::RttSample { .. } => "RttSample",
        Event::Lost { .. } => "Lost",
        Event::Abandoned { .. } => "Abandoned",
        Event::LossEvent { .. } => "LossEvent",
        Event::Spurious { .. } => "Spurious",
        Event::Blocked { .. } => "Blocked",
        Event::Idle(_) => "Idle",
        Event::Deadline => "Deadline",
    }
}

/// Every event but `PathRebound`, which needs UDP: `tests/endpoint_paths.rs` has that one; and `Abandoned`, which needs a limit.
const EVENTS: [&str; 17] = [
    "PathAdded",
    "PathRemoved",
    "PathState",
    "Established",
    "SendOpportunity",
    "Bound",
    "Unbound",
    "Sent",
    "Acked",
    "SackDone",
    "RttSample",
    "Lost",
    "LossEvent",
    "Spurious",
    "Blocked",
    "Idle",
    "Deadline",
];

impl<P: ?Sized + Slot> Slot for Counting<P> {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.count(name(event));
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.count("deadline");
        self.inner.deadline()
    }
}

impl PathEstimator for Counting<dyn PathEstimator> {
    fn estimates(&self, path: PathId) -> Estimates {
        self.count("estimates");
        self.inner.estimates(path)
    }
}

impl Scheduler for Counting<dyn Scheduler> {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick> {
        self.count("pick");
        self.inner.pick(ask, view, context)
    }

    fn replan(&mut self, view: &View<'_>) -> bool {
        self.count("replan");
        self.inner.replan(view)
    }
}

impl CongestionControl for Counting<dyn CongestionControl> {
    fn window(&self, path: PathId) -> Window {
        self.count("window");
        self.inner.window(path)
    }

    fn pacing(&self, path: PathId) -> Pacing {
        self.count("pacing");
        self.inner.pacing(path)
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.count("last_reason");
        self.inner.last_reason(path)
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        self.inner.set_window(path, window, reason, view);
    }
}

impl LossDetection for Counting<dyn LossDetection> {
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.count("holes");
        self.inner.holes(sack, view)
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        self.count("missing");
        self.inner.missing(chunk, sack, view)
    }

    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.count("timed_out");
        self.inner.timed_out(chunk, view)
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        self.count("due");
        self.inner.due(view)
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.count("overdue");
        self.inner.overdue(chunk, view)
    }
}

impl RetransmitPath for Counting<dyn RetransmitPath> {
    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        self.count("route");
        self.inner.route(chunk, view, context)
    }
}

impl HeadOfLineHandling for Counting<dyn HeadOfLineHandling> {
    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        self.count("handle");
        self.inner.handle(blocking, view, context)
    }
}

impl AckPolicy for Counting<dyn AckPolicy> {
    fn form(&self) -> AckForm {
        self.count("form");
        self.inner.form()
    }

    fn timing(&mut self, arrival: &Arrival, view: &View<'_>) -> Decision<AckTiming> {
        self.count("timing");
        self.inner.timing(arrival, view)
    }

    fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8 {
        self.count("flags");
        self.inner.flags(packets, by_timer, profile)
    }
}

impl BufferSharing for Counting<dyn BufferSharing> {
    fn admits(&self, path: PathId, chunk: ChunkBytes, view: &View<'_>) -> bool {
        self.count("admits");
        self.inner.admits(path, chunk, view)
    }
}

impl PathFailover for Counting<dyn PathFailover> {
    fn on_error(&mut self, path: PathId, by_heartbeat: bool, view: &View<'_>) -> Decision<PathState> {
        self.count("on_error");
        self.inner.on_error(path, by_heartbeat, view)
    }

    fn on_proof(&mut self, path: PathId, proof: LivenessProof, view: &View<'_>) -> LivenessEffect {
        self.count("on_proof");
        self.inner.on_proof(path, proof, view)
    }

    fn probing(&self, path: PathId, view: &View<'_>) -> Probing {
        self.count("probing");
        self.inner.probing(path, view)
    }

    fn promote(&mut self, view: &View<'_>, context: &mut Context<'_>) -> Option<Decision<PathId>> {
        self.count("promote");
        self.inner.promote(view, context)
    }
}

/// A scheme that requests all events, with counted calls of each policy.
struct Counted {
    calls: Calls,
}

impl Scheme for Counted {
    fn policies(&self) -> Policies {
        let inner = Capricious.policies();
        let calls = &self.calls;
        Policies {
            estimator: Counting::boxed("estimator", calls, inner.estimator),
            scheduler: Counting::boxed("scheduler", calls, inner.scheduler),
            congestion: Counting::boxed("congestion", calls, inner.congestion),
            loss: Counting::boxed("loss", calls, inner.loss),
            retransmit: Counting::boxed("retransmit", calls, inner.retransmit),
            head_of_line: Counting::boxed("head_of_line", calls, inner.head_of_line),
            ack: Counting::boxed("ack", calls, inner.ack),
            buffer: Counting::boxed("buffer", calls, inner.buffer),
            failover: Counting::boxed("failover", calls, inner.failover),
        }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

const HOOKS: [&str; 24] = [
    "estimator: estimates",
    "scheduler: pick",
    "scheduler: replan",
    "congestion: window",
    "congestion: pacing",
    "congestion: last_reason",
    "loss: holes",
    "loss: missing",
    "loss: timed_out",
    "loss: due",
    "loss: overdue",
    "retransmit: route",
    "head_of_line: handle",
    "ack: form",
    "ack: timing",
    "ack: flags",
    "buffer: admits",
    "failover: on_error",
    "failover: on_proof",
    "failover: probing",
    "failover: promote",
    "estimator: deadline",
    "loss: deadline",
    "scheduler: deadline",
];

const SLOTS: [&str; 9] = [
    "estimator",
    "scheduler",
    "congestion",
    "loss",
    "retransmit",
    "head_of_line",
    "ack",
    "buffer",
    "failover",
];

/// Transfers in both directions over three lossy paths, with an outage of all of them, an idle period, and a removed path.
fn eventful_life(duo: &mut Duo) {
    for pair in 0..3 {
        duo.link(pair).loss = 100;
        duo.link(pair).duplicate = 20;
    }
    for round in 0..40 {
        for side in Side::BOTH {
            for _ in 0..8 {
                let _ = duo.send(side, 5_000, 0, round % 3 == 0);
            }
        }
        duo.run(Span::from_millis(500));
    }
    (0..3).for_each(|pair| duo.cut(pair, true));
    duo.run(Span::from_secs(20));
    (0..3).for_each(|pair| duo.cut(pair, false));
    duo.run(Span::from_secs(60));
    let now = duo.now;
    let association = duo.nodes[0].try_association_mut().expect("it lives");
    association.remove_path(now, PathId::new(2)).expect("two are left");
    duo.run(Span::from_secs(5));
}

#[test]
fn every_hook_is_called_and_every_slot_gets_every_event() {
    let calls = Calls::default();
    let mut setup = Setup::new(3, "cmt-pf", "rfc9260");
    for side in &mut setup.sides {
        side.scheme = Arc::new(Counted { calls: Arc::clone(&calls) });
        side.recv_buffer_bytes = 20_000;
    }
    let mut duo = Duo::connected(setup);
    eventful_life(&mut duo);
    let calls = calls.lock().expect("no other test panicked");
    let events = SLOTS.iter().flat_map(|slot| EVENTS.iter().map(move |event| format!("{slot}: {event}")));
    let missing: Vec<String> = HOOKS
        .iter()
        .map(ToString::to_string)
        .chain(events)
        .filter(|what| !calls.contains_key(what))
        .collect();
    assert!(missing.is_empty(), "never called: {missing:?}");
}
