//! CUBIC's curve: the window by the time since the latest loss (RFC 9438 sections 4.2 to 4.5, 4.7, 4.8, 4.10 and 5.8).

use anabranch_core::policy::{LossCause, Reason};
use anabranch_core::time::{Span, Time};

use crate::definition::{Equation, text};

/// Section 4.6: factor of the window after a loss.
pub(crate) const BETA: f64 = 0.7;

/// Section 5.1: aggressiveness of growth, in largest chunks per second cubed.
const C: f64 = 0.4;

/// Section 4.3: increase with the average window of a standard flow, which grows by one chunk per window and is halved.
pub(super) const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Section 4.2: maximum growth of a window in a round trip, as a factor.
const MOST_TARGET: f64 = 1.5;

pub(crate) const RULES: &[Equation] = &[
    Equation {
        name: "equations 1 and 2",
        rule: text!(
            "W(t) = C (t - K)^3 M + W_max; K = cbrt((W_max - cwnd at the start of the epoch) / (C M)); C \
             = {}",
            C,
        ),
        file: file!(),
    },
    Equation {
        name: "section 4.4 and 4.5, concave and convex",
        rule: text!(
            "target = W(t + SRTT), from cwnd to {} cwnd; cwnd += (target - cwnd) / cwnd for each byte \
             acknowledged",
            MOST_TARGET,
        ),
        file: file!(),
    },
    Equation {
        name: "section 4.3, Reno-friendly",
        rule: text!(
            "W_est += alpha M / cwnd for each byte acknowledged, alpha = 3 (1 - {}) / (1 + {}), 1 from \
             the window before the loss on; if W(t) < W_est: cwnd = W_est",
            BETA,
            BETA,
        ),
        file: file!(),
    },
    Equation {
        name: "section 4.7, fast convergence",
        rule: text!("a loss below the last W_max: W_max = cwnd (1 + {}) / 2; otherwise W_max = cwnd", BETA),
        file: file!(),
    },
];

/// Acknowledgement in congestion avoidance. Windows are in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) now: Time,
    pub(crate) rtt: Span,
    pub(crate) cwnd: f64,
    pub(crate) acked: f64,
    pub(crate) chunk: f64,
}

/// Return of a path to its largest window. Windows are in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Curve {
    /// Window at the latest loss, possibly reduced by fast convergence; `None` before any loss and after T3.
    pub(super) w_max: Option<f64>,
    /// Window just before the latest loss.
    cwnd_prior: f64,
    /// Current congestion avoidance, if it has begun.
    pub(super) epoch: Option<Epoch>,
    /// Time since which the window is not in full use.
    paused_at: Option<Time>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    began: Time,
    /// Time in seconds until the window reaches W_max again.
    pub(super) k: f64,
    pub(super) w_max: f64,
    w_est: f64,
}

impl Curve {
    pub(crate) fn lost(&mut self, cause: LossCause, cwnd: f64, fast_convergence: bool) {
        self.w_max = match cause {
            LossCause::FastRetransmit | LossCause::Rescheduled => {
                let gives_way = fast_convergence && self.w_max.is_some_and(|before| cwnd < before);
                Some(if gives_way { cwnd * (1.0 + BETA) / 2.0 } else { cwnd })
            }
            // Section 4.8: after T3 the curve begins at its plateau, at the window where congestion avoidance begins.
            LossCause::Timeout => None,
        };
        (self.cwnd_prior, self.epoch) = (cwnd, None);
    }

    /// Records that the window is not in full use.
    pub(crate) fn pause(&mut self, now: Time) {
        self.paused_at.get_or_insert(now);
    }

    /// Ends the current congestion avoidance. The next one begins at its own window.
    pub(crate) fn restart(&mut self) {
        self.epoch = None;
    }

    /// Returns the window after an acknowledgement, and the reason.
    pub(crate) fn next(&mut self, step: &Step) -> (f64, Reason) {
        let mut epoch = self.epoch.unwrap_or_else(|| Epoch::begin(self.w_max, step));
        // Section 5.8: time in which the window was not in full use does not count.
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
    /// Sections 4.8 and 4.10: unless a loss left a larger window, the plateau is the current window.
    fn begin(w_max: Option<f64>, step: &Step) -> Self {
        let w_max = w_max.filter(|&w_max| w_max > step.cwnd).unwrap_or(step.cwnd);
        let k = cube_root((w_max - step.cwnd) / (C * step.chunk));
        Epoch { began: step.now, k, w_max, w_est: step.cwnd }
    }

    /// Evaluates equation 1.
    fn window_at(&self, elapsed: Span, chunk: f64) -> f64 {
        let t = elapsed.as_secs_f64() - self.k;
        C * t * t * t * chunk + self.w_max
    }
}

/// Computes the root by Newton's method, from above. Products and quotients are the same on every machine, unlike a library's
/// `cbrt`.
pub(super) fn cube_root(x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = x.max(1.0);
    loop {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        // NaN is not below the root either.
        let closer = next < root;
        if !closer {
            return root;
        }
        root = next;
    }
}
