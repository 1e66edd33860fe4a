//! Applications at the two ends of a flow on sockets. They send the same data as those of a simulated flow.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_lab::run::{FlowPlan, Job};
use anabranch_net::{Association, RecvError, Reliability, SendError, SendOptions};
use anabranch_scenario::FlowKind;
use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep_until};

/// Data that an end sends.
pub(super) struct Workload {
    kind: Kind,
    ordered: bool,
    streams: u16,
}

enum Kind {
    /// The same message without end.
    Bulk(Bytes),
    /// This content, once, in messages of this size.
    Transfer(Bytes, usize),
    /// A message at regular times, `count` times or without end.
    Messages { message: Bytes, interval: Duration, count: Option<u64>, reliability: Reliability },
}

/// Data that an end has received.
#[derive(Default)]
pub(super) struct Received {
    pub(super) bytes: u64,
    /// User bytes after the warm-up.
    pub(super) counted_bytes: u64,
    pub(super) last_at: Option<Instant>,
    /// Hash of all data in the order of arrival.
    hash: Sha256,
}

/// Data that an end has to receive.
pub(super) struct Expected {
    pub(super) bytes: u64,
    /// Hash of the content, if it arrives in order.
    hash: Option<[u8; 32]>,
}

impl Workload {
    pub(super) fn of(job: &Job, flow: usize, plan: &FlowPlan) -> Workload {
        let association = &job.scenario.association;
        let (ordered, streams) = (association.ordered, association.streams);
        match &job.scenario.flows[flow].kind {
            FlowKind::Bulk => {
                let message = Bytes::from(vec![0x5A; plan.message_bytes]);
                Workload { kind: Kind::Bulk(message), ordered, streams }
            }
            FlowKind::File(_) => {
                let content = plan.content.clone().unwrap_or_default();
                Workload { kind: Kind::Transfer(content, plan.message_bytes), ordered, streams }
            }
            FlowKind::Messages { size_bytes, interval, count, ordered, streams, reliability } => {
                let message = Bytes::from(vec![0x5A; *size_bytes as usize]);
                let interval = Duration::from_nanos(interval.as_nanos());
                let kind = Kind::Messages { message, interval, count: *count, reliability: *reliability };
                Workload { kind, ordered: *ordered, streams: *streams }
            }
            FlowKind::Video(_) => unreachable!("the plan of a comparison refuses videos"),
        }
    }

    /// Returns the data that the other end has to receive, if it is finite.
    pub(super) fn expected(&self) -> Option<Expected> {
        let in_order = self.ordered && self.streams == 1;
        match &self.kind {
            Kind::Bulk(_) | Kind::Messages { count: None, .. } => None,
            Kind::Transfer(content, _) => Some(Expected {
                bytes: content.len() as u64,
                hash: in_order.then(|| Sha256::digest(content).into()),
            }),
            // Abandoned messages do not arrive.
            Kind::Messages { reliability, .. } if *reliability != Reliability::Full => None,
            Kind::Messages { message, count: Some(count), .. } => {
                Some(Expected { bytes: message.len() as u64 * count, hash: None })
            }
        }
    }

    /// Sends until the end, if there is one, then shuts the association down.
    pub(super) async fn run(&self, association: &Association) -> Result<(), SendError> {
        let mut stream = 0;
        let reliability = match self.kind {
            Kind::Messages { reliability, .. } => reliability,
            Kind::Bulk(_) | Kind::Transfer(..) => Reliability::Full,
        };
        let mut send = async |message: Bytes| {
            let options =
                SendOptions { stream, unordered: !self.ordered, reliability, ..SendOptions::default() };
            stream = (stream + 1) % self.streams;
            association.send(message, options).await
        };
        match &self.kind {
            Kind::Bulk(message) => loop {
                send(message.clone()).await?;
            },
            Kind::Transfer(content, size) => {
                for begin in (0..content.len()).step_by((*size).max(1)) {
                    send(content.slice(begin..content.len().min(begin + size))).await?;
                }
            }
            Kind::Messages { message, interval, count, .. } => {
                let (mut next, mut sent) = (Instant::now(), 0);
                while count.is_none_or(|count| sent < count) {
                    sleep_until(next).await;
                    send(message.clone()).await?;
                    (next, sent) = (next + *interval, sent + 1);
                }
            }
        }
        association.shutdown().await.map_err(SendError::Closed)
    }
}

impl Expected {
    pub(super) fn is_met(&self, received: &Received) -> bool {
        received.bytes >= self.bytes
    }

    /// Returns `true` if the data has arrived as it was sent, as far as that is checked.
    pub(super) fn matches(&self, received: &Received) -> bool {
        let digest = || -> [u8; 32] { received.hash.clone().finalize().into() };
        received.bytes == self.bytes && self.hash.is_none_or(|hash| hash == digest())
    }
}

/// Received data, shared by its reader and the observers.
#[derive(Default)]
pub(super) struct Inbox(Mutex<Received>);

impl Inbox {
    pub(super) fn lock(&self) -> MutexGuard<'_, Received> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Receives until the end.
    pub(super) async fn fill(
        &self,
        association: &Association,
        counted_from: Instant,
        hashed: bool,
    ) -> Result<(), RecvError> {
        while let Some(message) = association.recv().await? {
            let now = Instant::now();
            let mut received = self.lock();
            received.bytes += message.payload.len() as u64;
            received.last_at = Some(now);
            if now >= counted_from {
                received.counted_bytes += message.payload.len() as u64;
            }
            if hashed {
                received.hash.update(&message.payload);
            }
        }
        Ok(())
    }
}
