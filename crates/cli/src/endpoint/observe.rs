//! Observation of associations on real sockets: captures, traces, events and metrics, with the same options for all commands.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(unix)]
use anabranch_forward::Tally;
use anabranch_net::{Config, Endpoint, EndpointBuilder};
#[cfg(unix)]
use anabranch_observe::control::{Connection, Connections, Control, Folder, MAX_CONNECTIONS};
use anabranch_observe::metrics::Exporter;
use anabranch_observe::{LinkCostSource, Outputs, Recording, Role};
use anabranch_sim::pcapng::SnapLength;
use clap::Args;

use crate::exit::CommandError;
use crate::output;
use crate::quantity::read_snap_length;

/// The TCP port of metrics if only an address is given.
const METRICS_PORT: u16 = 9464;

/// Heading of these options in the help. Each option names it, since `next_help_heading` would also apply to later options.
const HEADING: &str = "Observation";

/// Options for recordings and metrics.
#[derive(Clone, Debug, Args)]
pub(crate) struct ObserveOptions {
    /// Write a capture of all packets for Wireshark
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Stored bytes of each packet in the capture, from its IP header on; 0 or full: whole packets
    /// [default: 256 with --insecure; full otherwise, since decryption needs whole packets]
    #[arg(long, help_heading = HEADING, value_name = "BYTES|full", requires = "pcap", value_parser = read_snap_length)]
    snaplen: Option<SnapLength>,

    /// Write the traces that `anabranch explain` reads into this folder
    #[arg(long, help_heading = HEADING, value_name = "DIR")]
    trace: Option<PathBuf>,

    /// Write events in qlog's format into this file, or into one file per association in a folder
    #[arg(long, help_heading = HEADING, value_name = "FILE|DIR/")]
    qlog: Option<PathBuf>,

    /// Serve metrics (OpenMetrics) over HTTP; a port without an address listens on loopback [default port: 9464]
    #[arg(long, help_heading = HEADING, value_name = "ADDR[:PORT]", value_parser = read_metrics_address)]
    metrics: Option<SocketAddr>,

    #[arg(skip)]
    running: Arc<Mutex<Running>>,
}

/// Observers that the first endpoint of a command started. All later endpoints share them, since a transfer that reconnects has
/// several. They end with the command.
#[derive(Debug, Default)]
struct Running {
    recording: Option<Recording>,
    exporter: Option<Exporter>,
    #[cfg(unix)]
    control: Option<Control>,
}

impl Drop for Running {
    /// Reports recording losses at the end of the output. They do not change the exit status of the command.
    fn drop(&mut self) {
        let Some(recording) = self.recording.take() else { return };
        let report = recording.finish();
        for error in &report.errors {
            output::notice(format_args!("{error}: not written to the end"));
        }
        if report.records_dropped > 0 {
            output::notice(format_args!(
                "{} not written: the disk was slower than the network",
                output::count(report.records_dropped, "record was", "records were")
            ));
        }
    }
}

impl ObserveOptions {
    /// Returns the first option that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--pcap", self.pcap.is_some()),
            ("--trace", self.trace.is_some()),
            ("--qlog", self.qlog.is_some()),
            ("--metrics", self.metrics.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }

    /// Returns `true` if traces are written.
    pub(super) fn traces(&self) -> bool {
        self.trace.is_some()
    }

    /// Adds the requested recording. The packets are `readable` without protection.
    pub(super) fn attach(
        &self,
        builder: EndpointBuilder,
        role: Role,
        scheme: &str,
        config: &Config,
        readable: bool,
    ) -> Result<EndpointBuilder, CommandError> {
        let usual = if readable { SnapLength::HEADERS } else { SnapLength::FULL };
        let outputs = Outputs {
            pcap: self.pcap.clone(),
            snap_length: self.snaplen.unwrap_or(usual),
            trace: self.trace.clone(),
            qlog: self.qlog.clone(),
        };
        if outputs.is_empty() {
            return Ok(builder);
        }
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let recording = match running.recording.take() {
            Some(recording) => recording,
            None => Recording::start(&outputs, role, scheme, config).map_err(CommandError::failure)?,
        };
        let observed = builder.observer(recording.observer());
        running.recording = Some(recording);
        Ok(observed)
    }

    /// Opens the control socket of this command, for `anabranch top`. The command works without it, so a failure is a notice.
    #[cfg(unix)]
    pub(super) fn open_control(
        &self,
        command: &str,
        scheme: &str,
        (tally, links): (Option<&Tally>, Option<LinkCostSource>),
    ) {
        let control = match Control::open(&Folder::of_user(), command, scheme) {
            Ok(control) => control,
            Err(error) => {
                return output::notice(format_args!("`anabranch top` cannot show this command: {error}"));
            }
        };
        if let Some(tally) = tally.cloned() {
            control.show_connections(Arc::new(move || connections(&tally)));
        }
        if let Some(links) = links {
            control.show_links(links);
        }
        self.running.lock().unwrap_or_else(PoisonError::into_inner).control = Some(control);
    }

    /// Shows an endpoint to `anabranch top`, and exports its metrics and those of links if requested.
    pub(super) fn show(
        &self,
        endpoint: &Endpoint,
        links: Option<LinkCostSource>,
    ) -> Result<(), CommandError> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(unix)]
        if let Some(control) = &running.control {
            control.show(endpoint);
        }
        let Some(address) = self.metrics else { return Ok(()) };
        let exporter = match running.exporter.take() {
            Some(exporter) => exporter,
            None => export(address)?,
        };
        exporter.show(endpoint);
        if let Some(links) = links {
            exporter.show_links(links);
        }
        running.exporter = Some(exporter);
        Ok(())
    }
}

#[cfg(unix)]
fn connections(tally: &Tally) -> Connections {
    let totals = tally.totals();
    let list = tally.connections(MAX_CONNECTIONS).into_iter().map(|one| Connection {
        number: one.number,
        target: one.target,
        age_s: one.age.as_secs(),
        to_peer_bytes: one.to_peer_bytes,
        from_peer_bytes: one.from_peer_bytes,
    });
    Connections {
        open: totals.open as u64,
        complete: totals.complete,
        reset: totals.reset,
        failed: totals.failed.iter().sum(),
        list: list.collect(),
    }
}

fn export(address: SocketAddr) -> Result<Exporter, CommandError> {
    let exporter = Exporter::bind(address).map_err(|error| {
        CommandError::failure(format!(
            "--metrics {address}: {error}; check that the address is this machine's and that no other program has the port"
        ))
    })?;
    let local = exporter.local_address();
    if !local.ip().is_loopback() {
        output::notice(format_args!("metrics: every host that reaches http://{local}/metrics can read them"));
    } else if address.port() == 0 {
        output::notice(format_args!("metrics: http://{local}/metrics"));
    }
    Ok(exporter)
}

/// Reads an address for metrics. A port alone means loopback; other addresses must be named.
fn read_metrics_address(text: &str) -> Result<SocketAddr, String> {
    let loopback = |port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port);
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse() {
        return Ok(loopback(port));
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse() {
        return Ok(SocketAddr::new(address, METRICS_PORT));
    }
    text.parse().map_err(|_| {
        "expected a port of loopback, or an address with or without one, such as 9464, 192.0.2.1:9464 or [::1]:9464"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_addresses_than_loopback_have_to_be_named() {
        let read = |text: &str| read_metrics_address(text).map(|address| address.to_string());
        assert_eq!(read("9464").unwrap(), "127.0.0.1:9464");
        assert_eq!(read(":1").unwrap(), "127.0.0.1:1");
        assert_eq!(read("192.0.2.1").unwrap(), "192.0.2.1:9464");
        assert_eq!(read("192.0.2.1:7").unwrap(), "192.0.2.1:7");
        assert_eq!(read("::1").unwrap(), "[::1]:9464");
        assert_eq!(read("[::1]").unwrap(), "[::1]:9464");
        assert_eq!(read("[::1]:7").unwrap(), "[::1]:7");
        assert!(read("localhost").unwrap_err().contains("such as 9464"));
        assert!(read("99999").is_err());
    }
}
