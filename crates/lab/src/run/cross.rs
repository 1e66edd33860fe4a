//! Cross traffic with congestion control: associations on one link, which are not flows of the scenario.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use anabranch_core::time::{Span, Time};
use anabranch_core::{
    AcceptFrom, AssociationConfig, AssociationEvent, AssociationId, Endpoint, EndpointConfig, SendOptions,
};
use anabranch_scenario::{Background, Control, Pieces, Reacting};
use anabranch_sim::{Address, Application, LinkId, SctpHost, Stream, World};
use bytes::Bytes;

use crate::run::application::End;
use crate::run::scheme::JobScheme;
use crate::run::{Job, RunError};

/// Largest number of transfers of a source at the same time. A further one waits until one of them ends.
const PARALLEL: usize = 256;
/// Receive buffer of a transfer, so large that the congestion window is the limit.
const RECV_BUFFER_BYTES: u64 = 16 << 20;
/// Largest message that a piece of data is divided into.
const MESSAGE: &[u8] = &[0; 65_536];
/// SCTP ports of the two ends. The choice is arbitrary.
const PORTS: [u16; 2] = [5003, 5004];

/// Cross traffic with congestion control on one link.
pub(crate) struct CrossTraffic {
    pub(crate) name: String,
    pub(crate) background: Background,
    /// Source of `background`.
    pub(crate) reacting: Reacting,
    /// Links of the data, and those of the acknowledgements.
    pub(crate) links: [Vec<LinkId>; 2],
}

/// Adds the hosts and routes of the sources to the world.
pub(crate) fn add(world: &mut World, job: &Job, traffic: &[CrossTraffic]) -> Result<(), RunError> {
    let mut number = 0;
    for each in traffic {
        for copy in 1..=each.background.count {
            let name = match each.background.count {
                1 => each.name.clone(),
                _ => format!("{}/{copy}", each.name),
            };
            let config = config_of(job, each.reacting.control, &name)?;
            for work in works(world, &each.background, &each.reacting, &name) {
                add_pair(
                    world,
                    job,
                    &Pair { name: &name, number, config: &config, links: &each.links },
                    work,
                )?;
                number += 1;
            }
        }
    }
    Ok(())
}

fn config_of(job: &Job, control: Control, name: &str) -> Result<AssociationConfig, RunError> {
    let expression = match control {
        Control::NewReno => "sctp",
        Control::Cubic => "sctp+cubic",
    };
    let scheme = job.scenario.vocabulary().parse(expression);
    let scheme = scheme
        .map(JobScheme::from)
        .map_err(|error| RunError::Scheme { flow: name.to_owned(), error: Box::new(error) })?;
    Ok(AssociationConfig {
        recv_buffer_bytes: RECV_BUFFER_BYTES,
        mtu_bytes: job.scenario.association.mtu_bytes as usize,
        ..AssociationConfig::new(scheme.scheme(), job.conventions.profile(false).clone())
    })
}

/// Returns what each pair of hosts of a source sends.
fn works(world: &World, background: &Background, reacting: &Reacting, name: &str) -> Vec<Work> {
    let start = Time::ZERO + background.start;
    let stop = background.stop.map(|stop| Time::ZERO + stop);
    let bytes_per_second = reacting.rate.as_bps() as f64 / 8.0;
    match reacting.pieces {
        Pieces::Transfers { min_bytes, max_bytes, shape } => {
            let stream = world.seeds().stream(&["traffic", name]);
            let sizes = Sizes { min: min_bytes as f64, max: max_bytes as f64, shape };
            let mean_gap_s = Stream::bounded_pareto_mean(sizes.min, sizes.max, shape) / bytes_per_second;
            let arrivals = Rc::new(RefCell::new(Arrivals::new(stream, sizes, mean_gap_s, start, stop)));
            (0..PARALLEL).map(|_| Work::Transfers(Rc::clone(&arrivals))).collect()
        }
        Pieces::Segments { every } => {
            let bytes = (bytes_per_second * every.as_secs_f64()) as usize;
            vec![Work::Segments { every, bytes: bytes.max(1), next: start, stop }]
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Sizes {
    min: f64,
    max: f64,
    shape: f64,
}

/// Times and sizes of the transfers of a source, which its pairs of hosts share.
#[derive(Debug)]
struct Arrivals {
    stream: Stream,
    sizes: Sizes,
    mean_gap_s: f64,
    next: Time,
    stop: Option<Time>,
}

impl Arrivals {
    fn new(stream: Stream, sizes: Sizes, mean_gap_s: f64, start: Time, stop: Option<Time>) -> Self {
        let mut arrivals = Arrivals { stream, sizes, mean_gap_s, next: start, stop };
        arrivals.advance();
        arrivals
    }

    fn advance(&mut self) {
        let gap_ns = self.stream.exponential(self.mean_gap_s * 1e9);
        self.next += Span::from_nanos((gap_ns as u64).max(1));
    }

    /// Returns the time of the next transfer, unless it is after the end.
    fn due(&self) -> Option<Time> {
        self.stop.is_none_or(|stop| self.next < stop).then_some(self.next)
    }

    /// Takes the next transfer, if it is due, and returns its bytes.
    fn take(&mut self, now: Time) -> Option<usize> {
        self.due().filter(|due| *due <= now)?;
        let Sizes { min, max, shape } = self.sizes;
        let bytes = self.stream.bounded_pareto(min, max, shape) as usize;
        self.advance();
        Some(bytes.max(1))
    }
}

/// Data that a sender sends.
#[derive(Debug)]
enum Work {
    /// Transfers, each in an association of its own.
    Transfers(Rc<RefCell<Arrivals>>),
    /// Equal segments in one association.
    Segments { every: Span, bytes: usize, next: Time, stop: Option<Time> },
}

impl Work {
    fn due(&self) -> Option<Time> {
        match self {
            Work::Transfers(arrivals) => arrivals.borrow().due(),
            Work::Segments { next, stop, .. } => stop.is_none_or(|stop| *next < stop).then_some(*next),
        }
    }

    fn take(&mut self, now: Time) -> Option<usize> {
        self.due().filter(|due| *due <= now)?;
        match self {
            Work::Transfers(arrivals) => arrivals.borrow_mut().take(now),
            Work::Segments { every, bytes, next, .. } => {
                *next += *every;
                Some(*bytes)
            }
        }
    }

    fn is_transfers(&self) -> bool {
        matches!(self, Work::Transfers(_))
    }
}

/// Application that opens associations and sends data.
struct Sender {
    work: Work,
    pair: (IpAddr, IpAddr),
    config: AssociationConfig,
    id: Option<AssociationId>,
    is_open: bool,
    /// Bytes that wait for the association.
    waiting: usize,
}

impl Sender {
    /// Opens an association, unless there is one.
    fn open(&mut self, now: Time, endpoint: &mut Endpoint) {
        if self.id.is_none() {
            self.is_open = false;
            self.id = endpoint.connect(now, PORTS[1], &[self.pair], self.config.clone()).ok();
        }
    }

    /// Returns `true` if the sender may take the next piece: a transfer waits for the end of the one before it.
    fn is_ready(&self) -> bool {
        self.id.is_none() || !self.work.is_transfers()
    }

    fn send(&mut self, now: Time, endpoint: &mut Endpoint) {
        let Some(association) = self.id.and_then(|id| endpoint.association_mut(id)) else { return };
        while self.waiting > 0 {
            let bytes = self.waiting.min(MESSAGE.len());
            if association
                .send_at(now, Bytes::from_static(&MESSAGE[..bytes]), SendOptions::default())
                .is_err()
            {
                return;
            }
            self.waiting -= bytes;
        }
        if self.work.is_transfers() {
            association.shutdown(now);
        }
    }
}

impl Application for Sender {
    fn step(&mut self, now: Time, endpoint: &mut Endpoint) {
        while self.is_ready()
            && let Some(bytes) = self.work.take(now)
        {
            self.waiting += bytes;
            self.open(now, endpoint);
        }
        if self.is_open && self.waiting > 0 {
            self.send(now, endpoint);
        }
    }

    fn on_event(
        &mut self,
        _now: Time,
        _endpoint: &mut Endpoint,
        id: AssociationId,
        event: &AssociationEvent,
    ) {
        if self.id != Some(id) {
            return;
        }
        match event {
            AssociationEvent::Connected => self.is_open = true,
            AssociationEvent::Closed | AssociationEvent::Aborted(_) => {
                (self.id, self.is_open, self.waiting) = (None, false, 0);
            }
            _ => {}
        }
    }

    fn poll_timeout(&mut self) -> Option<Time> {
        self.work.due().filter(|_| self.is_ready())
    }
}

/// Hosts of one sender and its receiver.
struct Pair<'a> {
    name: &'a str,
    number: u32,
    config: &'a AssociationConfig,
    links: &'a [Vec<LinkId>; 2],
}

fn add_pair(world: &mut World, job: &Job, pair: &Pair<'_>, work: Work) -> Result<(), RunError> {
    let ends = [0, 1].map(|side| address(pair.number, side));
    let sender = Sender {
        work,
        pair: (ends[0], ends[1]),
        config: pair.config.clone(),
        id: None,
        is_open: false,
        waiting: 0,
    };
    let sending = SctpHost::new(endpoint(world, job, pair, 0), job.encapsulation(), sender);
    world.add_host(Box::new(sending), &[ends[0]])?;
    let receiver = End::new(Time::ZERO, Time::ZERO);
    let receiving = SctpHost::new(endpoint(world, job, pair, 1), job.encapsulation(), receiver);
    world.add_host(Box::new(receiving), &[ends[1]])?;
    world.add_route(ends[0], ends[1], &pair.links[0], Some(pair.name))?;
    world.add_route(ends[1], ends[0], &pair.links[1], Some(pair.name))?;
    Ok(())
}

fn endpoint(world: &World, job: &Job, pair: &Pair<'_>, side: usize) -> Endpoint {
    let config = EndpointConfig {
        port: PORTS[side],
        addresses: vec![address(pair.number, side)],
        encapsulation: job.encapsulation(),
        accept: (side == 1).then(|| pair.config.clone()),
        accept_from: AcceptFrom::Everyone,
        // A transfer may begin while the end of the one before it is still unknown.
        max_associations: 4,
        guard: None,
    };
    let (number, side) = (pair.number.to_string(), ["left", "right"][side]);
    let entropy = world.seeds().entropy(&["endpoint", pair.name, &number, side]);
    let endpoint = Endpoint::new(Time::ZERO, config, entropy);
    // Links of scenarios never change bytes.
    match job.digest || job.pcap.is_some() {
        true => endpoint,
        false => endpoint.without_checksums().without_contents().with_described_packets(),
    }
}

/// Returns an address that belongs to no flow.
fn address(number: u32, side: usize) -> Address {
    let [_, high, middle, low] = (2 * number + side as u32).to_be_bytes();
    Address::from([11, high, middle, low])
}

#[cfg(test)]
mod tests {
    use super::*;
    use anabranch_sim::Seeds;

    fn arrivals(stop: Option<Time>) -> Arrivals {
        let stream = Seeds::new(5, 0).stream(&["traffic", "web"]);
        Arrivals::new(stream, Sizes { min: 10e3, max: 1e6, shape: 1.5 }, 0.01, Time::ZERO, stop)
    }

    #[test]
    fn arrivals_are_poisson_with_the_mean_gap() {
        let mut arrivals = arrivals(None);
        let mut times = Vec::new();
        for _ in 0..100_000 {
            let due = arrivals.due().expect("no end");
            assert_eq!(arrivals.take(Time::from_nanos(due.as_nanos() - 1)), None);
            assert!(arrivals.take(due).is_some_and(|bytes| (10_000..=1_000_000).contains(&bytes)));
            times.push(due.since(Time::ZERO).as_secs_f64());
        }
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) / 0.01).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }

    #[test]
    fn no_transfer_begins_after_the_stop() {
        let stop = Time::ZERO + Span::from_secs(1);
        let mut arrivals = arrivals(Some(stop));
        while let Some(due) = arrivals.due() {
            assert!(due < stop);
            arrivals.take(due);
        }
        assert_eq!(arrivals.take(stop + Span::from_secs(9)), None);
    }

    #[test]
    fn segments_are_due_at_equal_times() {
        let every = Span::from_secs(2);
        let mut work = Work::Segments { every, bytes: 500, next: Time::ZERO, stop: None };
        assert_eq!(work.take(Time::ZERO), Some(500));
        assert_eq!(work.take(Time::ZERO), None);
        assert_eq!(work.due(), Some(Time::ZERO + every));
    }
}
