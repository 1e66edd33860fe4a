//! An association with constant windows over filled paths of different length.

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
use anabranch_sim::{
    Application, HostId, LinkConfig, LossModel, LossPlace, QueueConfig, SctpHost, Seeds, World,
};
use bytes::Bytes;

use super::{PORT, address};

const MESSAGE: usize = 1452;
const CHUNK: u64 = MESSAGE as u64 + 16;
const SHORTEST_DELAY: Span = Span::from_millis(10);
/// Round trip of the shortest path; that of the longest is eight times as long.
pub(crate) const ROUND: Span = Span::from_millis(20);

/// Numbers of calls of the sender's loss policy.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) sacks: AtomicU64,
    pub(crate) holes: AtomicU64,
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

/// A constant window of this number of chunks on each path.
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

/// A scheme with a constant window of this number of chunks on each path, and with counted calls of the loss policy.
pub(crate) struct Fixed {
    pub(crate) inner: Arc<dyn Scheme>,
    pub(crate) chunks: u64,
    pub(crate) asked: Arc<Asked>,
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
        // Windows stay open, so only the burst limit would hold packets back.
        Profile { max_burst: u32::MAX, ..self.inner.profile(row) }
    }
}

/// Application that sends without end, and reads all received data.
struct Bulk {
    connect: Option<(Vec<(std::net::IpAddr, std::net::IpAddr)>, AssociationConfig)>,
    id: Option<AssociationId>,
    backlog: u64,
    message: Bytes,
}

impl Bulk {
    fn new(
        connect: Option<(Vec<(std::net::IpAddr, std::net::IpAddr)>, AssociationConfig)>,
        backlog: u64,
    ) -> Self {
        Bulk { connect, id: None, backlog, message: vec![7; MESSAGE].into() }
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
        while association.recv_with(|_| ()).is_some() {}
    }

    fn on_event(&mut self, _: Time, _: &mut Endpoint, id: AssociationId, event: &AssociationEvent) {
        self.id = Some(id);
        assert!(!matches!(event, AssociationEvent::Aborted(_)), "{event:?}");
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        None
    }
}

/// Returns a world with paths of increasing length and windows that fill them, and the sending host.
pub(crate) fn world(scheme: &Fixed, paths: u8, loss: f64) -> (World, HostId) {
    let inner = Arc::new(Fixed {
        inner: Arc::clone(&scheme.inner),
        chunks: scheme.chunks,
        asked: Arc::clone(&scheme.asked),
    });
    let buffer = 64 * u64::from(paths) * scheme.chunks * CHUNK;
    let config = AssociationConfig { recv_buffer_bytes: buffer, ..super::association("cmt") };
    let peer = AssociationConfig { scheme: Arc::clone(&scheme.inner), ..config.clone() };
    let config =
        AssociationConfig { profile: inner.profile(config.profile.clone()), scheme: inner, ..config };
    let mut world = World::new(Seeds::new(1, 0));
    let ends = [1, 2].map(|node| (0..paths).map(|path| address(path, node)).collect::<Vec<_>>());
    let pairs = ends[0].iter().copied().zip(ends[1].iter().copied()).collect();
    let mut hosts = Vec::new();
    let applications = [Bulk::new(Some((pairs, config.clone())), 64 * CHUNK), Bulk::new(None, 0)];
    for ((own, application), config) in ends.iter().zip(applications).zip([config, peer]) {
        let seed = world.seeds().entropy(&[&own[0].to_string()]);
        let endpoint = Endpoint::new(Time::ZERO, super::endpoint(own.clone(), config), seed);
        // The settings are those of simulated bulk flows.
        let endpoint = endpoint.without_checksums().without_contents();
        let host = SctpHost::new(endpoint, Encapsulation::None, application);
        hosts.push(world.add_host(Box::new(host), own).expect("new addresses"));
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
    (world, hosts[0])
}

/// Returns the number of packets with DATA that a host has sent.
pub(crate) fn data_packets_sent(world: &World, host: HostId) -> u64 {
    let host: &SctpHost<Bulk> = world.host(host);
    let association = host.application.id.and_then(|id| host.endpoint.association(id));
    association.map_or(0, |association| association.statistics().data_packets_sent)
}
