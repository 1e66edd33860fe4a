//! `anabranch send`, `anabranch recv` and `anabranch serve`.

mod again;
mod code;
mod console;
mod figures;
mod filters;
mod identity;
mod layout;
mod live;
mod paths;
mod progress;
mod recv;
mod send;
mod serve;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;

use anabranch_net::ConnectRetries;
use anabranch_transfer::{Durability, Folder, Links, NameRules, OnClash, RateLimit, Timeouts, escape};
use anyhow::Context;
use clap::{Args, ValueEnum};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::exit::{CommandError, Status};
use crate::{live_output, output, quantity};

use self::filters::FilterOptions;

#[cfg(target_os = "linux")]
pub(crate) use recv::RecvArguments;
pub(crate) use send::SendArguments;
pub(crate) use serve::{ServeArguments, serve};

/// Longest time of an option.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);
/// Shortest silence of an option. Each side sends at least every two seconds.
const SHORTEST_SILENCE: Duration = Duration::from_secs(5);

/// Timeouts of transfers on the side that connects.
#[derive(Clone, Debug, Args)]
struct TimeoutOptions {
    /// Time to wait for an unreachable peer before the transfer is abandoned; received blocks are kept [default: 120s, with
    /// `send --code` until Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = read_retry)]
    retry: Option<Duration>,

    /// Silence after which the connection is considered lost and opened again
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = read_silence)]
    timeout: Duration,
}

impl TimeoutOptions {
    fn timeouts(&self) -> Timeouts {
        let retry = self.retry.unwrap_or(Timeouts::default().retry);
        Timeouts { silence: self.timeout, retry }
    }

    /// Returns the retries of the first attempt to connect. With `--retry` the user waits for a peer that is about to be started.
    fn first_attempts(&self) -> ConnectRetries {
        ConnectRetries::within(self.timeouts().retry).awaiting_peer(self.retry.is_some())
    }
}

/// Options for the output of a transfer.
#[derive(Clone, Debug, Args)]
struct ShowOptions {
    /// Print one JSON object per line: events, progress each second, and a summary
    #[arg(long)]
    json: bool,

    /// Print errors only
    #[arg(long, short, conflicts_with = "json")]
    quiet: bool,

    /// Print a line for each file, too
    #[arg(long, short, conflicts_with_all = ["json", "quiet"])]
    verbose: bool,
}

impl ShowOptions {
    /// Prints a note: a line for people, or an object for programs.
    fn note(&self, text: &str) {
        let text = escape(text);
        if self.json {
            live_output::event(&json!({ "event": "note", "text": text }));
        } else if !self.quiet {
            output::notice(text);
        }
    }
}

/// Filter that selects the names to transfer.
#[derive(Clone, Copy, Debug, Args)]
struct NameOptions {
    /// Refuse names that some systems cannot store, such as aux.txt, "end." or a:b
    #[arg(long)]
    portable_names: bool,
}

impl NameOptions {
    fn rules(self) -> NameRules {
        if self.portable_names { NameRules::Portable } else { NameRules::System }
    }
}

/// Values of `--on-clash`.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Clash {
    /// Refuse the new file
    Refuse,
    /// Keep both files, and add a number to the name of the new one
    Rename,
    /// Replace the old file when the new one is complete
    Overwrite,
}

impl From<Clash> for OnClash {
    fn from(clash: Clash) -> Self {
        match clash {
            Clash::Refuse => OnClash::Refuse,
            Clash::Rename => OnClash::Rename,
            Clash::Overwrite => OnClash::Overwrite,
        }
    }
}

/// Values of `--links`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum LinkChoice {
    /// Transfer links whose target is in the transferred folder; leave out others
    #[default]
    Copy,
    /// Transfer the targets in place of the links
    Follow,
    /// Leave out links
    Skip,
}

impl From<LinkChoice> for Links {
    fn from(links: LinkChoice) -> Self {
        match links {
            LinkChoice::Copy => Links::Copy,
            LinkChoice::Follow => Links::Follow,
            LinkChoice::Skip => Links::Skip,
        }
    }
}

/// Values of `--fsync`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Fsync {
    /// Sync each file together with others that are complete at that time
    #[default]
    Batch,
    /// Sync each file separately, with its folder
    Each,
}

impl From<Fsync> for Durability {
    fn from(fsync: Fsync) -> Self {
        match fsync {
            Fsync::Batch => Durability::Batch,
            Fsync::Each => Durability::Each,
        }
    }
}

/// Options for storing files.
#[derive(Clone, Copy, Debug, Args)]
struct StoreOptions {
    /// Sync of files to the disk before they are reported as stored
    #[arg(long, value_enum, default_value_t)]
    fsync: Fsync,

    #[command(flatten)]
    names: NameOptions,
}

/// Options of both sides for the selection of files.
#[derive(Clone, Debug, Args)]
struct SelectOptions {
    /// Transfer of symbolic links
    #[arg(long, value_enum, default_value_t)]
    links: LinkChoice,

    #[command(flatten)]
    filters: FilterOptions,

    /// Compare the content of files of the same size, even if they are recorded as equal
    #[arg(long, short)]
    checksum: bool,

    /// Print the names that would be stored, and store nothing
    #[arg(long, short = 'n')]
    dry_run: bool,
}

fn read_retry(text: &str) -> Result<Duration, String> {
    quantity::read_time_within(text, Duration::ZERO, LONGEST)
}

fn read_silence(text: &str) -> Result<Duration, String> {
    quantity::read_time_within(text, SHORTEST_SILENCE, LONGEST)
}

fn read_limit(text: &str) -> Result<RateLimit, String> {
    let bytes = NonZeroU64::new(quantity::read_rate(text)?.as_bps() / 8);
    bytes
        .map(RateLimit)
        .ok_or_else(|| format!("`{text}` is less than a byte per second: leave --limit out, or give more"))
}

/// Opens the destination folder. Creates it if it does not exist.
fn open_folder(
    dir: &Path,
    on_clash: Option<Clash>,
    store: StoreOptions,
    show: &ShowOptions,
) -> Result<Folder, CommandError> {
    let shown = dir.display();
    if !dir.exists() {
        std::fs::create_dir_all(dir).map_err(|error| {
            CommandError::failure(format!(
                "--dir {shown}: cannot make this folder: {error}; name another one"
            ))
        })?;
        show.note(&format!("made the folder {shown}"));
    }
    let folder = Folder::open(dir, on_clash.map_or(OnClash::Refuse, Into::into)).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::NotADirectory => "name a folder, which is created if missing",
            _ => "check its permissions, or name another folder",
        };
        CommandError::failure(format!("--dir {shown}: {error}; {remedy}"))
    })?;
    Ok(folder.with_names(store.names.rules()).with_durability(store.fsync.into()))
}

/// Runs the command `send`. `typed` is the command line.
pub(crate) fn send(arguments: &SendArguments, typed: &[OsString]) -> Result<Status, CommandError> {
    if arguments.by_code() { code::offer(arguments) } else { send::send(arguments, typed) }
}

/// Runs the command `recv`. `typed` is the command line.
pub(crate) fn recv(arguments: &RecvArguments, typed: &[OsString]) -> Result<Status, CommandError> {
    match code::CodeAndHost::of(arguments)? {
        Some(at) => code::fetch(arguments, &at, typed),
        None => recv::recv(arguments, typed),
    }
}

/// Starts threads for a network task and for the transfer, and raises the limit of open files as far as the system allows.
fn runtime() -> anyhow::Result<Runtime> {
    anabranch_transfer::raise_open_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot wait for sockets")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_times_are_read() {
        assert_eq!(read_limit("8Mbit").expect("a rate").0.get(), 1_000_000);
        assert_eq!(read_limit("80 kbit/s").expect("a rate").0.get(), 10_000);
        assert!(read_limit("0Mbit").is_err() && read_limit("fast").is_err());
        assert_eq!(read_limit("8M").expect("a rate").0.get(), 1_000_000);
        assert_eq!(read_retry("0"), Ok(Duration::ZERO));
        assert_eq!(read_retry("2min"), Ok(Duration::from_secs(120)));
        assert_eq!(
            (read_silence("5s"), read_silence("60")),
            (Ok(SHORTEST_SILENCE), Ok(Duration::from_secs(60)))
        );
        assert!(read_retry("-1").is_err() && read_retry("31000h").is_err() && read_silence("4").is_err());
    }
}
