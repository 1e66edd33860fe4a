//! `anabranch forward`, `anabranch tun` and `anabranch gateway`.

mod check;
mod client;
mod gateway;
mod show;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod tunnel;

use std::time::Duration;

use anyhow::Context;
use tokio::runtime::Runtime;

use crate::endpoint::ProtectionOptions;
use crate::exit::CommandError;

pub(crate) use client::{ForwardArguments, forward};
pub(crate) use gateway::{GatewayArguments, gateway};
#[cfg(target_os = "linux")]
pub(crate) use tun::{TunArguments, tun};

/// Maximum time for connections to end after the command was stopped.
const SETTLED_WITHIN: Duration = Duration::from_secs(2);

/// Refuses a command without encryption.
fn require_protection(options: &ProtectionOptions) -> Result<(), CommandError> {
    if options.insecure {
        return Err(CommandError::usage(
            "--insecure: connections of other programs are forwarded only with encryption and keys; omit it",
        ));
    }
    Ok(())
}

/// Removes the option that all these commands refuse from their help.
pub(crate) fn hide_insecure(command: clap::Command) -> clap::Command {
    let hide = |command: clap::Command| command.mut_arg("insecure", |option| option.hide(true));
    let command = command.mut_subcommand("forward", hide).mut_subcommand("gateway", hide);
    if cfg!(target_os = "linux") { command.mut_subcommand("tun", hide) } else { command }
}

/// Starts threads for a network task and for connections, and raises the limit of open files as far as the system allows.
fn runtime() -> anyhow::Result<Runtime> {
    anabranch_transfer::raise_open_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.context("cannot wait for sockets")
}
