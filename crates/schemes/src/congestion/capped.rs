//! A ceiling on every window, such as the largest window that a TCP agent of ns-2 uses (`window_`, 20 packets unless set).

use anabranch_core::PathId;
use anabranch_core::policy::{CongestionControl, Context, Event, Reason, Slot, View, Window};
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;

/// A control whose windows never exceed a number of largest chunks.
pub struct Capped {
    inner: Box<dyn CongestionControl>,
    chunks: u64,
}

impl Capped {
    /// A ceiling of `chunks` largest chunks, at least one, over `inner`.
    pub fn new(inner: Box<dyn CongestionControl>, chunks: u64) -> Self {
        Capped { inner, chunks: chunks.max(1) }
    }

    fn ceiling(&self, path: PathId, view: &View<'_>) -> ChunkBytes {
        view.path(path).largest_chunk.times(self.chunks)
    }

    fn hold_down(&mut self, path: PathId, view: &View<'_>) {
        let (window, cwnd) = (self.inner.window(path), self.ceiling(path, view));
        if window.cwnd > cwnd {
            let reason = Reason::figure("held at the window's cap", "cap_bytes", cwnd.get() as f64);
            self.inner.set_window(path, Window { cwnd, ..window }, reason, view);
        }
    }
}

impl Slot for Capped {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.inner.on_event(event, view, context);
        for path in view.paths {
            self.hold_down(path.id, view);
        }
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl CongestionControl for Capped {
    fn window(&self, path: PathId) -> Window {
        self.inner.window(path)
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.inner.last_reason(path)
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        self.inner.set_window(path, window, reason, view);
        self.hold_down(path, view);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{GrowthGate, WindowControl};
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::policy::{LossCause, PathAck, SackDone};
    use anabranch_core::profile::Profile;

    fn capped(chunks: u64) -> (Capped, World) {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        let mut control = Capped::new(Box::new(WindowControl::new(GrowthGate::PseudoCumulative)), chunks);
        world.tell(&mut control, &Event::Established);
        (control, world)
    }

    fn ack_a_window(control: &mut Capped, world: &mut World) {
        let ack = PathAck {
            cumulative: bytes(M),
            new_pseudo_cumulative: true,
            in_flight_before: bytes(1_000_000),
            outstanding_at_start: bytes(1_000_000),
            in_flight_after: bytes(1_000_000 - M),
            ..PathAck::default()
        };
        let done = SackDone { paths: &[ack, PathAck::default()], new_cumulative: true, cumulative: 9 };
        world.tell(control, &Event::SackDone(&done));
    }

    #[test]
    fn a_window_grows_up_to_the_ceiling_and_no_further() {
        let (mut control, mut world) = capped(5);
        let cwnd = |control: &Capped| control.window(path(0)).cwnd.get();
        // 4380 + 1468 = 5848; then 7316, next 8784, both held at 5 x 1468 = 7340.
        let mut seen = vec![cwnd(&control)];
        for _ in 0..4 {
            ack_a_window(&mut control, &mut world);
            seen.push(cwnd(&control));
        }
        assert_eq!(seen, [4380, 5848, 7316, 7340, 7340]);
        let reason = Reason::figure("held at the window's cap", "cap_bytes", 7340.0);
        assert_eq!(control.last_reason(path(0)), reason);
        assert_eq!(control.last_reason(path(1)).rule, "initial window", "the other path is below its cap");
    }

    #[test]
    fn a_loss_halves_the_capped_window() {
        let (mut control, mut world) = capped(5);
        (0..10).for_each(|_| ack_a_window(&mut control, &mut world));
        world.tell(&mut control, &Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit });
        // Half of 7340 B, not of what the window would have been without a cap.
        assert_eq!(control.window(path(0)).cwnd, bytes(3670));
    }

    #[test]
    fn the_first_window_and_one_that_is_set_are_held_down_too() {
        let (mut control, world) = capped(2);
        assert_eq!(control.window(path(1)).cwnd, bytes(2 * M));
        let window = Window { cwnd: bytes(9 * M), ..control.window(path(1)) };
        control.set_window(path(1), window, Reason::rule("test"), &world.view());
        assert_eq!(control.window(path(1)).cwnd, bytes(2 * M));
    }

    #[test]
    fn a_ceiling_of_nothing_leaves_one_chunk() {
        assert_eq!(capped(0).0.window(path(0)).cwnd, bytes(M));
    }
}
