//! A transfer between two processes.

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use serde_json::Value;

use crate::end::{self, Association};
use crate::site::{Network, Side, Site};
use crate::{Failure, iperf3, process, usrsctp};

/// Number and size of the messages of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amount {
    pub(crate) message_bytes: usize,
    pub(crate) messages: u32,
}

impl Amount {
    pub(crate) fn bytes(self) -> u64 {
        self.message_bytes as u64 * u64::from(self.messages)
    }
}

/// Stack that both processes use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stack {
    /// One TCP connection of the kernel, by `iperf3`.
    Iperf3,
    /// One QUIC stream of quinn, with its defaults.
    Quinn,
    Usrsctp,
    /// An association of this project.
    Anabranch(Association),
}

impl Stack {
    fn paths(self) -> u8 {
        match self {
            Stack::Anabranch(association) => association.paths,
            Stack::Iperf3 | Stack::Quinn | Stack::Usrsctp => 1,
        }
    }
}

/// One measurement of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Transfer {
    pub(crate) stack: Stack,
    pub(crate) site: Site,
    pub(crate) amount: Amount,
    /// Rate to keep; `None` for the highest one.
    pub(crate) mbit_per_s: Option<u32>,
}

impl Transfer {
    /// Returns Mbit/s of user data, from the first to the last byte that the receiver reads.
    pub(crate) fn rate(&self) -> Result<f64, Failure> {
        let end = self.run()?;
        match (end["bytes"].as_u64(), end["seconds"].as_f64()) {
            (Some(bytes), Some(seconds)) => Ok(bytes as f64 * 8.0 / 1e6 / seconds),
            _ => Err(format!("{:?} reports no rate: {end}", self.stack).into()),
        }
    }

    /// Returns the processor seconds of both processes, from start to exit. A stack that does not keep up takes longer.
    pub(crate) fn cpu_seconds(&self) -> Result<f64, Failure> {
        let before = process::cpu_seconds()?;
        self.run()?;
        Ok(process::cpu_seconds()? - before)
    }

    /// Runs both processes, and returns the last report of the receiver.
    fn run(&self) -> Result<Value, Failure> {
        let network = Network::new(self.site, self.stack.paths())?;
        let end = match self.stack {
            // It stops to count when the sender reports its end, before the last bytes.
            Stack::Iperf3 => return iperf3::run(&network, self.amount),
            Stack::Usrsctp => usrsctp::run(&network, self)?,
            Stack::Quinn | Stack::Anabranch(_) => end::run(&network, self)?,
        };
        if end["bytes"].as_u64() == Some(self.amount.bytes()) {
            Ok(end)
        } else {
            Err(format!("{:?} lost data: {end}", self.stack).into())
        }
    }
}

/// A running process, which is killed when dropped.
pub(crate) struct Running {
    process: Child,
    lines: Lines<BufReader<Box<dyn std::io::Read>>>,
}

/// Stream in which a process reports its events.
#[derive(Clone, Copy)]
pub(crate) enum Reports {
    Output,
    Errors,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Running {
    pub(crate) fn start(mut command: Command, reports: Reports) -> Result<Self, Failure> {
        command.stdin(Stdio::null());
        match reports {
            Reports::Output => command.stdout(Stdio::piped()),
            Reports::Errors => command.stdout(Stdio::null()).stderr(Stdio::piped()),
        };
        let mut process =
            command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        let read = |out: ChildStdout| Box::new(out) as Box<dyn std::io::Read>;
        let read_errors = |errors: ChildStderr| Box::new(errors) as Box<dyn std::io::Read>;
        let reader = match reports {
            Reports::Output => process.stdout.take().map(read),
            Reports::Errors => process.stderr.take().map(read_errors),
        };
        let lines = BufReader::new(reader.ok_or("the reports of the process are not read")?).lines();
        Ok(Running { process, lines })
    }

    /// Reads lines up to the first one that contains the text.
    pub(crate) fn wait_for_text(&mut self, text: &str) -> Result<String, Failure> {
        for line in self.lines.by_ref() {
            let line = line?;
            if line.contains(text) {
                return Ok(line);
            }
            if line.contains("error") {
                return Err(line.into());
            }
        }
        Err(format!("the process ended before it reported `{text}`").into())
    }

    /// Reads lines of JSON up to this event.
    pub(crate) fn wait_for(&mut self, event: &str) -> Result<Value, Failure> {
        Ok(serde_json::from_str(&self.wait_for_text(&format!("\"event\":\"{event}\""))?)?)
    }

    /// Waits for a process that succeeds, and returns its remaining output.
    pub(crate) fn finish(mut self) -> Result<String, Failure> {
        let rest = self.lines.by_ref().collect::<Result<Vec<_>, _>>()?.join("\n");
        let status = self.process.wait()?;
        if status.success() {
            Ok(rest)
        } else {
            Err(format!("the process ended with {status}: {rest}").into())
        }
    }
}

/// Runs a receiver, which reports `listening` and `end`, and a sender. Returns the report of the end.
pub(crate) fn between(receiver: Command, sender: Command, reports: Reports) -> Result<Value, Failure> {
    let mut receiver = Running::start(receiver, reports)?;
    receiver.wait_for("listening")?;
    let sender = Running::start(sender, reports)?;
    let end = receiver.wait_for("end")?;
    receiver.finish()?;
    sender.finish()?;
    Ok(end)
}

/// Returns a command of this program in the network.
pub(crate) fn this_program(network: &Network, side: Side, words: &[String]) -> Result<Command, Failure> {
    let mut command = network.command(side, &std::env::current_exe()?);
    command.args(words);
    Ok(command)
}
