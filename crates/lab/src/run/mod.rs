//! One run: a scenario with a scheme and a seed is built as a world, executed, and measured.

mod address;
mod application;
mod batch;
mod beside;
mod build;
mod capture;
mod cross;
mod details;
mod expected;
mod files;
mod forwarding;
mod keys;
mod lane;
mod manifest;
mod metrics;
pub(crate) mod mobility;
mod network;
mod observer;
mod payload;
mod plan;
mod recorder;
mod scheme;
mod shared_beginning;
mod trace_part;
mod video;

pub use anabranch_sim::pcapng::SnapLength;
pub use batch::{Batch, Failed, Outcome, run_catching_panic, run_each};
pub use capture::Captures;
pub use details::{Details, SenderDetails, SenderPath};
pub use expected::{Expected, Piece};
pub(crate) use files::SeriesKind;
pub use files::{ScenarioFiles, TraceFileError, TraceFileFault};
pub use lane::{LaneConfig, LaneError, PathLanes, link_lanes, path_lanes};
pub use metrics::{
    AbandonedResult, ConnectionResult, DeliveryFault, FlowResult, MessageDelays, PathResult, RunResult,
    flow_failure,
};
pub use plan::{FlowPlan, Workload, bulk_queue_bytes};
pub use scheme::JobScheme;
pub use trace_part::{TracePart, TraceTable};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::time::{Span, Time};
use thiserror::Error;

use crate::conventions::Conventions;
use crate::run::build::BuiltWorld;
use anabranch_scenario::{Scenario, Stop};
use anabranch_trace::TraceError;

/// Time between two checks for the end of a transfer, and between two samples of queues.
const SLICE: Span = Span::from_millis(10);

/// Time between two checks for an abort in a run that needs neither.
const LONG_SLICE: Span = Span::from_millis(500);

/// Function that is called between two slices of a run.
type Look<'a> = &'a mut dyn FnMut(&mut BuiltWorld);

/// End of a run's execution.
enum RunEnd {
    End,
    Stop,
    /// Links were computed ahead, and two packets arrived in the same nanosecond in an order that only events determine.
    OrderUnknown,
}

/// Description of a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// Scenario of the run.
    pub scenario: Arc<Scenario>,
    /// Conventions of the profile.
    pub conventions: Arc<Conventions>,
    /// Scheme of all flows without a scheme of their own.
    pub scheme: JobScheme,
    /// Seed of all random streams.
    pub seed: u64,
    /// Files that the scenario names.
    pub files: Arc<ScenarioFiles>,
    /// Captures to write, if any.
    pub pcap: Option<Captures>,
    /// Folder for traces, if any.
    pub trace: Option<PathBuf>,
    /// Part of the traces that is written.
    pub part: TracePart,
    /// Set to compute a digest of all packets, which takes about as long as the run itself.
    pub digest: bool,
}

/// Reason for which a run failed.
#[derive(Debug, Error)]
pub enum RunError {
    /// The scheme of a flow is invalid.
    #[error("flow `{flow}`: {error}")]
    Scheme {
        /// Name of the flow.
        flow: String,
        /// Error in its expression.
        error: Box<anabranch_schemes::registry::ExpressionError>,
    },
    /// A file that a flow sends cannot be read, or output cannot be written.
    #[error("{path}: {error}")]
    File {
        /// Path of the file.
        path: String,
        /// Error of the system.
        error: std::io::Error,
    },
    /// The trace of a video flow is invalid.
    #[error(transparent)]
    Video(#[from] crate::video::VideoError),
    /// The trace of a link is invalid.
    #[error(transparent)]
    TraceFile(#[from] TraceFileError),
    /// The simulator rejects the scenario.
    #[error("the network cannot be built: {0}")]
    Network(#[from] anabranch_sim::ConfigError),
    /// The simulator or a policy has panicked.
    #[error(
        "{run}: the run panicked, which is a fault of the simulator and worth a report with the scenario: {message}"
    )]
    Panicked {
        /// Label of the run.
        run: String,
        /// Message of the panic.
        message: String,
    },
}

impl From<TraceError> for RunError {
    fn from(TraceError { path, error }: TraceError) -> Self {
        RunError::File { path: path.display().to_string(), error }
    }
}

impl Job {
    /// Runs to the end.
    ///
    /// # Errors
    /// Returns [`RunError`].
    pub fn run(&self) -> Result<RunResult, RunError> {
        let built = self.run_built(|| true, None)?;
        built.unwrap_or_else(|| unreachable!("nothing stops it")).finish(self)
    }

    /// Runs to the end, or aborts without a result soon after any thread sets `stop`. The output of an aborted run shows this: its
    /// trace has no `result.json`, and its capture is still named `.part`.
    ///
    /// # Errors
    /// Returns [`RunError`].
    pub fn run_until_stopped(&self, stop: &AtomicBool) -> Result<Option<RunResult>, RunError> {
        self.run_while(|| !stop.load(Ordering::Relaxed))
    }

    /// Runs while the condition is `true`. The condition is evaluated in this thread after every few milliseconds of simulated
    /// time.
    ///
    /// # Errors
    /// Returns [`RunError`].
    pub fn run_while(&self, continues: impl FnMut() -> bool) -> Result<Option<RunResult>, RunError> {
        self.run_built(continues, None)?.map(|built| built.finish(self)).transpose()
    }

    /// Returns the network at the end of the run, unless the run was aborted. Unless packets on links are observed, links are
    /// computed ahead, and the run is repeated with events only if their order is unknown. `look` is called after each slice of time.
    fn run_built(
        &self,
        mut continues: impl FnMut() -> bool,
        mut look: Option<Look<'_>>,
    ) -> Result<Option<BuiltWorld>, RunError> {
        let looked_at =
            self.digest || self.pcap.is_some() || (self.trace.is_some() && !self.part.admits_ahead());
        let mut built = self.build()?;
        if !looked_at && built.world.compute_ahead() {
            match self.advance(&mut built, &mut continues, look.as_mut().map(|look| &mut **look as Look<'_>))
            {
                RunEnd::End => return Ok(Some(built)),
                RunEnd::Stop => return Ok(None),
                RunEnd::OrderUnknown => built = self.build()?,
            }
        }
        let mut sample_and_look = |built: &mut BuiltWorld| {
            built.sample_queues();
            if let Some(look) = &mut look {
                look(built);
            }
        };
        match self.advance(&mut built, continues, Some(&mut sample_and_look)) {
            RunEnd::Stop => Ok(None),
            RunEnd::End | RunEnd::OrderUnknown => Ok(Some(built)),
        }
    }

    fn build(&self) -> Result<BuiltWorld, RunError> {
        build::build(self)
    }

    /// Runs to the end, and calls `look` after each slice of time if it is given.
    fn advance(
        &self,
        built: &mut BuiltWorld,
        mut continues: impl FnMut() -> bool,
        mut look: Option<Look<'_>>,
    ) -> RunEnd {
        let end = self.end();
        let stops_early = matches!(self.scenario.run.stop, Stop::Transfer { .. });
        let slice = if stops_early || look.is_some() { SLICE } else { LONG_SLICE };
        while built.world.now() < end && !(stops_early && built.is_done()) {
            if !continues() {
                return RunEnd::Stop;
            }
            let next = (built.world.now() + slice).min(end);
            built.world.run_until(next);
            if built.world.order_is_unknown() {
                return RunEnd::OrderUnknown;
            }
            if let Some(look) = &mut look {
                look(built);
            }
        }
        RunEnd::End
    }

    /// Builds the network without running it, to find errors of the run. Writes nothing.
    ///
    /// # Errors
    /// Returns [`RunError`].
    pub fn check(&self) -> Result<(), RunError> {
        let unwritten = Job { pcap: None, trace: None, ..self.clone() };
        build::build(&unwritten).map(drop)
    }

    /// Returns the name of the scheme in results: that of the job, or a list of those of the flows if each of them has its own.
    pub fn scheme_name(&self) -> String {
        let own: Option<Vec<&str>> = self.scenario.flows.iter().map(|flow| flow.scheme.as_deref()).collect();
        let Some(own) = own else { return self.scheme.to_string() };
        let mut names: Vec<String> = Vec::new();
        for text in own {
            // Names of schemes have no blanks.
            let name: String = text.split_whitespace().collect();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(",")
    }

    /// Returns the latest end of the run. A transfer without a limit is aborted after a simulated week.
    fn end(&self) -> Time {
        let limit = self.scenario.run.limit().unwrap_or(Span::from_secs(7 * 86_400));
        Time::ZERO + self.part.until.map_or(limit, |until| until.min(limit))
    }

    /// Returns the common name of the run's output files.
    pub fn label(&self) -> String {
        run_label(&self.scheme_name(), self.seed)
    }
}

/// Returns the common name of the output files of a run with this scheme and seed.
pub fn run_label(scheme: &str, seed: u64) -> String {
    let safe: String = scheme
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-._=+".contains(c) { c } else { '_' })
        .collect();
    format!("{safe}-seed{seed}")
}
