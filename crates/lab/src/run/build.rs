//! Conversion of a scenario into a world, and of a finished world into metrics.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use anabranch_core::time::{Span, Time};
use anabranch_core::{AcceptFrom, Association, AssociationConfig, Endpoint, EndpointConfig, PathCost};
use anabranch_sim::{HostId, SctpHost, World};
use anabranch_wire::StreamId;

use crate::run::address::address;
use crate::run::application::{Connect, End, Progress, Source, Status};
use crate::run::beside::{Arrivals, BesideSource};
use crate::run::capture::Capture;
use crate::run::cross;
use crate::run::expected::Expected;
use crate::run::forwarding::{Programs, Role};
use crate::run::keys::{Keys, offers};
use crate::run::manifest;
use crate::run::mobility::{self, Moves};
use crate::run::network::{Network, lay};
use crate::run::observer::{DelayCount, DirectionCount, Observer};
use crate::run::plan::{FlowPlan, Workload, bulk_queue_bytes};
use crate::run::recorder::{PacketRecorder, PathRecorder, QueueRecorder};
use crate::run::video::{VideoOutcome, VideoSink, VideoSource, table_names};
use crate::run::{
    AbandonedResult, ConnectionResult, FlowResult, Job, JobScheme, MessageDelays, PathResult, RunError,
    RunResult, TraceTable,
};
use crate::statistics::jain_index;
use anabranch_scenario::{Directions, Flow, FlowKind, Protection, Scenario};
use anabranch_trace::{Manifest, Sender};

/// SCTP ports of the two ends. The choice is arbitrary.
const LEFT_PORT: u16 = 5001;
const RIGHT_PORT: u16 = 5002;

#[derive(Clone)]
struct BuiltFlow {
    scheme: JobScheme,
    ends: [HostId; 2],
    start: Time,
    recorders: Vec<Rc<RefCell<PathRecorder>>>,
    /// Description of the recorded ends for the trace folder.
    senders: Vec<Sender>,
}

/// A world that is ready to run.
pub(crate) struct BuiltWorld {
    pub(crate) world: World,
    flows: Vec<BuiltFlow>,
    queues: Option<QueueRecorder>,
    manifest: Option<Manifest>,
}

pub(crate) fn build(job: &Job) -> Result<BuiltWorld, RunError> {
    let mut world = World::new(job.seeds());
    if job.digest {
        world.enable_digest();
    }
    let network = lay(&mut world, &job.scenario, job.conventions.in_service_counts, &job.files)?;
    cross::add(&mut world, job, &network.cross)?;
    let mut flows = Vec::new();
    for index in 0..job.scenario.flows.len() {
        flows.push(add_flow(&mut world, job, index, &network)?);
    }
    let ends: Vec<[HostId; 2]> = flows.iter().map(|flow| flow.ends).collect();
    mobility::add(&mut world, &job.scenario, &network.own, &ends)?;
    world.set_tap(Box::new(observer(job)?));
    let queues =
        folder_of(job, TraceTable::Queues).map(|folder| QueueRecorder::create(&folder)).transpose()?;
    let manifest = open_manifest(job, &flows)?;
    Ok(BuiltWorld { world, flows, queues, manifest })
}

/// Returns the folder of this run's traces, if it has any.
fn trace_folder(job: &Job) -> Option<PathBuf> {
    job.trace.as_ref().map(|folder| folder.join(job.label()))
}

/// Returns the same folder, if this table is requested.
fn folder_of(job: &Job, table: TraceTable) -> Option<PathBuf> {
    trace_folder(job).filter(|_| job.part.has(table))
}

/// Writes the description of the run into the trace folder before the run begins.
fn open_manifest(job: &Job, flows: &[BuiltFlow]) -> Result<Option<Manifest>, RunError> {
    let Some(folder) = trace_folder(job) else { return Ok(None) };
    // Tables create the folder only if any are requested.
    std::fs::create_dir_all(&folder)
        .map_err(|error| RunError::File { path: folder.display().to_string(), error })?;
    let senders = flows.iter().flat_map(|flow| flow.senders.clone()).collect();
    let manifest = manifest::of(job, senders);
    manifest::write(&manifest, job, &folder)?;
    Ok(Some(manifest))
}

fn observer(job: &Job) -> Result<Observer, RunError> {
    let scenario = &job.scenario;
    let paths = scenario.paths.len();
    let names: Vec<String> = scenario.paths.iter().map(|p| p.name.clone()).collect();
    let flows: Vec<String> = scenario.flows.iter().map(|f| f.name.clone()).collect();
    let packets = match folder_of(job, TraceTable::Packets) {
        Some(folder) => Some(PacketRecorder::create(&folder, flows, names)?),
        None => None,
    };
    Ok(Observer {
        flows: scenario.flows.iter().map(|flow| direction_counts(scenario, flow, paths)).collect(),
        counted_from: counted_from(job),
        capture: Capture::create(job)?,
        packets,
    })
}

fn direction_counts(scenario: &Scenario, flow: &Flow, paths: usize) -> [DirectionCount; 2] {
    [0, 1].map(|_| {
        let mut count = DirectionCount::new(paths);
        if scenario.run.delays {
            count.delays.resize_with(paths, DelayCount::default);
        }
        count.beside =
            flow.beside.map(|_| (StreamId::new(scenario.association.streams), Arrivals::default()));
        count
    })
}

pub(crate) fn counted_from(job: &Job) -> Time {
    Time::ZERO + job.scenario.run.start + job.scenario.run.warmup
}

fn add_flow(world: &mut World, job: &Job, index: usize, network: &Network) -> Result<BuiltFlow, RunError> {
    let flow = &job.scenario.flows[index];
    let plan = job.flow_plan(index)?;
    let FlowPlan { scheme, config, workload, expected, .. } = &plan;
    let start = Time::ZERO + flow.start;
    let mut ends = [end(job, flow, &plan, start), end(job, flow, &plan, start)];
    ends[0].connect = Some(Connect {
        pairs: flow.paths.iter().map(|&p| (address(index, p, 0), address(index, p, 1))).collect(),
        port: RIGHT_PORT,
        config: configured(job, config, 0),
    });
    let sends = match flow.direction {
        Directions::Forward => [true, false],
        Directions::Reverse => [false, true],
        Directions::Both => [true, true],
    };
    // Both ends of a connection send.
    let sends = if matches!(flow.kind, FlowKind::Forward(_)) { [true, true] } else { sends };
    for side in 0..2 {
        ends[side].moves = Moves::new(&job.scenario, job.seeds(), index, side);
        let cost = |path: &usize| (address(index, *path, side), job.scenario.paths[*path].cost);
        ends[side].costs = flow.paths.iter().map(cost).filter(|(_, cost)| *cost != PathCost::Free).collect();
        if sends[side] {
            ends[side].source = Some(source(job, flow, &plan, side));
            if let Some(messages) = flow.beside {
                let stream = job.scenario.association.streams;
                ends[side].beside = Some(BesideSource::new(messages, stream));
                ends[1 - side].received.beside = Some((stream, Arrivals::default()));
            }
            ends[1 - side].expected.clone_from(expected);
            if let Workload::Video(video) = workload {
                ends[1 - side].video = Some(VideoSink::new(Arc::clone(video)));
            }
        }
    }
    let senders = senders(job, flow, config, scheme, sends);
    let recorders = add_recorders(job, &senders, &mut ends)?;
    let ids = add_hosts(world, job, index, config.clone(), ends)?;
    network.route(world, index, flow)?;
    Ok(BuiltFlow { scheme: scheme.clone(), ends: ids, start, recorders, senders })
}

/// Returns the configuration of one end. The left end opens the association.
fn configured(job: &Job, config: &AssociationConfig, side: usize) -> AssociationConfig {
    let protection = match job.scenario.association.protection {
        Protection::None => None,
        Protection::Dtls => offers().into_iter().nth(side),
    };
    AssociationConfig { protection, ..config.clone() }
}

fn end(job: &Job, flow: &Flow, plan: &FlowPlan, start: Time) -> End {
    let mut end = End::new(start, counted_from(job));
    end.keys = (job.scenario.association.protection == Protection::Dtls).then(Keys::default);
    end.reader = flow.read_rate;
    end.ordered = plan.ordered;
    end.streams = plan.streams;
    end
}

/// Returns the ends of a flow that send data, as its trace names them.
fn senders(
    job: &Job,
    flow: &Flow,
    config: &AssociationConfig,
    scheme: &JobScheme,
    sends: [bool; 2],
) -> Vec<Sender> {
    let ends = [("forward", ""), ("reverse", "-reverse")].into_iter().zip(sends).filter(|(_, sends)| *sends);
    let sender = |((direction, suffix), _): ((&str, &str), bool)| Sender {
        name: format!("{}{suffix}", flow.name),
        flow: flow.name.clone(),
        direction: direction.to_owned(),
        scheme: scheme.to_string(),
        paths: flow.paths.iter().map(|&p| job.scenario.paths[p].name.clone()).collect(),
        addresses: Vec::new(),
        start_s: flow.start.as_secs_f64(),
        end_s: None,
        lost_counts_until_resent: config.profile.lost_counts_until_resent,
    };
    ends.map(sender).collect()
}

fn add_recorders(
    job: &Job,
    senders: &[Sender],
    ends: &mut [End; 2],
) -> Result<Vec<Rc<RefCell<PathRecorder>>>, RunError> {
    let wanted = job.part.has(TraceTable::Paths) || job.part.has(TraceTable::Decisions);
    let Some(folder) = trace_folder(job).filter(|_| wanted) else { return Ok(Vec::new()) };
    let mut recorders = Vec::new();
    let sending = ends.iter_mut().filter(|end| end.source.is_some());
    for (sender, end) in senders.iter().zip(sending) {
        let names = job.scenario.paths.iter().map(|path| path.name.clone()).collect();
        let recorder = PathRecorder::create(&folder, sender, names, &job.part)?;
        let shared = Rc::new(RefCell::new(recorder));
        end.recorder = Some(Rc::clone(&shared));
        recorders.push(shared);
    }
    Ok(recorders)
}

fn source(job: &Job, flow: &Flow, plan: &FlowPlan, side: usize) -> Source {
    match &plan.workload {
        Workload::Bulk { message } => Source::Bulk {
            message: message.clone(),
            keep_bytes: bulk_queue_bytes(plan.config.recv_buffer_bytes),
        },
        Workload::Transfer { content, message_bytes } => {
            Source::Transfer(Progress { content: content.clone(), message_bytes: *message_bytes, sent: 0 })
        }
        Workload::Messages { message, interval, count, reliability } => Source::Messages {
            message: message.clone(),
            interval: *interval,
            left: *count,
            next: None,
            reliability: *reliability,
        },
        Workload::Video(video) => {
            let FlowKind::Video(settings) = &flow.kind else {
                unreachable!("a video is sent by video flows")
            };
            Source::Video(VideoSource::new(Arc::clone(video), settings, &job.seeds(), &flow.name))
        }
        Workload::Forward(forwarded) => {
            let role = [Role::Forwarder, Role::Gateway][side];
            let keep_bytes = bulk_queue_bytes(plan.config.recv_buffer_bytes);
            Source::Forward(Programs::new(role, forwarded, keep_bytes))
        }
    }
}

fn add_hosts(
    world: &mut World,
    job: &Job,
    index: usize,
    config: AssociationConfig,
    ends: [End; 2],
) -> Result<[HostId; 2], RunError> {
    let flow = &job.scenario.flows[index];
    let mut ids = Vec::new();
    let ends_look_at_content = ends.iter().any(End::needs_content);
    for (side, end) in ends.into_iter().enumerate() {
        let addresses: Vec<_> = flow.paths.iter().map(|&p| address(index, p, side)).collect();
        let endpoint_config = EndpointConfig {
            port: if side == 0 { LEFT_PORT } else { RIGHT_PORT },
            addresses: addresses.clone(),
            encapsulation: job.encapsulation(),
            accept: (side == 1).then(|| configured(job, &config, side)),
            accept_from: AcceptFrom::Everyone,
            max_associations: 1,
            guard: None,
        };
        let entropy = world.seeds().entropy(&["endpoint", &flow.name, ["left", "right"][side]]);
        let endpoint = Endpoint::new(Time::ZERO, endpoint_config, entropy);
        // Links of scenarios never change bytes.
        let read = job.digest || job.pcap.is_some();
        let endpoint = if read { endpoint } else { endpoint.without_checksums() };
        let endpoint = match read || ends_look_at_content {
            true => endpoint,
            false => endpoint.without_contents().with_described_packets(),
        };
        let host = SctpHost::new(endpoint, job.encapsulation(), end);
        ids.push(world.add_host(Box::new(host), &addresses)?);
    }
    Ok([ids[0], ids[1]])
}

impl BuiltWorld {
    pub(crate) fn sample_queues(&mut self) {
        let Some(queues) = &mut self.queues else { return };
        let now = self.world.now();
        for (_, link) in self.world.links() {
            queues.sample(now, link.name(), link.waiting_packets(), link.waiting_bytes().get());
        }
    }

    /// Returns the progress of the transfer of a network with one flow that only one end sends, once it is associated.
    pub(crate) fn transfer(&self) -> Option<(&Progress, &Association)> {
        let [flow] = &self.flows[..] else { return None };
        let hosts = flow.ends.map(|id| self.world.host::<SctpHost<End>>(id));
        let mut sending = hosts.into_iter().filter(|host| host.application.source.is_some());
        let (Some(host), None) = (sending.next(), sending.next()) else { return None };
        let Some(Source::Transfer(progress)) = &host.application.source else { return None };
        Some((progress, host.endpoint.association(host.application.id?)?))
    }

    /// Returns a copy whose only transfer has this length, if the network can be copied and nothing later was sent.
    pub(crate) fn copied_with(&self, bytes: u64) -> Option<BuiltWorld> {
        if self.queues.is_some() || self.manifest.is_some() {
            return None;
        }
        let mut world = self.world.copied()?;
        for flow in &self.flows {
            for id in flow.ends {
                let host = world.host_mut::<SctpHost<End>>(id);
                if !host.application.shorten(&mut host.endpoint, bytes) {
                    return None;
                }
            }
        }
        Some(BuiltWorld { world, flows: self.flows.clone(), queues: None, manifest: None })
    }

    fn end(&self, flow: usize, side: usize) -> &End {
        &self.world.host::<SctpHost<End>>(self.flows[flow].ends[side]).application
    }

    /// Returns the associations of the ends that send, each with the index of its flow.
    pub(crate) fn senders(&self) -> impl Iterator<Item = (usize, Option<&Association>)> {
        (0..self.flows.len()).flat_map(move |flow| {
            let hosts = self.flows[flow].ends.map(|id| self.world.host::<SctpHost<End>>(id));
            let sending = hosts.into_iter().filter(|host| host.application.source.is_some());
            sending.map(move |host| (flow, host.application.id.and_then(|id| host.endpoint.association(id))))
        })
    }

    /// Returns `true` if every transfer has arrived or failed.
    pub(crate) fn is_done(&self) -> bool {
        (0..self.flows.len()).all(|flow| {
            (0..2).all(|side| self.end(flow, side).has_all())
                || (0..2).any(|side| matches!(self.end(flow, side).status, Status::Failed(_)))
        })
    }

    pub(crate) fn finish(mut self, job: &Job) -> Result<RunResult, RunError> {
        let observer = self.world.take_tap::<Observer>();
        self.close_files()?;
        let Some(mut observer) = observer else {
            unreachable!("the observer was set when the world was built")
        };
        Self::close_observer(&mut observer)?;
        let result = self.result(job, &observer);
        if let (Some(manifest), Some(folder)) = (&self.manifest, trace_folder(job)) {
            let tables = self.write_videos(job, &folder)?;
            manifest::close(manifest, &folder, self.world.now().as_secs_f64(), &tables, &job.part, &result)?;
        }
        Ok(result)
    }

    /// Writes the tables of video flows, and returns their names.
    fn write_videos(&self, job: &Job, folder: &Path) -> Result<Vec<String>, RunError> {
        let mut names = Vec::new();
        for (index, flow) in job.scenario.flows.iter().enumerate() {
            if let Some(outcome) = self.video_outcome(index) {
                outcome.write(folder, &flow.name)?;
                names.extend(table_names(&flow.name));
            }
        }
        Ok(names)
    }

    /// Returns the outcome of a video flow's frames.
    fn video_outcome(&self, flow: usize) -> Option<VideoOutcome<'_>> {
        let ends = [self.end(flow, 0), self.end(flow, 1)];
        let clock = ends.iter().find_map(|end| match &end.source {
            Some(Source::Video(video)) => video.clock(),
            _ => None,
        });
        let sink = ends.into_iter().find_map(|end| end.video.as_ref())?;
        Some(sink.outcome(clock.unwrap_or(self.flows[flow].start), self.world.now()))
    }

    /// Returns the messages that the senders of a flow abandoned, if the flow has a limit.
    fn abandoned(&self, job: &Job, flow: usize) -> Option<AbandonedResult> {
        let has_limit = job.scenario.flows[flow].kind.has_limit();
        let mut found = has_limit.then(AbandonedResult::default)?;
        let senders = self.senders().filter(|(index, _)| *index == flow);
        for statistics in senders.filter_map(|(_, association)| association).map(Association::statistics) {
            let all = statistics.abandoned;
            found.messages += all.messages();
            let causes = [all.by_retransmissions, all.by_lifetime, all.by_priority, all.by_streams];
            found.unsent += causes.iter().map(|cause| cause.unsent).sum::<u64>();
            found.by_retransmissions += all.by_retransmissions.total();
            found.by_lifetime += all.by_lifetime.total();
            found.by_priority += all.by_priority.total();
            found.by_streams += all.by_streams.total();
            found.bytes += all.bytes;
            found.forward_tsns += statistics.forward_tsns_sent;
        }
        Some(found)
    }

    fn close_files(&mut self) -> Result<(), RunError> {
        for flow in &self.flows {
            for recorder in &flow.recorders {
                recorder.borrow_mut().finish()?;
            }
        }
        match &mut self.queues {
            Some(queues) => Ok(queues.finish()?),
            None => Ok(()),
        }
    }

    fn close_observer(observer: &mut Observer) -> Result<(), RunError> {
        if let Some(packets) = &mut observer.packets {
            packets.finish()?;
        }
        observer.capture.take().map_or(Ok(()), Capture::finish)
    }

    fn result(&self, job: &Job, observer: &Observer) -> RunResult {
        let until = self.measured_until(job);
        let duration = until.since(counted_from(job));
        let flows: Vec<FlowResult> =
            (0..self.flows.len()).map(|f| self.flow_result(job, f, duration, &observer.flows[f])).collect();
        let mut total = RunResult {
            scheme: job.scheme_name(),
            seed: job.seed,
            label: job.label(),
            profile: job.scenario.run.profile.clone(),
            goodput_kbps: crate::statistics::total(flows.iter().map(|f| f.goodput_kbps)),
            goodput_counts: job.conventions.goodput,
            duration_s: duration.as_secs_f64(),
            retransmissions: 0,
            timeouts: 0,
            heartbeat_timeouts: 0,
            overruled_picks: 0,
            fast_retransmits: 0,
            spurious_retransmissions: 0,
            peak_reorder_bytes: 0,
            rwnd_blocked_s: 0.0,
            paths: path_results(job, observer),
            jain_index: jain_index(flows.iter().map(|f| f.goodput_kbps)).filter(|_| flows.len() > 1),
            failure: flows.iter().find_map(FlowResult::fault),
            flows,
            digest: self.world.digest().map(hex),
        };
        for count in observer.flows.iter().flatten() {
            total.retransmissions += count.retransmissions;
            total.spurious_retransmissions += count.spurious;
        }
        self.add_statistics(&mut total);
        total
    }

    /// Returns the end of the measurement: the end of the run, or the last byte of the last transfer.
    fn measured_until(&self, job: &Job) -> Time {
        let transfer =
            matches!(job.scenario.run.stop, anabranch_scenario::Stop::Transfer { .. }) && self.is_done();
        let last = (0..self.flows.len())
            .flat_map(|f| [0, 1].map(|side| self.end(f, side)))
            .filter(|end| end.expected.is_some())
            .filter_map(|end| end.received.last_at)
            .max();
        last.filter(|_| transfer).unwrap_or_else(|| self.world.now())
    }

    fn add_statistics(&self, total: &mut RunResult) {
        for flow in &self.flows {
            for id in flow.ends {
                let host = self.world.host::<SctpHost<End>>(id);
                let Some(association) = host.application.id.and_then(|id| host.endpoint.association(id))
                else {
                    continue;
                };
                let statistics = association.statistics();
                total.peak_reorder_bytes = total.peak_reorder_bytes.max(statistics.peak_held_bytes);
                // An end that sends no data has only HEARTBEATs, which are irrelevant to the transfer.
                if host.application.source.is_none() {
                    continue;
                }
                total.timeouts += statistics.timeouts;
                total.heartbeat_timeouts += statistics.heartbeat_timeouts;
                total.overruled_picks += statistics.overruled_picks;
                total.fast_retransmits += statistics.fast_retransmit_events;
                total.rwnd_blocked_s += statistics.blocked_by_peer_window_ns as f64 / 1e9;
            }
        }
    }

    fn flow_result(
        &self,
        job: &Job,
        index: usize,
        duration: Span,
        counts: &[DirectionCount; 2],
    ) -> FlowResult {
        let flow = &self.flows[index];
        let ends = [self.end(index, 0), self.end(index, 1)];
        let counted: u64 = match job.conventions.goodput {
            crate::conventions::Goodput::Delivered => ends.iter().map(|e| e.received.counted_bytes).sum(),
            crate::conventions::Goodput::ChunkArrivals => counts.iter().map(|c| c.unique_chunk_bytes).sum(),
        };
        let transfers: Vec<(&End, &Expected)> =
            ends.iter().filter_map(|end| end.expected.as_ref().map(|expected| (*end, expected))).collect();
        let complete = !transfers.is_empty() && transfers.iter().all(|(_, expected)| expected.is_complete());
        let last = transfers.iter().filter_map(|(end, _)| end.received.last_at).max();
        let intact = || transfers.iter().all(|(_, expected)| expected.matches());
        let failure = ends.iter().find_map(|e| match e.status {
            Status::Failed(reason) => Some(reason.to_string()),
            _ => None,
        });
        FlowResult {
            name: job.scenario.flows[index].name.clone(),
            scheme: flow.scheme.to_string(),
            goodput_kbps: counted as f64 * 8.0 / 1000.0 / duration.as_secs_f64().max(1e-9),
            delivered_bytes: ends.iter().map(|e| e.received.bytes).sum(),
            transfer_s: last.filter(|_| complete).map(|at| at.since(flow.start).as_secs_f64()),
            intact: (!transfers.is_empty()).then(intact),
            sha256: transfers.first().map(|(_, expected)| hex(expected.sha256())),
            failure,
            message_delays: self.message_delays(job, index, counts),
            connections: self.connections(job, index, duration),
            abandoned: self.abandoned(job, index),
            video: self.video_outcome(index).map(|outcome| outcome.result),
        }
    }

    /// Returns the results of the connections of a forward flow.
    fn connections(&self, job: &Job, index: usize, duration: Span) -> Vec<ConnectionResult> {
        let programs = |side| match &self.end(index, side).source {
            Some(Source::Forward(programs)) => Some(programs),
            _ => None,
        };
        let (Some(forwarder), Some(gateway)) = (programs(0), programs(1)) else { return Vec::new() };
        forwarder.results(gateway, counted_from(job), self.world.now(), duration)
    }

    /// Returns the delays of messages beside the bulk. If both ends send such messages, returns those of the left end.
    fn message_delays(&self, job: &Job, index: usize, counts: &[DirectionCount; 2]) -> Option<MessageDelays> {
        let (side, source) =
            [0, 1].into_iter().find_map(|side| Some((side, self.end(index, side).beside.as_ref()?)))?;
        let (_, left) = counts[side].beside.as_ref()?;
        let (_, arrived) = self.end(index, 1 - side).received.beside.as_ref()?;
        Some(source.delays(counted_from(job), self.world.now(), left, arrived))
    }
}

fn path_results(job: &Job, observer: &Observer) -> Vec<PathResult> {
    let mut paths: Vec<PathResult> = job
        .scenario
        .paths
        .iter()
        .map(|p| PathResult {
            name: p.name.clone(),
            data_packets: 0,
            bytes: 0,
            drops: 0,
            sent_packets: 0,
            share: 0.0,
            delay_ms: None,
        })
        .collect();
    for (path, result) in paths.iter_mut().enumerate() {
        result.delay_ms = mean_delay_ms(observer, path);
    }
    for count in observer.flows.iter().flatten() {
        for (path, counted) in paths.iter_mut().zip(&count.paths) {
            path.data_packets += counted.arrived_packets;
            path.bytes += counted.arrived_bytes;
            path.drops += counted.drops;
            path.sent_packets += counted.sent_packets;
        }
    }
    let arrived: u64 = paths.iter().map(|path| path.data_packets).sum();
    for path in &mut paths {
        path.share = path.data_packets as f64 / arrived.max(1) as f64;
    }
    paths
}

fn mean_delay_ms(observer: &Observer, path: usize) -> Option<f64> {
    let counts = || observer.flows.iter().flatten().filter_map(|count| count.delays.get(path));
    let packets: u64 = counts().map(|delays| delays.packets).sum();
    let sum_ms: f64 = counts().map(|delays| delays.sum.as_secs_f64() * 1000.0).sum();
    (packets > 0).then(|| sum_ms / packets as f64)
}

fn hex(bytes: [u8; 32]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
