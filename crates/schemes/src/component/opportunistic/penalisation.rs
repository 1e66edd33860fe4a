//! Penalisation of the path that blocks the receive buffer, as in Linux's MPTCP with its default scheduler: when a copy of the
//! head-of-line chunk is sent on a faster path, the window of the slower path that first carried it is halved.

use anabranch_core::policy::{
    CongestionControl, Context, Event, EventKind, EventSet, Reason, SendKind, SentTransmission, View, Window,
};
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

use crate::congestion::Wrapper;

/// Halves the windows of paths that block the head of line.
#[derive(Clone, Default)]
pub struct Penalisation {
    /// Time of the latest penalty that each path caused, as the fast path.
    latest: [Option<Time>; MAX_PATHS],
}

impl Penalisation {
    fn sent(&mut self, sent: &SentTransmission, inner: &mut dyn CongestionControl, view: &View<'_>) {
        if sent.kind != SendKind::HeadOfLine {
            return;
        }
        let Some(slow) = sent.previous_path.filter(|slow| self.deserves(sent.path, *slow, view)) else {
            return;
        };
        self.latest[sent.path.index()] = Some(view.now);
        let largest = view.path(slow).largest_chunk;
        let window = penalty(inner.window(slow), largest);
        let reason = Reason::figure("blocked the head of line", "cwnd_bytes", window.cwnd.get() as f64);
        inner.set_window(slow, window, reason, view);
    }

    /// Linux: the other path is slower and neither in recovery nor after T3, and the fast path's latest penalty is an srtt ago.
    fn deserves(&self, fast: PathId, slow: PathId, view: &View<'_>) -> bool {
        let (Some(fast_rtt), Some(slow_rtt)) = (view.path(fast).rtt.smoothed, view.path(slow).rtt.smoothed)
        else {
            return false;
        };
        let rested = self.latest[fast.index()].is_none_or(|latest| view.now.since(latest) >= fast_rtt);
        fast_rtt < slow_rtt && view.path(slow).recovery_point.is_none() && rested
    }
}

/// Halves the window, to one chunk or more; in congestion avoidance halves the threshold too, to two or more.
pub(crate) fn penalty(window: Window, largest: ChunkBytes) -> Window {
    let slow_start = window.cwnd <= window.ssthresh;
    let halved = window.ssthresh.over(2).max(largest.times(2));
    Window {
        cwnd: window.cwnd.over(2).max(largest),
        ssthresh: if slow_start { window.ssthresh } else { halved },
        partial_bytes_acked: ChunkBytes::ZERO,
    }
}

impl Wrapper for Penalisation {
    fn copied(&self) -> Option<Self> {
        Some(self.clone())
    }

    fn events(&self) -> EventSet {
        EventSet::of(&[EventKind::PathAdded, EventKind::Sent])
    }

    fn on_event(
        &mut self,
        event: &Event<'_>,
        inner: &mut dyn CongestionControl,
        view: &View<'_>,
        context: &mut Context<'_>,
    ) {
        inner.on_event(event, view, context);
        match event {
            Event::Sent(sent) => self.sent(sent, inner, view),
            Event::PathAdded(path) => self.latest[path.index()] = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{GrowthGate, WindowControl, Wrapped};
    use crate::testing::{M, World, bytes, path};
    use anabranch_core::profile::Profile;
    use anabranch_core::time::Span;

    /// Fast path of 50 ms and slow path of 200 ms with a window of 20,000 B above a threshold of 12,000 B.
    struct Rig {
        world: World,
        control: Wrapped<Penalisation>,
    }

    impl Rig {
        fn new() -> Self {
            let mut world = World::new(Profile::ns2_multipath(), 2);
            let inner = Box::new(WindowControl::new(GrowthGate::PseudoCumulative));
            let mut control = Wrapped::new(Penalisation::default(), inner);
            world.dispatch(&mut control, &Event::Established);
            for (facts, rtt) in world.paths.iter_mut().zip([50, 200]) {
                facts.rtt.smoothed = Some(Span::from_millis(rtt));
            }
            let window = Window { cwnd: bytes(20_000), ssthresh: bytes(12_000), ..Window::default() };
            control.set_window(path(1), window, Reason::rule("test"), &world.view());
            Rig { world, control }
        }

        fn send(&mut self, kind: SendKind, on: usize, previous: Option<usize>) {
            let (tsn, bytes) = (1, bytes(M));
            let sent =
                SentTransmission { path: path(on), previous_path: previous.map(path), tsn, bytes, kind };
            self.world.dispatch(&mut self.control, &Event::Sent(&sent));
        }

        /// Returns the slow path's cwnd and ssthresh.
        fn slow(&self) -> (u64, u64) {
            let window = self.control.window(path(1));
            (window.cwnd.get(), window.ssthresh.get())
        }
    }

    #[test]
    fn head_of_line_copy_halves_window_and_ssthresh_of_the_slow_path() {
        let mut rig = Rig::new();
        rig.send(SendKind::HeadOfLine, 0, Some(1));
        assert_eq!(rig.slow(), (10_000, 6000));
        let reason = Reason::figure("blocked the head of line", "cwnd_bytes", 10_000.0);
        assert_eq!(rig.control.last_reason(path(1)), reason);
        assert_eq!(rig.control.window(path(0)).cwnd, bytes(4380), "the fast path keeps its own");
    }

    #[test]
    fn other_transmissions_do_not_penalise() {
        let mut rig = Rig::new();
        for kind in [SendKind::New, SendKind::Retransmission, SendKind::Copy, SendKind::TailProbe] {
            rig.send(kind, 0, Some(1));
        }
        rig.send(SendKind::HeadOfLine, 0, None);
        assert_eq!(rig.slow(), (20_000, 12_000));
    }

    #[test]
    fn there_is_one_penalty_per_round_trip_of_the_fast_path() {
        let mut rig = Rig::new();
        let mut seen = Vec::new();
        for wait in [0, 49, 1, 49, 1] {
            rig.world.now += Span::from_millis(wait);
            rig.send(SendKind::HeadOfLine, 0, Some(1));
            seen.push(rig.slow().0);
        }
        assert_eq!(seen, [10_000, 10_000, 5000, 5000, 2500]);
    }

    #[test]
    fn path_added_again_has_no_penalty() {
        let mut rig = Rig::new();
        rig.send(SendKind::HeadOfLine, 0, Some(1));
        rig.world.dispatch(&mut rig.control, &Event::PathAdded(path(0)));
        rig.send(SendKind::HeadOfLine, 0, Some(1));
        assert_eq!(rig.slow().0, 5000);
    }

    #[test]
    fn faster_unmeasured_or_recovering_path_is_not_penalised() {
        let cases: [fn(&mut World); 4] = [
            |world| world.paths[1].rtt.smoothed = Some(Span::from_millis(50)),
            |world| world.paths[1].rtt.smoothed = None,
            |world| world.paths[0].rtt.smoothed = None,
            |world| world.paths[1].recovery_point = Some(7),
        ];
        for case in cases {
            let mut rig = Rig::new();
            case(&mut rig.world);
            rig.send(SendKind::HeadOfLine, 0, Some(1));
            assert_eq!(rig.slow(), (20_000, 12_000));
        }
    }

    #[test]
    fn slow_start_keeps_its_threshold_and_small_windows_have_floors() {
        let of = |cwnd, ssthresh| {
            let window =
                Window { cwnd: bytes(cwnd), ssthresh: bytes(ssthresh), partial_bytes_acked: bytes(9) };
            let window = penalty(window, bytes(M));
            assert!(window.partial_bytes_acked.is_zero());
            (window.cwnd.get(), window.ssthresh.get())
        };
        assert_eq!(of(20_000, 20_000), (10_000, 20_000), "slow start includes equality: RFC 9260 7.2.1");
        assert_eq!(of(20_000, 19_999), (10_000, 9999));
        assert_eq!(of(2500, 2000), (1468, 2936));
    }
}
