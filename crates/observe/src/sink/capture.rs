//! Capture for Wireshark, with wall clock times and one interface per local address.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anabranch_core::time::{Span, Time};
use anabranch_net::DatagramOutcome;
use anabranch_sim::pcapng::{InterfaceId, PcapngWriter, SnapLength};
use anabranch_sim::{Datagram, Encapsulation};
use anabranch_trace::TraceError;

use super::{ObservedDatagram, Sink};
use crate::directory::is_inbound;

/// Writer of a capture.
pub(crate) struct Capture {
    path: PathBuf,
    writer: PcapngWriter<BufWriter<File>>,
    /// Interfaces by local address; `None` is the interface of datagrams that were dropped before transmission.
    interfaces: BTreeMap<Option<IpAddr>, InterfaceId>,
    /// Start of the recording since 1970.
    origin: Span,
    error: Option<io::Error>,
}

impl Capture {
    pub(crate) fn create(
        path: &Path,
        snap_length: SnapLength,
        origin: SystemTime,
    ) -> Result<Self, TraceError> {
        let wrong = |error| TraceError { path: path.to_owned(), error };
        let writer = File::create(path)
            .and_then(|file| PcapngWriter::with_snap_length(BufWriter::new(file), snap_length));
        let since = origin.duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = Span::from_nanos(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX));
        let interfaces = BTreeMap::new();
        let mut capture = Capture {
            path: path.to_owned(),
            writer: writer.map_err(wrong)?,
            interfaces,
            origin,
            error: None,
        };
        // The capture is readable from the start.
        capture.writer.flush().map_err(wrong)?;
        Ok(capture)
    }

    fn interface(&mut self, address: Option<IpAddr>) -> io::Result<InterfaceId> {
        if let Some(known) = self.interfaces.get(&address) {
            return Ok(*known);
        }
        let name = address.map_or_else(|| "dropped".to_owned(), |address| address.to_string());
        let interface = self.writer.add_interface(&name)?;
        self.interfaces.insert(address, interface);
        Ok(interface)
    }

    fn write(&mut self, at: Time, datagram: &ObservedDatagram<'_>) -> io::Result<()> {
        let ObservedDatagram { local, remote, outcome, payload, .. } = *datagram;
        let (on, comment) = match outcome {
            DatagramOutcome::Received | DatagramOutcome::Sent => (Some(local.ip()), None),
            DatagramOutcome::Discarded(reason) => (Some(local.ip()), Some(format!("discarded: {reason:?}"))),
            DatagramOutcome::Refused => (None, Some("not sent: the system refused it".to_owned())),
            DatagramOutcome::Overflowed => {
                (None, Some("not sent: the socket was blocked for too long".to_owned()))
            }
        };
        let (source, destination) = if is_inbound(outcome) { (remote, local) } else { (local, remote) };
        let encapsulation =
            Encapsulation::Udp { source_port: source.port(), destination_port: destination.port() };
        let datagram =
            Datagram { source: source.ip(), destination: destination.ip(), encapsulation, payload };
        let interface = self.interface(on)?;
        self.writer.packet(interface, at + self.origin, datagram, comment.as_deref())
    }
}

impl Sink for Capture {
    fn endpoint(&mut self, locals: &[SocketAddr]) {
        for local in locals {
            if let Err(error) = self.interface(Some(local.ip())) {
                self.error.get_or_insert(error);
            }
        }
    }

    fn datagram(&mut self, at: Time, datagram: &ObservedDatagram<'_>) {
        if let Err(error) = self.write(at, datagram) {
            self.error.get_or_insert(error);
        }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        let flushed = match self.error.take() {
            Some(error) => Err(error),
            None => self.writer.flush(),
        };
        flushed.map_err(|error| TraceError { path: self.path.clone(), error })
    }
}
