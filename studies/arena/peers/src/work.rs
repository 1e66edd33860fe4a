//! Works of a run: bulk data, a file, or messages. The rules are those of `studies/arena/peer.py`.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use serde_json::{Value, json};
use tokio::time::timeout_at;

use crate::clock::Clock;
use crate::{Arguments, Channel, Role, WorkKind};

/// Length of the blocks of bulk data and files.
const BLOCK_BYTES: usize = 1 << 16;
/// Length of the intervals in which arrivals are counted, in seconds.
const BIN_S: f64 = 0.1;
/// Time after the last message in which late ones still count.
const GRACE: Duration = Duration::from_secs(5);

/// Runs one side of a work, and returns its figures and the channel, which stays open.
pub(crate) async fn run(mut channel: Channel, arguments: &Arguments, clock: &Clock) -> (Value, Channel) {
    let end = Duration::from_secs_f64(arguments.seconds);
    let figures = match (arguments.work, arguments.role) {
        (WorkKind::Bulk, Role::Send) => {
            drop(timeout_at(clock.at(end), send_bulk(&channel)).await);
            json!({})
        }
        (WorkKind::File, Role::Send) => {
            drop(timeout_at(clock.at(end), send_file(&mut channel, arguments.bytes)).await);
            json!({})
        }
        (WorkKind::Bulk, Role::Receive) => {
            let mut arrivals = Arrivals::default();
            drop(timeout_at(clock.at(end), receive(&mut channel, clock, usize::MAX, &mut arrivals)).await);
            arrivals.figures()
        }
        (WorkKind::File, Role::Receive) => {
            let mut arrivals = Arrivals::default();
            drop(
                timeout_at(clock.at(end), receive(&mut channel, clock, arguments.bytes, &mut arrivals)).await,
            );
            drop(channel.outgoing.send(Bytes::from_static(b"received")).await);
            arrivals.figures()
        }
        (WorkKind::Messages, Role::Send) => send_messages(&channel, arguments, clock, end).await,
        (WorkKind::Messages, Role::Receive) => {
            let mut delays = Vec::new();
            let receiving = receive_messages(&mut channel, clock, arguments.bytes, &mut delays);
            drop(timeout_at(clock.at(end + GRACE), receiving).await);
            json!({"delays_ms": delays})
        }
    };
    (figures, channel)
}

async fn send_bulk(channel: &Channel) {
    let block = Bytes::from_static(&[0; BLOCK_BYTES]);
    while channel.outgoing.send(block.clone()).await.is_ok() {}
}

async fn send_file(channel: &mut Channel, length: usize) {
    let block = Bytes::from_static(&[0; BLOCK_BYTES]);
    let mut left = length;
    while left > 0 {
        let part = block.slice(..left.min(BLOCK_BYTES));
        left -= part.len();
        if channel.outgoing.send(part).await.is_err() {
            return;
        }
    }
    channel.incoming.recv().await;
}

/// Bytes that arrived in each tenth of a second.
#[derive(Default)]
struct Arrivals {
    bins: BTreeMap<u64, usize>,
    total: usize,
    last_s: f64,
}

impl Arrivals {
    fn count(&mut self, at_s: f64, length: usize) {
        self.last_s = at_s;
        *self.bins.entry((at_s / BIN_S) as u64).or_default() += length;
        self.total += length;
    }

    fn figures(&self) -> Value {
        let bins: Vec<_> = self.bins.iter().collect();
        json!({"bytes": self.total, "last_s": self.last_s, "bins": bins})
    }
}

/// Receives this number of bytes, or all until the peer ends.
async fn receive(channel: &mut Channel, clock: &Clock, length: usize, arrivals: &mut Arrivals) {
    while arrivals.total < length {
        let Some(data) = channel.incoming.recv().await else { return };
        arrivals.count(clock.now(), data.len());
    }
}

/// Sends messages at equal intervals. Each contains the time at which it was due: waiting counts as delay.
async fn send_messages(channel: &Channel, arguments: &Arguments, clock: &Clock, end: Duration) -> Value {
    let begin = clock.now();
    let count = (arguments.seconds * arguments.per_s).round() as u32;
    let messages = async {
        for number in 0..count {
            let due = begin + f64::from(number) / arguments.per_s;
            clock.until(Duration::from_secs_f64(due)).await;
            let mut message = BytesMut::zeroed(arguments.bytes);
            message[..8].copy_from_slice(&due.to_be_bytes());
            if channel.outgoing.send(message.freeze()).await.is_err() {
                return;
            }
        }
    };
    drop(timeout_at(clock.at(end + GRACE), messages).await);
    clock.until(end + GRACE).await;
    json!({"messages": count})
}

/// Appends the delay of each message in milliseconds.
async fn receive_messages(channel: &mut Channel, clock: &Clock, length: usize, delays: &mut Vec<f64>) {
    let mut buffer = BytesMut::new();
    while let Some(data) = channel.incoming.recv().await {
        buffer.extend_from_slice(&data);
        while buffer.len() >= length {
            let mut message = buffer.split_to(length);
            delays.push(1000.0 * (clock.now() - message.get_f64()));
        }
    }
}
