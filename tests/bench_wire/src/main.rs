//! Speed of associations over sockets, as a ratio to other stacks in the same run. `make bench-wire` runs it.
//!
//! The two ends of a transfer are separate processes, of every stack, over loopback or over virtual Ethernet between two network
//! namespaces. Each round makes all measurements in turn, and a ratio compares two measurements of one round: other load of the
//! machine affects both.

#![allow(clippy::disallowed_macros, reason = "a benchmark prints its figures")]

mod crowd;
mod end;
mod iperf3;
mod process;
mod site;
mod subject;
mod table;
mod transfer;
mod usrsctp;

use std::error::Error;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::end::End;
use crate::subject::Measure;
use crate::table::Options;

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Debug, Parser)]
#[command(about = "Speed over sockets beside other stacks, as ratios; fails nothing")]
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
    /// Measure many associations and print the figure, as a subprocess of the other actions
    #[command(subcommand, hide = true)]
    Measure(Measure),
    /// Run one process of a transfer
    #[command(subcommand, hide = true)]
    End(End),
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
        Action::Measure(measure) => {
            println!("{}", process::runtime()?.block_on(measure.run())?);
            Ok(())
        }
        Action::End(end) => process::runtime()?.block_on(end.run()),
        Action::Peers(peers) => process::runtime()?.block_on(peers.run()),
    }
}
