//! Commands of the system.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use thiserror::Error;

/// Error of a command of the system.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{command}`: {why}")]
pub struct Error {
    command: String,
    why: String,
}

impl Error {
    pub(crate) fn of(command: String, error: &io::Error) -> Self {
        Error { command, why: error.to_string() }
    }
}

/// Returns `true` if any device of the system has IPv6.
pub(crate) fn knows_ipv6() -> bool {
    Path::new("/proc/net/if_inet6").exists()
}

/// Returns `true` if a new device has IPv6.
pub fn has_ipv6() -> bool {
    let disabled = fs::read_to_string("/proc/sys/net/ipv6/conf/default/disable_ipv6");
    knows_ipv6() && disabled.is_ok_and(|value| value.trim() == "0")
}

/// Runs `ip` with these words.
pub(crate) fn ip(words: &str) -> Result<(), Error> {
    run("ip", words, None)
}

/// Runs a program with words that are separated by spaces.
pub(crate) fn run(program: &str, words: &str, input: Option<&str>) -> Result<(), Error> {
    let failed = |why: String| Error { command: format!("{program} {words}"), why };
    let mut command = Command::new(program);
    command.args(words.split(' ')).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        stdin.write_all(input.as_bytes()).map_err(|error| failed(error.to_string()))?;
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}
