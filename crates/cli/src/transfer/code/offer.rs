//! `anabranch send --code`: listens, prints a code, and gives the files to whoever knows it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_identity::code::Offer;
use anabranch_identity::{AuthorizedKey, AuthorizedKeys, OneTimeCode, PublicKey};
use anabranch_net::{Association, Host};
use anabranch_transfer::{
    Deadlines, Offering, Report, SendSource, SenderId, Server, ServerOptions, Timeouts, Totals,
    TransferError, escape,
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::console::{Console, End, listening_notice};
use super::super::identity::sender;
use super::super::paths::Paths;
use super::super::runtime;
use super::super::send::{SendArguments, goes_on, judge, watch};
use super::exchange::{ExchangeError, check, present};
use super::strangers::Strangers;
use crate::endpoint::{Admitted, Listening, peer_key};
use crate::exit::{CommandError, Status};
use crate::output::{self, Reader};
use crate::signal::interrupted;

/// How long whoever proved the code may read what is offered before it says yes.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);

/// How long the last messages may take.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The label of a key that is kept with `--pin`.
const LABEL: &str = "one-time code";

/// What an association's task says of it.
enum Said {
    /// It proved nothing.
    Refused(ExchangeError),
    /// It proved the code, and goes on with a transfer.
    Proved,
    /// It went on with a transfer, which came to this.
    Ended(Result<(), TransferError>),
}

/// What all associations share.
pub(super) struct Shared {
    offer: Offer,
    offering: Offering,
    server: Server,
    strangers: Strangers<Association>,
    /// Who proved the code, and may come back after its association was lost.
    trusted: Mutex<Option<PublicKey>>,
}

/// How it stands with whoever proved the code.
struct Waiting {
    /// How long it may be away.
    retry: Duration,
    /// Its associations.
    running: usize,
    /// Until when it may say yes, as long as it has not.
    answers_until: Option<Instant>,
    /// Until when it may come back, and why it has to.
    lost: Option<(Instant, TransferError)>,
}

/// Carries the command out.
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
    let offering = Offering::survey(sources).await.map_err(CommandError::failure)?;
    let listen = arguments.listen_options();
    let protection = listen.association.protection.open_protection()?;
    let from = listen.access.accept_from()?;
    let admitted = Admitted { from, listening: Listening::with(protection) };
    let options =
        ServerOptions { rate: arguments.rate(), ..server_options(sender(show)?, arguments.timeouts()) };
    let host = listen.bind_bounded(&admitted, options.most_associations(), |_| {})?;
    let code = OneTimeCode::random()?;
    listening_notice(&host, show, (&admitted, &listen.association.protection), "waiting for the code");
    tell(&code, arguments, &host)?;
    let shared = Arc::new(Shared::new(code, offering, options));
    let console = Arc::new(Console::new(show, true, None));
    let telling = Arc::clone(&console);
    let report = Report::new(move |event| telling.event(&event));
    let paths = tokio::sync::Mutex::new(Paths::default());
    let ended = tokio::select! {
        ended = one_transfer(&host, &shared, &report, &paths, arguments.timeouts().retry) => Some(ended?),
        () = &mut stop => None,
        () = watch(&console, &report, &paths) => None,
    };
    shared.server.abort_all();
    if arguments.pin && matches!(ended, Some(Ok(()))) {
        pin(arguments, &shared)?;
    }
    let carried = paths.lock().await.carried().await;
    let (totals, goes_on) = (report.totals(), goes_on(ended.as_ref()));
    let (result, status, error) = judge(ended, &totals);
    console.end(&End { result, error, totals, carried: &carried, goes_on });
    if let Some(association) = paths.lock().await.association() {
        let _ = tokio::time::timeout(END_WITHIN, association.closed()).await;
    }
    Ok(status)
}

/// Whoever is asked needs longer than a program before it begins.
fn server_options(sender: SenderId, timeouts: Timeouts) -> ServerOptions {
    ServerOptions {
        sender: Some(sender),
        silence: timeouts.silence,
        deadlines: Deadlines { start: ANSWER_WITHIN, ..Deadlines::default() },
        ..ServerOptions::default()
    }
}

/// Says the code, and what to type with it. It is not an error message, so it goes where results go.
fn tell(code: &OneTimeCode, arguments: &SendArguments, host: &Host) -> Result<(), CommandError> {
    let text = if arguments.show().json {
        json!({ "event": "code", "code": code.to_string() }).to_string()
    } else {
        let at = host.local_addresses().first().map_or_else(|| "HOST".to_owned(), ToString::to_string);
        format!("code {code}: on the other machine run\n  anabranch recv {code}@{at}")
    };
    match output::print(&format!("{text}\n")) {
        Reader::Listening => Ok(()),
        Reader::Gone => Err(CommandError::failure(
            "standard output: the one-time code cannot be printed there, so no transfer can begin",
        )),
    }
}

/// Waits for somebody with the code, and until everything was fetched.
pub(super) async fn one_transfer(
    host: &Host,
    shared: &Arc<Shared>,
    report: &Report,
    paths: &tokio::sync::Mutex<Paths>,
    retry: Duration,
) -> Result<Result<(), TransferError>, CommandError> {
    let (says, mut said) = mpsc::unbounded_channel();
    let mut waiting = Waiting::new(retry);
    loop {
        tokio::select! {
            accepted = host.accept() => {
                let association = accepted.map_err(|error| CommandError::failure(format!("cannot listen: {error}")))?;
                if shared.trusts(&association) {
                    waiting.came_back();
                    paths.lock().await.switch(association.clone()).await;
                    report.forget_all();
                    tokio::spawn(transfer(Arc::clone(shared), association, report.clone(), says.clone()));
                } else {
                    shared.meet(association, report, &says);
                }
            }
            Some(said) = said.recv() => match said {
                Said::Proved => waiting.proved(Instant::now()),
                Said::Refused(error) => refused(error, report)?,
                Said::Ended(ended) => if let Some(ended) = waiting.ended(ended, &report.totals(), Instant::now()) {
                    return Ok(ended);
                }
            },
            error = waiting.given_up() => return Ok(Err(error)),
        }
    }
}

/// Only the association that used the code up ends the command.
fn refused(error: ExchangeError, report: &Report) -> Result<(), CommandError> {
    match error {
        ExchangeError::Used(_) => Err(CommandError::untrusted(
            "somebody tried a wrong code, so it is good for nothing any more; start again for another one",
        )),
        ExchangeError::Lost => Err(CommandError::failure(error)),
        ExchangeError::Code(_) | ExchangeError::Gone => {
            report.note(format!("a connection was refused: {error}"));
            Ok(())
        }
    }
}

/// Serves somebody who has proved the code.
async fn transfer(
    shared: Arc<Shared>,
    association: Association,
    report: Report,
    says: mpsc::UnboundedSender<Said>,
) {
    let ended = shared.server.serve(association, &report).await.map(drop);
    // Nobody listens any more when one transfer is done.
    let _ = says.send(Said::Ended(ended));
}

/// Lets somebody in who proves the code.
async fn stranger(
    shared: Arc<Shared>,
    (number, association): (u64, Association),
    report: Report,
    says: mpsc::UnboundedSender<Said>,
) {
    let admitted = shared.admit(number, &association).await;
    shared.strangers.leave(number);
    match admitted {
        Ok(()) => {
            let _ = says.send(Said::Proved);
            transfer(shared, association, report, says).await;
        }
        Err(error) => {
            association.abort();
            let _ = says.send(Said::Refused(error));
        }
    }
}

impl Shared {
    pub(super) fn new(code: OneTimeCode, offering: Offering, options: ServerOptions) -> Self {
        Shared {
            offer: Offer::new(code),
            server: Server::offering(offering.clone(), options),
            offering,
            strangers: Strangers::default(),
            trusted: Mutex::new(None),
        }
    }

    fn trusted(&self) -> Option<PublicKey> {
        *self.trusted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trusts(&self, association: &Association) -> bool {
        self.trusted().is_some_and(|trusted| peer_key(association).is_ok_and(|key| key == trusted))
    }

    /// Listens to somebody who has proved nothing, as long as the code is good for something.
    fn meet(self: &Arc<Self>, association: Association, report: &Report, says: &mpsc::UnboundedSender<Said>) {
        if !self.offer.is_open() {
            association.abort();
            return;
        }
        let (number, oldest) = self.strangers.enter(association.clone());
        if let Some(oldest) = oldest {
            oldest.abort();
        }
        tokio::spawn(stranger(Arc::clone(self), (number, association), report.clone(), says.clone()));
    }

    /// Has the code proved. Whoever does that has left the strangers before, so it is not ended for another one.
    async fn admit(&self, number: u64, association: &Association) -> Result<(), ExchangeError> {
        let accepted = check(association, &self.offer, || self.strangers.leave(number)).await?;
        *self.trusted.lock().unwrap_or_else(PoisonError::into_inner) = peer_key(association).ok();
        present(association, accepted, self.offering.catalogue()).await
    }
}

impl Waiting {
    fn new(retry: Duration) -> Self {
        Waiting { retry, running: 0, answers_until: None, lost: None }
    }

    /// The code was proved: a person is asked now.
    fn proved(&mut self, now: Instant) {
        self.running += 1;
        self.answers_until = Some(now + ANSWER_WITHIN);
    }

    /// Whoever comes back has said yes.
    fn came_back(&mut self) {
        self.running += 1;
        self.answers_until = None;
    }

    /// What the command comes to, if this association's end is its end.
    fn ended(
        &mut self,
        ended: Result<(), TransferError>,
        totals: &Totals,
        now: Instant,
    ) -> Option<Result<(), TransferError>> {
        self.running -= 1;
        match ended {
            Err(TransferError::Replaced) => None,
            Err(error) if error.is_transient() => {
                let retried_until = now + self.retry;
                let has_answered = error == TransferError::Stopped || *totals != Totals::default();
                // A loss that the other side does not notice while it asks is no answer.
                let answers_until = self.answers_until.filter(|_| !has_answered);
                let until = answers_until.map_or(retried_until, |until| until.max(retried_until));
                self.lost = Some((until, error));
                None
            }
            ended => Some(ended),
        }
    }

    /// Ends when whoever proved the code has been away for too long.
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
    let Some(key) = shared.trusted() else { return Ok(()) };
    let file = arguments.listen_options().association.protection.home()?.authorized_keys();
    let label = LABEL.parse().map_err(CommandError::failure)?;
    AuthorizedKeys::add(&file, &AuthorizedKey { key, label })?;
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

    fn lost() -> TransferError {
        TransferError::Lost("no answer".to_owned())
    }

    /// In seconds after the proof.
    fn given_up_after(waiting: &Waiting, proved: Instant) -> u64 {
        waiting.lost.as_ref().expect("lost").0.duration_since(proved).as_secs()
    }

    #[test]
    fn whoever_is_asked_is_waited_for_until_it_may_have_answered() {
        let sender = SenderId::random().expect("random");
        let options = server_options(sender, Timeouts::default());
        assert_eq!(options.deadlines.start, ANSWER_WITHIN);
        let (proved, second) = (Instant::now(), Duration::from_secs(1));
        let begun = Totals { found_files: 1, ..Totals::default() };
        for (error, totals, after) in [
            (lost(), Totals::default(), 600),
            (lost(), begun, 130),
            (TransferError::Stopped, Totals::default(), 130),
        ] {
            let mut waiting = Waiting::new(120 * second);
            waiting.proved(proved);
            assert_eq!(waiting.ended(Err(error), &totals, proved + 10 * second), None);
            assert_eq!(given_up_after(&waiting, proved), after);
        }
    }

    #[test]
    fn whoever_has_come_back_has_answered() {
        let (proved, second) = (Instant::now(), Duration::from_secs(1));
        let mut waiting = Waiting::new(120 * second);
        waiting.proved(proved);
        waiting.came_back();
        assert_eq!(waiting.ended(Err(TransferError::Replaced), &Totals::default(), proved), None);
        assert!(waiting.lost.is_none());
        assert_eq!(waiting.ended(Err(lost()), &Totals::default(), proved + 30 * second), None);
        assert_eq!(given_up_after(&waiting, proved), 150);
        assert_eq!(waiting.running, 0);
    }
}
