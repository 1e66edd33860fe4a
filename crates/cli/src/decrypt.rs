//! `anabranch decrypt`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::exit::{CommandError, Status};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  Capture a transfer with its keys, and make a capture that Wireshark can read:
    anabranch send film.mkv example.org --pcap film.pcapng --keylog film.keys
    anabranch decrypt film.pcapng --keylog film.keys -o plain.pcapng

The keys of either side will do. A capture made elsewhere on the way, in the format pcapng or pcap,
will do as well; only packets of SCTP are in the output, as long as they would be unprotected.
Whoever has the keys can read the transfer: remove them when they are not needed any more.
Exit status: 0 if a capture was written, 1 if a file cannot be used, 2 if the command line is
wrong.";

/// Decrypt a capture of protected associations.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DecryptArguments {
    /// The capture
    #[arg(value_name = "CAPTURE")]
    capture: PathBuf,

    /// The keys, as --keylog wrote them
    #[arg(long, value_name = "FILE")]
    keylog: PathBuf,

    /// The capture to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Carries the command out.
pub(crate) fn decrypt(arguments: &DecryptArguments) -> Result<Status, CommandError> {
    let DecryptArguments { capture, keylog, output: to, json } = arguments;
    let done = anabranch_keylog::decrypt(capture, keylog, to).map_err(CommandError::failure)?;
    let text = if *json {
        json!({ "decrypted": done.opened, "without_key": done.closed, "plain": done.plain, "left_out": done.others })
            .to_string()
    } else {
        format!(
            "{} packets decrypted, {} without a key for them, {} not protected; {} of something else left out",
            done.opened, done.closed, done.plain, done.others
        )
    };
    output::print(&format!("{text}\n"));
    Ok(Status::Success)
}
