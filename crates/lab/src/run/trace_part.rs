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
/// The run writes the requested tables only. Their content does not depend on the other tables, with one exception: if `queues.csv`
/// is not requested, the simulator may compute links ahead, and rows of `packets.csv` with equal times may have another order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracePart {
    /// Requested tables; `None` for all.
    pub tables: Option<Vec<TraceTable>>,
    /// Time at which the run ends early, if set. Traces and figures cover the run up to this time.
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
