//! Measurement of an association with a gateway: round trip, rate in both directions, and loss.
//!
//! The user's side opens one stream. The gateway first sends bytes without meaning on it, then the user's side does. Each side
//! bounds the bytes and the time.

use std::time::{Duration, Instant};

use anabranch_net::{Association, RecvStream, SendStream, Snapshot};
use bytes::Bytes;
use tokio::time::{sleep, timeout, timeout_at};

use crate::failure::Failure;
use crate::message::{Answer, MeasureBounds, Notice, Request};
use crate::request::{Outcome, answer, request};
use crate::session::{Connected, send_probe};

/// Maximum bounds that a gateway accepts. It shortens longer measurements.
const MAX_BOUNDS: MeasureBounds = MeasureBounds { bytes: 64 << 20, time: Duration::from_secs(10) };
/// Length of a message with bytes without meaning.
const MESSAGE_BYTES: usize = 16 << 10;
/// Number of probes for the round trip of an idle association.
const PROBES: usize = 5;
/// Time for an answer, and for bytes that are on their way at the end of the measurement.
const ANSWERED_WITHIN: Duration = Duration::from_secs(3);
/// Time between two samples of what the peer has acknowledged.
const SAMPLED_EVERY: Duration = Duration::from_millis(2);

/// Returns the maximum time of a whole measurement, after the association was opened.
fn longest(bounds: MeasureBounds) -> Duration {
    (bounds.time + ANSWERED_WITHIN) * 2 + ANSWERED_WITHIN
}

/// Result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Round-trip time while no data was sent.
    pub rtt: Duration,
    /// Longest smoothed round-trip time of a path at the end of the bytes to the gateway.
    pub loaded_rtt: Option<Duration>,
    /// Rate of bytes from the gateway, in bits per second.
    pub from_gateway_bps: Option<f64>,
    /// Rate of bytes to the gateway, in bits per second.
    pub to_gateway_bps: Option<f64>,
    /// Lost share of the bytes that this side has sent.
    pub loss: f64,
    /// Bytes received and acknowledged.
    pub bytes: u64,
}

/// Sum of the bytes that have arrived within a sampling interval or before.
#[derive(Clone, Copy, Debug)]
struct Sample {
    begun: Instant,
    /// Time of the latest arrival.
    at: Instant,
    bytes: u64,
}

/// Samples of an amount that grows. Their number depends on the time only, not on the peer's messages.
#[derive(Debug, Default)]
struct Progress {
    /// Time and bytes of the first arrival.
    first: Option<(Instant, u64)>,
    samples: Vec<Sample>,
}

impl Progress {
    fn add(&mut self, now: Instant, bytes: u64) {
        self.first.get_or_insert((now, bytes));
        match self.samples.last_mut() {
            Some(last) if now.duration_since(last.begun) < SAMPLED_EVERY => {
                (last.at, last.bytes) = (now, bytes);
            }
            _ => self.samples.push(Sample { begun: now, at: now, bytes }),
        }
    }

    fn total(&self) -> u64 {
        self.samples.last().map_or(0, |sample| sample.bytes)
    }

    /// Returns the rate of the second half of the bytes in bits per second: the first half includes slow start. If the second half
    /// lies within one sample, all bytes after the first arrival count.
    fn rate_bps(&self) -> Option<f64> {
        let last = self.samples.last()?;
        let since = |(at, bytes): (Instant, u64)| {
            let seconds = last.at.duration_since(at).as_secs_f64();
            #[allow(clippy::cast_precision_loss)]
            let bits = (last.bytes - bytes) as f64 * 8.0;
            (seconds > 0.0 && bits > 0.0).then(|| bits / seconds)
        };
        let half = self.samples.iter().find(|sample| sample.bytes >= last.bytes / 2)?;
        since((half.at, half.bytes)).or_else(|| since(self.first?))
    }
}

/// Measures an association that carries nothing else.
///
/// # Errors
/// Returns the failure of the request, or [`Failure::NoGateway`] if the association ended or the gateway did not answer in time.
pub async fn measure(connected: &Connected, bounds: MeasureBounds) -> Result<Measured, Failure> {
    let association = connected.association();
    let rtt = idle_rtt(association).await?;
    let (mut sender, mut receiver) = association.open_stream().await.map_err(|_| Failure::NoGateway)?;
    let wanted = Request::Measure(bounds);
    let asked = request(&mut sender, &mut receiver, &wanted);
    match timeout(ANSWERED_WITHIN, asked).await {
        Ok(Outcome::Ready(_)) => {}
        // Gateways of earlier versions do not know the request.
        Ok(Outcome::Failed(Failure::Malformed)) => return Err(Failure::Version),
        Ok(Outcome::Failed(failure)) => return Err(failure),
        Ok(Outcome::Lost) | Err(_) => return Err(Failure::NoGateway),
    }
    let received = receive(&mut receiver, bounds).await;
    receiver.stop(0);
    let before = sums(&association.snapshot().await);
    let sent = send_and_sample(association, &mut sender, bounds).await;
    let snapshot = association.snapshot().await;
    let after = sums(&snapshot);
    if association.is_closed() {
        return Err(Failure::NoGateway);
    }
    Ok(Measured {
        rtt,
        loaded_rtt: snapshot.paths.iter().filter_map(|path| path.srtt).max(),
        from_gateway_bps: received.rate_bps(),
        to_gateway_bps: sent.rate_bps(),
        loss: share(after.lost.saturating_sub(before.lost), after.sent.saturating_sub(before.sent)),
        bytes: received.total() + sent.total(),
    })
}

/// Sums over the paths of an association.
struct Sums {
    sent: u64,
    lost: u64,
    delivered: u64,
}

fn sums(snapshot: &Snapshot) -> Sums {
    let sum = |value: fn(&anabranch_net::PathSnapshot) -> u64| snapshot.paths.iter().map(value).sum();
    Sums {
        sent: sum(|path| path.sent_bytes),
        lost: sum(|path| path.lost_bytes),
        delivered: sum(|path| path.delivered_bytes),
    }
}

#[allow(clippy::cast_precision_loss)]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / (whole as f64).max(1.0)
}

/// Returns the median time between a probe and its answer.
async fn idle_rtt(association: &Association) -> Result<Duration, Failure> {
    let mut times = Vec::new();
    for _ in 0..PROBES {
        let sent = Instant::now();
        let replied = async {
            send_probe(association).await?;
            association.recv().await.ok().flatten()
        };
        let message = timeout(ANSWERED_WITHIN, replied).await.ok().flatten().ok_or(Failure::NoGateway)?;
        if !matches!(Notice::decode(&message.payload), Ok(Notice::ProbeReply { .. })) {
            return Err(Failure::Malformed);
        }
        times.push(sent.elapsed());
    }
    times.sort_unstable();
    Ok(times[PROBES / 2])
}

/// Receives bytes until their end or the end of the time.
async fn receive(receiver: &mut RecvStream, bounds: MeasureBounds) -> Progress {
    let mut progress = Progress::default();
    let deadline = tokio::time::Instant::now() + bounds.time + ANSWERED_WITHIN;
    while let Ok(Ok(Some(message))) = timeout_at(deadline, receiver.recv()).await {
        let total = progress.total() + message.payload.len() as u64;
        progress.add(Instant::now(), total);
        if total >= bounds.bytes.into() {
            break;
        }
    }
    progress
}

/// Sends bytes, and samples which of them the gateway acknowledges.
async fn send_and_sample(
    association: &Association,
    sender: &mut SendStream,
    bounds: MeasureBounds,
) -> Progress {
    let before = sums(&association.snapshot().await).delivered;
    let mut progress = Progress::default();
    let sampling = async {
        while progress.total() < bounds.bytes.into() {
            sleep(SAMPLED_EVERY).await;
            // A path that is removed in the meantime takes its count along.
            let delivered = sums(&association.snapshot().await).delivered.saturating_sub(before);
            if delivered > progress.total() {
                progress.add(Instant::now(), delivered);
            }
        }
    };
    let sending = async {
        send_filler(sender, bounds).await;
        // Sampling ends with the last acknowledgement.
        std::future::pending::<()>().await;
    };
    let both = async {
        tokio::select! {
            () = sampling => {}
            () = sending => {}
            _ = association.closed() => {}
        }
    };
    let _ = timeout(bounds.time, both).await;
    progress
}

/// Sends bytes until a bound is reached or the peer reads no more. Bytes that were not accepted in time are discarded.
async fn send_filler(sender: &mut SendStream, bounds: MeasureBounds) {
    let message = Bytes::from(vec![0; MESSAGE_BYTES]);
    let mut left = bounds.bytes as usize;
    let sending = async {
        while left > 0 {
            let next = message.slice(..left.min(MESSAGE_BYTES));
            left -= next.len();
            if sender.send(next).await.is_err() {
                return;
            }
        }
    };
    // The stream may have ended in the meantime.
    let _ = match timeout(bounds.time, sending).await {
        Ok(()) => sender.finish(),
        Err(_) => sender.reset(0),
    };
}

/// Serves a measurement: sends bytes, and discards those of the peer.
pub(crate) async fn answer_measurement(
    (mut sender, mut receiver): (SendStream, RecvStream),
    bounds: MeasureBounds,
) {
    let bounds =
        MeasureBounds { bytes: bounds.bytes.min(MAX_BOUNDS.bytes), time: bounds.time.min(MAX_BOUNDS.time) };
    if answer(&mut sender, Answer::Ready { port: 0 }).await.is_err() {
        return;
    }
    let discarding = async {
        let mut discarded = 0;
        while let Ok(Some(message)) = receiver.recv().await {
            discarded += message.payload.len();
            if discarded > bounds.bytes as usize {
                return;
            }
        }
    };
    let both = async {
        tokio::join!(discarding, send_filler(&mut sender, bounds));
    };
    let _ = timeout(longest(bounds), both).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_excludes_the_first_half_of_the_bytes() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut progress = Progress::default();
        assert_eq!(progress.rate_bps(), None);
        for (millis, bytes) in [(500, 1000), (999, 9000), (1000, 10_000), (1500, 15_000), (2000, 20_000)] {
            progress.add(at(millis), bytes);
        }
        assert_eq!(progress.samples.len(), 4);
        assert_eq!(progress.rate_bps(), Some(80_000.0));
        assert_eq!(progress.total(), 20_000);
    }

    #[test]
    fn arrivals_within_one_sample_have_a_rate() {
        let start = Instant::now();
        let mut progress = Progress::default();
        progress.add(start, 1000);
        assert_eq!(progress.rate_bps(), None, "one arrival has none");
        progress.add(start + Duration::from_millis(1), 11_000);
        assert_eq!(progress.samples.len(), 1);
        assert_eq!(progress.rate_bps(), Some(80e6));
    }
}
