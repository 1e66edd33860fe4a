//! Description of a flow, independent of the network that carries it.

use std::sync::Arc;

use anabranch_core::protection::ENVELOPE_BYTES;
use anabranch_core::{AssociationConfig, Encapsulation};
use anabranch_scenario::{FileSource, Flow, FlowKind, Protection, VideoFlow};
use anabranch_sim::Seeds;
use bytes::Bytes;

use crate::run::{Job, JobScheme, RunError, TraceTable, payload};
use crate::video::VideoPlan;

/// Association of a flow, and the data that it sends.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Scheme of the flow.
    pub scheme: JobScheme,
    /// Configuration of both ends.
    pub config: AssociationConfig,
    /// User bytes per message of a bulk or file flow.
    pub message_bytes: usize,
    /// Content of a flow that ends.
    pub content: Option<Bytes>,
    /// Frames of a video flow.
    pub video: Option<Arc<VideoPlan>>,
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
    /// If its scheme is invalid, or its file cannot be read.
    ///
    /// # Panics
    /// If there is no flow with this index.
    pub fn flow_plan(&self, index: usize) -> Result<FlowPlan, RunError> {
        let flow = &self.scenario.flows[index];
        let scheme = scheme_of(self, flow)?;
        let config = association_config(self, flow, &scheme);
        let message_bytes = message_bytes(self, &config);
        let video = match &flow.kind {
            FlowKind::Video(video) => Some(Arc::new(video_plan(self, video, &config)?)),
            _ => None,
        };
        Ok(FlowPlan { scheme, config, message_bytes, content: contents(self, flow)?, video })
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

fn association_config(job: &Job, flow: &Flow, scheme: &JobScheme) -> AssociationConfig {
    let scenario = &job.scenario.association;
    let streams = match flow.kind {
        FlowKind::Messages { streams, .. } => streams,
        FlowKind::Video(ref video) => video.streams,
        // The last stream belongs to the messages beside the bulk.
        _ => scenario.streams.saturating_add(u16::from(flow.beside.is_some())),
    };
    let scheme = scheme.scheme();
    let profile = job.conventions.profile(scheme.is_multipath()).clone();
    AssociationConfig {
        recv_buffer_bytes: scenario.recv_buffer_bytes,
        send_buffer_bytes: scenario.send_buffer_bytes,
        mtu_bytes: scenario.mtu_bytes as usize,
        streams,
        trace: job.trace.is_some() && job.part.has(TraceTable::Decisions),
        ..AssociationConfig::new(scheme, profile)
    }
}

fn contents(job: &Job, flow: &Flow) -> Result<Option<Bytes>, RunError> {
    Ok(match &flow.kind {
        FlowKind::File(FileSource::Path(path)) => Some(payload::read_file(&job.folder, path)?),
        FlowKind::File(FileSource::SizeBytes(size)) => {
            Some(payload::random_bytes(&job.seeds(), &flow.name, *size as usize))
        }
        FlowKind::Messages { size_bytes, count: Some(count), .. } if flow.kind.ends() => {
            let message = payload::random_bytes(&job.seeds(), &flow.name, *size_bytes as usize);
            Some(Bytes::from(message.repeat(*count as usize)))
        }
        _ => None,
    })
}

fn video_plan(job: &Job, video: &VideoFlow, config: &AssociationConfig) -> Result<VideoPlan, RunError> {
    let payload_bytes = video.payload_bytes.unwrap_or_else(|| largest_message_bytes(job, config) as u64);
    let path = job.folder.join(&video.trace);
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
