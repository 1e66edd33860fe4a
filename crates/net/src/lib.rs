//! SCTP over UDP (RFC 6951) on real sockets: the endpoint of [`anabranch_core`], controlled by the schemes of
//! [`anabranch_schemes`], driven by tokio.
//!
//! An [`Endpoint`] has a UDP socket on each of its addresses, and a task that owns sockets, protocol state and timers. It opens
//! [associations](Association) over pairs of a local and a remote address, and accepts associations of peers. An association
//! carries messages on several streams, ordered or unordered, over all of its paths according to its scheme.
//!
//! * Senders wait while the send buffer is full, and a receiver that does not read stops the peer, which bounds memory at both
//!   ends.
//! * Every future can be dropped at any time, as in `select!` and time-outs: no data is lost or duplicated. Each documents it.
//! * The end of an association that is not graceful is an error for senders and receivers.
//!
//! [`Endpoint::client`] and [`Endpoint::server`] use every link of this machine, and [`Endpoint::connect_to`] finds the peer by
//! its name. Associations with [`stream_control`](Config::stream_control) have [streams](Association::open_stream) that read and
//! write like TCP connections.
//!
//! Whole programs are in `examples` of this crate, and in the module of that name in its documentation: echo, chat, files, datagrams
//! with deadlines, a scheduler of your own, and a driver of the protocol core without tokio.
//!
//! # Protected endpoints
//!
//! [`Endpoint::builder`] requires the [`Protection`] of packets; there is no default. A protected endpoint proves its identity with
//! [`Credentials`], and accepts the peers that these name. The crate `anabranch-identity` creates them from an Ed25519 key and the
//! public keys of peers; [`Credentials::new`] accepts any two rustls configurations, such as those with your own certificates.
//!
//! ```
//! # // ANCHOR: protected-server
//! use std::net::{IpAddr, SocketAddr};
//! use std::sync::Arc;
//!
//! use anabranch_identity::{Admission, KeyPair};
//! use anabranch_net::{Endpoint, PathAddress, Peer, Protection, SendOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let (server_file, client_file) = (folder.path().join("server.pem"), folder.path().join("client.pem"));
//! # let peer = KeyPair::load_or_create(&client_file)?.public();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let config = anabranch_net::Config::default();
//! // The key pair is made at the first start. `key.public()` is for the other end, whose public key `peer` is.
//! let key = KeyPair::load_or_create(&server_file)?;
//! let admission = Admission::Only(Arc::new([peer].into_iter().collect()));
//! let server = Endpoint::builder(Protection::dtls(key.credentials(admission)?))
//!     .local(SocketAddr::from(([127, 0, 0, 1], 0)))
//!     .local(SocketAddr::from(([127, 0, 0, 2], 0)))
//!     .accept(config.clone())
//!     .bind()?;
//! # // ANCHOR_END: protected-server
//! # let to = server.local_addresses().to_vec();
//! # let peer = key.public();
//! tokio::spawn(async move {
//!     let association = server.accept().await?;
//!     while let Some(message) = association.recv().await? {
//!         let options = SendOptions { stream: message.stream, ..SendOptions::default() };
//!         association.send(message.payload, options).await?;
//!     }
//!     Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! // The other end has a key pair of its own, and connects over two paths.
//! # // ANCHOR: protected-client
//! let key = KeyPair::load_or_create(&client_file)?;
//! let admission = Admission::Only(Arc::new([peer].into_iter().collect()));
//! let from = [IpAddr::from([127, 0, 0, 3]), IpAddr::from([127, 0, 0, 4])];
//! let client = Endpoint::builder(Protection::dtls(key.credentials(admission)?))
//!     .local(SocketAddr::new(from[0], 0))
//!     .local(SocketAddr::new(from[1], 0))
//!     .bind()?;
//! let paths = from.into_iter().zip(to).map(|(local, remote)| PathAddress::over_udp(local, remote));
//! let association = client.connect(Peer::new(paths), config).await?;
//! association.send("over two paths", SendOptions::default()).await?;
//! # // ANCHOR_END: protected-client
//! let echo = association.recv().await?.ok_or("it was closed")?;
//! assert_eq!(&echo.payload[..], b"over two paths");
//! assert_eq!(association.paths().await.len(), 2);
//! assert!(association.peer_identity().is_some());
//! association.shutdown().await?;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! [`Protection::Insecure`] works without keys: any host on the path can read and change the packets. Use it for tests, and for
//! endpoints in one program.
//!
//! # Features
//!
//! `aws-lc-rs` and `interfaces` are on by default.
//!
//! * `aws-lc-rs` or `ring`: [`Protection::dtls`], with rustls and the cryptography of this library. Without both, [`Credentials`] has
//!   no values, and endpoints can only be insecure. ring builds in less time; it neither wipes keys from memory nor has the
//!   key agreement X25519MLKEM768. With both features, aws-lc-rs is used.
//! * `interfaces`: discovery of this machine's addresses. Without it, [`Endpoint::client`], [`Endpoint::server`] and
//!   [`Endpoint::connect_to`] find no address: [`EndpointBuilder::local`] and [`Peer::new`] name them.
//!
//! qlog events, captures, traces and metrics are no feature: the crate `anabranch-observe` has an [`Observer`] that writes them.

mod accept_queue;
mod association;
mod clock;
mod config;
mod connect_retries;
mod discovery;
mod driver;
mod endpoint;
mod error;
mod error_queue;
mod event;
#[cfg(doc)]
pub mod examples;
mod fragmentation;
pub mod interface;
mod key_service;
mod key_store;
mod keying;
mod link_orders;
mod link_use;
mod locals;
mod mailbox;
mod message;
mod observer;
mod observer_slot;
mod outlet;
mod pairing;
mod paths;
mod peer;
mod protection;
mod reach;
mod refusals;
mod reports;
mod route_error;
pub mod route_selection;
mod shared;
mod side_channel;
mod side_outlet;
mod snapshot;
mod socket;
mod stream_service;
mod stream_state;
mod streams;
mod undelivered;
mod withheld;
mod withhold;

pub use anabranch_core::policy::Limiter;
pub use anabranch_core::{
    AbandonCause, Abandoned, AbandonedMessages, AbortReason, AcceptFrom, AddressChanges, AssociationEvent,
    BufferGrowth, FairPool, Guard, ListedAddresses, LocalEnd, MAX_NETWORKS, Network, NetworkError, Networks,
    NetworksError, PathAddress, PathCost, PathId, PathState, PoolFull, RateLimit, Refusal, Reliability,
    SendOptions, Source, Statistics, StreamDirection, StreamRefusal, StreamRequest, StreamScheduler,
};
pub use association::Association;
pub use config::{
    Config, DEFAULT_CONNECT_TIMEOUT, DEFAULT_LARGEST_BUFFER, DEFAULT_LARGEST_MTU, DEFAULT_MTU,
    DEFAULT_PEER_SILENCE, DEFAULT_RECV_BUFFER, DEFAULT_SCHEME, DEFAULT_SCTP_PORT, DEFAULT_SEND_BUFFER,
    DEFAULT_STREAMS, DEFAULT_UDP_PORT,
};
pub use connect_retries::ConnectRetries;
pub use endpoint::{Endpoint, EndpointBuilder, Monitor};
pub use error::{
    AcceptError, BindError, CloseReason, ConnectError, LocalError, PathError, RecvError, SendError,
};
pub use event::{Events, MissedEvents};
pub use keying::{
    Credentials, ExportError, IdentityForm, KeyPolicy, PeerIdentity, RestartKeys, RestartKeysError,
};
pub use link_use::{LinkName, LinkReport, LinkUse};
pub use locals::Binding;
pub use message::Message;
pub use observer::{Datagram, DatagramOutcome, KeyChange, Observer, Started};
pub use peer::{Peer, udp_address};
pub use protection::{DtlsProtection, Protection};
pub use refusals::RefusedPath;
pub use side_channel::SideChannel;
pub use side_outlet::SideDatagram;
pub use snapshot::{
    AssociationReport, EndpointReport, EndpointStatistics, KeyingCounters, PathSnapshot, Snapshot,
};
pub use socket::Device;
pub use streams::{RecvStream, SendStream, StreamRecvError, StreamSendError};
