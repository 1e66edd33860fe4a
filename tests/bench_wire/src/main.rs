//! Speed of associations over loopback, as a ratio to other stacks in the same run. `make bench-wire` runs it.
//!
//! Every measurement is a separate process, so that none shares memory, timers or sockets with another. Each round makes all of
//! them in turn, and a ratio compares two measurements of one round: other load of the machine affects both.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

mod bulk;
mod crowd;
mod process;
mod quic;
mod subject;
mod table;
mod tcp;
mod usrsctp;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::subject::Subject;
use crate::table::Options;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Debug, Parser)]
#[command(about = "Speed over loopback beside other stacks, as ratios; fails nothing")]
struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Measure, and compare the ratios with those stored.
    Check(Options),
    /// Measure, and store the ratios.
    Store(Options),
    /// Make one measurement and print its figure, as a subprocess of the other actions
    #[command(subcommand)]
    Measure(Subject),
    /// Run the peers of a crowd, as a subprocess of its measurement
    #[command(hide = true)]
    Peers(crowd::Peers),
}

fn main() -> ExitCode {
    match run(Arguments::parse().action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-wire: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(action: Action) -> Result<(), Failure> {
    match action {
        Action::Check(options) => table::check(&options),
        Action::Store(options) => table::store(&options),
        Action::Measure(subject) => {
            println!("{}", subject.measure()?);
            Ok(())
        }
        Action::Peers(peers) => process::runtime()?.block_on(peers.run()),
    }
}
