//! Core's views for Python: copies with plain numbers, whose names contain their units.

use anabranch_core::policy::{PathFacts as CorePath, Refusal, View as CoreView};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{MAX_PATHS, PathId};
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use super::numbers::{milliseconds, seconds, state_name};
use super::shapes::{DeliverySample, HeadOfLine, kbps, limiter_name};

fn refusal_name(refusal: Refusal) -> &'static str {
    match refusal {
        Refusal::State => "state",
        Refusal::WindowFull => "window-full",
        Refusal::InFlightCap => "in-flight-cap",
        Refusal::Paced => "paced",
        Refusal::Burst => "burst",
        Refusal::BufferShare => "buffer-share",
        Refusal::Withdrawn => "withdrawn",
        Refusal::Preference => "preference",
    }
}

/// Facts about a path.
#[pyclass(frozen, module = "anabranch.policy")]
pub struct PathFacts {
    facts: CorePath,
    outstanding_bytes: u64,
    refusal: Option<&'static str>,
}

#[pymethods]
impl PathFacts {
    #[getter]
    fn id(&self) -> usize {
        self.facts.id.index()
    }
    #[getter]
    fn state(&self) -> &'static str {
        state_name(self.facts.state)
    }
    #[getter]
    fn is_active(&self) -> bool {
        self.facts.is_active()
    }
    #[getter]
    fn primary(&self) -> bool {
        self.facts.primary
    }
    #[getter]
    fn ipv6(&self) -> bool {
        self.facts.ipv6
    }
    #[getter]
    fn error_count(&self) -> u32 {
        self.facts.error_count
    }
    #[getter]
    fn potentially_failed_since_s(&self) -> Option<f64> {
        self.facts.potentially_failed_since.map(seconds)
    }
    #[getter]
    fn cwnd_bytes(&self) -> u64 {
        self.facts.cwnd.get()
    }
    #[getter]
    fn ssthresh_bytes(&self) -> u64 {
        self.facts.ssthresh.get()
    }
    #[getter]
    fn partial_bytes_acked(&self) -> u64 {
        self.facts.partial_bytes_acked.get()
    }
    #[getter]
    fn pacing_rate_kbps(&self) -> Option<f64> {
        self.facts.pacing.rate.map(kbps)
    }
    #[getter]
    fn in_flight_cap_bytes(&self) -> Option<u64> {
        self.facts.pacing.in_flight_cap.map(ChunkBytes::get)
    }
    #[getter]
    fn paced_until_s(&self) -> Option<f64> {
        self.facts.paced_until.map(seconds)
    }
    #[getter]
    fn in_flight_bytes(&self) -> u64 {
        self.facts.in_flight.get()
    }
    #[getter]
    fn outstanding_bytes(&self) -> u64 {
        self.outstanding_bytes
    }
    #[getter]
    fn lost_unsent_bytes(&self) -> u64 {
        self.facts.lost_unsent.get()
    }
    #[getter]
    fn bound_bytes(&self) -> u64 {
        self.facts.bound.get()
    }
    #[getter]
    fn held_bytes(&self) -> u64 {
        self.facts.held.get()
    }
    #[getter]
    fn within_share(&self) -> bool {
        self.facts.within_share
    }
    #[getter]
    fn last_sent_at_s(&self) -> Option<f64> {
        self.facts.last_sent_at.map(seconds)
    }
    #[getter]
    fn latest_rtt_ms(&self) -> Option<f64> {
        self.facts.rtt.latest.map(milliseconds)
    }
    #[getter]
    fn min_rtt_ms(&self) -> Option<f64> {
        self.facts.rtt.min.map(milliseconds)
    }
    #[getter]
    fn smoothed_rtt_ms(&self) -> Option<f64> {
        self.facts.rtt.smoothed.map(milliseconds)
    }
    #[getter]
    fn rtt_variance_ms(&self) -> Option<f64> {
        self.facts.rtt.variance.map(milliseconds)
    }
    #[getter]
    fn rto_ms(&self) -> f64 {
        milliseconds(self.facts.rto)
    }
    #[getter]
    fn largest_chunk_bytes(&self) -> u64 {
        self.facts.largest_chunk.get()
    }
    #[getter]
    fn recovery_point(&self) -> Option<u64> {
        self.facts.recovery_point
    }
    #[getter]
    fn sent_bytes(&self) -> u64 {
        self.facts.sent.get()
    }
    #[getter]
    fn lost_bytes(&self) -> u64 {
        self.facts.lost.get()
    }
    #[getter]
    fn delivered_bytes(&self) -> u64 {
        self.facts.delivered.get()
    }
    #[getter]
    fn delivery_rate_kbps(&self) -> Option<f64> {
        self.facts.delivery_rate.map(kbps)
    }
    #[getter]
    fn delivery(&self) -> Option<DeliverySample> {
        self.facts.delivery.as_ref().map(DeliverySample::of)
    }
    #[getter]
    fn limiter(&self) -> &'static str {
        limiter_name(self.facts.limiter)
    }
    #[getter]
    fn recent_min_rtt_ms(&self) -> Option<f64> {
        self.facts.rtt.recent_min.map(milliseconds)
    }
    #[getter]
    fn bottleneck_rate_kbps(&self) -> Option<f64> {
        self.facts.estimates.bottleneck_rate.map(kbps)
    }
    #[getter]
    fn propagation_ms(&self) -> Option<f64> {
        self.facts.estimates.propagation.map(milliseconds)
    }
    #[getter]
    fn queueing_ms(&self) -> Option<f64> {
        self.facts.estimates.queueing.map(milliseconds)
    }
    #[getter]
    fn exempt_packets(&self) -> u32 {
        self.facts.exempt_packets
    }
    #[getter]
    fn burst_left(&self) -> Option<u32> {
        Some(self.facts.burst_left).filter(|left| *left < u32::MAX)
    }
    #[getter]
    fn resend_burst_left(&self) -> Option<u32> {
        Some(self.facts.resend_burst_left).filter(|left| *left < u32::MAX)
    }
    #[getter]
    fn loss_rate(&self) -> Option<f64> {
        self.facts.estimates.loss_rate
    }
    #[getter]
    fn seconds_per_byte(&self) -> Option<f64> {
        self.facts.estimates.seconds_per_byte
    }
    #[getter]
    fn withdrawn(&self) -> bool {
        self.facts.estimates.withdrawn
    }
    #[getter]
    fn admits_retransmission(&self) -> bool {
        self.facts.admits_retransmission()
    }
    #[getter]
    fn refusal(&self) -> Option<&'static str> {
        self.refusal
    }
    fn __repr__(&self) -> String {
        let srtt = self.smoothed_rtt_ms().map_or_else(|| "None".to_owned(), |ms| format!("{ms:.3}"));
        format!(
            "PathFacts(id={}, state='{}', cwnd_bytes={}, in_flight_bytes={}, smoothed_rtt_ms={srtt})",
            self.id(),
            self.state(),
            self.cwnd_bytes(),
            self.in_flight_bytes()
        )
    }
}

/// Facts about the association.
#[pyclass(frozen, module = "anabranch.policy", get_all)]
pub struct AssociationFacts {
    queued_bytes: u64,
    peer_window_bytes: u64,
    peer_window_advertised_bytes: u64,
    peer_window_initial_bytes: u64,
    send_buffer_free_bytes: Option<u64>,
    send_buffer_limit_bytes: Option<u64>,
    last_new_data_path: Option<usize>,
    head_of_line: Option<HeadOfLine>,
    cumulative_tsn: u64,
}

/// Input of a policy's decision.
#[pyclass(frozen, module = "anabranch.policy")]
pub struct View {
    #[pyo3(get)]
    now_s: f64,
    #[pyo3(get)]
    paths: Py<PyTuple>,
    #[pyo3(get)]
    association: Py<AssociationFacts>,
}

impl View {
    /// Returns a copy of core's view.
    pub(super) fn of(py: Python<'_>, view: &CoreView<'_>) -> PyResult<Py<Self>> {
        let path = |facts: &CorePath| {
            let path = PathFacts {
                facts: *facts,
                outstanding_bytes: view.outstanding(facts.id).get(),
                refusal: view.refusal(facts.id).map(refusal_name),
            };
            Bound::new(py, path)
        };
        let paths: Vec<Bound<'_, PathFacts>> = view.paths.iter().map(path).collect::<PyResult<_>>()?;
        let association = Py::new(py, association(view))?;
        let paths = PyTuple::new(py, paths)?.unbind();
        Py::new(py, View { now_s: seconds(view.now), paths, association })
    }

    fn facts<'py>(&self, path: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PathFacts>> {
        let paths = self.paths.bind(path.py());
        let index = path_id(path)?.map(PathId::index).filter(|index| *index < paths.len());
        let index = index.ok_or_else(|| {
            PyIndexError::new_err(format!("there are {} paths, with ids from 0 on", paths.len()))
        })?;
        Ok(paths.get_item(index)?.cast_into::<PathFacts>()?)
    }
}

fn association(view: &CoreView<'_>) -> AssociationFacts {
    let facts = view.association;
    AssociationFacts {
        queued_bytes: facts.queued_bytes,
        peer_window_bytes: facts.peer_window.get(),
        peer_window_advertised_bytes: facts.peer_window_advertised.get(),
        peer_window_initial_bytes: facts.peer_window_initial.get(),
        send_buffer_free_bytes: facts.send_buffer_free,
        send_buffer_limit_bytes: facts.send_buffer_limit,
        last_new_data_path: facts.last_new_data_path.map(PathId::index),
        head_of_line: facts.head_of_line.as_ref().map(HeadOfLine::of),
        cumulative_tsn: facts.cumulative_tsn,
    }
}

#[pymethods]
impl View {
    fn path<'py>(&self, path: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PathFacts>> {
        self.facts(path)
    }
    fn refusal(&self, path: &Bound<'_, PyAny>) -> PyResult<Option<&'static str>> {
        Ok(self.facts(path)?.get().refusal)
    }
    fn outstanding_bytes(&self, path: &Bound<'_, PyAny>) -> PyResult<u64> {
        Ok(self.facts(path)?.get().outstanding_bytes)
    }
    fn active<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.chosen(py, PathFacts::is_active)
    }
    fn ready<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        self.chosen(py, |path| path.refusal.is_none())
    }
}

impl View {
    fn chosen<'py>(
        &self,
        py: Python<'py>,
        wanted: impl Fn(&PathFacts) -> bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut chosen = Vec::new();
        for path in self.paths.bind(py).iter() {
            let path = path.cast_into::<PathFacts>()?;
            if wanted(path.get()) {
                chosen.push(path);
            }
        }
        PyTuple::new(py, chosen)
    }
}

/// Returns the id of a path, given as a path or an id. Returns `None` for an invalid number.
pub(super) fn path_id(given: &Bound<'_, PyAny>) -> PyResult<Option<PathId>> {
    if let Ok(path) = given.cast::<PathFacts>() {
        return Ok(Some(path.get().facts.id));
    }
    if given.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err("expected a path or its id, found a bool"));
    }
    // Any integer is accepted, including those of NumPy.
    let index = given.call_method0(pyo3::intern!(given.py(), "__index__"));
    let index = index.map_err(|_| PyTypeError::new_err("expected a path or its id"))?;
    Ok(index.extract::<usize>().ok().filter(|index| *index < MAX_PATHS).map(PathId::new))
}
