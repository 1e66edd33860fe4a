//! Transfers from the side that connects, over successive associations if one is lost.

use std::future::Future;
use std::time::Duration;

use anabranch_net::Association;
use tokio::time::Instant;

use crate::accept::Accept;
use crate::descriptors::Share;
use crate::error::TransferError;
use crate::framing::{self, OutgoingMessage};
use crate::moment::Activity;
use crate::part_lock::PartLock;
use crate::protocol::{Intent, Links, Message, ProtocolError, Terms, WINDOW_BLOCKS};
use crate::random::token;
use crate::receive::{DeletionInitiator, Mode, Receiving, Store, Tally, receive};
use crate::report::{Event, Report};
use crate::send::Sender;

/// Pause between two attempts to connect again.
const PAUSE: Duration = Duration::from_millis(500);
/// Time limit of the reason of a refusal.
const REASON_WITHIN: Duration = Duration::from_secs(5);

/// Time limits of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Silence after which an association counts as lost and a new one is opened.
    pub silence: Duration,
    /// Time without the peer, in total, after which the transfer fails.
    pub retry: Duration,
}

impl Default for Timeouts {
    /// Returns 15 s of silence and 120 s in total.
    fn default() -> Self {
        Timeouts { silence: Duration::from_secs(15), retry: Duration::from_secs(120) }
    }
}

/// Sends the sender's files to the peer of `first`. If that association is lost, `connect` opens another one; it is called again
/// after a transient error.
///
/// # Errors
/// Returns the reason why the transfer failed. The result of each file is in the report, and is no error.
pub async fn push<C, F, E>(
    sender: &mut Sender,
    first: Association,
    connect: C,
    timeouts: Timeouts,
    report: &Report,
) -> Result<(), TransferError>
where
    C: FnMut() -> F,
    F: Future<Output = Result<Association, E>>,
    E: Into<TransferError>,
{
    let session = token()?;
    let mut line = Connection::new(connect, timeouts, report);
    let mut association = first;
    loop {
        let ended = push_once(sender, &association, session, timeouts.silence, &line.activity).await;
        let Err(error) = ended else {
            framing::end(&association).await;
            return Ok(());
        };
        association = line.again(association, error).await?;
    }
}

async fn push_once(
    sender: &mut Sender,
    association: &Association,
    session: [u8; 16],
    silence: Duration,
    activity: &Activity,
) -> Result<(), TransferError> {
    let intent = Intent::Push { sender: sender.identity()?, sender_requests: sender.sender_requests() };
    let Terms::Take { window_blocks } = greet(association, session, intent, silence).await? else {
        return Err(ProtocolError::Unexpected("a welcome that does not match the request").into());
    };
    activity.heard.mark();
    sender.run(association, window_blocks, silence, activity).await
}

/// Request to fetch files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Choice of the offered names to store.
    pub accept: Accept,
    /// Treatment of symbolic links at the peer.
    pub links: Links,
    /// Treatment of offers.
    pub mode: Mode,
    /// Set to remove from fetched folders the entries that the peer does not have in them.
    pub delete: bool,
}

impl From<Accept> for Request {
    fn from(accept: Accept) -> Self {
        Request { accept, ..Request::default() }
    }
}

/// Fetches the requested files from the peer of `first`. A peer that offers anything else ends the transfer. If that association is
/// lost, `connect` opens another one.
///
/// # Errors
/// Returns the reason why the transfer failed. The result of each file is in the report, and is no error.
pub async fn pull<C, F, E>(
    request: &Request,
    store: Store,
    first: Association,
    connect: C,
    timeouts: Timeouts,
    report: &Report,
) -> Result<(), TransferError>
where
    C: FnMut() -> F,
    F: Future<Output = Result<Association, E>>,
    E: Into<TransferError>,
{
    let session = token()?;
    let mut line = Connection::new(connect, timeouts, report);
    let mut association = first;
    let store = store.with_descriptors(Share::of_client());
    let tally = request.accept.bounds().map(Tally::new);
    loop {
        let receiving = Receiving {
            store: store.clone(),
            accept: request.accept.clone(),
            tally: tally.clone(),
            window_blocks: WINDOW_BLOCKS,
            silence: timeouts.silence,
            report: report.clone(),
            activity: line.activity.clone(),
            // The first offer has no time limit, because the user decides how long to wait.
            first_offer_within: None,
            part_lock: PartLock::uncontended(),
            mode: request.mode,
            deletion: request.delete.then_some(DeletionInitiator::Receiver),
        };
        let Err(error) = pull_once(&association, session, request.links, receiving).await else {
            framing::end(&association).await;
            return Ok(());
        };
        association = line.again(association, error).await?;
        report.forget_all();
        tally.iter().for_each(Tally::begin);
    }
}

async fn pull_once(
    association: &Association,
    session: [u8; 16],
    links: Links,
    mut receiving: Receiving,
) -> Result<(), TransferError> {
    let delete = receiving.deletion.is_some();
    let intent = Intent::Pull { window_blocks: receiving.window_blocks, links, delete };
    let Terms::Give { sender } = greet(association, session, intent, receiving.silence).await? else {
        return Err(ProtocolError::Unexpected("a welcome that does not match the request").into());
    };
    receiving.store = receiving.store.of_sender(sender);
    receiving.activity.heard.mark();
    for rule in receiving.accept.filters().rules() {
        framing::send(association, OutgoingMessage::from(&Message::Rule(rule.clone()))).await?;
    }
    for name in receiving.accept.wanted() {
        framing::send(association, OutgoingMessage::from(&Message::Want(name.as_str().to_owned()))).await?;
    }
    framing::send(association, OutgoingMessage::from(&Message::WantEnd)).await?;
    receive(association, receiving).await
}

/// Sends the request, and returns the peer's terms.
async fn greet(
    association: &Association,
    session: [u8; 16],
    intent: Intent,
    within: Duration,
) -> Result<Terms, TransferError> {
    framing::send(association, OutgoingMessage::from(&Message::Hello { session, intent })).await?;
    match framing::recv_first(association, within).await? {
        Message::Welcome { terms: Terms::Refuse } => Err(refusal(association).await),
        Message::Welcome { terms } => Ok(terms),
        _ => Err(ProtocolError::Unexpected("an answer that is not a welcome").into()),
    }
}

/// Receives the reason of a refusal.
async fn refusal(association: &Association) -> TransferError {
    match tokio::time::timeout(REASON_WITHIN, framing::recv(association)).await {
        Ok(Err(why)) => why,
        _ => ProtocolError::Unexpected("a refusal without a reason").into(),
    }
}

/// Connection to the peer.
struct Connection<C> {
    connect: C,
    timeouts: Timeouts,
    report: Report,
    activity: Activity,
    /// Time at which the current association was opened.
    opened: Instant,
}

impl<C, F, E> Connection<C>
where
    C: FnMut() -> F,
    F: Future<Output = Result<Association, E>>,
    E: Into<TransferError>,
{
    fn new(connect: C, timeouts: Timeouts, report: &Report) -> Self {
        let (activity, opened) = (Activity::now(), Instant::now());
        Connection { connect, timeouts, report: report.clone(), activity, opened }
    }

    /// Opens another association after a transient error, unless the peer has been absent for too long.
    async fn again(&mut self, lost: Association, error: TransferError) -> Result<Association, TransferError> {
        if !error.is_transient() {
            framing::end(&lost).await;
            return Err(error);
        }
        lost.abort();
        drop(lost);
        self.report.emit(Event::Disconnected(error.to_string().into()));
        let mut latest = error;
        // Without this pause, a peer that accepts associations only to end them would cause attempts in rapid succession.
        tokio::time::sleep_until(self.opened + PAUSE).await;
        loop {
            let Some(left) =
                self.timeouts.retry.checked_sub(self.activity.heard.elapsed()).filter(|left| !left.is_zero())
            else {
                return Err(latest);
            };
            let until = Instant::now() + left;
            match tokio::time::timeout_at(until, (self.connect)()).await {
                Ok(Ok(association)) => {
                    self.report.emit(Event::Reconnected);
                    self.opened = Instant::now();
                    return Ok(association);
                }
                Ok(Err(refused)) => {
                    latest = refused.into();
                    if !latest.is_transient() {
                        return Err(latest);
                    }
                }
                Err(_) => return Err(latest),
            }
            tokio::time::sleep_until((Instant::now() + PAUSE).min(until)).await;
        }
    }
}
