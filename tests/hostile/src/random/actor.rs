//! Common part of both actors: a conversation with the other end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_transfer::protocol::Message;
use fastrand::Rng;
use tokio::time::timeout;

use super::Counts;
use crate::packet::Packet;
use crate::peer::{Heard, Peer};

/// Time to wait for an answer before the next message.
const LISTEN: Duration = Duration::from_millis(1);
/// Maximum time for the transmission of a message: the other side may have stopped reading.
const SEND_WITHIN: Duration = Duration::from_secs(2);
/// Maximum time without a message of the peer.
const SILENT_FOR: Duration = Duration::from_secs(3);

/// Selects the next messages.
pub(super) trait Actor {
    /// Returns the next messages, if any.
    fn next(&mut self, dice: &mut Rng) -> Vec<Packet>;
    /// Processes a message of the other side.
    fn heard(&mut self, heard: Heard);
}

/// Sends this number of messages, or fewer if the association ends, and ends it in a random way.
pub(super) async fn converse(
    peer: &Peer,
    actor: &mut (impl Actor + Send),
    dice: &mut Rng,
    counts: &Counts,
    most: u64,
) {
    let mut sent = 0;
    while sent < most {
        for _ in 0..dice.u8(1..6) {
            for packet in actor.next(dice) {
                match timeout(SEND_WITHIN, peer.send(&packet)).await {
                    Ok(Ok(())) => sent += 1,
                    Ok(Err(_)) | Err(_) => return settle(peer, counts, sent),
                }
            }
        }
        if listen(peer, actor, counts, LISTEN).await.is_none() {
            return settle(peer, counts, sent);
        }
        // A peer without messages must not continue forever.
        sent += u64::from(dice.u8(..30) == 0);
    }
    counts.messages.fetch_add(sent, Ordering::Relaxed);
    end(peer, actor, dice, counts).await;
}

fn settle(peer: &Peer, counts: &Counts, sent: u64) {
    counts.messages.fetch_add(sent, Ordering::Relaxed);
    peer.abort();
}

/// Reads messages until none has arrived for a while. Returns `None` if the other side accepts no more.
async fn listen(
    peer: &Peer,
    actor: &mut (impl Actor + Send),
    counts: &Counts,
    quiet: Duration,
) -> Option<()> {
    while let Ok(heard) = timeout(quiet, peer.receive_message()).await {
        match heard {
            Heard::Ended | Heard::Control(Message::Fail(_) | Message::Finished) => return None,
            Heard::Data(_) => {
                counts.heard_segments.fetch_add(1, Ordering::Relaxed);
                actor.heard(heard);
            }
            heard => {
                let is_deletion = matches!(heard, Heard::Control(Message::Deleted { failure: None, .. }));
                counts.heard_deletions.fetch_add(u64::from(is_deletion), Ordering::Relaxed);
                actor.heard(heard);
            }
        }
    }
    Some(())
}

async fn end(peer: &Peer, actor: &mut (impl Actor + Send), dice: &mut Rng, counts: &Counts) {
    match dice.u8(..100) {
        0..50 => peer.abort(),
        50..75 => {
            let _ = timeout(Duration::from_secs(1), peer.association().shutdown()).await;
        }
        75..97 => {
            listen(peer, actor, counts, Duration::from_millis(20)).await;
            let _ = peer.send_message(&Message::Finished).await;
            listen(peer, actor, counts, Duration::from_millis(20)).await;
        }
        // Stays silent, or sends only `Alive`, without reading.
        97 => peer.show_only_that_it_is_there(SILENT_FOR).await,
        _ => tokio::time::sleep(SILENT_FOR).await,
    }
    peer.abort();
}
