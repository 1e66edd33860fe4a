//! `anabranch recv CODE@HOST`, or `recv @HOST` with the code on standard input.

use std::io::{BufRead, IsTerminal, Read};
use std::sync::Arc;

use anabranch_identity::{KnownHosts, OneTimeCode, PublicKey};
use anabranch_net::Association;
use anabranch_transfer::{Accept, Catalogue, Report, Request, Store, escape, pull};

use super::super::console::Console;
use super::super::figures::amount;
use super::super::recv::{RecvArguments, SETTLED_WITHIN, open_store};
use super::super::runtime;
use super::super::send::{Connector, finish, watch};
use super::exchange::prove;
use crate::endpoint::{Expected, peer_key};
use crate::exit::{CommandError, Status};
use crate::keys::read_host;
use crate::output;
use crate::signal::interrupted;

/// Bytes of a line with a code.
const LONGEST_LINE: u64 = 256;

/// `CODE@HOST[:PORT]`.
#[derive(Clone, Debug)]
pub(in super::super) struct CodeAt {
    code: OneTimeCode,
    host: String,
}

impl CodeAt {
    /// What the command line names, if it has a code in front, or `@`: then the code is read.
    pub(in super::super) fn of(arguments: &RecvArguments) -> Result<Option<Self>, CommandError> {
        let Some((code, host)) = arguments.host().and_then(|host| host.rsplit_once('@')) else {
            return Ok(None);
        };
        if let Some(what) = arguments.given_beside_code() {
            return Err(CommandError::usage(format!(
                "{what}: the code says what is offered and by whom; leave it out, and say no to what you do not want"
            )));
        }
        let read = if code.is_empty() { read_code()? } else { code.to_owned() };
        let code = read.trim().parse().map_err(|wrong| {
            CommandError::usage(format!("{wrong}; nothing was tried with it, so type it again"))
        })?;
        Ok(Some(CodeAt { code, host: host.to_owned() }))
    }
}

/// The first line of standard input: unlike an argument, other users of the machine do not see it in the list of processes.
fn read_code() -> Result<String, CommandError> {
    let input = std::io::stdin();
    if input.is_terminal() {
        output::prompt("code: ");
    }
    let mut line = String::new();
    let read = input.lock().take(LONGEST_LINE).read_line(&mut line);
    read.map_err(|error| CommandError::failure(format!("standard input: {error}; type the code there")))?;
    Ok(line)
}

/// Carries the command out.
pub(in super::super) fn fetch(arguments: &RecvArguments, at: &CodeAt) -> Result<Status, CommandError> {
    let (store, _) = open_store(arguments)?;
    let runtime = runtime()?;
    let ended = runtime.block_on(fetch_by_code(arguments, at, store));
    // Threads that write bring their journals up to date.
    runtime.shutdown_timeout(SETTLED_WITHIN);
    ended
}

/// The code is used up by the first attempt, so there is no command that would go on with the transfer.
async fn fetch_by_code(arguments: &RecvArguments, at: &CodeAt, store: Store) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    tokio::pin!(stop);
    let is_quiet = arguments.show().quiet || arguments.show().json;
    let connector = Connector::new(arguments.connect(), &at.host);
    let opened = async {
        let first = connector.open_to(Expected::Proof, is_quiet).await?;
        let catalogue = agree(&first, at).await?;
        Ok::<_, CommandError>((first, catalogue))
    };
    let (first, catalogue) = tokio::select! {
        opened = opened => opened?,
        () = &mut stop => return Ok(Status::Interrupted),
    };
    let key = peer_key(&first)?;
    tokio::select! {
        agreed = confirm(&catalogue, arguments) => if let Err(refused) = agreed {
            connector.close().await;
            return Err(refused);
        },
        () = &mut stop => {
            connector.close().await;
            return Ok(Status::Interrupted);
        }
    }
    if arguments.pin {
        pin(arguments, at, key)?;
    }
    let console = Arc::new(Console::new(arguments.show(), false, None).naming_host(&at.host));
    console.start("recv", &mut *connector.paths.lock().await).await;
    let telling = Arc::clone(&console);
    let report = Report::new(move |event| telling.event(&event));
    let request = request(arguments, &catalogue)?;
    let open = || connector.open_to(Expected::Key(key), true);
    let pulled = pull(&request, store, first, open, arguments.timeouts(), &report);
    let ended = tokio::select! {
        ended = pulled => Some(ended),
        () = &mut stop => None,
        () = watch(&console, &report, &connector.paths) => None,
    };
    Ok(finish(&console, &report, &connector, ended).await)
}

async fn agree(association: &Association, at: &CodeAt) -> Result<Catalogue, CommandError> {
    prove(association, &at.code).await.map_err(|error| {
        association.abort();
        CommandError::untrusted(format!("{}: {error}", at.host))
    })
}

/// The names that were offered, and nothing else: a peer that then sends more is left.
fn request(arguments: &RecvArguments, catalogue: &Catalogue) -> Result<Request, CommandError> {
    let accept =
        Accept::names(catalogue.entries().iter().map(|entry| entry.name())).map_err(CommandError::failure)?;
    arguments.request_of(accept)
}

/// Shows what is offered, and asks whether to take it.
async fn confirm(catalogue: &Catalogue, arguments: &RecvArguments) -> Result<(), CommandError> {
    let lines = catalogue.entries().iter().map(|entry| {
        let files = if entry.files() == 1 { "1 file".to_owned() } else { format!("{} files", entry.files()) };
        format!("  {}  {files}, {}\n", escape(entry.name()), amount(entry.bytes()))
    });
    let listed: String = lines.collect();
    let is_quiet = arguments.show().quiet || arguments.show().json;
    // Nobody is asked about what was not shown.
    if !(is_quiet && arguments.yes) {
        output::notices(&format!("offered:\n{listed}"));
    }
    if arguments.yes {
        return refuse_hidden(catalogue);
    }
    if !std::io::stdin().is_terminal() {
        return Err(CommandError::usage(
            "nothing was taken: there is no terminal to ask at; say --yes to take whatever is offered. The code is used up",
        ));
    }
    output::prompt("take this? [y/N] ");
    // A thread that waits for the terminal cannot be woken; it ends with the process.
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    match answer.await {
        Ok(Ok(line)) if matches!(line.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(CommandError::failure("nothing was taken")),
    }
}

/// Without a question, names that begin with a dot are not taken: programs read them without being told to.
fn refuse_hidden(catalogue: &Catalogue) -> Result<(), CommandError> {
    match catalogue.entries().iter().find(|entry| entry.name().starts_with('.')) {
        Some(hidden) => Err(CommandError::usage(format!(
            "nothing was taken: `{}` is offered, and --yes takes no names that begin with a dot; leave --yes out to be asked. The code is used up",
            escape(hidden.name())
        ))),
        None => Ok(()),
    }
}

fn pin(arguments: &RecvArguments, at: &CodeAt, key: PublicKey) -> Result<(), CommandError> {
    let host = read_host(&at.host).map_err(CommandError::usage)?;
    let file = arguments.connect().association.protection.home()?.known_hosts();
    KnownHosts::add(&file, &host, key)?;
    arguments.show().note(&format!("{host} is known from now on: {}", file.display()));
    Ok(())
}
