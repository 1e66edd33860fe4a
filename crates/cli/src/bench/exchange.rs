//! A test from `Begin` to its figures, the same on both sides.

use std::sync::{Arc, Mutex};

use anabranch_net::{Association, Message, RecvError};
use anyhow::{anyhow, bail};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use super::meter::{Interval, Meter};
use super::plan::{Plan, Side};
use super::protocol::{CONTROL_STREAM, Control, Figure, Sent, read, send_control};
use super::sender::{Tally, lock, send_all};

/// Smallest part of an interval, as a fraction of it, that is reported after the end of a test by time.
const LEAST_REST: f64 = 0.1;

/// Figures of both ends for one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DirectionOutcome {
    pub(super) sent: Option<Sent>,
    pub(super) received: Option<Figure>,
}

/// Figures of both ends for both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    /// Direction in which this side sends.
    pub(super) out: DirectionOutcome,
    /// Direction in which this side receives.
    pub(super) back: DirectionOutcome,
}

#[derive(Clone, Debug)]
pub(super) struct SenderInterval {
    pub(super) interval: Interval,
    /// Set if this side is the sender.
    pub(super) ours: bool,
}

/// A running test on one side.
pub(super) struct Exchange {
    association: Association,
    plan: Plan,
    side: Side,
    start: Instant,
    /// Control messages to send. Reading never waits until they are sent, since both sides would then wait for each other.
    say: mpsc::UnboundedSender<Control>,
    sent: Arc<Mutex<Tally>>,
    received: Tally,
    /// Total number of bytes that the peer reported as sent.
    announced: Option<u64>,
    drained: Arc<Notify>,
    outcome: Outcome,
    tasks: JoinSet<anyhow::Result<Option<Sent>>>,
}

impl Exchange {
    /// Begins the test and starts this side's sender, if it has one. The sender's intervals are passed to `intervals`, or sent to
    /// the peer if it is `None`.
    pub(super) fn begin(
        association: &Association,
        plan: Plan,
        side: Side,
        intervals: Option<mpsc::UnboundedSender<SenderInterval>>,
    ) -> Self {
        let start = Instant::now();
        let sent = Arc::new(Mutex::new(Tally::of_sender(&plan, start)));
        let drained = Arc::new(Notify::new());
        let (say, waiting) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(write(association.clone(), waiting));
        if plan.sends(side) {
            let (sent, drained) = (Arc::clone(&sent), Arc::clone(&drained));
            let sending = Sending { association: association.clone(), plan, start, sent, drained };
            tasks.spawn(sending.run(say.clone(), intervals));
        }
        let received = Tally::of_receiver(&plan, start);
        let association = association.clone();
        let outcome = Outcome::default();
        Exchange {
            association,
            plan,
            side,
            start,
            say,
            sent,
            received,
            announced: None,
            drained,
            outcome,
            tasks,
        }
    }

    /// Returns the seconds since the beginning.
    pub(super) fn elapsed_s(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Runs the test until both sides have the figures. Cancel-safe: a further call continues.
    ///
    /// # Errors
    /// Returns the reason why the test was interrupted.
    pub(super) async fn run(&mut self, heard: &mut impl FnMut(SenderInterval)) -> anyhow::Result<()> {
        while !self.is_complete() {
            tokio::select! {
                message = self.association.recv() => match message {
                    Ok(Some(message)) => self.take(message, heard)?,
                    Ok(None) => bail!("the peer closed in the middle of the test"),
                    Err(RecvError::Restarted) => bail!("the peer restarted in the middle of the test"),
                    Err(error) => return Err(error.into()),
                },
                Some(ended) = self.tasks.join_next() => {
                    let sent = ended.map_err(|error| anyhow!(error))??;
                    self.outcome.out.sent = self.outcome.out.sent.or(sent);
                }
            }
        }
        Ok(())
    }

    /// Sends the remaining control messages and returns the figures.
    ///
    /// # Errors
    /// Returns the reason why the messages could not be sent.
    pub(super) async fn finish(self) -> anyhow::Result<Outcome> {
        let Exchange { say, mut tasks, mut outcome, .. } = self;
        drop(say);
        while let Some(ended) = tasks.join_next().await {
            let sent = ended.map_err(|error| anyhow!(error))??;
            outcome.out.sent = outcome.out.sent.or(sent);
        }
        Ok(outcome)
    }

    /// Returns the figures up to now of a test that has not ended.
    pub(super) async fn partial_outcome(&self) -> Outcome {
        let mut outcome = self.outcome;
        if self.plan.sends(self.side) && outcome.out.sent.is_none() {
            outcome.out.sent = Some(sender_figures(&self.association, &self.sent).await);
        }
        if self.plan.receives(self.side) && outcome.back.received.is_none() {
            outcome.back.received = Some(self.received.figure_at(Instant::now()));
        }
        outcome
    }

    fn is_complete(&self) -> bool {
        let heard = !self.plan.sends(self.side) || self.outcome.out.received.is_some();
        let got = !self.plan.receives(self.side) || self.outcome.back.sent.is_some();
        heard && got
    }

    fn take(&mut self, message: Message, heard: &mut impl FnMut(SenderInterval)) -> anyhow::Result<()> {
        if message.stream != CONTROL_STREAM {
            if !self.plan.receives(self.side) {
                bail!("the peer sent data without an agreement");
            }
            let now = Instant::now();
            self.received.add(now, message.payload.len() as u64, message.ending);
            return self.report_received();
        }
        match read(&message)? {
            Control::Interval(interval) => heard(SenderInterval { interval, ours: false }),
            Control::Done { total_bytes } if self.plan.receives(self.side) => {
                self.announced = Some(total_bytes);
                return self.report_received();
            }
            Control::Received(figure) if self.plan.sends(self.side) => {
                self.outcome.out.received = Some(figure);
                self.drained.notify_one();
            }
            Control::Sent(sent) if self.outcome.back.received.is_some() => {
                self.outcome.back.sent = Some(sent);
            }
            _ => bail!("the peer sent a control message out of turn"),
        }
        Ok(())
    }

    /// Reports the receiver's figure to the peer once all its bytes have arrived.
    fn report_received(&mut self) -> anyhow::Result<()> {
        let Some(announced) = self.announced else { return Ok(()) };
        let got = self.received.total_bytes();
        if got > announced {
            bail!("the peer says that it sent {announced} bytes, and {got} arrived");
        }
        if got == announced && self.outcome.back.received.is_none() {
            let figure = self.received.final_figure();
            self.outcome.back.received = Some(figure);
            // A writer that has ended reports its own error.
            let _ = self.say.send(Control::Received(figure));
        }
        Ok(())
    }
}

/// Sends control messages from the channel.
async fn write(
    association: Association,
    mut waiting: mpsc::UnboundedReceiver<Control>,
) -> anyhow::Result<Option<Sent>> {
    while let Some(control) = waiting.recv().await {
        send_control(&association, &control).await?;
    }
    Ok(None)
}

/// Returns the figures of this side's sender up to now.
async fn sender_figures(association: &Association, tally: &Mutex<Tally>) -> Sent {
    let snapshot = association.snapshot().await;
    Sent {
        figure: lock(tally).final_figure(),
        lost_bytes: snapshot.paths.iter().map(|path| path.lost_bytes).sum(),
        retransmissions: snapshot.statistics.retransmissions,
    }
}

struct Sending {
    association: Association,
    plan: Plan,
    start: Instant,
    sent: Arc<Mutex<Tally>>,
    /// Notified when the peer has received everything.
    drained: Arc<Notify>,
}

impl Sending {
    /// Sends until the limit, with reports, and ends when the peer has received everything.
    async fn run(
        self,
        say: mpsc::UnboundedSender<Control>,
        intervals: Option<mpsc::UnboundedSender<SenderInterval>>,
    ) -> anyhow::Result<Option<Sent>> {
        let report = |interval: Interval| match &intervals {
            // A receiver that was dropped needs no more intervals.
            Some(intervals) => drop(intervals.send(SenderInterval { interval, ours: true })),
            None => drop(say.send(Control::Interval(interval))),
        };
        let mut meter = Meter::default();
        let everything = async {
            send_all(&self.association, &self.plan, self.start, &self.sent).await?;
            let total_bytes = lock(&self.sent).total_bytes();
            // A writer that has ended reports its own error.
            let _ = say.send(Control::Done { total_bytes });
            self.drained.notified().await;
            lock(&self.sent).arrived(Instant::now());
            anyhow::Ok(())
        };
        match self.plan.interval() {
            None => everything.await?,
            Some(interval) => {
                let mut everything = std::pin::pin!(everything);
                let mut ticks = tokio::time::interval_at(self.start + interval, interval);
                ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
                loop {
                    tokio::select! {
                        ended = &mut everything => break ended?,
                        _ = ticks.tick() => report(self.measure(&mut meter).await),
                    }
                }
                // Sending the last messages of a test by time takes a short time, which is not reported as an interval.
                let rest_s = self.start.elapsed().as_secs_f64() - meter.at_s();
                if self.plan.time().is_none() || rest_s > LEAST_REST * interval.as_secs_f64() {
                    report(self.measure(&mut meter).await);
                }
            }
        }
        let sent = sender_figures(&self.association, &self.sent).await;
        let _ = say.send(Control::Sent(sent));
        Ok(Some(sent))
    }

    async fn measure(&self, meter: &mut Meter) -> Interval {
        let snapshot = self.association.snapshot().await;
        let elapsed = self.start.elapsed();
        meter.interval(&snapshot, elapsed.as_secs_f64(), elapsed <= self.plan.omit())
    }
}
