//! Selection of a part of a trace.

use anabranch_core::time::Span;

/// A table of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceTable {
    /// `FLOW-paths.csv` of each sender.
    Paths,
    /// `FLOW-decisions.csv` of each sender.
    Decisions,
    /// `packets.csv`.
    Packets,
    /// `queues.csv`.
    Queues,
}

impl TraceTable {
    /// Returns the table with this name: `paths`, `decisions`, `packets` or `queues`.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "paths" => TraceTable::Paths,
            "decisions" => TraceTable::Decisions,
            "packets" => TraceTable::Packets,
            "queues" => TraceTable::Queues,
            _ => return None,
        })
    }
}

/// Requested part of a run's trace. The default is the whole trace.
///
/// Other tables are not written, and the requested ones do not depend on them. Without `queues.csv`, links are computed ahead if
/// possible; then rows of `packets.csv` with the same time may have another order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracePart {
    /// Requested tables; `None` for all.
    pub tables: Option<Vec<TraceTable>>,
    /// Early end of the run, if any. Traces and figures contain nothing later.
    pub until: Option<Span>,
}

impl TracePart {
    pub(crate) fn has(&self, table: TraceTable) -> bool {
        self.tables.as_ref().is_none_or(|tables| tables.contains(&table))
    }

    /// Returns `true` if links may be computed ahead although the run is traced.
    pub(crate) fn admits_ahead(&self) -> bool {
        !self.has(TraceTable::Queues)
    }
}
