//! Builds the scenario of a point: the topology of ns-2's script, link by link.

use anabranch_core::PathCost;
use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;
use anabranch_scenario::units::{UnitError, parse_rate, parse_span};
use anabranch_scenario::{
    Association, Background, BackgroundSource, Capacity, Delay, Direction, Directions, Duplex, Flow,
    FlowKind, Impairments, Link, Loss, OneWay, Path, Queue, Run, Scenario, Stop,
};
use anabranch_sim::{LossModel, LossPlace, QueueLimit, TrafficKind};

use crate::point::Point;

/// Start of the transfer in the script.
const START: Span = Span::from_millis(500);
/// Start of the cross traffic in the script.
const CROSS_TRAFFIC_START: Span = Span::from_millis(100);
/// Links at both ends of each path in the script.
const ACCESS: OneWay = OneWay {
    capacity: Capacity::Rate(Rate::from_bps(100_000_000)),
    delay: Delay::Span(Span::from_micros(1)),
    queue: Queue::DEFAULT,
    loss: Vec::new(),
    loss_trace: None,
    outage_trace: None,
    impairments: Impairments { policer: None, jitter: None, aggregation: None, fading: None },
};
/// Packet sizes of the Pareto sources on each of three paths, and the number of sources.
const PARETO_SOURCES: [(u64, u64); 3] = [(44, 4), (576, 2), (1500, 2)];
/// Share of the rate that the Pareto sources of a path take in the mean.
const PARETO_LOAD: f64 = 0.1;
/// Largest packet of ns-2's UDP agent in wire bytes.
const UDP_AGENT_PACKET: WireBytes = WireBytes::new(1000);

/// Returns the scenario of a point.
pub(crate) fn scenario(point: &Point) -> anyhow::Result<Scenario> {
    let bottlenecks = if point.group == "three-path" { three_paths(point)? } else { numbered_paths(point)? };
    let (mut links, mut paths) = (Vec::new(), Vec::new());
    for Link { name, duplex } in bottlenecks {
        let first = links.len();
        links.push(Link { name: format!("{name}-left"), duplex: both_ways(ACCESS) });
        links.push(Link { name: format!("{name}-right"), duplex: both_ways(ACCESS) });
        links.push(Link { name: format!("{name}-middle"), duplex });
        paths.push(Path {
            name,
            via: vec![first, first + 2, first + 1],
            own: None,
            handover: None,
            cost: PathCost::Free,
        });
    }
    Ok(Scenario {
        run: Run {
            stop: Stop::After(Span::from_secs(point.number("time", "200")?)),
            schemes: vec![point.scheme()],
            seeds: vec![1],
            profile: "ns2".to_owned(),
            start: START,
            warmup: Span::ZERO,
            delays: false,
        },
        association: Association {
            recv_buffer_bytes: point.number("rbuf", "65536")?,
            send_buffer_bytes: None,
            ordered: !point.switch("unord", "0"),
            ..Association::default()
        },
        schemes: Vec::new(),
        flows: vec![bulk(paths.len())],
        links,
        paths,
    })
}

/// Returns the transfer over all paths.
fn bulk(paths: usize) -> Flow {
    Flow {
        name: "flow-1".to_owned(),
        kind: FlowKind::Bulk,
        start: START,
        paths: (0..paths).collect(),
        scheme: None,
        direction: Directions::Forward,
        read_rate: None,
        beside: None,
    }
}

/// Returns the bottlenecks of a point whose parameters end with the number of a path.
fn numbered_paths(point: &Point) -> anyhow::Result<Vec<Link>> {
    (1..=point.number("n", "2")?).map(|path: usize| numbered_path(point, path)).collect()
}

fn numbered_path(point: &Point, path: usize) -> anyhow::Result<Link> {
    let key = |name: &str| format!("{name}{path}");
    let rate = ns2_rate(point.arg(&key("bw"), "1Mb"))?;
    let delay = parse_span(point.arg(&key("d"), "45ms"))?;
    let queue = point.number(&key("q"), point.arg("q", "50"))?;
    let losses = [point.number(&key("plr"), "0.01")?, point.number(&key("rplr"), "0")?];
    let mut duplex = bottleneck(rate, delay, queue, losses);
    let cbr = point.arg(&key("cbr"), "0");
    if cbr != "0" {
        duplex.background.push(Background {
            source: BackgroundSource::Packets {
                times: TrafficKind::Cbr { rate: ns2_rate(cbr)?, jitter: 0.5 },
                packet: WireBytes::new(500),
                fragment: None,
            },
            direction: Direction::Forward,
            start: CROSS_TRAFFIC_START,
            stop: None,
            count: 1,
        });
    }
    Ok(Link { name: format!("path-{path}"), duplex })
}

/// Returns the bottlenecks of CMT-QA's topology, which differ in rate and delay and carry Pareto sources.
fn three_paths(point: &Point) -> anyhow::Result<Vec<Link>> {
    let loss = point.number("plr", "0.02")?;
    let names_and_rates = [("path-a", "387Kb"), ("path-b", "10Mb"), ("path-c", "2Mb")];
    let delays = point.arg("delays_ms", "200-200-400").split('-');
    let bottlenecks = names_and_rates.into_iter().zip(delays).map(|((name, rate), delay)| {
        let rate = ns2_rate(rate)?;
        let mut duplex = bottleneck(rate, Span::from_millis(delay.parse()?), 50, [loss, 0.0]);
        duplex.background = PARETO_SOURCES.map(|source| pareto(rate, source)).to_vec();
        Ok(Link { name: name.to_owned(), duplex })
    });
    bottlenecks.collect()
}

/// Returns the sources of one packet size. They are on half of the time, so each of the eight sources of a path sends
/// at twice its share of the load.
fn pareto(link: Rate, (packet, count): (u64, u64)) -> Background {
    let rate = Rate::from_bps((2.0 * PARETO_LOAD * link.as_bps() as f64 / 8.0).round() as u64);
    let half = Span::from_millis(500);
    let packet = WireBytes::new(packet);
    Background {
        source: BackgroundSource::Packets {
            times: TrafficKind::ParetoOnOff { rate, burst: half, idle: half, shape: 1.5 },
            packet,
            fragment: Some(UDP_AGENT_PACKET).filter(|largest| packet > *largest),
        },
        direction: Direction::Forward,
        start: CROSS_TRAFFIC_START,
        stop: None,
        count,
    }
}

/// Returns a link with these loss probabilities forward and reverse.
fn bottleneck(rate: Rate, delay: Span, queue: u64, losses: [f64; 2]) -> Duplex {
    let queue = Queue::drop_tail(QueueLimit::Packets(queue));
    let way = OneWay { capacity: Capacity::Rate(rate), delay: Delay::Span(delay), queue, ..ACCESS };
    let [forward, reverse] = losses.map(|probability| OneWay {
        loss: vec![Loss { model: LossModel::Bernoulli(probability), place: LossPlace::BeforeQueue }],
        ..way.clone()
    });
    Duplex { forward, reverse, half_duplex: None, background: Vec::new(), events: Vec::new() }
}

fn both_ways(way: OneWay) -> Duplex {
    Duplex {
        forward: way.clone(),
        reverse: way,
        half_duplex: None,
        background: Vec::new(),
        events: Vec::new(),
    }
}

/// Parses a rate as ns-2 writes it: `10Mb`, `387Kb`, or a number of bits per second.
fn ns2_rate(text: &str) -> Result<Rate, UnitError> {
    let (number, unit) = match text {
        _ if text.ends_with("Mb") => (text.trim_end_matches("Mb"), "Mbit/s"),
        _ if text.ends_with("Kb") => (text.trim_end_matches("Kb"), "kbit/s"),
        _ => (text, "bit/s"),
    };
    parse_rate(&format!("{number} {unit}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::all_points;

    #[test]
    fn every_point_has_a_scenario_that_a_file_can_describe() {
        for point in all_points().expect("the stored data") {
            let scenario = scenario(&point).unwrap_or_else(|error| panic!("{}: {error:#}", point.id));
            let text = scenario.to_toml();
            match Scenario::parse(&text, "point.toml", &[]) {
                Ok(read) => assert_eq!(read, scenario, "{}", point.id),
                Err(error) => panic!("{}:\n{text}\n{error}", point.id),
            }
        }
    }

    #[test]
    fn parameters_of_a_point_set_rate_delay_queue_loss_and_cross_traffic() {
        let mut point = all_points().expect("the stored data").swap_remove(0);
        point.args = [("bw2", "387Kb"), ("d2", "90ms"), ("q2", "20"), ("plr2", "0.05"), ("rplr2", "0.01")]
            .into_iter()
            .chain([("cbr2", "1Mb"), ("rbuf", "32768"), ("unord", "1"), ("time", "100")])
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        let scenario = scenario(&point).expect("a scenario");
        let middle = &scenario.links[scenario.paths[1].via[1]].duplex;
        let way = &middle.forward;
        assert_eq!(way.rate(), Some(Rate::from_bps(387_000)));
        assert_eq!(way.delay(), Some(Span::from_millis(90)));
        assert_eq!(way.queue, Queue::drop_tail(QueueLimit::Packets(20)));
        assert_eq!(way.loss[0].model, LossModel::Bernoulli(0.05));
        assert_eq!(middle.reverse.loss[0].model, LossModel::Bernoulli(0.01));
        let times = TrafficKind::Cbr { rate: Rate::from_bps(1_000_000), jitter: 0.5 };
        let cross_traffic = BackgroundSource::Packets { times, packet: WireBytes::new(500), fragment: None };
        assert_eq!(middle.background[0].source, cross_traffic);
        let association = scenario.association;
        assert_eq!((association.recv_buffer_bytes, association.ordered), (32_768, false));
        assert_eq!(scenario.run.stop, Stop::After(Span::from_secs(100)));
    }

    #[test]
    fn rate_of_ns2_is_parsed() {
        let rates = ["10Mb", "387Kb", "500"].map(|text| ns2_rate(text).map(Rate::as_bps));
        assert_eq!(rates, [Ok(10_000_000), Ok(387_000), Ok(500)]);
    }
}
