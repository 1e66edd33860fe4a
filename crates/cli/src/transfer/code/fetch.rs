//! `anabranch recv CODE@HOST`, or `recv @HOST` with the code on standard input.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal, Read};
use std::sync::Arc;
use std::time::Duration;

use anabranch_identity::code::CodeError;
use anabranch_identity::{HostName, KnownHosts, OneTimeCode, PublicKey};
use anabranch_net::Association;
use anabranch_transfer::{
    Accept, BadRequest, Catalogue, Entry, EntryKind, Report, Request, Store, TransferError, escape, pull,
};
use serde_json::json;

use super::super::again::command;
use super::super::console::Console;
use super::super::figures::amount;
use super::super::recv::{RecvArguments, SETTLED_WITHIN, open_store};
use super::super::runtime;
use super::super::send::{Connector, finish, watch};
use super::exchange::{ExchangeError, is_sender_of_version_1, prove, resume};
use crate::endpoint::{Expected, peer_key};
use crate::exit::{CommandError, Status};
use crate::keys::read_host;
use crate::signal::interrupted;
use crate::{live_output, output};

/// Default limit of a stream, which `--max` replaces.
const MOST_STREAM_BYTES: u64 = 1 << 30;

/// Remedy after a refusal on this side, which leaves the code valid.
const STILL_VALID: &str = "the code stays valid for this receiver while the sender waits";

/// Pause between two attempts to prove the code.
const PAUSE: Duration = Duration::from_millis(500);

/// Maximum number of bytes of a line with a code.
const LONGEST_LINE: u64 = 256;

/// Code and host of `CODE@HOST[:PORT]`.
#[derive(Clone, Debug)]
pub(in super::super) struct CodeAndHost {
    code: OneTimeCode,
    host: String,
}

impl CodeAndHost {
    /// Returns code and host if the command line has them. If the argument begins with `@`, reads the code from standard input.
    pub(in super::super) fn of(arguments: &RecvArguments) -> Result<Option<Self>, CommandError> {
        let Some((code, host)) = arguments.host().and_then(|host| host.rsplit_once('@')) else {
            return Ok(None);
        };
        if let Some(what) = arguments.given_beside_code() {
            return Err(CommandError::usage(format!(
                "{what}: the code determines the offer; omit the option, and decline an unwanted offer"
            )));
        }
        let read = if code.is_empty() { read_code()? } else { code.to_owned() };
        let code = read.trim().parse().map_err(|wrong| {
            CommandError::usage(format!("{wrong}; the code was not used, so type it again"))
        })?;
        Ok(Some(CodeAndHost { code, host: host.to_owned() }))
    }
}

/// Reads the first line of standard input. Other users of the machine can read arguments, but not standard input.
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

/// Runs the command. All errors that can be found without the sender are reported first, while the code is unused.
pub(in super::super) fn fetch(
    arguments: &RecvArguments,
    at: &CodeAndHost,
    line: &[OsString],
) -> Result<Status, CommandError> {
    if !arguments.yes && !std::io::stdin().is_terminal() {
        return Err(CommandError::usage(
            "the question needs a terminal; use --yes to accept the offer without it. The code was not used",
        ));
    }
    if arguments.connect().rendezvous.is_some() && arguments.pin {
        return Err(CommandError::usage(
            "--pin: a room is used once, so there is no host to store; omit it. The code was not used",
        ));
    }
    let host = read_host(&at.host).map_err(CommandError::usage)?;
    // Options of the request, such as patterns.
    arguments.request_of(Accept::default())?;
    let (store, to_stdout) = open_store(arguments)?;
    let again = command(line).filter(|_| !to_stdout);
    let runtime = runtime()?;
    let fetching = fetch_by_code(arguments, (at, &host), store, again);
    let (ended, _) = arguments.connect().block_on(&runtime, fetching);
    // Threads that write update their journals.
    runtime.shutdown_timeout(SETTLED_WITHIN);
    ended
}

async fn fetch_by_code(
    arguments: &RecvArguments,
    (at, host): (&CodeAndHost, &HostName),
    store: Store,
    again: Option<String>,
) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    tokio::pin!(stop);
    let connector = Connector::new(arguments.connect(), &at.host);
    let agreed = tokio::select! {
        agreed = agree(&connector, arguments, at, &store) => agreed,
        () = &mut stop => {
            connector.close().await;
            // The terminal shows Ctrl-C behind the question.
            if output::is_err_terminal() {
                output::notices("\n");
            }
            arguments.show().note(&format!("no file was received; {STILL_VALID}: the same command asks again"));
            return Ok(Status::Interrupted);
        }
    };
    let (first, key, request) = match agreed {
        Ok(agreed) => agreed,
        Err(refused) => {
            connector.close().await;
            return Err(refused);
        }
    };
    if arguments.pin {
        pin(arguments, host, key)?;
    }
    let console = Arc::new(
        Console::new(arguments.show(), false, again).naming_host(&at.host).dry_run(arguments.is_dry_run()),
    );
    console.start("recv", &mut *connector.paths.lock().await).await;
    let telling = Arc::clone(&console);
    let report = Report::new(move |event| telling.event(&event));
    let open = || open_again(&connector, key);
    let pulled = pull(&request, store, first, open, arguments.timeouts(), &report);
    let ended = tokio::select! {
        ended = pulled => Some(ended),
        () = &mut stop => None,
        () = watch(&console, &report, &connector.paths) => None,
    };
    let is_unconfirmed = matches!(ended, Some(Err(TransferError::Unconfirmed(_))));
    let is_lost = matches!(&ended, Some(Err(error)) if error.is_transient());
    let status = finish(&console, &report, &connector, ended).await;
    if is_unconfirmed {
        arguments.show().note("the same command asks again, with the current offer");
    } else if is_lost {
        arguments.show().note(&format!("{STILL_VALID}; a sender that was started again prints another code"));
    }
    Ok(status)
}

/// Opens an association, proves the code, and asks the user to accept the offer.
async fn agree(
    connector: &Connector<'_>,
    arguments: &RecvArguments,
    at: &CodeAndHost,
    store: &Store,
) -> Result<(Association, PublicKey, Request), CommandError> {
    let is_quiet = arguments.show().quiet || arguments.show().json;
    let (first, catalogue) = open_and_prove(connector, arguments, at, is_quiet).await?;
    let key = peer_key(&first)?;
    check_room(&catalogue, arguments, store)?;
    confirm(&catalogue, arguments).await?;
    let accept = accepted(&catalogue, arguments).map_err(CommandError::failure)?;
    Ok((first, key, arguments.request_of(accept)?))
}

/// Opens an association and proves the code. If an association ends without a verdict on the code, another one is opened during
/// `--retry`, because other receivers may connect as well.
async fn open_and_prove(
    connector: &Connector<'_>,
    arguments: &RecvArguments,
    at: &CodeAndHost,
    is_quiet: bool,
) -> Result<(Association, Catalogue), CommandError> {
    let mut retries = arguments.first_attempts();
    let mut is_first = true;
    loop {
        let association = connector.open_first(Expected::Proof, is_quiet, retries).await?;
        retries = retries.awaiting_peer(true);
        let error = match prove(&association, &at.code).await {
            Ok(catalogue) => return Ok((association, catalogue)),
            Err(error) => error,
        };
        association.abort();
        let is_last = !matches!(error, ExchangeError::Gone) || retries.left() <= PAUSE;
        // The version of the sender is requested once.
        if std::mem::take(&mut is_first) || is_last {
            let refused = refused(connector, error).await;
            if is_last || !refused.is_transient() {
                return Err(refused);
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the reason for which the code was rejected. A sender of version 1 gives no reason, so its version is requested.
async fn refused(connector: &Connector<'_>, error: ExchangeError) -> CommandError {
    let error = match error {
        ExchangeError::Gone => match connector.open_to(Expected::Proof, true).await {
            Ok(second) => {
                let is_old = is_sender_of_version_1(&second).await;
                second.abort();
                if is_old { CodeError::Version(1).into() } else { error }
            }
            Err(_) => error,
        },
        error => error,
    };
    let text = format!("{}: {error}", connector.host());
    match error {
        ExchangeError::Gone => CommandError::transient(text),
        ExchangeError::Lost => CommandError::failure(text),
        ExchangeError::Code(_) | ExchangeError::Spent(_) => CommandError::untrusted(text),
    }
}

/// Connects to the sender that has proved the code, and resumes.
async fn open_again(connector: &Connector<'_>, key: PublicKey) -> Result<Association, CommandError> {
    let association = connector.open_to(Expected::Key(key), true).await?;
    match resume(&association).await {
        Ok(()) => Ok(association),
        Err(error) => {
            association.abort();
            Err(match error {
                ExchangeError::Gone => CommandError::failure(error),
                error => CommandError::untrusted(error),
            })
        }
    }
}

/// Returns a filter for the confirmed entries. The transfer ends if the peer sends other files.
fn accepted(catalogue: &Catalogue, arguments: &RecvArguments) -> Result<Accept, BadRequest> {
    Accept::confirmed(catalogue, arguments.max.unwrap_or(MOST_STREAM_BYTES))
}

fn check_room(catalogue: &Catalogue, arguments: &RecvArguments, store: &Store) -> Result<(), CommandError> {
    let known = catalogue.entries().iter().filter_map(Entry::bytes).fold(0, u64::saturating_add);
    if let Some(most) = arguments.max.filter(|most| known > *most) {
        return Err(CommandError::failure(format!(
            "no file was received: {} are offered, and --max allows {}; {STILL_VALID}: repeat the command with a larger --max",
            amount(known),
            amount(most)
        )));
    }
    let Store::Folder(folder) = store else { return Ok(()) };
    let names: Vec<&str> = catalogue.entries().iter().map(Entry::name).collect();
    match folder.missing_room(known, &names) {
        Some(free) => Err(CommandError::failure(format!(
            "no file was received: {} are offered and {} are free in {}; {STILL_VALID}: free space and repeat the command",
            amount(known),
            amount(free),
            arguments.dir_text()
        ))),
        None => Ok(()),
    }
}

/// Shows the offer, and asks the user to accept it.
async fn confirm(catalogue: &Catalogue, arguments: &RecvArguments) -> Result<(), CommandError> {
    let most_stream_bytes = arguments.max.unwrap_or(MOST_STREAM_BYTES);
    let listed: String = catalogue.entries().iter().map(|entry| listed(entry, most_stream_bytes)).collect();
    let show = arguments.show();
    if show.json {
        live_output::event(&offered_json(catalogue, most_stream_bytes));
    }
    // The list is always shown before a question.
    if !((show.quiet || show.json) && arguments.yes) {
        output::notices(&format!("offered:\n{listed}"));
    }
    if arguments.yes {
        return refuse_hidden(catalogue);
    }
    output::prompt("take this? [y/N] ");
    // A thread that waits for the terminal cannot be woken. It ends with the process.
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    match answer.await {
        Ok(Ok(line)) if matches!(line.trim(), "y" | "Y" | "yes") => Ok(()),
        _ => Err(CommandError::failure(format!("no file was received; {STILL_VALID}"))),
    }
}

/// Returns a line of the list that the user confirms.
fn listed(entry: &Entry, most_stream_bytes: u64) -> String {
    let count = |number, one: &str| match number {
        1 => format!("1 {one}"),
        number => format!("{number} {one}s"),
    };
    let what = match (entry.kind(), entry.bytes()) {
        (EntryKind::Link, _) => "a symbolic link".to_owned(),
        (_, None) => format!("a stream of unknown size, at most {} (--max)", amount(most_stream_bytes)),
        (EntryKind::Folder, Some(bytes)) => {
            let links =
                if entry.links() > 0 { format!(", {}", count(entry.links(), "link")) } else { String::new() };
            let (files, folders) = (count(entry.files(), "file"), count(entry.folders(), "folder"));
            format!("{files} in {folders}{links}, {}", amount(bytes))
        }
        (EntryKind::File | EntryKind::Stream, Some(bytes)) => format!("1 file, {}", amount(bytes)),
    };
    format!("  {}  {what}\n", escape(entry.name()))
}

fn offered_json(catalogue: &Catalogue, most_stream_bytes: u64) -> serde_json::Value {
    let entries = catalogue.entries().iter().map(|entry| {
        let kind = match entry.kind() {
            EntryKind::File => "file",
            EntryKind::Stream => "stream",
            EntryKind::Link => "link",
            EntryKind::Folder => "folder",
        };
        json!({
            "name": escape(entry.name()), "kind": kind, "files": entry.files(), "folders": entry.folders(),
            "links": entry.links(), "bytes": entry.bytes(),
            "most_bytes": entry.bytes().unwrap_or(most_stream_bytes),
        })
    });
    json!({ "event": "offered", "entries": entries.collect::<Vec<_>>() })
}

/// Rejects names that begin with a dot if the user is not asked: programs read such files automatically.
fn refuse_hidden(catalogue: &Catalogue) -> Result<(), CommandError> {
    match catalogue.entries().iter().find(|entry| entry.name().starts_with('.')) {
        Some(hidden) => Err(CommandError::usage(format!(
            "no file was received: `{}` is offered, and --yes refuses names that begin with a dot; omit --yes to be asked. \
             {STILL_VALID}",
            escape(hidden.name())
        ))),
        None => Ok(()),
    }
}

fn pin(arguments: &RecvArguments, host: &HostName, key: PublicKey) -> Result<(), CommandError> {
    let file = arguments.connect().association.protection.home()?.known_hosts();
    KnownHosts::add(&file, host, key)?;
    arguments.show().note(&format!("{host} is known from now on: {}", file.display()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anabranch_transfer::{Offering, SendSource};

    use super::*;

    #[tokio::test]
    async fn list_shows_kind_numbers_and_size_of_each_entry() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("photos/2026")).expect("made");
        fs::write(at("photos/2026/a"), [0; 20]).expect("written");
        fs::write(at("film\u{202e}.mkv"), [0; 7]).expect("written");
        #[cfg(unix)]
        std::os::unix::fs::symlink("2026/a", at("photos/link")).expect("made");
        let sources = vec![
            SendSource::path(at("film\u{202e}.mkv")),
            SendSource::path(at("photos")),
            SendSource::stream("piped", std::io::empty()),
        ];
        let offering = Offering::survey(sources).await.expect("there");
        let lines: String = offering.catalogue().entries().iter().map(|entry| listed(entry, 5)).collect();
        assert_eq!(
            lines,
            "  film\\u{202e}.mkv  1 file, 7 B\n  photos  1 file in 2 folders, 1 link, 20 B\n  \
             piped  a stream of unknown size, at most 5 B (--max)\n"
        );
        let shown = offered_json(offering.catalogue(), 5);
        assert_eq!(
            (&shown["entries"][1]["folders"], &shown["entries"][2]["bytes"]),
            (&json!(2), &json!(null))
        );
    }
}
