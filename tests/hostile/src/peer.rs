//! A peer that sends messages on request.

use std::fmt;
use std::time::Duration;

use anabranch_net::{Association, Endpoint, SendOptions};
use anabranch_transfer::SenderId;
use anabranch_transfer::protocol::{
    CONTROL_STREAM, DATA_STREAM, FileTime, Intent, Kind, Links, Message, Offer, Segment, SenderRequests,
    Terms,
};
use bytes::Bytes;

use crate::loopback::connect;
use crate::packet::Packet;

/// Time that [`Peer::hear_until`] waits. The limit exceeds the duration of every step of a test, on any machine.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Default identity of the peer that offers.
const SENDER: [u8; SenderId::LEN] = [9; SenderId::LEN];
/// Interval of the messages of a peer that only shows that it is alive.
const ALIVE_EVERY: Duration = Duration::from_millis(500);

/// One side of a transfer over an association.
#[derive(Debug)]
pub struct Peer(Association);

/// Data from the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    /// A control message, the first one included.
    Control(Message),
    /// A segment.
    Data(Segment),
    /// Data that is invalid in the protocol.
    Unreadable(Bytes),
    /// The association has ended.
    Ended,
}

/// The association has ended, or there was no message for a minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationEnded(String);

impl fmt::Display for AssociationEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AssociationEnded {}

fn gone(why: impl fmt::Display) -> AssociationEnded {
    AssociationEnded(why.to_string())
}

impl Peer {
    /// Returns a peer on an association, which either side may have opened.
    pub fn over(association: Association) -> Self {
        Peer(association)
    }

    /// Connects and announces that it will offer files. Returns after the answer.
    ///
    /// # Errors
    /// Returns an error if the server refused.
    pub async fn push_to(server: &Endpoint, session: [u8; 16]) -> Result<Self, AssociationEnded> {
        Peer::push_with(server, session, SenderRequests::default()).await
    }

    /// Connects in the same way, with requests to the receiver.
    ///
    /// # Errors
    /// Returns an error if the server refused.
    pub async fn push_with(
        server: &Endpoint,
        session: [u8; 16],
        sender_requests: SenderRequests,
    ) -> Result<Self, AssociationEnded> {
        let peer = Peer(connect(server).await.map_err(gone)?);
        let sender = SenderId::from_bytes(SENDER);
        peer.send_message(&Message::Hello { session, intent: Intent::Push { sender, sender_requests } })
            .await?;
        peer.hear_until(|message| matches!(message, Message::Welcome { .. })).await?;
        Ok(peer)
    }

    /// Connects and requests these names with this window. Returns after the answer.
    ///
    /// # Errors
    /// Returns an error if the server refused.
    pub async fn pull_from(
        server: &Endpoint,
        session: [u8; 16],
        window_blocks: u32,
        names: &[&str],
    ) -> Result<Self, AssociationEnded> {
        let peer = Peer(connect(server).await.map_err(gone)?);
        let intent = Intent::Pull { window_blocks, links: Links::Copy, delete: false };
        peer.send_message(&Message::Hello { session, intent }).await?;
        peer.hear_until(|message| matches!(message, Message::Welcome { .. })).await?;
        for name in names {
            peer.send_message(&Message::Want((*name).to_owned())).await?;
        }
        peer.send_message(&Message::WantEnd).await?;
        Ok(peer)
    }

    /// Reads the other side's intent as the accepting side, and welcomes it, with this window if the other side offers.
    ///
    /// # Errors
    /// Returns an error if the other side sends another message first.
    pub async fn welcome(
        association: Association,
        window_blocks: u32,
    ) -> Result<(Self, Intent), AssociationEnded> {
        let peer = Peer(association);
        let first = peer.hear_until(|_| true).await?;
        let Message::Hello { intent, .. } = first else { return Err(gone(format!("{first:?}"))) };
        let terms = match intent {
            Intent::Push { .. } => Terms::Take { window_blocks },
            Intent::Pull { .. } => Terms::Give { sender: SenderId::from_bytes(SENDER) },
        };
        peer.send_message(&Message::Welcome { terms }).await?;
        Ok((peer, intent))
    }

    /// Sends one packet.
    ///
    /// # Errors
    /// Returns an error if the association has ended, or lacks the stream.
    pub async fn send(&self, packet: &Packet) -> Result<(), AssociationEnded> {
        let Packet { stream, unordered, bytes } = packet;
        let options =
            SendOptions { stream: *stream, unordered: *unordered, immediate: true, ..SendOptions::default() };
        self.0.send(bytes.clone(), options).await.map_err(gone)
    }

    /// Sends packets one after the other. Packets that were sent before are a replay.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_all(&self, packets: &[Packet]) -> Result<(), AssociationEnded> {
        for packet in packets {
            self.send(packet).await?;
        }
        Ok(())
    }

    /// Sends a control message, even if it is invalid at this point.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn send_message(&self, message: &Message) -> Result<(), AssociationEnded> {
        self.send(&Packet::control(message)).await
    }

    /// Offers an entry that was changed in 1970.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn offer(&self, id: u32, name: &str, kind: Kind) -> Result<(), AssociationEnded> {
        let changed = FileTime { seconds: 5, nanos: 0 };
        self.send_message(&Message::Offer(Offer { id, name: name.into(), kind, changed, mode: 0o644 })).await
    }

    /// Returns the next message of the other side. Cancel-safe.
    pub async fn receive_message(&self) -> Heard {
        match self.0.recv().await {
            Ok(Some(packet)) => read(packet.stream, packet.payload),
            Ok(None) | Err(_) => Heard::Ended,
        }
    }

    /// Returns the first control message that fits. Ignores all others except `Fail`.
    ///
    /// # Errors
    /// Returns an error if the association ends, the other side sends `Fail`, or no message fits within a minute.
    pub async fn hear_until(&self, fits: impl Fn(&Message) -> bool) -> Result<Message, AssociationEnded> {
        let heard = async {
            loop {
                match self.receive_message().await {
                    Heard::Control(message) if fits(&message) => return Ok(message),
                    Heard::Control(Message::Fail(failure)) => return Err(gone(failure)),
                    Heard::Ended => return Err(gone("the association is over")),
                    _ => {}
                }
            }
        };
        tokio::time::timeout(TIMEOUT, heard).await.map_err(gone)?
    }

    /// Sends only `Alive`, and reads nothing, until the other side has ended the association or `time` has passed.
    pub async fn show_only_that_it_is_there(&self, time: Duration) {
        let alive = async {
            while self.send_message(&Message::Alive).await.is_ok() {
                tokio::time::sleep(ALIVE_EVERY).await;
            }
        };
        let _ = tokio::time::timeout(time, alive).await;
    }

    /// Aborts the association in any state.
    pub fn abort(&self) {
        self.0.abort();
    }

    /// Returns the association, for the layer below the protocol.
    pub fn association(&self) -> &Association {
        &self.0
    }
}

fn read(stream: u16, bytes: Bytes) -> Heard {
    let control = || Message::decode(&bytes).or_else(|_| Message::decode_first(&bytes));
    match stream {
        CONTROL_STREAM => control().map_or(Heard::Unreadable(bytes), Heard::Control),
        DATA_STREAM => Segment::decode(bytes.clone()).map_or(Heard::Unreadable(bytes), Heard::Data),
        _ => Heard::Unreadable(bytes),
    }
}
