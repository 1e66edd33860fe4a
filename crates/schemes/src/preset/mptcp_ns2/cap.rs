//! Cap of every window, such as the maximum window of a TCP agent of ns-2 (`window_`, default 20 packets).

use anabranch_core::policy::{CongestionControl, Context, Event, Reason, View, Window};

use crate::congestion::Wrapper;
use crate::definition::Equation;

pub(super) const RULES: &[Equation] =
    &[Equation { name: "window_", rule: "cwnd_i is at most `window-cap` M", file: file!() }];

/// Limit of every window to a number of largest chunks.
#[derive(Clone)]
pub struct Cap {
    chunks: u64,
}

impl Cap {
    /// Creates a cap of `chunks` largest chunks, at least one.
    pub fn new(chunks: u64) -> Self {
        Cap { chunks: chunks.max(1) }
    }
}

impl Wrapper for Cap {
    fn copied(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn on_event(
        &mut self,
        event: &Event<'_>,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) {
        inner.on_event(event, view, context);
        for path in view.paths {
            let (window, cwnd) = (inner.window(path.id), path.largest_chunk.times(self.chunks));
            if window.cwnd > cwnd {
                let reason =
                    Reason::figure("limited by the window's maximum", "cap_bytes", cwnd.get() as f64);
                inner.set_window(path.id, Window { cwnd, ..window }, reason, view);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{GrowthGate, WindowControl, Wrapped};
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::policy::{LossCause, PathAck, SackDone};
    use anabranch_core::profile::Profile;

    fn capped(chunks: u64) -> (Wrapped<Cap>, World) {
        let mut world = World::new(Profile::ns2_multipath(), 2);
        let inner = Box::new(WindowControl::new(GrowthGate::PseudoCumulative));
        let mut control = Wrapped::new(Cap::new(chunks), inner);
        world.dispatch(&mut control, &Event::Established);
        (control, world)
    }

    fn ack_a_window(control: &mut Wrapped<Cap>, world: &mut World) {
        let ack = PathAck {
            cumulative: bytes(M),
            new_pseudo_cumulative: true,
            in_flight_before: bytes(1_000_000),
            outstanding_at_start: bytes(1_000_000),
            in_flight_after: bytes(1_000_000 - M),
            ..PathAck::default()
        };
        let done = SackDone { paths: &[ack, PathAck::default()], new_cumulative: true, cumulative: 9 };
        world.dispatch(control, &Event::SackDone(&done));
    }

    #[test]
    fn a_window_grows_up_to_the_ceiling_and_no_further() {
        let (mut control, mut world) = capped(5);
        let cwnd = |control: &Wrapped<Cap>| control.window(path(0)).cwnd.get();
        // 4380 + 1468 = 5848; then 7316, next 8784, limited to 5 x 1468 = 7340.
        let mut seen = vec![cwnd(&control)];
        for _ in 0..4 {
            ack_a_window(&mut control, &mut world);
            seen.push(cwnd(&control));
        }
        assert_eq!(seen, [4380, 5848, 7316, 7340, 7340]);
        let reason = Reason::figure("limited by the window's maximum", "cap_bytes", 7340.0);
        assert_eq!(control.last_reason(path(0)), reason);
        assert_eq!(control.last_reason(path(1)).rule, "initial window", "the other path is below its cap");
    }

    #[test]
    fn a_loss_halves_the_capped_window() {
        let (mut control, mut world) = capped(5);
        (0..10).for_each(|_| ack_a_window(&mut control, &mut world));
        world.dispatch(&mut control, &Event::LossEvent { path: path(0), cause: LossCause::FastRetransmit });
        // Half of 7340 B, not of the window without a cap.
        assert_eq!(control.window(path(0)).cwnd, bytes(3670));
    }

    #[test]
    fn initial_window_is_capped_too() {
        assert_eq!(capped(2).0.window(path(1)).cwnd, bytes(2 * M));
    }

    #[test]
    fn ceiling_of_zero_leaves_one_chunk() {
        assert_eq!(capped(0).0.window(path(0)).cwnd, bytes(M));
    }
}
