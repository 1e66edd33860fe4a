//! Capacity of a path: the rate of its narrowest link over time.

use anabranch_core::time::{Rate, Time};
use anabranch_scenario::{Capacity, Direction, Duplex, OneWay, Scenario};
use anabranch_sim::{CapacityTrace, LinkChange, Playback, Seeds, Series};

use crate::run::{ScenarioFiles, SeriesKind, TraceFileError, mobility};

/// Length of the pieces in which links with traces are compared, in ns.
const PIECE: u64 = 100_000_000;

/// One direction of a link, with its traces.
struct Way<'a> {
    duplex: &'a Duplex,
    direction: Direction,
    capacity: Option<Playback<CapacityTrace>>,
    outages: Option<Playback<Series>>,
    /// Starts and ends of handovers, in nanoseconds.
    handovers: Vec<(u64, u64)>,
}

/// Returns the bits that the named path could have carried between two times in nanoseconds, or `None` if there is no such path. A
/// link that is down carries nothing, and one with a policer at most the policer's rate. Other flows and cross traffic on the links
/// are not subtracted. The scenario is that of one run, whose seed determines random handovers.
pub(super) fn bits(
    scenario: &Scenario,
    files: &ScenarioFiles,
    path: &str,
    reverse: bool,
    from: u64,
    until: u64,
) -> Option<Result<f64, TraceFileError>> {
    let index = scenario.paths.iter().position(|p| p.name == path)?;
    let path = &scenario.paths[index];
    let direction = if reverse { Direction::Reverse } else { Direction::Forward };
    let shared = path.via.iter().map(|&link| Way::new(&scenario.links[link].duplex, direction, files));
    let own = path.own.iter().map(|duplex| {
        let handovers = handovers(scenario, index, from, until);
        Ok(Way { handovers, ..Way::new(duplex, direction, files)? })
    });
    let ways: Result<Vec<Way<'_>>, TraceFileError> = shared.chain(own).collect();
    Some(ways.map(|ways| bits_of(&ways, from, until)))
}

/// Returns the starts and ends of a path's handovers between two times.
fn handovers(scenario: &Scenario, path: usize, from: u64, until: u64) -> Vec<(u64, u64)> {
    let (Some(_), Some(&seed)) = (scenario.paths[path].handover, scenario.run.seeds.first()) else {
        return Vec::new();
    };
    mobility::times(scenario, Seeds::new(seed, 0), path)
        .map(|(start, end)| (start.as_nanos(), end.as_nanos()))
        .take_while(|(start, _)| *start < until)
        .filter(|(_, end)| *end > from)
        .collect()
}

fn bits_of(ways: &[Way<'_>], from: u64, until: u64) -> f64 {
    let events = ways.iter().flat_map(|way| way.duplex.events.iter().map(|event| (way.direction, event)));
    let mut moments: Vec<u64> = events
        .filter(|(direction, event)| event.direction == *direction)
        .map(|(_, event)| event.at.as_nanos())
        .collect();
    moments.extend([from, until]);
    moments.extend(ways.iter().flat_map(|way| &way.handovers).flat_map(|(start, end)| [*start, *end]));
    if ways.iter().any(|way| way.capacity.is_some() || way.outages.is_some()) {
        moments.extend((from..until).step_by(PIECE as usize));
    }
    moments.retain(|moment| (from..=until).contains(moment));
    moments.sort_unstable();
    let narrowest = |from, to| ways.iter().map(|way| way.bits(from, to)).fold(f64::INFINITY, f64::min);
    moments.windows(2).map(|piece| narrowest(piece[0], piece[1])).sum()
}

impl<'a> Way<'a> {
    fn new(duplex: &'a Duplex, direction: Direction, files: &ScenarioFiles) -> Result<Self, TraceFileError> {
        let mut way = Way { duplex, direction, capacity: None, outages: None, handovers: Vec::new() };
        if let Capacity::Trace(trace) = &way.one_way().capacity {
            way.capacity = Some(files.capacity(trace)?);
        }
        let outages = way.one_way().outage_trace.as_ref();
        way.outages = outages.map(|trace| files.series(SeriesKind::Outage, trace)).transpose()?;
        Ok(way)
    }

    fn one_way(&self) -> &'a OneWay {
        match self.direction {
            Direction::Forward => &self.duplex.forward,
            Direction::Reverse => &self.duplex.reverse,
        }
    }

    /// Returns the bits that the link could have carried between two times without a change between them.
    fn bits(&self, from: u64, to: u64) -> f64 {
        let (mut rate, mut up) = (self.one_way().rate().map(|rate| rate.as_bps()), true);
        let past = self.duplex.events.iter();
        for event in past.filter(|e| e.direction == self.direction && e.at.as_nanos() <= from) {
            rate = event.change.rate.map(|rate| rate.as_bps()).or(rate);
            up = event.change.up.unwrap_or(up);
        }
        let times = [from, to].map(Time::from_nanos);
        let is_out = self.outages.as_ref().is_some_and(|outages| *outages.at(times[0]) == LinkChange::Down);
        let earlier = self.handovers.partition_point(|(start, _)| *start <= from);
        let is_moving = earlier.checked_sub(1).is_some_and(|last| self.handovers[last].1 > from);
        if !up || is_out || is_moving {
            return 0.0;
        }
        let fading = self.one_way().impairments.fading;
        let rate =
            rate.map(|bps| fading.map_or(bps, |fading| fading.mean_rate(Rate::from_bps(bps)).as_bps()));
        let of_rate = |bps: u64| bps as f64 * (to - from) as f64 / 1e9;
        let recorded = self.capacity.as_ref().map(|trace| trace.bits_between(times[0], times[1]) as f64);
        let sent = recorded.or(rate.map(of_rate)).unwrap_or(f64::INFINITY);
        let policer = self.one_way().impairments.policer;
        sent.min(policer.map_or(f64::INFINITY, |policer| of_rate(policer.rate.as_bps())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_change_with_events_and_the_narrowest_link_counts() {
        let text = r#"
            run.duration = "10 s"
            [[link]]
            name = "shared"
            rate = "4 Mbit/s"
            delay = "1 ms"
            [[path]]
            name = "a"
            via = ["shared"]
            rate = "10 Mbit/s"
            delay = "1 ms"
            policer = { rate = "3 Mbit/s", burst = "16 KiB" }
            event = [{ at = "2 s", rate = "1 Mbit/s" }, { at = "5 s", up = false, direction = "forward" }, { at = "6 s", up = true, direction = "forward" }]
        "#;
        let scenario = Scenario::parse(text, "test", &[]).expect("a scenario");
        let second = 1_000_000_000;
        let files = ScenarioFiles::default();
        let mbit = |reverse, from, until| {
            bits(&scenario, &files, "a", reverse, from * second, until * second).and_then(Result::ok)
        };
        // 1 s at 3, 3 s at 1, 1 s down, 4 s at 1 Mbit/s.
        assert_eq!(mbit(false, 1, 10), Some(10e6));
        // 2 s at 4, 8 s at 1 Mbit/s.
        assert_eq!(mbit(true, 0, 10), Some(16e6));
        assert_eq!(bits(&scenario, &files, "b", false, 0, second), None);
    }

    #[test]
    fn link_carries_nothing_during_handovers() {
        let handover = |more: &str| {
            let text = format!(
                "[run]\nduration = \"10 s\"\nseeds = [3]\n[[path]]\nname = \"a\"\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n\
                 handover = {{ at = \"2 s\", outage = \"500 ms\", moves = \"none\"{more} }}\n"
            );
            let scenario = Scenario::parse(&text, "test", &[]).expect("a scenario");
            move |from: f64, until: f64| {
                let [from, until] = [from, until].map(|seconds| (seconds * 1e9) as u64);
                bits(&scenario, &ScenarioFiles::default(), "a", false, from, until).and_then(Result::ok)
            }
        };
        let kbit = |bits: Option<f64>| bits.map(|bits| (bits / 1e3).round());
        let one = handover("");
        assert_eq!(
            [one(0.0, 10.0), one(0.0, 2.25), one(2.25, 3.0), one(3.0, 4.0)].map(kbit),
            [Some(9500.0), Some(2000.0), Some(500.0), Some(1000.0)]
        );
        assert_eq!(kbit(handover(", every = \"3 s\"")(0.0, 10.0)), Some(8500.0));
        let random = kbit(handover(", every = \"1 s\", random = true")(0.0, 100.0)).expect("a path");
        assert!((40_000.0..60_000.0).contains(&random), "{random}");
    }

    #[test]
    fn mean_rate_of_a_fading_channel_counts() {
        let text = "[run]\nduration = \"1 s\"\n[[path]]\nname = \"a\"\nrate = \"54 Mbit/s\"\ndelay = \"1 ms\"\n\
                    half_duplex = \"160 us\"\nfading = { snr = 20, doppler = 5 }\n";
        let scenario = Scenario::parse(text, "test", &[]).expect("a scenario");
        let files = ScenarioFiles::default();
        let second = |reverse| bits(&scenario, &files, "a", reverse, 0, 1_000_000_000).and_then(Result::ok);
        let fading = anabranch_sim::Fading { snr_db: 20.0, doppler_hz: 5.0 };
        let mean = fading.mean_rate(Rate::from_bps(54_000_000)).as_bps();
        assert!((20_000_000..30_000_000).contains(&mean), "{mean}");
        assert_eq!((second(false), second(true)), (Some(mean as f64), Some(54e6)));
    }
}
