//! One round: a few associations at a time with one server, or with clients one after the other.

use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_net::{Association, Endpoint};
use anabranch_transfer::protocol::{Intent, Message, Terms};
use anabranch_transfer::{
    Accept, Deadlines, OnClash, Pipe, Report, Request, SendSource as From, Sender, SenderRequests,
    ServerOptions, Store, Timeouts, TransferError, pull, push,
};
use fastrand::Rng;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::actor::converse;
use super::arbitrary;
use super::claims::Claims;
use super::receiver::Receiver;
use super::source::{Plan, Source};
use super::{Counts, Role};
use crate::dictionary;
use crate::inbox::Inbox;
use crate::loopback::{Serving, accepting, connect};
use crate::packet::Packet;
use crate::peer::{Heard, Peer};

/// Number of concurrent associations.
const AT_A_TIME: u64 = 6;
/// Maximum number of messages of one association.
const MOST_MESSAGES: u64 = 400;
/// Silence after which an association counts as lost.
const SILENCE: Duration = Duration::from_secs(1);
/// Maximum time for the counterparts of the peer to end: longer than all timeouts of the protocol.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// State that the associations of a round share.
#[derive(Clone)]
struct Round {
    seed: u64,
    role: Role,
    claims: Arc<Claims>,
    leaked: Arc<AtomicBool>,
    counts: Arc<Counts>,
    /// Number of messages left to send.
    left: Arc<RemainingCounts>,
}

#[derive(Debug)]
struct RemainingCounts {
    until: u64,
    associations: AtomicU64,
}

impl Round {
    /// Returns the dice of the next association, if there is one.
    fn next(&self) -> Option<Rng> {
        if self.counts.messages.load(Ordering::Relaxed) >= self.left.until {
            return None;
        }
        self.counts.associations.fetch_add(1, Ordering::Relaxed);
        let number = self.left.associations.fetch_add(1, Ordering::Relaxed);
        Some(Rng::with_seed(self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number)))
    }

    async fn source(&self, peer: &Peer, dice: &mut Rng) {
        // Some associations store entries that others have removed: nothing is removed after a refusal.
        let plan = match self.role.deletes() {
            true if dice.bool() => Plan::Delete,
            true => Plan::Fill,
            false => Plan::Any,
        };
        let mut source = Source::new(Arc::clone(&self.claims), self.seed, plan);
        let most = dice.u64(1..MOST_MESSAGES);
        converse(peer, &mut source, dice, &self.counts, most).await;
    }

    async fn receiver(&self, peer: &Peer, dice: &mut Rng) {
        let mut receiver = Receiver::new(Arc::clone(&self.leaked));
        let most = dice.u64(1..MOST_MESSAGES);
        converse(peer, &mut receiver, dice, &self.counts, most).await;
    }
}

/// Runs one round. A violation is the error.
pub(super) async fn round(role: Role, seed: u64, messages: u64, counts: &Arc<Counts>) -> Result<(), String> {
    let inbox = Arc::new(Inbox::new().map_err(|error| format!("no inbox: {error}"))?);
    let left = RemainingCounts {
        until: counts.messages.load(Ordering::Relaxed) + messages,
        associations: AtomicU64::new(0),
    };
    let round = Round {
        seed,
        role,
        claims: Arc::default(),
        leaked: Arc::default(),
        counts: Arc::clone(counts),
        left: Arc::new(left),
    };
    match role {
        Role::Server(on_clash) => against_server(&round, inbox.store(on_clash), Some(on_clash)).await?,
        Role::ServerThatDeletes => {
            against_server(&round, inbox.store(OnClash::Refuse), Some(OnClash::Refuse)).await?;
        }
        Role::ServerThatAsks => against_server(&round, inbox.store(OnClash::Refuse), None).await?,
        Role::ServerWithPipe => against_server(&round, Store::Pipe(Pipe::new(NoneWrong)), None).await?,
        Role::Push | Role::Pull | Role::PullThatDeletes | Role::PullToPipe => {
            against_clients(&round, &inbox).await?;
        }
    }
    check(&round, &inbox)
}

fn check(round: &Round, inbox: &Inbox) -> Result<(), String> {
    let role = round.role;
    let replaces = matches!(role, Role::Server(OnClash::Overwrite) | Role::ServerThatAsks);
    let may_change = |path: &Path| replaces || role.deletes() && path.starts_with("kept");
    let damage = inbox.damage_where(|path| path.ends_with("kept") || !may_change(path));
    if !damage.is_empty() {
        return Err(format!("damage: {damage:#?}"));
    }
    let astray = inbox.links_astray().map_err(|error| error.to_string())?;
    if !astray.is_empty() {
        return Err(format!("links lead out of the folder they came with: {astray:?}"));
    }
    if round.leaked.load(Ordering::SeqCst) {
        return Err("content from outside of the folder was sent".to_owned());
    }
    if !matches!(role, Role::ServerWithPipe | Role::Push | Role::PullToPipe) {
        let stored = round.claims.check(inbox, role.deletes())?;
        round.counts.stored_files.fetch_add(stored, Ordering::Relaxed);
    }
    Ok(())
}

async fn against_server(round: &Round, store: Store, on_clash: Option<OnClash>) -> Result<(), String> {
    let deadlines = Deadlines { start: SILENCE, contended: SILENCE / 2, give_way: SILENCE };
    let options = ServerOptions {
        silence: SILENCE,
        most_transfers: 5,
        deadlines,
        on_clash,
        allow_delete: round.role.deletes(),
        ..ServerOptions::default()
    };
    let serving = Serving::start(store, options);
    let mut associations = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (round, endpoint) = (round.clone(), serving.endpoint.clone());
        associations.spawn(async move {
            while let Some(mut dice) = round.next() {
                if let Ok(association) = connect(&endpoint).await {
                    to_server(&round, &Peer::over(association), &mut dice).await;
                }
            }
        });
    }
    while let Some(ended) = associations.join_next().await {
        ended.map_err(|error| error.to_string())?;
    }
    let idle = timeout(ENDS_WITHIN, serving.idle()).await;
    idle.map_err(|_| format!("{} associations have not ended after {ENDS_WITHIN:?}", serving.running()))
}

async fn to_server(round: &Round, peer: &Peer, dice: &mut Rng) {
    // Some replace others.
    let session = if dice.u8(..20) == 0 { [dice.u8(..2); 16] } else { dice.u128(..).to_be_bytes() };
    let mut intent = arbitrary::intent(dice);
    if let (true, Intent::Push { sender_requests, .. }) = (round.role.deletes(), &mut intent) {
        sender_requests.delete = dice.u8(..10) > 0;
    }
    let first = if dice.u8(..50) == 0 {
        arbitrary::packet(dice)
    } else {
        Packet::control(&Message::Hello { session, intent: intent.clone() })
    };
    if peer.send(&first).await.is_err() || peer.hear_until(|_| true).await.is_err() {
        return;
    }
    round.counts.messages.fetch_add(1, Ordering::Relaxed);
    if matches!(intent, Intent::Push { .. }) {
        return round.source(peer, dice).await;
    }
    for _ in 0..dice.u8(..3) {
        let _ = peer.send_message(&Message::Rule(arbitrary::rule(dice))).await;
    }
    for _ in 0..dice.u8(..4) {
        let name = if dice.u8(..8) == 0 { String::new() } else { dictionary::name(dice) };
        let _ = peer.send_message(&Message::Want(name)).await;
    }
    let _ = peer.send_message(&Message::WantEnd).await;
    round.receiver(peer, dice).await;
}

async fn against_clients(round: &Round, inbox: &Arc<Inbox>) -> Result<(), String> {
    let mut clients = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (round, inbox) = (round.clone(), Arc::clone(inbox));
        clients.spawn(async move {
            while let Some(dice) = round.next() {
                against_client(&round, &inbox, dice).await?;
            }
            Ok::<_, String>(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    Ok(())
}

async fn against_client(round: &Round, inbox: &Inbox, mut dice: Rng) -> Result<(), String> {
    let endpoint = accepting();
    let mut of_peer = dice.fork();
    let speaks = async {
        while let Ok(association) = endpoint.accept().await {
            as_server(round, association, &mut of_peer).await;
        }
    };
    let client = async {
        let Ok(first) = connect(&endpoint).await else { return };
        match round.role {
            Role::Push => sends(&endpoint, first, inbox, &mut dice).await,
            Role::PullToPipe => {
                fetches(round, &endpoint, first, Store::Pipe(Pipe::new(NoneWrong)), &mut dice).await;
            }
            _ => fetches(round, &endpoint, first, inbox.store(OnClash::Refuse), &mut dice).await,
        }
    };
    tokio::select! {
        () = speaks => Err("the peer's endpoint is gone".to_owned()),
        ended = timeout(ENDS_WITHIN, client) => ended.map_err(|_| format!("a client has not ended after {ENDS_WITHIN:?}")),
    }
}

async fn sends(endpoint: &Endpoint, first: Association, inbox: &Inbox, dice: &mut Rng) {
    let mut sources = vec![From::inside(inbox.folder(OnClash::Refuse), "")];
    if dice.bool() {
        let length = if dice.u8(..8) == 0 { 2_300_000 } else { dice.usize(..5000) };
        sources.push(From::stream("stdin", Cursor::new(vec![dice.u8(..); length])));
    }
    let report = Report::default();
    let sender_requests = SenderRequests { delete: dice.bool(), ..SenderRequests::default() };
    let mut sender = Sender::new(sources, None, report.clone()).with_sender_requests(sender_requests);
    let timeouts = Timeouts { silence: SILENCE, retry: SILENCE };
    let _ = push(&mut sender, first, again(endpoint, dice.u8(..3)), timeouts, &report).await;
}

async fn fetches(round: &Round, endpoint: &Endpoint, first: Association, store: Store, dice: &mut Rng) {
    let timeouts = Timeouts { silence: SILENCE, retry: SILENCE };
    let accept = Accept::all(true);
    let request = Request { accept, delete: round.role.deletes(), ..Request::default() };
    let again = again(endpoint, dice.u8(..3));
    let _ = pull(&request, store, first, again, timeouts, &Report::default()).await;
}

/// Connects this number of further times.
fn again(
    endpoint: &Endpoint,
    mut times: u8,
) -> impl FnMut() -> std::pin::Pin<Box<dyn Future<Output = Result<Association, TransferError>> + Send>> {
    let endpoint = endpoint.clone();
    move || {
        let (endpoint, may) = (endpoint.clone(), times > 0);
        times = times.saturating_sub(1);
        Box::pin(async move {
            if !may {
                return Err(TransferError::Lost("no more associations".to_owned()));
            }
            connect(&endpoint).await.map_err(|error| TransferError::Lost(error.to_string()))
        })
    }
}

/// Runs the peer as the accepting side.
async fn as_server(round: &Round, association: Association, dice: &mut Rng) {
    let peer = Peer::over(association);
    if !matches!(timeout(SILENCE, peer.receive_message()).await, Ok(Heard::Control(Message::Hello { .. }))) {
        return;
    }
    let first = match dice.u8(..50) {
        0 => arbitrary::packet(dice),
        1 => Packet::control(&Message::Fail(arbitrary::failure(dice))),
        _ if round.role == Role::Push => {
            welcome(Terms::Take { window_blocks: dictionary::small_number(dice) })
        }
        _ => welcome(Terms::Give { sender: arbitrary::sender(dice) }),
    };
    if peer.send(&first).await.is_err() {
        return;
    }
    round.counts.messages.fetch_add(1, Ordering::Relaxed);
    if round.role == Role::Push { round.receiver(&peer, dice).await } else { round.source(&peer, dice).await }
}

fn welcome(terms: Terms) -> Packet {
    Packet::control(&Message::Welcome { terms })
}

/// Output of a pipe. The server has stored no file.
struct NoneWrong;

impl Write for NoneWrong {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The peer sent this content with a hash of other content.
        assert!(
            bytes.len() < 8 || bytes.iter().any(|byte| *byte != 0x66),
            "a block was written that its hash does not fit"
        );
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
