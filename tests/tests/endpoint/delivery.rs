//! Delivery rate of paths, their limiting factor, and probes of idle paths, as the basis of rate-based congestion control.

use std::sync::{Arc, Mutex};

use anabranch_core::policy::{
    Context, DeliverySample, Estimates, Event, Limiter, Pacing, PathEstimator, Pick, Policies, Scheme, Slot,
    View, WaitFor,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{PathId, PathSet};
use anabranch_schemes::estimator::RateModel;
use anabranch_tests::duo::{Duo, Setup};
use anabranch_tests::network::Side;
use anabranch_tests::steered::{Steered, path};

const A: usize = Side::A as usize;
const FULL: usize = 1_452;

type Samples = Arc<Mutex<Vec<(usize, DeliverySample)>>>;

/// A scheme with the path model as its estimator and with recorded samples.
struct Modelled {
    steered: Steered,
    samples: Samples,
    /// Time at which to probe the second path.
    probe_at: Option<Time>,
}

struct Watched {
    inner: RateModel,
    samples: Samples,
    probe_at: Option<Time>,
}

impl Slot for Watched {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        if let Event::SackDone(done) = event {
            let told =
                done.paths.iter().enumerate().filter_map(|(index, ack)| ack.sample.map(|s| (index, s)));
            self.samples.lock().expect("nobody panicked").extend(told);
        }
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.probe_at
    }
}

impl PathEstimator for Watched {
    fn estimates(&self, path: PathId) -> Estimates {
        self.inner.estimates(path)
    }

    fn probes(&mut self, view: &View<'_>) -> PathSet {
        let due = self.probe_at.take_if(|at| *at <= view.now).is_some();
        due.then(|| path(1)).into_iter().collect()
    }
}

impl Scheme for Modelled {
    fn policies(&self) -> Policies {
        let policies = self.steered.policies();
        let samples = Arc::clone(&self.samples);
        let inner = RateModel::new(policies.estimator);
        Policies { estimator: Box::new(Watched { inner, samples, probe_at: self.probe_at }), ..policies }
    }

    fn is_multipath(&self) -> bool {
        true
    }

    fn profile(&self, row: Profile) -> Profile {
        row
    }
}

fn at_kbps(kbps: u64) -> Pacing {
    Pacing { rate: Some(Rate::from_bps(kbps * 1_000)), in_flight_cap: None }
}

/// Returns a pair connected over two paths of 25 ms, with every packet acknowledged.
fn modelled(steered: Steered, probe_at: Option<Time>) -> (Duo, Samples) {
    let samples = Samples::default();
    let scheme = Modelled { steered, samples: Arc::clone(&samples), probe_at };
    let setup = Setup::new(2, "cmt(sack-every=1)", "rfc9260").with_side(Side::A, |config| {
        config.scheme = Arc::new(scheme);
        config.profile.idle_decay = anabranch_core::profile::IdleDecay::Ns2;
    });
    let mut duo = Duo::connected(setup.with(|config| config.recv_buffer_bytes = 1 << 22));
    duo.run(Span::from_millis(500));
    (duo, samples)
}

fn facts(duo: &Duo, index: usize) -> anabranch_core::policy::PathFacts {
    duo.nodes[A].association().paths()[index]
}

#[test]
fn a_paced_path_is_measured_at_its_rate_and_modelled_so() {
    let rates = [4_000, 1_000];
    let steered = Steered::new("cmt(sack-every=1)").pace(move |id| at_kbps(rates[id.index()]));
    let (mut duo, samples) = modelled(steered, None);
    duo.send_all(Side::A, FULL, 1_500);
    duo.run(Span::from_secs(3));
    let samples = samples.lock().expect("nobody panicked");
    for (index, kbps) in rates.into_iter().enumerate() {
        let own =
            samples.iter().filter(|(path, sample)| *path == index && sample.limiter() == Limiter::Pacing);
        let measured: Vec<u64> =
            own.filter_map(|(_, sample)| sample.rate).map(|rate| rate.as_bps() / 1_000).collect();
        let late = &measured[measured.len() / 2..];
        assert!(late.len() > 20, "path {index}: {measured:?}");
        // The tolerance is one packet of a round trip in either direction.
        assert!(
            late.iter().all(|rate| (kbps * 8 / 10..=kbps * 13 / 10).contains(rate)),
            "path {index}: {late:?}"
        );
        let Estimates { bottleneck_rate, propagation, rounds, .. } = facts(&duo, index).estimates;
        let modelled = bottleneck_rate.expect("it carried data").as_bps() / 1_000;
        assert!((kbps..=kbps * 13 / 10).contains(&modelled), "path {index}: {modelled}");
        assert_eq!((propagation, rounds > 20), (Some(Span::from_millis(50)), true), "path {index}: {rounds}");
    }
}

#[test]
fn path_without_waiting_data_is_application_limited() {
    let (mut duo, samples) = modelled(Steered::new("cmt(sack-every=1)"), None);
    for _ in 0..5 {
        duo.send_all(Side::A, FULL, 1);
        duo.run(Span::from_millis(200));
    }
    assert_eq!(facts(&duo, 0).limiter, Limiter::Application);
    let samples = samples.lock().expect("nobody panicked");
    assert!(samples.len() >= 5);
    for (_, sample) in samples.iter().skip(2) {
        assert_eq!((sample.limiter(), sample.rtt), (Limiter::Application, Some(Span::from_millis(50))));
        assert_eq!(sample.interval(), Span::from_millis(50), "idle time is in none");
    }
}

#[test]
fn unused_path_is_scheduler_limited_and_full_path_window_limited() {
    let only_first = |view: &View<'_>| match view.refusal(path(0)) {
        None => Pick::Path(path(0)),
        Some(_) => Pick::Wait(WaitFor::Window),
    };
    let (mut duo, _) = modelled(Steered::new("cmt(sack-every=1)").pick(only_first), None);
    duo.send_all(Side::A, FULL, 300);
    duo.run(Span::from_millis(10));
    assert_eq!([0, 1].map(|index| facts(&duo, index).limiter), [Limiter::Window, Limiter::Scheduler]);
}

#[test]
fn a_path_that_waits_for_the_reader_is_limited_by_the_peers_window() {
    let (mut duo, _) = modelled(Steered::new("cmt(sack-every=1)"), None);
    duo.reading[Side::B.index()] = anabranch_tests::duo::Reading::ByHand;
    duo.send_all(Side::A, 100_000, 100);
    duo.run(Span::from_secs(20));
    let limiters = [0, 1].map(|index| facts(&duo, index).limiter);
    assert!(limiters.contains(&Limiter::PeerWindow), "{limiters:?}");
}

#[test]
fn the_recent_least_round_trip_is_of_data_and_forgets() {
    let (mut duo, _) = modelled(Steered::new("cmt(sack-every=1)"), None);
    // A HEARTBEAT verified the second path; no data has left.
    let rtt = facts(&duo, 1).rtt;
    assert_eq!((rtt.min, rtt.recent_min), (Some(Span::from_millis(50)), None));
    duo.send_all(Side::A, FULL, 20);
    duo.run(Span::from_secs(1));
    assert_eq!(facts(&duo, 0).rtt.recent_min, Some(Span::from_millis(50)));
    (0..2).for_each(|pair| duo.link(pair).delay = Span::from_millis(100));
    for _ in 0..40 {
        duo.send_all(Side::A, FULL, 4);
        duo.run(Span::from_millis(500));
    }
    let rtt = facts(&duo, 0).rtt;
    assert_eq!((rtt.min, rtt.recent_min), (Some(Span::from_millis(50)), Some(Span::from_millis(200))));
}

#[test]
fn an_estimator_can_probe_an_idle_path() {
    let at = Time::ZERO + Span::from_secs(5);
    let only_first = |view: &View<'_>| match view.refusal(path(0)) {
        None => Pick::Path(path(0)),
        Some(_) => Pick::Wait(WaitFor::Window),
    };
    let (mut duo, _) = modelled(Steered::new("cmt(sack-every=1)").pick(only_first), Some(at));
    duo.link(1).delay = Span::from_millis(70);
    duo.send_all(Side::A, FULL, 1);
    duo.run(at.since(duo.now) - Span::from_nanos(1));
    assert_eq!(facts(&duo, 1).rtt.latest, Some(Span::from_millis(50)));
    duo.run(Span::from_millis(141));
    assert_eq!(facts(&duo, 1).rtt.latest, Some(Span::from_millis(140)));
}

#[test]
fn lost_transmission_keeps_its_recorded_flight() {
    let only_first = |view: &View<'_>| match view.refusal(path(0)) {
        None => Pick::Path(path(0)),
        Some(_) => Pick::Wait(WaitFor::Window),
    };
    let (mut duo, _) = modelled(Steered::new("cmt(sack-every=1)").pick(only_first), None);
    assert_eq!(facts(&duo, 0).latest_loss, None);
    duo.cut(0, true);
    let sent_at = duo.now;
    duo.send_all(Side::A, FULL, 2);
    duo.run(Span::from_millis(1_100));
    let facts = facts(&duo, 0);
    let lost = facts.latest_loss.expect("T3 has expired");
    assert_eq!(
        (lost.sent_at, lost.in_flight, lost.lost),
        (sent_at, facts.largest_chunk.times(2), ChunkBytes::ZERO)
    );
}
