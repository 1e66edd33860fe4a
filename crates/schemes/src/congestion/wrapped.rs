//! Congestion controls that wrap another one.

use anabranch_core::PathId;
use anabranch_core::policy::{
    CongestionControl, Context, Event, EventSet, Pacing, Reason, Slot, View, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Time;

/// Wrapper of a congestion control. The windows are those of the inner control.
pub trait Wrapper: Send {
    /// Returns a [copy](anabranch_core::policy::Policies::copied) of the wrapper alone. `None` by default.
    fn copied(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }
    /// Returns the kinds of events that the wrapper itself reads: all by default. Those of the inner control arrive as well.
    fn events(&self) -> EventSet {
        EventSet::ALL
    }
    /// Handles an event in place of `inner`: forwards the events that `inner` shall handle, and may change its windows.
    fn on_event(
        &mut self,
        event: &Event<'_>,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    );
}

/// Congestion control with a wrapper around it.
pub struct Wrapped<W> {
    wrapper: W,
    inner: Box<dyn CongestionControl>,
}

impl<W: Wrapper> Wrapped<W> {
    /// Wraps `inner` in `wrapper`.
    pub fn new(wrapper: W, inner: Box<dyn CongestionControl>) -> Self {
        Wrapped { wrapper, inner }
    }
}

impl<W: Wrapper> Slot for Wrapped<W> {
    fn events(&self, profile: &Profile) -> EventSet {
        self.wrapper.events().union(self.inner.events(profile))
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.wrapper.on_event(event, &mut *self.inner, view, context);
    }

    forward! { inner:
        fn deadline(&self) -> Option<Time>;
    }
}

impl<W: Wrapper + 'static> CongestionControl for Wrapped<W> {
    fn copied(&self) -> Option<Box<dyn CongestionControl>> {
        Some(Box::new(Wrapped { wrapper: self.wrapper.copied()?, inner: self.inner.copied()? }))
    }

    forward! { inner:
        fn window(&self, path: PathId) -> Window;
        fn pacing(&self, path: PathId) -> Pacing;
        fn last_reason(&self, path: PathId) -> Reason;
        fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) -> ();
    }
}
