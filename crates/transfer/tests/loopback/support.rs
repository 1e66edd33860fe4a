//! Two endpoints, and folders to send from and to.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_net::Credentials;
use anabranch_net::{Association, Config, Endpoint, PathAddress, Peer, Protection};
use anabranch_tests::credentials::Mode;
use anabranch_transfer::{
    Accept, Event, Folder, OnClash, RateLimit, Report, Rights, SendSource, Sender, SenderId, Server,
    ServerOptions, Store, Timeouts, Totals, TransferError, pull, push,
};
use tempfile::TempDir;

/// Longer than any test takes, even on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime
        .expect("a runtime")
        .block_on(async { tokio::time::timeout(TIMEOUT, test).await.expect("in time") })
}

/// Returns the protection for the credentials of a [`Mode`].
fn protection(credentials: Option<Credentials>) -> Protection {
    credentials.map_or(Protection::Insecure, Protection::dtls)
}

/// Runs a test without protection, and then with it.
pub(crate) fn in_both_modes(test: impl AsyncFn(Mode)) {
    for mode in Mode::ALL {
        println!("{mode:?}:");
        run(test(mode));
    }
}

/// Returns an endpoint that accepts at two addresses.
pub(crate) fn listener() -> Endpoint {
    listener_in(Mode::Plain)
}

fn listener_in(mode: Mode) -> Endpoint {
    Endpoint::builder(protection(mode.of_server()))
        .local(SocketAddr::from(([127, 0, 0, 1], 0)))
        .local(SocketAddr::from(([127, 0, 0, 2], 0)))
        .accept(Config::new("cmt").expect("a scheme"))
        .bind()
        .expect("bound")
}

/// Waits until a condition is true.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Connects to the server over two paths.
pub(crate) async fn connect(server: &Endpoint) -> Association {
    connect_in(Mode::Plain, server).await
}

async fn connect_in(mode: Mode, server: &Endpoint) -> Association {
    let locals = [IpAddr::from([127, 0, 0, 3]), IpAddr::from([127, 0, 0, 4])];
    let endpoint = Endpoint::builder(protection(mode.of_client()))
        .local(SocketAddr::new(locals[0], 0))
        .local(SocketAddr::new(locals[1], 0))
        .bind()
        .expect("bound");
    let routes = locals
        .into_iter()
        .zip(server.local_addresses())
        .map(|(local, &remote)| PathAddress::over_udp(local, remote));
    endpoint.connect(Peer::new(routes), Config::new("cmt").expect("a scheme")).await.expect("connected")
}

/// Returns the identity of the sender in every transfer.
pub(crate) fn identity() -> SenderId {
    SenderId::from_bytes([7; SenderId::LEN])
}

/// Ending of a part file.
pub(crate) const PART_ENDING: &str = ".anabranch-part";
/// Ending of its journal.
pub(crate) const JOURNAL_ENDING: &str = ".anabranch-journal";

/// Returns the only name in a folder with this ending.
pub(crate) fn unfinished(dir: &Path, ending: &str) -> String {
    let mut found: Vec<String> = names(dir).into_iter().filter(|name| name.ends_with(ending)).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// A server on a folder, and its reports.
pub(crate) struct Serving {
    pub(crate) endpoint: Endpoint,
    pub(crate) server: Server,
    pub(crate) dir: TempDir,
    pub(crate) events: Events,
    mode: Mode,
}

/// Events in order of arrival.
#[derive(Clone, Default)]
pub(crate) struct Events(Arc<Mutex<Vec<Event>>>);

impl Events {
    pub(crate) fn report(&self) -> Report {
        let list = Arc::clone(&self.0);
        Report::new(move |event| list.lock().expect("a list").push(event))
    }

    pub(crate) fn list(&self) -> Vec<Event> {
        self.0.lock().expect("a list").clone()
    }

    pub(crate) fn text(&self) -> String {
        format!("{:?}", self.list())
    }
}

pub(crate) fn folder(path: &Path, on_clash: OnClash) -> Store {
    Store::Folder(Folder::open(path, on_clash).expect("a folder"))
}

impl Serving {
    pub(crate) fn start(on_clash: OnClash, options: ServerOptions) -> Serving {
        let dir = tempfile::tempdir().expect("a folder");
        Serving::start_in(dir, on_clash, options)
    }

    pub(crate) fn start_in(dir: TempDir, on_clash: OnClash, options: ServerOptions) -> Serving {
        Serving::start_with(Mode::Plain, dir, on_clash, options)
    }

    /// Starts a server in this mode.
    pub(crate) fn with(mode: Mode, options: ServerOptions) -> Serving {
        let dir = tempfile::tempdir().expect("a folder");
        Serving::start_with(mode, dir, OnClash::Refuse, options)
    }

    /// Starts a server for peers with these rights. Its options decide about clashes.
    pub(crate) fn start_as(dir: TempDir, options: ServerOptions, rights: Rights) -> Serving {
        let server = Server::new(folder(dir.path(), OnClash::Refuse), options);
        Serving::serve(Mode::Plain, dir, server, rights)
    }

    fn start_with(mode: Mode, dir: TempDir, on_clash: OnClash, options: ServerOptions) -> Serving {
        // Tests of the sender's requests set their own options.
        let options = ServerOptions { on_clash: Some(on_clash), ..options };
        let server = Server::new(folder(dir.path(), on_clash), options);
        Serving::serve(mode, dir, server, Rights::default())
    }

    fn serve(mode: Mode, dir: TempDir, server: Server, rights: Rights) -> Serving {
        let (endpoint, events) = (listener_in(mode), Events::default());
        let (accepting, serving, report) = (endpoint.clone(), server.clone(), events.clone());
        tokio::spawn(async move {
            while let Ok(association) = accepting.accept().await {
                let (server, report, rights) = (serving.clone(), report.report(), rights.clone());
                tokio::spawn(async move { server.serve_with(association, &rights, &report).await });
            }
        });
        Serving { endpoint, server, dir, events, mode }
    }

    pub(crate) fn usual() -> Serving {
        Serving::start(OnClash::Refuse, ServerOptions::default())
    }

    /// Sends, and returns the result.
    pub(crate) async fn send(&self, sources: Vec<SendSource>) -> (Result<(), TransferError>, Totals, Events) {
        self.send_at(sources, None).await
    }

    pub(crate) async fn send_at(
        &self,
        sources: Vec<SendSource>,
        rate: Option<RateLimit>,
    ) -> (Result<(), TransferError>, Totals, Events) {
        self.send_as(identity(), sources, rate).await
    }

    pub(crate) async fn send_as(
        &self,
        identity: SenderId,
        sources: Vec<SendSource>,
        rate: Option<RateLimit>,
    ) -> (Result<(), TransferError>, Totals, Events) {
        let events = Events::default();
        let report = events.report();
        let mut sender = Sender::new(sources, rate, report.clone()).with_identity(identity);
        let first = connect_in(self.mode, &self.endpoint).await;
        let again = || async { Ok::<_, TransferError>(connect_in(self.mode, &self.endpoint).await) };
        let ended = push(&mut sender, first, again, Timeouts::default(), &report).await;
        (ended, report.totals(), events)
    }

    /// Fetches these names, or everything if there is none.
    pub(crate) async fn fetch(
        &self,
        names: &[&str],
        store: Store,
    ) -> (Result<(), TransferError>, Totals, Events) {
        let events = Events::default();
        let report = events.report();
        let first = connect_in(self.mode, &self.endpoint).await;
        let again = || async { Ok::<_, TransferError>(connect_in(self.mode, &self.endpoint).await) };
        let accept = match names {
            [] => Accept::all(false),
            names => Accept::names(names).expect("names"),
        };
        let ended = pull(&accept.into(), store, first, again, Timeouts::default(), &report).await;
        (ended, report.totals(), events)
    }

    /// Begins to send, and stops as if killed once the receiver holds `held_bytes`.
    pub(crate) async fn send_until(
        &self,
        sources: Vec<SendSource>,
        rate: RateLimit,
        held_bytes: u64,
    ) -> Totals {
        let report = Report::default();
        let mut sender = Sender::new(sources, Some(rate), report.clone()).with_identity(identity());
        let first = connect_in(self.mode, &self.endpoint).await;
        let again = || async { Ok::<_, TransferError>(connect_in(self.mode, &self.endpoint).await) };
        let enough = async {
            while report.totals().held_bytes < held_bytes {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = push(&mut sender, first, again, Timeouts::default(), &report) => panic!("too soon: {ended:?}"),
            () = enough => {}
        }
        self.idle().await;
        report.totals()
    }

    /// Waits until no transfer runs.
    pub(crate) async fn idle(&self) {
        while self.server.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Returns a limit in bytes per second.
pub(crate) fn rate(bytes: u64) -> RateLimit {
    RateLimit(std::num::NonZeroU64::new(bytes).expect("more than nothing"))
}

/// Returns bytes that are the same for the same seed.
pub(crate) fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

/// Returns every name in a folder, including hidden ones, in order, except for the record of stored files.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .filter(|name| name != ".anabranch-stored")
        .collect();
    names.sort();
    names
}
