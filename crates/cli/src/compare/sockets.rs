//! A run of a scenario on sockets: two endpoints for each flow, and a relay for each of its paths, on loopback addresses.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anabranch_core::ListedAddresses;
use anabranch_core::profile::Profile;
use anabranch_core::time::Span;
use anabranch_lab::run::{DeliveryFault, Expected, FlowPlan, Job, flow_failure, path_lanes};
use anabranch_lab::statistics::total;
use anabranch_net::{Association, Endpoint, PathAddress, Peer, Protection, Snapshot};
use anabranch_relay::{Direction, Relay, RelayConfig};
use anabranch_scenario::{Directions, Stop};
use anyhow::Context;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::application::{Inbox, send};
use super::measured::{FlowMeasured, Measured, PathSums, SenderPathFigures};
use crate::relay::plan;

/// Time between two samples of round-trip times, and between two checks for the end of the run.
const LOOK: Duration = Duration::from_millis(100);

/// Second bytes of the addresses of near hosts, of relays, of far hosts, and of the relays as far hosts observe them. Third bytes
/// are flows, fourth bytes are paths.
const NEAR: u8 = 81;
const BETWEEN: u8 = 82;
const FAR: u8 = 83;
const SEEN: u8 = 84;

fn address(net: u8, flow: usize, position: usize) -> SocketAddr {
    SocketAddr::from(([127, net, flow as u8, position as u8 + 1], 0))
}

#[derive(Clone, Copy)]
struct Times {
    began: Instant,
    counted_from: Instant,
    limit: Option<Instant>,
}

impl Times {
    fn now(job: &Job) -> Self {
        let began = Instant::now();
        let run = &job.scenario.run;
        Times {
            began,
            counted_from: began + duration(run.start) + duration(run.warmup),
            limit: run.limit().map(|limit| began + duration(limit)),
        }
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

struct Running {
    index: usize,
    relays: Vec<Relay>,
    /// Inboxes of the near and of the far end.
    inboxes: Arc<[Inbox; 2]>,
    started: Instant,
    ended: JoinHandle<Finished>,
}

/// Results of a flow.
#[derive(Default)]
struct Finished {
    /// Ends that send.
    senders: Vec<Sender>,
    failure: Option<String>,
}

struct Sender {
    side: usize,
    last: Snapshot,
    /// Sum and number of samples of the smoothed round-trip time, by the last byte of the local address.
    srtt_ms: [(f64, u32); 8],
}

/// Runs a job on sockets, in real time. Returns `None` if it was stopped.
pub(super) async fn run(
    job: &Job,
    stop: &AtomicBool,
    tick: impl Fn(Duration),
) -> anyhow::Result<Option<Measured>> {
    let (over, is_over) = watch::channel(false);
    let times = Times::now(job);
    let flows = (0..job.scenario.flows.len())
        .map(|flow| start(job, flow, times, is_over.clone()))
        .collect::<anyhow::Result<Vec<Running>>>()?;
    let transfer = matches!(job.scenario.run.stop, Stop::Transfer { .. });
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        tokio::select! {
            _ = look.tick() => {}
            () = until(times.limit) => break,
        }
        tick(times.began.elapsed());
        if stop.load(Ordering::SeqCst) {
            return Ok(None);
        }
        if transfer && flows.iter().all(Running::is_done) {
            break;
        }
    }
    let until = flows.iter().filter_map(Running::last_at).max().filter(|_| transfer);
    let until = until.unwrap_or_else(Instant::now);
    // There is no receiver if all flows have ended.
    let _ = over.send(true);
    measure(job, times, until, flows).await.map(Some)
}

async fn until(limit: Option<Instant>) {
    match limit {
        Some(limit) => sleep_until(limit).await,
        None => std::future::pending().await,
    }
}

fn start(job: &Job, index: usize, times: Times, over: watch::Receiver<bool>) -> anyhow::Result<Running> {
    let flow = &job.scenario.flows[index];
    let mut plan = job.flow_plan(index)?;
    // Addresses that peers list would bypass the relays.
    plan.config.listed_addresses = ListedAddresses::Ignore;
    // The timers of the driver differ from those of the simulator, independently of the profile.
    plan.config.profile.pacing_timer = Profile::net().pacing_timer;
    let endpoint = |net| {
        (0..flow.paths.len()).fold(Endpoint::builder(Protection::Insecure), |endpoint, path| {
            endpoint.local(address(net, index, path))
        })
    };
    let far = endpoint(FAR).accept(plan.config.clone().into()).bind()?;
    let near = endpoint(NEAR).bind()?;
    let relays = flow.paths.iter().zip(far.local_addresses()).enumerate();
    let relays = relays
        .map(|(position, (&path, &to))| relay(job, index, (path, position), to))
        .collect::<anyhow::Result<Vec<Relay>>>()?;
    let locals = near.local_addresses().iter().map(SocketAddr::ip);
    let routes = locals.zip(&relays).map(|(local, relay)| PathAddress::over_udp(local, relay.local_addr()));
    let peer = Peer::new(routes.collect::<Vec<_>>()).sctp_port(far.sctp_port());
    let sends = match flow.direction {
        Directions::Forward => [true, false],
        Directions::Reverse => [false, true],
        Directions::Both => [true, true],
    };
    let expected = [sends[1], sends[0]].map(|arrives| plan.expected.clone().filter(|_| arrives));
    let inboxes = Arc::new(expected.map(Inbox::new));
    let started = times.began + duration(flow.start);
    let end = FlowEndpoints { near, far, peer, plan, sends, inboxes: Arc::clone(&inboxes), over };
    let ended = tokio::spawn(end.run(started, times.counted_from));
    Ok(Running { index, relays, inboxes, started, ended })
}

fn relay(job: &Job, flow: usize, (path, position): (usize, usize), to: SocketAddr) -> anyhow::Result<Relay> {
    let lanes = path_lanes(&job.scenario, &job.conventions, &job.files, path)?;
    let mut config = plan::config(address(BETWEEN, flow, position), to, lanes);
    config.from = Some(address(SEEN, flow, 0).ip());
    // Links of the simulator carry any size.
    config.mtu_bytes = RelayConfig::ANY_SIZE;
    config.source.clone_from(&job.scenario.flows[flow].name);
    config.seeds = job.seeds();
    Relay::start(config).with_context(|| format!("path `{}`", job.scenario.paths[path].name))
}

/// Both ends of a flow.
struct FlowEndpoints {
    near: Endpoint,
    far: Endpoint,
    peer: Peer,
    plan: FlowPlan,
    sends: [bool; 2],
    inboxes: Arc<[Inbox; 2]>,
    over: watch::Receiver<bool>,
}

impl FlowEndpoints {
    async fn run(mut self, started: Instant, counted_from: Instant) -> Finished {
        let mut over = self.over.clone();
        sleep_until(started).await;
        let connecting = self.connect();
        let both = tokio::select! {
            both = connecting => both,
            _ = over.wait_for(|over| *over) => Err("not connected at the end of the run".to_owned()),
        };
        let both = match both {
            Ok(both) => both,
            Err(failure) => return Finished { failure: Some(failure), ..Finished::default() },
        };
        let mut sums = [[(0.0, 0); 8]; 2];
        let failure = tokio::select! {
            failure = self.exchange(&both, counted_from) => failure,
            () = sample(&both, self.sends, counted_from, &mut sums) => None,
            _ = over.wait_for(|over| *over) => None,
        };
        let mut finished = Finished { failure, ..Finished::default() };
        for side in (0..2).filter(|side| self.sends[*side]) {
            let last = both[side].snapshot().await;
            finished.senders.push(Sender { side, last, srtt_ms: sums[side] });
        }
        // A flow that has ended early waits for the others.
        let _ = self.over.wait_for(|over| *over).await;
        finished
    }

    async fn connect(&self) -> Result<[Association; 2], String> {
        let connect = self.near.connect(self.peer.clone(), self.plan.config.clone().into());
        let accept = async { self.far.accept().await.map_err(|error| error.to_string()) };
        let (near, far) =
            tokio::try_join!(async { connect.await.map_err(|error| error.to_string()) }, accept)?;
        Ok([near, far])
    }

    /// Sends and receives until both ends have finished. Returns the first failure, if there was one.
    async fn exchange(&self, both: &[Association; 2], counted_from: Instant) -> Option<String> {
        let sending = async |side: usize| {
            if !self.sends[side] {
                return Ok(());
            }
            send(&self.plan, &both[side]).await.map_err(|error| error.to_string())
        };
        let receiving = async |side: usize| {
            self.inboxes[side].fill(&both[side], counted_from).await.map_err(|error| error.to_string())
        };
        tokio::try_join!(sending(0), sending(1), receiving(0), receiving(1)).err()
    }
}

/// Adds up the round-trip times of the ends that send, until the future is dropped.
async fn sample(both: &[Association; 2], sends: [bool; 2], from: Instant, sums: &mut [[(f64, u32); 8]; 2]) {
    sleep_until(from).await;
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        look.tick().await;
        for side in (0..2).filter(|side| sends[*side]) {
            for path in both[side].paths().await {
                let Some((srtt, sum)) =
                    path.srtt.zip(position(path.local).and_then(|at| sums[side].get_mut(at)))
                else {
                    continue;
                };
                *sum = (sum.0 + srtt.as_secs_f64() * 1e3, sum.1 + 1);
            }
        }
    }
}

/// Returns the index of the path to which a local address belongs.
fn position(address: IpAddr) -> Option<usize> {
    match address {
        IpAddr::V4(address) => usize::from(address.octets()[3]).checked_sub(1),
        IpAddr::V6(_) => None,
    }
}

impl Running {
    /// Returns `true` if the flow has a last byte.
    fn is_transfer(&self) -> bool {
        self.inboxes.iter().any(|inbox| inbox.lock().expected.is_some())
    }

    /// Returns `true` once both ends have all that they are to receive.
    fn is_done(&self) -> bool {
        self.inboxes.iter().all(|inbox| inbox.lock().expected.as_ref().is_none_or(Expected::is_complete))
    }

    /// Returns the time of the last byte of a transfer so far.
    fn last_at(&self) -> Option<Instant> {
        let last = |inbox: &Inbox| {
            let received = inbox.lock();
            received.last_at.filter(|_| received.expected.is_some())
        };
        self.inboxes.iter().filter_map(last).max()
    }

    /// Returns the fault of the delivered data.
    fn damage(&self) -> Option<DeliveryFault> {
        self.inboxes.iter().find_map(|inbox| inbox.lock().expected.as_ref().and_then(Expected::fault))
    }
}

async fn measure(job: &Job, times: Times, until: Instant, flows: Vec<Running>) -> anyhow::Result<Measured> {
    let mut measured = Measured::default();
    let mut sums = PathSums::default();
    let (mut late_ms, mut sent) = (0.0, 0);
    let seconds = until.saturating_duration_since(times.counted_from).as_secs_f64().max(1e-9);
    for mut running in flows {
        let finished = (&mut running.ended).await.context("a flow's task ended unexpectedly")?;
        let flow = &job.scenario.flows[running.index];
        let bytes: u64 = running.inboxes.iter().map(|inbox| inbox.lock().counted_bytes).sum();
        let done = running.is_transfer() && running.is_done();
        let transfer_s = running.last_at().filter(|_| done);
        measured.flows.push(FlowMeasured {
            name: flow.name.clone(),
            goodput_kbps: bytes as f64 * 8e-3 / seconds,
            transfer_s: transfer_s.map(|at| at.saturating_duration_since(running.started).as_secs_f64()),
        });
        let failure =
            finished.failure.filter(|_| !done).or_else(|| running.damage().map(|fault| fault.to_string()));
        measured.failures.extend(failure.map(|failure| flow_failure(&flow.name, &failure)));
        for sender in &finished.senders {
            measured.retransmissions += sender.last.statistics.retransmissions;
            measured.timeouts += sender.last.statistics.timeouts;
            add_paths(job, running.index, sender, &mut sums);
        }
        for (relay, &path) in running.relays.iter().zip(&flow.paths) {
            for totals in Direction::BOTH.map(|direction| relay.totals(direction)) {
                sums.packets(path).into_iter().for_each(|packets| packets.add_relay(&totals));
                late_ms += totals.lateness.mean().as_millis_f64() * totals.delivered.packets as f64;
                sent += totals.delivered.packets;
            }
        }
    }
    measured.goodput_kbps = total(measured.flows.iter().map(|flow| flow.goodput_kbps));
    measured.late_mean_ms = (sent > 0).then(|| late_ms / sent as f64);
    measured.paths = sums.finish();
    Ok(measured)
}

fn add_paths(job: &Job, flow: usize, sender: &Sender, sums: &mut PathSums) {
    for snapshot in &sender.last.paths {
        let Some(position) = position(snapshot.local) else { continue };
        let Some(&path) = job.scenario.flows[flow].paths.get(position) else { continue };
        // The far end may have tried addresses that its peer lists. These carry no data.
        let relayed = sender.side == 0 || snapshot.remote.ip() == address(SEEN, flow, 0).ip();
        if !relayed {
            continue;
        }
        let (sum, n) = sender.srtt_ms[position];
        let seen = SenderPathFigures {
            delivered_bytes: snapshot.delivered_bytes,
            declared_lost_bytes: snapshot.lost_bytes,
            srtt_ms: (n > 0).then(|| sum / f64::from(n)),
        };
        sums.add(job, flow, path, seen);
    }
}
