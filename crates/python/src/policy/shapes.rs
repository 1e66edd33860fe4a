//! Arguments of a policy's methods in Python, windows and pacing.

use anabranch_core::policy::{self, Limiter, LossCause};
use anabranch_core::time::Rate;
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};
use anabranch_schemes::congestion;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::numbers::{milliseconds, seconds};

/// Largest window of a policy in Python, in bytes, so that sums of windows do not overflow.
const LARGEST_WINDOW: f64 = (1u64 << 40) as f64;

/// Fastest pacing of a policy in Python: 1 Pbit/s.
const FASTEST_KBPS: f64 = 1e12;

pub(super) fn cause_name(cause: LossCause) -> &'static str {
    match cause {
        LossCause::FastRetransmit => "fast-retransmit",
        LossCause::Timeout => "timeout",
        LossCause::Rescheduled => "rescheduled",
    }
}

/// Packet for which a scheduler chooses a path.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
pub struct SendAsk {
    chunk_bytes: u64,
    window_probe: bool,
    duplicate: bool,
}

impl SendAsk {
    pub(super) fn of(ask: &policy::SendAsk) -> Self {
        SendAsk { chunk_bytes: ask.chunk.get(), window_probe: ask.window_probe, duplicate: ask.duplicate }
    }
}

/// Lost chunk that waits for its retransmission.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
pub struct LostChunk {
    tsn: u64,
    chunk_bytes: u64,
    path: usize,
    cause: &'static str,
}

impl LostChunk {
    pub(super) fn of(chunk: &policy::LostChunk) -> Self {
        LostChunk {
            tsn: chunk.tsn,
            chunk_bytes: chunk.bytes.get(),
            path: chunk.path.index(),
            cause: cause_name(chunk.cause),
        }
    }
}

/// Chunk that blocks the cumulative TSN.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
#[derive(Clone)]
pub struct HeadOfLine {
    tsn: u64,
    chunk_bytes: u64,
    path: usize,
    in_flight_on: Vec<usize>,
    sent_at_s: Option<f64>,
    transmissions: u32,
}

impl HeadOfLine {
    pub(super) fn of(head: &policy::HeadOfLine) -> Self {
        HeadOfLine {
            tsn: head.tsn,
            chunk_bytes: head.bytes.get(),
            path: head.path.index(),
            in_flight_on: head.in_flight_on.iter().map(PathId::index).collect(),
            sent_at_s: head.sent_at.map(seconds),
            transmissions: head.transmissions,
        }
    }
}

/// Congestion window of a path and its state, in bytes.
#[pyclass(frozen, module = "anabranch.policy", eq)]
#[derive(Clone, Copy, PartialEq)]
pub struct Window {
    pub(super) window: policy::Window,
}

/// Returns a number of bytes, rounded to the nearest.
fn bytes(name: &str, given: f64) -> PyResult<ChunkBytes> {
    if !(0.0..=LARGEST_WINDOW).contains(&given) {
        return Err(PyValueError::new_err(format!(
            "{name} is {given}: a window has from 0 to {LARGEST_WINDOW} bytes"
        )));
    }
    Ok(ChunkBytes::new(given.round() as u64))
}

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (cwnd_bytes, ssthresh_bytes, partial_bytes_acked=0.0))]
    fn new(cwnd_bytes: f64, ssthresh_bytes: f64, partial_bytes_acked: f64) -> PyResult<Self> {
        let window = policy::Window {
            cwnd: bytes("cwnd_bytes", cwnd_bytes)?,
            ssthresh: bytes("ssthresh_bytes", ssthresh_bytes)?,
            partial_bytes_acked: bytes("partial_bytes_acked", partial_bytes_acked)?,
        };
        Ok(Window { window })
    }
    #[getter]
    fn cwnd_bytes(&self) -> u64 {
        self.window.cwnd.get()
    }
    #[getter]
    fn ssthresh_bytes(&self) -> u64 {
        self.window.ssthresh.get()
    }
    #[getter]
    fn partial_bytes_acked(&self) -> u64 {
        self.window.partial_bytes_acked.get()
    }
    #[pyo3(signature = (*, cwnd_bytes=None, ssthresh_bytes=None, partial_bytes_acked=None))]
    fn replace(
        &self,
        cwnd_bytes: Option<f64>,
        ssthresh_bytes: Option<f64>,
        partial_bytes_acked: Option<f64>,
    ) -> PyResult<Self> {
        let of = |name, given: Option<f64>, now| given.map_or(Ok(now), |given| bytes(name, given));
        let window = policy::Window {
            cwnd: of("cwnd_bytes", cwnd_bytes, self.window.cwnd)?,
            ssthresh: of("ssthresh_bytes", ssthresh_bytes, self.window.ssthresh)?,
            partial_bytes_acked: of(
                "partial_bytes_acked",
                partial_bytes_acked,
                self.window.partial_bytes_acked,
            )?,
        };
        Ok(Window { window })
    }
    fn __repr__(&self) -> String {
        format!(
            "Window(cwnd_bytes={}, ssthresh_bytes={}, partial_bytes_acked={})",
            self.cwnd_bytes(),
            self.ssthresh_bytes(),
            self.partial_bytes_acked()
        )
    }
}

/// Limits of a path besides its window.
#[pyclass(frozen, module = "anabranch.policy", eq)]
#[derive(Clone, Copy, PartialEq)]
pub struct Pacing {
    pub(super) pacing: policy::Pacing,
}

#[pymethods]
impl Pacing {
    #[new]
    #[pyo3(signature = (*, rate_kbps=None, in_flight_cap_bytes=None))]
    fn new(rate_kbps: Option<f64>, in_flight_cap_bytes: Option<f64>) -> PyResult<Self> {
        let rate = rate_kbps.map(rate).transpose()?;
        let in_flight_cap = in_flight_cap_bytes.map(|cap| bytes("in_flight_cap_bytes", cap)).transpose()?;
        Ok(Pacing { pacing: policy::Pacing { rate, in_flight_cap } })
    }
    #[getter]
    fn rate_kbps(&self) -> Option<f64> {
        self.pacing.rate.map(kbps)
    }
    #[getter]
    fn in_flight_cap_bytes(&self) -> Option<u64> {
        self.pacing.in_flight_cap.map(ChunkBytes::get)
    }
    fn __repr__(&self) -> String {
        let written = |value: Option<String>| value.unwrap_or_else(|| "None".to_owned());
        let rate = written(self.rate_kbps().map(|rate| rate.to_string()));
        let cap = written(self.in_flight_cap_bytes().map(|cap| cap.to_string()));
        format!("Pacing(rate_kbps={rate}, in_flight_cap_bytes={cap})")
    }
}

/// Returns a rate, rounded to the nearest bit per second.
fn rate(kbps: f64) -> PyResult<Rate> {
    if !(0.0..=FASTEST_KBPS).contains(&kbps) {
        return Err(PyValueError::new_err(format!(
            "rate_kbps is {kbps}: a rate is from 0 to {FASTEST_KBPS}"
        )));
    }
    Ok(Rate::from_bps((kbps * 1e3).round() as u64))
}

/// Path whose pacing is requested.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
pub struct PaceAsk {
    path: usize,
    window: Window,
    windows: Vec<Window>,
}

impl PaceAsk {
    pub(super) fn of(path: PathId, all: &[policy::Window; MAX_PATHS], paths: usize) -> Self {
        PaceAsk {
            path: path.index(),
            window: Window { window: all[path.index()] },
            windows: windows(all, paths),
        }
    }
}

pub(super) fn limiter_name(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::Window => "window",
        Limiter::Pacing => "pacing",
        Limiter::PeerWindow => "peer-window",
        Limiter::Scheduler => "scheduler",
        Limiter::Application => "application",
    }
}

pub(super) fn kbps(rate: Rate) -> f64 {
    rate.as_bps() as f64 / 1e3
}

/// Delivery rate of a path by a SACK.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
pub struct DeliverySample {
    rate_kbps: Option<f64>,
    delivered_bytes: u64,
    interval_ms: f64,
    rtt_ms: Option<f64>,
    sent_at_s: f64,
    delivered_before_bytes: u64,
    in_flight_bytes: u64,
    lost_bytes: u64,
    limiter: &'static str,
}

impl DeliverySample {
    pub(super) fn of(sample: &policy::DeliverySample) -> Self {
        DeliverySample {
            rate_kbps: sample.rate.map(kbps),
            delivered_bytes: sample.delivered.get(),
            interval_ms: milliseconds(sample.interval()),
            rtt_ms: sample.rtt.map(milliseconds),
            sent_at_s: seconds(sample.stamps.sent_at),
            delivered_before_bytes: sample.stamps.delivered.get(),
            in_flight_bytes: sample.stamps.in_flight.get(),
            lost_bytes: sample.lost.get(),
            limiter: limiter_name(sample.limiter()),
        }
    }
}

/// Returns the windows of the existing paths.
fn windows(all: &[policy::Window; MAX_PATHS], paths: usize) -> Vec<Window> {
    all.iter().take(paths).map(|window| Window { window: *window }).collect()
}

/// Acknowledgement for which a path's window may grow.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
pub struct Acknowledged {
    path: usize,
    acked_bytes: u64,
    slow_start_limit_bytes: u64,
    window: Window,
    windows: Vec<Window>,
}

impl Acknowledged {
    pub(super) fn of(acknowledged: &congestion::Acknowledged<'_>) -> Self {
        Acknowledged {
            path: acknowledged.path.index(),
            acked_bytes: acknowledged.bytes.get(),
            slow_start_limit_bytes: acknowledged.slow_start_limit().get(),
            window: Window { window: acknowledged.window() },
            windows: windows(acknowledged.windows, acknowledged.view.paths.len()),
        }
    }
}

/// Loss for which a path's window may be reduced.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
pub struct PathLoss {
    path: usize,
    cause: &'static str,
    window: Window,
    windows: Vec<Window>,
}

impl PathLoss {
    pub(super) fn of(loss: &congestion::PathLoss<'_>) -> Self {
        PathLoss {
            path: loss.path.index(),
            cause: cause_name(loss.cause),
            window: Window { window: loss.window() },
            windows: windows(loss.windows, loss.view.paths.len()),
        }
    }
}
