//! `anabranch serve`.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_net::{Association, Endpoint};
use anabranch_transfer::{
    Accept, Allow, Deadlines, Folder, RateLimit, Report, Served, Server, ServerOptions, Store,
};
use anyhow::Context;
use clap::{Args, ValueEnum};
use tokio::sync::Mutex;

use super::again::remedy_there;
use super::console::{Console, End, Origin, listening_notice};
use super::figures::{amount, duration};
use super::identity::sender;
use super::paths::Paths;
use super::recv::peer_address;
use super::send::watch;
use super::{Clash, ShowOptions, StoreOptions, open_folder, read_limit, read_silence, runtime};
use crate::costs::link_text;
use crate::endpoint::{AcceptedPeer, Admitted, ListenOptions, typed};
use crate::exit::{CommandError, Status};
use crate::output::count;
use crate::quantity;
use crate::signal::interrupted;

/// Maximum number of files and folders that are searched for unfinished ones at the start.
const MOST_LOOKED_AT: usize = 1_000_000;
/// Maximum time for transfers to stop at the end.
const SETTLED_WITHIN: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  Authorise Anna's key, which her `anabranch keys show` prints, and receive
  files:
    anabranch keys add \\
        ed25519:Q2hlY2sgdGhpcyBrZXkgd2l0aCBpdHMgb3duZXIgISE Anna, laptop
    anabranch serve --dir inbox
  Offer the content of the folder as well:
    anabranch serve --dir inbox --allow both
  Give Bert a separate folder, to which he may add files of 10 GB in total:
    anabranch keys add --allow write --folder bert --quota 10GB KEY Bert
  Only receive files, at two addresses, from one network:
    anabranch serve --dir inbox --allow write \\
        --listen 192.0.2.1 --listen 198.51.100.1 \\
      --from 192.0.2.0/24

All packets are encrypted. The holder of a key in authorized_keys has the
rights of --allow, restricted by those of the key (`anabranch keys add
--help`); other keys are refused. Keys that are added while this runs take
effect within seconds. --insecure on both sides disables encryption and keys:
then every host may connect that --from permits. With --from, packets from
other addresses get no answer. Names that begin with a dot are stored only
with --hidden.
It runs until Ctrl-C. Unfinished files stay as hidden part files, and are
completed when they are sent again.
Exit status: 130 after Ctrl-C, 1 if it cannot listen, 2 if the command line is
wrong.";

/// Receive files into a folder, and offer its content.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArguments {
    /// Served folder, created if missing
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,

    /// Rights of all peers; options of keys in authorized_keys restrict them (`anabranch keys add --help`)
    #[arg(long, value_enum, default_value_t)]
    allow: Allowed,

    /// Also store names that begin with a dot
    #[arg(long)]
    hidden: bool,

    /// Action for all senders if a different file with the same name exists [default: the sender's choice]
    #[arg(long, value_enum)]
    on_clash: Option<Clash>,

    /// Permit senders to remove files that their sent folders do not contain (`send --delete`)
    #[arg(long)]
    allow_delete: bool,

    #[command(flatten)]
    store: StoreOptions,

    /// Maximum number of concurrent transfers; further ones are refused
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    transfers: u16,

    /// Maximum number of concurrent transfers from one IPv4 address, or one IPv6 network of 64 bits
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    transfers_per_address: u16,

    /// Memory of all transfers together for data that waits to be written or sent, such as 1GiB
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = quantity::read_size)]
    memory: u64,

    /// Maximum sending rate of each transfer, such as 10Mbit
    #[arg(long, value_name = "RATE", value_parser = read_limit)]
    limit: Option<RateLimit>,

    /// Silence after which a connection is considered lost
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = read_silence)]
    timeout: Duration,

    #[command(flatten)]
    listen: ListenOptions,

    #[command(flatten)]
    show: ShowOptions,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Allowed {
    /// Send files here and fetch files from here
    Both,
    /// Send files here only
    #[default]
    Write,
    /// Fetch files from here only
    Read,
}

impl From<Allowed> for Allow {
    fn from(allowed: Allowed) -> Self {
        match allowed {
            Allowed::Both => Allow::Both,
            Allowed::Write => Allow::Write,
            Allowed::Read => Allow::Read,
        }
    }
}

/// Runs the command.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<Status, CommandError> {
    let admitted =
        arguments.listen.admitted(&format!("anabranch serve --dir {}", typed(&arguments.dir, "DIR")))?;
    if arguments.allow_delete && matches!(arguments.allow, Allowed::Read) {
        return Err(CommandError::usage(
            "--allow-delete requires peers that may send files; omit it with --allow read",
        ));
    }
    let least = ServerOptions::least_memory_bytes(usize::from(arguments.transfers));
    if arguments.memory < least {
        return Err(CommandError::usage(format!(
            "--memory: {} {} MiB; give more, or take fewer with --transfers",
            count(arguments.transfers.into(), "transfer needs", "transfers need"),
            least >> 20
        )));
    }
    let folder = open_folder(&arguments.dir, arguments.on_clash, arguments.store, &arguments.show)?;
    let runtime = runtime()?;
    let (ended, links) = arguments.listen.block_on(&runtime, run(arguments, folder, &admitted));
    runtime.shutdown_timeout(SETTLED_WITHIN);
    links.iter().for_each(|link| arguments.show.note(&link_text(link)));
    ended
}

async fn run(
    arguments: &ServeArguments,
    folder: Folder,
    admitted: &Admitted,
) -> Result<Status, CommandError> {
    let stop = interrupted()?;
    arguments.listen.open_control("serve", None);
    let sender = match arguments.allow {
        Allowed::Both | Allowed::Read => Some(sender(&arguments.show)?),
        Allowed::Write => None,
    };
    let options = ServerOptions {
        allow: arguments.allow.into(),
        accept: Accept::all(arguments.hidden),
        on_clash: arguments.on_clash.map(Into::into),
        allow_delete: arguments.allow_delete,
        silence: arguments.timeout,
        most_transfers: usize::from(arguments.transfers),
        most_per_address: usize::from(arguments.transfers_per_address),
        memory_bytes: arguments.memory,
        deadlines: Deadlines::default(),
        rate: arguments.limit,
        sender,
    };
    let endpoint = arguments
        .listen
        .bind_bounded(admitted, options.most_associations(), |config| options.share_buffers(config))
        .await?;
    let server = Server::new(Store::Folder(folder.clone()), options);
    let secured = (admitted, &arguments.listen.association.protection);
    listening_notice(&endpoint, &arguments.show, secured, &format!("serving {}", arguments.dir.display()));
    let is_quiet = arguments.show.quiet || arguments.show.json;
    arguments.listen.register(&endpoint, admitted, is_quiet)?;
    tokio::task::spawn_blocking({
        let show = arguments.show.clone();
        move || print_unfinished(&folder, &show)
    });
    let status = tokio::select! {
        status = accept(&endpoint, &server, admitted, &arguments.show) => status?,
        () = stop => Status::Interrupted,
    };
    server.abort_all();
    let settled = async {
        while server.running() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    // Transfers that take longer are ended by the process.
    let _ = tokio::time::timeout(SETTLED_WITHIN, settled).await;
    Ok(status)
}

/// Prints the number of unfinished files, which stay until a sender completes them or the user removes them.
fn print_unfinished(folder: &Folder, show: &ShowOptions) {
    let Ok(found) = folder.unfinished(MOST_LOOKED_AT) else { return };
    if found.files == 0 {
        return;
    }
    let more = if found.is_all { "" } else { " or more" };
    let age = found.oldest.and_then(|oldest| oldest.elapsed().ok()).unwrap_or_default();
    show.note(&format!(
        "{}{more}, {}, the oldest unchanged for {}: each continues when its sender sends it again, and can be removed \
         (.*.anabranch-part and .*.anabranch-journal)",
        count(found.files, "unfinished file", "unfinished files"),
        amount(found.bytes),
        duration(age)
    ));
}

async fn accept(
    endpoint: &Endpoint,
    server: &Server,
    admitted: &Admitted,
    show: &ShowOptions,
) -> Result<Status, CommandError> {
    for number in 1.. {
        let association =
            endpoint.accept().await.context("can no longer accept transfers").map_err(CommandError::from)?;
        match admitted.caller(&association) {
            Ok(caller) => {
                tokio::spawn(one(server.clone(), (association, caller), show.clone(), number));
            }
            Err(refused) => {
                association.abort();
                show.note(&format!("{number}: a connection was refused: {refused}"));
            }
        }
    }
    Ok(Status::Success)
}

async fn one(
    server: Server,
    (association, caller): (Association, AcceptedPeer),
    show: ShowOptions,
    number: u64,
) {
    let peer = peer_address(&association).await;
    let rights = caller.rights.clone();
    let console = Arc::new(Console::of_transfer(&show, Origin { number, peer, caller }));
    let mut paths = Paths::default();
    paths.switch(association.clone()).await;
    console.start("serve", &mut paths).await;
    let paths = Mutex::new(paths);
    let telling = Arc::clone(&console);
    let report = Report::new(move |event| telling.event(&event));
    let served = tokio::select! {
        served = server.serve_with(association, &rights, &report) => served,
        () = watch(&console, &report, &paths) => return,
    };
    let totals = report.totals();
    let (result, error) = match served {
        Ok(Served::Received | Served::Sent) if totals.failed_files > 0 => ("incomplete", None),
        Ok(Served::Received | Served::Sent) => ("complete", None),
        Err(error) => ("failed", Some(format!("{error}{}", remedy_there(&error)))),
    };
    let carried = paths.lock().await.carried().await;
    console.end(&End { result, error, totals, carried: &carried, can_resume: false });
}
