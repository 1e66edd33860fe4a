//! Controls that are wrapped around another one.

use anabranch_core::PathId;
use anabranch_core::policy::{CongestionControl, Context, Event, Pacing, Reason, Slot, View, Window};
use anabranch_core::time::Time;

/// What is wrapped around a control. The windows are those of the control inside.
pub trait Wrapper: Send {
    /// Called with every event in place of `inner`: passes on to it what it should handle, and may change its windows.
    fn on_event(
        &mut self,
        event: &Event<'_>,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    );
}

/// A control with a wrapper around it.
pub struct Wrapped<W> {
    wrapper: W,
    inner: Box<dyn CongestionControl>,
}

impl<W: Wrapper> Wrapped<W> {
    /// `wrapper` around `inner`.
    pub fn new(wrapper: W, inner: Box<dyn CongestionControl>) -> Self {
        Wrapped { wrapper, inner }
    }
}

impl<W: Wrapper> Slot for Wrapped<W> {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.wrapper.on_event(event, &mut *self.inner, view, context);
    }

    forward! { inner:
        fn deadline(&self) -> Option<Time>;
    }
}

impl<W: Wrapper> CongestionControl for Wrapped<W> {
    forward! { inner:
        fn window(&self, path: PathId) -> Window;
        fn pacing(&self, path: PathId) -> Pacing;
        fn last_reason(&self, path: PathId) -> Reason;
        fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) -> ();
    }
}
