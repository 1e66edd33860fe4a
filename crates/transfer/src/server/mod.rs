//! Server side: any number of concurrent transfers with peers that connect.

mod buffers;
mod memory;
mod rights;
mod slots;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anabranch_net::{Association, Source};
use tokio::time::timeout;

use self::memory::{Grant, Memory};
pub use self::rights::Rights;
use self::rights::{Rooms, lacks};
use self::slots::{Begin, Limits, Slots};
use crate::accept::Accept;
use crate::descriptors::Descriptors;
use crate::error::TransferError;
use crate::filter::{Filters, MAX_RULES, Rule};
use crate::framing::{self, IncomingMessage, OutgoingMessage};
use crate::identity::SenderId;
use crate::moment::Activity;
use crate::offering::Offering;
use crate::part_lock::{PartHolders, PartLock};
use crate::protocol::{
    Failure, Intent, Links, MAX_WANTED, MAX_WANTED_BYTES, Message, OnClash, ProtocolError, Reason,
    SenderRequests, Terms, WINDOW_BLOCKS,
};
use crate::receive::{DeletionInitiator, Mode, Receiving, Store, receive};
use crate::report::{Event, Report};
use crate::send::{RateLimit, SENDER_BLOCKS, SendSource, Sender};
use crate::store::{Folder, Pipe};

/// Time in which an earlier association of a transfer has to release its files.
const REPLACED_WITHIN: Duration = Duration::from_secs(10);

const NO_MEMORY: &str = "the memory for transfers is used up; try again later";
const NO_DESCRIPTORS: &str = "too many files are open there for another transfer; try again later";

/// Permissions of peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allow {
    /// Send files here and fetch files from here.
    Both,
    /// Send files here only.
    Write,
    /// Fetch files from here only.
    Read,
}

/// Direction of a finished transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The peer sent files.
    Received,
    /// The peer fetched files.
    Sent,
}

/// Limits and rules of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Permissions of peers.
    pub allow: Allow,
    /// Choice of the offered names to store.
    pub accept: Accept,
    /// Treatment of a file whose name is in use; `None` leaves that to the sender.
    pub on_clash: Option<OnClash>,
    /// Set if a sender may request the removal of entries that it does not have from the folders that it sends.
    pub allow_delete: bool,
    /// Silence after which an association counts as lost.
    pub silence: Duration,
    /// Maximum number of concurrent transfers; further ones are refused, unless one without progress gives way.
    pub most_transfers: usize,
    /// Maximum number of concurrent transfers from one IPv4 address or one IPv6 network of 64 bits.
    pub most_per_address: usize,
    /// Memory of all transfers together for blocks that are not written yet or wait to be sent, in bytes. If it is below
    /// [`least_memory_bytes`](Self::least_memory_bytes), some transfers are refused.
    pub memory_bytes: u64,
    /// Time limits of a peer.
    pub deadlines: Deadlines,
    /// Rate limit of each transfer that sends.
    pub rate: Option<RateLimit>,
    /// Identity of the server as a sender. The default is a random one for each transfer, so that no other transfer resumes it.
    pub sender: Option<SenderId>,
}

impl Default for ServerOptions {
    /// Permits both directions and all names except hidden ones, leaves clashes to the sender, and permits no removals. The limits
    /// are 60 s of silence, 64 transfers, 16 of them from one address, and 512 MiB.
    fn default() -> Self {
        ServerOptions {
            allow: Allow::Both,
            accept: Accept::default(),
            on_clash: None,
            allow_delete: false,
            silence: Duration::from_secs(60),
            most_transfers: 64,
            most_per_address: 16,
            memory_bytes: 512 << 20,
            deadlines: Deadlines::default(),
            rate: None,
            sender: None,
        }
    }
}

impl ServerOptions {
    /// Returns the minimum budget for `most_transfers` concurrent transfers, in bytes.
    pub fn least_memory_bytes(most_transfers: usize) -> u64 {
        memory::least_memory_bytes(most_transfers)
    }
}

/// Time limits of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// Time limit of the peer's first message, and then of the names that it requests or of its first offer.
    pub start: Duration,
    /// Silence after which a transfer has to release a file that another transfer needs.
    pub contended: Duration,
    /// Time without progress after which a transfer has to give way to one that would be refused otherwise.
    pub give_way: Duration,
}

impl Default for Deadlines {
    /// Returns 15 s to begin, 5 s of silence if another transfer needs the same file, and 30 s without progress.
    fn default() -> Self {
        Deadlines {
            start: Duration::from_secs(15),
            contended: Duration::from_secs(5),
            give_way: Duration::from_secs(30),
        }
    }
}

/// Server of associations. It receives files into a store, and offers those of a folder. Clones share their state.
#[derive(Clone)]
pub struct Server {
    store: Store,
    /// Sources that peers can fetch in place of the store's content.
    offering: Option<Arc<Offering>>,
    options: ServerOptions,
    transfers: Arc<Mutex<Transfers>>,
    memory: Memory,
    descriptors: Descriptors,
    holders: PartHolders,
    rooms: Rooms,
}

struct Transfers {
    slots: Slots,
    running: BTreeMap<u64, Running>,
}

struct Running {
    session: [u8; 16],
    association: Association,
    activity: Activity,
    fate: Fate,
}

/// Decision on the end of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The transfer ends without intervention of the server.
    Own,
    /// A later association of the same transfer replaces this one.
    Replaced,
    /// The transfer made no progress, and another transfer needed its place.
    GivesWay,
}

/// Place of an association, before and during its transfer; returned when dropped.
struct Place {
    number: u64,
    activity: Activity,
    transfers: Arc<Mutex<Transfers>>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut transfers = lock(&self.transfers);
        transfers.running.remove(&self.number);
        transfers.slots.leave(self.number);
    }
}

fn lock(transfers: &Mutex<Transfers>) -> std::sync::MutexGuard<'_, Transfers> {
    transfers.lock().unwrap_or_else(PoisonError::into_inner)
}

fn busy(text: &str) -> Failure {
    Failure::new(Reason::Busy, text)
}

impl Server {
    /// Creates a server that stores received files in `store`, and offers its content if it is a folder.
    pub fn new(store: Store, options: ServerOptions) -> Self {
        let limits = Limits {
            most: options.most_transfers,
            most_per_site: options.most_per_address,
            give_way_after: options.deadlines.give_way,
        };
        let memory = Memory::new(options.memory_bytes);
        let transfers = Transfers { slots: Slots::new(limits), running: BTreeMap::new() };
        let store = match store {
            Store::Folder(folder) => Store::Folder(folder.unnamed()),
            Store::Pipe(pipe) => Store::Pipe(pipe),
        };
        Server {
            store,
            offering: None,
            options,
            transfers: Arc::new(Mutex::new(transfers)),
            memory,
            descriptors: Descriptors::of_process(),
            holders: PartHolders::default(),
            rooms: Rooms::default(),
        }
    }

    /// Creates a server that receives nothing, and lets peers fetch only this offering.
    pub fn offering(offering: Offering, options: ServerOptions) -> Self {
        let options = ServerOptions { allow: Allow::Read, ..options };
        let server = Self::new(Store::Pipe(Pipe::new(std::io::sink())), options);
        Server { offering: Some(Arc::new(offering)), ..server }
    }

    /// Serves an association until it ends.
    ///
    /// # Errors
    /// Returns the reason why the transfer failed. Content that has arrived is kept.
    pub async fn serve(&self, association: Association, report: &Report) -> Result<Served, TransferError> {
        self.serve_with(association, &Rights::default(), report).await
    }

    /// Serves one association as [`serve`](Self::serve) does, for a peer with these rights.
    ///
    /// # Errors
    /// Returns the errors of [`serve`](Self::serve).
    pub async fn serve_with(
        &self,
        association: Association,
        rights: &Rights,
        report: &Report,
    ) -> Result<Served, TransferError> {
        let served = self.converse(&association, rights, report).await;
        match &served {
            Ok(_) => framing::await_end(&association).await,
            Err(
                TransferError::Lost(_)
                | TransferError::StoppedHere
                | TransferError::Stopped
                | TransferError::Silent(_)
                | TransferError::Replaced
                | TransferError::Preempted
                | TransferError::Untrusted(_)
                | TransferError::Denied(_),
            ) => association.abort(),
            Err(TransferError::Protocol(error)) => {
                self.send_failure(&association, Failure::new(Reason::Protocol, error.to_string())).await;
            }
            Err(TransferError::Peer(_) | TransferError::NotRequested(_) | TransferError::Unconfirmed(_)) => {
                framing::end(&association).await;
            }
        }
        served
    }

    /// Ends all transfers; content that has arrived is kept.
    pub fn abort_all(&self) {
        lock(&self.transfers).running.values().for_each(|running| running.association.abort());
    }

    /// Returns the number of running transfers.
    pub fn running(&self) -> usize {
        lock(&self.transfers).running.len()
    }

    /// Returns the part of the budget that no transfer uses, in bytes.
    pub fn free_memory_bytes(&self) -> u64 {
        self.memory.free_bytes()
    }

    /// Returns the number of associations that are served, including those without a first message.
    pub fn present(&self) -> usize {
        lock(&self.transfers).slots.len()
    }

    async fn send_failure(&self, association: &Association, failure: Failure) {
        let _ = framing::send(association, OutgoingMessage::from(&Message::Fail(failure))).await;
        framing::end(association).await;
    }

    async fn refuse(&self, association: &Association, failure: Failure) -> TransferError {
        let _ = framing::send(association, OutgoingMessage::from(&Message::Fail(failure.clone()))).await;
        framing::end(association).await;
        TransferError::Peer(failure)
    }

    async fn converse(
        &self,
        association: &Association,
        rights: &Rights,
        report: &Report,
    ) -> Result<Served, TransferError> {
        let Some(place) = self.enter(association).await else {
            let text = "too many connections from this address at a time; try again later";
            return Err(self.refuse(association, busy(text)).await);
        };
        let (session, intent) = self.receive_hello(association).await?;
        self.replace(session).await;
        if !self.begin(&place, session, association) {
            // The place is released, because only the refusal remains to be sent. Another limit bounds the number of refused
            // associations.
            drop(place);
            let text = "too many transfers at a time; try again later";
            return Err(self.refuse(association, busy(text)).await);
        }
        let ended = match intent {
            Intent::Push { sender, sender_requests } => {
                let source = (sender, sender_requests);
                self.take(association, source, rights, &place, report).await.map(|()| Served::Received)
            }
            Intent::Pull { window_blocks, links, delete } => {
                let asked = (window_blocks, links, delete);
                self.give(association, asked, rights, &place, report).await.map(|()| Served::Sent)
            }
        };
        match (ended, self.fate(&place)) {
            (Err(_), Fate::Replaced) => Err(TransferError::Replaced),
            (Err(_), Fate::GivesWay) => Err(TransferError::Preempted),
            (ended, _) => ended,
        }
    }

    async fn receive_hello(&self, association: &Association) -> Result<([u8; 16], Intent), TransferError> {
        let heard = match framing::recv_first(association, self.options.deadlines.start).await {
            Ok(Message::Hello { session, intent }) => Ok((session, intent)),
            Ok(_) => Err(ProtocolError::Unexpected("a first message that is not a hello").into()),
            Err(error) => Err(error),
        };
        if let Err(TransferError::Protocol(_)) = heard {
            // A peer of another version reads the version from the first bytes of a welcome. The reason follows. A second welcome
            // at a later point would be decoded as a message without a version.
            let welcome = Message::Welcome { terms: Terms::Refuse };
            let _ = framing::send(association, OutgoingMessage::from(&welcome)).await;
        }
        heard
    }

    /// Returns a place for an association without a first message.
    async fn enter(&self, association: &Association) -> Option<Place> {
        // The handshake has shown that the peer is at the first path's address.
        let site = Source::from(association.paths().await.first()?.remote.ip());
        let number = lock(&self.transfers).slots.enter(site)?;
        Some(Place { number, activity: Activity::now(), transfers: Arc::clone(&self.transfers) })
    }

    /// Registers a transfer, unless there are too many; a transfer that gives way to it is ended.
    fn begin(&self, place: &Place, session: [u8; 16], association: &Association) -> bool {
        place.activity.heard.mark();
        place.activity.progress.mark();
        let mut transfers = lock(&self.transfers);
        match transfers.slots.begin(place.number, place.activity.progress.clone(), Instant::now()) {
            Begin::Full => return false,
            Begin::Runs => {}
            Begin::RunsFor(idle) => {
                if let Some(idle) = transfers.running.get_mut(&idle) {
                    idle.fate = Fate::GivesWay;
                    idle.association.abort();
                }
            }
        }
        let (association, activity) = (association.clone(), place.activity.clone());
        let running = Running { session, association, activity, fate: Fate::Own };
        transfers.running.insert(place.number, running);
        true
    }

    fn fate(&self, place: &Place) -> Fate {
        lock(&self.transfers).running.get(&place.number).map_or(Fate::Own, |running| running.fate)
    }

    /// Returns the sources that peers may fetch.
    fn offered(&self) -> Option<Offered> {
        match (&self.offering, &self.store, self.options.allow) {
            (_, _, Allow::Write) => None,
            (Some(offering), ..) => Some(Offered::Chosen(Arc::clone(offering))),
            (None, Store::Folder(folder), Allow::Read | Allow::Both) => Some(Offered::Folder(folder.clone())),
            (None, Store::Pipe(_), _) => None,
        }
    }

    /// Returns the store for a peer with these rights.
    async fn store_for(&self, rights: &Rights) -> Result<Store, Failure> {
        let Store::Folder(folder) = &self.store else { return Ok(self.store.clone()) };
        if rights.folder.is_none() && rights.quota_bytes.is_none() {
            return Ok(self.store.clone());
        }
        let (folder, rights, rooms) = (folder.clone(), rights.clone(), self.rooms.clone());
        // Opening the folder may count its files, which takes long.
        let opened = tokio::task::spawn_blocking(move || rooms.open(&folder, &rights)).await;
        let ended = || Failure::new(Reason::System, "the folder could not be opened; try again");
        opened.unwrap_or_else(|_| Err(ended())).map(Store::Folder)
    }

    /// Returns a share of the memory for one more transfer.
    fn grant(&self, most_blocks: u32) -> Option<Grant> {
        let others = lock(&self.transfers).slots.free();
        self.memory.grant(most_blocks, others)
    }

    /// Ends earlier associations of the same transfer, and waits until they have released their files.
    async fn replace(&self, session: [u8; 16]) {
        let is_there = || {
            let mut transfers = lock(&self.transfers);
            let mut is_there = false;
            for running in transfers.running.values_mut().filter(|running| running.session == session) {
                is_there = true;
                running.fate = Fate::Replaced;
                running.association.abort();
            }
            is_there
        };
        let gone = async {
            while is_there() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        // If an association does not release its files, the new transfer finds them locked, as if another receiver were using them.
        let _ = timeout(REPLACED_WITHIN, gone).await;
    }

    async fn take(
        &self,
        association: &Association,
        (sender, sender_requests): (SenderId, SenderRequests),
        rights: &Rights,
        place: &Place,
        report: &Report,
    ) -> Result<(), TransferError> {
        if self.options.allow == Allow::Read {
            let text =
                "files can only be fetched from there; start it with --allow write or both to send some";
            return Err(self.refuse(association, Failure::new(Reason::NotAllowed, text)).await);
        }
        if !rights.write {
            return Err(self.refuse(association, lacks("the server accepts no files", "write")).await);
        }
        let may_delete = self.options.allow_delete && matches!(self.store, Store::Folder(_));
        if sender_requests.delete && !may_delete {
            let text = "the server removes no files; start it with --allow-delete, or send without --delete";
            return Err(self.refuse(association, Failure::new(Reason::NotAllowed, text)).await);
        }
        if sender_requests.delete && !rights.delete {
            return Err(self.refuse(association, lacks("the server removes no files", "delete")).await);
        }
        let store = match self.store_for(rights).await {
            Ok(store) => store.of_sender(sender).with_sender_requests(sender_requests, self.options.on_clash),
            Err(failure) => return Err(self.refuse(association, failure).await),
        };
        let store = if rights.overwrite { store } else { store.without_overwriting() };
        let Some(grant) = self.grant(WINDOW_BLOCKS) else {
            return Err(self.refuse(association, busy(NO_MEMORY)).await);
        };
        let Some(descriptors) = self.descriptors.share(lock(&self.transfers).slots.free()) else {
            return Err(self.refuse(association, busy(NO_DESCRIPTORS)).await);
        };
        let window_blocks = grant.window_blocks();
        framing::send(
            association,
            OutgoingMessage::from(&Message::Welcome { terms: Terms::Take { window_blocks } }),
        )
        .await?;
        let (transfers, silence) = (Arc::clone(&self.transfers), self.options.deadlines.contended);
        let contend = move |holder| end_silent(&transfers, holder, silence);
        report.emit(Event::Started { is_fetched: false, names: Vec::new() });
        let receiving = Receiving {
            store: store.with_descriptors(descriptors),
            accept: self.options.accept.clone(),
            tally: None,
            window_blocks,
            silence: self.options.silence,
            report: report.clone(),
            activity: place.activity.clone(),
            first_offer_within: Some(self.options.deadlines.start),
            part_lock: PartLock::new(self.holders.clone(), place.number, contend),
            mode: if sender_requests.dry_run { Mode::DryRun } else { Mode::Store },
            deletion: sender_requests.delete.then_some(DeletionInitiator::Source),
        };
        receive(association, receiving).await
    }

    async fn give(
        &self,
        association: &Association,
        (window_blocks, links, delete): (u32, Links, bool),
        rights: &Rights,
        place: &Place,
        report: &Report,
    ) -> Result<(), TransferError> {
        let Some(offered) = self.offered() else {
            let text = "files can only be sent to there; start it with --allow read or both to fetch some";
            return Err(self.refuse(association, Failure::new(Reason::NotAllowed, text)).await);
        };
        if !rights.read {
            return Err(self.refuse(association, lacks("the server offers no files", "read")).await);
        }
        let offered = match offered {
            Offered::Folder(_) => match self.store_for(rights).await {
                Ok(Store::Folder(folder)) => Offered::Folder(folder),
                Ok(Store::Pipe(_)) => offered,
                Err(failure) => return Err(self.refuse(association, failure).await),
            },
            Offered::Chosen(_) => offered,
        };
        let sender = self.options.sender.map_or_else(SenderId::random, Ok)?;
        let Some(grant) = self.grant(SENDER_BLOCKS) else {
            return Err(self.refuse(association, busy(NO_MEMORY)).await);
        };
        let Some(descriptors) = self.descriptors.share(lock(&self.transfers).slots.free()) else {
            return Err(self.refuse(association, busy(NO_DESCRIPTORS)).await);
        };
        framing::send(
            association,
            OutgoingMessage::from(&Message::Welcome { terms: Terms::Give { sender } }),
        )
        .await?;
        let within = self.options.deadlines.start;
        let wanted = timeout(within, wanted(association)).await;
        let (names, rules) = wanted.map_err(|_| TransferError::Silent(within))??;
        let filters = match Filters::new(rules) {
            Ok(filters) => filters,
            Err(bad) => {
                return Err(self.refuse(association, Failure::new(Reason::BadName, bad.to_string())).await);
            }
        };
        let wanted = names.iter().map(|name| name.as_str().into()).collect();
        report.emit(Event::Started { is_fetched: true, names: wanted });
        let sources = offered.sources(names).into_iter();
        let sources = sources.map(|source| source.with_links(links).with_filters(filters.clone())).collect();
        let sender = Sender::new(sources, self.options.rate, report.clone()).with_descriptors(descriptors);
        let sender_requests = SenderRequests { delete, ..SenderRequests::default() };
        let mut sender = sender.with_memory(grant.window_blocks()).with_sender_requests(sender_requests);
        sender.run(association, window_blocks, self.options.silence, &place.activity).await
    }
}

/// Origin of fetched files.
enum Offered {
    Folder(Folder),
    Chosen(Arc<Offering>),
}

impl Offered {
    fn sources(&self, names: Vec<String>) -> Vec<SendSource> {
        match self {
            Offered::Folder(folder) => sources(folder, names),
            Offered::Chosen(offering) => offering.wanted(&names),
        }
    }
}

/// Ends a silent transfer that holds a file which another one needs: a killed peer sends no shutdown, and would keep the file.
fn end_silent(transfers: &Mutex<Transfers>, holder: u64, silence: Duration) {
    if let Some(running) = lock(transfers).running.get(&holder)
        && running.activity.heard.elapsed() >= silence
    {
        running.association.abort();
    }
}

/// Receives the names that a peer requests, and the rules by which it excludes names.
async fn wanted(association: &Association) -> Result<(Vec<String>, Vec<Rule>), TransferError> {
    let (mut names, mut rules, mut bytes) = (Vec::new(), Vec::new(), 0);
    loop {
        match framing::recv(association).await? {
            Some(IncomingMessage::Control(Message::Want(name)))
                if names.len() < MAX_WANTED && bytes + name.len() <= MAX_WANTED_BYTES =>
            {
                bytes += name.len();
                names.push(name);
            }
            Some(IncomingMessage::Control(Message::Rule(rule))) if rules.len() < MAX_RULES => {
                rules.push(rule);
            }
            Some(IncomingMessage::Control(Message::WantEnd)) => return Ok((names, rules)),
            Some(IncomingMessage::Control(Message::Alive)) => {}
            Some(_) => return Err(ProtocolError::Unexpected("something else than names").into()),
            None => return Err(TransferError::Lost("the peer ended it early".to_owned())),
        }
    }
}

fn sources(folder: &Folder, names: Vec<String>) -> Vec<SendSource> {
    if names.is_empty() {
        return vec![SendSource::inside(folder.clone(), "")];
    }
    names.into_iter().map(|name| SendSource::inside(folder.clone(), name)).collect()
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("running", &self.running()).finish_non_exhaustive()
    }
}
