//! The command as its users see it: the real program, its output and its exit status.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test prints why it is left out, and its figures for `--nocapture`"
)]

mod access;
mod bench;
mod cards;
mod compare;
#[cfg(unix)]
mod connecting;
mod errors;
mod explain;
mod init;
mod keys;
#[cfg(unix)]
mod observe;
#[cfg(unix)]
mod output;
mod paths;
mod protection;
mod relay;
mod rights;
mod run;
mod schemes;
#[cfg(unix)]
mod stopping;
mod support;
mod sweep;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod transfer;
