//! The standard's congestion control on every path (RFC 9260 section 7.2), with CMT's choice of what lets a window grow.

use anabranch_core::policy::{
    CongestionControl, Context, Event, LossCause, PathAck, ProofOfLife, Reason, SackDone, Slot, StateCause,
    View, Window,
};
use anabranch_core::profile::{IdleDecay, InitialSsthresh};
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId, PathState};

/// Which acknowledgements let a path's window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthGate {
    /// Those that advance the association's cumulative TSN (RFC 9260 section 7.2.1).
    Cumulative,
    /// Those that advance the path's own pseudo-cumulative TSN: CMT's window update, CUC version 2 (Iyengar 2006).
    PseudoCumulative,
}

/// Slow start, congestion avoidance and multiplicative decrease, each path for itself.
#[derive(Debug)]
pub struct Standard {
    gate: GrowthGate,
    /// The window of a path that comes back from potentially failed, in largest chunks; `None` leaves it as it is.
    window_after_probe: Option<u64>,
    windows: [Window; MAX_PATHS],
    reasons: [Reason; MAX_PATHS],
    /// Since its latest transmission the path's window has decayed already.
    decayed: [bool; MAX_PATHS],
}

impl Standard {
    /// A control with a growth gate and the window, in largest chunks, that a path has when a HEARTBEAT-ACK ends its potential
    /// failure (CMT-PF1: 1, CMT-PF2: 2).
    pub fn new(gate: GrowthGate, window_after_probe: Option<u64>) -> Self {
        Standard {
            gate,
            window_after_probe,
            windows: [Window::default(); MAX_PATHS],
            reasons: [Reason::rule("initial window"); MAX_PATHS],
            decayed: [false; MAX_PATHS],
        }
    }

    fn begin(&mut self, path: PathId, view: &View<'_>) {
        let ssthresh = match view.profile.initial_ssthresh {
            InitialSsthresh::Fixed(bytes) => bytes,
            InitialSsthresh::PeerWindow => peer_window(view),
        };
        let cwnd = view.profile.initial_window.for_chunk(view.path(path).largest_chunk);
        self.windows[path.index()] = Window { cwnd, ssthresh, partial_bytes_acked: ChunkBytes::ZERO };
        self.reasons[path.index()] = Reason::rule("initial window");
        self.decayed[path.index()] = false;
    }

    fn sack(&mut self, done: &SackDone<'_>, view: &View<'_>) {
        for (index, ack) in done.paths.iter().enumerate() {
            let path = PathId::new(index);
            self.count_partial(path, ack, done.new_cumulative, view);
            let gate = match self.gate {
                GrowthGate::Cumulative => done.new_cumulative,
                GrowthGate::PseudoCumulative => ack.new_pseudo_cumulative,
            };
            let recovering = !view.profile.growth_in_recovery && view.path(path).recovery_point.is_some();
            if gate && !recovering && !ack.newly_acked().is_zero() {
                self.grow(path, ack, view);
            }
            if ack.in_flight_after.is_zero() {
                self.windows[index].partial_bytes_acked = ChunkBytes::ZERO;
            }
        }
    }

    /// RFC 9260 section 7.2.2: bytes acked in congestion avoidance add up to the next increment.
    fn count_partial(&mut self, path: PathId, ack: &PathAck, new_cumulative: bool, view: &View<'_>) {
        let window = &mut self.windows[path.index()];
        if window.cwnd <= window.ssthresh {
            return;
        }
        let full = ack.outstanding_at_start >= window.cwnd;
        if !view.profile.gap_acks_count_when_not_full {
            window.partial_bytes_acked += ack.newly_acked();
            if !full {
                window.partial_bytes_acked = window.partial_bytes_acked.min(window.cwnd);
            }
            return;
        }
        if full {
            window.partial_bytes_acked += ack.cumulative;
        }
        window.partial_bytes_acked += match self.gate {
            GrowthGate::PseudoCumulative => ack.gap_after_pseudo,
            GrowthGate::Cumulative if new_cumulative => ack.gap,
            GrowthGate::Cumulative => ChunkBytes::ZERO,
        };
    }

    fn grow(&mut self, path: PathId, ack: &PathAck, view: &View<'_>) {
        let window = &mut self.windows[path.index()];
        // Only a window that was in full use grows: RFC 9260 sections 7.2.1 and 7.2.2.
        if ack.in_flight_before < window.cwnd {
            return;
        }
        let largest = view.path(path).largest_chunk;
        if window.cwnd <= window.ssthresh {
            let by = ack.newly_acked().min(largest);
            window.cwnd += by;
            self.reasons[path.index()] = Reason::figure("slow start", "acked_bytes", by.get() as f64);
        } else if window.partial_bytes_acked >= window.cwnd {
            window.partial_bytes_acked -= window.cwnd;
            window.cwnd += largest;
            self.reasons[path.index()] = Reason::figure(
                "a window's worth was acknowledged",
                "largest_chunk_bytes",
                largest.get() as f64,
            );
        }
    }

    fn cut(&mut self, path: PathId, cause: LossCause, view: &View<'_>) {
        let largest = view.path(path).largest_chunk;
        let window = &mut self.windows[path.index()];
        let half = window.cwnd.over(2);
        match cause {
            LossCause::FastRetransmit | LossCause::Rescheduled => {
                window.ssthresh = half.max(largest.times(view.profile.fast_retransmit_floor));
                window.cwnd = window.ssthresh;
                self.reasons[path.index()] =
                    Reason::figure("halved by fast retransmit", "half_bytes", half.get() as f64);
            }
            LossCause::Timeout => {
                if window.cwnd > largest || view.profile.timeout_cuts_at_one_chunk {
                    window.ssthresh = half.max(largest.times(view.profile.timeout_floor));
                }
                window.cwnd = largest;
                self.reasons[path.index()] = Reason::figure("T3 expired", "half_bytes", half.get() as f64);
            }
        }
        self.windows[path.index()].partial_bytes_acked = ChunkBytes::ZERO;
    }

    fn decay(&mut self, path: PathId, view: &View<'_>) {
        let largest = view.path(path).largest_chunk;
        let first = !std::mem::replace(&mut self.decayed[path.index()], true);
        let window = &mut self.windows[path.index()];
        let decayed = window.cwnd.over(2).max(largest.times(4));
        match view.profile.idle_decay {
            IdleDecay::Rfc9260 => {
                if first {
                    window.ssthresh = window.ssthresh.max(window.cwnd);
                }
                window.cwnd = window.cwnd.min(decayed);
            }
            IdleDecay::Ns2 if window.cwnd > largest.times(2) => window.cwnd = decayed,
            IdleDecay::Ns2 => {}
        }
        self.reasons[path.index()] = Reason::rule("idle for an RTO");
    }

    fn restored(&mut self, path: PathId, from: PathState, cause: StateCause, view: &View<'_>) {
        let largest = view.path(path).largest_chunk;
        let window = &mut self.windows[path.index()];
        match cause {
            StateCause::Promoted(_) => {
                window.cwnd = largest;
                self.reasons[path.index()] = Reason::rule("promoted with one chunk");
            }
            StateCause::Proof(ProofOfLife::Heartbeat) if from == PathState::PotentiallyFailed => {
                if let Some(chunks) = self.window_after_probe {
                    window.cwnd = largest.times(chunks);
                    self.reasons[path.index()] = Reason::rule("answered its probe");
                }
            }
            _ => {}
        }
    }
}

fn peer_window(view: &View<'_>) -> ChunkBytes {
    ChunkBytes::new(view.association.peer_window_initial.get())
}

impl Slot for Standard {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        match *event {
            Event::PathAdded(path) => self.begin(path, view),
            Event::Established => view.paths.iter().for_each(|p| self.begin(p.id, view)),
            Event::SackDone(done) => self.sack(done, view),
            Event::LossEvent { path, cause } => self.cut(path, cause, view),
            Event::PathState { path, from, to: PathState::Active, cause } => {
                self.restored(path, from, cause, view);
            }
            Event::Sent(sent) => self.decayed[sent.path.index()] = false,
            Event::Idle(path) => self.decay(path, view),
            _ => {}
        }
    }

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl CongestionControl for Standard {
    fn window(&self, path: PathId) -> Window {
        self.windows[path.index()]
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.reasons[path.index()]
    }
}

#[cfg(test)]
mod tests;
