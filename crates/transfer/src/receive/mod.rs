//! Receiving side of a transfer.
//!
//! A plain state machine on its own thread ([`Machine`]) makes the decisions of the protocol, so hashing and writing delay no other
//! task. A task passes messages between the thread and the association.

#[cfg(test)]
mod bounds;
mod deletion;
mod machine;
mod open;
mod refusals;
mod tally;
#[cfg(test)]
mod tests;
#[cfg(all(test, unix))]
mod waits;

use std::time::{Duration, Instant};

use anabranch_net::Association;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, timeout};

use self::machine::Machine;
pub(crate) use self::tally::Tally;
use crate::accept::Accept;
use crate::cancel::Cancel;
use crate::descriptors::Share;
use crate::error::TransferError;
use crate::framing::{self, ALIVE_EVERY, END_WITHIN, IncomingMessage, OutgoingMessage};
use crate::identity::SenderId;
use crate::moment::{Activity, Moment};
use crate::name::{BadName, Name};
use crate::part_lock::PartLock;
use crate::protocol::{Failure, Message, OnClash, Reason, SenderRequests};
use crate::report::Report;
use crate::store::{Folder, Pipe};

/// Maximum number of messages that wait for the thread; the association holds the rest back.
const WAITING_MESSAGES: usize = 16;
/// Maximum number of the thread's messages that wait to be sent. A peer that does not read the messages blocks the thread, and
/// thereby its own transfer.
const WAITING_ANSWERS: usize = 16;

/// Destination of received content.
#[derive(Clone, Debug)]
pub enum Store {
    /// A folder, each file under its name.
    Folder(Folder),
    /// A pipe, for one file.
    Pipe(Pipe),
}

impl Store {
    /// Returns the same store for files of this sender.
    pub(crate) fn of_sender(&self, sender: SenderId) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.owned_by(sender.owner())),
            Store::Pipe(pipe) => Store::Pipe(pipe.clone()),
        }
    }

    /// Returns the same store with the sender's requests.
    pub(crate) fn with_sender_requests(
        self,
        sender_requests: SenderRequests,
        decided: Option<OnClash>,
    ) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.with_sender_requests(sender_requests, decided)),
            Store::Pipe(pipe) => Store::Pipe(pipe),
        }
    }

    /// Returns the same store for a sender without the right to replace files.
    pub(crate) fn without_overwriting(self) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.without_overwriting()),
            Store::Pipe(pipe) => Store::Pipe(pipe),
        }
    }

    /// Returns the store with a share, from which its files take their descriptors.
    pub(crate) fn with_descriptors(self, share: Share) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.with_descriptors(share)),
            Store::Pipe(pipe) => Store::Pipe(pipe),
        }
    }

    /// Returns the name of the part file of an offered name, by which transfers of the same name detect each other.
    fn part_of(&self, name: &Name) -> String {
        match self {
            Store::Folder(folder) => format!("{}/{}", folder.within(), folder.part_of(name)),
            Store::Pipe(_) => String::new(),
        }
    }

    fn admit(&self, name: &str) -> Result<Name, BadName> {
        match self {
            Store::Folder(folder) => folder.admit(name),
            Store::Pipe(_) => Name::new(name),
        }
    }

    fn failure(&self, name: &Name, error: &std::io::Error) -> Failure {
        match self {
            Store::Folder(folder) => folder.failure(name, error),
            Store::Pipe(_) => Failure::new(
                Reason::System,
                format!("cannot write {name} to its pipe: {error}; check what reads from it"),
            ),
        }
    }
}

/// Treatment of offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The receiver stores the offered entries.
    #[default]
    Store,
    /// The receiver reports the names that it would store, and stores none.
    DryRun,
    /// The receiver reports the offers, and stores none.
    List,
}

/// Side that has requested the removal of entries that the source does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeletionInitiator {
    Source,
    Receiver,
}

/// Input of the thread.
#[derive(Debug)]
pub(crate) enum Input {
    Heard(IncomingMessage),
    /// A tick of the timer.
    Tick,
    /// Work that the thread had started elsewhere is done.
    Wake,
}

/// Configuration of a receiver.
#[derive(Clone)]
pub(crate) struct Receiving {
    pub(crate) store: Store,
    /// Choice of the offered names to store.
    pub(crate) accept: Accept,
    /// Bounds that a person has confirmed, used up by all associations of the transfer.
    pub(crate) tally: Option<Tally>,
    pub(crate) window_blocks: u32,
    /// Silence after which the association counts as lost.
    pub(crate) silence: Duration,
    pub(crate) report: Report,
    pub(crate) activity: Activity,
    /// Time limit of the first offer; `None` for no limit.
    pub(crate) first_offer_within: Option<Duration>,
    pub(crate) part_lock: PartLock,
    pub(crate) mode: Mode,
    /// Removals of this transfer; `None` if they are not permitted.
    pub(crate) deletion: Option<DeletionInitiator>,
}

/// Returns the channel of messages from the thread to the association.
fn answers() -> (mpsc::Sender<OutgoingMessage>, mpsc::Receiver<OutgoingMessage>) {
    mpsc::channel(WAITING_ANSWERS)
}

/// Receives all offers until everything is done. Dropping the future ends the thread after it has synced its journals; hashes and
/// comparisons in progress are abandoned.
pub(crate) async fn receive(association: &Association, receiving: Receiving) -> Result<(), TransferError> {
    let (input, inputs) = mpsc::channel(WAITING_MESSAGES);
    let (output, mut outputs) = answers();
    let cancel = Cancel::default();
    let _cancel_on_drop = cancel.on_drop();
    let watch = Watch::new(&receiving, &input);
    let (heard, silence) = (receiving.activity.heard.clone(), receiving.silence);
    let waker = input.downgrade();
    let machine = Machine::new(receiving, output, cancel.clone(), move || {
        // If the channel is full, the thread has inputs, and checks for finished work with the next one.
        let _ = waker.upgrade().map(|input| input.try_send(Input::Wake));
    });
    let worker = tokio::task::spawn_blocking(move || machine.run(inputs));
    let interrupted = tokio::select! {
        ended = receive_messages(association, input, &heard) => ended.err(),
        ended = send_messages(association, &mut outputs, silence) => ended.err(),
        silent = watch.run(association) => Some(silent),
    };
    if interrupted.is_some() {
        cancel.cancel();
    } else {
        // The last messages of the thread are sent. The receiver does not wait for a peer that does not read them.
        let _ = timeout(END_WITHIN, send_messages(association, &mut outputs, END_WITHIN)).await;
    }
    // From here on the thread's messages are not read, so a full channel must not block it.
    drop(outputs);
    let ended =
        worker.await.unwrap_or_else(|_| Err(TransferError::Lost("the receiver broke off".to_owned())));
    match (ended, interrupted) {
        (Err(TransferError::Lost(_)), Some(why)) => Err(why),
        (ended, _) => ended,
    }
}

/// Passes received messages on, until the thread needs no more.
async fn receive_messages(
    association: &Association,
    input: mpsc::Sender<Input>,
    heard: &Moment,
) -> Result<(), TransferError> {
    loop {
        let Some(message) = framing::recv(association).await? else {
            return Err(TransferError::Lost("the peer ended it early".to_owned()));
        };
        heard.mark();
        if !matches!(message, IncomingMessage::Control(Message::Alive))
            && input.send(Input::Heard(message)).await.is_err()
        {
            return Ok(());
        }
    }
}

/// Sends the thread's messages until it has ended. A peer that reads no message for `timeouts` is lost, or blocks on purpose: SCTP
/// permits it to acknowledge forever without reading.
async fn send_messages(
    association: &Association,
    outputs: &mut mpsc::Receiver<OutgoingMessage>,
    timeouts: Duration,
) -> Result<(), TransferError> {
    while let Some(message) = outputs.recv().await {
        match timeout(timeouts, framing::send(association, message)).await {
            Ok(sent) => sent?,
            Err(_) => return Err(TransferError::Silent(timeouts)),
        }
    }
    Ok(())
}

/// Task that sends keep-alives, checks that the peer is alive, and sends ticks to the thread.
struct Watch {
    ticks: mpsc::WeakSender<Input>,
    activity: Activity,
    silence: Duration,
    /// Time limit of the first offer, until it arrives.
    first_offer_within: Option<Duration>,
    began: Instant,
}

impl Watch {
    fn new(receiving: &Receiving, ticks: &mpsc::Sender<Input>) -> Self {
        Watch {
            ticks: ticks.downgrade(),
            activity: receiving.activity.clone(),
            silence: receiving.silence,
            first_offer_within: receiving.first_offer_within,
            began: Instant::now(),
        }
    }

    async fn run(&self, association: &Association) -> TransferError {
        let shortest = self.first_offer_within.unwrap_or(self.silence).min(self.silence);
        let mut tick = tokio::time::interval((ALIVE_EVERY / 4).min(shortest / 2));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut said, mut busy) = (Instant::now(), self.began);
        loop {
            tick.tick().await;
            // The receiver reads no messages of the peer while the thread is busy, so the peer's silence does not count.
            let is_busy = |ticks: mpsc::Sender<_>| {
                matches!(ticks.try_send(Input::Tick), Err(mpsc::error::TrySendError::Full(_)))
            };
            if self.ticks.upgrade().is_some_and(is_busy) {
                busy = Instant::now();
            }
            if let Some(silence) = self.silent_for(busy) {
                return TransferError::Silent(silence);
            }
            if said.elapsed() >= ALIVE_EVERY {
                said = Instant::now();
                let alive = framing::send(association, OutgoingMessage::from(&Message::Alive));
                // If sending the keep-alive times out, other messages are queued, which also show that this side is alive.
                if let Ok(Err(lost)) = timeout(ALIVE_EVERY / 4, alive).await {
                    return lost;
                }
            }
        }
    }

    /// Returns the limit that the peer has exceeded.
    fn silent_for(&self, busy: Instant) -> Option<Duration> {
        if self.activity.heard.elapsed().min(busy.elapsed()) >= self.silence {
            return Some(self.silence);
        }
        let nothing_yet = self.activity.progress.latest() <= self.began;
        self.first_offer_within.filter(|within| nothing_yet && self.began.elapsed() >= *within)
    }
}
