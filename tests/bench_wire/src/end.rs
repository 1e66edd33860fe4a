//! The processes of a transfer by this project or by quinn.

mod anabranch;
mod quic;

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::Failure;
use crate::site::{Network, Side};
use crate::transfer::{Amount, Reports, Stack, Transfer, between, this_program};

/// Bytes of a message if its size does not matter.
pub(crate) const LARGE_MESSAGE: usize = 64 << 10;

/// Content of all messages, so that creating or sharing them takes no time.
static CONTENT: [u8; LARGE_MESSAGE] = [0x5A; LARGE_MESSAGE];

/// Time by which a paced transfer falls behind its rate before it sends the data that is due.
const TICK: Duration = Duration::from_millis(1);

/// Returns a message to send.
pub(crate) fn message(bytes: usize) -> Result<Bytes, Failure> {
    let content =
        CONTENT.get(..bytes).ok_or_else(|| format!("messages have {LARGE_MESSAGE} bytes at most"))?;
    Ok(Bytes::from_static(content))
}

/// Form of an association of this project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Association {
    pub(crate) scheme: &'static str,
    pub(crate) paths: u8,
    /// Protection by the DTLS chunk.
    pub(crate) protected: bool,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub(crate) enum End {
    /// Receive until the peer shuts down, and report the bytes and the seconds from the first to the last one.
    Receive(Options),
    /// Send all messages and shut down.
    Send(Options),
}

#[derive(Clone, Debug, PartialEq, Args)]
pub(crate) struct Options {
    /// Scheme of an association; a connection of quinn without it.
    #[arg(long)]
    scheme: Option<String>,
    #[arg(long)]
    protected: bool,
    /// Address of the sender on each path.
    #[arg(long, required = true)]
    from: Vec<IpAddr>,
    /// Address and port of the receiver on each path.
    #[arg(long, required = true)]
    to: Vec<SocketAddr>,
    #[arg(long)]
    message_bytes: usize,
    #[arg(long)]
    messages: u32,
    /// Rate to keep.
    #[arg(long)]
    mbit_per_s: Option<u32>,
}

impl End {
    pub(crate) async fn run(&self) -> Result<(), Failure> {
        match self {
            End::Receive(options) if options.scheme.is_some() => anabranch::receive(options).await,
            End::Receive(options) => quic::receive(options).await,
            End::Send(options) => match &options.scheme {
                Some(scheme) => anabranch::send(options, scheme).await,
                None => quic::send(options).await,
            },
        }
    }
}

/// Runs both processes, and returns the report of the receiver.
pub(crate) fn run(network: &Network, transfer: &Transfer) -> Result<Value, Failure> {
    let words = arguments(network, transfer);
    let command = |action: &str, side| {
        let words: Vec<String> =
            ["end", action].into_iter().map(str::to_owned).chain(words.clone()).collect();
        this_program(network, side, &words)
    };
    between(command("receive", Side::Receiver)?, command("send", Side::Sender)?, Reports::Output)
}

fn arguments(network: &Network, transfer: &Transfer) -> Vec<String> {
    let Amount { message_bytes, messages } = transfer.amount;
    let mut text = format!("--message-bytes {message_bytes} --messages {messages}");
    let mut paths = 1;
    if let Stack::Anabranch(association) = transfer.stack {
        paths = association.paths;
        text += &format!(" --scheme {}", association.scheme);
        text += if association.protected { " --protected" } else { "" };
    }
    for path in 1..=paths {
        text += &format!(" --from {} --to {}", network.address(Side::Sender, path), network.receiver(path));
    }
    if let Some(rate) = transfer.mbit_per_s {
        text += &format!(" --mbit-per-s {rate}");
    }
    text.split(' ').map(str::to_owned).collect()
}

/// Instants at which messages are due.
struct Pace {
    begun: Instant,
    bytes_per_s: Option<f64>,
    sent_bytes: f64,
}

impl Pace {
    fn new(options: &Options) -> Self {
        let bytes_per_s = options.mbit_per_s.map(|rate| f64::from(rate) * 1e6 / 8.0);
        Pace { begun: Instant::now(), bytes_per_s, sent_bytes: 0.0 }
    }

    /// Waits until a message of this size may be sent.
    async fn wait(&mut self, bytes: usize) {
        let Some(rate) = self.bytes_per_s else { return };
        self.sent_bytes += bytes as f64;
        while self.begun.elapsed().as_secs_f64() * rate < self.sent_bytes {
            tokio::time::sleep(TICK).await;
        }
    }
}

/// Count of the received bytes, with the time of the first and the last one.
#[derive(Debug, Default)]
struct Received {
    bytes: u64,
    times: Option<(Instant, Instant)>,
}

impl Received {
    fn add(&mut self, bytes: usize) {
        let now = Instant::now();
        self.bytes += bytes as u64;
        self.times = Some((self.times.map_or(now, |(first, _)| first), now));
    }

    fn report(&self) {
        let seconds = self.times.map_or(0.0, |(first, last)| (last - first).as_secs_f64());
        println!("{}", json!({ "event": "end", "bytes": self.bytes, "seconds": seconds }));
    }
}

fn report_listening() {
    println!("{}", json!({ "event": "listening" }));
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::site::Site;
    use crate::table::transfers;
    use crate::{Action, Arguments};

    #[test]
    fn processes_of_each_row_read_their_arguments() {
        let network = Network::new(Site::Loopback, 2).expect("loopback needs no right");
        let ends = transfers().into_iter().filter(|t| !matches!(t.stack, Stack::Iperf3 | Stack::Usrsctp));
        for transfer in ends {
            let words = arguments(&network, &transfer);
            let words = ["bench-wire", "end", "send"].into_iter().map(str::to_owned).chain(words);
            let read = Arguments::try_parse_from(words).expect("arguments").action;
            let Action::End(End::Send(options)) = read else { panic!("{read:?}") };
            assert_eq!(options.messages, transfer.amount.messages);
            assert_eq!(options.scheme.is_some(), matches!(transfer.stack, Stack::Anabranch(_)));
        }
    }
}
