//! Traces of a run, written during the run.

use std::path::Path;

use anabranch_core::time::Time;
use anabranch_core::{Association, PathId};
use anabranch_sim::PacketEvent;
use anabranch_wire::Tsn;

use crate::run::trace_part::{TracePart, TraceTable};
use anabranch_trace::{self as trace, AssociationTables, CsvTable, PacketTable, Sampler, Sender, TraceError};

/// Path states and decisions of one end of a flow.
pub(crate) struct PathRecorder {
    sampler: Sampler,
    tables: AssociationTables,
    /// Names of the scenario's paths.
    names: Vec<String>,
}

impl PathRecorder {
    pub(crate) fn create(
        folder: &Path,
        sender: &Sender,
        names: Vec<String>,
        part: &TracePart,
    ) -> Result<Self, TraceError> {
        let wanted = [TraceTable::Paths, TraceTable::Decisions].map(|table| part.has(table));
        let tables = AssociationTables::create_wanted(folder, sender, wanted)?;
        Ok(PathRecorder { sampler: Sampler::new(), tables, names })
    }

    /// Names a path of the association after the one of the scenario that it belongs to.
    pub(crate) fn name_path(&mut self, id: PathId, path: usize) {
        self.tables.name_path(id, self.names[path].clone());
    }

    /// Writes the changes since the latest call.
    pub(crate) fn sample(&mut self, now: Time, association: &mut Association) {
        self.sampler.sample(association, |stand| self.tables.path(now, stand));
        while let Some(event) = association.poll_trace() {
            self.tables.decision(&event);
        }
        self.tables.timeouts(now, association.statistics().timeouts);
    }

    pub(crate) fn finish(&mut self) -> Result<(), TraceError> {
        self.tables.flush()
    }
}

/// Recorder of every packet with DATA: sent, delivered or dropped.
pub(crate) struct PacketRecorder {
    table: PacketTable,
    flows: Vec<String>,
    paths: Vec<String>,
}

/// A DATA chunk at a host or link.
pub(crate) struct ChunkRecord {
    pub(crate) flow: usize,
    pub(crate) path: usize,
    /// Side that sent it; 0 is the left one.
    pub(crate) side: usize,
    pub(crate) event: PacketEvent,
    pub(crate) tsn: Tsn,
    /// Chunk bytes.
    pub(crate) bytes: u64,
}

impl PacketRecorder {
    pub(crate) fn create(folder: &Path, flows: Vec<String>, paths: Vec<String>) -> Result<Self, TraceError> {
        Ok(PacketRecorder { table: PacketTable::create(folder)?, flows, paths })
    }

    pub(crate) fn packet(&mut self, now: Time, chunk: ChunkRecord) {
        fn name(names: &[String], at: usize) -> &str {
            names.get(at).map_or("", String::as_str)
        }
        let ChunkRecord { flow, path, side, event, tsn, bytes } = chunk;
        let (flow, path) = (name(&self.flows, flow), name(&self.paths, path));
        self.table.packet(now, &trace::ChunkRecord { flow, path, forward: side == 0, event, tsn, bytes });
    }

    pub(crate) fn finish(&mut self) -> Result<(), TraceError> {
        self.table.flush()
    }
}

/// Samples of queue lengths.
pub(crate) struct QueueRecorder {
    table: CsvTable,
}

impl QueueRecorder {
    pub(crate) fn create(folder: &Path) -> Result<Self, TraceError> {
        let table =
            CsvTable::create(folder, "queues.csv", &["time_s", "link", "queue_packets", "queue_bytes"])?;
        Ok(QueueRecorder { table })
    }

    pub(crate) fn sample(&mut self, now: Time, link: &str, packets: u64, bytes: u64) {
        self.table.write(|row| {
            row.seconds(now).word(link).number(packets).number(bytes);
        });
    }

    pub(crate) fn finish(&mut self) -> Result<(), TraceError> {
        self.table.flush()
    }
}
