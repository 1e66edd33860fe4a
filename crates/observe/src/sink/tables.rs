//! Traces of an endpoint in the simulator's format.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use anabranch_core::PathId;
use anabranch_core::time::Time;
use anabranch_core::trace::TraceEvent;
use anabranch_net::{CloseReason, DatagramOutcome, KeyChange};
use anabranch_sim::PacketEvent;
use anabranch_trace::{
    AssociationTables, ChunkRecord, FORMAT, Manifest, PACKET_FILE, PacketTable, PathSample, Sender,
    TraceError, Vantage,
};
use anabranch_wire::{Chunk, PacketView, Tsn};
use serde::Serialize;

use super::{ObservedDatagram, RecordingInfo, Sink, Totals};
use crate::batch::Key;
use crate::directory::AssociationInfo;

/// Length of the header of a DATA chunk, in bytes.
const DATA_HEADER_BYTES: u64 = 16;

/// Writer of a folder of traces.
pub(crate) struct Tables {
    folder: PathBuf,
    about: RecordingInfo,
    manifest: Manifest,
    /// Set if `run.toml` is out of date.
    stale: bool,
    packets: PacketTable,
    /// Latest row of `packets.csv`. Endpoints of one recording may be slightly out of order.
    latest: Time,
    /// Active associations, each with the index of its sender in the manifest.
    open: BTreeMap<Key, (usize, AssociationTables)>,
    /// Bytes of protected packets sent, by sender and path. Their content is unreadable here.
    protected: BTreeMap<String, BTreeMap<String, u64>>,
    /// Associations whose packets are protected.
    keyed: BTreeSet<Key>,
    error: Option<TraceError>,
}

/// Content of `result` in `result.json`.
#[derive(Serialize)]
struct RunEnd {
    retransmissions: u64,
    timeouts: u64,
    rwnd_blocked_s: f64,
    records_dropped: u64,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    protected_sent_bytes: BTreeMap<String, BTreeMap<String, u64>>,
}

impl Tables {
    pub(crate) fn create(folder: &Path, about: &RecordingInfo) -> Result<Self, TraceError> {
        fs::create_dir_all(folder).map_err(|error| TraceError { path: folder.to_owned(), error })?;
        let since = about.origin.duration_since(UNIX_EPOCH).unwrap_or_default();
        let manifest = Manifest {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            scheme: about.scheme.clone(),
            seed: None,
            profile: about.profile.to_owned(),
            vantage: Vantage::Host,
            epoch_s: Some(since.as_secs_f64()),
            senders: Vec::new(),
        };
        Manifest::reopen(folder)?;
        manifest.write(folder)?;
        let mut packets = PacketTable::create(folder)?;
        packets.flush()?;
        Ok(Tables {
            folder: folder.to_owned(),
            about: about.clone(),
            manifest,
            stale: false,
            packets,
            latest: Time::ZERO,
            open: BTreeMap::new(),
            protected: BTreeMap::new(),
            keyed: BTreeSet::new(),
            error: None,
        })
    }

    fn note<T>(&mut self, result: Result<T, TraceError>) -> Option<T> {
        result.map_err(|error| self.error.get_or_insert(error)).ok()
    }

    fn chunk(
        &mut self,
        at: Time,
        flow: &str,
        path: &str,
        outcome: DatagramOutcome,
        (tsn, bytes): (Tsn, u64),
    ) {
        let forward = outcome != DatagramOutcome::Received;
        let mut row = |event| {
            self.packets.packet(at, &ChunkRecord { flow, path, forward, event, tsn, bytes });
        };
        match outcome {
            DatagramOutcome::Received => row(PacketEvent::Delivered),
            DatagramOutcome::Sent => row(PacketEvent::Sent),
            // To the endpoint the packet was sent.
            DatagramOutcome::Overflowed => {
                [PacketEvent::Sent, PacketEvent::DroppedQueue].into_iter().for_each(row);
            }
            DatagramOutcome::Refused => {
                [PacketEvent::Sent, PacketEvent::Unroutable].into_iter().for_each(row);
            }
            // The endpoint did not read the chunks of a discarded packet.
            DatagramOutcome::Discarded(_) => {}
        }
    }
}

impl Tables {
    /// Counts a packet sent after the association installed its keys.
    fn protected_packet(&mut self, known: &AssociationInfo, path: PathId, datagram: &ObservedDatagram<'_>) {
        if !matches!(datagram.outcome, DatagramOutcome::Sent) {
            return;
        }
        if let Some(path) = known.subject.paths.get(path.index()) {
            let paths = self.protected.entry(known.subject.name.clone()).or_default();
            *paths.entry(path.clone()).or_default() += datagram.payload.len() as u64;
        }
    }
}

impl Sink for Tables {
    fn datagram(&mut self, at: Time, datagram: &ObservedDatagram<'_>) {
        let Some((known, key, path)) = datagram.owner else { return };
        if self.keyed.contains(&key) {
            self.protected_packet(known, path, datagram);
        }
        let (Ok(packet), Some(name)) =
            (PacketView::parse(datagram.payload), known.subject.paths.get(path.index()))
        else {
            return;
        };
        self.latest = self.latest.max(at);
        for chunk in packet.chunks().flatten() {
            if let Ok(Chunk::Data(data)) = chunk.decode() {
                let bytes = DATA_HEADER_BYTES + data.payload().len() as u64;
                self.chunk(self.latest, &known.subject.name, name, datagram.outcome, (data.tsn(), bytes));
            }
        }
    }

    fn opened(&mut self, at: Time, key: Key, known: &AssociationInfo) {
        let sender = Sender {
            name: known.subject.name.clone(),
            flow: known.subject.name.clone(),
            direction: "forward".to_owned(),
            scheme: self.about.scheme.clone(),
            paths: Vec::new(),
            addresses: Vec::new(),
            start_s: at.as_secs_f64(),
            end_s: None,
            lost_counts_until_resent: self.about.lost_counts_until_resent,
        };
        let created = AssociationTables::create(&self.folder, &sender);
        if let Some(tables) = self.note(created) {
            self.open.insert(key, (self.manifest.senders.len(), tables));
            self.manifest.senders.push(sender);
            self.stale = true;
        }
    }

    fn path_address(&mut self, _: Time, key: Key, known: &AssociationInfo, _: PathId) {
        let Some((place, tables)) = self.open.get_mut(&key) else { return };
        let sender = &mut self.manifest.senders[*place];
        for name in &known.subject.paths[sender.paths.len()..] {
            tables.add_path(name.clone());
        }
        sender.paths.clone_from(&known.subject.paths);
        sender.addresses.clone_from(&known.addresses);
        self.stale = true;
    }

    fn path(&mut self, at: Time, key: Key, _: &AssociationInfo, stand: &PathSample) {
        if let Some((_, tables)) = self.open.get_mut(&key) {
            tables.path(at, stand);
        }
    }

    fn decision(&mut self, key: Key, _: &AssociationInfo, event: &TraceEvent) {
        if let Some((_, tables)) = self.open.get_mut(&key) {
            tables.decision(event);
        }
    }

    fn timeouts(&mut self, at: Time, key: Key, _: &AssociationInfo, total: u64) {
        if let Some((_, tables)) = self.open.get_mut(&key) {
            tables.timeouts(at, total);
        }
    }

    fn keys(&mut self, _: Time, key: Key, _: &AssociationInfo, _: &KeyChange) {
        self.keyed.insert(key);
    }

    fn closed(&mut self, at: Time, key: Key, _: &AssociationInfo, _: &Result<(), CloseReason>) {
        self.keyed.remove(&key);
        if let Some((place, mut tables)) = self.open.remove(&key) {
            self.manifest.senders[place].end_s = Some(at.as_secs_f64());
            self.stale = true;
            self.note(tables.flush());
        }
    }

    fn flush(&mut self) -> Result<(), TraceError> {
        // Rows refer to paths, so the manifest that names them is written first.
        if std::mem::take(&mut self.stale) {
            self.manifest.write(&self.folder)?;
        }
        for (_, tables) in self.open.values_mut() {
            tables.flush()?;
        }
        self.packets.flush()?;
        self.error.take().map_or(Ok(()), Err)
    }

    fn finish(&mut self, at: Time, totals: &Totals) -> Result<(), TraceError> {
        self.flush()?;
        let ending = RunEnd {
            retransmissions: totals.retransmissions,
            timeouts: totals.timeouts,
            rwnd_blocked_s: totals.blocked_by_peer_window_ns as f64 / 1e9,
            records_dropped: totals.records_dropped,
            protected_sent_bytes: self.protected.clone(),
        };
        let ended = at.max(self.latest).as_secs_f64();
        self.manifest.close(&self.folder, ended, &[PACKET_FILE], &ending)
    }
}
