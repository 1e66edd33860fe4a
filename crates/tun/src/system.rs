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

/// Returns the reason for which a program cannot be started.
fn not_started(program: &str, error: &io::Error) -> String {
    let package = match program {
        "ip" => "iproute2",
        "nft" => "nftables",
        other => other,
    };
    match error.kind() {
        io::ErrorKind::NotFound => format!("the program is not installed; install {package}"),
        _ => error.to_string(),
    }
}

/// Runs a program with words that are separated by spaces.
pub(crate) fn run(program: &str, words: &str, input: Option<&str>) -> Result<(), Error> {
    let failed = |why: String| Error { command: format!("{program} {words}"), why };
    let mut command = Command::new(program);
    command.args(words.split(' ')).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| failed(not_started(program, &error)))?;
    if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
        stdin.write_all(input.as_bytes()).map_err(|error| failed(error.to_string()))?;
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_of_a_missing_program_names_it_and_the_remedy() {
        let error = run("no-such-program", "a b", None).expect_err("an error").to_string();
        assert_eq!(error, "`no-such-program a b`: the program is not installed; install no-such-program");
        assert!(not_started("nft", &io::ErrorKind::NotFound.into()).ends_with("install nftables"));
    }
}
