//! The receiving side.
//!
//! What the protocol decides is a plain state machine on a thread of its own ([`Machine`]), where hashing and writing hold up
//! nobody. A task passes messages between it and the association.

mod machine;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_net::Association;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use self::machine::Machine;
use crate::accept::Accept;
use crate::cancel::Cancel;
use crate::error::TransferError;
use crate::identity::SenderId;
use crate::link::{self, ALIVE_EVERY, Incoming, Outgoing};
use crate::protocol::Message;
use crate::report::Report;
use crate::store::{Folder, Pipe};

/// Messages that wait for the thread; the association holds the rest back.
const WAITING_MESSAGES: usize = 16;

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
}

/// What the thread is told.
#[derive(Debug)]
pub(crate) enum Input {
    Heard(Incoming),
    /// A moment has passed.
    Tick,
}

/// Asks others who hold a file, and may be dead, to let go of it.
pub(crate) type Contend = Arc<dyn Fn() + Send + Sync>;

/// When the peer was heard last.
#[derive(Clone, Debug)]
pub(crate) struct Heard(Arc<Mutex<Instant>>);

impl Heard {
    pub(crate) fn now() -> Self {
        Heard(Arc::new(Mutex::new(Instant::now())))
    }

    pub(crate) fn again(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn silence(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}

/// What a receiver needs to know besides what is sent.
#[derive(Clone)]
pub(crate) struct Receiving {
    pub(crate) store: Store,
    /// What is stored of that which is offered.
    pub(crate) accept: Accept,
    pub(crate) window_blocks: u32,
    /// Silence after which the association counts as lost.
    pub(crate) silence: Duration,
    pub(crate) report: Report,
    pub(crate) heard: Heard,
    pub(crate) contend: Contend,
}

/// Receives what is offered until everything is done. Dropping the future ends the thread, after it has brought its journals up to
/// date; what it hashes or compares then is left.
pub(crate) async fn receive(association: &Association, receiving: Receiving) -> Result<(), TransferError> {
    let (heard, silence) = (receiving.heard.clone(), receiving.silence);
    let (input, inputs) = mpsc::channel(WAITING_MESSAGES);
    let (output, mut outputs) = mpsc::unbounded_channel();
    let cancel = Cancel::default();
    let _cancel_on_drop = cancel.on_drop();
    let machine = Machine::new(receiving, output, cancel.clone());
    let worker = tokio::task::spawn_blocking(move || machine.run(inputs));
    let ticks = input.clone();
    let interrupted = tokio::select! {
        ended = hear(association, input, &heard) => ended.err(),
        ended = say(association, &mut outputs) => ended.err(),
        silent = watch(ticks, &heard, silence, association) => Some(silent),
    };
    if interrupted.is_some() {
        cancel.cancel();
    }
    let ended =
        worker.await.unwrap_or_else(|_| Err(TransferError::Lost("the receiver broke off".to_owned())));
    // What it said last.
    while let Ok(message) = outputs.try_recv() {
        if link::send(association, message).await.is_err() {
            break;
        }
    }
    match (ended, interrupted) {
        (Err(TransferError::Lost(_)), Some(why)) => Err(why),
        (ended, _) => ended,
    }
}

/// Passes on what comes, until the thread has heard enough.
async fn hear(
    association: &Association,
    input: mpsc::Sender<Input>,
    heard: &Heard,
) -> Result<(), TransferError> {
    loop {
        let Some(message) = link::recv(association).await? else {
            return Err(TransferError::Lost("the peer ended it early".to_owned()));
        };
        heard.again();
        if !matches!(message, Incoming::Control(Message::Alive))
            && input.send(Input::Heard(message)).await.is_err()
        {
            return Ok(());
        }
    }
}

/// Passes on what the thread says, until it has ended.
async fn say(
    association: &Association,
    outputs: &mut mpsc::UnboundedReceiver<Outgoing>,
) -> Result<(), TransferError> {
    while let Some(message) = outputs.recv().await {
        link::send(association, message).await?;
    }
    Ok(())
}

/// Says that we are there, looks whether the peer is, and lets the thread know that time passes.
async fn watch(
    ticks: mpsc::Sender<Input>,
    heard: &Heard,
    silence: Duration,
    association: &Association,
) -> TransferError {
    let mut tick = tokio::time::interval(ALIVE_EVERY / 4);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut said = Instant::now();
    loop {
        tick.tick().await;
        // A thread that is busy need not be told.
        let _ = ticks.try_send(Input::Tick);
        if heard.silence() >= silence {
            return TransferError::Silent(silence);
        }
        if said.elapsed() >= ALIVE_EVERY {
            said = Instant::now();
            if let Err(lost) = link::send(association, Outgoing::from(&Message::Alive)).await {
                return lost;
            }
        }
    }
}
