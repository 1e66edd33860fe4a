//! Transfers from the side that accepts: any number at a time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_net::Association;
use tokio::time::timeout;

use crate::accept::Accept;
use crate::error::TransferError;
use crate::identity::SenderId;
use crate::link::{self, Incoming, Outgoing};
use crate::protocol::{
    Failure, Intent, MAX_WANTED, MAX_WANTED_BYTES, Message, ProtocolError, Reason, Terms, WINDOW_BLOCKS,
};
use crate::receive::{Heard, Receiving, Store, receive};
use crate::report::Report;
use crate::send::{Rate, Sender, Source};
use crate::store::Folder;

/// Silence after which a transfer has to let go of a file that another one wants.
const CONTENDED_SILENCE: Duration = Duration::from_secs(5);
/// How long an earlier association of a transfer may take to let go.
const REPLACED_WITHIN: Duration = Duration::from_secs(10);
/// How long the names that are wanted may take.
const WANTED_WITHIN: Duration = Duration::from_secs(30);

/// What peers may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Send files here and fetch files from here.
    Both,
    /// Send files here only.
    Write,
    /// Fetch files from here only.
    Read,
}

/// What came of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The peer sent.
    Received,
    /// The peer fetched.
    Sent,
}

/// What a server keeps to.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// What peers may do.
    pub allow: Allow,
    /// What is stored of that which peers offer.
    pub accept: Accept,
    /// Silence after which an association counts as lost.
    pub silence: Duration,
    /// Transfers at a time; further ones are refused.
    pub most_transfers: usize,
    /// A limit on what leaves, for each transfer.
    pub rate: Option<Rate>,
    /// Who offers what is fetched. Without one, one is drawn for each transfer, and none is resumed by another one.
    pub sender: Option<SenderId>,
}

impl Default for ServerOptions {
    /// Both ways, everything but hidden names, a minute of silence, 64 transfers.
    fn default() -> Self {
        ServerOptions {
            allow: Allow::Both,
            accept: Accept::default(),
            silence: Duration::from_secs(60),
            most_transfers: 64,
            rate: None,
            sender: None,
        }
    }
}

/// Serves associations: takes files into a store, and offers those of a folder. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    store: Store,
    options: ServerOptions,
    transfers: Arc<Mutex<Transfers>>,
}

#[derive(Default)]
struct Transfers {
    next: u64,
    running: BTreeMap<u64, Running>,
}

struct Running {
    session: [u8; 16],
    association: Association,
    heard: Heard,
    is_replaced: bool,
}

/// A transfer's place among those that run; given back when dropped.
struct Place {
    number: u64,
    heard: Heard,
    transfers: Arc<Mutex<Transfers>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.transfers).running.remove(&self.number);
    }
}

fn lock(transfers: &Mutex<Transfers>) -> std::sync::MutexGuard<'_, Transfers> {
    transfers.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Server {
    /// A server that puts what it takes into `store`, and offers what is there if that is a folder.
    pub fn new(store: Store, options: ServerOptions) -> Self {
        Server { store, options, transfers: Arc::default() }
    }

    /// Serves an association to its end.
    ///
    /// # Errors
    /// Why the transfer was not carried through. What has arrived is kept.
    pub async fn serve(&self, association: Association, report: &Report) -> Result<Served, TransferError> {
        let served = self.converse(&association, report).await;
        match &served {
            Ok(_) => link::await_end(&association).await,
            Err(TransferError::Lost(_) | TransferError::Silent(_) | TransferError::Replaced) => {
                association.abort();
            }
            Err(TransferError::Protocol(error)) => {
                self.say_why(&association, Failure::new(Reason::Protocol, error.to_string())).await;
            }
            Err(TransferError::Peer(_) | TransferError::NotRequested(_)) => link::end(&association).await,
        }
        served
    }

    /// Ends all transfers; what has arrived is kept.
    pub fn abort_all(&self) {
        lock(&self.transfers).running.values().for_each(|running| running.association.abort());
    }

    /// Transfers that run now.
    pub fn running(&self) -> usize {
        lock(&self.transfers).running.len()
    }

    async fn say_why(&self, association: &Association, failure: Failure) {
        // A peer of another version understands the first bytes of a welcome, and so which version this is.
        let welcome = Message::Welcome { terms: Terms::Refuse };
        let _ = link::send(association, Outgoing::from(&welcome)).await;
        let _ = link::send(association, Outgoing::from(&Message::Fail(failure))).await;
        link::end(association).await;
    }

    async fn refuse(&self, association: &Association, failure: Failure) -> TransferError {
        let _ = link::send(association, Outgoing::from(&Message::Fail(failure.clone()))).await;
        link::end(association).await;
        TransferError::Peer(failure)
    }

    async fn converse(&self, association: &Association, report: &Report) -> Result<Served, TransferError> {
        let Message::Hello { session, intent } = link::recv_first(association).await? else {
            return Err(ProtocolError::Unexpected("a first message that is no hello").into());
        };
        self.replace(session).await;
        let Some(place) = self.enter(session, association) else {
            let text = "too many transfers at a time; try again later";
            return Err(self.refuse(association, Failure::new(Reason::Busy, text)).await);
        };
        let ended = match intent {
            Intent::Push { sender } => {
                self.take(association, sender, &place, report).await.map(|()| Served::Received)
            }
            Intent::Pull { window_blocks } => {
                self.give(association, window_blocks, &place, report).await.map(|()| Served::Sent)
            }
        };
        match ended {
            Err(_) if self.is_replaced(&place) => Err(TransferError::Replaced),
            ended => ended,
        }
    }

    fn enter(&self, session: [u8; 16], association: &Association) -> Option<Place> {
        let mut transfers = lock(&self.transfers);
        if transfers.running.len() >= self.options.most_transfers {
            return None;
        }
        let (number, heard) = (transfers.next, Heard::now());
        transfers.next += 1;
        let running =
            Running { session, association: association.clone(), heard: heard.clone(), is_replaced: false };
        transfers.running.insert(number, running);
        Some(Place { number, heard, transfers: Arc::clone(&self.transfers) })
    }

    fn is_replaced(&self, place: &Place) -> bool {
        lock(&self.transfers).running.get(&place.number).is_some_and(|running| running.is_replaced)
    }

    /// Ends earlier associations of the same transfer, and waits until they have let go of their files.
    async fn replace(&self, session: [u8; 16]) {
        let is_there = || {
            let mut transfers = lock(&self.transfers);
            let mut is_there = false;
            for running in transfers.running.values_mut().filter(|running| running.session == session) {
                is_there = true;
                running.is_replaced = true;
                running.association.abort();
            }
            is_there
        };
        let gone = async {
            while is_there() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // If it does not let go, the files say so: somebody else is receiving them.
        let _ = timeout(REPLACED_WITHIN, gone).await;
    }

    async fn take(
        &self,
        association: &Association,
        sender: SenderId,
        place: &Place,
        report: &Report,
    ) -> Result<(), TransferError> {
        if self.options.allow == Allow::Read {
            let text =
                "files can only be fetched from there; start it with --allow write or both to send some";
            return Err(self.refuse(association, Failure::new(Reason::NotAllowed, text)).await);
        }
        let terms = Terms::Take { window_blocks: WINDOW_BLOCKS };
        link::send(association, Outgoing::from(&Message::Welcome { terms })).await?;
        let (transfers, own) = (Arc::clone(&self.transfers), place.number);
        let receiving = Receiving {
            store: self.store.of_sender(sender),
            accept: self.options.accept.clone(),
            window_blocks: WINDOW_BLOCKS,
            silence: self.options.silence,
            report: report.clone(),
            heard: place.heard.clone(),
            contend: Arc::new(move || end_silent(&transfers, own)),
        };
        receive(association, receiving).await
    }

    async fn give(
        &self,
        association: &Association,
        window_blocks: u32,
        place: &Place,
        report: &Report,
    ) -> Result<(), TransferError> {
        let folder = match (&self.store, self.options.allow) {
            (Store::Folder(folder), Allow::Read | Allow::Both) => folder.clone(),
            _ => {
                let text =
                    "files can only be sent to there; start it with --allow read or both to fetch some";
                return Err(self.refuse(association, Failure::new(Reason::NotAllowed, text)).await);
            }
        };
        let sender = self.options.sender.map_or_else(SenderId::random, Ok)?;
        let terms = Terms::Give { sender };
        link::send(association, Outgoing::from(&Message::Welcome { terms })).await?;
        let wanted = timeout(WANTED_WITHIN, wanted(association)).await;
        let names = wanted.map_err(|_| TransferError::Silent(WANTED_WITHIN))??;
        let sources = sources(&folder, names);
        let mut sender = Sender::new(sources, self.options.rate, report.clone());
        sender.run(association, window_blocks, self.options.silence, &place.heard).await
    }
}

/// Ends transfers that have not been heard for a while: one that was killed says no goodbye, and would hold its files for long.
fn end_silent(transfers: &Mutex<Transfers>, own: u64) {
    for (number, running) in &lock(transfers).running {
        if *number != own && running.heard.silence() >= CONTENDED_SILENCE {
            running.association.abort();
        }
    }
}

/// The names that a peer wants.
async fn wanted(association: &Association) -> Result<Vec<String>, TransferError> {
    let (mut names, mut bytes) = (Vec::new(), 0);
    loop {
        match link::recv(association).await? {
            Some(Incoming::Control(Message::Want(name)))
                if names.len() < MAX_WANTED && bytes + name.len() <= MAX_WANTED_BYTES =>
            {
                bytes += name.len();
                names.push(name);
            }
            Some(Incoming::Control(Message::WantEnd)) => return Ok(names),
            Some(Incoming::Control(Message::Alive)) => {}
            Some(_) => return Err(ProtocolError::Unexpected("something else than names").into()),
            None => return Err(TransferError::Lost("the peer ended it early".to_owned())),
        }
    }
}

fn sources(folder: &Folder, names: Vec<String>) -> Vec<Source> {
    if names.is_empty() {
        return vec![Source::inside(folder.clone(), "")];
    }
    names.into_iter().map(|name| Source::inside(folder.clone(), name)).collect()
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("running", &self.running()).finish_non_exhaustive()
    }
}
