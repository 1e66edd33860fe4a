//! Links of a scenario in the form that the simulator uses, one direction at a time: for a world, and for callers with packets and
//! a clock of their own, such as a relay.

use anabranch_core::time::{Rate, Span, Time};
use anabranch_scenario::{
    Capacity, Change, Delay, Direction, Duplex, EACH_FLOW, Event, Impairments, Link, OneWay, Path, Scenario,
};
use anabranch_sim::{LinkChange, LinkConfig, LossModel, LossTrace, QueueConfig};
use thiserror::Error;

use crate::conventions::Conventions;
use crate::run::{ScenarioFiles, SeriesKind, TraceFileError};

/// One direction of a path with a single link, and its changes during a run.
#[derive(Clone, Debug, PartialEq)]
pub struct LaneConfig {
    /// Link with the name that it has in a simulated run.
    pub link: LinkConfig,
    /// Changes, with times from the beginning of the run.
    pub changes: Vec<(Time, LinkChange)>,
}

/// Both directions of a path with a single link.
#[derive(Clone, Debug, PartialEq)]
pub struct PathLanes {
    /// Direction of the data.
    pub forward: LaneConfig,
    /// Opposite direction.
    pub reverse: LaneConfig,
}

/// Reason for which a path is not one link per direction.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LaneError {
    /// The path uses links of the scenario.
    #[error(
        "`{key}`: the path goes through links that others may share; give it a `rate` and a `delay` of its own"
    )]
    Via {
        /// Key of the links.
        key: String,
    },
    /// Other sources send on the path.
    #[error("`{key}`: only flows can be sent; leave the traffic of others out")]
    Background {
        /// Key of the sources.
        key: String,
    },
    /// Both directions share a medium.
    #[error("`{key}`: both directions send at any time here; leave the shared medium out")]
    HalfDuplex {
        /// Key of the medium.
        key: String,
    },
    /// The path has handovers.
    #[error("`{key}`: handovers change addresses; remove them")]
    Handover {
        /// Key of the handovers.
        key: String,
    },
    /// Several processes lose packets.
    #[error("`{key}`: packets are lost in {count} ways; keep one of them")]
    SeveralLosses {
        /// Key of the loss.
        key: String,
        /// Number of processes.
        count: usize,
    },
    /// The trace of a link is invalid.
    #[error(transparent)]
    TraceFile(#[from] TraceFileError),
}

/// Returns the links of a path without a world. A [`Lane`](anabranch_sim::Lane) or relay with these configurations loses the same
/// packets as the simulated links if it has the seeds of the run, and a flow's name as its source.
///
/// # Errors
/// Returns [`LaneError`]: the key that requires more links, or the invalid trace.
///
/// # Panics
/// Panics if no path has this index.
pub fn path_lanes(
    scenario: &Scenario,
    conventions: &Conventions,
    files: &ScenarioFiles,
    path: usize,
) -> Result<PathLanes, LaneError> {
    // The hosts know the cost, not the link.
    let Path { name, via, own, handover, cost: _ } = &scenario.paths[path];
    let Some(duplex) = own.as_ref().filter(|_| via.is_empty()) else {
        return Err(LaneError::Via { key: format!("path.{name}.via") });
    };
    if handover.is_some() {
        return Err(LaneError::Handover { key: format!("path.{name}.handover") });
    }
    LaneMaker::new(scenario, conventions.in_service_counts, files).lanes(
        name,
        duplex,
        &format!("path.{name}."),
    )
}

/// Returns a link without a scenario, for packets of one source. The traces that it names are in the folder of `files`.
///
/// # Errors
/// Returns [`LaneError`]: the key that requires more links, or the invalid trace.
pub fn link_lanes(link: &Link, source: &str, files: &ScenarioFiles) -> Result<PathLanes, LaneError> {
    LaneMaker { in_service_counts: false, flows: vec![source], files }.lanes(&link.name, &link.duplex, "")
}

fn one_way(duplex: &Duplex, direction: Direction) -> &OneWay {
    match direction {
        Direction::Forward => &duplex.forward,
        Direction::Reverse => &duplex.reverse,
    }
}

/// Converts links of a scenario.
pub(crate) struct LaneMaker<'a> {
    in_service_counts: bool,
    flows: Vec<&'a str>,
    files: &'a ScenarioFiles,
}

impl<'a> LaneMaker<'a> {
    pub(crate) fn new(scenario: &'a Scenario, in_service_counts: bool, files: &'a ScenarioFiles) -> Self {
        let flows = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
        LaneMaker { in_service_counts, flows, files }
    }

    /// Returns both directions of a link. `above` is the path of its table with a dot, for errors.
    fn lanes(&self, name: &str, duplex: &Duplex, above: &str) -> Result<PathLanes, LaneError> {
        if !duplex.background.is_empty() {
            return Err(LaneError::Background { key: format!("{above}background") });
        }
        if duplex.half_duplex.is_some() {
            return Err(LaneError::HalfDuplex { key: format!("{above}half_duplex") });
        }
        let lane = |direction: Direction, word: &str, key: &str| {
            let way = one_way(duplex, direction);
            if way.loss.len() > 1 {
                let key = format!("{above}{key}");
                return Err(LaneError::SeveralLosses { key, count: way.loss.len() });
            }
            let link = self.link(&format!("{name}/{word}"), way)?;
            Ok(LaneConfig { link, changes: self.changes(duplex, direction) })
        };
        Ok(PathLanes {
            forward: lane(Direction::Forward, "forward", "loss")?,
            reverse: lane(Direction::Reverse, "reverse", "reverse.loss")?,
        })
    }

    /// Returns the link itself, with the first of its losses and its traces.
    pub(crate) fn link(&self, name: &str, way: &OneWay) -> Result<LinkConfig, TraceFileError> {
        let Impairments { policer, jitter, aggregation, fading } = way.impairments;
        let queue = QueueConfig::limited(way.queue.limit).with_discipline(way.queue.discipline);
        let queue = if self.in_service_counts { queue.counting_in_service() } else { queue };
        // A trace replaces these before the first packet.
        let (rate, delay) = (way.rate().unwrap_or(Rate::from_bps(1)), way.delay().unwrap_or(Span::ZERO));
        let mut link = LinkConfig::new(name, rate, delay, queue)
            .with_policer(policer)
            .with_jitter(jitter)
            .with_aggregation(aggregation)
            .with_fading(fading);
        if let Some(loss) = way.loss.first() {
            link = link.with_loss(self.model(&loss.model), loss.place);
        }
        if let Capacity::Trace(trace) = &way.capacity {
            link = link.with_capacity(self.files.capacity(trace)?);
        }
        let delay = if let Delay::Trace(trace) = &way.delay { Some(trace) } else { None };
        let series = [
            (SeriesKind::Delay, delay),
            (SeriesKind::Loss, way.loss_trace.as_ref()),
            (SeriesKind::Outage, way.outage_trace.as_ref()),
        ];
        for (kind, trace) in series {
            if let Some(trace) = trace {
                link = link.with_series(self.files.series(kind, trace)?);
            }
        }
        Ok(link)
    }

    /// Returns the changes of a direction, by time.
    pub(crate) fn changes(&self, duplex: &Duplex, direction: Direction) -> Vec<(Time, LinkChange)> {
        let events = duplex.events.iter().filter(|event| event.direction == direction);
        events.flat_map(|event| self.changes_of(event)).collect()
    }

    fn changes_of(&self, event: &Event) -> Vec<(Time, LinkChange)> {
        let at = Time::ZERO + event.at;
        let Change { up, rate, delay } = event.change;
        let mut changes = Vec::new();
        changes.extend(up.map(|up| (at, if up { LinkChange::Up } else { LinkChange::Down })));
        changes.extend(rate.map(|rate| (at, LinkChange::Rate(rate))));
        changes.extend(delay.map(|delay| (at, LinkChange::Delay(delay))));
        if let Some(losses) = &event.loss {
            let model = losses.first().map_or(LossModel::None, |loss| self.model(&loss.model));
            changes.push((at, LinkChange::Loss(model)));
        }
        changes
    }

    /// Returns a loss model in which a trace names each flow.
    pub(crate) fn model(&self, model: &LossModel) -> LossModel {
        let LossModel::Trace(trace) = model else { return model.clone() };
        let lost = trace.packets(EACH_FLOW);
        let lose = |trace: LossTrace, flow: &&str| trace.lose(flow, lost.iter().copied());
        LossModel::Trace(self.flows.iter().fold(LossTrace::new(), lose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_core::units::WireBytes;
    use anabranch_sim::{
        Aggregation, GilbertElliott, Jitter, JitterDistribution, JitterOrder, LossPlace, Policer,
    };

    fn lanes(rest: &str, profile: &str) -> Result<PathLanes, LaneError> {
        let text = format!("[run]\nduration = \"9 s\"\n{rest}");
        let scenario = Scenario::parse(&text, "test.toml", &[]).expect("a scenario");
        path_lanes(&scenario, &Conventions::named(profile).expect("a profile"), &ScenarioFiles::default(), 0)
    }

    const WHOLE: &str = r#"
[[path]]
name = "radio"
rate = "8 Mbit/s"
delay = "20 ms"
queue = "64 KiB"
policer = { rate = "2 Mbit/s", burst = "16 KiB" }
jitter = "3 ms"
loss = { model = "gilbert-elliott", p = 0.01, r = 0.25, where = "after-queue" }
[path.reverse]
rate = "1 Mbit/s"
loss = { model = "trace", lost = [3, 5] }
aggregation = { period = "5 ms" }
[[path.event]]
at = "2 s"
up = false
[[path.event]]
at = "3 s"
direction = "reverse"
delay = "5 ms"
"#;

    #[test]
    fn path_of_a_lane_equals_the_simulated_link() {
        let PathLanes { forward, reverse } = lanes(WHOLE, "rfc9260").expect("one link each way");
        let queue = QueueConfig::bytes(WireBytes::new(65_536));
        let delay = Span::from_millis(20);
        let policer = Policer { rate: Rate::from_bps(2_000_000), burst: WireBytes::new(16_384) };
        let distribution = JitterDistribution::Uniform(Span::from_millis(3));
        let jitter = Jitter { distribution, order: JitterOrder::Kept };
        let expected = LinkConfig::new("radio/forward", Rate::from_bps(8_000_000), delay, queue)
            .with_loss(LossModel::GilbertElliott(GilbertElliott::simple(0.01, 0.25)), LossPlace::AfterQueue)
            .with_policer(Some(policer))
            .with_jitter(Some(jitter));
        assert_eq!(forward.link, expected);
        assert_eq!(forward.changes, [(Time::ZERO + Span::from_secs(2), LinkChange::Down)]);
        let expected = LinkConfig::new("radio/reverse", Rate::from_bps(1_000_000), delay, queue)
            .with_loss(LossModel::Trace(LossTrace::new().lose("flow-1", [3, 5])), LossPlace::BeforeQueue)
            .with_aggregation(Some(Aggregation { period: Span::from_millis(5), most_packets: None }));
        assert_eq!(reverse.link, expected);
        let later = (Time::ZERO + Span::from_secs(3), LinkChange::Delay(Span::from_millis(5)));
        assert_eq!(reverse.changes, [forward.changes[0].clone(), later]);
    }

    #[test]
    fn queues_count_as_the_profile_says() {
        let path = "[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nqueue = \"7 packets\"\n";
        let queue = |profile| lanes(path, profile).expect("one link each way").forward.link.queue;
        assert_eq!(queue("rfc9260"), QueueConfig::packets(7));
        assert_eq!(queue("ns2"), QueueConfig::ns2_packets(7));
    }

    #[test]
    fn key_that_needs_several_links_is_refused() {
        let path = "rate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
        let loss = "loss = [{ model = \"bernoulli\", rate = 0.1 }, { model = \"trace\", lost = [1] }]\n";
        let traffic = "[[path.background]]\nkind = \"cbr\"\nrate = \"1 kbit/s\"\npacket = \"500 B\"\n";
        for (rest, key) in [
            (
                format!("[[link]]\nname = \"l\"\n{path}[[path]]\nname = \"a\"\nvia = [\"l\"]\n"),
                "`path.a.via`",
            ),
            (format!("[[path]]\nname = \"a\"\n{path}{traffic}"), "`path.a.background`"),
            (format!("[[path]]\nname = \"a\"\n{path}{loss}"), "`path.a.loss`: packets are lost in 2 ways"),
            (format!("[[path]]\nname = \"a\"\n{path}[path.reverse]\n{loss}"), "`path.a.reverse.loss`"),
        ] {
            let error = lanes(&rest, "rfc9260").expect_err(&rest).to_string();
            assert!(error.starts_with(key), "{error}");
        }
    }
}
