//! Description of a flow, independent of the network that carries it.

use std::sync::Arc;

use anabranch_core::protection::ENVELOPE_BYTES;
use anabranch_core::time::Span;
use anabranch_core::{
    AddressChanges, AssociationConfig, Encapsulation, PathCost, Reliability, StreamScheduler,
};
use anabranch_mapping::STREAM_SCHEDULER;
use anabranch_scenario::{FileSource, Flow, FlowKind, Forwarded, Protection, VideoFlow};
use anabranch_schemes::costs::honour_costs;
use anabranch_schemes::duplicates::duplicate_marked;
use anabranch_sim::Seeds;
use bytes::Bytes;

use crate::run::expected::Expected;
use crate::run::forwarding::streams_of;
use crate::run::mobility::changes_addresses;
use crate::run::{Job, JobScheme, RunError, TraceTable, payload};
use crate::video::VideoPlan;

/// Association of a flow, and its workload.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Scheme of the flow.
    pub scheme: JobScheme,
    /// Configuration of both ends.
    pub config: AssociationConfig,
    /// Data that each sending end hands over.
    pub workload: Workload,
    /// Set if messages are ordered within their stream.
    pub ordered: bool,
    /// Number of streams, which messages use in turn.
    pub streams: u16,
    /// Data that the other end is to receive, if it has a last byte.
    pub expected: Option<Expected>,
}

/// Data that a sending application hands over.
#[derive(Clone, Debug)]
pub enum Workload {
    /// One message, repeated without end.
    Bulk {
        /// Content of each message.
        message: Bytes,
    },
    /// One content, followed by the shutdown.
    Transfer {
        /// Content of the transfer.
        content: Bytes,
        /// User bytes of a message.
        message_bytes: usize,
    },
    /// One message at regular times.
    Messages {
        /// Content of each message.
        message: Bytes,
        /// Time between two messages.
        interval: Span,
        /// Number of messages, after which the association is shut down; `None` for no end.
        count: Option<u64>,
        /// Limit after which a message is abandoned.
        reliability: Reliability,
    },
    /// Frames of a video at their times.
    Video(Arc<VideoPlan>),
    /// Connections and datagrams of programs.
    Forward(Forwarded),
}

impl Workload {
    fn of(job: &Job, flow: &Flow, config: &AssociationConfig) -> Result<Self, RunError> {
        let generated = |size: u64| payload::random_bytes(&job.seeds(), &flow.name, size as usize);
        Ok(match &flow.kind {
            FlowKind::Bulk => Workload::Bulk { message: Bytes::from(vec![0x5A; message_bytes(job, config)]) },
            FlowKind::File(source) => {
                let content = match source {
                    FileSource::Path(path) => payload::read_file(job.files.folder(), path)?,
                    FileSource::SizeBytes(size) => generated(*size),
                };
                Workload::Transfer { content, message_bytes: message_bytes(job, config) }
            }
            FlowKind::Messages { size_bytes, interval, count, reliability, .. } => Workload::Messages {
                message: generated(*size_bytes),
                interval: *interval,
                count: *count,
                reliability: *reliability,
            },
            FlowKind::Video(video) => Workload::Video(Arc::new(video_plan(job, video, config)?)),
            FlowKind::Forward(forwarded) => Workload::Forward(*forwarded),
        })
    }

    /// Returns all data and the size of a message, if there is a last byte.
    fn content(&self) -> Option<(Bytes, usize)> {
        match self {
            Workload::Transfer { content, message_bytes } => Some((content.clone(), *message_bytes)),
            Workload::Messages { message, count: Some(count), .. } => {
                Some((Bytes::from(message.repeat(*count as usize)), message.len()))
            }
            Workload::Bulk { .. }
            | Workload::Messages { count: None, .. }
            | Workload::Video(_)
            | Workload::Forward(_) => None,
        }
    }
}

/// Returns the user bytes that a bulk flow queues for a peer with this receive buffer. Twice the buffer is never used up between
/// two calls.
pub const fn bulk_queue_bytes(recv_buffer_bytes: u64) -> u64 {
    recv_buffer_bytes * 2 + 65_536
}

impl Job {
    /// Returns a flow of the scenario by its index.
    ///
    /// # Errors
    /// Returns an error if the flow's scheme is invalid, or its file cannot be read.
    ///
    /// # Panics
    /// Panics if no flow has this index.
    pub fn flow_plan(&self, index: usize) -> Result<FlowPlan, RunError> {
        let flow = &self.scenario.flows[index];
        let scheme = scheme_of(self, flow)?;
        let config = association_config(self, flow, &scheme);
        let workload = Workload::of(self, flow, &config)?;
        let (ordered, streams) = order(self, flow);
        let content = flow.kind.ends().then(|| workload.content()).flatten();
        let in_order = ordered && streams == 1;
        let expected =
            content.map(|(content, message_bytes)| Expected::new(content, message_bytes, in_order));
        Ok(FlowPlan { scheme, config, workload, ordered, streams, expected })
    }

    /// Returns the origin of randomness of its network and of generated content.
    pub fn seeds(&self) -> Seeds {
        Seeds::new(self.seed, 0)
    }

    pub(crate) fn encapsulation(&self) -> Encapsulation {
        self.scenario.association.encapsulation
    }
}

fn scheme_of(job: &Job, flow: &Flow) -> Result<JobScheme, RunError> {
    match &flow.scheme {
        Some(text) => {
            let scheme = job.scenario.vocabulary().parse(text);
            scheme
                .map(JobScheme::from)
                .map_err(|error| RunError::Scheme { flow: flow.name.clone(), error: Box::new(error) })
        }
        None => Ok(job.scheme.clone()),
    }
}

/// Returns `true` if messages of the flow are ordered, and the number of their streams.
fn order(job: &Job, flow: &Flow) -> (bool, u16) {
    match &flow.kind {
        FlowKind::Messages { ordered, streams, .. } => (*ordered, *streams),
        FlowKind::Video(video) => (video.ordered, video.streams),
        FlowKind::Forward(forwarded) => (true, streams_of(forwarded)),
        FlowKind::Bulk | FlowKind::File(_) => {
            (job.scenario.association.ordered, job.scenario.association.streams)
        }
    }
}

fn association_config(job: &Job, flow: &Flow, scheme: &JobScheme) -> AssociationConfig {
    let scenario = &job.scenario.association;
    // Messages beside the bulk have the last stream.
    let streams = order(job, flow).1.saturating_add(u16::from(flow.beside.is_some()));
    let scheme = scheme.scheme();
    let profile = job.conventions.profile(scheme.is_multipath()).clone();
    let forwards = matches!(flow.kind, FlowKind::Forward(_));
    let scheme = if forwards { duplicate_marked(scheme) } else { scheme };
    let has_costs = flow.paths.iter().any(|path| job.scenario.paths[*path].cost != PathCost::Free);
    let scheme = if has_costs { honour_costs(scheme) } else { scheme };
    AssociationConfig {
        stream_scheduler: if forwards { STREAM_SCHEDULER } else { StreamScheduler::default() },
        recv_buffer_bytes: scenario.recv_buffer_bytes,
        send_buffer_bytes: scenario.send_buffer_bytes,
        mtu_bytes: scenario.mtu_bytes as usize,
        streams,
        address_changes: AddressChanges {
            asconf: changes_addresses(&job.scenario),
            ..AddressChanges::default()
        },
        trace: job.trace.is_some() && job.part.has(TraceTable::Decisions),
        ..AssociationConfig::new(scheme, profile)
    }
}

fn video_plan(job: &Job, video: &VideoFlow, config: &AssociationConfig) -> Result<VideoPlan, RunError> {
    let payload_bytes = video.payload_bytes.unwrap_or_else(|| largest_message_bytes(job, config) as u64);
    let path = job.files.folder().join(&video.trace);
    Ok(VideoPlan::load(&path, payload_bytes, video.deadline.as_millis_f64())?)
}

/// Returns the user bytes per message of a bulk or file flow.
fn message_bytes(job: &Job, config: &AssociationConfig) -> usize {
    let given = job.scenario.association.message_bytes.map(|bytes| bytes as usize);
    given.unwrap_or_else(|| largest_message_bytes(job, config))
}

/// Returns the user bytes of one chunk that fills a packet.
fn largest_message_bytes(job: &Job, config: &AssociationConfig) -> usize {
    (config.mtu_bytes - header_bytes(job)) / 4 * 4 - 16
}

/// Returns the bytes of IPv4, encapsulation, common header, and protection.
fn header_bytes(job: &Job) -> usize {
    let envelope = match job.scenario.association.protection {
        Protection::None => 0,
        Protection::Dtls => ENVELOPE_BYTES,
    };
    20 + job.encapsulation().header_bytes() + 12 + envelope
}
