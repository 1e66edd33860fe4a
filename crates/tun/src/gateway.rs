//! Gateway: assigns an address to each user, and exchanges the users' packets with its device within the policy. The lane connects to
//! the targets of TCP connections that users carry as streams, within the same policy.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_forward::{Policy, Reporter, TargetHost};
use anabranch_net::{Association, SendOptions};
use bytes::Bytes;
use ipnet::Ipv4Net;
use tokio::sync::mpsc;

use crate::ip::Header;
use crate::link::{self, MAX_PENDING, Outgoing, Output, Violation};
use crate::message::{Lane, Message, Refusal, VERSION};
use crate::pool::Pool;
use crate::tally::{Count, Tally};

/// Options of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Network whose first address is that of the gateway, and whose other addresses are assigned to users.
    pub network: Ipv4Net,
    /// Permitted targets.
    pub policy: Policy,
    /// Gateway that connects to targets of the lane, with the same policy or a stricter one; `None` forbids the lane.
    pub lane: Option<anabranch_forward::Gateway>,
}

/// Gateway for IP packets. Clones share users and counters.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
}

struct Inner {
    policy: Policy,
    policy_without_ports: Policy,
    lane: Option<anabranch_forward::Gateway>,
    tally: Tally,
    output: Output,
    users: Mutex<Users>,
}

struct Users {
    pool: Pool,
    routes: BTreeMap<Ipv4Addr, Route>,
    next_id: u64,
}

/// Way to the user of an address.
struct Route {
    id: u64,
    packets: mpsc::Sender<Outgoing>,
    association: Association,
}

/// End of the service of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The association ended.
    Ended,
    /// The user was refused.
    Refused(Refusal),
    /// The user violated the protocol, and was aborted.
    Violation,
}

impl Gateway {
    /// Returns a gateway that passes the packets of its users to `output`.
    pub fn new(options: GatewayOptions, output: Output) -> Self {
        let users = Users { pool: Pool::new(options.network), routes: BTreeMap::new(), next_id: 0 };
        Gateway {
            inner: Arc::new(Inner {
                policy_without_ports: options.policy.without_ports(),
                policy: options.policy,
                lane: options.lane,
                tally: Tally::default(),
                output,
                users: Mutex::new(users),
            }),
        }
    }

    /// Returns the address of the gateway in the tunnels.
    pub fn address(&self) -> Ipv4Addr {
        self.inner.lock().pool.gateway()
    }

    /// Returns the counters.
    pub fn tally(&self) -> &Tally {
        &self.inner.tally
    }

    /// Passes a packet of the device to the user with its destination address.
    pub fn route(&self, packet: Bytes) {
        if let Err(count) = self.inner.route(packet) {
            self.inner.tally.add(count, 1);
        }
    }

    /// Serves an association of this user, which began with `hello`, until it ends. `report` receives the assigned address, and
    /// `connections` the events of the lane. A second association of the same user replaces the first one.
    pub async fn serve(
        &self,
        association: Association,
        hello: &Bytes,
        user: &str,
        report: impl FnOnce(Ipv4Addr),
        connections: Reporter,
    ) -> Served {
        match Message::decode(hello) {
            Ok(Message::Hello { version: VERSION }) => {}
            // Later versions may have a longer message.
            _ if Message::is_hello(hello) => return refuse(&association, Refusal::Version).await,
            _ => {
                association.abort();
                return Served::Violation;
            }
        }
        let Some((address, id, mut packets)) = self.inner.enter(&association, user) else {
            return refuse(&association, Refusal::NoAddress).await;
        };
        report(address);
        let packets = async {
            let served = self.inner.exchange(&association, address, &mut packets).await;
            self.inner.leave(address, id);
            if served.is_err() {
                association.abort();
                return Served::Violation;
            }
            Served::Ended
        };
        let lane = self.serve_lane(association.clone(), user, connections);
        tokio::join!(packets, lane).0
    }

    /// Serves the TCP connections of a user. Their targets are those that packets of the user reach: no name, no address of loopback
    /// and no other user.
    async fn serve_lane(&self, association: Association, user: &str, report: Reporter) {
        let Some(lane) = &self.inner.lane else { return };
        let inner = Arc::clone(&self.inner);
        let permits = move |target, port| inner.permits_in_lane(target, port);
        lane.serve_connections(association, user, Arc::new(permits), report).await;
    }
}

async fn refuse(association: &Association, reason: Refusal) -> Served {
    let options = SendOptions::default().unordered();
    if association.send(Message::Refused(reason).encode(), options).await.is_ok() {
        let _ = association.shutdown().await;
    }
    Served::Refused(reason)
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(
        &self,
        association: &Association,
        user: &str,
    ) -> Option<(Ipv4Addr, u64, mpsc::Receiver<Outgoing>)> {
        let mut users = self.lock();
        let address = users.pool.assign(user)?;
        let (sender, receiver) = mpsc::channel(MAX_PENDING);
        users.next_id += 1;
        let route = Route { id: users.next_id, packets: sender, association: association.clone() };
        if let Some(earlier) = users.routes.insert(address, route) {
            earlier.association.abort();
        }
        Some((address, users.next_id, receiver))
    }

    fn leave(&self, address: Ipv4Addr, id: u64) {
        let mut users = self.lock();
        if users.routes.get(&address).is_some_and(|route| route.id == id) {
            users.routes.remove(&address);
            users.pool.release(address);
        }
    }

    async fn exchange(
        &self,
        association: &Association,
        address: Ipv4Addr,
        packets: &mut mpsc::Receiver<Outgoing>,
    ) -> Result<(), Violation> {
        let lane = if self.lane.is_some() { Lane::Permitted } else { Lane::Forbidden };
        let welcome = Message::Welcome { address, lane }.encode();
        if association.send(welcome, SendOptions::default().unordered()).await.is_err() {
            return Ok(());
        }
        let check = |header: &Header| self.check_sent(header, address);
        tokio::select! {
            () = link::send(association, packets, &self.tally) => Ok(()),
            ended = link::receive(association, check, (&self.output, &self.tally)) => ended,
        }
    }

    /// Checks a packet that the user with this address has sent.
    fn check_sent(&self, header: &Header, address: Ipv4Addr) -> Result<(), Count> {
        if header.source != IpAddr::from(address) {
            return Err(Count::Spoofed);
        }
        let port = header.ports.map(|(_, destination)| destination);
        if self.permits(header.destination, port) { Ok(()) } else { Err(Count::Forbidden) }
    }

    /// Passes a packet of the device to a user. Its source has to be a permitted target, unless it reports an error.
    fn route(&self, packet: Bytes) -> Result<(), Count> {
        let header = Header::read(&packet).ok_or(Count::Malformed)?;
        let port = header.ports.map(|(source, _)| source);
        if !header.is_icmp_error && !self.permits(header.source, port) {
            return Err(Count::Forbidden);
        }
        let IpAddr::V4(destination) = header.destination else { return Err(Count::Malformed) };
        let users = self.lock();
        let route = users.routes.get(&destination).ok_or(Count::Spoofed)?;
        route.packets.try_send((header.flow(), packet)).map_err(|_| Count::Queue)
    }

    fn permits_in_lane(&self, target: IpAddr, port: u16) -> bool {
        let is_local = target.is_loopback() || self.lock().pool.is_user(target);
        !is_local && self.permits(target, Some(port))
    }

    fn permits(&self, target: IpAddr, port: Option<u16>) -> bool {
        let host = TargetHost::Address(target);
        match port {
            Some(port) => self.policy.permits(&host, target, port),
            None => self.policy_without_ports.permits(&host, target, 1),
        }
    }
}
