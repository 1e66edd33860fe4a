//! CUBIC's increase (RFC 9438 sections 4.2 to 4.5, 4.7, 4.8, 4.10 and 5.8).

use anabranch_core::policy::{Event, LossCause, Reason, SackDone, View, Window};
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};

use crate::component::cubic::BETA;
use crate::congestion::growth::coupled::Fractions;
use crate::congestion::growth::standard::slow_start;
use crate::congestion::{Acknowledged, Change, Growth};
use crate::definition::Equation;

/// Section 5.1: how steep the curve is, in largest chunks per second cubed.
const C: f64 = 0.4;

/// Section 4.3: with it a standard window would be as large on average as one that grows by one chunk per window and is halved.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Section 4.2: the most that a window grows in a round trip.
const MOST_TARGET: f64 = 1.5;

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "equations 1 and 2",
        rule: "W(t) = C (t - K)^3 M + W_max; K = cbrt((W_max - cwnd at the epoch's beginning) / (C M)); C = 0.4",
        file: file!(),
    },
    Equation {
        name: "section 4.4 and 4.5, concave and convex",
        rule: "target = W(t + SRTT), from cwnd to 1.5 cwnd; cwnd += (target - cwnd) / cwnd for each byte acknowledged",
        file: file!(),
    },
    Equation {
        name: "section 4.3, Reno-friendly",
        rule: "W_est += alpha M / cwnd for each byte acknowledged, alpha = 3 (1 - 0.7) / (1 + 0.7), 1 from the window before the \
               loss on; where W(t) < W_est: cwnd = W_est",
        file: file!(),
    },
    Equation {
        name: "section 4.7, fast convergence",
        rule: "a loss below the last W_max: W_max = cwnd (1 + 0.7) / 2; otherwise W_max = cwnd",
        file: file!(),
    },
];

/// Growth by the time since the latest loss, path by path.
#[derive(Debug)]
pub(super) struct CubicGrowth {
    fast_convergence: bool,
    curves: [Curve; MAX_PATHS],
    fractions: Fractions,
}

impl CubicGrowth {
    pub(super) fn new(fast_convergence: bool) -> Self {
        CubicGrowth {
            fast_convergence,
            curves: [Curve::default(); MAX_PATHS],
            fractions: Fractions::default(),
        }
    }

    fn sack_done(&mut self, done: &SackDone<'_>, view: &View<'_>) {
        for (facts, ack) in view.paths.iter().zip(done.paths) {
            if !ack.newly_acked().is_zero() && ack.in_flight_before < facts.cwnd {
                self.curves[facts.id.index()].pause(view.now);
            }
        }
    }
}

impl Growth for CubicGrowth {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        self.fractions.on_event(event);
        match *event {
            Event::PathAdded(path) => self.curves[path.index()] = Curve::default(),
            Event::LossEvent { path, cause } => {
                let cwnd = view.path(path).cwnd.get() as f64;
                self.curves[path.index()].lost(cause, cwnd, self.fast_convergence);
            }
            Event::SackDone(done) => self.sack_done(done, view),
            Event::Idle(path) => self.curves[path.index()].pause(view.now),
            _ => {}
        }
    }

    fn grow(&mut self, acknowledged: &Acknowledged<'_>) -> Option<Change> {
        let window = acknowledged.window();
        if let Some(change) = slow_start(window, acknowledged.bytes, acknowledged.slow_start_limit()) {
            return Some(change);
        }
        let facts = acknowledged.facts();
        let step = Step {
            now: acknowledged.view.now,
            rtt: facts.rtt.smoothed.unwrap_or(Span::ZERO),
            cwnd: window.cwnd.max(facts.largest_chunk).get() as f64,
            acked: acknowledged.bytes.get() as f64,
            chunk: facts.largest_chunk.get() as f64,
        };
        Some(self.avoidance(acknowledged.path, window, &step))
    }
}

impl CubicGrowth {
    fn avoidance(&mut self, path: PathId, window: Window, step: &Step) -> Change {
        let (cwnd, reason) = self.curves[path.index()].next(step);
        let cwnd = self.fractions.whole(path, window.cwnd, cwnd - step.cwnd);
        Change { window: Window { cwnd, partial_bytes_acked: ChunkBytes::ZERO, ..window }, reason }
    }
}

/// An acknowledgement in congestion avoidance. Windows in bytes.
#[derive(Clone, Copy, Debug)]
struct Step {
    now: Time,
    rtt: Span,
    cwnd: f64,
    acked: f64,
    chunk: f64,
}

/// A path's way back to its largest window. Windows in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// The window at the latest loss, perhaps reduced by fast convergence; `None` before any, and after T3.
    w_max: Option<f64>,
    /// The window just before the latest loss.
    cwnd_prior: f64,
    /// This congestion avoidance, if it has begun.
    epoch: Option<Epoch>,
    /// The window was last in full use before this.
    paused_at: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Time,
    /// Seconds until the window is W_max again.
    k: f64,
    w_max: f64,
    w_est: f64,
}

impl Curve {
    fn lost(&mut self, cause: LossCause, cwnd: f64, fast_convergence: bool) {
        self.w_max = match cause {
            LossCause::FastRetransmit | LossCause::Rescheduled => {
                let gives_way = fast_convergence && self.w_max.is_some_and(|before| cwnd < before);
                Some(if gives_way { cwnd * (1.0 + BETA) / 2.0 } else { cwnd })
            }
            // Section 4.8: after T3 the curve begins at its plateau, where congestion avoidance begins.
            LossCause::Timeout => None,
        };
        (self.cwnd_prior, self.epoch) = (cwnd, None);
    }

    /// The window is not in full use.
    fn pause(&mut self, now: Time) {
        self.paused_at.get_or_insert(now);
    }

    /// The window after an acknowledgement, and why.
    fn next(&mut self, step: &Step) -> (f64, Reason) {
        let mut epoch = self.epoch.unwrap_or_else(|| Epoch::begin(self.w_max, step));
        // Section 5.8: the time in which the window was not in full use does not count.
        if let Some(paused_at) = self.paused_at.take() {
            epoch.began += step.now.since(paused_at.max(epoch.began));
        }
        let alpha = if epoch.w_est < self.cwnd_prior { ALPHA } else { 1.0 };
        epoch.w_est += alpha * step.chunk * step.acked / step.cwnd;
        self.epoch = Some(epoch);
        let elapsed = step.now.since(epoch.began);
        if epoch.window_at(elapsed, step.chunk) < epoch.w_est {
            let reason = Reason::figure("as the standard would grow (CUBIC)", "w_est_bytes", epoch.w_est);
            return (epoch.w_est.max(step.cwnd), reason);
        }
        let target =
            epoch.window_at(elapsed + step.rtt, step.chunk).clamp(step.cwnd, MOST_TARGET * step.cwnd);
        let reason = Reason::figure("toward the curve (CUBIC)", "target_bytes", target);
        (step.cwnd + (target - step.cwnd) / step.cwnd * step.acked, reason)
    }
}

impl Epoch {
    /// Sections 4.8 and 4.10: without a loss that left a larger window the plateau is where the window is.
    fn begin(w_max: Option<f64>, step: &Step) -> Self {
        let w_max = w_max.filter(|&w_max| w_max > step.cwnd).unwrap_or(step.cwnd);
        let k = cube_root((w_max - step.cwnd) / (C * step.chunk));
        Epoch { began: step.now, k, w_max, w_est: step.cwnd }
    }

    /// Equation 1.
    fn window_at(&self, elapsed: Span, chunk: f64) -> f64 {
        let t = elapsed.as_secs_f64() - self.k;
        C * t * t * t * chunk + self.w_max
    }
}

/// By Newton's method, from above: products and quotients are the same on every machine, and a library's `cbrt` need not be.
fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = x.max(1.0);
    loop {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        // What is no number is not below the root either.
        let closer = next < root;
        if !closer {
            return root;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests;
