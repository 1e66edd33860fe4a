//! Packets of one association, in both directions.

use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_net::{Association, RecvError, SendOptions, Snapshot};
use bytes::Bytes;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::{sleep, sleep_until};

use crate::flow_queue::FlowQueue;
use crate::ip::Header;
use crate::message::{FLOWS, Message, Packet};
use crate::reorder::Reorder;
use crate::tally::{Count, Tally};

/// Maximum number of packets between the device and the queue of an association.
pub const MAX_PENDING: usize = 1024;
/// Time after which a packet is given up. TCP has sent it again by then.
const LIFETIME: Duration = Duration::from_millis(500);
/// Minimum of bytes that the association may have accepted and not sent.
const MIN_UNSENT_BYTES: u64 = 64 << 10;
/// Weight of all packets together, twice that of a connection of the lane. With a larger weight than others, a packet that finds no
/// earlier one waits for the message in transmission only, and not for one of each connection.
const WEIGHT: NonZeroU16 = NonZeroU16::new(512).unwrap();
/// Pause before the send buffer is read again.
const PAUSE: Duration = Duration::from_millis(1);

/// Packet of the device, with its flow.
pub type Outgoing = (u16, Bytes);

/// Function that writes a packet to the device. Returns `false` if the device does not accept it.
pub type Output = Arc<dyn Fn(&[u8]) -> bool + Send + Sync>;

/// Error: the peer violates the protocol.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the other side sent a malformed message")]
pub struct Violation;

/// Sends packets until the association or the device ends.
pub(crate) async fn send(association: &Association, packets: &mut mpsc::Receiver<Outgoing>, tally: &Tally) {
    let (mut queue, mut numbers) = (FlowQueue::default(), [0_u32; FLOWS as usize]);
    let (origin, mut room) = (Instant::now(), 0_u64);
    let options = SendOptions::default().unordered();
    let options = match association.supports_partial_reliability() {
        true => options.expires_after(LIFETIME),
        false => options,
    };
    // An identifier that no connection of the lane uses, because packets would wait for the bytes of that one.
    let Ok((mut reserved, _receiver)) = association.open_stream().await else { return };
    reserved.set_priority(WEIGHT);
    let options = SendOptions { stream: reserved.id(), ..options };
    loop {
        if queue.is_empty() {
            let Some((flow, packet)) = packets.recv().await else { return };
            queue.push(Instant::now(), flow, packet);
        }
        let now = Instant::now();
        while let Ok((flow, packet)) = packets.try_recv() {
            queue.push(now, flow, packet);
        }
        if room == 0 {
            room = room_of(&association.snapshot().await);
        }
        if room == 0 {
            sleep(PAUSE).await;
            continue;
        }
        let dropped = queue.dropped();
        let next = queue.pop(now);
        tally.add(Count::Queue, queue.dropped() - dropped);
        let Some((flow, payload)) = next else { continue };
        let bytes = payload.len() as u64;
        room = room.saturating_sub(bytes);
        let number = &mut numbers[usize::from(flow)];
        let sent_us = now.duration_since(origin).as_micros() as u32;
        let message = Message::Packet(Packet { flow, sequence: *number, sent_us, payload });
        *number = number.wrapping_add(1);
        if association.send(message.encode(), options).await.is_err() {
            return;
        }
        tally.add(Count::Sent, 1);
        tally.add(Count::SentBytes, bytes);
    }
}

/// Returns the number of bytes that the association may accept. Further packets wait in the queue of flows, because those in the
/// association keep their order and are not dropped.
fn room_of(snapshot: &Snapshot) -> u64 {
    let windows: u64 = snapshot.paths.iter().map(|path| path.cwnd_bytes).sum();
    MIN_UNSENT_BYTES.max(windows / 4).saturating_sub(snapshot.unsent_unordered_bytes)
}

/// Receives packets until the association ends. `check` returns the reason for which a packet is dropped.
///
/// # Errors
/// Returns [`Violation`].
pub(crate) async fn receive(
    association: &Association,
    check: impl Fn(&Header) -> Result<(), Count>,
    (output, tally): (&Output, &Tally),
) -> Result<(), Violation> {
    let mut reorder = Reorder::new(Instant::now());
    let deliver = |packet: Bytes| write(&packet, output, tally);
    loop {
        let deadline = reorder.deadline();
        let expired = async {
            match deadline {
                Some(deadline) => sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        let message = tokio::select! {
            biased;
            message = association.recv() => message,
            () = expired => {
                reorder.expire(Instant::now(), deliver);
                continue;
            }
        };
        match message {
            Ok(Some(message)) => match Message::decode(&message.payload).map_err(|_| Violation)? {
                Message::Packet(packet) => {
                    let late = reorder.late();
                    reorder.push(Instant::now(), checked(packet, &check, tally), deliver);
                    tally.add(Count::Late, reorder.late() - late);
                }
                Message::Probe => {}
                Message::Hello { .. } | Message::Welcome { .. } | Message::Refused(_) => {
                    return Err(Violation);
                }
            },
            Err(RecvError::Restarted) => reorder = Reorder::new(Instant::now()),
            Ok(None) | Err(_) => return Ok(()),
        }
    }
}

/// Checks a packet. One that has to be dropped becomes empty, and keeps its place in the flow.
fn checked(mut packet: Packet, check: impl Fn(&Header) -> Result<(), Count>, tally: &Tally) -> Packet {
    let verdict = Header::read(&packet.payload).ok_or(Count::Malformed).and_then(|header| check(&header));
    if let Err(count) = verdict {
        tally.add(count, 1);
        packet.payload = Bytes::new();
    }
    packet
}

fn write(packet: &Bytes, output: &Output, tally: &Tally) {
    if packet.is_empty() {
        return;
    }
    if output(packet) {
        tally.add(Count::Received, 1);
        tally.add(Count::ReceivedBytes, packet.len() as u64);
    } else {
        tally.add(Count::Device, 1);
    }
}
