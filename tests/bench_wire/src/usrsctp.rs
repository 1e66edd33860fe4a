//! usrsctp over loopback: two processes of the peer of the interoperability tests.

use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};

use crate::subject::{Amount, Paced};
use crate::{Failure, process};

/// Buffer of each direction: the initial one of this project's associations.
const BUFFER_BYTES: u32 = 2 << 20;
const LISTENER: &str = "--local 127.0.0.1 --udp 29900 --remote-udp 29899 --sctp 5001 discard";
const CALLER: &str = "--local 127.0.0.1 --remote 127.0.0.1 --udp 29899 --remote-udp 29900 --sctp 5002 --remote-sctp 5001 --end shutdown flood";

/// Returns `true` if the peer can be built here.
pub(crate) fn is_there() -> bool {
    Path::new("/usr/include/usrsctp.h").exists() && program().is_ok()
}

fn program() -> Result<PathBuf, Failure> {
    let built = std::env::current_exe()?.with_file_name("bench-wire-usrsctp");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../interop/peer/usrsctp_peer.c");
    if built.exists() && built.metadata()?.modified()? >= source.metadata()?.modified()? {
        return Ok(built);
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-O2", "-o"]).args([&built, &source]).args(["-lusrsctp", "-lpthread"]);
    if compiler.status()?.success() { Ok(built) } else { Err("usrsctp_peer.c does not compile".into()) }
}

/// A running peer, which is ended when dropped.
struct Peer {
    process: Child,
    told: Lines<BufReader<ChildStderr>>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Peer {
    fn start(amount: Amount, more: &str) -> Result<Self, Failure> {
        let mut command = Command::new(program()?);
        let common = format!("--buffer {BUFFER_BYTES} --message {}", amount.message_bytes);
        command.args(common.split(' ')).args(more.split(' '));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.spawn()?;
        let told = process.stderr.take().ok_or("its standard error is not read")?;
        Ok(Peer { process, told: BufReader::new(told).lines() })
    }

    /// Reads its output up to this event, and returns that line.
    fn wait_for(&mut self, event: &str) -> Result<String, Failure> {
        let wanted = format!("\"event\":\"{event}\"");
        for line in self.told.by_ref() {
            let line = line?;
            if line.contains(&wanted) {
                return Ok(line);
            }
            if line.contains("\"event\":\"error\"") {
                return Err(line.into());
            }
        }
        Err(format!("usrsctp ended before it told of `{event}`").into())
    }

    /// Waits for its last output and its end.
    fn finish(mut self) -> Result<String, Failure> {
        let ended = self.wait_for("end")?;
        self.process.wait()?;
        Ok(ended)
    }
}

/// Returns the seconds from the first to the last received message.
fn transfer(amount: Amount, pace: &str) -> Result<f64, Failure> {
    let mut listener = Peer::start(amount, LISTENER)?;
    listener.wait_for("listening")?;
    let caller = Peer::start(amount, &format!("--count {}{pace} {CALLER}", amount.messages))?;
    let ended = listener.finish()?;
    caller.finish()?;
    if number(&ended, "bytes")? != amount.bytes() as f64 {
        return Err(format!("usrsctp lost data: {ended}").into());
    }
    number(&ended, "seconds")
}

fn number(line: &str, key: &str) -> Result<f64, Failure> {
    let (_, rest) = line.split_once(&format!("\"{key}\":")).ok_or(format!("no `{key}` in {line}"))?;
    let end = rest.find([',', '}']).unwrap_or(rest.len());
    Ok(rest[..end].parse()?)
}

pub(crate) fn rate(amount: Amount) -> Result<f64, Failure> {
    Ok(amount.mbit_per_s(transfer(amount, "")?))
}

/// Returns the processor seconds of both processes, from start to exit. A stack that does not keep up takes longer.
pub(crate) fn cpu_seconds(paced: Paced) -> Result<f64, Failure> {
    let before = process::cpu_seconds()?;
    transfer(paced.amount, &format!(" --mbit-per-s {}", paced.mbit_per_s))?;
    Ok(process::cpu_seconds()? - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_parsed_from_output_of_the_peer() {
        let line = r#"{"event":"end","bytes":1048576,"seconds":0.250000}"#;
        assert_eq!(number(line, "bytes").expect("a number"), 1_048_576.0);
        assert_eq!(number(line, "seconds").expect("a number"), 0.25);
        assert!(number(line, "messages").is_err());
    }
}
