//! Forwarding: TCP connections of other programs as streams of an anabranch association, over all paths of it.
//!
//! A [`Forwarder`] listens for connections and opens a stream for each, with ssh's forwardings or as a SOCKS5 and HTTP proxy. The
//! [`Gateway`] at the other end of the association resolves the target, checks its [`Policy`], and connects. Half-close, reset and
//! back-pressure of each connection are those of its stream.
//!
//! Parsers, policy, limits and the detection of a lost gateway have no input or output of their own. The protocol is in [`message`].

mod copies;
mod datagrams;
mod dial;
mod event;
mod failure;
mod flows;
mod forwarder;
mod gateway;
mod limits;
mod listen_spec;
mod listeners;
mod liveness;
mod measure;
pub mod message;
mod policy;
mod priority;
mod proxy;
#[cfg(target_os = "linux")]
mod redirected;
mod request;
mod session;
mod splice;
mod tally;
mod target;
mod uplink;

pub use event::{Event, Reporter};
pub use failure::Failure;
pub use forwarder::{Forwarder, Service};
pub use gateway::{Gateway, GatewayOptions, RemoteListen, TargetCheck};
pub use limits::Limits;
pub use listen_spec::{Bind, Forwarding, ForwardingError, Listen};
pub use listeners::Listeners;
pub use liveness::{Liveness, Observation, Verdict};
pub use measure::{Measured, measure};
pub use message::MeasureBounds;
pub use policy::{Policy, Rule, RuleError};
pub use priority::{Priority, PriorityError};
#[cfg(feature = "fuzzing")]
pub use proxy::fuzz as fuzz_proxy;
pub use session::{ConnectFailed, Connected, configure, greet};
pub use tally::{OpenConnection, Tally, Totals};
pub use target::{HostName, MAX_NAME_BYTES, Target, TargetError, TargetHost};
