//! Datagrams over an association: sent with a lifetime, and dropped if there is no room.

use std::time::Duration;

use anabranch_net::{Association, SendOptions};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::message::Notice;
use crate::target::Target;

/// Time after which a datagram is given up. Programs that use UDP have sent it again by then.
const LIFETIME: Duration = Duration::from_secs(1);

/// Maximum number of datagrams that wait for one flow. Further ones are dropped.
pub(crate) const MAX_QUEUED: usize = 64;

/// Peer and content of a datagram.
pub(crate) type Datagram = (Target, Vec<u8>);

/// Queue of the datagrams of a flow.
pub(crate) type Queue = mpsc::Receiver<Datagram>;

/// Sends a datagram, or drops it if the send buffer is full.
pub(crate) async fn send(association: &Association, flow: u32, (peer, payload): Datagram) {
    let options = SendOptions::default().unordered();
    let options = match association.supports_partial_reliability() {
        true => options.expires_after(LIFETIME),
        false => options,
    };
    let notice = Notice::Datagram { flow, peer, payload };
    let _ = timeout(Duration::ZERO, association.send(notice.encode(), options)).await;
}
