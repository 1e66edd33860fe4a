//! Gateway: assigns an address to each user, and exchanges the users' packets with its device within the policy. The lane connects to
//! the targets of TCP connections that users carry as streams, within the same policy.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_forward::{Policy, Reporter, TargetHost};
use anabranch_net::{Association, SendOptions};
use bytes::Bytes;
use tokio::sync::mpsc;

use crate::ip::Header;
use crate::link::{self, MAX_PENDING, Outgoing, Output, Violation};
use crate::message::{Addresses, Lane, Message, Refusal, VERSION};
use crate::pool::{Networks, Place, Pool};
use crate::tally::{Count, Tally};

/// Options of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Networks whose first addresses are those of the gateway, and whose other addresses are assigned to users.
    pub networks: Networks,
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
    networks: Networks,
    policy: Policy,
    policy_without_ports: Policy,
    lane: Option<anabranch_forward::Gateway>,
    tally: Tally,
    output: Output,
    users: Mutex<Users>,
}

struct Users {
    pool: Pool,
    routes: BTreeMap<Place, Route>,
    next_id: u64,
}

/// Way to the user of a place.
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
        let users = Users { pool: Pool::new(options.networks), routes: BTreeMap::new(), next_id: 0 };
        Gateway {
            inner: Arc::new(Inner {
                networks: options.networks,
                policy_without_ports: options.policy.without_ports(),
                policy: options.policy,
                lane: options.lane,
                tally: Tally::default(),
                output,
                users: Mutex::new(users),
            }),
        }
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

    /// Serves an association of this user, which began with `hello`, until it ends. `report` receives the assigned addresses, and
    /// `connections` the events of the lane. A second association of the same user replaces the first one.
    pub async fn serve(
        &self,
        association: Association,
        hello: &Bytes,
        user: &str,
        report: impl FnOnce(Addresses),
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
        let Some((place, id, mut packets)) = self.inner.enter(&association, user) else {
            return refuse(&association, Refusal::NoAddress).await;
        };
        let addresses = self.inner.networks.at(place);
        report(addresses);
        let packets = async {
            let served = self.inner.exchange(&association, addresses, &mut packets).await;
            self.inner.leave(place, id);
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

    fn enter(&self, association: &Association, user: &str) -> Option<(Place, u64, mpsc::Receiver<Outgoing>)> {
        let mut users = self.lock();
        let place = users.pool.assign(user)?;
        let (sender, receiver) = mpsc::channel(MAX_PENDING);
        users.next_id += 1;
        let route = Route { id: users.next_id, packets: sender, association: association.clone() };
        if let Some(earlier) = users.routes.insert(place, route) {
            earlier.association.abort();
        }
        Some((place, users.next_id, receiver))
    }

    fn leave(&self, place: Place, id: u64) {
        let mut users = self.lock();
        if users.routes.get(&place).is_some_and(|route| route.id == id) {
            users.routes.remove(&place);
            users.pool.release(place);
        }
    }

    async fn exchange(
        &self,
        association: &Association,
        addresses: Addresses,
        packets: &mut mpsc::Receiver<Outgoing>,
    ) -> Result<(), Violation> {
        let lane = if self.lane.is_some() { Lane::Permitted } else { Lane::Forbidden };
        let welcome = Message::Welcome { addresses, lane }.encode();
        if association.send(welcome, SendOptions::default().unordered()).await.is_err() {
            return Ok(());
        }
        let check = |header: &Header| self.check_sent(header, addresses);
        tokio::select! {
            () = link::send(association, packets, &self.tally) => Ok(()),
            ended = link::receive(association, check, (&self.output, &self.tally)) => ended,
        }
    }

    /// Checks a packet that the user with these addresses has sent.
    fn check_sent(&self, header: &Header, addresses: Addresses) -> Result<(), Count> {
        if !addresses.contains(header.source) {
            return Err(Count::Spoofed);
        }
        let port = header.ports.map(|(_, destination)| destination);
        if self.permits(header.destination, port) { Ok(()) } else { Err(Count::Forbidden) }
    }

    /// Passes a packet of the device to a user. Its source has to be a permitted target, unless it reports an error.
    fn route(&self, packet: Bytes) -> Result<(), Count> {
        let header = Header::read(&packet).ok_or(Count::Malformed)?;
        if header.stays_on_link() {
            return Ok(());
        }
        let port = header.ports.map(|(source, _)| source);
        if !header.is_icmp_error && !self.permits(header.source, port) {
            return Err(Count::Forbidden);
        }
        let place = self.networks.place_of(header.destination).ok_or(Count::Spoofed)?;
        let users = self.lock();
        let route = users.routes.get(&place).ok_or(Count::Spoofed)?;
        route.packets.try_send((header.flow(), packet)).map_err(|_| Count::Queue)
    }

    fn permits_in_lane(&self, target: IpAddr, port: u16) -> bool {
        !target.is_loopback() && self.permits(target, Some(port))
    }

    /// Returns `true` if the policy permits a target that is no user.
    fn permits(&self, target: IpAddr, port: Option<u16>) -> bool {
        let host = TargetHost::Address(target);
        let is_permitted = match port {
            Some(port) => self.policy.permits(&host, target, port),
            None => self.policy_without_ports.permits(&host, target, 1),
        };
        is_permitted && !self.networks.is_user(target)
    }
}
