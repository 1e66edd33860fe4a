//! Input and output of growth and reduction rules.

use std::fmt::Debug;

use anabranch_core::policy::{Event, EventSet, LossCause, Pacing, PathFacts, Reason, View, Window};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

/// New state of a window and the reason for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// New state.
    pub window: Window,
    /// Deciding rule, for traces.
    pub reason: Reason,
}

/// Acknowledgement that lets a path's window grow. Its gate is open, the window was in full use, and its bytes have been added to
/// the path's partial bytes acked.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged<'a> {
    /// Path whose window may grow.
    pub path: PathId,
    /// Bytes that this SACK newly acknowledged on the path.
    pub bytes: ChunkBytes,
    /// Windows of all paths, indexed by id. `view` shows them before the SACK.
    pub windows: &'a [Window; MAX_PATHS],
    /// Profile and facts of all paths.
    pub view: &'a View<'a>,
}

impl Acknowledged<'_> {
    /// Returns the path's window.
    pub fn window(&self) -> Window {
        self.windows[self.path.index()]
    }

    /// Returns the path's facts.
    pub fn facts(&self) -> &PathFacts {
        self.view.path(self.path)
    }

    /// Returns the maximum growth by this SACK in slow start (RFC 9260 section 7.2.1).
    pub fn slow_start_limit(&self) -> ChunkBytes {
        self.facts().largest_chunk.times(self.view.profile.slow_start_limit)
    }
}

/// Loss on a path that reduces its window: once per window for fast retransmit, and at every T3.
#[derive(Clone, Copy, Debug)]
pub struct PathLoss<'a> {
    /// Path whose window is reduced.
    pub path: PathId,
    /// Cause of the loss. A chunk that was moved to another path counts like one that fast retransmit found.
    pub cause: LossCause,
    /// Windows of all paths, indexed by id.
    pub windows: &'a [Window; MAX_PATHS],
    /// Profile and facts of all paths.
    pub view: &'a View<'a>,
}

impl PathLoss<'_> {
    /// Returns the path's window.
    pub fn window(&self) -> Window {
        self.windows[self.path.index()]
    }

    /// Returns the path's facts.
    pub fn facts(&self) -> &PathFacts {
        self.view.path(self.path)
    }
}

/// Growth rule of windows.
pub trait Growth: Debug + Send {
    /// Returns a [copy](anabranch_core::policy::Policies::copied) of the rule. `None` by default.
    fn copied(&self) -> Option<Box<dyn Growth>> {
        None
    }
    /// Returns the kinds of events that [`on_event`](Self::on_event) reads: all by default. Others may arrive as well.
    fn events(&self) -> EventSet {
        EventSet::ALL
    }
    /// Handles an event before the control does, for rules that keep state.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);
    /// Returns the path's window after growth, or `None` to leave it unchanged. The control keeps it at one largest chunk or more.
    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change>;
}

/// Reduction rule of windows after a loss.
pub trait Cut: Debug + Send {
    /// Returns a [copy](anabranch_core::policy::Policies::copied) of the rule. `None` by default.
    fn copied(&self) -> Option<Box<dyn Cut>> {
        None
    }
    /// Returns the kinds of events that [`on_event`](Self::on_event) reads: all by default. Others may arrive as well.
    fn events(&self) -> EventSet {
        EventSet::ALL
    }
    /// Handles an event before the control does, for rules that keep state.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);
    /// Returns the path's window after the loss, possibly unchanged. The control keeps it at one largest chunk or more.
    fn cut(&mut self, loss: &PathLoss<'_>) -> Change;
}

/// Pacing rule of paths.
pub trait Pace: Debug + Send {
    /// Returns a [copy](anabranch_core::policy::Policies::copied) of the rule. `None` by default.
    fn copied(&self) -> Option<Box<dyn Pace>> {
        None
    }
    /// Returns the kinds of events that [`on_event`](Self::on_event) reads: all by default. Others may arrive as well.
    fn events(&self) -> EventSet {
        EventSet::ALL
    }
    /// Handles events after the control. `windows` are the current windows of all paths, indexed by id. `view` shows them before
    /// the event.
    fn on_event(&mut self, event: &Event<'_>, windows: &[Window; MAX_PATHS], view: &View<'_>);
    /// Returns the pacing of a path after the latest event.
    fn pacing(&self, path: PathId) -> Pacing;
}

/// No pacing: only windows limit transmission.
#[derive(Clone, Copy, Debug)]
pub struct Unpaced;

impl Pace for Unpaced {
    copied!(Pace);

    fn events(&self) -> EventSet {
        EventSet::NONE
    }

    fn on_event(&mut self, _: &Event<'_>, _: &[Window; MAX_PATHS], _: &View<'_>) {}

    fn pacing(&self, _: PathId) -> Pacing {
        Pacing::OFF
    }
}
