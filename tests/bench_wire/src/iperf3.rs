//! The kernel's TCP, by `iperf3`.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::Failure;
use crate::site::{Network, Side};
use crate::transfer::{Amount, Reports, Running};

/// Returns `true` if it is installed.
pub(crate) fn is_there() -> bool {
    let version =
        Command::new("iperf3").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

pub(crate) fn run(network: &Network, amount: Amount) -> Result<Value, Failure> {
    let listening = network.receiver(1);
    let [address, port] = [listening.ip().to_string(), listening.port().to_string()];
    let program = Path::new("iperf3");
    let mut receiver = network.command(Side::Receiver, program);
    receiver.args(["--server", "--one-off", "--forceflush", "--bind", &address, "--port", &port]);
    let mut receiver = Running::start(receiver, Reports::Output)?;
    receiver.wait_for_text("Server listening")?;
    let mut sender = network.command(Side::Sender, program);
    sender.args(["--client", &address, "--port", &port, "--json"]);
    sender.args(["--bytes", &amount.bytes().to_string(), "--length", &amount.message_bytes.to_string()]);
    let report = Running::start(sender, Reports::Output)?.finish()?;
    receiver.finish()?;
    received(&serde_json::from_str(&report)?)
}

/// Returns the receiver's part of the report.
fn received(report: &Value) -> Result<Value, Failure> {
    let sum = &report["end"]["sum_received"];
    match (sum["bytes"].as_u64(), sum["seconds"].as_f64()) {
        (Some(bytes), Some(seconds)) => Ok(json!({ "bytes": bytes, "seconds": seconds })),
        _ => Err(format!("iperf3 reports no sum of the receiver: {report}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sum_of_the_receiver_is_read() {
        let report = json!({ "end": { "sum_received": { "bytes": 1_048_576, "seconds": 0.25 } } });
        assert_eq!(received(&report).expect("a sum"), json!({ "bytes": 1_048_576, "seconds": 0.25 }));
        assert!(received(&json!({ "error": "unable to connect" })).is_err());
    }
}
