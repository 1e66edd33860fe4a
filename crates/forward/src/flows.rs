//! Flows of datagrams at the gateway. Each has sockets of its own, so that a program has one address towards all its peers.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

use anabranch_mapping::FlowRate;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::copies::Copies;
use crate::datagrams::{Carrier, Datagram, MAX_QUEUED, Queue};
use crate::dial::permitted_addresses;
use crate::event::{Event, Reporter};
use crate::failure::Failure;
use crate::limits::{Place, Users};
use crate::message::MAX_DATAGRAM_BYTES;
use crate::policy::Policy;
use crate::tally::Tally;
use crate::target::Target;

/// Maximum number of flows of an association.
const MAX_FLOWS: usize = 256;
/// Maximum number of peers from which a flow accepts datagrams. The oldest target is resolved again when there are more.
const MAX_PEERS: usize = 64;
/// Time without a datagram after which a flow ends (RFC 4787 REQ-5).
const IDLE: Duration = Duration::from_secs(120);
/// Time for a name to be resolved.
const RESOLVED_WITHIN: Duration = Duration::from_secs(5);

/// Parts of the gateway that a flow uses.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) carrier: Carrier,
    pub(crate) copies: Copies,
    pub(crate) policy: Policy,
    pub(crate) users: Users,
    pub(crate) user: String,
    pub(crate) tally: Tally,
    pub(crate) report: Reporter,
}

/// Flows of an association.
pub(crate) struct Flows {
    context: Context,
    queues: BTreeMap<u32, mpsc::Sender<Datagram>>,
    running: JoinSet<u32>,
}

impl Flows {
    pub(crate) fn new(context: Context) -> Self {
        Flows { context, queues: BTreeMap::new(), running: JoinSet::new() }
    }

    /// Passes a datagram of the program to its flow, which begins with its first datagram.
    pub(crate) fn pass(&mut self, flow: u32, datagram: Datagram) {
        if let Some(queue) = self.queues.get(&flow) {
            // A full queue drops the datagram, as a router does.
            let _ = queue.try_send(datagram);
            return;
        }
        let entered = match self.queues.len() < MAX_FLOWS {
            true => self.context.users.enter(&self.context.user, Instant::now()),
            false => Err(Failure::Limit),
        };
        match entered {
            Ok(place) => {
                let (queue, datagrams) = mpsc::channel(MAX_QUEUED);
                let _ = queue.try_send(datagram);
                self.queues.insert(flow, queue);
                self.running.spawn(run(self.context.clone(), flow, datagrams, place));
            }
            Err(failure) => self.context.tally.failed(failure),
        }
    }

    /// Removes flows that have ended. Never returns while all continue. Cancel-safe.
    pub(crate) async fn ended(&mut self) {
        match self.running.join_next().await {
            Some(Ok(flow)) => drop(self.queues.remove(&flow)),
            Some(Err(_)) => self.queues.retain(|_, queue| !queue.is_closed()),
            None => std::future::pending().await,
        }
    }
}

/// Forwards the datagrams of a flow until it is idle.
async fn run(context: Context, id: u32, mut queue: Queue, _place: Place) -> u32 {
    let (mut flow, mut rate) = (Flow::default(), FlowRate::default());
    let mut buffer = vec![0; MAX_DATAGRAM_BYTES];
    loop {
        tokio::select! {
            datagram = queue.recv() => match datagram {
                Some((target, payload)) => flow.send(&context, target, &payload).await,
                None => return id,
            },
            (length, from) = receive(&flow.v4, &flow.v6, &mut buffer) => {
                if flow.peers.contains(&from) {
                    context.tally.sent_to_peer(length);
                    let duplicate = context.copies.wants(&mut rate, length);
                    let datagram = (from.into(), buffer[..length].to_vec());
                    context.carrier.send(id, datagram, duplicate).await;
                }
            }
            () = sleep(IDLE) => return id,
        }
    }
}

/// Sockets and peers of a flow.
#[derive(Default)]
struct Flow {
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    /// Permitted addresses of the targets.
    resolved: BTreeMap<Target, SocketAddr>,
    peers: BTreeSet<SocketAddr>,
    /// Set once a failure was reported.
    has_failed: bool,
}

impl Flow {
    async fn send(&mut self, context: &Context, target: Target, payload: &[u8]) {
        let sent = async {
            let to = self.resolve(&context.policy, &target).await?;
            let socket = self.socket(to).await.map_err(|error| Failure::of_io(&error))?;
            socket.send_to(payload, to).await.map_err(|error| Failure::of_io(&error))
        };
        match sent.await {
            Ok(bytes) => context.tally.received_from_peer(bytes),
            Err(failure) => {
                context.tally.failed(failure);
                if !std::mem::replace(&mut self.has_failed, true) {
                    (context.report)(Event::NotOpened { target: Some(target), failure });
                }
            }
        }
    }

    async fn resolve(&mut self, policy: &Policy, target: &Target) -> Result<SocketAddr, Failure> {
        if let Some(known) = self.resolved.get(target) {
            return Ok(*known);
        }
        let found = timeout(RESOLVED_WITHIN, permitted_addresses(target, Some(policy))).await;
        let address = *found.map_err(|_| Failure::TimedOut)??.first().ok_or(Failure::NotResolved)?;
        if self.resolved.len() >= MAX_PEERS {
            self.resolved.clear();
            self.peers.clear();
        }
        self.resolved.insert(target.clone(), address);
        self.peers.insert(address);
        Ok(address)
    }

    async fn socket(&mut self, to: SocketAddr) -> io::Result<&UdpSocket> {
        let (slot, any): (_, IpAddr) = match to {
            SocketAddr::V4(_) => (&mut self.v4, Ipv4Addr::UNSPECIFIED.into()),
            SocketAddr::V6(_) => (&mut self.v6, Ipv6Addr::UNSPECIFIED.into()),
        };
        match slot {
            Some(socket) => Ok(socket),
            None => Ok(slot.insert(UdpSocket::bind((any, 0)).await?)),
        }
    }
}

/// Returns the length and the source of the next datagram. Cancel-safe.
async fn receive(v4: &Option<UdpSocket>, v6: &Option<UdpSocket>, buffer: &mut [u8]) -> (usize, SocketAddr) {
    loop {
        tokio::select! {
            () = readable(v4) => {}
            () = readable(v6) => {}
        }
        let mut sockets = v4.iter().chain(v6);
        // An ICMP error of an earlier datagram is not an end of the flow.
        if let Some(received) = sockets.find_map(|socket| socket.try_recv_from(buffer).ok()) {
            return received;
        }
    }
}

async fn readable(socket: &Option<UdpSocket>) {
    match socket {
        Some(socket) => drop(socket.readable().await),
        None => std::future::pending().await,
    }
}
