//! Sender or receiver of one run of the arena over a stack with a library in Rust.
//!
//! The options and the output are those of `studies/arena/peer.py`: the program prints `ready`, waits for the start, prints its
//! figures as one line of JSON, and runs until its standard input ends.

mod aggregate;
mod clock;
mod quic;
mod work;

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use bytes::Bytes;
use clap::{Parser, ValueEnum};
use serde_json::json;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::timeout_at;

use self::clock::Clock;

/// Time after the start within which a connection has to be open.
const CONNECT_TIME: Duration = Duration::from_secs(15);
/// Number of blocks between the work and the stack, so that data waits in the stack's own buffers.
const WAITING_BLOCKS: usize = 1;

/// Reliable and ordered bytes to and from the peer.
struct Channel {
    outgoing: mpsc::Sender<Bytes>,
    incoming: mpsc::Receiver<Bytes>,
}

/// The other end of a [`Channel`], which a stack serves.
struct Served {
    outgoing: mpsc::Receiver<Bytes>,
    incoming: mpsc::Sender<Bytes>,
}

/// Returns both ends of a channel.
fn channel() -> (Channel, Served) {
    let (outgoing, to_stack) = mpsc::channel(WAITING_BLOCKS);
    let (from_stack, incoming) = mpsc::channel(WAITING_BLOCKS);
    (Channel { outgoing, incoming }, Served { outgoing: to_stack, incoming: from_stack })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Role {
    Send,
    Receive,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stack {
    Tquic,
    Aggligator,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WorkKind {
    Bulk,
    File,
    Messages,
}

/// Run one side of a work over multipath QUIC or aggligator.
#[derive(Debug, Parser)]
struct Arguments {
    role: Role,

    #[arg(long)]
    stack: Stack,

    #[arg(long)]
    work: WorkKind,

    /// Duration; of a file the time after which it is given up
    #[arg(long)]
    seconds: f64,

    /// Length of the file, or of each message
    #[arg(long, default_value_t = 1000)]
    bytes: usize,

    /// Messages per second
    #[arg(long, default_value_t = 50.0)]
    per_s: f64,

    /// Start of the run in milliseconds of the monotonic clock
    #[arg(long)]
    start_ms: u64,

    /// Scheduler of multipath QUIC
    #[arg(long, default_value = "minrtt")]
    scheduler: tquic::MultipathAlgorithm,

    /// Congestion control of multipath QUIC
    #[arg(long, default_value = "cubic")]
    control: tquic::CongestionControlAlgorithm,

    /// Address of a path, with port
    #[arg(long)]
    local: Vec<SocketAddr>,

    /// Address of the peer, with port
    #[arg(long)]
    remote: Vec<SocketAddr>,
}

fn main() {
    let arguments = Arguments::parse();
    let ended = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => LocalSet::new().block_on(&runtime, run(&arguments)),
        Err(error) => Err(error.into()),
    };
    if let Err(error) = ended {
        // A closed output has no reader for the error of writing to it.
        drop(print(&json!({"error": format!("{error:#}")}).to_string()));
    }
    // Data that is still queued is discarded with the process.
    std::process::exit(0);
}

/// Runs this side, prints its figures, and waits for the end of standard input.
async fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let clock = Clock::new(Duration::from_millis(arguments.start_ms));
    let opening = async {
        match arguments.stack {
            Stack::Tquic => quic::open(arguments, &clock).await,
            Stack::Aggligator => aggregate::open(arguments, &clock).await,
        }
    };
    let channel = timeout_at(clock.at(CONNECT_TIME), opening).await.context("no connection in time")??;
    let (connected, before) = (clock.now(), clock::processor_time());
    let (mut figures, _channel) = work::run(channel, arguments, &clock).await;
    figures["connected_s"] = connected.into();
    figures["processor_s"] = clock::processor_time().saturating_sub(before).as_secs_f64().into();
    print(&figures.to_string())?;
    end_of_input().await;
    Ok(())
}

/// Writes a line to standard output.
fn print(line: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// Waits for the end of standard input. The stack continues to answer its peer until then.
async fn end_of_input() {
    let (ended, end) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        drop(io::stdin().read_to_end(&mut Vec::new()));
        drop(ended);
    });
    drop(end.await);
}
