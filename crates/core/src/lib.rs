//! An SCTP endpoint and its associations, without sockets, clocks or global randomness.
//!
//! The driver passes packets, the time and 32 bytes of entropy in, and gets packets and events: see [`Endpoint`]. The paths and
//! amounts of data, its losses and its retransmissions are decided by a set of [policies](policy) behind small traits. Rules on
//! which specifications and simulators differ are a [`Profile`](profile::Profile).

mod access;
mod address;
mod association;
mod authentication;
mod config;
mod contents;
mod cookie;
mod data_header;
mod endpoint;
mod entropy;
mod error;
mod fair_pool;
mod init;
mod intervals;
mod packet_buffer;
mod path_cost;
mod path_id;
mod paths;
pub mod policy;
pub mod profile;
pub mod protection;
mod recv;
mod scope;
mod send;
mod sliding;
mod source;
mod stats;
mod stream_set;
pub mod time;
pub mod trace;
pub mod units;
pub mod windowed;

pub use access::{AcceptFrom, MAX_NETWORKS, Network, NetworkError, Networks, NetworksError};
pub use address::{LocalEnd, PathAddress};
pub use anabranch_wire::{DataPacket, QuotedInit};
pub use association::{
    Association, AssociationEvent, SendRoom, SendRules, StreamDirection, StreamRefusal, StreamRequest,
};
pub use config::{
    AddressChanges, AssociationConfig, BufferGrowth, Encapsulation, EndpointConfig, ErrorDetection, Guard,
    InterfaceMtu, ListedAddresses, RateLimit, SharedKey, StreamChanges,
};
pub use endpoint::{AssociationId, Endpoint, Handled, Transmit};
pub use error::{AbortReason, ConnectError, PathError, Refusal, SendError, StreamsError};
pub use fair_pool::{FairPool, PoolFull};
pub use packet_buffer::PacketBuffer;
pub use path_cost::PathCost;
pub use path_id::{MAX_PATHS, PathId, PathSet, PathState};
pub use recv::ReceivedMessage;
pub use send::{AbandonCause, DEFAULT_STREAM_PRIORITY, Reliability, SendOptions, StreamScheduler};
pub use source::Source;
pub use stats::{Abandoned, AbandonedMessages, Discard, Discards, Statistics};
