//! `anabranch recv`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::route_selection::read_address;
use anabranch_net::{AcceptError, Association, ConnectRetries, Endpoint};
use anabranch_transfer::{
    Accept, Allow, Folder, Mode, Pipe, Report, Request, Rights, Server, ServerOptions, Store, Timeouts,
    TransferError, pull,
};
use clap::Args;
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use super::again::command;
use super::console::{Console, End, listening_notice};
use super::paths::Paths;
use super::send::{Connector, can_resume, finish, judge, watch};
use super::{Clash, SelectOptions, ShowOptions, StoreOptions, TimeoutOptions, open_folder, runtime};
use crate::endpoint::{AccessOptions, Admitted, ConnectOptions, Expected, ListenOptions, typed};
use crate::exit::{CommandError, Status};
use crate::signal::interrupted;
use crate::{output, quantity};

/// Maximum time for updating journals at the end.
pub(super) const SETTLED_WITHIN: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  Fetch a file and a folder from `anabranch serve` on another machine, or all
  files that it offers:
    anabranch recv example.org video.mkv photos --dir inbox
    anabranch recv example.org --all --dir inbox
  List its offer below photos, and the names that would be fetched:
    anabranch recv example.org --list photos
    anabranch recv example.org photos --exclude 'raw/' --dry-run -v
  Fetch the offer of `anabranch send --code`, which printed this code:
    anabranch recv 42-marble-river@example.org
  Fetch the same offer without a prompt, if it has at most 5 GiB; after Ctrl-C
  the same command resumes the transfer:
    anabranch recv 42-marble-river@example.org --yes --max 5GiB
  Write a file to another program while it arrives:
    anabranch recv example.org photos.tar --stdout | tar t
  Wait for one transfer from `anabranch send`, store only this file or all
  files, and exit:
    anabranch recv --listen 192.0.2.1 --listen 198.51.100.1 \\
        --from 203.0.113.0/24 video.mkv
    anabranch recv --listen 192.0.2.1 --from 203.0.113.7 --all

Only the given names and their contents are stored; the transfer ends if the
peer offers other names. With --all, names that begin with a dot are omitted
unless --hidden is given. Names are compared exactly: case and Unicode
normalisation make a difference.
All packets are encrypted, and the host has to prove the key of its first
connection (`anabranch keys`).
With --listen, senders need a key in authorized_keys. --insecure on both sides
disables both.
With --from, packets from other addresses get no answer.
Exit status: 0 if everything is there, 1 if the peer could not be reached or
was lost, 2 if the command line is wrong, 3 if files were omitted, each with
a line that gives the reason, 4 if the peer has another identity, 130 after
Ctrl-C.";

/// Fetch files from a server or by a code, or wait for a sender.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RecvArguments {
    /// Peer to fetch from, unless --listen is given: HOST, HOST:PORT [port: 9899], or CODE@HOST with the code that
    /// `anabranch send --code` printed (@HOST reads the code from standard input); then the names of files and folders to take
    #[arg(value_name = "HOST[:PORT]] [NAME")]
    host_and_names: Vec<String>,

    /// Fetch all offered names, except those that begin with a dot
    #[arg(long)]
    all: bool,

    /// With CODE@HOST: accept the offer without a question
    #[arg(long)]
    pub(super) yes: bool,

    /// With CODE@HOST: accept at most this size, such as 5GiB; refuse a larger offer [default: the confirmed size, and 1GiB of a
    /// stream, whose size is unknown]
    #[arg(long, value_name = "SIZE", value_parser = quantity::read_size)]
    pub(super) max: Option<u64>,

    /// With CODE@HOST: store the host's key in known_hosts (`anabranch keys`)
    #[arg(long)]
    pub(super) pin: bool,

    /// With --all: also fetch names that begin with a dot
    #[arg(long, requires = "all")]
    hidden: bool,

    #[command(flatten)]
    listening: ListenAddresses,

    /// Folder for received files, created if missing; - is standard output
    #[arg(long, short = 'o', value_name = "DIR", default_value = ".", visible_alias = "output")]
    dir: PathBuf,

    /// Write a single file to standard output as it arrives
    #[arg(long, conflicts_with_all = ["dir", "json"])]
    stdout: bool,

    /// Action if a different file with the same name exists [default: refuse, with --listen the sender's choice]
    #[arg(long, value_enum)]
    on_clash: Option<Clash>,

    /// Remove local files that the fetched folders do not contain at the host, once everything has arrived
    #[arg(long, conflicts_with = "list")]
    delete: bool,

    /// With --listen: permit senders to request such a removal (`send --delete`)
    #[arg(long, requires = "listen")]
    allow_delete: bool,

    /// Print the names that the host offers, and store nothing
    #[arg(long, conflicts_with_all = ["dry_run", "stdout", "dir", "on_clash"])]
    list: bool,

    #[command(flatten)]
    select: SelectOptions,

    #[command(flatten)]
    store: StoreOptions,

    #[command(flatten)]
    connect: ConnectOptions,

    #[command(flatten)]
    timeouts: TimeoutOptions,

    #[command(flatten)]
    show: ShowOptions,
}

/// Option `--listen` alone. The other options of listening and connecting are the same.
#[derive(Debug, Args)]
struct ListenAddresses {
    /// Wait here for one transfer and exit; can be repeated
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = read_address)]
    listen: Vec<std::net::SocketAddr>,

    #[command(flatten)]
    access: AccessOptions,
}

/// Side that connects.
enum Role<'a> {
    Fetch(&'a str),
    Wait(Box<(ListenOptions, Admitted)>),
}

impl RecvArguments {
    /// Returns `true` for a dry run.
    pub(super) fn is_dry_run(&self) -> bool {
        self.select.dry_run
    }

    pub(super) fn show(&self) -> &ShowOptions {
        &self.show
    }

    pub(super) fn connect(&self) -> &ConnectOptions {
        &self.connect
    }

    pub(super) fn timeouts(&self) -> Timeouts {
        self.timeouts.timeouts()
    }

    pub(super) fn first_attempts(&self) -> ConnectRetries {
        self.timeouts.first_attempts()
    }

    /// Returns the folder as typed.
    pub(super) fn dir_text(&self) -> String {
        self.dir.display().to_string()
    }

    /// Returns the request for `CODE@HOST`, whose sender has listed its offer.
    pub(super) fn request_of(&self, accept: Accept) -> Result<Request, CommandError> {
        let filters = self.select.filters.filters().map_err(CommandError::usage)?;
        let links = self.select.links.into();
        Ok(Request { accept: accept.with_filters(filters), links, mode: self.mode(), delete: false })
    }

    /// Returns the side that connects, and the filter of the offer.
    fn request(&self) -> Result<(Role<'_>, Accept), CommandError> {
        let given = [("--yes", self.yes), ("--pin", self.pin), ("--max", self.max.is_some())];
        if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
            return Err(CommandError::usage(format!("{option} requires CODE@HOST; omit it")));
        }
        let (host, names) = match self.host_and_names.split_first() {
            _ if !self.listening.listen.is_empty() => (None, &self.host_and_names[..]),
            Some((host, names)) => (Some(host.as_str()), names),
            None => {
                return Err(CommandError::usage(
                    "name the HOST to fetch from, or where to wait with --listen ADDR",
                ));
            }
        };
        let role = match host {
            Some(host) => self.fetch(host)?,
            None => self.wait(names)?,
        };
        let filters = self.select.filters.filters().map_err(CommandError::usage)?;
        Ok((role, self.accept(names)?.with_filters(filters)))
    }

    /// Returns the host to connect to, if the command connects.
    pub(super) fn host(&self) -> Option<&str> {
        self.host_and_names.first().filter(|_| self.listening.listen.is_empty()).map(String::as_str)
    }

    /// Returns the first given option that has no meaning with a code.
    pub(super) fn given_beside_code(&self) -> Option<&'static str> {
        let given = [
            ("names of files", self.host_and_names.len() > 1),
            ("--all", self.all),
            ("--list", self.list),
            ("--delete", self.delete),
            ("--insecure", self.connect.association.protection.insecure),
            ("--ca", self.connect.association.protection.has_authorities()),
            ("--from", self.listening.access.given().is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(what, _)| what)
    }

    fn accept(&self, names: &[String]) -> Result<Accept, CommandError> {
        match (self.all, names) {
            (true, []) => Ok(Accept::all(self.hidden)),
            (true, [name, ..]) => {
                Err(CommandError::usage(format!("--all: `{name}` is part of it; omit one of them")))
            }
            (false, []) if self.list => Ok(Accept::all(true)),
            (false, []) => Err(CommandError::usage(
                "name files or folders, as in `recv HOST video.mkv photos`, or fetch all of them with --all",
            )),
            (false, names) => Accept::names(names).map_err(CommandError::usage),
        }
    }

    fn mode(&self) -> Mode {
        match (self.list, self.select.dry_run) {
            (true, _) => Mode::List,
            (false, true) => Mode::DryRun,
            (false, false) => Mode::Store,
        }
    }

    fn fetch<'a>(&self, host: &'a str) -> Result<Role<'a>, CommandError> {
        match self.listening.access.given() {
            Some(option) => {
                Err(CommandError::usage(format!("{option} requires --listen; omit it to fetch from {host}")))
            }
            None => Ok(Role::Fetch(host)),
        }
    }

    fn wait(&self, names: &[String]) -> Result<Role<'_>, CommandError> {
        if self.delete {
            return Err(CommandError::usage(
                "--delete is for fetching from a host; with --listen the sender asks for it, and --allow-delete lets it",
            ));
        }
        let of_host = [("--list", self.list), ("--dry-run", self.select.dry_run)];
        if let Some((option, _)) = of_host.into_iter().find(|(_, given)| *given) {
            return Err(CommandError::usage(format!(
                "{option} applies to fetching from a host; omit it with --listen"
            )));
        }
        if let Some(option) = self.connect.given_to_connect() {
            return Err(CommandError::usage(format!(
                "{option} applies to connecting to a host; omit it with --listen"
            )));
        }
        let ListenAddresses { listen, access } = &self.listening;
        let association = self.connect.association.clone();
        let (listen, access) = (listen.clone(), access.clone());
        let listen = ListenOptions::new(listen, access, association);
        let mut command = "anabranch recv".to_owned();
        if self.all {
            command.push_str(" --all");
        }
        names.iter().for_each(|name| command.extend([" ", &typed(Path::new(name), "NAME")]));
        let admitted = listen.admitted(&command)?;
        Ok(Role::Wait(Box::new((listen, admitted))))
    }
}

/// Returns the destination of fetched files, and `true` if it is standard output.
pub(super) fn open_store(arguments: &RecvArguments) -> Result<(Store, bool), CommandError> {
    let to_stdout = arguments.stdout || arguments.dir == Path::new("-");
    if to_stdout && arguments.show.json {
        return Err(CommandError::usage("--json: standard output takes the file; omit one of them"));
    }
    if to_stdout && (arguments.delete || arguments.allow_delete) {
        return Err(CommandError::usage(
            "--delete and --allow-delete: standard output has no files to remove; omit one of them",
        ));
    }
    let store = if arguments.list {
        Store::Pipe(Pipe::new(std::io::sink()))
    } else if to_stdout {
        Store::Pipe(Pipe::new(output::content()))
    } else {
        let folder = open_folder(&arguments.dir, arguments.on_clash, arguments.store, &arguments.show)?;
        if !arguments.select.dry_run {
            check_writable(&folder, &arguments.dir)?;
        }
        Store::Folder(folder.with_checksum(arguments.select.checksum))
    };
    Ok((store, to_stdout))
}

fn check_writable(folder: &Folder, dir: &Path) -> Result<(), CommandError> {
    folder.check_writable().map_err(|error| {
        let dir = dir.display();
        CommandError::failure(format!(
            "--dir {dir}: no file can be made in it: {error}; check its permissions, or name another folder"
        ))
    })
}

/// Runs the command. `line` is the command line.
pub(super) fn recv(arguments: &RecvArguments, line: &[OsString]) -> Result<Status, CommandError> {
    let (role, accept) = arguments.request()?;
    let (store, to_stdout) = open_store(arguments)?;
    let again = command(line).filter(|_| !to_stdout);
    let runtime = runtime()?;
    let (ended, _) = arguments.connect.block_on(&runtime, async {
        match role {
            Role::Fetch(host) => {
                let (links, mode) = (arguments.select.links.into(), arguments.mode());
                let request = Request { accept, links, mode, delete: arguments.delete };
                fetch(arguments, host, &request, store, again).await
            }
            Role::Wait(waiting) => {
                let (listen, admitted) = *waiting;
                wait(arguments, (&listen, &admitted), accept, store, again).await
            }
        }
    });
    // Threads that write update their journals.
    runtime.shutdown_timeout(SETTLED_WITHIN);
    ended
}

async fn fetch(
    arguments: &RecvArguments,
    host: &str,
    request: &Request,
    store: Store,
    again: Option<String>,
) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    arguments.connect.open_control("recv", None);
    let is_quiet = arguments.show.quiet || arguments.show.json;
    tokio::pin!(stop);
    let connector = Connector::new(&arguments.connect, host);
    let first = tokio::select! {
        first = connector.open_first(Expected::Known, is_quiet, arguments.first_attempts()) => first?,
        () = &mut stop => return Ok(Status::Interrupted),
    };
    let console = Arc::new(
        Console::new(&arguments.show, false, again).naming_host(host).dry_run(arguments.select.dry_run),
    );
    console.start("recv", &mut *connector.paths.lock().await).await;
    let telling = Arc::clone(&console);
    let report = Report::new(move |event| telling.event(&event));
    let timeouts = arguments.timeouts.timeouts();
    let pulled = pull(request, store, first, || connector.open(true), timeouts, &report);
    let ended = tokio::select! {
        ended = pulled => Some(ended),
        () = &mut stop => None,
        () = watch(&console, &report, &connector.paths) => None,
    };
    Ok(finish(&console, &report, &connector, ended).await)
}

/// Waits for one transfer.
async fn wait(
    arguments: &RecvArguments,
    (listen, admitted): (&ListenOptions, &Admitted),
    accept: Accept,
    store: Store,
    again: Option<String>,
) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    listen.association.open_control("recv");
    let silence = arguments.timeouts.timeout;
    let options = ServerOptions {
        allow: Allow::Write,
        accept,
        silence,
        on_clash: arguments.on_clash.map(Into::into),
        allow_delete: arguments.allow_delete,
        ..ServerOptions::default()
    };
    let endpoint = listen.bind_bounded(admitted, options.most_associations(), |config| config).await?;
    let secured = (admitted, &listen.association.protection);
    listening_notice(&endpoint, &arguments.show, secured, "waiting for a transfer");
    let server = Server::new(store, options);
    let console = Arc::new(Console::new(&arguments.show, false, again));
    let paths = Mutex::new(Paths::default());
    let telling = Arc::clone(&console);
    let report = Report::new(move |event| telling.event(&event));
    let ended = tokio::select! {
        ended = one_transfer((&endpoint, admitted), &server, &report, &paths, arguments.timeouts().retry) => Some(ended),
        () = stop => None,
        () = watch(&console, &report, &paths) => None,
    };
    server.abort_all();
    let carried = paths.lock().await.carried().await;
    let totals = report.totals();
    let can_resume = can_resume(ended.as_ref());
    let (result, status, error) = judge(ended, &totals);
    console.end(&End { result, error, totals, carried: &carried, can_resume });
    if let Some(association) = paths.lock().await.association() {
        let _ = tokio::time::timeout(Duration::from_secs(1), association.closed()).await;
    }
    Ok(status)
}

/// Serves associations until a transfer is done. After the first association is lost, the peer may connect again within `retry`.
async fn one_transfer(
    (endpoint, admitted): (&Endpoint, &Admitted),
    server: &Server,
    report: &Report,
    paths: &Mutex<Paths>,
    retry: Duration,
) -> Result<(), TransferError> {
    let (ends, mut ended) = mpsc::unbounded_channel();
    let mut running = 0_u32;
    let mut lost: Option<(Instant, TransferError)> = None;
    loop {
        let give_up = async {
            match &lost {
                Some((until, error)) if running == 0 => {
                    tokio::time::sleep_until(*until).await;
                    error.clone()
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            accepted = endpoint.accept() => {
                let association = accepted.map_err(gone)?;
                let rights = match admitted.caller(&association) {
                    Ok(caller) => {
                        report.note(format!("{} has connected", caller.at(&peer_address(&association).await)));
                        caller.rights
                    }
                    Err(refused) => {
                        association.abort();
                        report.note(format!("a connection was refused: {refused}"));
                        continue;
                    }
                };
                paths.lock().await.switch(association.clone()).await;
                running += 1;
                if running == 1 && lost.is_some() {
                    report.forget_all();
                }
                serve_one(server, (association, rights), report, ends.clone());
            }
            Some(end) = ended.recv() => {
                running -= 1;
                match end {
                    Ok(()) => return Ok(()),
                    Err(TransferError::Replaced) => {}
                    Err(error) if error.is_transient() => lost = Some((Instant::now() + retry, error)),
                    // The peer has not begun a transfer.
                    Err(error) => report.note(format!("a connection was refused: {error}")),
                }
            }
            error = give_up => return Err(error),
        }
    }
}

/// Returns the remote address of an association.
pub(super) async fn peer_address(association: &Association) -> String {
    association.paths().await.first().map_or_else(String::new, |path| path.remote.to_string())
}

fn serve_one(
    server: &Server,
    (association, rights): (Association, Rights),
    report: &Report,
    ends: mpsc::UnboundedSender<Result<(), TransferError>>,
) {
    let (server, report) = (server.clone(), report.clone());
    tokio::spawn(async move {
        let ended = server.serve_with(association, &rights, &report).await;
        // The channel is closed when one transfer is done.
        let _ = ends.send(ended.map(drop));
    });
}

fn gone(error: AcceptError) -> TransferError {
    TransferError::Lost(error.to_string())
}
