//! usrsctp, by the peer of the interoperability tests.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Failure;
use crate::site::{Network, Side};
use crate::transfer::{Reports, Transfer, between};

/// Buffer of each direction: the initial one of this project's associations.
const BUFFER_BYTES: u32 = 2 << 20;

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

pub(crate) fn run(network: &Network, transfer: &Transfer) -> Result<Value, Failure> {
    // It knows only the addresses of interfaces.
    let address = Ipv4Addr::LOCALHOST;
    let receiver = format!("--local {address} --udp 29900 --remote-udp 29899 --sctp 5001 discard");
    let pace = transfer.mbit_per_s.map_or(String::new(), |rate| format!(" --mbit-per-s {rate}"));
    let sender = format!(
        "--count {}{pace} --local {address} --remote {address} --udp 29899 --remote-udp 29900 --sctp 5002 \
         --remote-sctp 5001 --end shutdown flood",
        transfer.amount.messages
    );
    let common = format!("--buffer {BUFFER_BYTES} --message {}", transfer.amount.message_bytes);
    let program = program()?;
    let command = |side, words: &str| {
        let mut command = network.command(side, &program);
        command.args(common.split(' ')).args(words.split_whitespace());
        command
    };
    between(command(Side::Receiver, &receiver), command(Side::Sender, &sender), Reports::Errors)
}
