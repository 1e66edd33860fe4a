//! Subjects of measurements.

use bytes::Bytes;
use clap::{Args, Subcommand};

use crate::bulk::{self, Flow};
use crate::{Failure, crowd, process, quic, tcp, usrsctp};

/// Bytes of a message if its size does not matter.
pub(crate) const LARGE_MESSAGE: usize = 64 << 10;

/// Content of all messages, so that creating or sharing them takes no time.
static CONTENT: [u8; LARGE_MESSAGE] = [0x5A; LARGE_MESSAGE];

/// Returns a message to send.
pub(crate) fn message(bytes: usize) -> Result<Bytes, Failure> {
    let content =
        CONTENT.get(..bytes).ok_or_else(|| format!("messages have {LARGE_MESSAGE} bytes at most"))?;
    Ok(Bytes::from_static(content))
}

/// One measurement. Bulk is in Mbit/s of user data, from the first call that sends to the last byte received.
#[derive(Clone, Debug, PartialEq, Subcommand)]
pub(crate) enum Subject {
    /// One TCP connection of the kernel.
    Tcp(Amount),
    /// One QUIC stream of quinn.
    Quic(Amount),
    /// One association of usrsctp with itself.
    Usrsctp(Amount),
    /// Processor seconds of usrsctp at a fixed rate.
    UsrsctpPaced(Paced),
    /// One association of this project.
    Bulk(Flow),
    /// Processor seconds of one association of this project at a fixed rate.
    BulkPaced(Paced),
    /// Associations of one endpoint with a peer each, all sending.
    Crowd(Crowd),
    /// Resident bytes of one endpoint for each of its idle associations.
    IdleBytes(Crowd),
    /// Share of a processor that idle associations of one endpoint use.
    IdleCpu(Crowd),
}

/// Amount of data.
#[derive(Clone, Copy, Debug, PartialEq, Args)]
pub(crate) struct Amount {
    #[arg(long, default_value_t = LARGE_MESSAGE)]
    pub(crate) message_bytes: usize,
    #[arg(long)]
    pub(crate) messages: u32,
}

impl Amount {
    pub(crate) fn bytes(self) -> u64 {
        self.message_bytes as u64 * u64::from(self.messages)
    }

    pub(crate) fn mbit_per_s(self, seconds: f64) -> f64 {
        self.bytes() as f64 * 8.0 / 1e6 / seconds
    }
}

/// A transfer at a limited rate.
#[derive(Clone, Copy, Debug, PartialEq, Args)]
pub(crate) struct Paced {
    #[command(flatten)]
    pub(crate) amount: Amount,
    #[arg(long)]
    pub(crate) mbit_per_s: u32,
}

/// Many associations.
#[derive(Clone, Copy, Debug, PartialEq, Args)]
pub(crate) struct Crowd {
    #[arg(long)]
    pub(crate) associations: u32,
}

impl Subject {
    pub(crate) fn measure(&self) -> Result<f64, Failure> {
        let runtime = process::runtime()?;
        match self {
            Subject::Tcp(amount) => runtime.block_on(tcp::rate(*amount)),
            Subject::Quic(amount) => runtime.block_on(quic::rate(*amount)),
            Subject::Usrsctp(amount) => usrsctp::rate(*amount),
            Subject::UsrsctpPaced(paced) => usrsctp::cpu_seconds(*paced),
            Subject::Bulk(flow) => runtime.block_on(bulk::rate(flow)),
            Subject::BulkPaced(paced) => runtime.block_on(bulk::cpu_seconds(*paced)),
            Subject::Crowd(crowd) => runtime.block_on(crowd::rate(*crowd)),
            Subject::IdleBytes(crowd) => runtime.block_on(crowd::idle_bytes(*crowd)),
            Subject::IdleCpu(crowd) => runtime.block_on(crowd::idle_cpu(*crowd)),
        }
    }

    /// Returns the arguments of `measure` for this measurement.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let amount = |a: &Amount| format!("--message-bytes {} --messages {}", a.message_bytes, a.messages);
        let paced = |p: &Paced| format!("{} --mbit-per-s {}", amount(&p.amount), p.mbit_per_s);
        let crowd = |c: &Crowd| format!("--associations {}", c.associations);
        let text = match self {
            Subject::Tcp(a) => format!("tcp {}", amount(a)),
            Subject::Quic(a) => format!("quic {}", amount(a)),
            Subject::Usrsctp(a) => format!("usrsctp {}", amount(a)),
            Subject::UsrsctpPaced(p) => format!("usrsctp-paced {}", paced(p)),
            Subject::Bulk(Flow { amount: a, scheme, paths, protected }) => {
                let protected = if *protected { " --protected" } else { "" };
                format!("bulk {} --scheme {scheme} --paths {paths}{protected}", amount(a))
            }
            Subject::BulkPaced(p) => format!("bulk-paced {}", paced(p)),
            Subject::Crowd(c) => format!("crowd {}", crowd(c)),
            Subject::IdleBytes(c) => format!("idle-bytes {}", crowd(c)),
            Subject::IdleCpu(c) => format!("idle-cpu {}", crowd(c)),
        };
        ["measure"].into_iter().chain(text.split(' ')).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use crate::table::ROWS;
    use crate::{Action, Arguments};

    #[test]
    fn the_measurements_of_the_table_are_read_back_from_their_arguments() {
        let cells = ROWS.iter().flat_map(|row| row.subjects());
        for subject in cells {
            let words = ["bench-wire".to_owned()].into_iter().chain(subject.arguments());
            match Arguments::try_parse_from(words).expect("arguments").action {
                Action::Measure(read) => assert_eq!(read, subject),
                other => panic!("{other:?}"),
            }
        }
    }
}
