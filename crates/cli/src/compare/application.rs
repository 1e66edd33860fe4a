//! Applications at the two ends of a flow on sockets.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_lab::run::{Expected, FlowPlan, Piece, Workload};
use anabranch_net::{Association, RecvError, Reliability, SendError, SendOptions};
use bytes::Bytes;
use tokio::time::{Instant, sleep_until};

/// Sends the workload of a flow until its end, and shuts the association down then.
pub(super) async fn send(plan: &FlowPlan, association: &Association) -> Result<(), SendError> {
    let mut stream = 0;
    let mut send = async |message: Bytes, reliability: Reliability| {
        let options = SendOptions { stream, unordered: !plan.ordered, reliability, ..SendOptions::default() };
        stream = (stream + 1) % plan.streams;
        association.send(message, options).await
    };
    match &plan.workload {
        Workload::Bulk { message } => loop {
            send(message.clone(), Reliability::Full).await?;
        },
        Workload::Transfer { content, message_bytes } => {
            for begin in (0..content.len()).step_by((*message_bytes).max(1)) {
                let end = content.len().min(begin + message_bytes);
                send(content.slice(begin..end), Reliability::Full).await?;
            }
        }
        Workload::Messages { message, interval, count, reliability } => {
            let interval = Duration::from(*interval);
            let (mut next, mut sent) = (Instant::now(), 0);
            while count.is_none_or(|count| sent < count) {
                sleep_until(next).await;
                send(message.clone(), *reliability).await?;
                (next, sent) = (next + interval, sent + 1);
            }
        }
        Workload::Video(_) | Workload::Forward(_) => {
            unreachable!("the plan of a comparison refuses videos and forwarded programs")
        }
    }
    association.shutdown().await.map_err(SendError::Closed)
}

/// Data that an end has received.
#[derive(Default)]
pub(super) struct Received {
    /// User bytes after the warm-up.
    pub(super) counted_bytes: u64,
    pub(super) last_at: Option<Instant>,
    /// Data that the end is to receive, if it has a last byte.
    pub(super) expected: Option<Expected>,
}

/// Received data, shared by the task that reads it and the task that measures it.
#[derive(Default)]
pub(super) struct Inbox(Mutex<Received>);

impl Inbox {
    /// Creates the inbox of an end that expects this data.
    pub(super) fn new(expected: Option<Expected>) -> Self {
        Inbox(Mutex::new(Received { expected, ..Received::default() }))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives until the end.
    pub(super) async fn fill(
        &self,
        association: &Association,
        counted_from: Instant,
    ) -> Result<(), RecvError> {
        while let Some(message) = association.recv().await? {
            let now = Instant::now();
            let mut received = self.lock();
            received.last_at = Some(now);
            if now >= counted_from {
                received.counted_bytes += message.payload.len() as u64;
            }
            if let Some(expected) = &mut received.expected {
                let (stream, unordered, ending) = (message.stream, message.unordered, message.ending);
                expected.read(&Piece { stream, unordered, bytes: &message.payload, ending });
            }
        }
        Ok(())
    }
}
