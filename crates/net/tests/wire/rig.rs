//! Two hosts with relays between them, on loopback addresses.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_core::time::{Rate, Span};
use anabranch_net::Credentials;
use anabranch_net::{Association, Config, DEFAULT_MTU, Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_relay::{Direction, Relay, RelayConfig};
use anabranch_sim::{LinkConfig, LossModel, LossPlace, QueueConfig};
use anabranch_tests::credentials::Mode;
use sha2::{Digest, Sha256};

/// Time after which a test counts as hanging, generous even for a busy machine.
const LIMIT: Duration = Duration::from_secs(900);

/// Bytes of a message of a transfer.
const MESSAGE: usize = 32 << 10;

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("it hangs")
}

/// Returns the default configuration. It sends no probes that the relays would drop, so that sent and counted packets agree.
pub(crate) fn usual() -> Config {
    Config::default().mtu_bytes(DEFAULT_MTU..=usize::try_from(RelayConfig::MTU_BYTES).expect("a size"))
}

/// Runs a test without protection, and then with it.
pub(crate) async fn in_both_modes(test: impl AsyncFn(Mode)) {
    for mode in Mode::ALL {
        println!("{mode:?}:");
        test(mode).await;
    }
}

/// Link of a path, equal in both directions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) mbps: u64,
    pub(crate) delay_ms: u64,
    pub(crate) loss: f64,
}

impl Link {
    fn config(self, name: String) -> LinkConfig {
        let rate = Rate::from_bps(self.mbps * 1_000_000);
        let queue = QueueConfig::time(Span::from_millis(40));
        LinkConfig::new(name, rate, Span::from_millis(self.delay_ms), queue)
            .with_loss(LossModel::Bernoulli(self.loss), LossPlace::BeforeQueue)
    }
}

/// Two hosts and an association between them, with each path through a relay.
pub(crate) struct Wire {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
    pub(crate) relays: Vec<Relay>,
    pub(crate) ours: Association,
    pub(crate) theirs: Association,
}

/// Address of all relays as seen by the server, with one port per relay.
pub(crate) const SEEN: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 1, 100));

fn address(net: u8, host: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, net, host as u8 + 1], 0))
}

fn host(net: u8, paths: usize, credentials: Option<Credentials>) -> anabranch_net::EndpointBuilder {
    let protection = credentials.map_or(Protection::Insecure, Protection::dtls);
    (0..paths).fold(Endpoint::builder(protection), |builder, path| builder.local(address(net, path)))
}

/// Starts a relay to this address.
pub(crate) fn relay(path: usize, link: Link, to: SocketAddr) -> Relay {
    let named = |direction: &str| link.config(format!("path-{}/{direction}", path + 1));
    let mut config = RelayConfig::new(address(1, path), to, named("forward"), named("reverse"));
    config.from = Some(SEEN);
    Relay::start(config).expect("a relay")
}

impl Wire {
    pub(crate) async fn connected(mode: Mode, links: &[Link], config: Config) -> Self {
        Self::connected_before(mode, links, config, |to| to).await
    }

    /// Connects hosts through relays. The relays send to the result of `before`, given the server's address of each path.
    pub(crate) async fn connected_before(
        mode: Mode,
        links: &[Link],
        config: Config,
        mut before: impl FnMut(SocketAddr) -> SocketAddr,
    ) -> Self {
        let server = host(2, links.len(), mode.of_server()).accept(config.clone()).bind().expect("a server");
        let client = host(3, links.len(), mode.of_client()).bind().expect("a client");
        let targets = server.local_addresses().iter().copied();
        let relays: Vec<Relay> = (links.iter().zip(targets).enumerate())
            .map(|(path, (link, to))| relay(path, *link, before(to)))
            .collect();
        let locals = client.local_addresses().iter().map(SocketAddr::ip);
        let routes =
            locals.zip(&relays).map(|(local, relay)| PathAddress::over_udp(local, relay.local_addr()));
        let peer = Peer::new(routes).sctp_port(server.sctp_port());
        let (ours, theirs) =
            within(async { tokio::join!(client.connect(peer, config), server.accept()) }).await;
        Wire { ours: ours.expect("connected"), theirs: theirs.expect("accepted"), client, server, relays }
    }

    /// Waits until both endpoints use all paths.
    pub(crate) async fn all_paths_active(&self) {
        let active = async |association: &Association, from_relays: bool| {
            let paths = association.paths().await;
            let on_the_way = |remote: IpAddr| !from_relays || remote == SEEN;
            let active = |path: &&anabranch_net::PathSnapshot| {
                path.state == anabranch_net::PathState::Active && on_the_way(path.remote.ip())
            };
            paths.iter().filter(active).count() == self.relays.len()
        };
        within(async {
            while !(active(&self.ours, false).await && active(&self.theirs, true).await) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    /// Returns the datagrams and bytes of a direction in both relays: offered to the links, and sent.
    pub(crate) fn relayed(&self, direction: Direction) -> [(u64, u64); 2] {
        let mut sums = [(0, 0); 2];
        for totals in self.relays.iter().map(|relay| relay.totals(direction)) {
            for (sum, amount) in sums.iter_mut().zip([totals.offered, totals.delivered]) {
                sum.0 += amount.packets;
                sum.1 += amount.bytes;
            }
        }
        sums
    }
}

/// Sends random bytes to the end, and returns their hash.
async fn send_all(ours: &Association, length: usize) -> Vec<u8> {
    let (mut hash, mut random) = (Sha256::new(), fastrand::Rng::with_seed(length as u64));
    for begin in (0..length).step_by(MESSAGE) {
        let mut message = vec![0; MESSAGE.min(length - begin)];
        random.fill(&mut message);
        hash.update(&message);
        ours.send(message, SendOptions::default()).await.expect("accepted");
    }
    ours.shutdown().await.expect("a good end");
    hash.finalize().to_vec()
}

async fn receive_all(theirs: &Association, received: &AtomicU64) -> Vec<u8> {
    let mut hash = Sha256::new();
    while let Some(message) = theirs.recv().await.expect("a good end") {
        hash.update(&message.payload);
        received.fetch_add(message.payload.len() as u64, Ordering::Relaxed);
    }
    hash.finalize().to_vec()
}

/// Runs a whole transfer to its graceful end and compares the hashes of sent and received data. `meanwhile` may observe the number
/// of received bytes, and has ended by then.
pub(crate) async fn transfer(wire: &Wire, length: usize, meanwhile: impl AsyncFnOnce(&AtomicU64)) {
    let received = AtomicU64::new(0);
    let all = async {
        let sending = send_all(&wire.ours, length);
        tokio::join!(sending, receive_all(&wire.theirs, &received), meanwhile(&received))
    };
    let (sent, arrived, ()) = within(all).await;
    assert_eq!((received.into_inner(), arrived), (length as u64, sent));
}

/// Waits until a share of a transfer has arrived, which is not all of it yet.
pub(crate) async fn at_share(received: &AtomicU64, length: usize, share: f64) {
    let wanted = (length as f64 * share) as u64;
    while received.load(Ordering::Relaxed) < wanted {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert!(received.load(Ordering::Relaxed) < length as u64, "it was over too soon");
}
