//! Detection of runs whose speed the receive buffer limits, and not the network.

use anabranch_core::time::Span;
use anabranch_lab::run::{RunResult, ScenarioFiles};
use anabranch_scenario::units::format_size;
use anabranch_scenario::{Capacity, Delay, OneWay, Path, Scenario};

/// Fraction of the time above which the buffer counts as the limit.
const MOST_OF_IT: f64 = 0.5;

/// Returns a note on schemes that waited for the peer's window most of the time, with a remedy.
pub(super) fn note(scenario: &Scenario, files: &ScenarioFiles, results: &[RunResult]) -> Option<String> {
    // An application that reads slowly closes the window with any buffer.
    if scenario.flows.iter().any(|flow| flow.read_rate.is_some()) {
        return None;
    }
    let flows = scenario.flows.len().max(1) as f64;
    let mut waited: Vec<&str> = Vec::new();
    for run in results {
        let of_scheme = || results.iter().filter(|other| other.scheme == run.scheme);
        let blocked_s: f64 = of_scheme().map(|run| run.rwnd_blocked_s).sum();
        let all_s: f64 = of_scheme().map(|run| run.duration_s * flows).sum();
        if blocked_s > MOST_OF_IT * all_s && !waited.contains(&run.scheme.as_str()) {
            waited.push(&run.scheme);
        }
    }
    if waited.is_empty() {
        return None;
    }
    Some(format!(
        "limited by recv_buffer, which is {}: {} could send nothing more for most of the time; try \
         --set association.recv_buffer='{}'",
        format_size(scenario.association.recv_buffer_bytes),
        waited.join(", "),
        format_size(enough(scenario, files))
    ))
}

/// Returns twice the capacity of all paths over the longest round trip, and at least twice the current buffer.
fn enough(scenario: &Scenario, files: &ScenarioFiles) -> u64 {
    let (mut rate_bps, mut longest_s) = (0.0, 0.0_f64);
    for path in &scenario.paths {
        let (rate, round_trip_s) = line(scenario, path, files);
        rate_bps += rate;
        longest_s = longest_s.max(round_trip_s);
    }
    let twice_held = (2.0 * rate_bps / 8.0 * longest_s).min(1e15) as u64;
    let twice_buffer = scenario.association.recv_buffer_bytes.saturating_mul(2);
    twice_held.max(twice_buffer).checked_next_power_of_two().unwrap_or(twice_buffer)
}

/// Returns the bits per second of a path, and the seconds of its round trip without queues. A link that follows a trace has the mean
/// rate of the trace, and its longest delay.
fn line(scenario: &Scenario, path: &Path, files: &ScenarioFiles) -> (f64, f64) {
    let shared = path.via.iter().filter_map(|&link| scenario.links.get(link)).map(|link| &link.duplex);
    let mut rate_bps = f64::INFINITY;
    let mut round_trip_s = 0.0;
    for duplex in shared.chain(&path.own) {
        rate_bps = rate_of(&duplex.forward, files).map_or(rate_bps, |rate| rate_bps.min(rate));
        let delays = [&duplex.forward, &duplex.reverse].into_iter().filter_map(|way| delay_of(way, files));
        round_trip_s += delays.map(Span::as_secs_f64).sum::<f64>();
    }
    (if rate_bps.is_finite() { rate_bps } else { 0.0 }, round_trip_s)
}

fn rate_of(way: &OneWay, files: &ScenarioFiles) -> Option<f64> {
    let rate = match &way.capacity {
        Capacity::Rate(rate) => *rate,
        Capacity::Trace(trace) => files.capacity(trace).ok()?.trace.mean_rate(),
    };
    Some(rate.as_bps() as f64)
}

fn delay_of(way: &OneWay, files: &ScenarioFiles) -> Option<Span> {
    match &way.delay {
        Delay::Span(delay) => Some(*delay),
        Delay::Trace(trace) => files.delays(trace).ok()?.trace.longest_delay(),
    }
}
