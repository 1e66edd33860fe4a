//! A scheme that makes all decisions of a policy at random, sensible or not. The endpoint has to keep its counters consistent and
//! to deliver its data.

use anabranch_core::policy::{
    AckForm, AckPolicy, AckTiming, Arrival, CongestionControl, Context, Decision, Event, HeadOfLineAction,
    HeadOfLineBlocking, HeadOfLineHandling, Holes, LossDetection, LossTasks, Missing, MissingVerdict, Pacing,
    Pick, Policies, Reason, SackView, Scheduler, Scheme, SendAsk, Slot, View, WaitFor, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId, PathSet};
use anabranch_schemes::registry;

/// Name in test cases.
pub const NAME: &str = "capricious";

/// The scheme: `cmt-pf` with random policies in five slots.
#[derive(Debug)]
pub struct Capricious;

const WHIM: Reason = Reason::rule("a whim");

impl Scheme for Capricious {
    fn policies(&self) -> Policies {
        let sane = registry::parse("cmt-pf").expect("a preset").policies();
        Policies {
            scheduler: Box::new(WildScheduler { replans: false }),
            congestion: Box::new(WildPace { inner: sane.congestion, pacing: [Pacing::OFF; MAX_PATHS] }),
            loss: Box::new(WildLoss {
                inner: sane.loss,
                deadline: None,
                tasks: LossTasks::default(),
                mood: 0,
            }),
            head_of_line: Box::new(WildHeadOfLine),
            ack: Box::new(WildAck { inner: sane.ack }),
            ..sane
        }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

fn any_path(context: &mut Context<'_>, view: &View<'_>) -> PathId {
    // Some paths do not exist.
    PathId::new((context.below(view.paths.len() as u64 + 1) as usize).min(MAX_PATHS - 1))
}

struct WildScheduler {
    replans: bool,
}

impl Slot for WildScheduler {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, context: &mut Context<'_>) {
        self.replans = context.below(20) == 0;
    }
}

impl Scheduler for WildScheduler {
    fn pick(&mut self, _: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick> {
        let choice = match context.below(8) {
            0..3 => Pick::Path(any_path(context, view)),
            3..6 => Pick::Bind(any_path(context, view)),
            6 => {
                let set: PathSet = view.paths.iter().map(|p| p.id).filter(|_| context.coin()).collect();
                Pick::Copies(set)
            }
            _ => Pick::Wait(WaitFor::Window),
        };
        Decision::new(choice, WHIM)
    }

    fn replan(&mut self, _: &View<'_>) -> bool {
        self.replans
    }
}

struct WildPace {
    inner: Box<dyn CongestionControl>,
    pacing: [Pacing; MAX_PATHS],
}

/// Returns no pacing, a rate of zero, or a rate between a packet per minute and a packet per microsecond.
fn any_pacing(context: &mut Context<'_>) -> Pacing {
    let rate = match context.below(16) {
        0..8 => None,
        8 => Some(Rate::from_bps(0)),
        9 => Some(Rate::from_bps(u64::MAX)),
        _ => Some(Rate::from_bps(10_u64.pow(3 + context.below(7) as u32))),
    };
    let cap = context.below(10);
    Pacing { rate, in_flight_cap: (cap < 3).then(|| ChunkBytes::new(cap * 3_000)) }
}

impl Slot for WildPace {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        if context.below(10) == 0 {
            self.pacing[any_path(context, view).index()] = any_pacing(context);
        }
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl CongestionControl for WildPace {
    fn window(&self, path: PathId) -> Window {
        self.inner.window(path)
    }

    fn pacing(&self, path: PathId) -> Pacing {
        self.pacing[path.index()]
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.inner.last_reason(path)
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        self.inner.set_window(path, window, reason, view);
    }
}

struct WildLoss {
    inner: Box<dyn LossDetection>,
    deadline: Option<Time>,
    tasks: LossTasks,
    mood: u64,
}

impl Slot for WildLoss {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.mood = context.below(8);
        match event {
            Event::Sent(sent) if context.below(10) == 0 => {
                self.deadline = Some(view.now + Span::from_millis(1 + context.below(500)));
                let mut perhaps = || context.coin().then_some(sent.path).into_iter().collect();
                let (probes, repeated) = (perhaps(), perhaps());
                self.tasks = LossTasks { recheck: context.coin().then_some(Holes::All), probes, repeated };
            }
            Event::Deadline => self.deadline = self.deadline.filter(|&at| at > view.now),
            _ => {}
        }
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.deadline
    }
}

impl LossDetection for WildLoss {
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.inner.holes(sack, view)
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        self.inner.missing(chunk, sack, view)
    }

    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.inner.timed_out(chunk, view)
    }

    fn due(&mut self, _: &View<'_>) -> LossTasks {
        std::mem::take(&mut self.tasks)
    }

    fn overdue(&mut self, chunk: &Missing, _: &View<'_>) -> bool {
        chunk.tsn % 8 == self.mood
    }
}

struct WildHeadOfLine;

impl Slot for WildHeadOfLine {}

impl HeadOfLineHandling for WildHeadOfLine {
    fn handle(
        &mut self,
        _: &HeadOfLineBlocking,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        let choice = match context.below(12) {
            0..2 => HeadOfLineAction::Copy(any_path(context, view)),
            2..4 => HeadOfLineAction::Move(any_path(context, view)),
            _ => return None,
        };
        Some(Decision::new(choice, WHIM))
    }
}

struct WildAck {
    inner: Box<dyn AckPolicy>,
}

impl Slot for WildAck {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl AckPolicy for WildAck {
    fn form(&self) -> AckForm {
        AckForm::NrSack { keeps_all: false }
    }

    fn timing(&mut self, arrival: &Arrival, view: &View<'_>) -> Decision<AckTiming> {
        self.inner.timing(arrival, view)
    }

    fn flags(&self, packets: u32, by_timer: bool, profile: &Profile) -> u8 {
        self.inner.flags(packets, by_timer, profile)
    }
}
