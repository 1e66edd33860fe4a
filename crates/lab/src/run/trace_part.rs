//! Traces of which only a part is read.

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
    /// The table of this name: `paths`, `decisions`, `packets` or `queues`.
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

/// What is wanted of a run's trace: all of it by default.
///
/// Tables that are left out are not written, and the others are as they would be beside them. Without `queues.csv` links are computed
/// ahead where they can be; then rows of one moment in `packets.csv` may have another order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracePart {
    /// The tables, if not all.
    pub tables: Option<Vec<TraceTable>>,
    /// When the run is ended before its time: what comes later is not read, neither in traces nor in figures.
    pub until: Option<Span>,
}

impl TracePart {
    pub(crate) fn has(&self, table: TraceTable) -> bool {
        self.tables.as_ref().is_none_or(|tables| tables.contains(&table))
    }

    /// Whether links may be computed ahead although the run is traced.
    pub(crate) fn admits_ahead(&self) -> bool {
        !self.has(TraceTable::Queues)
    }
}
