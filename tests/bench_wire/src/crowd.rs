//! Many associations of one endpoint. Their peers are hosts of one other process, because two hosts have at most one association.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Child;
use std::time::{Duration, Instant};

use anabranch_core::RateLimit;
use anabranch_net::{Association, Config, Endpoint, Guard, PathAddress, Peer, Protection, SendOptions};
use clap::Args;
use tokio::task::JoinSet;

use crate::end::{LARGE_MESSAGE, message};
use crate::subject::Crowd;
use crate::{Failure, process};

/// Bytes that all associations send together: enough that slow start and path MTU discovery are a small part, since each of 3,000
/// associations repeats them.
const TOTAL_BYTES: usize = 8 << 30;
/// Default scheme of sockets, with one path.
const SCHEME: &str = "bonded";
/// Time after which the activity that follows a handshake, such as path MTU discovery, has ended.
const SETTLED: Duration = Duration::from_secs(3);
/// Time after which the intervals between HEARTBEATs have reached their maximum: an association that is idle for the longest
/// interval has waited for about that long once.
const QUIET: Duration = Duration::from_secs(50);
/// Twice the longest interval between the HEARTBEATs of a path, with RTO and jitter.
const IDLE: Duration = Duration::from_secs(51);
/// Maximum time between two associations while they are opened.
const PATIENCE: Duration = Duration::from_secs(20);
/// No limit, since all handshakes come from one address.
const NO_LIMIT: RateLimit = RateLimit { per_second: 1_000_000, burst: 1_000_000 };

/// The other process.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Peers {
    #[arg(long)]
    server: SocketAddr,
    #[command(flatten)]
    crowd: Crowd,
}

impl Peers {
    /// Opens all associations and receives until they are shut down.
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let mut ends = JoinSet::new();
        for _ in 0..self.crowd.associations {
            let endpoint = Endpoint::builder(Protection::Insecure)
                .local((Ipv4Addr::new(127, 0, 20, 1), 0).into())
                .bind()?;
            let local = endpoint.local_addresses()[0].ip();
            let peer = Peer::new([PathAddress::over_udp(local, self.server)]);
            let association = endpoint.connect(peer, Config::new(SCHEME)?).await?;
            ends.spawn(async move { while let Ok(Some(_)) = association.recv().await {} });
        }
        while ends.join_next().await.is_some() {}
        Ok(())
    }
}

/// The measured endpoint with its associations.
struct Server {
    associations: Vec<Association>,
    _endpoint: Endpoint,
    _peers: PeerProcess,
}

/// Child process that ends when the guard is dropped.
struct PeerProcess(Child);

impl Drop for PeerProcess {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Binds, calls `bound`, and accepts the associations.
    async fn start<T>(crowd: Crowd, bound: impl FnOnce() -> T) -> Result<(Self, T), Failure> {
        let associations = crowd.associations as usize;
        let endpoint = Endpoint::builder(Protection::Insecure)
            .local((Ipv4Addr::new(127, 0, 20, 2), 0).into())
            .accept(Config::new(SCHEME)?)
            // All come from one address, which may have eight of nine places.
            .max_associations(2 * associations)
            .guard(Guard { per_source: NO_LIMIT, in_all: NO_LIMIT })
            .bind()?;
        let seen = bound();
        let server = endpoint.local_addresses()[0];
        let arguments =
            ["peers", "--server", &server.to_string(), "--associations", &associations.to_string()];
        let peers = PeerProcess(process::this_program(&arguments.map(str::to_owned))?.spawn()?);
        let mut taken = Vec::with_capacity(associations);
        while taken.len() < associations {
            let next = tokio::time::timeout(PATIENCE, endpoint.accept()).await;
            taken.push(next.map_err(|_| "the peers have stopped to connect")??);
        }
        Ok((Server { associations: taken, _endpoint: endpoint, _peers: peers }, seen))
    }
}

pub(crate) async fn rate(crowd: Crowd) -> Result<f64, Failure> {
    let (mut server, ()) = Server::start(crowd, || ()).await?;
    let message = message(LARGE_MESSAGE)?;
    let messages = TOTAL_BYTES / LARGE_MESSAGE / server.associations.len();
    let bytes = messages * LARGE_MESSAGE * server.associations.len();
    let begun = Instant::now();
    let mut sending = JoinSet::new();
    for association in server.associations.drain(..) {
        let message = message.clone();
        sending.spawn(async move {
            for _ in 0..messages {
                association.send(message.clone(), SendOptions::default()).await?;
            }
            association.shutdown().await?;
            Ok::<(), Failure>(())
        });
    }
    while let Some(sent) = sending.join_next().await {
        sent??;
    }
    Ok(bytes as f64 * 8.0 / 1e6 / begun.elapsed().as_secs_f64())
}

pub(crate) async fn idle_bytes(crowd: Crowd) -> Result<f64, Failure> {
    let (_server, before) = Server::start(crowd, process::resident_bytes).await?;
    tokio::time::sleep(SETTLED).await;
    Ok((process::resident_bytes()? - before?) / f64::from(crowd.associations))
}

pub(crate) async fn idle_cpu(crowd: Crowd) -> Result<f64, Failure> {
    let (_server, ()) = Server::start(crowd, || ()).await?;
    tokio::time::sleep(QUIET).await;
    let before = process::cpu_seconds()?;
    tokio::time::sleep(IDLE).await;
    Ok((process::cpu_seconds()? - before) / IDLE.as_secs_f64())
}
