//! Driver's end of the side channel.

use std::net::SocketAddr;

use anabranch_core::LocalEnd;
use tokio::sync::mpsc;

/// Maximum number of datagrams that wait to be received. Further ones are dropped.
const MAX_WAITING: usize = 256;

/// Maximum length of a datagram in bytes. Longer ones are dropped.
const LONGEST: usize = 2048;

/// Datagram of a side channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideDatagram {
    /// Local end at which it arrived, or from which it is sent.
    pub local: LocalEnd,
    /// Address and UDP port of the other host.
    pub remote: SocketAddr,
    /// UDP payload.
    pub payload: Vec<u8>,
}

/// Driver's end of the side channel.
#[derive(Debug, Default)]
pub(crate) struct SideOutlet(Option<mpsc::Sender<SideDatagram>>);

impl SideOutlet {
    pub(crate) fn open(&mut self) -> mpsc::Receiver<SideDatagram> {
        let (sender, arrived) = mpsc::channel(MAX_WAITING);
        self.0 = Some(sender);
        arrived
    }

    /// Takes a datagram that is not an SCTP packet. Returns `false` without an open side channel.
    pub(crate) fn takes(&self, local: LocalEnd, remote: SocketAddr, payload: &[u8]) -> bool {
        let Some(sender) = &self.0 else { return false };
        if !payload.starts_with(&[0, 0]) || sender.is_closed() {
            return false;
        }
        if payload.len() <= LONGEST {
            let _ = sender.try_send(SideDatagram { local, remote, payload: payload.to_vec() });
        }
        true
    }
}
