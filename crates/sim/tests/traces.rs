//! Links that follow traces: Mahimahi's rule beside an independent oracle, and one clock for all traces of a world.

use std::io::Write;
use std::process::{Command, Stdio};

use anabranch_core::PacketBuffer;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_sim::{
    CapacityTrace, Columns, Lane, LinkChange, LinkConfig, Playback, QueueConfig, Seeds, Series, Stream,
    TraceError,
};

fn lane(capacity: Playback<CapacityTrace>, delay: Span) -> Lane {
    let config = LinkConfig::new("link", Rate::from_bps(1), delay, QueueConfig::unlimited());
    Lane::new(config.with_capacity(capacity), "flow", Seeds::new(1, 0), Vec::new()).expect("a valid link")
}

/// Returns the departure times in ns of packets with these arrival times in ns and sizes, in their order.
fn departures(lane: &mut Lane, arrivals: &[(u64, u64)]) -> Vec<u64> {
    let mut left = Vec::new();
    let mut payload = PacketBuffer::new();
    for (nanos, size) in arrivals {
        lane.offer(Time::from_nanos(*nanos), WireBytes::new(*size), 0, &[]);
    }
    while let Some(due) = lane.poll_timeout() {
        while let Some(delivery) = lane.poll_deliver(due, &mut payload) {
            left.push(delivery.at.as_nanos());
        }
    }
    left
}

/// Returns the times that the oracle computes for the same packets.
fn oracle(trace: &str, arrivals: &[(u64, u64)]) -> Vec<u64> {
    let file = std::env::temp_dir().join(format!(
        "mahimahi-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&file, trace).expect("a temporary file");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mahimahi/oracle.py");
    let mut child = Command::new("python3")
        .arg(script)
        .arg(&file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs the oracle");
    let lines: String = arrivals.iter().map(|(nanos, size)| format!("{nanos} {size}\n")).collect();
    child.stdin.take().expect("a pipe").write_all(lines.as_bytes()).expect("the oracle reads");
    let output = child.wait_with_output().expect("the oracle ends");
    std::fs::remove_file(&file).expect("the temporary file is there");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("numbers");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

/// Returns bursts and pauses of packets of all sizes, some at whole milliseconds, for some repetitions of a trace.
fn arrivals(draw: &mut Stream, count: usize, mean_gap_ns: u64) -> Vec<(u64, u64)> {
    let mut nanos = 0;
    let packet = |_| {
        nanos += match draw.below(10) {
            0..=4 => 0,
            5 => draw.below(10) * 1_000_000 + (1_000_000 - nanos % 1_000_000),
            6 => draw.below(20 * mean_gap_ns),
            _ => draw.below(2 * mean_gap_ns),
        };
        (nanos, [1500, 1504, 40, 1 + draw.below(1504)][draw.below(4) as usize])
    };
    (0..count).map(packet).collect()
}

/// Returns ten traces: constant, bursty, sparse, with outages, with opportunities at zero, and at random.
fn synthetic() -> Vec<String> {
    let mut draw = Seeds::new(3, 0).stream(&["traces"]);
    let mut traces: Vec<Vec<u64>> = vec![
        vec![1],
        vec![0, 0, 3],
        (1..=100).collect(),
        vec![7; 40],
        (1..=50).chain(400..=500).collect(),
        vec![1000],
    ];
    while traces.len() < 10 {
        let mut ms = draw.below(3);
        let most = 1 + draw.below(8);
        let next = |_| {
            ms += draw.below(most) * draw.below(2);
            ms
        };
        let mut trace: Vec<u64> = (0..300).map(next).collect();
        trace.push(ms + 1);
        traces.push(trace);
    }
    traces.iter().map(|trace| trace.iter().map(|ms| format!("{ms}\n")).collect()).collect()
}

/// Compares the simulator with the oracle on a trace in Mahimahi's format.
fn compare(text: &str, packets: usize) {
    let trace = CapacityTrace::read_mahimahi(text.as_bytes()).expect("a valid trace");
    let gap = 800 * 8_000_000_000 / trace.mean_rate().as_bps();
    let mut draw = Seeds::new(5, 0).stream(&["arrivals"]);
    let arrivals = arrivals(&mut draw, packets, gap);
    let ours = departures(&mut lane(Playback::repeated(trace), Span::ZERO), &arrivals);
    assert_eq!(ours.len(), packets);
    assert_eq!(ours, oracle(text, &arrivals), "{}", &text[..text.len().min(200)]);
}

#[test]
fn packets_leave_when_the_oracle_of_mahimahi_says() {
    let traces = synthetic();
    assert_eq!(traces.len(), 10);
    traces.iter().for_each(|text| compare(text, 2000));
}

/// Reads the files of a folder, whose lines are milliseconds, or seconds and Mbit/s. `ANABRANCH_TRACES` names the folder of recorded
/// networks, which are not in the repository.
#[test]
fn packets_leave_when_the_oracle_says_on_recorded_networks() {
    let Some(folder) = std::env::var_os("ANABRANCH_TRACES") else { return };
    let files = std::fs::read_dir(folder).expect("ANABRANCH_TRACES is a folder");
    for file in files {
        let text = std::fs::read_to_string(file.expect("a file").path()).expect("a text");
        if !text.contains(',') {
            compare(&text, 5000);
            continue;
        }
        let rates =
            CapacityTrace::read_rates(text.as_bytes(), &Columns::default(), None).expect("a valid trace");
        let mut mahimahi = Vec::new();
        rates.write_mahimahi(&mut mahimahi).expect("memory");
        compare(std::str::from_utf8(&mahimahi).expect("numbers"), 5000);
    }
}

#[test]
fn constant_rates_of_a_trace_are_those_of_a_link() {
    let mut draw = Seeds::new(7, 0).stream(&["arrivals"]);
    let arrivals = arrivals(&mut draw, 3000, 1_000_000);
    let rate = Rate::from_bps(7_000_003);
    for duration in [Span::from_millis(1), Span::from_secs(1000)] {
        let trace = CapacityTrace::from_rates([(Span::ZERO, rate)], duration).expect("a valid trace");
        let ours = departures(&mut lane(Playback::repeated(trace), Span::ZERO), &arrivals);
        let config = LinkConfig::new("link", rate, Span::ZERO, QueueConfig::unlimited());
        let mut plain = Lane::new(config, "flow", Seeds::new(1, 0), Vec::new()).expect("a valid link");
        assert_eq!(ours, departures(&mut plain, &arrivals), "{duration:?}");
    }
}

#[test]
fn packet_that_meets_a_change_of_rate_takes_its_bytes_at_each_rate() {
    let text = "0,8\n1,0\n2,4\n3,4\n";
    let trace = CapacityTrace::read_rates(text.as_bytes(), &Columns::default(), None).expect("a valid trace");
    assert_eq!(trace.duration(), Span::from_secs(4));
    let mut lane = lane(Playback::repeated(trace), Span::ZERO);
    // 1,000 bytes take 1 ms at 8 Mbit/s, and 2 ms at 4.
    let ns = |us: u64| us * 1000;
    let sent = [ns(998_500), ns(998_500), ns(3_999_500), ns(3_999_500)].map(|at| (at, 1000));
    // At 1 s, half a millisecond of the second packet's two remains; the rate is 0 until 2 s.
    let expected = [ns(999_500), ns(2_001_000), ns(4_000_750), ns(4_001_750)];
    assert_eq!(departures(&mut lane, &sent), expected);
}

#[test]
fn trace_without_repetition_carries_nothing_after_its_end() {
    let trace = CapacityTrace::read_mahimahi(&b"1\n2\n3\n"[..]).expect("a valid trace");
    let mut lane = lane(Playback::once(trace).starting_at(Span::from_millis(1)), Span::ZERO);
    let left = departures(&mut lane, &[(0, 1504); 5]);
    assert_eq!(left, [1_000_000, 2_000_000]);
    assert_eq!(lane.poll_timeout(), None);
    assert_eq!(lane.packets_on_the_way(), 3);
}

#[test]
fn offset_shifts_the_trace_against_the_clock() {
    let trace = CapacityTrace::read_mahimahi(&b"10\n100\n"[..]).expect("a valid trace");
    let first = |offset_ms: u64| {
        let playback = Playback::repeated(trace.clone()).starting_at(Span::from_millis(offset_ms));
        departures(&mut lane(playback, Span::ZERO), &[(0, 100)])[0] / 1_000_000
    };
    assert_eq!([0, 9, 10, 50, 100, 110, 1_000_050].map(first), [10, 1, 90, 50, 10, 90, 50]);
}

#[test]
fn two_links_follow_their_traces_on_one_clock() {
    // Both traces have the same time: the first link is down when the second is up.
    let traces = ["0,8\n10,0\n20,0\n", "0,0\n10,8\n20,8\n"];
    let left = traces.map(|text| {
        let trace =
            CapacityTrace::read_rates(text.as_bytes(), &Columns::default(), None).expect("a valid trace");
        let arrivals: Vec<_> = (0..120).map(|second| (second * 1_000_000_000, 1000)).collect();
        departures(&mut lane(Playback::repeated(trace), Span::ZERO), &arrivals)
    });
    let in_first = |nanos: &u64| nanos % 30_000_000_000 <= 10_000_000_000;
    assert!(left[0].iter().all(in_first));
    assert!(left[1].iter().all(|nanos| !in_first(nanos)));
}

#[test]
fn change_of_rate_ends_a_trace() {
    let trace = CapacityTrace::read_mahimahi(&b"1000\n"[..]).expect("a valid trace");
    let mut lane = lane(Playback::repeated(trace), Span::ZERO);
    lane.change(Time::ZERO, &LinkChange::Rate(Rate::from_bps(8_000_000))).expect("a valid change");
    assert_eq!(departures(&mut lane, &[(0, 1000)]), [1_000_000]);
}

#[test]
fn series_of_delay_loss_and_outages_change_a_link_beside_its_capacity() {
    let series = [
        Series::read_delays(&b"0 10\n1 50\n2 10\n"[..], &Columns::default()),
        Series::read_losses(&b"0 0\n3 1\n4 0\n"[..], &Columns::default()),
        Series::read_outages(&b"0 1\n5 0\n6 1\n"[..], &Columns::default()),
    ];
    let trace = CapacityTrace::read_mahimahi(&b"1\n"[..]).expect("a valid trace");
    let mut config = LinkConfig::new("link", Rate::from_bps(1), Span::ZERO, QueueConfig::unlimited())
        .with_capacity(Playback::repeated(trace));
    for series in series {
        config = config.with_series(Playback::once(series.expect("a valid series")));
    }
    let mut lane = Lane::new(config, "flow", Seeds::new(1, 0), Vec::new()).expect("a valid link");
    let arrivals: Vec<_> = (0..8).map(|second| (second * 1_000_000_000 + 500_000_000, 1504)).collect();
    // Packets of the seconds 3 and 5 are lost and dropped.
    let expected = [511, 1551, 2511, 4511, 6511, 7511].map(|ms| ms * 1_000_000);
    assert_eq!(departures(&mut lane, &arrivals), expected);
    assert_eq!((lane.counters().lost.packets, lane.counters().outage.packets), (1, 1));
}

#[test]
fn malformed_traces_name_the_line_and_the_remedy() {
    let mahimahi = |text: &str| CapacityTrace::read_mahimahi(text.as_bytes());
    let rates = |text: &str| CapacityTrace::read_rates(text.as_bytes(), &Columns::default(), None);
    for (result, expected) in [
        (
            mahimahi(""),
            "the trace has 0 points and lasts no time; give at least one opportunity after millisecond 0",
        ),
        (mahimahi("0\n0\n"), "the trace has 1 points and lasts no time"),
        (mahimahi("1\n2.5\n"), "line 2: \"2.5\" is no millisecond of a delivery opportunity; each line"),
        (mahimahi("1\n-2\n"), "line 2: \"-2\" is no millisecond"),
        (mahimahi("1\nabc\n"), "line 2: \"abc\" is no millisecond"),
        (mahimahi("5\n\n4\n"), "line 3: 4 ms is not after the line before it; sort the lines"),
        (mahimahi("99999999999999\n"), "line 1: the trace lasts longer than 10000000 s; cut it"),
        (
            mahimahi("99999999999999999999999999\n"),
            "line 1: \"99999999999999999999999999\" is no millisecond",
        ),
        (mahimahi("\u{0}\n"), "line 1: \"\\0\" is no millisecond"),
        (rates(""), "the trace has 0 points"),
        (rates("0,5\n"), "the trace has 1 points and lasts no time; give at least two lines"),
        (rates("0,0\n1,0\n2,0\n"), "the rate is zero throughout the trace"),
        (
            rates("0 1\n1 -1\n"),
            "line 2: \"-1\" is no rate of at most 1 Tbit/s; give a number that is not negative",
        ),
        (rates("0,1\n1,1000001\n"), "line 2: \"1000001\" is no rate of at most 1 Tbit/s"),
        (rates("0,1\nx,1\n"), "line 2: \"x\" is no time; give seconds, or a date"),
        (rates("0,1\n0,2\n"), "line 2: 0 is not after the line before it"),
        (
            rates("time,rate\n0,1,2\n"),
            "line 2 has 3 columns instead of 2; keep the time in seconds and the rate",
        ),
        (rates("5\n"), "line 1 has 1 columns instead of 2"),
    ] {
        let error = result.expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

/// Repeats a text without storing it.
struct Repeated {
    text: &'static [u8],
    left: u64,
    at: usize,
}

impl std::io::Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = buffer.len().min(self.left as usize);
        for byte in &mut buffer[..n] {
            *byte = self.text[self.at];
            self.at = (self.at + 1) % self.text.len();
        }
        self.left -= n as u64;
        Ok(n)
    }
}

#[test]
fn huge_traces_take_bounded_memory() {
    let endless = |text| std::io::BufReader::new(Repeated { text, left: 1 << 40, at: 0 });
    assert_eq!(CapacityTrace::read_mahimahi(endless(b"7")), Err(TraceError::LongLine { line: 1 }));
    // A million opportunities in one millisecond are one point.
    let many = std::io::BufReader::new(Repeated { text: b"7\n", left: 2_000_000, at: 0 });
    let trace = CapacityTrace::read_mahimahi(many).expect("a valid trace");
    assert_eq!(trace.bits_between(Span::ZERO, trace.duration()), 1_000_000 * 1504 * 8);
    let points = (0..).map(|n| (Span::from_micros(n), Rate::from_bps(1)));
    let refused = CapacityTrace::from_rates(points, Span::from_secs(1_000_000));
    assert!(matches!(refused, Err(TraceError::Large { .. })));
    let refused = CapacityTrace::from_opportunities(0..);
    assert!(matches!(refused, Err(TraceError::Large { .. })));
}

#[test]
fn cut_scaled_and_resampled_traces_keep_their_bits() {
    let mut draw = Seeds::new(9, 0).stream(&["traces"]);
    for _ in 0..50 {
        let points =
            (0..40).map(|n| (Span::from_millis(250 * n), Rate::from_bps(1 + draw.below(50_000_000))));
        let rates = CapacityTrace::from_rates(points, Span::from_secs(10)).expect("a valid trace");
        let mut text = Vec::new();
        rates.write_mahimahi(&mut text).expect("memory");
        let opportunities = CapacityTrace::read_mahimahi(&text[..]).expect("what was written");
        assert_eq!(opportunities.duration(), rates.duration());
        for trace in [rates, opportunities] {
            let bits = trace.bits_between(Span::ZERO, trace.duration());
            let step = Span::from_millis(1 + draw.below(3000));
            let resampled = trace.resampled(step).expect("a valid step");
            let after = resampled.bits_between(Span::ZERO, trace.duration());
            // A step loses less than a bit of its sum, and its rate less than a bit per second.
            let steps = 10_000_000_000 / step.as_nanos() + 1;
            assert!(bits.abs_diff(after) <= 10 + steps, "{bits} {after}");
            let doubled = trace.scaled(2.0).expect("a valid factor");
            assert!(doubled.bits_between(Span::ZERO, trace.duration()).abs_diff(2 * bits) <= 1);
            let from = Span::from_millis(draw.below(9000));
            let to = from + Span::from_millis(1 + draw.below(1000));
            let cut = trace.cut(from, to).expect("a valid section");
            assert_eq!(cut.duration(), to - from);
            // Opportunities at the end of a section belong to it, as those at the end of a trace do.
            let (got, expected) = (cut.bits_between(Span::ZERO, to - from), trace.bits_between(from, to));
            assert!(got.abs_diff(expected) <= 12 * 1504 * 8, "{got} {expected}");
        }
    }
}

#[test]
fn written_rates_are_read_as_the_same_trace() {
    let text = "0,8\n1,0.5\n2,4.000001\n3,0\n";
    let trace = CapacityTrace::read_rates(text.as_bytes(), &Columns::default(), None).expect("a valid trace");
    let mut written = Vec::new();
    trace.write_rates(Span::from_secs(1), &mut written).expect("memory");
    assert_eq!(CapacityTrace::read_rates(&written[..], &Columns::default(), None), Ok(trace));
}

#[test]
fn mahimahi_file_of_a_rate_carries_as_much() {
    let trace = CapacityTrace::from_rates([(Span::ZERO, Rate::from_bps(12_032_000))], Span::from_secs(2));
    let mut text = Vec::new();
    trace.expect("a valid trace").write_mahimahi(&mut text).expect("memory");
    // 1,504 bytes each millisecond.
    let expected: String = (1..=2000).map(|ms| format!("{ms}\n")).collect();
    assert_eq!(String::from_utf8(text).expect("numbers"), expected);
}

#[test]
fn impossible_operations_are_refused() {
    let trace =
        CapacityTrace::read_rates(&b"0 8\n1 0\n2 4\n"[..], &Columns::default(), None).expect("a valid trace");
    let s = Span::from_secs;
    for refused in [
        trace.cut(s(1), s(1)),
        trace.cut(s(1), s(4)),
        trace.cut(s(1), s(2)),
        trace.scaled(0.0),
        trace.scaled(f64::NAN),
        trace.scaled(f64::INFINITY),
        trace.scaled(1e-9),
        trace.resampled(Span::ZERO),
        trace.resampled(Span::from_nanos(1)),
    ] {
        assert!(refused.is_err(), "{refused:?}");
    }
    let series = Series::new(vec![(Span::ZERO, LinkChange::Rate(Rate::from_bps(0)))], s(1));
    let config = LinkConfig::new("link", Rate::from_bps(1), Span::ZERO, QueueConfig::unlimited())
        .with_series(Playback::repeated(series.expect("a point")));
    assert!(Lane::new(config, "flow", Seeds::new(1, 0), Vec::new()).is_err());
}
