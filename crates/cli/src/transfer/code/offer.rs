//! `anabranch send --code`: listens, prints a code, and gives the files to the first receiver that proves it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_identity::code::Offer;
use anabranch_identity::{AuthorizedKey, AuthorizedKeys, OneTimeCode, Rights, Room};
use anabranch_net::{Association, Endpoint};
use anabranch_transfer::protocol::Outcome;
use anabranch_transfer::{
    Catalogue, Deadlines, Event, Offering, Report, SendSource, SenderId, Server, ServerOptions,
    TransferError, escape,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::console::{Console, End, listening_notice};
use super::super::identity::sender;
use super::super::layout::Waiting;
use super::super::paths::Paths;
use super::super::recv::peer_address;
use super::super::runtime;
use super::super::send::{SendArguments, can_resume, judge, watch};
use super::exchange::{Admitted as AdmittedBy, ExchangeError, admit, present};
use crate::endpoint::{Admitted, Listening, RendezvousServer, peer_key};
use crate::exit::{CommandError, Status};
use crate::live_output;
use crate::output::{self, Reader};
use crate::served_peers::ServedPeers;
use crate::signal::interrupted;

/// Time that a receiver has to read the catalogue and accept it. After this time, the receiver has to connect again.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// Time that the last messages may take.
const END_WITHIN: Duration = Duration::from_secs(5);

/// Maximum number of associations that may try to prove the code at a time.
pub(super) const MAX_UNPROVED_CLIENTS: usize = 8;

/// Label of a key that is kept with `--pin`.
const LABEL: &str = "one-time code";

/// Result of an association's task.
enum TaskOutcome {
    /// The receiver was not admitted.
    Refused(ExchangeError),
    /// The receiver was admitted, and a transfer may begin. `number` counts the accepted associations.
    Admitted { association: Association, number: u64, is_new_run: bool },
    /// The transfer ended.
    Ended(Result<(), TransferError>),
}

/// State that all associations of an offer share.
pub(super) struct Shared {
    offer: Offer,
    offering: Offering,
    server: Server,
    /// Associations that have not proved the code. A flood of silent associations from one source does not exclude other sources.
    unproved_clients: Mutex<ServedPeers<Association>>,
}

/// Absence of the receiver that has proved the code.
struct Absence {
    /// Longest absence; `None` waits until Ctrl-C.
    retry: Option<Duration>,
    /// Associations that transfer.
    running: usize,
    /// Time at which the offer ends, and the reason, while the receiver is absent.
    lost: Option<(Instant, TransferError)>,
}

/// Observers of an offer.
#[derive(Clone, Copy)]
pub(super) struct Observer<'a> {
    pub(super) report: &'a Report,
    pub(super) remainder: &'a Remainder,
    /// Callback before each step of the receiver for which the offer waits.
    pub(super) waits: &'a dyn Fn(Waiting),
}

/// Results of an association after which the receiver does not have all files.
#[derive(Debug, Default)]
pub(super) struct Remainder {
    is_planned: AtomicBool,
    has_failed: AtomicBool,
}

/// Runs the command.
pub(in super::super) fn offer(arguments: &SendArguments) -> Result<Status, CommandError> {
    let sources = arguments.all_sources()?;
    let runtime = runtime()?;
    let ended = runtime.block_on(offer_with_code(arguments, sources));
    // A thread that waits for standard input cannot be woken.
    runtime.shutdown_background();
    ended
}

async fn offer_with_code(
    arguments: &SendArguments,
    sources: Vec<SendSource>,
) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    tokio::pin!(stop);
    let show = arguments.show();
    let is_piped = sources.iter().any(SendSource::is_pipe);
    let offering = Offering::survey(sources).await.map_err(CommandError::failure)?;
    let listen = arguments.listen_options();
    let protection = listen.association.protection.open_protection()?;
    let from = listen.access.accept_from()?;
    let admitted = Admitted { from, listening: Listening::with(protection) };
    let options =
        ServerOptions { rate: arguments.rate(), ..server_options(sender(show)?, arguments.silence()) };
    let endpoint = listen.bind_bounded(&admitted, options.most_associations(), |config| config).await?;
    let code = OneTimeCode::random()?;
    listening_notice(&endpoint, show, (&admitted, &listen.association.protection), "waiting for the code");
    let room = Room::random()?;
    let place = match listen.register_in(&endpoint, room)? {
        Some(server) => Place::Room(room, server.clone()),
        None => Place::Address(endpoint.local_addresses().first().copied()),
    };
    print_code(&code, arguments, &place)?;
    let shared = Arc::new(Shared::new(code, offering, options));
    let console = Arc::new(Console::new(show, true, None).by_code(is_piped));
    let telling = Arc::clone(&console);
    let remainder = Arc::new(Remainder::default());
    let noting = Arc::clone(&remainder);
    let report = Report::new(move |event| {
        noting.note(&event);
        telling.event(&event);
    });
    let paths = tokio::sync::Mutex::new(Paths::default());
    let waits = |step| console.wait_for(step);
    let observer = Observer { report: &report, remainder: &remainder, waits: &waits };
    let transfer = one_transfer(&endpoint, &shared, observer, &paths, arguments.retry_if_given());
    let ended = tokio::select! {
        ended = transfer => Some(ended?),
        () = &mut stop => None,
        () = watch(&console, &report, &paths) => None,
    };
    shared.server.abort_all();
    let is_complete = matches!(ended, Some(Ok(())));
    if arguments.pin && is_complete {
        pin(arguments, &shared)?;
    }
    let carried = paths.lock().await.carried().await;
    let (totals, can_resume) = (report.totals(), can_resume(ended.as_ref()));
    let (result, status, error) = judge(ended, &totals);
    console.end(&End { result, error, totals, carried: &carried, can_resume });
    if let Some(association) = paths.lock().await.association() {
        if !is_complete {
            // The abort informs a receiver that has not answered yet.
            association.abort();
        }
        let _ = tokio::time::timeout(END_WITHIN, association.closed()).await;
    }
    Ok(status)
}

/// Returns options that leave a person time to answer before the transfer begins.
fn server_options(sender: SenderId, silence: Duration) -> ServerOptions {
    ServerOptions {
        sender: Some(sender),
        silence,
        deadlines: Deadlines { start: ANSWER_WITHIN, ..Deadlines::default() },
        ..ServerOptions::default()
    }
}

/// Place at which the receiver finds the offer. Its text follows the `@` of the receiver's command.
enum Place {
    /// An address of this machine, if there is one.
    Address(Option<SocketAddr>),
    /// A room at a rendezvous server.
    Room(Room, RendezvousServer),
}

impl Place {
    fn as_json(&self, code: &OneTimeCode) -> serde_json::Value {
        let code = code.to_string();
        match self {
            Place::Address(_) => json!({ "event": "code", "code": code }),
            Place::Room(room, server) => json!({
                "event": "code", "code": code, "room": room.to_string(), "rendezvous": server.to_string(),
            }),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Address(Some(address)) => address.fmt(f),
            Place::Address(None) => f.write_str("HOST"),
            Place::Room(room, server) => write!(f, "{room} --rendezvous {server}"),
        }
    }
}

/// Prints the code and the command for the receiver. The code is a result of the command, so it is printed on standard output.
fn print_code(code: &OneTimeCode, arguments: &SendArguments, place: &Place) -> Result<(), CommandError> {
    let text = if arguments.show().json {
        place.as_json(code).to_string()
    } else {
        format!("code {code}: on the other machine run\n  anabranch recv {code}@{place}")
    };
    // Behind the events that were shown before.
    live_output::finish();
    match output::print(&format!("{text}\n")) {
        Reader::Listening => Ok(()),
        Reader::Gone => Err(CommandError::failure(
            "standard output: the one-time code cannot be printed there, so no transfer can begin",
        )),
    }
}

/// Serves the receiver that proves the code until the transfer is complete.
pub(super) async fn one_transfer(
    endpoint: &Endpoint,
    shared: &Arc<Shared>,
    Observer { report, remainder, waits }: Observer<'_>,
    paths: &tokio::sync::Mutex<Paths>,
    retry: Option<Duration>,
) -> Result<Result<(), TransferError>, CommandError> {
    let (outcomes, mut said) = mpsc::unbounded_channel();
    let mut absence = Absence::new(retry);
    let (mut accepted_count, mut latest) = (0, LatestReceiver::default());
    loop {
        tokio::select! {
            accepted = endpoint.accept() => {
                let association = accepted.map_err(|error| CommandError::failure(format!("cannot listen: {error}")))?;
                accepted_count += 1;
                shared.serve_client(association, accepted_count, &outcomes).await;
            }
            Some(said) = said.recv() => match said {
                TaskOutcome::Admitted { association, number, .. } if !latest.advance(number) => association.abort(),
                TaskOutcome::Admitted { association, is_new_run, .. } => {
                    absence.came();
                    waits(if is_new_run { Waiting::Answer } else { Waiting::Return });
                    let mut paths = paths.lock().await;
                    if is_new_run {
                        report.note(receiver_name(&association).await);
                    }
                    // A receiver that resumes replaces only its own transfer.
                    if let Some(earlier) = paths.association().filter(|_| is_new_run) {
                        earlier.abort();
                    }
                    paths.switch(association.clone()).await;
                    report.forget_all();
                    remainder.clear();
                    tokio::spawn(transfer(Arc::clone(shared), association, report.clone(), outcomes.clone()));
                }
                TaskOutcome::Refused(error) => refused(error, report)?,
                TaskOutcome::Ended(ended) => match absence.ended(ended, remainder, report, Instant::now()) {
                    Some(ended) => return Ok(ended),
                    None if absence.running == 0 => waits(Waiting::Return),
                    None => {}
                }
            },
            error = absence.given_up() => return Ok(Err(error)),
        }
    }
}

/// Number of the latest admitted association. The tasks of two associations may report in another order than that in which they were
/// accepted, and an earlier association of the receiver must not replace a later one.
#[derive(Debug, Default)]
struct LatestReceiver(u64);

impl LatestReceiver {
    /// Returns `true` if the association with this number is later than all before.
    fn advance(&mut self, number: u64) -> bool {
        let is_later = number > self.0;
        self.0 = self.0.max(number);
        is_later
    }
}

/// Returns the name of the receiver that has proved the code, so that both sides can compare the key.
async fn receiver_name(association: &Association) -> String {
    let address = peer_address(association).await;
    let key = peer_key(association).map_or_else(|_| "a key".to_owned(), |key| key.fingerprint().to_string());
    format!("{address} has proved the code with the key {key}")
}

/// Reports a refusal. Only the association that spent the code ends the command.
fn refused(error: ExchangeError, report: &Report) -> Result<(), CommandError> {
    match error {
        ExchangeError::Spent(_) => Err(CommandError::untrusted(
            "a wrong code was tried, so this code is no longer valid; start again for a new one",
        )),
        ExchangeError::Lost => {
            report.note("the receiver was lost before it saw the offer; the code stays valid for it");
            Ok(())
        }
        ExchangeError::Code(_) | ExchangeError::Gone => {
            report.note(format!("a connection was refused: {error}"));
            Ok(())
        }
    }
}

/// Serves the receiver that has proved the code.
async fn transfer(
    shared: Arc<Shared>,
    association: Association,
    report: Report,
    outcomes: mpsc::UnboundedSender<TaskOutcome>,
) {
    let ended = shared.server.serve(association, &report).await.map(drop);
    // The command ends when one transfer is complete.
    let _ = outcomes.send(TaskOutcome::Ended(ended));
}

/// Admits a receiver that proves the code. A stranger is a receiver that has not proved the code on an earlier association.
async fn receiver(
    shared: Arc<Shared>,
    (stranger, association, number): (Option<u64>, Association, u64),
    outcomes: mpsc::UnboundedSender<TaskOutcome>,
) {
    let admitted = shared.admit(stranger, &association).await;
    if let Some(place) = stranger {
        shared.unproved_clients().leave(place);
    }
    let said = match admitted {
        Ok(is_new_run) => TaskOutcome::Admitted { association, number, is_new_run },
        Err(error) => {
            association.abort();
            TaskOutcome::Refused(error)
        }
    };
    let _ = outcomes.send(said);
}

impl Shared {
    pub(super) fn new(code: OneTimeCode, offering: Offering, options: ServerOptions) -> Self {
        Shared {
            offer: Offer::new(code),
            server: Server::offering(offering.clone(), options),
            offering,
            unproved_clients: Mutex::new(ServedPeers::new(MAX_UNPROVED_CLIENTS)),
        }
    }

    fn unproved_clients(&self) -> MutexGuard<'_, ServedPeers<Association>> {
        self.unproved_clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` for associations of the receiver that has proved the code.
    fn trusts(&self, association: &Association) -> bool {
        self.offer.holder().is_some_and(|holder| peer_key(association).is_ok_and(|key| key == holder))
    }

    /// Serves an association while the code is valid. The holder of the code needs no place among the unproved clients.
    async fn serve_client(
        self: &Arc<Self>,
        association: Association,
        number: u64,
        outcomes: &mpsc::UnboundedSender<TaskOutcome>,
    ) {
        if !self.offer.is_open() {
            association.abort();
            return;
        }
        // The handshake has validated the address of the first path.
        let paths = association.paths().await;
        let Some(source) = paths.first().map(|path| path.remote.ip().into()) else { return };
        let stranger = (!self.trusts(&association)).then(|| {
            let (number, evicted) = self.unproved_clients().enter(association.clone(), source);
            if let Some(evicted) = evicted {
                evicted.abort();
            }
            number
        });
        tokio::spawn(receiver(Arc::clone(self), (stranger, association, number), outcomes.clone()));
    }

    /// Lets the receiver prove the code. Returns `true` if it is a new run of the receiver, and `false` if it resumes. A receiver
    /// that has proved the code is removed from the unproved clients, so another unproved client cannot evict it.
    async fn admit(&self, stranger: Option<u64>, association: &Association) -> Result<bool, ExchangeError> {
        let key = peer_key(association).map_err(|_| ExchangeError::Gone)?;
        let may_prove = || stranger.is_none_or(|number| self.unproved_clients().leave(number));
        let begun = || stranger.into_iter().for_each(|number| self.unproved_clients().advance(number));
        match admit(association, (&self.offer, key), begun, may_prove).await? {
            AdmittedBy::Resumed => Ok(false),
            AdmittedBy::Proved(accepted) => {
                present(association, accepted, self.catalogue()).await?;
                Ok(true)
            }
        }
    }

    /// Reads the files and folders again: a receiver may connect long after the start, or again after a refusal.
    async fn catalogue(&self) -> Catalogue {
        let now = self.offering.survey_again().await;
        now.map_or_else(|_| self.offering.catalogue().clone(), |offering| offering.catalogue().clone())
    }
}

impl Remainder {
    pub(super) fn note(&self, event: &Event) {
        match event {
            Event::Done { outcome: Outcome::Planned, .. } => self.is_planned.store(true, Ordering::Relaxed),
            Event::Done { outcome: Outcome::Failed(_), .. } => self.has_failed.store(true, Ordering::Relaxed),
            _ => {}
        }
    }

    fn clear(&self) {
        self.is_planned.store(false, Ordering::Relaxed);
        self.has_failed.store(false, Ordering::Relaxed);
    }

    /// Returns the reason for which the receiver may want to fetch again.
    fn reason(&self) -> Option<&'static str> {
        if self.is_planned.load(Ordering::Relaxed) {
            return Some("the receiver made a dry run");
        }
        self.has_failed.load(Ordering::Relaxed).then_some("the receiver left files out")
    }
}

impl Absence {
    fn new(retry: Option<Duration>) -> Self {
        Absence { retry, running: 0, lost: None }
    }

    /// Records that the receiver is present.
    fn came(&mut self) {
        self.running += 1;
        self.lost = None;
    }

    /// Returns the result of the command if the command ends with this association.
    fn ended(
        &mut self,
        ended: Result<(), TransferError>,
        remainder: &Remainder,
        report: &Report,
        now: Instant,
    ) -> Option<Result<(), TransferError>> {
        self.running -= 1;
        let (why, error) = match ended {
            Err(TransferError::Replaced) => return None,
            Err(error) => (error.to_string(), error),
            Ok(()) => match remainder.reason() {
                None => return Some(Ok(())),
                Some(reason) => (reason.to_owned(), TransferError::Lost(reason.to_owned())),
            },
        };
        if self.running == 0 {
            report.note(format!(
                "{why}; still waiting: the code stays valid for this receiver (Ctrl-C ends the offer)"
            ));
            self.lost = self.retry.map(|retry| (now + retry, error));
        }
        None
    }

    /// Ends when the receiver has been absent for too long.
    async fn given_up(&self) -> TransferError {
        match &self.lost {
            Some((until, error)) if self.running == 0 => {
                tokio::time::sleep_until(*until).await;
                error.clone()
            }
            _ => std::future::pending().await,
        }
    }
}

fn pin(arguments: &SendArguments, shared: &Shared) -> Result<(), CommandError> {
    let Some(key) = shared.offer.holder() else { return Ok(()) };
    let file = arguments.listen_options().association.protection.home()?.authorized_keys();
    let label = LABEL.parse().map_err(CommandError::failure)?;
    AuthorizedKeys::add(&file, &AuthorizedKey { rights: Rights::default(), key, label })?;
    arguments.show().note(&escape(&format!(
        "{} may connect from now on: {}",
        key.fingerprint(),
        file.display()
    )));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_report_of_an_earlier_association_replaces_no_later_one() {
        let mut latest = LatestReceiver::default();
        assert_eq!([1, 3, 2, 3, 4].map(|number| latest.advance(number)), [true, true, false, false, true]);
    }

    fn lost() -> TransferError {
        TransferError::Lost("no answer".to_owned())
    }

    /// Ends the only association of a receiver ten seconds after its start.
    fn ended(
        retry: Option<Duration>,
        ended: Result<(), TransferError>,
        event: Option<Event>,
    ) -> (Option<Result<(), TransferError>>, Option<Duration>) {
        let (now, remainder) = (Instant::now(), Remainder::default());
        event.iter().for_each(|event| remainder.note(event));
        let mut absence = Absence::new(retry);
        absence.came();
        let result = absence.ended(ended, &remainder, &Report::default(), now);
        (result, absence.lost.map(|(until, _)| until - now))
    }

    fn done(outcome: Outcome) -> Option<Event> {
        Some(Event::Done { name: "a".into(), size_bytes: Some(1), outcome })
    }

    #[test]
    fn offer_ends_with_the_complete_transfer_only() {
        let stored = Outcome::Stored { renamed: None };
        assert_eq!(ended(None, Ok(()), done(stored)), (Some(Ok(())), None));
        let failed = Outcome::Failed(anabranch_transfer::protocol::Failure::new(
            anabranch_transfer::protocol::Reason::NoSpace,
            "full",
        ));
        for (result, event) in [
            (Ok(()), done(Outcome::Planned)),
            (Ok(()), done(failed)),
            (Err(lost()), None),
            (Err(TransferError::Stopped), None),
            (Err(anabranch_transfer::protocol::ProtocolError::Version(9).into()), None),
            (Err(TransferError::Replaced), None),
        ] {
            assert_eq!(ended(None, result, event), (None, None));
        }
    }

    #[test]
    fn offer_waits_for_an_absent_receiver_for_the_given_time() {
        let retry = Some(Duration::from_secs(120));
        assert_eq!(ended(retry, Err(TransferError::Stopped), None), (None, retry));
        let mut absence = Absence::new(retry);
        absence.came();
        absence.came();
        let (remainder, report) = (Remainder::default(), Report::default());
        assert_eq!(absence.ended(Err(lost()), &remainder, &report, Instant::now()), None);
        assert!(absence.lost.is_none(), "another association is there");
    }

    #[test]
    fn person_who_is_asked_has_ten_minutes() {
        let sender = SenderId::random().expect("random");
        assert_eq!(server_options(sender, Duration::from_secs(15)).deadlines.start, ANSWER_WITHIN);
    }
}
