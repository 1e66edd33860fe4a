//! `anabranch send`.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::route_selection::read_address;
use anabranch_net::{Association, ConnectRetries};
use anabranch_transfer::{
    Name, OnClash, RateLimit, Report, SendSource, Sender, SenderRequests, Totals, TransferError, push,
};
use clap::Args;
use tokio::sync::Mutex;

use super::again::{self, is_resumable, remedy};
use super::console::{Console, End, LOOK_EVERY};
use super::identity::sender;
use super::paths::Paths;
use super::{Clash, SelectOptions, ShowOptions, TimeoutOptions, read_limit, runtime};
use crate::endpoint::{AccessOptions, ConnectOptions, Expected, ListenOptions, MeetingOptions};
use crate::exit::{CommandError, Status};
use crate::signal::{Resizes, interrupted};

/// Maximum time for the peer to receive the abort.
const ABORT_TIMEOUT: Duration = Duration::from_secs(1);

const EXAMPLES: &str = "\
Examples:
  Send a file and a folder to `anabranch serve` on another machine, over every
  usable path:
    anabranch send video.mkv photos example.org
  Over two interfaces, and through a relay for each:
    anabranch send video.mkv example.org --path eth0 --path wlan0
    anabranch send video.mkv example.org --to 127.0.0.11:9899 \\
        --to 127.0.0.12:9899
  List the files that would be sent from a folder without its objects, and
  replace those that differ:
    anabranch send src example.org --exclude '*.o' --dry-run -v
    anabranch send src example.org --exclude '*.o' --on-clash overwrite
  Make the remote folder equal to the local one; check the removals first:
    anabranch send photos example.org --on-clash overwrite --delete --dry-run
    anabranch send photos example.org --on-clash overwrite --delete
  Send the output of another program:
    tar c photos | anabranch send - example.org --name photos.tar
  Send a file to a person without an account or key here, with a code that can
  be passed on by telephone:
    anabranch send --code film.mkv

With --code, only the first receiver that uses the code gets the files. The
receiver may interrupt and repeat its command until it has all files. The
sender waits for it until Ctrl-C, or for the time of --retry.
The same command resumes an interrupted transfer.
All packets are encrypted, and the host has to prove the key of its first
connection (`anabranch keys`).
Exit status: 0 if everything is there, 1 if the peer could not be reached or
was lost, 2 if the command line is wrong, 3 if files were omitted, each with
a line that gives the reason, 4 if the peer has another identity, 130 after
Ctrl-C.";

/// Send files and folders to a server, or to the holder of a code.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SendArguments {
    /// Files and folders, or - for standard input, and last the peer: HOST or HOST:PORT [port: 9899]
    #[arg(value_name = "FILE|DIR|-... HOST[:PORT]", required = true, num_args = 1..)]
    sources_and_host: Vec<String>,

    /// Name under which standard input, or the only named pipe, is stored [default: stdin]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Maximum sending rate, such as 10Mbit
    #[arg(long, value_name = "RATE", value_parser = read_limit)]
    limit: Option<RateLimit>,

    /// Action if the receiver has a different file with the same name and leaves the choice to senders [default: refuse]
    #[arg(long, value_enum)]
    on_clash: Option<Clash>,

    /// Once all files have arrived, remove entries of the sent folders at the receiver that do not exist here; the receiver must
    /// allow it with --allow-delete
    #[arg(long)]
    delete: bool,

    /// Listen instead of connecting, print a one-time code, and send the files to the peer that uses the code with `anabranch recv
    /// CODE@HOST`
    #[arg(long, conflicts_with_all = ["on_clash", "delete", "dry_run", "checksum", "insecure", "ca", "paths", "to", "connect_timeout"])]
    code: bool,

    /// With --code: authorise the receiver's key for later connections (`anabranch keys`)
    #[arg(long, requires = "code")]
    pub(super) pin: bool,

    /// With --code: local address to listen on; can be repeated [default: those that `anabranch paths` calls usable, port 9899]
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = read_address, requires = "code")]
    listen: Vec<SocketAddr>,

    #[command(flatten)]
    access: AccessOptions,

    #[command(flatten)]
    select: SelectOptions,

    #[command(flatten)]
    connect: ConnectOptions,

    #[command(flatten)]
    timeouts: TimeoutOptions,

    #[command(flatten)]
    show: ShowOptions,
}

impl SendArguments {
    pub(super) fn show(&self) -> &ShowOptions {
        &self.show
    }

    /// Returns `true` if the files are offered with a one-time code.
    pub(super) fn by_code(&self) -> bool {
        self.code
    }

    /// Returns the sources of a command without a host.
    pub(super) fn all_sources(&self) -> Result<Vec<SendSource>, CommandError> {
        self.sources(&self.sources_and_host)
    }

    pub(super) fn rate(&self) -> Option<RateLimit> {
        self.limit
    }

    pub(super) fn silence(&self) -> Duration {
        self.timeouts.timeout
    }

    /// Returns the value of `--retry`, if it was given.
    pub(super) fn retry_if_given(&self) -> Option<Duration> {
        self.timeouts.retry
    }

    fn sources(&self, paths: &[String]) -> Result<Vec<SendSource>, CommandError> {
        let filters = self.select.filters.filters().map_err(CommandError::usage)?;
        let links = self.select.links.into();
        let sources = sources(paths, self.name.as_deref())?.into_iter();
        Ok(sources.map(|source| source.with_links(links).with_filters(filters.clone())).collect())
    }

    /// Returns the options of listening for `--code`.
    pub(super) fn listen_options(&self) -> ListenOptions {
        let association = self.connect.association.clone();
        let (listen, access) = (self.listen.clone(), self.access.clone());
        let meeting = MeetingOptions { rendezvous: self.connect.rendezvous.clone() };
        ListenOptions { meeting, ..ListenOptions::new(listen, access, association) }
    }

    fn sender_requests(&self) -> SenderRequests {
        let SelectOptions { checksum, dry_run, .. } = self.select;
        let on_clash = self.on_clash.map_or(OnClash::Refuse, Into::into);
        SenderRequests { on_clash, checksum, dry_run, delete: self.delete }
    }
}

/// Runs the command. `typed` is the command line.
pub(super) fn send(arguments: &SendArguments, typed: &[OsString]) -> Result<Status, CommandError> {
    if let Some(option) = arguments.access.given() {
        return Err(CommandError::usage(format!("{option} requires --code; omit it to send to a host")));
    }
    let Some((host, paths)) = arguments.sources_and_host.split_last().filter(|(_, paths)| !paths.is_empty())
    else {
        return Err(CommandError::usage("name at least one file to send, and the host last"));
    };
    let sources = arguments.sources(paths)?;
    let runtime = runtime()?;
    let (ended, _) = arguments.connect.block_on(&runtime, run(arguments, host, sources, typed));
    // A thread that waits for standard input cannot be woken.
    runtime.shutdown_background();
    ended
}

fn sources(paths: &[String], name: Option<&str>) -> Result<Vec<SendSource>, CommandError> {
    if let Some(name) = name {
        Name::new(name)
            .map_err(|bad| CommandError::usage(format!("--name {name}: {bad}; take another one")))?;
    }
    let is_pipe = |path: &String| path == "-" || SendSource::path(path).is_pipe();
    let only_pipe = paths.iter().filter(|path| is_pipe(path)).count() == 1;
    if paths.iter().filter(|path| *path == "-").count() > 1 {
        return Err(CommandError::usage("`-`: there is one standard input; name it once"));
    }
    let source = |path: &String| {
        if path == "-" {
            return Ok(SendSource::stream(name.unwrap_or("stdin"), std::io::stdin()));
        }
        // Fail before connecting.
        match Path::new(path).symlink_metadata() {
            Ok(_) => Ok(match name {
                Some(name) if only_pipe && is_pipe(path) => SendSource::piped(name, path),
                _ => SendSource::path(path),
            }),
            Err(error) => Err(CommandError::failure(format!("{path}: {error}; check the name"))),
        }
    };
    paths.iter().map(source).collect()
}

async fn run(
    arguments: &SendArguments,
    host: &str,
    sources: Vec<SendSource>,
    typed: &[OsString],
) -> Result<Status, CommandError> {
    // The handler is installed before the first output, so that a program that reads the output may send a signal.
    let stop = interrupted()?;
    arguments.connect.open_control("send", None);
    let is_quiet = arguments.show.quiet || arguments.show.json;
    let identity = sender(&arguments.show)?;
    tokio::pin!(stop);
    let connector = Connector::new(&arguments.connect, host);
    let first = tokio::select! {
        first = connector.open_first(Expected::Known, is_quiet, arguments.timeouts.first_attempts()) => first?,
        () = &mut stop => return Ok(Status::Interrupted),
    };
    let is_piped = sources.iter().any(SendSource::is_pipe);
    let console = Console::new(&arguments.show, true, again::command(typed));
    let console = Arc::new(console.dry_run(arguments.select.dry_run).piped(is_piped));
    console.start("send", &mut *connector.paths.lock().await).await;
    let telling = Arc::clone(&console);
    let report = Report::new(move |event| telling.event(&event));
    let sender = Sender::new(sources, arguments.limit, report.clone());
    let mut sender = sender.with_identity(identity).with_sender_requests(arguments.sender_requests());
    let pushed = push(&mut sender, first, || connector.open(true), arguments.timeouts.timeouts(), &report);
    let ended = tokio::select! {
        ended = pushed => Some(ended),
        () = &mut stop => None,
        () = watch(&console, &report, &connector.paths) => None,
    };
    Ok(finish(&console, &report, &connector, ended).await)
}

/// Connection to the peer, which can be opened repeatedly, and its paths.
pub(super) struct Connector<'a> {
    options: &'a ConnectOptions,
    host: &'a str,
    pub(super) paths: Mutex<Paths>,
}

impl<'a> Connector<'a> {
    pub(super) fn new(options: &'a ConnectOptions, host: &'a str) -> Self {
        Connector { options, host, paths: Mutex::default() }
    }

    pub(super) fn host(&self) -> &str {
        self.host
    }

    /// Opens an association. Unless `quiet`, the progress of a long attempt is printed.
    pub(super) async fn open(&self, quiet: bool) -> Result<Association, CommandError> {
        self.open_to(Expected::Known, quiet).await
    }

    /// Opens an association with an expected peer.
    pub(super) async fn open_to(&self, expected: Expected, quiet: bool) -> Result<Association, CommandError> {
        self.open_within(expected, quiet, ConnectRetries::none()).await
    }

    async fn open_within(
        &self,
        expected: Expected,
        quiet: bool,
        retries: ConnectRetries,
    ) -> Result<Association, CommandError> {
        let (_, association) =
            self.options.open_with(self.host, quiet, (expected, retries), |config| config).await?;
        self.paths.lock().await.switch(association.clone()).await;
        Ok(association)
    }

    /// Opens the first association. A handshake that ends without a verdict of the peer, for example during a restart of the peer,
    /// is repeated as `retries` allows.
    pub(super) async fn open_first(
        &self,
        expected: Expected,
        quiet: bool,
        retries: ConnectRetries,
    ) -> Result<Association, CommandError> {
        self.open_within(expected, quiet, retries).await
    }

    /// Aborts the current association, if there is one, to inform the peer.
    pub(super) async fn close(&self) {
        if let Some(association) = self.paths.lock().await.association() {
            association.abort();
            let _ = tokio::time::timeout(ABORT_TIMEOUT, association.closed()).await;
        }
    }
}

/// Shows the progress each second and after each change of the terminal's size, until it is dropped.
pub(super) async fn watch(console: &Console, report: &Report, paths: &Mutex<Paths>) {
    let mut tick = tokio::time::interval(LOOK_EVERY);
    tick.tick().await;
    let mut resizes = if console.is_live() { Resizes::watch() } else { Resizes::default() };
    loop {
        tokio::select! {
            _ = tick.tick() => {
                let lines = paths.lock().await.sample().await;
                console.show_progress(&report.totals(), lines);
            }
            () = resizes.next() => console.redraw(),
        }
    }
}

/// Prints the summary and returns the exit status. `None` means that a signal ended the transfer.
pub(super) async fn finish(
    console: &Console,
    report: &Report,
    connector: &Connector<'_>,
    ended: Option<Result<(), TransferError>>,
) -> Status {
    if !matches!(ended, Some(Ok(()))) {
        connector.close().await;
    }
    let carried = connector.paths.lock().await.carried().await;
    let totals = report.totals();
    let can_resume = can_resume(ended.as_ref());
    let (result, status, error) = judge(ended, &totals);
    let error = error.map(|error| format!("{}: {error}", connector.host));
    console.end(&End { result, error, totals, carried: &carried, can_resume });
    status
}

/// Returns the result of a transfer, its exit status, and the text of an error.
pub(super) fn judge(
    ended: Option<Result<(), TransferError>>,
    totals: &Totals,
) -> (&'static str, Status, Option<String>) {
    match ended {
        None => ("interrupted", Status::Interrupted, None),
        Some(Err(error)) => {
            let status = if matches!(error, TransferError::Untrusted(_)) {
                Status::Untrusted
            } else {
                Status::Failure
            };
            ("failed", status, Some(format!("{error}{}", remedy(&error))))
        }
        Some(Ok(())) if totals.failed_files > 0 => ("incomplete", Status::Incomplete, None),
        Some(Ok(())) => ("complete", Status::Success, None),
    }
}

/// Returns `true` if the same command resumes the transfer. `None` means that a signal ended the transfer.
pub(super) fn can_resume(ended: Option<&Result<(), TransferError>>) -> bool {
    match ended {
        None => true,
        Some(Ok(())) => false,
        Some(Err(error)) => is_resumable(error),
    }
}
