//! `packets.csv`: every DATA chunk that was sent, arrived or was dropped.

use std::path::Path;

use anabranch_core::time::Time;
use anabranch_sim::PacketEvent;
use anabranch_wire::Tsn;

use crate::csv_table::{CsvTable, TraceError};

/// Name of the file.
pub const PACKET_FILE: &str = "packets.csv";

/// Columns of `packets.csv`.
pub const PACKET_COLUMNS: [&str; 7] = ["time_s", "flow", "direction", "path", "event", "tsn", "chunk_bytes"];

/// A DATA chunk with its event.
#[derive(Clone, Copy, Debug)]
pub struct ChunkRecord<'a> {
    /// Name of the flow.
    pub flow: &'a str,
    /// Name of the path.
    pub path: &'a str,
    /// Set if the chunk goes from the first end to the second. In traces of sockets, set if this host sent the chunk.
    pub forward: bool,
    /// Event of the chunk.
    pub event: PacketEvent,
    /// TSN of the chunk.
    pub tsn: Tsn,
    /// Chunk bytes.
    pub bytes: u64,
}

/// Writer of `packets.csv`.
pub struct PacketTable {
    table: CsvTable,
}

impl PacketTable {
    /// Begins the file.
    ///
    /// # Errors
    /// Returns [`TraceError`] if it cannot be written.
    pub fn create(folder: &Path) -> Result<Self, TraceError> {
        Ok(PacketTable { table: CsvTable::create(folder, PACKET_FILE, &PACKET_COLUMNS)? })
    }

    /// Writes a row.
    pub fn packet(&mut self, now: Time, chunk: &ChunkRecord<'_>) {
        let event = match chunk.event {
            PacketEvent::Sent => "sent",
            PacketEvent::Delivered => "received",
            PacketEvent::DroppedLoss => "lost",
            PacketEvent::DroppedPolicer => "policed",
            PacketEvent::DroppedQueue => "queue-full",
            PacketEvent::DroppedOutage => "outage",
            PacketEvent::Unroutable => "unroutable",
        };
        let direction = if chunk.forward { "forward" } else { "reverse" };
        self.table.write(|row| {
            row.seconds(now).word(chunk.flow).word(direction).word(chunk.path).word(event);
            row.number(u64::from(chunk.tsn.get())).number(chunk.bytes);
        });
    }

    /// Flushes the file.
    ///
    /// # Errors
    /// Returns the first error of a write.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        self.table.flush()
    }
}
