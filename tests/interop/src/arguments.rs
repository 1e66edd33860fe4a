//! The command line.

use std::net::SocketAddr;
use std::time::Duration;

use anabranch_core::time::Span;
use anabranch_net::{Config, PathAddress, Reliability, StreamScheduler};
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Opens or accepts one association with another stack. Reports events on standard error, one JSON object per line.
#[derive(Debug, Parser)]
pub(crate) struct Arguments {
    /// A local address to listen on; may be repeated.
    #[arg(long = "listen", value_name = "ADDRESS:PORT")]
    pub(crate) listen: Vec<SocketAddr>,
    /// A path to connect over; may be repeated, the first is the primary one.
    #[arg(long = "route", value_name = "LOCAL:PORT=REMOTE:PORT", value_parser = route, conflicts_with = "listen")]
    pub(crate) routes: Vec<(SocketAddr, PathAddress)>,
    /// Our SCTP port.
    #[arg(long, default_value_t = 9899)]
    pub(crate) sctp: u16,
    /// The peer's SCTP port.
    #[arg(long, default_value_t = 5001)]
    pub(crate) remote_sctp: u16,
    /// The scheme that steers the association.
    #[arg(long, default_value = "cmt")]
    scheme: String,
    /// IP packet size.
    #[arg(long, default_value_t = 1500)]
    mtu_bytes: usize,
    /// Send and receive buffer.
    #[arg(long, default_value_t = 2 << 20)]
    buffer_bytes: u64,
    /// Streams in each direction.
    #[arg(long, default_value_t = 16)]
    streams: u16,
    /// Offer I-DATA, and let streams take turns.
    #[arg(long)]
    interleave: bool,
    /// The shortest and the first retransmission time-out.
    #[arg(long)]
    rto_min_ms: Option<u64>,
    /// Errors after which a path has failed.
    #[arg(long)]
    path_max_retrans: Option<u32>,
    /// Minimum number of bytes to receive before the end.
    #[arg(long, default_value_t = 0)]
    pub(crate) expect_bytes: u64,
    /// End of the association after all data is sent and the expected data has arrived.
    #[arg(long, value_enum, default_value_t = Ending::Wait)]
    pub(crate) end: Ending,
    /// Work while the association is up.
    #[command(subcommand)]
    pub(crate) work: Work,
}

/// End of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ending {
    /// The peer ends it.
    Wait,
    /// End it gracefully, with SHUTDOWN.
    Shutdown,
    /// At once.
    Abort,
}

/// Limit after which messages are abandoned.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Limit {
    /// After this time.
    #[arg(long, conflicts_with = "max_retransmissions")]
    lifetime_ms: Option<u64>,
    /// After this number of retransmissions, at the next loss.
    #[arg(long)]
    max_retransmissions: Option<u32>,
}

impl Limit {
    /// Returns the limit of the message with this number.
    pub(crate) fn of(self, number: u32) -> Reliability {
        let lifetime = self.lifetime_ms.map(|ms| Reliability::Lifetime(Span::from_millis(ms)));
        let limit = lifetime.or(self.max_retransmissions.map(Reliability::MaxRetransmissions));
        limit.filter(|_| number % 5 != 4).unwrap_or_default()
    }
}

/// Data to send, and the use of received data.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Work {
    /// Send every message back unchanged.
    Echo,
    /// Send messages of random content and compare each with its echo.
    Ping {
        /// Sizes in bytes, taken in turn.
        #[arg(long, value_delimiter = ',', required = true)]
        sizes: Vec<usize>,
        /// Number of messages.
        #[arg(long)]
        messages: u32,
        /// Streams, taken in turn.
        #[arg(long, default_value_t = 1)]
        over_streams: u16,
        /// Send every third message unordered.
        #[arg(long)]
        unordered: bool,
        /// Limit of all messages except every fifth one.
        #[command(flatten)]
        limit: Limit,
    },
    /// Send standard input to the peer, and write received data to standard output.
    Pipe {
        /// Size of the messages.
        #[arg(long, default_value_t = 16 << 10)]
        message_bytes: usize,
    },
    /// Send messages whose content is not checked.
    Flood {
        /// Size of the messages.
        #[arg(long)]
        message_bytes: usize,
        /// Number of messages.
        #[arg(long)]
        messages: u32,
    },
    /// Discard received data, and report its rate.
    Discard,
}

fn route(text: &str) -> Result<(SocketAddr, PathAddress), String> {
    let (local, remote) =
        text.split_once('=').ok_or_else(|| format!("`{text}`: expected LOCAL:PORT=REMOTE:PORT"))?;
    let parse = |part: &str| part.parse::<SocketAddr>().map_err(|error| format!("`{part}`: {error}"));
    let (local, remote) = (parse(local)?, parse(remote)?);
    Ok((local, PathAddress::over_udp(local.ip(), remote)))
}

impl Arguments {
    /// Returns the local addresses, each once.
    pub(crate) fn locals(&self) -> Vec<SocketAddr> {
        let mut locals: Vec<SocketAddr> = self.listen.clone();
        for (local, _) in &self.routes {
            if !locals.iter().any(|known| known.ip() == local.ip()) {
                locals.push(*local);
            }
        }
        locals
    }

    pub(crate) fn config(&self) -> Result<Config, String> {
        let config = Config::new(&self.scheme).map_err(|error| error.to_string())?;
        let config = config
            .send_buffer_bytes(self.buffer_bytes..=self.buffer_bytes)
            .recv_buffer_bytes(self.buffer_bytes..=self.buffer_bytes)
            .streams(self.streams);
        let config = match self.interleave {
            true => config.interleaving().stream_scheduler(StreamScheduler::RoundRobin),
            false => config,
        };
        Ok(config.with_core(|core| {
            core.mtu_bytes = self.mtu_bytes;
            if let Some(ms) = self.rto_min_ms {
                core.profile.rto_min = Span::from_millis(ms);
                core.profile.rto_initial = Span::from_millis(ms);
            }
            if let Some(most) = self.path_max_retrans {
                core.profile.path_max_retrans = most;
            }
        }))
    }
}

/// Time limit that exceeds all successful tests.
pub(crate) const LIMIT: Duration = Duration::from_secs(150);
