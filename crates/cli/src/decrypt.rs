//! `anabranch decrypt`.

use std::path::PathBuf;

use anabranch_keylog::Decrypted;
use clap::Args;
use serde_json::json;

use crate::exit::{CommandError, Status};
use crate::output::{self, count};

const EXAMPLES: &str = "\
Examples:
  Capture a transfer with its keys, and make a capture that Wireshark can
  read:
    anabranch send film.mkv example.org --pcap film.pcapng --keylog film.keys
    anabranch decrypt film.pcapng --keylog film.keys -o plain.pcapng

The keys of either side suffice. The capture may come from any point of the
network path, in the format pcapng or pcap. The output contains the SCTP
packets only, without their protection.
Anyone with the keys can read the transfer: remove them when they are no
longer needed.
Link types that tcpdump writes on Linux and macOS are read: Ethernet with VLAN
tags and PPPoE, Linux cooked (SLL, SLL2), raw IP, loopback, PPP, NFLOG, PKTAP.
Wi-Fi frames are not supported.
Exit status: 0 if packets were decrypted, 1 if no packet was decrypted or a
file cannot be used, 2 if the command line is wrong.";

/// Decrypt a capture of protected associations.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DecryptArguments {
    /// Capture to read
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,

    /// File with the keys that --keylog wrote
    #[arg(long, value_name = "FILE")]
    keylog: PathBuf,

    /// Capture to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn decrypt(arguments: &DecryptArguments) -> Result<Status, CommandError> {
    let DecryptArguments { capture, keylog, output: to, json } = arguments;
    let done = anabranch_keylog::decrypt(capture, keylog, to).map_err(CommandError::failure)?;
    let text = if *json {
        json!({
            "decrypted": done.opened, "without_key": done.closed, "plain": done.plain, "cut_off": done.cut_off,
            "fragments": done.fragments, "left_out": done.others, "unknown_link_types": done.unknown_links,
        })
        .to_string()
    } else {
        lines(&done)
    };
    output::print(&format!("{text}\n"));
    match done.no_packet_reason() {
        None => Ok(Status::Success),
        Some(why) => Err(CommandError::failure(format!(
            "{}: no packet was decrypted with {}: {why}",
            capture.display(),
            keylog.display()
        ))),
    }
}

fn lines(done: &Decrypted) -> String {
    let unknown: u64 = done.unknown_links.values().sum();
    let packets = count(done.opened, "packet", "packets");
    let mut text = format!(
        "{packets} decrypted, {} without a key for them, {} not protected; {} packets of other protocols were skipped",
        done.closed, done.plain, done.others
    );
    for (left_out, what) in [
        (done.cut_off, "cut off"),
        (done.fragments, "fragmented"),
        (unknown, "of link types that are not read"),
    ] {
        if left_out > 0 {
            text += &format!(", {left_out} {what}");
        }
    }
    text
}
