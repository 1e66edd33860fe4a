//! Transfers to record.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anabranch_net::{Association, Config, DEFAULT_MTU, Endpoint, PathAddress, Peer, Protection, SendOptions};
use anabranch_observe::{Outputs, Recording, Role};

/// Time after which a test counts as hanging, generous even for a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) const SCHEME: &str = "cmt";
pub(crate) const MESSAGE_BYTES: usize = 20_000;
pub(crate) const MESSAGES: usize = 100;

/// Fails a test that hangs.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(LIMIT, future).await.expect("it hangs")
}

/// Returns a configuration with Ethernet-sized packets, so that a transfer has many.
pub(crate) fn scheme() -> Config {
    Config::new(SCHEME).expect("a scheme").mtu_bytes(DEFAULT_MTU..=1500)
}

/// Two endpoints with two addresses each. `node` distinguishes them.
pub(crate) struct Pair {
    pub(crate) client: Endpoint,
    pub(crate) server: Endpoint,
}

fn any_port(node: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::from([127, 0, 2, node]), 0)
}

impl Pair {
    pub(crate) fn new(node: u8, recording: Option<&Recording>) -> Self {
        let server = Endpoint::builder(Protection::Insecure)
            .local(any_port(node))
            .local(any_port(node + 1))
            .accept(scheme());
        let mut client =
            Endpoint::builder(Protection::Insecure).local(any_port(node + 2)).local(any_port(node + 3));
        if let Some(recording) = recording {
            client = client.observer(recording.observer());
        }
        Pair { client: client.bind().expect("a client"), server: server.bind().expect("a server") }
    }

    pub(crate) async fn connect(&self) -> (Association, Association) {
        let pairs = self.client.local_addresses().iter().zip(self.server.local_addresses());
        let routes = pairs.map(|(local, remote)| PathAddress::over_udp(local.ip(), *remote));
        let opening = self.client.connect(Peer::new(routes), scheme());
        let (ours, theirs) = tokio::join!(within(opening), within(self.server.accept()));
        (ours.expect("connected"), theirs.expect("accepted"))
    }

    /// Sends messages one way and closes.
    pub(crate) async fn transfer(&self) {
        let (ours, theirs) = self.connect().await;
        let sending = async {
            for _ in 0..MESSAGES {
                ours.send(vec![9; MESSAGE_BYTES], SendOptions::default()).await.expect("accepted");
            }
            ours.shutdown().await.expect("a good end");
        };
        let receiving = async {
            let mut bytes = 0;
            while let Some(message) = theirs.recv().await.expect("a good end") {
                bytes += message.payload.len();
            }
            bytes
        };
        let ((), bytes) = within(async { tokio::join!(sending, receiving) }).await;
        assert_eq!(bytes, MESSAGES * MESSAGE_BYTES);
    }
}

/// Records a transfer from its first packet to its last.
pub(crate) async fn recorded(node: u8, outputs: &Outputs) {
    let recording = Recording::start(outputs, Role::Client, SCHEME, &scheme()).expect("a recording");
    let pair = Pair::new(node, Some(&recording));
    pair.transfer().await;
    let report = recording.finish();
    assert!(report.errors.is_empty(), "{:?}", report.errors);
    assert_eq!(report.records_dropped, 0);
}

/// Repeats `look` until it returns a value.
pub(crate) async fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    within(async {
        loop {
            if let Some(found) = look() {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
}
