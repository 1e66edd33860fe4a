//! Datagrams over an association: sent with a lifetime, and dropped if there is no room.

use std::sync::Arc;
use std::time::Duration;

use anabranch_mapping::datagram_options;
use anabranch_net::{Association, RecvStream, SendStream};
use tokio::sync::{OnceCell, mpsc};
use tokio::time::timeout;

use crate::message::Notice;
use crate::target::Target;

/// Maximum number of datagrams that wait for one flow. Further ones are dropped.
pub(crate) const MAX_QUEUED: usize = 64;

/// Peer and content of a datagram.
pub(crate) type Datagram = (Target, Vec<u8>);

/// Queue of the datagrams of a flow.
pub(crate) type Queue = mpsc::Receiver<Datagram>;

/// Way of all datagrams over an association. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Carrier {
    association: Association,
    /// Stream that no connection uses, because datagrams would wait for the bytes of that one. The first datagram opens it.
    reserved: Arc<OnceCell<(SendStream, RecvStream)>>,
}

impl Carrier {
    pub(crate) fn new(association: Association) -> Self {
        Carrier { association, reserved: Arc::default() }
    }

    /// Sends a datagram, on two paths if `duplicate` is set, or drops it if the send buffer is full or no stream is free.
    pub(crate) async fn send(&self, flow: u32, (peer, payload): Datagram, duplicate: bool) {
        let notice = Notice::Datagram { flow, peer, payload };
        let sent = async {
            let (reserved, _) =
                self.reserved.get_or_try_init(|| self.association.open_stream()).await.ok()?;
            let is_limited = self.association.supports_partial_reliability();
            let options = datagram_options(reserved.id(), is_limited, duplicate);
            self.association.send(notice.encode(), options).await.ok()
        };
        let _ = timeout(Duration::ZERO, sent).await;
    }
}
