//! Outcomes that `braid` assigns to the copies of a chunk, compared with the outcomes on the simulated links.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex};

use anabranch_core::PathId;
use anabranch_core::policy::{BufferSharing, Context, Event, Policies, Scheme, Slot, View};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_lab::run::{Job, JobScheme, TracePart, TraceTable};
use tempfile::TempDir;

use crate::common::job;
use crate::copies::{BURSTS, SMALL_BUFFER};

/// Transmission by path, lower 32 bits of the TSN, and number among the transmissions of this TSN on this path.
type Transmission = (usize, u32, usize);

/// Outcome of a transmission, as the sender or the link reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    Delivered,
    Lost,
}

/// Transmissions and outcomes of one association, as its policies observe them.
#[derive(Debug, Default)]
struct Observed {
    /// Send times by path and TSN, in order.
    sent: BTreeMap<(usize, u32), Vec<Time>>,
    outcomes: BTreeMap<Transmission, Outcome>,
}

impl Observed {
    /// Records an outcome of a transmission. It replaces an earlier one, because an acknowledgement corrects a wrong loss.
    fn note(&mut self, path: PathId, tsn: u64, sent_at: Time, outcome: Outcome) {
        let key = (path.index(), tsn as u32);
        let number = self.sent.get(&key).and_then(|times| times.iter().position(|at| *at == sent_at));
        if let Some(number) = number {
            self.outcomes.insert((key.0, key.1, number), outcome);
        }
    }

    /// Returns the transmissions of chunks that were sent more than once, until `end`.
    fn copies(&self, end: Time) -> BTreeSet<Transmission> {
        let mut transmissions: BTreeMap<u32, Vec<(Transmission, Time)>> = BTreeMap::new();
        for (&(path, tsn), times) in &self.sent {
            let of_path = times.iter().enumerate().map(|(number, at)| ((path, tsn, number), *at));
            transmissions.entry(tsn).or_default().extend(of_path);
        }
        let repeated = transmissions.into_values().filter(|of_chunk| of_chunk.len() > 1);
        repeated.flatten().filter(|(_, at)| *at < end).map(|(transmission, _)| transmission).collect()
    }
}

/// Policy of the buffer that records events.
struct Recorder {
    inner: Box<dyn BufferSharing>,
    observed: Arc<Mutex<Observed>>,
}

impl Slot for Recorder {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        let mut observed = self.observed.lock().expect("no policy panicked");
        match *event {
            Event::Sent(sent) => {
                observed.sent.entry((sent.path.index(), sent.tsn as u32)).or_default().push(view.now);
            }
            Event::Acked(acked) => {
                observed.note(acked.path, acked.tsn, acked.stamps.sent_at, Outcome::Delivered);
            }
            Event::Lost { path, tsn, sent_at, .. } => observed.note(path, tsn, sent_at, Outcome::Lost),
            _ => {}
        }
        self.inner.on_event(event, view, context);
    }
}

impl BufferSharing for Recorder {
    fn admits(&self, path: PathId, chunk: ChunkBytes, view: &View<'_>) -> bool {
        self.inner.admits(path, chunk, view)
    }
}

/// `braid` with the recorder in the association that sends.
struct Recorded(Arc<dyn Scheme>, Arc<Mutex<Observed>>);

impl Scheme for Recorded {
    fn policies(&self) -> Policies {
        let policies = self.0.policies();
        let buffer = Recorder { inner: policies.buffer, observed: Arc::clone(&self.1) };
        Policies { buffer: Box::new(buffer), ..policies }
    }

    fn is_multipath(&self) -> bool {
        self.0.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        self.0.profile(row)
    }
}

/// Returns the outcomes on the links.
fn of_links(packets: &str) -> BTreeMap<Transmission, Outcome> {
    let (mut finished, mut outcomes) = (BTreeMap::<(usize, u32), usize>::new(), BTreeMap::new());
    for row in packets.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let outcome = match cells[4] {
            "sent" => continue,
            "received" => Outcome::Delivered,
            _ => Outcome::Lost,
        };
        let path =
            cells[3].strip_prefix("path-").and_then(|at| at.parse::<usize>().ok()).expect("a path") - 1;
        let tsn = cells[5].parse().expect("a TSN");
        let number = finished.entry((path, tsn)).or_default();
        outcomes.insert((path, tsn, *number), outcome);
        *number += 1;
    }
    outcomes
}

/// Numbers of copies by their outcomes.
#[derive(Debug, Default)]
struct Tally {
    right: u32,
    wrong: u32,
    unknown: u32,
}

fn tally(text: &str, end_s: u64, seed: u64) -> Tally {
    let folder = TempDir::new().expect("a folder");
    let plain = job(text, "braid", seed);
    let observed = Arc::new(Mutex::new(Observed::default()));
    let scheme = JobScheme::new("braid", Arc::new(Recorded(plain.scheme.scheme(), Arc::clone(&observed))));
    let part = TracePart { tables: Some(vec![TraceTable::Packets]), until: None };
    let job = Job { scheme, part, trace: Some(folder.path().to_owned()), digest: false, ..plain };
    job.run().expect("the scenario can be run");
    let packets = fs::read_to_string(folder.path().join(job.label()).join("packets.csv")).expect("a trace");
    let truth = of_links(&packets);
    let observed = observed.lock().expect("no policy panicked");
    let mut tally = Tally::default();
    for copy in observed.copies(Time::ZERO + Span::from_secs(end_s)) {
        match (truth.get(&copy), observed.outcomes.get(&copy)) {
            (Some(truth), Some(outcome)) if truth == outcome => tally.right += 1,
            (Some(_), Some(_)) => tally.wrong += 1,
            (Some(_), None) => tally.unknown += 1,
            (None, _) => panic!("{copy:?} has no outcome on its link"),
        }
    }
    tally
}

/// Returns the shares of right and of unknown outcomes over three runs.
fn shares(text: &str, end_s: u64) -> (f64, f64) {
    let tallies = [1, 2, 3].map(|seed| tally(text, end_s, seed));
    let sum = |count: fn(&Tally) -> u32| f64::from(tallies.iter().map(count).sum::<u32>());
    let (right, unknown) = (sum(|tally| tally.right), sum(|tally| tally.unknown));
    let copies = right + unknown + sum(|tally| tally.wrong);
    assert!(copies >= 1_000.0, "{tallies:?}");
    (right / copies, unknown / copies)
}

#[test]
fn outcomes_of_copies_match_links_with_single_losses() {
    let (right, unknown) = shares(SMALL_BUFFER, 13);
    assert!(right >= 0.98 && unknown <= 0.02, "right {right:.3}, unknown {unknown:.3}");
}

#[test]
fn most_outcomes_of_copies_match_links_with_burst_losses() {
    // Some copies arrive after later packets have declared them lost, and some lost copies end with T3.
    let (right, unknown) = shares(BURSTS, 28);
    assert!(right >= 0.94 && unknown <= 0.03, "right {right:.3}, unknown {unknown:.3}");
}
