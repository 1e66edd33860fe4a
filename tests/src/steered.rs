//! A scheme of which a test makes some decisions, for situations that no preset reaches.

use std::sync::{Arc, Mutex};

use anabranch_core::policy::{
    CongestionControl, Context, Decision, Event, HeadOfLineAction, HeadOfLineBlocking, HeadOfLineHandling,
    Holes, LossDetection, LossTasks, LostChunk, Missing, MissingVerdict, OpportunityCause, Pacing, Pick,
    Policies, Reason, RetransmitChoice, RetransmitPath, SackView, Scheduler, Scheme, SendAsk, Slot, View,
    Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::{PathId, PathSet};
use anabranch_schemes::registry;

const HAND: Reason = Reason::rule("the test's hand");

/// Function that answers [`Scheduler::pick`].
pub type Picks = Arc<dyn Fn(&View<'_>) -> Pick + Send + Sync>;
/// Function that answers [`Scheduler::replan`].
pub type Replans = Arc<dyn Fn(&View<'_>) -> bool + Send + Sync>;
/// Function that answers [`RetransmitPath::route`].
pub type Routes = Arc<dyn Fn(&LostChunk, &View<'_>) -> RetransmitChoice + Send + Sync>;

/// Function that answers [`HeadOfLineHandling::handle`].
pub type Handles = Arc<dyn Fn(&HeadOfLineBlocking, &View<'_>) -> Option<HeadOfLineAction> + Send + Sync>;
/// Function that answers [`CongestionControl::pacing`].
pub type Paces = Arc<dyn Fn(PathId) -> Pacing + Send + Sync>;
/// Function that answers [`LossDetection::overdue`].
pub type Overdue = Arc<dyn Fn(&Missing, &View<'_>) -> bool + Send + Sync>;

/// Notifications that the scheduler of a [`Steered`] scheme has received.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A chunk was bound to a path.
    Bound(usize, u64),
    /// A chunk lost the path it was bound to.
    Unbound(usize, u64),
    /// A chunk was acknowledged, and the copy on this path credited.
    Acked(usize, u64),
    /// A chunk was declared lost.
    Lost(usize, u64),
    /// The window of a path was to be reduced.
    Cut(usize),
    /// A round trip of a DATA chunk was measured.
    Rtt(usize, Span),
    /// A spurious retransmission was reported.
    Spurious(usize, u64),
    /// A send opportunity began that does not continue one of a paced path.
    Opportunity,
}

/// Notifications received until now.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Heard>>>);

impl Log {
    /// Returns all notifications and empties the log.
    ///
    /// # Panics
    /// Panics if a policy panicked.
    pub fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut self.0.lock().expect("no policy panicked"))
    }

    fn note(&self, heard: Heard) {
        self.0.lock().expect("no policy panicked").push(heard);
    }
}

/// Next deadline of the loss policy, with the tasks that it then requests.
#[derive(Clone, Debug, Default)]
pub struct Alarm(Arc<Mutex<Option<(Time, LossTasks)>>>);

impl Alarm {
    /// Sets the deadline. The endpoint notices it at its next call.
    ///
    /// # Panics
    /// Panics if a policy panicked.
    pub fn set(&self, at: Time, tasks: LossTasks) {
        *self.0.lock().expect("no policy panicked") = Some((at, tasks));
    }

    fn at(&self) -> Option<Time> {
        self.0.lock().expect("no policy panicked").map(|(at, _)| at)
    }

    fn take(&self) -> LossTasks {
        self.0.lock().expect("no policy panicked").take().map(|(_, tasks)| tasks).unwrap_or_default()
    }
}

/// A preset of which a test makes some decisions.
#[derive(Clone)]
pub struct Steered {
    base: String,
    pick: Option<Picks>,
    replan: Option<Replans>,
    route: Option<Routes>,
    head_of_line: Option<Handles>,
    overdue: Option<Overdue>,
    pace: Option<Paces>,
    /// Notifications of its scheduler.
    pub log: Log,
    /// Deadline of its loss policy.
    pub alarm: Alarm,
}

impl Steered {
    /// Returns the unchanged scheme of this expression.
    pub fn new(base: &str) -> Self {
        Steered {
            base: base.to_owned(),
            pick: None,
            replan: None,
            route: None,
            head_of_line: None,
            overdue: None,
            pace: None,
            log: Log::default(),
            alarm: Alarm::default(),
        }
    }

    /// Replaces the choice of paths for new data.
    #[must_use]
    pub fn pick(mut self, pick: impl Fn(&View<'_>) -> Pick + Send + Sync + 'static) -> Self {
        self.pick = Some(Arc::new(pick));
        self
    }

    /// Replaces the decision that returns bound chunks to the queue.
    #[must_use]
    pub fn replan(mut self, replan: impl Fn(&View<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.replan = Some(Arc::new(replan));
        self
    }

    /// Replaces the choice of paths for lost chunks.
    #[must_use]
    pub fn route(
        mut self,
        route: impl Fn(&LostChunk, &View<'_>) -> RetransmitChoice + Send + Sync + 'static,
    ) -> Self {
        self.route = Some(Arc::new(route));
        self
    }

    /// Replaces the handling of head-of-line blocking.
    #[must_use]
    pub fn head_of_line(
        mut self,
        handle: impl Fn(&HeadOfLineBlocking, &View<'_>) -> Option<HeadOfLineAction> + Send + Sync + 'static,
    ) -> Self {
        self.head_of_line = Some(Arc::new(handle));
        self
    }

    /// Replaces the pacing of paths.
    #[must_use]
    pub fn pace(mut self, pace: impl Fn(PathId) -> Pacing + Send + Sync + 'static) -> Self {
        self.pace = Some(Arc::new(pace));
        self
    }

    /// Replaces the choice of chunks that time alone declares lost when [`alarm`](Self::alarm) expires.
    #[must_use]
    pub fn overdue(mut self, overdue: impl Fn(&Missing, &View<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.overdue = Some(Arc::new(overdue));
        self
    }
}

impl Scheme for Steered {
    fn policies(&self) -> Policies {
        let base = registry::parse(&self.base).expect("a scheme").policies();
        Policies {
            scheduler: Box::new(SteeredScheduler { inner: base.scheduler, by: self.clone() }),
            retransmit: match &self.route {
                Some(by) => Box::new(SteeredRetransmit { by: by.clone() }),
                None => base.retransmit,
            },
            head_of_line: Box::new(SteeredHeadOfLine { inner: base.head_of_line, by: self.clone() }),
            loss: Box::new(SteeredLoss { inner: base.loss, by: self.clone() }),
            congestion: match &self.pace {
                Some(by) => Box::new(SteeredPace { inner: base.congestion, by: by.clone() }),
                None => base.congestion,
            },
            ..base
        }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

/// Returns the path with this index.
pub fn path(index: usize) -> PathId {
    PathId::new(index)
}

/// Returns the paths with these indices.
pub fn paths<const N: usize>(indices: [usize; N]) -> PathSet {
    indices.map(PathId::new).into_iter().collect()
}

struct SteeredScheduler {
    inner: Box<dyn Scheduler>,
    by: Steered,
}

impl Slot for SteeredScheduler {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        let heard = match *event {
            Event::Bound { path, tsn, .. } => Some(Heard::Bound(path.index(), tsn)),
            Event::Unbound { path, tsn, .. } => Some(Heard::Unbound(path.index(), tsn)),
            Event::Acked(acked) => Some(Heard::Acked(acked.path.index(), acked.tsn)),
            Event::Lost { path, tsn, .. } => Some(Heard::Lost(path.index(), tsn)),
            Event::LossEvent { path, .. } => Some(Heard::Cut(path.index())),
            Event::RttSample { path, rtt, heartbeat: false } => Some(Heard::Rtt(path.index(), rtt)),
            Event::Spurious { path, tsn, .. } => Some(Heard::Spurious(path.index(), tsn)),
            Event::SendOpportunity(cause) if cause != OpportunityCause::Pacing => Some(Heard::Opportunity),
            _ => None,
        };
        heard.into_iter().for_each(|heard| self.by.log.note(heard));
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl Scheduler for SteeredScheduler {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick> {
        match &self.by.pick {
            Some(pick) => Decision::new(pick(view), HAND),
            None => self.inner.pick(ask, view, context),
        }
    }

    fn replan(&mut self, view: &View<'_>) -> bool {
        self.by.replan.as_ref().is_some_and(|replan| replan(view))
    }
}

struct SteeredRetransmit {
    by: Routes,
}

impl Slot for SteeredRetransmit {}

impl RetransmitPath for SteeredRetransmit {
    fn route(
        &mut self,
        chunk: &LostChunk,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        Decision::new((self.by)(chunk, view), HAND)
    }
}

struct SteeredPace {
    inner: Box<dyn CongestionControl>,
    by: Paces,
}

impl Slot for SteeredPace {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl CongestionControl for SteeredPace {
    fn window(&self, path: PathId) -> Window {
        self.inner.window(path)
    }

    fn pacing(&self, path: PathId) -> Pacing {
        (self.by)(path)
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.inner.last_reason(path)
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        self.inner.set_window(path, window, reason, view);
    }
}

struct SteeredHeadOfLine {
    inner: Box<dyn HeadOfLineHandling>,
    by: Steered,
}

impl Slot for SteeredHeadOfLine {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl HeadOfLineHandling for SteeredHeadOfLine {
    fn handle(
        &mut self,
        blocking: &HeadOfLineBlocking,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) -> Option<Decision<HeadOfLineAction>> {
        match &self.by.head_of_line {
            Some(handle) => handle(blocking, view).map(|choice| Decision::new(choice, HAND)),
            None => self.inner.handle(blocking, view, context),
        }
    }
}

struct SteeredLoss {
    inner: Box<dyn LossDetection>,
    by: Steered,
}

impl Slot for SteeredLoss {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.by.alarm.at().or_else(|| self.inner.deadline())
    }
}

impl LossDetection for SteeredLoss {
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.inner.holes(sack, view)
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        self.inner.missing(chunk, sack, view)
    }

    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.inner.timed_out(chunk, view)
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        if self.by.alarm.at().is_some_and(|at| at <= view.now) {
            return self.by.alarm.take();
        }
        self.inner.due(view)
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        match &self.by.overdue {
            Some(overdue) => overdue(chunk, view),
            None => self.inner.overdue(chunk, view),
        }
    }
}
