//! Link between two network devices that behaves as a link of the simulator.
//!
//! Standard input is the device at the client, standard output the one at the server. Both are open TUN devices, which exchange one
//! IP packet per read and write. The program writes its counters to standard error and runs until it is ended, or their
//! reader is.

mod emulator;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anabranch_core::units::WireBytes;
use anabranch_lab::run::{ScenarioFiles, link_lanes};
use anabranch_relay::{Direction, Impairment};
use anabranch_scenario::Link;
use anabranch_sim::Seeds;
use anyhow::Context;
use clap::Parser;

use self::emulator::{Emulator, Pair};

/// Interval of the counters on standard error.
const INTERVAL: Duration = Duration::from_millis(100);
/// Source of all packets, which names the random streams of the link.
const SOURCE: &str = "flow-1";

/// Connect two TUN devices by a link of the simulator.
#[derive(Debug, Parser)]
struct Arguments {
    /// The link, as `anabranch relay --link` accepts it
    #[arg(long)]
    link: String,

    /// Time zero of the link, in milliseconds of the monotonic clock, so that links follow their traces simultaneously
    #[arg(long, value_name = "MS")]
    start_ms: u64,

    /// Seed of random losses
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let devices = Pair { near: device(io::stdin().as_fd())?, far: device(io::stdout().as_fd())? };
    let start = instant(Duration::from_millis(arguments.start_ms)).context("--start-ms is out of range")?;
    let emulator = Arc::new(Emulator::new(impairment(&arguments.link, arguments.seed)?, start));
    for direction in Direction::BOTH {
        let source = devices.source(direction).try_clone()?;
        let emulator = Arc::clone(&emulator);
        thread::spawn(move || emulator.read(direction, source));
    }
    let sending = Arc::clone(&emulator);
    thread::spawn(move || sending.send(&devices));
    loop {
        writeln!(io::stderr(), "{}", emulator.counters())?;
        thread::sleep(INTERVAL);
    }
}

/// Returns the open device behind a standard stream.
fn device(stream: BorrowedFd<'_>) -> io::Result<File> {
    Ok(File::from(stream.try_clone_to_owned()?))
}

/// Returns the instant of a time of the system's monotonic clock, which all programs of a run share.
fn instant(time: Duration) -> Option<Instant> {
    let clock = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = Duration::new(clock.tv_sec.try_into().ok()?, clock.tv_nsec.try_into().ok()?);
    match time.checked_sub(now) {
        Some(ahead) => Instant::now().checked_add(ahead),
        None => Instant::now().checked_sub(now.saturating_sub(time)),
    }
}

/// Returns both directions of a link, for packets whose length includes the IP header.
fn impairment(text: &str, seed: u64) -> anyhow::Result<Impairment> {
    let link = Link::parse(text, "--link", "link")?;
    let lanes = link_lanes(&link, SOURCE, &ScenarioFiles::default())?;
    let mut changes = Vec::new();
    for (direction, lane) in [(Direction::Forward, &lanes.forward), (Direction::Reverse, &lanes.reverse)] {
        changes.extend(lane.changes.iter().map(|(at, change)| (direction, *at, change.clone())));
    }
    let seeds = Seeds::new(seed, 0);
    Ok(Impairment::new(lanes.forward.link, lanes.reverse.link, SOURCE, seeds, WireBytes::ZERO, &changes)?)
}
