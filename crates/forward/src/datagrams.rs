//! Datagrams over an association: sent with a lifetime, and dropped if there is no room.

use std::time::Duration;

use anabranch_mapping::datagram_options;
use anabranch_net::Association;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::message::Notice;
use crate::target::Target;

/// Maximum number of datagrams that wait for one flow. Further ones are dropped.
pub(crate) const MAX_QUEUED: usize = 64;

/// Peer and content of a datagram.
pub(crate) type Datagram = (Target, Vec<u8>);

/// Queue of the datagrams of a flow.
pub(crate) type Queue = mpsc::Receiver<Datagram>;

/// Sends a datagram, on two paths if `duplicate` is set, or drops it if the send buffer is full.
pub(crate) async fn send(association: &Association, flow: u32, (peer, payload): Datagram, duplicate: bool) {
    let options = datagram_options(association.supports_partial_reliability(), duplicate);
    let notice = Notice::Datagram { flow, peer, payload };
    let _ = timeout(Duration::ZERO, association.send(notice.encode(), options)).await;
}
