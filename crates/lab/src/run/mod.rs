//! One run: a scenario with a scheme and a seed becomes a world, runs, and gives its metrics.

mod address;
mod application;
mod batch;
mod beside;
mod build;
mod capture;
mod details;
mod keys;
mod lane;
mod manifest;
mod metrics;
mod network;
mod observer;
mod payload;
mod plan;
mod recorder;
mod scheme;
mod trace_part;
mod video;

pub use anabranch_sim::pcapng::SnapLength;
pub use batch::{Batch, Failed, Outcome, run_caught, run_each};
pub use capture::Captures;
pub use details::{Details, SenderDetails, SenderPath};
pub use lane::{LaneConfig, NotOneLink, PathLanes, path_lanes};
pub use metrics::{AbandonedResult, FlowResult, MessageDelays, PathResult, RunResult};
pub use plan::{FlowPlan, bulk_queue_bytes};
pub use scheme::JobScheme;
pub use trace_part::{TracePart, TraceTable};

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anabranch_core::time::{Span, Time};
use thiserror::Error;

use crate::conventions::Conventions;
use crate::run::build::Built;
use crate::trace::TraceError;
use anabranch_scenario::{Scenario, Stop};

/// How often the end of a transfer is looked for and queues are sampled.
const SLICE: Span = Span::from_millis(10);

/// How often a run that does neither may be given up.
const LONG_SLICE: Span = Span::from_millis(500);

/// How far a run came.
enum RunEnd {
    End,
    Stop,
    /// Links were computed ahead, and two packets came in one nanosecond that events would have put in order.
    OrderUnknown,
}

/// What to run.
#[derive(Clone, Debug)]
pub struct Job {
    /// The scenario.
    pub scenario: Arc<Scenario>,
    /// The rules.
    pub conventions: Arc<Conventions>,
    /// The scheme of every flow that has none of its own.
    pub scheme: JobScheme,
    /// The seed.
    pub seed: u64,
    /// Folder of the scenario file, for files that flows send.
    pub folder: PathBuf,
    /// Captures to write, if any.
    pub pcap: Option<Captures>,
    /// Where to write traces, if anywhere.
    pub trace: Option<PathBuf>,
    /// What is written of them.
    pub part: TracePart,
    /// Whether to take a digest of everything that happens, at about the cost of the run itself.
    pub digest: bool,
}

/// Why a run could not be made.
#[derive(Debug, Error)]
pub enum RunError {
    /// A flow's scheme is wrong.
    #[error("flow `{flow}`: {error}")]
    Scheme {
        /// The flow.
        flow: String,
        /// What is wrong.
        error: Box<anabranch_schemes::registry::ExpressionError>,
    },
    /// A file that a flow sends cannot be read, or output cannot be written.
    #[error("{path}: {error}")]
    File {
        /// The file.
        path: String,
        /// What is wrong.
        error: std::io::Error,
    },
    /// The trace of a video flow is wrong.
    #[error(transparent)]
    Video(#[from] crate::video::VideoError),
    /// The simulator refuses the scenario.
    #[error("the network cannot be built: {0}")]
    Network(#[from] anabranch_sim::ConfigError),
    /// The simulator, or a policy in it, is at fault.
    #[error(
        "{run}: the run panicked, which is a fault of the simulator and worth a report with the scenario: {message}"
    )]
    Panicked {
        /// The run's label.
        run: String,
        /// What the panic said.
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
    /// [`RunError`].
    pub fn run(&self) -> Result<RunResult, RunError> {
        let built = self.run_built(|| true)?;
        built.unwrap_or_else(|| unreachable!("nothing stops it")).finish(self)
    }

    /// Runs to the end, or gives up and has no result soon after `stop` is set, from whatever thread. What a run that was given up
    /// has written says so: its trace has no `result.json`, and its capture is still called `.part`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run_unless(&self, stop: &AtomicBool) -> Result<Option<RunResult>, RunError> {
        self.run_while(|| !stop.load(Ordering::Relaxed))
    }

    /// The same for any condition, which is asked in this thread after every few milliseconds of the run's own time.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn run_while(&self, goes_on: impl FnMut() -> bool) -> Result<Option<RunResult>, RunError> {
        self.run_built(goes_on)?.map(|built| built.finish(self)).transpose()
    }

    /// The network at the end of the run, unless it was given up. Where nobody looks at packets on links, these are computed ahead, and
    /// with events only if that leaves something open.
    fn run_built(&self, mut goes_on: impl FnMut() -> bool) -> Result<Option<Built>, RunError> {
        let looked_at =
            self.digest || self.pcap.is_some() || (self.trace.is_some() && !self.part.admits_ahead());
        let mut built = self.build()?;
        if !looked_at && built.world.compute_ahead() {
            match self.advance(&mut built, &mut goes_on, None) {
                RunEnd::End => return Ok(Some(built)),
                RunEnd::Stop => return Ok(None),
                RunEnd::OrderUnknown => built = self.build()?,
            }
        }
        match self.advance(&mut built, goes_on, Some(&mut Built::sample_queues)) {
            RunEnd::Stop => Ok(None),
            RunEnd::End | RunEnd::OrderUnknown => Ok(Some(built)),
        }
    }

    fn build(&self) -> Result<Built, RunError> {
        build::build(self)
    }

    /// Goes to the end of the run, and looks at it after each slice of time if that is wanted.
    fn advance(
        &self,
        built: &mut Built,
        mut goes_on: impl FnMut() -> bool,
        mut look: Option<&mut dyn FnMut(&mut Built)>,
    ) -> RunEnd {
        let end = self.end();
        let stops_early = matches!(self.scenario.run.stop, Stop::Transfer { .. });
        let slice = if stops_early || look.is_some() { SLICE } else { LONG_SLICE };
        while built.world.now() < end && !(stops_early && built.is_done()) {
            if !goes_on() {
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

    /// Finds what would keep the run from being made, by building its network without running it; writes nothing.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn check(&self) -> Result<(), RunError> {
        let unwritten = Job { pcap: None, trace: None, ..self.clone() };
        build::build(&unwritten).map(drop)
    }

    /// The scheme as results name it: that of the job, or a list of those of the flows if each of them has its own.
    pub fn scheme_name(&self) -> String {
        let own: Option<Vec<&str>> = self.scenario.flows.iter().map(|flow| flow.scheme.as_deref()).collect();
        let Some(own) = own else { return self.scheme.to_string() };
        let mut names: Vec<String> = Vec::new();
        for text in own {
            // As a scheme is written without blanks.
            let name: String = text.split_whitespace().collect();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(",")
    }

    /// The time no run goes beyond; a transfer without a cap is given up after a simulated week.
    fn end(&self) -> Time {
        let limit = self.scenario.run.limit().unwrap_or(Span::from_secs(7 * 86_400));
        Time::ZERO + self.part.until.map_or(limit, |until| until.min(limit))
    }

    /// The name that its output files share.
    pub fn label(&self) -> String {
        let safe: String = self
            .scheme_name()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "-._=+".contains(c) { c } else { '_' })
            .collect();
        format!("{safe}-seed{}", self.seed)
    }
}
