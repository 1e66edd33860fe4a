//! `anabranch send --code`: listens, prints a code, and gives the files to whoever knows it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_identity::code::Offer;
use anabranch_identity::{AuthorizedKey, AuthorizedKeys, OneTimeCode, PublicKey};
use anabranch_net::{Association, Host};
use anabranch_transfer::{Offering, Report, SendSource, Server, ServerOptions, TransferError, escape};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::super::console::{Console, End, listening_notice};
use super::super::identity::sender;
use super::super::paths::Paths;
use super::super::runtime;
use super::super::send::{SendArguments, goes_on, judge, watch};
use super::exchange::{ExchangeError, check};
use crate::endpoint::{Admitted, Listening, peer_key};
use crate::exit::{CommandError, Status};
use crate::output;
use crate::signal::interrupted;

/// Associations that have proved nothing yet, at a time; further ones are ended.
const MOST_STRANGERS: usize = 8;

/// How long the last messages may take.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The label of a key that is kept with `--pin`.
const LABEL: &str = "one-time code";

/// What became of an association.
enum Ended {
    /// It proved nothing.
    Stranger(ExchangeError),
    /// It proved the code, or went on with a transfer.
    Transfer(Result<(), TransferError>),
}

/// What all associations share.
struct Shared {
    offer: Offer,
    offering: Offering,
    server: Server,
    /// Who proved the code, and may come back after its association was lost.
    trusted: Mutex<Option<PublicKey>>,
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
    let options = ServerOptions {
        rate: arguments.rate(),
        sender: Some(sender(show)?),
        silence: arguments.timeouts().silence,
        ..ServerOptions::default()
    };
    let host = listen.bind_bounded(&admitted, options.most_associations(), |_| {})?;
    let code = OneTimeCode::random()?;
    listening_notice(&host, show, (&admitted, &listen.association.protection), "waiting for the code")?;
    tell(&code, arguments, &host)?;
    let shared = Arc::new(Shared {
        offer: Offer::new(code),
        server: Server::offering(offering.clone(), options),
        offering,
        trusted: Mutex::new(None),
    });
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

/// Says the code, and what to type with it. It is not an error message, so it goes where results go.
fn tell(code: &OneTimeCode, arguments: &SendArguments, host: &Host) -> Result<(), CommandError> {
    let text = if arguments.show().json {
        json!({ "event": "code", "code": code.to_string() }).to_string()
    } else {
        let at = host.local_addresses().first().map_or_else(|| "HOST".to_owned(), ToString::to_string);
        format!("code {code}: on the other machine run\n  anabranch recv {code}@{at}")
    };
    output::print(&format!("{text}\n"))?;
    Ok(())
}

/// Waits for somebody with the code, and until everything was fetched.
async fn one_transfer(
    host: &Host,
    shared: &Arc<Shared>,
    report: &Report,
    paths: &tokio::sync::Mutex<Paths>,
    retry: Duration,
) -> Result<Result<(), TransferError>, CommandError> {
    let (ends, mut ended) = mpsc::unbounded_channel();
    let mut present = 0_usize;
    let mut lost: Option<(Instant, TransferError)> = None;
    loop {
        let give_up = async {
            match &lost {
                Some((until, error)) if present == 0 => {
                    tokio::time::sleep_until(*until).await;
                    error.clone()
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = host.accept() => {
                let association = accepted.map_err(|error| CommandError::failure(format!("cannot listen: {error}")))?;
                if present >= MOST_STRANGERS {
                    association.abort();
                    continue;
                }
                present += 1;
                if shared.trusts(&association) {
                    paths.lock().await.switch(association.clone()).await;
                    report.forget_all();
                }
                tokio::spawn(one(Arc::clone(shared), association, report.clone(), ends.clone()));
            }
            Some(end) = ended.recv() => {
                present -= 1;
                match end {
                    Ended::Transfer(Ok(())) => return Ok(Ok(())),
                    Ended::Transfer(Err(error)) if error.is_transient() => lost = Some((Instant::now() + retry, error)),
                    Ended::Transfer(Err(TransferError::Replaced)) => {}
                    Ended::Transfer(Err(error)) => return Ok(Err(error)),
                    Ended::Stranger(error) => {
                        report.note(format!("a connection was refused: {error}"));
                        if !shared.offer.is_open() && shared.trusted().is_none() {
                            return Err(CommandError::untrusted(
                                "somebody tried a wrong code, so it is good for nothing any more; start again for another one",
                            ));
                        }
                    }
                }
            }
            error = give_up => return Ok(Err(error)),
        }
    }
}

async fn one(
    shared: Arc<Shared>,
    association: Association,
    report: Report,
    ends: mpsc::UnboundedSender<Ended>,
) {
    let ended = match shared.admit(&association).await {
        Ok(()) => Ended::Transfer(shared.server.serve(association, &report).await.map(drop)),
        Err(error) => {
            association.abort();
            Ended::Stranger(error)
        }
    };
    // Nobody listens any more when one transfer is done.
    let _ = ends.send(ended);
}

impl Shared {
    fn trusted(&self) -> Option<PublicKey> {
        *self.trusted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn trusts(&self, association: &Association) -> bool {
        self.trusted().is_some_and(|trusted| peer_key(association).is_ok_and(|key| key == trusted))
    }

    /// Lets in who has proved the code before, or does it now.
    async fn admit(&self, association: &Association) -> Result<(), ExchangeError> {
        if self.trusts(association) {
            return Ok(());
        }
        check(association, &self.offer, self.offering.catalogue()).await?;
        *self.trusted.lock().unwrap_or_else(PoisonError::into_inner) = peer_key(association).ok();
        Ok(())
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
