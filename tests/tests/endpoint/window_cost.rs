//! What a SACK costs does not grow with the window: it judges no more holes where 16,384 packets are on their way than where 64
//! are. Counted in questions to the loss policy, which is what the walk over holes does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anabranch_core::policy::{
    CongestionControl, Context, Event, Holes, LossDetection, LossTasks, Missing, MissingVerdict, Pacing,
    Policies, Reason, SackView, Scheme, Slot, View, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::ChunkBytes;
use anabranch_core::{
    AssociationConfig, AssociationEvent, AssociationId, Encapsulation, Endpoint, PathId, SendOptions,
};
use anabranch_sim::{Application, LinkConfig, LossModel, LossPlace, QueueConfig, SctpHost, Seeds, World};
use bytes::Bytes;

use crate::rig::{self, PORT, address};

const MESSAGE: usize = 1452;
const CHUNK: u64 = MESSAGE as u64 + 16;
/// Round-trip times lie between this and eight times as long.
const SHORTEST_DELAY: Span = Span::from_millis(10);

/// What was asked of the sender's loss policy.
#[derive(Debug, Default)]
struct Asked {
    sacks: AtomicU64,
    holes: AtomicU64,
}

struct CountingLoss {
    inner: Box<dyn LossDetection>,
    asked: Arc<Asked>,
}

impl Slot for CountingLoss {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        if matches!(event, Event::SackDone(_)) {
            self.asked.sacks.fetch_add(1, Relaxed);
        }
        self.inner.on_event(event, view, context);
    }

    fn deadline(&self) -> Option<Time> {
        self.inner.deadline()
    }
}

impl LossDetection for CountingLoss {
    fn holes(&mut self, sack: &SackView<'_>, view: &View<'_>) -> Holes {
        self.inner.holes(sack, view)
    }

    fn missing(&mut self, chunk: &Missing, sack: &SackView<'_>, view: &View<'_>) -> MissingVerdict {
        self.asked.holes.fetch_add(1, Relaxed);
        self.inner.missing(chunk, sack, view)
    }

    fn timed_out(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.inner.timed_out(chunk, view)
    }

    fn due(&mut self, view: &View<'_>) -> LossTasks {
        self.inner.due(view)
    }

    fn overdue(&mut self, chunk: &Missing, view: &View<'_>) -> bool {
        self.inner.overdue(chunk, view)
    }
}

/// A window of so many chunks on each path, whatever happens.
struct FixedWindow(u64);

impl Slot for FixedWindow {}

impl CongestionControl for FixedWindow {
    fn window(&self, _: PathId) -> Window {
        let cwnd = ChunkBytes::new(self.0 * CHUNK);
        Window { cwnd, ssthresh: cwnd, partial_bytes_acked: ChunkBytes::ZERO }
    }

    fn pacing(&self, _: PathId) -> Pacing {
        Pacing::OFF
    }

    fn last_reason(&self, _: PathId) -> Reason {
        Reason::rule("a fixed window")
    }

    fn set_window(&mut self, _: PathId, _: Window, _: Reason, _: &View<'_>) {}
}

/// A scheme with a fixed window, and with its questions to the loss policy counted.
struct Fixed {
    inner: Arc<dyn Scheme>,
    chunks: u64,
    asked: Arc<Asked>,
}

impl Scheme for Fixed {
    fn policies(&self) -> Policies {
        let policies = self.inner.policies();
        let loss = CountingLoss { inner: policies.loss, asked: Arc::clone(&self.asked) };
        Policies { loss: Box::new(loss), congestion: Box::new(FixedWindow(self.chunks)), ..policies }
    }

    fn is_multipath(&self) -> bool {
        self.inner.is_multipath()
    }

    fn profile(&self, row: Profile) -> Profile {
        // Windows stay open, so that the burst limit would be all that holds packets back.
        Profile { max_burst: u32::MAX, ..self.inner.profile(row) }
    }
}

/// Sends for ever, and reads what comes.
struct Bulk {
    connect: Option<(Vec<(std::net::IpAddr, std::net::IpAddr)>, AssociationConfig)>,
    id: Option<AssociationId>,
    backlog: u64,
    message: Bytes,
    buffer: Vec<u8>,
}

impl Bulk {
    fn new(
        connect: Option<(Vec<(std::net::IpAddr, std::net::IpAddr)>, AssociationConfig)>,
        backlog: u64,
    ) -> Self {
        Bulk { connect, id: None, backlog, message: vec![7; MESSAGE].into(), buffer: Vec::new() }
    }
}

impl Application for Bulk {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        if let Some((pairs, config)) = self.connect.take() {
            self.id = Some(endpoint.connect(now, PORT, &pairs, config).expect("it can be opened"));
        }
        let Some(association) = self.id.and_then(|id| endpoint.association_mut(id)) else { return };
        while association.queued_bytes() < self.backlog {
            association.send(self.message.clone(), SendOptions::default()).expect("it takes everything");
        }
        while association.recv(&mut self.buffer).is_some() {
            self.buffer.clear();
        }
    }

    fn on_event(&mut self, _: Time, _: &mut Endpoint, id: AssociationId, event: &AssociationEvent) {
        self.id = Some(id);
        assert!(!matches!(event, AssociationEvent::Aborted(_)), "{event:?}");
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        None
    }
}

/// A world with paths of which each next one is longer, and windows that fill them.
fn world(scheme: &Fixed, paths: u8, loss: f64) -> World {
    let inner = Arc::new(Fixed {
        inner: Arc::clone(&scheme.inner),
        chunks: scheme.chunks,
        asked: Arc::clone(&scheme.asked),
    });
    let buffer = 64 * u64::from(paths) * scheme.chunks * CHUNK;
    let config = AssociationConfig { recv_buffer_bytes: buffer, ..rig::association("cmt") };
    let peer = AssociationConfig { scheme: Arc::clone(&scheme.inner), ..config.clone() };
    let config =
        AssociationConfig { profile: inner.profile(config.profile.clone()), scheme: inner, ..config };
    let mut world = World::new(Seeds::new(1, 0));
    let ends = [1, 2].map(|node| (0..paths).map(|path| address(path, node)).collect::<Vec<_>>());
    let pairs = ends[0].iter().copied().zip(ends[1].iter().copied()).collect();
    let applications = [Bulk::new(Some((pairs, config.clone())), 64 * CHUNK), Bulk::new(None, 0)];
    for ((own, application), config) in ends.iter().zip(applications).zip([config, peer]) {
        let seed = world.seeds().entropy(&[&own[0].to_string()]);
        let endpoint = Endpoint::new(Time::ZERO, rig::endpoint(own.clone(), config), seed);
        let host = SctpHost::new(endpoint, Encapsulation::None, application);
        world.add_host(Box::new(host), own).expect("new addresses");
    }
    for (index, (one, other)) in ends[0].iter().zip(&ends[1]).enumerate() {
        let delay = SHORTEST_DELAY.times(1 << index.min(3));
        // A window lasts for one round trip of the shortest path.
        let rate = Rate::from_bps(scheme.chunks * 1500 * 8 * 50);
        for (from, to, loss) in [(one, other, loss), (other, one, 0.0)] {
            let link = LinkConfig::new(from.to_string(), rate, delay, QueueConfig::packets(1 << 20))
                .with_loss(LossModel::Bernoulli(loss), LossPlace::BeforeQueue);
            let link = world.add_link(link).expect("a new name");
            world.add_route(*from, *to, &[link], None).expect("both ends exist");
        }
    }
    world
}

/// Holes judged for each SACK, over some round trips.
fn holes_per_sack(scheme: &str, paths: u8, loss: f64, chunks: u64) -> f64 {
    let inner = rig::association(scheme).scheme;
    let scheme = Fixed { inner, chunks: chunks / u64::from(paths), asked: Arc::default() };
    let mut world = world(&scheme, paths, loss);
    world.run_until(rig::at(250));
    let [sacks, holes] = [&scheme.asked.sacks, &scheme.asked.holes].map(|count| count.load(Relaxed) as f64);
    assert!(sacks > chunks as f64 / 4.0, "{sacks} SACKs for a window of {chunks}");
    holes / sacks
}

/// Without losses none: what is under way on another path is no hole that matters. With losses each is judged until it is found
/// lost, and what was sent again and lost once more until T3 expires.
#[test]
fn a_sack_judges_no_more_holes_in_a_large_window() {
    for (scheme, paths, loss, most) in [
        ("cmt", 2, 0.0, 0.0),
        ("bonded", 2, 0.0, 0.0),
        ("cmt", 8, 0.0, 0.0),
        ("cmt+nr-sack", 2, 0.0, 0.0),
        ("sctp", 1, 0.01, 0.1),
        ("cmt", 2, 0.01, 1.0),
        ("cmt+nr-sack", 2, 0.01, 1.0),
        ("cmt+redundant", 2, 0.01, 5.0),
    ] {
        let per_sack = [64, 16_384].map(|chunks| holes_per_sack(scheme, paths, loss, chunks));
        println!("{scheme} on {paths} paths, loss {loss}: {per_sack:?} holes per SACK");
        assert!(per_sack.iter().all(|holes| *holes <= most), "{scheme} on {paths} paths: {per_sack:?}");
    }
}
