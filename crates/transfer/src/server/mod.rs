//! Transfers from the side that accepts: any number at a time.

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
use crate::claims::{Claimant, Claims};
use crate::descriptors::Descriptors;
use crate::error::TransferError;
use crate::filter::{Filters, MAX_RULES, Rule};
use crate::identity::SenderId;
use crate::link::{self, Incoming, Outgoing};
use crate::moment::Activity;
use crate::offering::Offering;
use crate::protocol::{
    Failure, Intent, Links, MAX_WANTED, MAX_WANTED_BYTES, Message, OnClash, ProtocolError, Reason, Terms,
    WINDOW_BLOCKS, Wishes,
};
use crate::receive::{AskedBy, Mode, Receiving, Store, receive};
use crate::report::{Event, Report};
use crate::send::{RateLimit, SENDER_BLOCKS, SendSource, Sender};
use crate::store::{Folder, Pipe};

/// How long an earlier association of a transfer may take to let go.
const REPLACED_WITHIN: Duration = Duration::from_secs(10);

const NO_MEMORY: &str = "the memory for transfers is used up; try again later";
const NO_DESCRIPTORS: &str = "too many files are open there for another transfer; try again later";

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

/// What a finished association transferred.
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
    /// What peers may do.
    pub allow: Allow,
    /// What is stored of that which peers offer.
    pub accept: Accept,
    /// What to do where there is another file; `None` leaves that to whoever sends.
    pub on_clash: Option<OnClash>,
    /// Whether a sender may have removed from the folders that it sends what it does not have in them.
    pub allow_delete: bool,
    /// Silence after which an association counts as lost.
    pub silence: Duration,
    /// Transfers at a time; further ones are refused, unless one that comes no further gives way.
    pub most_transfers: usize,
    /// Transfers at a time from one IPv4 address or one IPv6 network of 64 bits.
    pub most_per_address: usize,
    /// What all transfers together may hold of blocks that are not written yet or wait to leave, in bytes. With less than
    /// [`least_memory_bytes`](Self::least_memory_bytes) some of them are refused.
    pub memory_bytes: u64,
    /// When a peer has to do what.
    pub deadlines: Deadlines,
    /// A limit on what leaves, for each transfer.
    pub rate: Option<RateLimit>,
    /// Who offers what is fetched. Without one, one is drawn for each transfer, and none is resumed by another one.
    pub sender: Option<SenderId>,
}

impl Default for ServerOptions {
    /// Both ways, everything but hidden names, clashes as the sender asks, nothing removed, a minute of silence, 64 transfers of which 16 from one address, 512 MiB.
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
    /// The smallest budget with which so many transfers can run at a time.
    pub fn least_memory_bytes(most_transfers: usize) -> u64 {
        memory::least_memory_bytes(most_transfers)
    }
}

/// When a peer has to do what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// How long its first message may take, then the names it asks for, or its first offer.
    pub start: Duration,
    /// Silence after which it has to let go of a file that another transfer needs.
    pub contended: Duration,
    /// How long it may come no further before it has to give way to a transfer that finds no place.
    pub give_way: Duration,
}

impl Default for Deadlines {
    /// 15 s to begin, 5 s of silence where another one needs the same file, 30 s without progress.
    fn default() -> Self {
        Deadlines {
            start: Duration::from_secs(15),
            contended: Duration::from_secs(5),
            give_way: Duration::from_secs(30),
        }
    }
}

/// Serves associations: takes files into a store, and offers those of a folder. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    store: Store,
    /// What is to be had in place of what is in the store.
    offering: Option<Arc<Offering>>,
    options: ServerOptions,
    transfers: Arc<Mutex<Transfers>>,
    memory: Memory,
    descriptors: Descriptors,
    claims: Claims,
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

/// What is to become of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It ends by itself.
    Own,
    /// A later association of it took its place.
    Replaced,
    /// It came no further, and another one needed its place.
    GivesWay,
}

/// An association's place, before and while it transfers; given back when dropped.
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
    /// A server that puts what it takes into `store`, and offers what is there if that is a folder.
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
            claims: Claims::default(),
            rooms: Rooms::default(),
        }
    }

    /// A server that takes nothing, and lets peers fetch this and nothing else.
    pub fn offering(offering: Offering, options: ServerOptions) -> Self {
        let options = ServerOptions { allow: Allow::Read, ..options };
        let server = Self::new(Store::Pipe(Pipe::new(std::io::sink())), options);
        Server { offering: Some(Arc::new(offering)), ..server }
    }

    /// Serves an association to its end.
    ///
    /// # Errors
    /// Why the transfer was not carried through. What has arrived is kept.
    pub async fn serve(&self, association: Association, report: &Report) -> Result<Served, TransferError> {
        self.serve_with(association, &Rights::default(), report).await
    }

    /// Serves one association as [`serve`](Self::serve) does, for a peer with these rights.
    ///
    /// # Errors
    /// The errors of [`serve`](Self::serve).
    pub async fn serve_with(
        &self,
        association: Association,
        rights: &Rights,
        report: &Report,
    ) -> Result<Served, TransferError> {
        let served = self.converse(&association, rights, report).await;
        match &served {
            Ok(_) => link::await_end(&association).await,
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
                self.say_why(&association, Failure::new(Reason::Protocol, error.to_string())).await;
            }
            Err(TransferError::Peer(_) | TransferError::NotRequested(_) | TransferError::Unconfirmed(_)) => {
                link::end(&association).await;
            }
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

    /// Bytes of the budget that no transfer has.
    pub fn free_memory_bytes(&self) -> u64 {
        self.memory.free_bytes()
    }

    /// Associations that are served now, those that have said nothing yet included.
    pub fn present(&self) -> usize {
        lock(&self.transfers).slots.len()
    }

    async fn say_why(&self, association: &Association, failure: Failure) {
        let _ = link::send(association, Outgoing::from(&Message::Fail(failure))).await;
        link::end(association).await;
    }

    async fn refuse(&self, association: &Association, failure: Failure) -> TransferError {
        let _ = link::send(association, Outgoing::from(&Message::Fail(failure.clone()))).await;
        link::end(association).await;
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
        let (session, intent) = self.hear_hello(association).await?;
        self.replace(session).await;
        if !self.begin(&place, session, association) {
            // Nothing but the answer is left to do, and that is bounded elsewhere.
            drop(place);
            let text = "too many transfers at a time; try again later";
            return Err(self.refuse(association, busy(text)).await);
        }
        let ended = match intent {
            Intent::Push { sender, wishes } => {
                let source = (sender, wishes);
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

    async fn hear_hello(&self, association: &Association) -> Result<([u8; 16], Intent), TransferError> {
        let heard = match link::recv_first(association, self.options.deadlines.start).await {
            Ok(Message::Hello { session, intent }) => Ok((session, intent)),
            Ok(_) => Err(ProtocolError::Unexpected("a first message that is no hello").into()),
            Err(error) => Err(error),
        };
        if let Err(TransferError::Protocol(_)) = heard {
            // A peer of another version understands the first bytes of a welcome, and so which version this is. The reason
            // follows. Later a second welcome would be read as a message without a version.
            let welcome = Message::Welcome { terms: Terms::Refuse };
            let _ = link::send(association, Outgoing::from(&welcome)).await;
        }
        heard
    }

    /// A place for an association that has said nothing yet.
    async fn enter(&self, association: &Association) -> Option<Place> {
        // The handshake has shown that the peer is at the first path's address.
        let site = Source::from(association.paths().await.first()?.remote.ip());
        let number = lock(&self.transfers).slots.enter(site)?;
        Some(Place { number, activity: Activity::now(), transfers: Arc::clone(&self.transfers) })
    }

    /// Makes a transfer of it, unless there are too many; the one that gives way to it is ended.
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

    /// What peers may fetch from.
    fn offered(&self) -> Option<Offered> {
        match (&self.offering, &self.store, self.options.allow) {
            (_, _, Allow::Write) => None,
            (Some(offering), ..) => Some(Offered::Chosen(Arc::clone(offering))),
            (None, Store::Folder(folder), Allow::Read | Allow::Both) => Some(Offered::Folder(folder.clone())),
            (None, Store::Pipe(_), _) => None,
        }
    }

    /// The store as a peer with these rights sees it.
    async fn store_for(&self, rights: &Rights) -> Result<Store, Failure> {
        let Store::Folder(folder) = &self.store else { return Ok(self.store.clone()) };
        if rights.folder.is_none() && rights.quota_bytes.is_none() {
            return Ok(self.store.clone());
        }
        let (folder, rights, rooms) = (folder.clone(), rights.clone(), self.rooms.clone());
        // Counting the files of a folder takes long.
        let opened = tokio::task::spawn_blocking(move || rooms.open(&folder, &rights)).await;
        let ended = || Failure::new(Reason::System, "the folder could not be opened; try again");
        opened.unwrap_or_else(|_| Err(ended())).map(Store::Folder)
    }

    /// A share of the memory for one more transfer.
    fn grant(&self, most_blocks: u32) -> Option<Grant> {
        let others = lock(&self.transfers).slots.free();
        self.memory.grant(most_blocks, others)
    }

    /// Ends earlier associations of the same transfer, and waits until they have let go of their files.
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
        // If it does not let go, the files say so: somebody else is receiving them.
        let _ = timeout(REPLACED_WITHIN, gone).await;
    }

    async fn take(
        &self,
        association: &Association,
        (sender, wishes): (SenderId, Wishes),
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
            return Err(self.refuse(association, lacks("nothing is taken there", "write")).await);
        }
        let may_delete = self.options.allow_delete && matches!(self.store, Store::Folder(_));
        if wishes.delete && !may_delete {
            let text = "nothing is removed there; start it with --allow-delete, or send without --delete";
            return Err(self.refuse(association, Failure::new(Reason::NotAllowed, text)).await);
        }
        if wishes.delete && !rights.delete {
            return Err(self.refuse(association, lacks("nothing is removed there", "delete")).await);
        }
        let store = match self.store_for(rights).await {
            Ok(store) => store.of_sender(sender).with_wishes(wishes, self.options.on_clash),
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
        link::send(association, Outgoing::from(&Message::Welcome { terms: Terms::Take { window_blocks } }))
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
            claimant: Claimant::new(self.claims.clone(), place.number, contend),
            mode: if wishes.dry_run { Mode::DryRun } else { Mode::Store },
            deletion: wishes.delete.then_some(AskedBy::Source),
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
            return Err(self.refuse(association, lacks("nothing can be fetched there", "read")).await);
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
        link::send(association, Outgoing::from(&Message::Welcome { terms: Terms::Give { sender } })).await?;
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
        let wishes = Wishes { delete, ..Wishes::default() };
        let mut sender = sender.with_memory(grant.window_blocks()).with_wishes(wishes);
        sender.run(association, window_blocks, self.options.silence, &place.activity).await
    }
}

/// Where what peers fetch comes from.
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

/// Ends a transfer that holds a file which another one needs, if it has not been heard for a while: one that was killed says no
/// goodbye, and would hold the file for long.
fn end_silent(transfers: &Mutex<Transfers>, holder: u64, silence: Duration) {
    if let Some(running) = lock(transfers).running.get(&holder)
        && running.activity.heard.elapsed() >= silence
    {
        running.association.abort();
    }
}

/// The names that a peer wants, and what it wants to be left out.
async fn wanted(association: &Association) -> Result<(Vec<String>, Vec<Rule>), TransferError> {
    let (mut names, mut rules, mut bytes) = (Vec::new(), Vec::new(), 0);
    loop {
        match link::recv(association).await? {
            Some(Incoming::Control(Message::Want(name)))
                if names.len() < MAX_WANTED && bytes + name.len() <= MAX_WANTED_BYTES =>
            {
                bytes += name.len();
                names.push(name);
            }
            Some(Incoming::Control(Message::Rule(rule))) if rules.len() < MAX_RULES => rules.push(rule),
            Some(Incoming::Control(Message::WantEnd)) => return Ok((names, rules)),
            Some(Incoming::Control(Message::Alive)) => {}
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
