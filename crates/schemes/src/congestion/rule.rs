//! What a rule of growth or reduction is told, and what it answers.

use std::fmt::Debug;

use anabranch_core::policy::{Event, LossCause, PathFacts, Reason, View, Window};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

/// A window's new state and why it is that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The new state.
    pub window: Window,
    /// Why.
    pub reason: Reason,
}

/// Acknowledgements let a path's window grow: its gate is open, the window was in full use, and the bytes that count in
/// congestion avoidance have been added to its partial bytes acked.
#[derive(Clone, Copy, Debug)]
pub struct Acknowledged<'a> {
    /// Which path.
    pub path: PathId,
    /// Bytes that this SACK newly acknowledged on it.
    pub bytes: ChunkBytes,
    /// The windows of all paths, indexed by id. In `view` they are still as they were before the SACK.
    pub windows: &'a [Window; MAX_PATHS],
    /// Everything else.
    pub view: &'a View<'a>,
}

impl Acknowledged<'_> {
    /// The path's window.
    pub fn window(&self) -> Window {
        self.windows[self.path.index()]
    }

    /// What is known of the path.
    pub fn facts(&self) -> &PathFacts {
        self.view.path(self.path)
    }

    /// The most that this SACK may add to the window in slow start (RFC 9260 section 7.2.1).
    pub fn slow_start_limit(&self) -> ChunkBytes {
        self.facts().largest_chunk.times(self.view.profile.slow_start_limit)
    }
}

/// A path has suffered a loss that its window answers: once per window for fast retransmit, and at every T3.
#[derive(Clone, Copy, Debug)]
pub struct Suffered<'a> {
    /// Which path.
    pub path: PathId,
    /// By what. A chunk that was taken off the path to be sent elsewhere counts like one that fast retransmit found.
    pub cause: LossCause,
    /// The windows of all paths, indexed by id.
    pub windows: &'a [Window; MAX_PATHS],
    /// Everything else.
    pub view: &'a View<'a>,
}

impl Suffered<'_> {
    /// The path's window.
    pub fn window(&self) -> Window {
        self.windows[self.path.index()]
    }

    /// What is known of the path.
    pub fn facts(&self) -> &PathFacts {
        self.view.path(self.path)
    }
}

/// How a window grows.
pub trait Growth: Debug + Send {
    /// Hears every event, before the control acts on it: for rules with figures of their own.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);
    /// The path's window after it grew; `None` leaves it as it is. The control holds it at one largest chunk at least.
    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change>;
}

/// How a window answers a loss.
pub trait Cut: Debug + Send {
    /// Hears every event, before the control acts on it: for rules with figures of their own.
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>);
    /// The path's window after the loss, which may be what it was before. The control holds it at one largest chunk at least.
    fn cut(&mut self, suffered: &Suffered<'_>) -> Change;
}
