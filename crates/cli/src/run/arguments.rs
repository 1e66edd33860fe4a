//! Options of `anabranch run`.

use std::path::PathBuf;

use anabranch_scenario::{Override, Sweep};
use anabranch_sim::pcapng::SnapLength;
use clap::Args;

use crate::quantity::read_snap_length;
use crate::seeds::Seeds;

const EXAMPLES: &str = "\
Examples:
  Compare the schemes that a built-in scenario names, or those of a file:
    anabranch run two-path
    anabranch run scenarios/two-path.toml
  Compare other schemes, with twenty seeds each:
    anabranch run scenarios/two-path.toml --schemes 'sctp,cmt(rtx=rtx-asap)' \\
        --seeds 20
  Change the scenario without editing it:
    anabranch run scenarios/two-path.toml --set path.path-1.loss=0.02 \\
        --set run.duration='10 s'
  Run each scheme at several loss rates of one path, and print the goodput as
  a table of schemes and loss rates:
    anabranch run scenarios/two-path.toml \\
        --sweep path.path-2.loss=0,0.02,0.05,0.1
  Capture the packets of one run, for Wireshark:
    anabranch run scenarios/outage.toml --schemes cmt-pf --seeds 1 \\
        --pcap captures
  Write the figures of every run as JSON:
    anabranch run scenarios/two-path.toml --json > runs.jsonl";

/// Run a scenario with every scheme and seed, and compare schemes.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// Scenario file, name of a built-in scenario (`anabranch init` lists them), or - for standard input
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: PathBuf,

    /// Schemes to compare instead of those in the file: a list such as `sctp,cmt(trigger=4)`, or `all`
    #[arg(long, value_name = "LIST")]
    pub(crate) schemes: Option<String>,

    /// Seeds instead of those in the file: `5` means 1 to 5; `3,7,10-12` and `7,` are lists
    #[arg(long, value_name = "N|LIST", allow_negative_numbers = true)]
    pub(crate) seeds: Option<Seeds>,

    /// Profile of the protocol, instead of the file's `run.profile`
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Override a value of the scenario, such as path.path-1.loss=0.02 or run.duration='10 s'; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<Override>,

    /// Run with each of several values of one key of the scenario, and print goodput as a table of schemes and values
    #[arg(long, value_name = "KEY=V1,V2,...")]
    pub(crate) sweep: Option<Sweep>,

    /// Print one JSON object per run and line instead of the tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Add a SHA-256 over all events to each line of JSON; doubles the duration of the runs
    #[arg(long, requires = "json")]
    pub(crate) digest: bool,

    /// Write a packet capture (pcapng) of every run into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) pcap: Option<PathBuf>,

    /// Stored bytes of each packet in captures, from its IP header on; 0 or full: whole packets [default: 256]
    #[arg(long, value_name = "BYTES|full", requires = "pcap", value_parser = read_snap_length)]
    pub(crate) snaplen: Option<SnapLength>,

    /// Write traces (CSV: path states, packets, decisions, queues) of every run into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) trace: Option<PathBuf>,

    /// Number of concurrent runs; does not affect the results [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Show no progress bar
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl RunArguments {
    /// Returns the arguments of `anabranch run` with these values and default options, for other commands that simulate a scenario.
    pub(crate) fn of(
        scenario: PathBuf,
        schemes: Option<String>,
        seeds: Option<Seeds>,
        profile: Option<String>,
        set: Vec<Override>,
    ) -> Self {
        RunArguments {
            scenario,
            schemes,
            seeds,
            profile,
            set,
            sweep: None,
            json: false,
            digest: false,
            pcap: None,
            snaplen: None,
            trace: None,
            threads: None,
            quiet: true,
        }
    }
}
