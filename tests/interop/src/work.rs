//! Data that is sent while an association is up, and the processing of received data.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Message, RecvError, Reliability, SendError, SendOptions};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, watch};

use crate::arguments::{Limit, Work};
use crate::report::write_line;

/// Maximum number of pieces of standard input that wait to be sent.
const READ_AHEAD: usize = 16;

/// Received data.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Number of received messages that could not be abandoned.
    pub(crate) reliable: u64,
    /// Number of wrong messages.
    wrong: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    /// Set once no more messages will arrive.
    pub(crate) over: bool,
}

impl Tally {
    fn count(&mut self, message: &Message, right: bool) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.messages += u64::from(message.ending);
        self.bytes += message.payload.len() as u64;
        self.wrong += u64::from(!right);
    }

    pub(crate) fn as_json(&self) -> Value {
        let took = self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first);
        json!({
            "messages": self.messages,
            "reliable": self.reliable,
            "bytes": self.bytes,
            "wrong": self.wrong,
            "seconds": took.as_secs_f64(),
        })
    }
}

/// Messages sent to be echoed. The payload protocol identifier of a message is its number.
#[derive(Debug)]
struct Pings {
    sent: Vec<(SendOptions, Bytes)>,
    returned: Vec<bool>,
    /// Latest ordered message that was echoed on each stream.
    latest: BTreeMap<u16, u32>,
}

impl Pings {
    fn new(sizes: &[usize], messages: u32, streams: u16, unordered: bool, limit: Limit) -> Self {
        let mut random = fastrand::Rng::with_seed(u64::from(messages));
        let sent = (0..messages)
            .zip(sizes.iter().cycle())
            .map(|(number, size)| {
                let payload: Bytes = std::iter::repeat_with(|| random.u8(..)).take(*size).collect();
                let options = SendOptions {
                    stream: u16::try_from(number % u32::from(streams.max(1))).unwrap_or(0),
                    ppid: number,
                    unordered: unordered && number % 3 == 1,
                    reliability: limit.of(number),
                    context: u64::from(number),
                    ..SendOptions::default()
                };
                (options, payload)
            })
            .collect();
        Pings { sent, returned: vec![false; messages as usize], latest: BTreeMap::new() }
    }

    /// Returns the number of echoed messages that may not be abandoned.
    fn returned_for_sure(&self) -> u64 {
        let returned = self.sent.iter().zip(&self.returned).filter(|(_, returned)| **returned);
        returned.filter(|((options, _), _)| options.reliability == Reliability::Full).count() as u64
    }

    /// Returns `true` for a message's first echo if it is complete, on its stream, and not ahead of an earlier message.
    fn check(&mut self, echo: &Message) -> bool {
        let Some((options, payload)) = self.sent.get(echo.ppid as usize) else { return false };
        let whole = echo.beginning && echo.ending;
        let same = options.stream == echo.stream && options.unordered == echo.unordered;
        let first = !std::mem::replace(&mut self.returned[echo.ppid as usize], true);
        let in_order = echo.unordered
            || self.latest.insert(echo.stream, echo.ppid).is_none_or(|earlier| earlier < echo.ppid);
        whole && same && first && in_order && *payload == echo.payload
    }
}

/// Receives until the association has ended.
pub(crate) async fn receive(association: Association, work: Work, tally: watch::Sender<Tally>) {
    let mut pings = pings(&work);
    let mut output = tokio::io::stdout();
    loop {
        let message = match association.recv().await {
            Ok(Some(message)) => message,
            Err(RecvError::Restarted) => {
                write_line(&json!({"event": "restarted"}));
                continue;
            }
            Ok(None) | Err(_) => break,
        };
        let right = match &mut pings {
            Some(pings) => pings.check(&message),
            None => true,
        };
        if matches!(work, Work::Pipe { .. }) && write(&mut output, &message.payload).await.is_err() {
            break;
        }
        let reliable = pings.as_ref().map(Pings::returned_for_sure);
        tally.send_modify(|tally| {
            tally.count(&message, right);
            tally.reliable = reliable.unwrap_or(tally.messages);
        });
        if matches!(work, Work::Echo) {
            let Message { stream, ppid, unordered, payload, .. } = message;
            let options = SendOptions { stream, ppid, unordered, ..SendOptions::default() };
            // An ended association reports this to the receiver as well.
            let _ = association.send(payload, options).await;
        }
    }
    tally.send_modify(|tally| tally.over = true);
}

/// Writes and flushes, because the reader counts bytes while the association is up.
async fn write(output: &mut tokio::io::Stdout, payload: &[u8]) -> std::io::Result<()> {
    output.write_all(payload).await?;
    output.flush().await
}

fn pings(work: &Work) -> Option<Pings> {
    match work {
        Work::Ping { sizes, messages, over_streams, unordered, limit } => {
            Some(Pings::new(sizes, *messages, *over_streams, *unordered, *limit))
        }
        _ => None,
    }
}

/// Sends all data.
pub(crate) async fn send(association: &Association, work: &Work) -> Result<(), SendError> {
    match work {
        Work::Echo | Work::Discard => {}
        Work::Ping { .. } => {
            for (options, payload) in pings(work).into_iter().flat_map(|pings| pings.sent) {
                association.send(payload, options).await?;
            }
        }
        Work::Pipe { message_bytes } => {
            let mut input = read_input(*message_bytes);
            while let Some(payload) = input.recv().await {
                association.send(payload, SendOptions::default()).await?;
            }
        }
        Work::Flood { message_bytes, messages } => {
            let payload = Bytes::from(vec![0x5a; *message_bytes]);
            for _ in 0..*messages {
                association.send(payload.clone(), SendOptions::default()).await?;
            }
        }
    }
    Ok(())
}

/// Returns the bytes, and the messages that cannot be abandoned, that have to arrive before the end.
pub(crate) fn due(work: &Work, expected_bytes: u64) -> (u64, u64) {
    match work {
        Work::Ping { messages, limit, .. } => {
            let reliable = (0..*messages).filter(|&number| limit.of(number) == Reliability::Full);
            (0, reliable.count() as u64)
        }
        _ => (expected_bytes, 0),
    }
}

/// Reads standard input in a separate thread, because a read cannot be cancelled.
fn read_input(message_bytes: usize) -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(READ_AHEAD);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut message = Vec::with_capacity(message_bytes);
            let read = input.by_ref().take(message_bytes as u64).read_to_end(&mut message);
            if read.is_err() || message.is_empty() || sender.blocking_send(message.into()).is_err() {
                return;
            }
        }
    });
    receiver
}
