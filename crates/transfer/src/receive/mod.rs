//! The receiving side.
//!
//! What the protocol decides is a plain state machine on a thread of its own ([`Machine`]), where hashing and writing hold up
//! nobody. A task passes messages between it and the association.

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
use crate::claims::Claimant;
use crate::descriptors::Share;
use crate::error::TransferError;
use crate::identity::SenderId;
use crate::link::{self, ALIVE_EVERY, END_WITHIN, Incoming, Outgoing};
use crate::moment::{Activity, Moment};
use crate::name::{BadName, Name};
use crate::protocol::{Failure, Message, OnClash, Reason, Wishes};
use crate::report::Report;
use crate::store::{Folder, Pipe};

/// Messages that wait for the thread; the association holds the rest back.
const WAITING_MESSAGES: usize = 16;
/// Messages of the thread that wait to leave. A peer that does not read them holds the thread up, and so, in the end, itself.
const WAITING_ANSWERS: usize = 16;

/// Where what arrives is put.
#[derive(Clone, Debug)]
pub enum Store {
    /// Into a folder, each file under its name.
    Folder(Folder),
    /// One file into a pipe.
    Pipe(Pipe),
}

impl Store {
    /// The same store, as this sender puts files into it.
    pub(crate) fn of_sender(&self, sender: SenderId) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.owned_by(sender.owner())),
            Store::Pipe(pipe) => Store::Pipe(pipe.clone()),
        }
    }

    /// The same store, as the sender wants it to be treated.
    pub(crate) fn with_wishes(self, wishes: Wishes, decided: Option<OnClash>) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.with_wishes(wishes, decided)),
            Store::Pipe(pipe) => Store::Pipe(pipe),
        }
    }

    /// The same store for a sender without the right to replace files.
    pub(crate) fn without_overwriting(self) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.without_overwriting()),
            Store::Pipe(pipe) => Store::Pipe(pipe),
        }
    }

    /// The same store, whose files take their descriptors from this share.
    pub(crate) fn with_descriptors(self, share: Share) -> Self {
        match self {
            Store::Folder(folder) => Store::Folder(folder.with_descriptors(share)),
            Store::Pipe(pipe) => Store::Pipe(pipe),
        }
    }

    /// The part file of an offered name, by which transfers that want the same one find each other.
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

/// What becomes of what is offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It is stored.
    #[default]
    Store,
    /// It is reported what would be stored, and nothing is.
    DryRun,
    /// It is reported what there is.
    List,
}

/// Who has asked that what the source does not have be removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedBy {
    Source,
    Receiver,
}

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Input {
    Heard(Incoming),
    /// A moment has passed.
    Tick,
    /// Something is done that the thread had begun.
    Wake,
}

/// What a receiver needs to know besides what is sent.
#[derive(Clone)]
pub(crate) struct Receiving {
    pub(crate) store: Store,
    /// What is stored of that which is offered.
    pub(crate) accept: Accept,
    /// Bounds that a person has confirmed, used up by all associations of the transfer.
    pub(crate) tally: Option<Tally>,
    pub(crate) window_blocks: u32,
    /// Silence after which the association counts as lost.
    pub(crate) silence: Duration,
    pub(crate) report: Report,
    pub(crate) activity: Activity,
    /// How long the first offer may take; `None` is for ever.
    pub(crate) first_offer_within: Option<Duration>,
    pub(crate) claimant: Claimant,
    pub(crate) mode: Mode,
    /// `None` where nothing may be removed.
    pub(crate) deletion: Option<AskedBy>,
}

/// The way of what the thread says to the association.
fn answers() -> (mpsc::Sender<Outgoing>, mpsc::Receiver<Outgoing>) {
    mpsc::channel(WAITING_ANSWERS)
}

/// Receives what is offered until everything is done. Dropping the future ends the thread, after it has brought its journals up to
/// date; what it hashes or compares then is left.
pub(crate) async fn receive(association: &Association, receiving: Receiving) -> Result<(), TransferError> {
    let (input, inputs) = mpsc::channel(WAITING_MESSAGES);
    let (output, mut outputs) = answers();
    let cancel = Cancel::default();
    let _cancel_on_drop = cancel.on_drop();
    let watch = Watch::new(&receiving, &input);
    let (heard, silence) = (receiving.activity.heard.clone(), receiving.silence);
    let waker = input.downgrade();
    let machine = Machine::new(receiving, output, cancel.clone(), move || {
        // Where this finds no room the thread has something to do, and looks after it.
        let _ = waker.upgrade().map(|input| input.try_send(Input::Wake));
    });
    let worker = tokio::task::spawn_blocking(move || machine.run(inputs));
    let interrupted = tokio::select! {
        ended = hear(association, input, &heard) => ended.err(),
        ended = say(association, &mut outputs, silence) => ended.err(),
        silent = watch.run(association) => Some(silent),
    };
    if interrupted.is_some() {
        cancel.cancel();
    } else {
        // What it said last. A peer that does not read that either waits for nothing.
        let _ = timeout(END_WITHIN, say(association, &mut outputs, END_WITHIN)).await;
    }
    // From here on nobody reads what the thread says, so a full channel must not hold it up.
    drop(outputs);
    let ended =
        worker.await.unwrap_or_else(|_| Err(TransferError::Lost("the receiver broke off".to_owned())));
    match (ended, interrupted) {
        (Err(TransferError::Lost(_)), Some(why)) => Err(why),
        (ended, _) => ended,
    }
}

/// Passes on what comes, until the thread has heard enough.
async fn hear(
    association: &Association,
    input: mpsc::Sender<Input>,
    heard: &Moment,
) -> Result<(), TransferError> {
    loop {
        let Some(message) = link::recv(association).await? else {
            return Err(TransferError::Lost("the peer ended it early".to_owned()));
        };
        heard.mark();
        if !matches!(message, Incoming::Control(Message::Alive))
            && input.send(Input::Heard(message)).await.is_err()
        {
            return Ok(());
        }
    }
}

/// Passes on what the thread says, until it has ended. A peer that reads nothing for as long as `timeouts` is gone, or stays away on
/// purpose: SCTP lets it acknowledge for ever without taking anything.
async fn say(
    association: &Association,
    outputs: &mut mpsc::Receiver<Outgoing>,
    timeouts: Duration,
) -> Result<(), TransferError> {
    while let Some(message) = outputs.recv().await {
        match timeout(timeouts, link::send(association, message)).await {
            Ok(sent) => sent?,
            Err(_) => return Err(TransferError::Silent(timeouts)),
        }
    }
    Ok(())
}

/// Says that we are there, looks whether the peer is, and lets the thread know that time passes.
struct Watch {
    ticks: mpsc::WeakSender<Input>,
    activity: Activity,
    silence: Duration,
    /// How long the first offer may take, while that is waited for.
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
            // While the thread has enough to do, nothing is taken from the peer, and so nothing is heard of it.
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
                let alive = link::send(association, Outgoing::from(&Message::Alive));
                // Where this finds no room, other messages are on their way and say the same.
                if let Ok(Err(lost)) = timeout(ALIVE_EVERY / 4, alive).await {
                    return lost;
                }
            }
        }
    }

    /// Which limit the peer has kept us waiting for.
    fn silent_for(&self, busy: Instant) -> Option<Duration> {
        if self.activity.heard.elapsed().min(busy.elapsed()) >= self.silence {
            return Some(self.silence);
        }
        let nothing_yet = self.activity.progress.latest() <= self.began;
        self.first_offer_within.filter(|within| nothing_yet && self.began.elapsed() >= *within)
    }
}
