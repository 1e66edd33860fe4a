//! Random scenarios and quantities are the same after writing and reading, and the reader never panics.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;
use anabranch_core::{Encapsulation, PathCost, Reliability};
use anabranch_scenario::units::{
    format_queue, format_rate, format_size, format_span, parse_queue, parse_rate, parse_size, parse_span,
};
use anabranch_scenario::{
    Association, Background, BackgroundSource, Capacity, CapacityFile, Change, Control, Datagrams, Delay,
    Direction, Directions, Duplex, EACH_FLOW, Event, Exchange, FileSource, Flow, FlowKind, Forwarded,
    FrameReliability, Handover, Impairments, Link, Loss, MessagesBeside, Mover, OneWay, Override, Path,
    Pieces, Protection, Queue, Reacting, Run, Scenario, SchemeDefinition, SeriesFile, Stop, TraceFile, UDP,
    VideoFlow,
};
use anabranch_sim::Handover as Times;
use anabranch_sim::{
    Aggregation, CoDel, Columns, Discipline, Fading, FqCoDel, GilbertElliott, Jitter, JitterDistribution,
    JitterOrder, LossModel, LossPlace, LossTrace, Pie, Policer, QueueLimit, RateUnit, Red, TrafficKind,
};
use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

const EVERY_KEY: &str = include_str!("every-key.toml");

/// Keys and other pieces for overrides and mutations.
const PIECES: [&str; 37] = [
    "run",
    "duration",
    "seeds",
    "association",
    "path",
    "path-1",
    "*",
    "0",
    "17",
    "background",
    "event",
    "loss",
    "reverse",
    "scheme",
    "mine",
    "expression",
    "read_rate",
    "cmt+late(delay=9)",
    "link",
    "shared",
    "flow",
    "name",
    ".",
    "=",
    "\"",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "\n",
    "1 Mbit/s",
    "45 ms",
    "-1",
    "nan",
    "\u{1F980}",
];

/// Pieces of links in one line.
const LINK_PIECES: [&str; 24] = [
    "rate",
    "delay",
    "loss",
    "reverse",
    "event",
    "trace",
    "=",
    "=",
    "=",
    ",",
    ",",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    " ",
    "10Mbit",
    "45ms",
    "\u{1F980}",
];

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Span> {
    range.prop_map(Span::from_millis)
}

fn rate() -> impl Strategy<Value = Rate> {
    (1u64..=1_000_000_000_000).prop_map(Rate::from_bps)
}

fn probability() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0f64, (0.0..1e-300f64)]
}

fn word() -> impl Strategy<Value = String> {
    any::<String>().prop_filter("not empty", |text| !text.is_empty())
}

fn direction() -> impl Strategy<Value = Direction> {
    select(vec![Direction::Forward, Direction::Reverse])
}

fn loss() -> impl Strategy<Value = Loss> {
    let bad_state = (probability(), f64::MIN_POSITIVE..=1.0, probability(), probability());
    let model = prop_oneof![
        probability().prop_map(LossModel::Bernoulli),
        bad_state.prop_map(|(to_bad, to_good, loss_in_good, loss_in_bad)| {
            LossModel::GilbertElliott(GilbertElliott { to_bad, to_good, loss_in_good, loss_in_bad })
        }),
        btree_set(1u64..i64::MAX as u64, 0..5)
            .prop_map(|lost| LossModel::Trace(LossTrace::new().lose(EACH_FLOW, lost))),
    ];
    let place = select(vec![LossPlace::BeforeQueue, LossPlace::AfterQueue]);
    (model, place).prop_map(|(model, place)| Loss { model, place })
}

fn queue() -> impl Strategy<Value = QueueLimit> {
    prop_oneof![
        (1u64..=1_000_000_000).prop_map(QueueLimit::Packets),
        (1u64..=1 << 50).prop_map(|bytes| QueueLimit::Bytes(WireBytes::new(bytes))),
        (1u64..=1_000_000_000_000).prop_map(|ns| QueueLimit::Time(Span::from_nanos(ns))),
    ]
}

fn discipline() -> impl Strategy<Value = Discipline> {
    let span = || (2u64..=1_000_000_000).prop_map(Span::from_nanos);
    let size = || (1u64..=65_535).prop_map(WireBytes::new);
    let codel = || {
        (span(), span())
            .prop_filter("a target below the interval", |(target, interval)| target < interval)
            .prop_map(|(target, interval)| CoDel { target, interval, ..CoDel::default() })
    };
    prop_oneof![
        Just(Discipline::DropTail),
        codel().prop_map(Discipline::CoDel),
        (codel(), size(), 1u32..=65_536).prop_map(|(codel, quantum, flows)| Discipline::FqCoDel(FqCoDel {
            codel,
            quantum,
            flows
        })),
        (span(), span(), span(), size()).prop_map(|(target, update, burst, mean_packet)| {
            Discipline::Pie(Pie { target, update, burst, mean_packet })
        }),
        (0.0..100.0f64, 100.1..1e6, 1e-9..=1.0, 1e-9..0.999, size()).prop_map(
            |(min_packets, max_packets, max_probability, weight, mean_packet)| {
                let usual = Red::default();
                Discipline::Red(Red {
                    min_packets,
                    max_packets,
                    max_probability,
                    weight,
                    mean_packet,
                    ..usual
                })
            }
        ),
    ]
}

fn trace() -> impl Strategy<Value = TraceFile> {
    let times = prop_oneof![
        (option::of(word()), any::<bool>()).prop_map(|(time, in_milliseconds)| (time, in_milliseconds, None)),
        millis(1..100_000).prop_map(|step| (None, false, Some(step))),
    ];
    let columns = (times, option::of(word())).prop_map(|((time, in_milliseconds, step), value)| Columns {
        time,
        value,
        in_milliseconds,
        step,
    });
    (word(), columns, millis(0..1_000_000), any::<bool>(), 1e-6..=1000.0f64).prop_map(
        |(path, columns, start, repeat, scale)| TraceFile {
            path: PathBuf::from(path),
            columns,
            start,
            repeat,
            scale,
        },
    )
}

fn unscaled(file: TraceFile) -> SeriesFile {
    SeriesFile(TraceFile { scale: 1.0, ..file })
}

fn capacity() -> impl Strategy<Value = Capacity> {
    let unit = select(vec![RateUnit::BitPerSecond, RateUnit::MegabitPerSecond, RateUnit::BytePerSecond]);
    let trace = (trace(), option::of(unit), option::of(millis(1..1000)));
    prop_oneof![
        rate().prop_map(Capacity::Rate),
        trace.prop_map(|(file, unit, resample)| Capacity::Trace(CapacityFile { file, unit, resample })),
    ]
}

fn one_way() -> impl Strategy<Value = OneWay> {
    let delay = (0u64..=3_600_000_000_000).prop_map(|nanos| Delay::Span(Span::from_nanos(nanos)));
    let delay = prop_oneof![delay, trace().prop_map(|file| Delay::Trace(SeriesFile(file)))];
    let queue = (queue(), discipline()).prop_map(|(limit, discipline)| Queue { limit, discipline });
    let loss = prop_oneof![
        vec(loss(), 0..3).prop_map(|loss| (loss, None)),
        trace().prop_map(|file| (Vec::new(), Some(unscaled(file)))),
    ];
    let outage = option::of(trace().prop_map(unscaled));
    (capacity(), delay, queue, loss, outage, impairments()).prop_map(
        |(capacity, delay, queue, (loss, loss_trace), outage_trace, impairments)| OneWay {
            capacity,
            delay,
            queue,
            loss,
            loss_trace,
            outage_trace,
            impairments,
        },
    )
}

fn impairments() -> impl Strategy<Value = Impairments> {
    // Every burst is at least the largest packet of the scenarios here.
    let policer = (rate(), 65_535u64..=1 << 50)
        .prop_map(|(rate, burst)| Policer { rate, burst: WireBytes::new(burst) });
    let span = || (1u64..=3_600_000_000_000).prop_map(Span::from_nanos);
    let normal = (span(), span()).prop_map(|(one, other)| JitterDistribution::Normal {
        mean: one.max(other),
        deviation: one.min(other),
    });
    let retransmission = (0.0..=1.0f64, span(), 1u32..=1000)
        .prop_map(|(failure, round, most)| JitterDistribution::Retransmission { failure, round, most });
    let distribution = prop_oneof![span().prop_map(JitterDistribution::Uniform), normal, retransmission];
    let order = prop_oneof![Just(JitterOrder::Kept), Just(JitterOrder::Free)];
    let jitter = (distribution, order).prop_map(|(distribution, order)| Jitter { distribution, order });
    let aggregation = (span(), option::of(1u64..=1_000_000))
        .prop_map(|(period, most_packets)| Aggregation { period, most_packets });
    let fading =
        (0.0..=40.0f64, 0.1..=1000.0f64).prop_map(|(snr_db, doppler_hz)| Fading { snr_db, doppler_hz });
    (option::of(policer), option::of(jitter), option::of(aggregation), option::of(fading)).prop_map(
        |(policer, jitter, aggregation, fading)| Impairments { policer, jitter, aggregation, fading },
    )
}

fn background() -> impl Strategy<Value = Background> {
    let times = (millis(0..1000), option::of(millis(1001..2000)));
    let sources = prop_oneof![(packets(), 1u64..=1000), (reacting(), 1u64..=16)];
    (sources, direction(), times).prop_map(|((source, count), direction, (start, stop))| Background {
        source,
        direction,
        start,
        stop,
        count,
    })
}

fn packets() -> impl Strategy<Value = BackgroundSource> {
    (1u64..=65_535).prop_flat_map(|packet_bytes| {
        let some_time = || millis(1..1_000_000);
        let pareto = (rate(), some_time(), some_time(), 1.0001..=100.0);
        let source = prop_oneof![
            (rate(), 0.0..=1.0).prop_map(|(rate, jitter)| (TrafficKind::Cbr { rate, jitter }, None)),
            rate().prop_map(|rate| (TrafficKind::Poisson { rate }, None)),
            (pareto, option::of(1..=packet_bytes)).prop_map(|((rate, burst, idle, shape), fragment)| {
                (TrafficKind::ParetoOnOff { rate, burst, idle, shape }, fragment.map(WireBytes::new))
            }),
        ];
        let packet = WireBytes::new(packet_bytes);
        source.prop_map(move |(times, fragment)| BackgroundSource::Packets { times, packet, fragment })
    })
}

fn reacting() -> impl Strategy<Value = BackgroundSource> {
    let transfers = (1u64..1_000_000, 1u64..1_000_000, 1.0001..=100.0)
        .prop_map(|(min, more, shape)| Pieces::Transfers { min_bytes: min, max_bytes: min + more, shape });
    let segments = millis(1..1_000_000).prop_map(|every| Pieces::Segments { every });
    let control = prop_oneof![Just(Control::NewReno), Just(Control::Cubic)];
    (rate(), prop_oneof![transfers, segments], control)
        .prop_map(|(rate, pieces, control)| BackgroundSource::Reacting(Reacting { rate, pieces, control }))
}

fn event() -> impl Strategy<Value = Event> {
    let changes = (option::of(any::<bool>()), option::of(rate()), option::of(millis(0..1000)));
    (direction(), changes, option::of(vec(loss(), 0..3)))
        .prop_map(|(direction, (up, rate, delay), loss)| Event {
            at: Span::ZERO,
            direction,
            change: Change { up, rate, delay },
            loss,
        })
        .prop_filter("a change", |event| event.change != Change::default() || event.loss.is_some())
}

fn duplex() -> impl Strategy<Value = Duplex> {
    let events = btree_map(0u64..1_000_000, event(), 0..3).prop_map(|events: BTreeMap<u64, Event>| {
        events.into_iter().map(|(at, event)| Event { at: Span::from_nanos(at), ..event }).collect()
    });
    (one_way(), one_way(), option::of(millis(0..1000)), vec(background(), 0..3), events).prop_map(
        |(mut forward, mut reverse, mut half_duplex, background, mut events): (
            OneWay,
            OneWay,
            _,
            _,
            Vec<Event>,
        )| {
            // The reverse direction has the outages of the forward one by default.
            reverse.outage_trace = reverse.outage_trace.or_else(|| forward.outage_trace.clone());
            for way in [&mut forward, &mut reverse] {
                let has_trace = way.rate().is_none();
                way.impairments.fading.take_if(|_| has_trace);
                half_duplex.take_if(|_| has_trace || way.impairments.aggregation.is_some());
                if way.traces().next().is_some() || way.impairments.fading.is_some() {
                    events.clear();
                }
            }
            Duplex { forward, reverse, half_duplex, background, events }
        },
    )
}

/// Returns different names: random ones with their index appended.
fn named<T>(items: Vec<(String, T)>) -> impl Iterator<Item = (String, T)> {
    items.into_iter().enumerate().map(|(index, (name, item))| (format!("{name}x{index}"), item))
}

fn links() -> impl Strategy<Value = Vec<Link>> {
    vec(("[A-Za-z0-9_-]{0,8}", duplex()), 0..3)
        .prop_map(|links| named(links).map(|(name, duplex)| Link { name, duplex }).collect())
}

fn handover() -> impl Strategy<Value = Handover> {
    let times = (millis(0..100_000), millis(0..1000), option::of((millis(1001..100_000), any::<bool>())));
    let mover = prop_oneof![Just(Mover::Left), Just(Mover::Right), Just(Mover::Neither)];
    (times, mover).prop_map(|((first, outage, period), mover)| {
        let (every, is_random) = period.unzip();
        Handover { times: Times { first, every, is_random: is_random.unwrap_or(false), outage }, mover }
    })
}

/// Returns `true` if nothing but a handover takes the link down.
fn is_up(duplex: &Duplex) -> bool {
    let ways = [&duplex.forward, &duplex.reverse];
    ways.iter().all(|way| way.outage_trace.is_none())
        && duplex.events.iter().all(|event| event.change.up.is_none())
}

/// Keeps the addresses of paths whose first handover is not behind the start of each flow.
fn keep_early_addresses(paths: &mut [Path], flows: &[Flow]) {
    for (index, path) in paths.iter_mut().enumerate() {
        let starts = flows.iter().filter(|flow| flow.paths.contains(&index)).map(|flow| flow.start);
        if let (Some(handover), Some(start)) = (&mut path.handover, starts.max())
            && start >= handover.times.first
        {
            handover.mover = Mover::Neither;
        }
    }
}

/// Returns paths of which the first uses every link, so that all are used.
fn paths(links: usize) -> impl Strategy<Value = Vec<Path>> {
    let via = subsequence((0..links).collect::<Vec<_>>(), 0..=links).prop_shuffle();
    let cost = prop_oneof![Just(PathCost::Free), Just(PathCost::Metered), Just(PathCost::Backup)];
    let path = (via, option::of(duplex()), duplex(), option::of(handover()), cost);
    vec(("[A-Za-z0-9_-]{0,8}", path), 1..=8).prop_map(move |paths| {
        type Parts = (Vec<usize>, Option<Duplex>, Duplex, Option<Handover>, PathCost);
        let path = |(name, (via, own, instead, handover, cost)): (String, Parts)| {
            let own = if via.is_empty() { own.or(Some(instead)) } else { own };
            let handover = handover.filter(|_| own.as_ref().is_some_and(is_up));
            Path { name, via, own, handover, cost }
        };
        let mut paths: Vec<Path> = named(paths).map(path).collect();
        let rest: Vec<usize> = (0..links).filter(|index| !paths[0].via.contains(index)).collect();
        paths[0].via.extend(rest);
        paths
    })
}

fn flow_kind() -> impl Strategy<Value = FlowKind> {
    let messages = (1u64..=1 << 50, millis(1..1_000_000), option::of(1u64..1_000_000), any::<bool>(), 1u16..);
    let messages = (messages, reliability());
    let limits =
        (reliability(), reliability(), reliability()).prop_map(|(i, p, b)| FrameReliability { i, p, b });
    let limits = prop_oneof![limits, reliability().prop_map(FrameReliability::all)];
    let video = (word(), millis(1..3_600_000), option::of(1u64..=65_000), any::<bool>(), 1u16.., limits);
    prop_oneof![
        Just(FlowKind::Bulk),
        word().prop_map(|path| FlowKind::File(FileSource::Path(PathBuf::from(path)))),
        (1u64..=1 << 50).prop_map(|size| FlowKind::File(FileSource::SizeBytes(size))),
        messages.prop_map(|((size_bytes, interval, count, ordered, streams), reliability)| {
            FlowKind::Messages { size_bytes, interval, count, ordered, streams, reliability }
        }),
        video.prop_map(|(trace, deadline, payload_bytes, ordered, streams, reliability)| {
            let trace = PathBuf::from(trace);
            FlowKind::Video(VideoFlow { trace, deadline, payload_bytes, ordered, streams, reliability })
        }),
        forwarded(),
    ]
}

fn forwarded() -> impl Strategy<Value = FlowKind> {
    let exchange = || {
        let parts = (1u64..=1_000_000_000, 1u64..=1_000_000_000, millis(1..3_600_000), any::<bool>());
        parts.prop_map(|(request_bytes, response_bytes, interval, priority)| Exchange {
            request_bytes,
            response_bytes,
            interval,
            priority,
        })
    };
    let datagrams = (1u64..=65_000, millis(1..3_600_000));
    let datagrams = datagrams.prop_map(|(size_bytes, interval)| Datagrams { size_bytes, interval });
    let parts = (1u16..=1000, option::of(exchange()), option::of(exchange()), option::of(datagrams));
    parts.prop_map(|(downloads, requests, keystrokes, datagrams)| {
        FlowKind::Forward(Forwarded { downloads, requests, keystrokes, datagrams })
    })
}

fn reliability() -> impl Strategy<Value = Reliability> {
    prop_oneof![
        Just(Reliability::Full),
        (0..=1_000_000_u32).prop_map(Reliability::MaxRetransmissions),
        millis(0..1_000_000).prop_map(Reliability::Lifetime),
        (millis(0..1_000_000), 0..=1_000_000_u32).prop_map(|(lifetime, max_retransmissions)| {
            Reliability::LifetimeAndRetransmissions { lifetime, max_retransmissions }
        }),
        (0..=1_000_000_u32).prop_map(Reliability::Priority),
    ]
}

fn messages_beside() -> impl Strategy<Value = Option<MessagesBeside>> {
    let messages = (8u64..=500, millis(1..3_600_000), any::<bool>());
    option::of(messages.prop_map(|(size_bytes, interval, ordered)| MessagesBeside {
        size_bytes,
        interval,
        ordered,
    }))
}

fn flows(paths: usize) -> impl Strategy<Value = Vec<Flow>> {
    let used = subsequence((0..paths).collect::<Vec<_>>(), 1..=paths).prop_shuffle();
    let direction = select(vec![Directions::Forward, Directions::Reverse, Directions::Both]);
    let rest = (
        flow_kind(),
        millis(0..1000),
        used,
        option::of(word()),
        direction,
        option::of(rate()),
        messages_beside(),
    );
    vec(("[A-Za-z0-9_-]{0,8}", rest), 1..4).prop_map(|flows| {
        named(flows)
            .map(|(name, (kind, start, paths, scheme, direction, read_rate, beside))| {
                // One end shows a video.
                let both = matches!((&kind, direction), (FlowKind::Video(_), Directions::Both));
                let direction = if both { Directions::Reverse } else { direction };
                let is_forwarded = matches!(kind, FlowKind::Forward(_));
                let direction = if is_forwarded { Directions::Forward } else { direction };
                let beside = beside.filter(|_| kind == FlowKind::Bulk);
                Flow { name, beside, kind, start, paths, scheme, direction, read_rate }
            })
            .collect()
    })
}

fn association() -> impl Strategy<Value = Association> {
    let send_buffer = option::of(1u64..=1 << 50);
    let encapsulation = select(vec![Encapsulation::None, UDP]);
    let carried = (encapsulation, select(vec![Protection::None, Protection::Dtls]));
    let sizes = (1500u64..=u64::from(u32::MAX), send_buffer, option::of(1u64..=1 << 50), 576u64..=65_535);
    (sizes, 1u16.., any::<bool>(), carried).prop_map(|(sizes, streams, ordered, carried)| {
        let (encapsulation, protection) = carried;
        let (recv_buffer_bytes, send_buffer_bytes, message_bytes, mtu_bytes) = sizes;
        Association {
            recv_buffer_bytes,
            send_buffer_bytes,
            streams,
            ordered,
            message_bytes,
            mtu_bytes,
            encapsulation,
            protection,
        }
    })
}

fn run() -> impl Strategy<Value = Run> {
    let seeds = prop_oneof![
        (1u64..30).prop_map(|count| (1..=count).collect::<Vec<u64>>()),
        btree_set(0..=i64::MAX as u64, 1..5).prop_map(|seeds| seeds.into_iter().rev().collect()),
    ];
    let schemes = btree_set(word(), 1..4).prop_map(|schemes| schemes.into_iter().collect());
    let times = (millis(2001..4_000_000_000), millis(0..1000), millis(0..1000), any::<bool>());
    (times, seeds, schemes, word()).prop_map(
        |((duration, start, warmup, delays), seeds, schemes, profile)| Run {
            stop: Stop::After(duration),
            schemes,
            seeds,
            profile,
            start,
            warmup,
            delays,
        },
    )
}

/// Returns definitions in alphabetical order, each of which may use the one before it.
fn schemes() -> impl Strategy<Value = Vec<SchemeDefinition>> {
    let base = select(vec![
        "sctp",
        "cmt",
        "cmt(trigger=4)",
        "cmt-pf( rtx = rtx-same )",
        "BEFORE",
        "BEFORE(trigger=5)",
    ]);
    vec((base, option::of(word())), 0..4).prop_map(|schemes| {
        let definition = |(index, (base, about)): (usize, (&str, Option<String>))| {
            let before = index.checked_sub(1).map_or("cmt".to_owned(), |index| format!("mine-{index}"));
            SchemeDefinition {
                name: format!("mine-{index}"),
                expression: base.replace("BEFORE", &before),
                about,
            }
        };
        schemes.into_iter().enumerate().map(definition).collect()
    })
}

fn scenario() -> impl Strategy<Value = Scenario> {
    let places = links().prop_flat_map(|links| (paths(links.len()), Just(links)));
    let places = places.prop_flat_map(|(paths, links)| (flows(paths.len()), Just(paths), Just(links)));
    (places, run(), association(), schemes(), any::<bool>(), any::<bool>()).prop_map(
        |((flows, mut paths, links), mut run, association, schemes, to_the_end, capped)| {
            if to_the_end && flows.iter().any(|flow| flow.kind.ends()) {
                run.stop = Stop::Transfer { cap: run.limit().filter(|_| capped) };
            }
            keep_early_addresses(&mut paths, &flows);
            Scenario { run, association, schemes, links, paths, flows }
        },
    )
}

/// Returns a valid file with pieces removed, inserted and moved.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (
        any::<Index>(),
        0usize..20,
        prop_oneof![select(PIECES.to_vec()).prop_map(str::to_owned), any::<String>()],
    );
    vec(edit, 1..6).prop_map(|edits| {
        let mut chars: Vec<char> = EVERY_KEY.chars().collect();
        for (at, cut, put) in edits {
            let at = at.index(chars.len());
            let end = (at + cut).min(chars.len());
            chars.splice(at..end, put.chars());
            if chars.is_empty() {
                chars.push('#');
            }
        }
        chars.into_iter().collect()
    })
}

/// Reads text, and checks the error text if it is invalid.
fn read(text: &str, set: &[Override]) -> Option<Scenario> {
    match Scenario::parse(text, "random.toml", set) {
        Ok(scenario) => Some(scenario),
        Err(error) => {
            assert!(!error.problems().is_empty());
            let printed = error.to_string();
            assert!(!printed.chars().any(|c| c.is_control() && c != '\n'), "{printed:?}");
            None
        }
    }
}

proptest! {
    #[test]
    fn a_written_scenario_reads_as_itself(scenario in scenario()) {
        let text = scenario.to_toml();
        let again = Scenario::parse(&text, "written.toml", &[]);
        let again = again.unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(again, scenario);
    }

    #[test]
    fn every_link_can_be_written_in_one_line(name in "[A-Za-z0-9_-]{0,8}", duplex in duplex()) {
        let link = Link { name: format!("{name}x"), duplex };
        let line = link.to_line();
        let again = Link::parse(&line, "--link", "other");
        prop_assert_eq!(again.unwrap_or_else(|error| panic!("{error}\n{line}")), link);
    }

    #[test]
    fn reader_of_links_does_not_panic_on_random_text(
        text in any::<String>(),
        keys in vec(vec(select(LINK_PIECES.to_vec()), 1..8), 1..4),
    ) {
        for text in [text, keys.concat().concat()] {
            if let Err(error) = Link::parse(&text, "--link", "link-1") {
                let printed = error.to_string();
                prop_assert!(!printed.chars().any(|c| c.is_control() && c != '\n'), "{printed:?}");
            }
        }
    }

    #[test]
    fn quantities_are_read_as_they_were_written(value in any::<u64>(), small in 0u64..1_000_000) {
        for value in [value, small, small * 1000, small << 10] {
            prop_assert_eq!(parse_span(&format_span(Span::from_nanos(value))), Ok(Span::from_nanos(value)));
            prop_assert_eq!(parse_rate(&format_rate(Rate::from_bps(value))), Ok(Rate::from_bps(value)));
            prop_assert_eq!(parse_size(&format_size(value)), Ok(value));
            for queue in [QueueLimit::Packets(value), QueueLimit::Bytes(WireBytes::new(value)), QueueLimit::Time(Span::from_nanos(value))] {
                prop_assert_eq!(parse_queue(&format_queue(queue)), Ok(queue));
            }
        }
    }

    #[test]
    fn decimals_are_exact(whole in 0u64..1_000_000, nanos in 0u64..1_000_000_000, zeros in 0usize..40) {
        let text = format!("{whole}.{nanos:09}{}s", "0".repeat(zeros));
        prop_assert_eq!(parse_span(&text), Ok(Span::from_nanos(whole * 1_000_000_000 + nanos)));
    }

    #[test]
    fn quantity_does_not_panic_on_random_text(text in any::<String>(), number in "[-+0-9.,e]{0,50}", unit in "[ a-z/%]{0,8}") {
        for text in [text, format!("{number}{unit}")] {
            let _ = (parse_span(&text), parse_rate(&text), parse_size(&text), parse_queue(&text));
        }
    }

    #[test]
    fn reader_does_not_panic_on_random_text(text in any::<String>(), pieces in vec(select(PIECES.to_vec()), 0..40)) {
        read(&text, &[]);
        read(&pieces.concat(), &[]);
    }

    #[test]
    fn a_mutated_file_is_refused_or_read_as_something_that_can_be_written(text in mutated()) {
        if let Some(scenario) = read(&text, &[]) {
            prop_assert_eq!(read(&scenario.to_toml(), &[]), Some(scenario));
        }
    }

    #[test]
    fn reader_does_not_panic_on_random_overrides(
        keys in vec(vec(select(PIECES.to_vec()), 1..8), 1..4),
        values in vec(prop_oneof![select(PIECES.to_vec()).prop_map(str::to_owned), any::<String>()], 4),
    ) {
        let text = |(key, value): (Vec<&str>, String)| format!("{}={value}", key.join("."));
        let set: Vec<Override> = keys.into_iter().zip(values).filter_map(|pair| text(pair).parse().ok()).collect();
        read(EVERY_KEY, &set);
        read("", &set);
    }
}

#[test]
fn large_input_is_refused_in_little_time() {
    let keys: String = (0..100_000).map(|index| format!("key-{index} = 1\n")).collect();
    read(&keys, &[]);
    read(&format!("x = {{ {} }}", keys.replace('\n', ", ")), &[]);
    for list in ["path", "flow", "link"] {
        read(&format!("[[{list}]]\nname = \"same\"\n").repeat(50_000), &[]);
    }
    let names: String = (0..100_000).map(|index| format!("\"scheme-{index}\", ")).collect();
    read(&format!("[[path]]\nvia = [{names}]\n[run]\nschemes = [{names}]\n"), &[]);
    let definitions = |is: &dyn Fn(u32) -> String| -> String {
        (0..50_000).map(|index| format!("[scheme.s{index}]\nexpression = \"{}\"\n", is(index))).collect()
    };
    read(&definitions(&|index| format!("s{}", index + 1)), &[]);
    read(&definitions(&|_| "cmt".to_owned()), &[]);
    read(&format!("[scheme.x]\nexpression = \"{}\"\n", "cmt+".repeat(500_000)), &[]);
    let event = "[[path.event]]\nat = \"1 s\"\nup = true\n";
    read(&format!("[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n{}", event.repeat(50_000)), &[]);
}

#[test]
fn deep_and_long_input_is_refused() {
    let deep = ["[", "a.", "{a=", "[[a]]\n[a.", "[a."];
    for piece in deep {
        read(&format!("x = {}", piece.repeat(100_000)), &[]);
        read(&piece.repeat(100_000), &[]);
    }
    read(&format!("x = \"{}\"", "\u{1F980}".repeat(1_000_000)), &[]);
    let key = "a.".repeat(100_000) + "a=1";
    let set: Vec<Override> = key.parse().into_iter().collect();
    assert!(read(EVERY_KEY, &set).is_none());
    let value = format!("path.path-1.loss={}", "[".repeat(100_000));
    let set: Vec<Override> = value.parse().into_iter().collect();
    assert!(read(EVERY_KEY, &set).is_none());
}
