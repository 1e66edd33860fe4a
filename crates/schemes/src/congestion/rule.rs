//! The input and output of rules of growth and reduction.

use std::fmt::Debug;

use anabranch_core::policy::{Event, LossCause, Pacing, PathFacts, Reason, View, Window};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

/// A window's new state and why it is that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The new state.
    pub window: Window,
    /// The rule that made it, for traces.
    pub reason: Reason,
}

/// Acknowledgements let a path's window grow: its gate is open, the window was in full use, and the bytes that count in
/// congestion avoidance have been added to its partial bytes acked.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged<'a> {
    /// The path whose window may grow.
    pub path: PathId,
    /// Bytes that this SACK newly acknowledged on it.
    pub bytes: ChunkBytes,
    /// The windows of all paths, indexed by id. In `view` they are still as they were before the SACK.
    pub windows: &'a [Window; MAX_PATHS],
    /// The profile and the facts of all paths.
    pub view: &'a View<'a>,
}

impl Acknowledged<'_> {
    /// The path's window.
    pub fn window(&self) -> Window {
        self.windows[self.path.index()]
    }

    /// The path's facts.
    pub fn facts(&self) -> &PathFacts {
        self.view.path(self.path)
    }

    /// The most that this SACK may add to the window in slow start (RFC 9260 section 7.2.1).
    pub fn slow_start_limit(&self) -> ChunkBytes {
        self.facts().largest_chunk.times(self.view.profile.slow_start_limit)
    }
}

/// A loss on a path that its window answers: once per window for fast retransmit, and at every T3.
#[derive(Clone, Copy, Debug)]
pub struct PathLoss<'a> {
    /// The path whose window is cut.
    pub path: PathId,
    /// The cause of the loss. A chunk that was taken off the path to be sent elsewhere counts like one that fast retransmit found.
    pub cause: LossCause,
    /// The windows of all paths, indexed by id.
    pub windows: &'a [Window; MAX_PATHS],
    /// The profile and the facts of all paths.
    pub view: &'a View<'a>,
}

impl PathLoss<'_> {
    /// The path's window.
    pub fn window(&self) -> Window {
        self.windows[self.path.index()]
    }

    /// The path's facts.
    pub fn facts(&self) -> &PathFacts {
        self.view.path(self.path)
    }
}

/// A rule by which windows grow.
pub trait Growth: Debug + Send {
    /// Called with every event, before the control handles it, for rules that keep figures.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);
    /// The path's window after it grew; `None` leaves it as it is. The control holds it at one largest chunk at least.
    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change>;
}

/// How a loss reduces a window.
pub trait Cut: Debug + Send {
    /// Called with every event, before the control handles it, for rules that keep figures.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);
    /// The path's window after the loss, which may be what it was before. The control holds it at one largest chunk at least.
    fn cut(&mut self, loss: &PathLoss<'_>) -> Change;
}

/// How paths are paced beside their windows.
pub trait Pace: Debug + Send {
    /// Called with every event, after the control has handled it, with the windows of all paths as they are now, indexed by id. In
    /// `view` they are still as they were before the event.
    fn on_event(&mut self, event: &Event<'_>, windows: &[Window; MAX_PATHS], view: &View<'_>);
    /// How a path is paced after the latest event.
    fn pacing(&self, path: PathId) -> Pacing;
}

/// Windows alone decide.
#[derive(Clone, Copy, Debug)]
pub struct Unpaced;

impl Pace for Unpaced {
    fn on_event(&mut self, _: &Event<'_>, _: &[Window; MAX_PATHS], _: &View<'_>) {}

    fn pacing(&self, _: PathId) -> Pacing {
        Pacing::OFF
    }
}
