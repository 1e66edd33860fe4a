//! Successive transfers leave no memory and no descriptor behind. 360 of them here; `make transfers` runs 10,000, with
//! `ANABRANCH_TRANSFERS`.

#![allow(
    clippy::disallowed_macros,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_net::{Association, Config, Endpoint, Guard, PathAddress, Peer, Protection, RateLimit};
use anabranch_transfer::{
    Accept, Folder, OnClash, Report, SendSource, Sender, Server, ServerOptions, Store, Timeouts,
    TransferError, pull, push,
};
use tempfile::TempDir;

use crate::{live_bytes, turn};

/// Number of rounds with the same number of transfers each. If every transfer leaked memory, every round would end with more than
/// it began with. Memory kept for reuse grows in some rounds only: the spare packet buffers of a thread, up to a limit, as tasks
/// move between threads.
const ROUNDS: usize = 5;
/// More than the used cookies of one round (stored for their lifetime) and two spare packet buffers.
const SLACK_BYTES: usize = 144 << 10;
/// Time after which the test counts as hanging, generous even for a busy machine.
const STUCK_AFTER: Duration = Duration::from_secs(120);

/// Resources of the process.
#[derive(Clone, Copy, Debug)]
struct Held {
    bytes: usize,
    descriptors: usize,
}

impl Held {
    fn now() -> Held {
        let descriptors = fs::read_dir("/proc/self/fd").expect("procfs").count();
        Held { bytes: live_bytes(), descriptors }
    }
}

struct Rig {
    endpoint: Endpoint,
    server: Server,
    inbox: TempDir,
    outbox: TempDir,
}

impl Rig {
    fn start() -> Rig {
        let often = RateLimit { per_second: 1_000_000, burst: 1_000_000 };
        let endpoint = Endpoint::builder(Protection::Insecure)
            .local(SocketAddr::from(([127, 0, 0, 1], 0)))
            .accept(Config::new("cmt").expect("a scheme"))
            .guard(Guard { per_source: often, in_all: often })
            .bind()
            .expect("bound");
        let (inbox, outbox) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let store = Store::Folder(Folder::open(inbox.path(), OnClash::Overwrite).expect("a folder"));
        let server = Server::new(
            store,
            ServerOptions { on_clash: Some(OnClash::Overwrite), ..ServerOptions::default() },
        );
        let (accepting, serving) = (endpoint.clone(), server.clone());
        tokio::spawn(async move {
            while let Ok(association) = accepting.accept().await {
                let server = serving.clone();
                tokio::spawn(async move { server.serve(association, &Report::default()).await });
            }
        });
        fs::write(outbox.path().join("small"), [7; 5_000]).expect("written");
        fs::write(outbox.path().join("large"), vec![7; 4 << 20]).expect("written");
        fs::write(inbox.path().join("offered"), [8; 5_000]).expect("written");
        Rig { endpoint, server, inbox, outbox }
    }

    /// Connects with a new endpoint, as each command does.
    async fn connect(&self) -> Association {
        let local = IpAddr::from([127, 0, 0, 2]);
        let endpoint =
            Endpoint::builder(Protection::Insecure).local(SocketAddr::new(local, 0)).bind().expect("bound");
        let route = PathAddress::over_udp(local, self.endpoint.local_addresses()[0]);
        endpoint.connect(Peer::new([route]), Config::new("cmt").expect("a scheme")).await.expect("connected")
    }

    async fn again(&self) -> Result<Association, TransferError> {
        Ok(self.connect().await)
    }

    async fn transfer(&self, number: usize) {
        match number % 10 {
            0 => self.send_and_stop().await,
            1..=4 => self.fetch().await,
            _ => self.send("small").await,
        }
    }

    async fn send(&self, name: &str) {
        let report = Report::default();
        let mut sender =
            Sender::new(vec![SendSource::path(self.outbox.path().join(name))], None, report.clone());
        let first = self.connect().await;
        push(&mut sender, first, || self.again(), Timeouts::default(), &report).await.expect("sent");
    }

    /// Vanishes without a message once a part of the file has arrived.
    async fn send_and_stop(&self) {
        let report = Report::default();
        let mut sender =
            Sender::new(vec![SendSource::path(self.outbox.path().join("large"))], None, report.clone());
        let first = self.connect().await;
        let part_is_there = async {
            while report.totals().held_bytes == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::select! {
            _ = push(&mut sender, first, || self.again(), Timeouts::default(), &report) => {}
            () = part_is_there => {}
        }
    }

    async fn fetch(&self) {
        let to = Store::Folder(Folder::open(self.outbox.path(), OnClash::Overwrite).expect("a folder"));
        let accept = Accept::names(["offered"]).expect("a name");
        let first = self.connect().await;
        pull(&accept.into(), to, first, || self.again(), Timeouts::default(), &Report::default())
            .await
            .expect("fetched");
        fs::remove_file(self.outbox.path().join("offered")).expect("it was there");
    }

    /// Returns the resources when every transfer and every association has ended.
    async fn settled(&self) -> Held {
        while self.server.running() > 0 || self.endpoint.statistics().await.associations > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // Threads end and sockets close a little later than their transfers.
        let mut held = Held::now();
        for _ in 0..20 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let now = Held::now();
            held =
                Held { bytes: held.bytes.min(now.bytes), descriptors: held.descriptors.min(now.descriptors) };
        }
        held
    }
}

/// Returns the smallest growth of a round over the one before.
fn least_growth(held: &[Held], of: impl Fn(&Held) -> usize) -> usize {
    held.windows(2).map(|pair| of(&pair[1]).saturating_sub(of(&pair[0]))).min().expect("a round")
}

#[test]
fn consecutive_transfers_leave_no_state() {
    let _turn = turn();
    let transfers: usize =
        std::env::var("ANABRANCH_TRANSFERS").map_or(360, |count| count.parse().expect("a number"));
    // A warm-up round allocates everything that is allocated only once.
    let round = (transfers / (ROUNDS + 1)).max(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let rig = Rig::start();
        let mut held = Vec::new();
        for _ in 0..=ROUNDS {
            for number in 0..round {
                tokio::time::timeout(STUCK_AFTER, rig.transfer(number)).await.expect("a transfer is stuck");
            }
            held.push(rig.settled().await);
        }
        eprintln!("after each {round} transfers: {held:?}");
        assert_eq!(least_growth(&held, |held| held.descriptors), 0, "{held:?}");
        assert!(least_growth(&held, |held| held.bytes) <= SLACK_BYTES, "{held:?}");
        assert_eq!(fs::read(rig.inbox.path().join("small")).expect("there"), [7; 5_000]);
    });
}
