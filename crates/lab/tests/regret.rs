//! Bound on the time in which `braid` delivers less in order than its best path alone, from a state in which its scheduler fails.

use std::sync::{Arc, Mutex};

use anabranch_core::PathId;
use anabranch_core::policy::{
    BufferSharing, Context, Decision, Event, Pick, Policies, Reason, Refused, Scheduler, Scheme, SendAsk,
    Slot, View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::Time;
use anabranch_core::units::ChunkBytes;
use anabranch_lab::run::{Job, JobScheme};

use crate::common::job;

/// Start of the failure of the scheduler.
const FAILS_AT: Time = Time::from_nanos(5_000_000_000);
const END_S: f64 = 40.0;
/// Interval of the measured goodput.
const INTERVAL_S: f64 = 0.25;

/// Scheduler that prefers the path with the longest round-trip time from [`FAILS_AT`] on.
struct Failing(Box<dyn Scheduler>);

impl Slot for Failing {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        self.0.on_event(event, view, context);
    }
}

impl Scheduler for Failing {
    fn pick(&mut self, ask: &SendAsk, view: &View<'_>, context: &mut Context<'_>) -> Decision<Pick> {
        if view.now < FAILS_AT {
            return self.0.pick(ask, view, context);
        }
        let admitted = view.active().filter(|path| !path.estimates.withdrawn);
        let slowest = admitted
            .filter(|path| view.refusal(path.id).is_none())
            .max_by_key(|path| path.rtt.smoothed.unwrap_or_default());
        let choice = slowest.map_or(Pick::Wait(WaitFor::Window), |path| Pick::Path(path.id));
        Decision::with_refused(choice, Reason::rule("a failure"), Refused::new())
    }
}

/// Policy of the buffer that records the cumulative TSN of each SACK.
struct Recorder {
    inner: Box<dyn BufferSharing>,
    progress: Arc<Mutex<Vec<(f64, u64)>>>,
}

impl Slot for Recorder {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        if let Event::SackDone(done) = event {
            let mut progress = self.progress.lock().expect("no policy panicked");
            progress.push((view.now.as_secs_f64(), done.cumulative));
        }
        self.inner.on_event(event, view, context);
    }
}

impl BufferSharing for Recorder {
    fn admits(&self, path: PathId, chunk: ChunkBytes, view: &View<'_>) -> bool {
        self.inner.admits(path, chunk, view)
    }
}

/// `braid` with the failing scheduler and the recorder.
struct Planted(Arc<dyn Scheme>, Arc<Mutex<Vec<(f64, u64)>>>);

impl Scheme for Planted {
    fn policies(&self) -> Policies {
        let policies = self.0.policies();
        let buffer = Recorder { inner: policies.buffer, progress: Arc::clone(&self.1) };
        Policies { buffer: Box::new(buffer), scheduler: Box::new(Failing(policies.scheduler)), ..policies }
    }

    fn is_multipath(&self) -> bool {
        self.0.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        self.0.profile(row)
    }
}

/// Returns the number of chunks that arrive in order in each interval after the failure.
fn in_order(text: &str, scheme: &str) -> Vec<f64> {
    let plain = job(text, scheme, 1);
    let progress = Arc::new(Mutex::new(Vec::new()));
    let planted = JobScheme::new(scheme, Arc::new(Planted(plain.scheme.scheme(), Arc::clone(&progress))));
    Job { scheme: planted, digest: false, ..plain }.run().expect("the scenario can be run");
    let progress = progress.lock().expect("no policy panicked");
    let at =
        |time: f64| progress[..progress.partition_point(|(at, _)| *at <= time)].last().map_or(0, |p| p.1);
    let intervals = ((END_S - FAILS_AT.as_secs_f64()) / INTERVAL_S) as usize;
    let ends = (0..=intervals).map(|n| at(FAILS_AT.as_secs_f64() + n as f64 * INTERVAL_S));
    ends.collect::<Vec<_>>().windows(2).map(|ends| (ends[1] - ends[0]) as f64).collect()
}

/// Returns the longest time in seconds below 0.9 of `alone` chunks per interval, and the share of all intervals below it.
fn regret(in_order: &[f64], alone: f64) -> (f64, f64) {
    let (mut longest, mut current, mut all) = (0, 0, 0);
    for chunks in in_order {
        current = if *chunks < 0.9 * alone { current + 1 } else { 0 };
        all += usize::from(current > 0);
        longest = longest.max(current);
    }
    (longest as f64 * INTERVAL_S, all as f64 / in_order.len() as f64)
}

fn scenario(buffer: &str, slow: &str, paths: &str) -> String {
    format!(
        r#"
[run]
duration = "{END_S} s"
[association]
recv_buffer = "{buffer}"
[[path]]
name = "fast"
rate = "20 Mbit/s"
delay = "10 ms"
queue = "100 packets"
[[path]]
name = "slow"
{slow}
[[flow]]
name = "own"
kind = "bulk"
paths = [{paths}]
"#
    )
}

const LONG_QUEUE: &str = "rate = \"500 kbit/s\"\ndelay = \"100 ms\"\nqueue = \"200 packets\"";
const LOSSY: &str = "rate = \"2 Mbit/s\"\ndelay = \"80 ms\"\nqueue = \"50 packets\"\nloss = 0.05";

#[test]
fn failing_scheduler_costs_goodput_for_a_bounded_time() {
    // The goal is 2 s. Lost chunks of the slow path delay the end of the shortfall, to 2.25 s.
    let settings = [("64 KiB", LONG_QUEUE, 2.0), ("256 KiB", LONG_QUEUE, 2.0), ("128 KiB", LOSSY, 2.5)];
    for (buffer, slow, most_s) in settings {
        let alone = in_order(&scenario(buffer, slow, "\"fast\""), "braid");
        let alone = alone.iter().sum::<f64>() / alone.len() as f64;
        let both = scenario(buffer, slow, "\"fast\", \"slow\"");
        let (longest, share) = regret(&in_order(&both, "braid"), alone);
        assert!(longest <= most_s && share <= 0.25, "{buffer}, {slow}: {longest} s, {share:.2}");
        let (_, unsupervised) = regret(&in_order(&both, "braid(supervisor=false)"), alone);
        assert!(unsupervised > 0.9, "{buffer}, {slow}: {unsupervised:.2}");
    }
}
