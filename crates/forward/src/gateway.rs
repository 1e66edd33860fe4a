//! Gateway: connects to the targets that its users request, within its policy and limits.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Message, RecvError, RecvStream, SendOptions, SendStream};
use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::copies::Copies;
use crate::datagrams::Carrier;
use crate::dial::dial;
use crate::event::{Event, Reporter};
use crate::failure::Failure;
use crate::flows::{Context, Flows};
use crate::limits::{Limits, Place, Users};
use crate::listen_spec::Listen;
use crate::listeners::Listeners;
use crate::measure::answer_measurement;
use crate::message::{Answer, Notice, Request};
use crate::policy::Policy;
use crate::priority::prioritise;
use crate::request::{self, Outcome, answer, read_request, refuse};
use crate::splice::{reset, splice};
use crate::tally::Tally;
use crate::target::{Target, TargetHost};

/// Time for connections to end after their association.
const DRAIN: Duration = Duration::from_secs(5);
/// Time for the user's side to accept a connection to its listener.
const INCOMING_WITHIN: Duration = Duration::from_secs(30);

/// Listeners that users may request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RemoteListen {
    /// No listeners.
    #[default]
    Forbidden,
    /// Listeners on loopback.
    Loopback,
    /// Listeners on all addresses.
    Any,
}

impl RemoteListen {
    fn permits(self, listen: Listen) -> bool {
        match self {
            RemoteListen::Forbidden => false,
            RemoteListen::Loopback => listen.is_loopback(),
            RemoteListen::Any => true,
        }
    }
}

/// Options of a gateway.
#[derive(Clone, Debug)]
pub struct GatewayOptions {
    /// Permitted targets.
    pub policy: Policy,
    /// Limits for each user.
    pub limits: Limits,
    /// Time for a target to be resolved and to accept a connection.
    pub connect_timeout: Duration,
    /// Permitted listeners.
    pub remote_listen: RemoteListen,
}

/// Gateway. Clones share users, limits and counters.
#[derive(Clone, Debug)]
pub struct Gateway {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    options: GatewayOptions,
    users: Users,
    tally: Tally,
    instance: u64,
}

/// Condition for the targets of an association in addition to the policy: the address and the port.
pub type TargetCheck = Arc<dyn Fn(IpAddr, u16) -> bool + Send + Sync>;

/// Requests that an association may make.
enum Scope {
    /// All requests of the protocol.
    All,
    /// Connections to addresses that a condition permits.
    Connections(TargetCheck),
}

impl Scope {
    fn check(&self, request: &Request) -> Result<(), Failure> {
        let Scope::Connections(permits) = self else { return Ok(()) };
        match target_of(request) {
            Some(Target { host: TargetHost::Address(address), port }) if permits(*address, *port) => Ok(()),
            _ => Err(Failure::Forbidden),
        }
    }
}

impl Gateway {
    /// Returns a gateway. `instance` is a random number, which tells users that it was restarted.
    pub fn new(options: GatewayOptions, instance: u64) -> Self {
        let users = Users::new(options.limits);
        Gateway { inner: Arc::new(Inner { options, users, tally: Tally::default(), instance }) }
    }

    /// Returns the counters.
    pub fn tally(&self) -> &Tally {
        &self.inner.tally
    }

    /// Serves an association of this user until it ends. `first` is its first message, if the caller has received it. A peer that
    /// violates the protocol is aborted.
    pub async fn serve(
        &self,
        association: Association,
        mut first: Option<Message>,
        user: &str,
        report: Reporter,
    ) {
        let served = self.served(association.clone(), user, report, Scope::All);
        let (mut streams, mut flows) = (JoinSet::new(), Flows::new(served.context()));
        loop {
            tokio::select! {
                opened = association.accept_stream() => match opened {
                    Ok(Some(stream)) => drop(streams.spawn(Arc::clone(&served).stream(stream))),
                    Ok(None) | Err(_) => break,
                },
                message = next(&mut first, &association) => match message {
                    Ok(Some(message)) if served.notice(&message.payload, &mut flows).await.is_ok() => {}
                    Err(RecvError::Restarted) => {}
                    Ok(None) | Err(_) => break,
                    Ok(Some(_)) => {
                        association.abort();
                        break;
                    }
                },
                Some(_) = streams.join_next() => {}
                () = flows.ended() => {}
            }
        }
        drain(streams).await;
        self.inner.tally.copied(association.snapshot().await.statistics.copies_sent);
    }

    /// Serves the streams of an association whose messages the caller receives, until it ends. Each stream may request a connection to
    /// an address that `permits` and the policy permit, and nothing else.
    pub async fn serve_connections(
        &self,
        association: Association,
        user: &str,
        permits: TargetCheck,
        report: Reporter,
    ) {
        let served = self.served(association.clone(), user, report, Scope::Connections(permits));
        let mut streams = JoinSet::new();
        loop {
            tokio::select! {
                opened = association.accept_stream() => match opened {
                    Ok(Some(stream)) => drop(streams.spawn(Arc::clone(&served).stream(stream))),
                    Ok(None) | Err(_) => break,
                },
                Some(_) = streams.join_next() => {}
            }
        }
        drain(streams).await;
    }

    fn served(&self, association: Association, user: &str, report: Reporter, scope: Scope) -> Arc<Served> {
        let gateway = Arc::clone(&self.inner);
        Arc::new(Served { gateway, association, user: user.to_owned(), report, scope })
    }
}

/// Waits for the connections of an association that has ended. Those whose programs do not read are reset.
async fn drain(mut streams: JoinSet<()>) {
    let ended = async { while streams.join_next().await.is_some() {} };
    let _ = timeout(DRAIN, ended).await;
}

/// Returns the first message, or the next one of the association. Cancel-safe.
async fn next(first: &mut Option<Message>, association: &Association) -> Result<Option<Message>, RecvError> {
    match first.take() {
        Some(message) => Ok(Some(message)),
        None => association.recv().await,
    }
}

/// Association of a user.
struct Served {
    gateway: Arc<Inner>,
    association: Association,
    user: String,
    report: Reporter,
    scope: Scope,
}

impl Served {
    fn context(&self) -> Context {
        Context {
            carrier: Carrier::new(self.association.clone()),
            copies: Copies::new(),
            policy: self.gateway.options.policy.clone(),
            users: self.gateway.users.clone(),
            user: self.user.clone(),
            tally: self.gateway.tally.clone(),
            report: Arc::clone(&self.report),
        }
    }

    async fn notice(&self, payload: &[u8], flows: &mut Flows) -> Result<(), ()> {
        match Notice::decode(payload) {
            Ok(Notice::Probe) => {
                let reply = Notice::ProbeReply { instance: self.gateway.instance };
                self.association.send(reply.encode(), SendOptions::default().unordered()).await.map_err(drop)
            }
            Ok(Notice::Datagram { flow, peer, payload }) => {
                flows.pass(flow, (peer, payload));
                Ok(())
            }
            Ok(Notice::ProbeReply { .. }) | Err(_) => Err(()),
        }
    }

    /// Serves a stream that the user's side has opened.
    async fn stream(self: Arc<Self>, (mut sender, mut receiver): (SendStream, RecvStream)) {
        let request = match read_request(&mut receiver).await {
            Ok(request) => request,
            Err(failure) => return self.refused(sender, None, failure).await,
        };
        let place = match self.gateway.users.enter(&self.user, Instant::now()) {
            Ok(place) => place,
            Err(failure) => return self.refused(sender, target_of(&request).cloned(), failure).await,
        };
        if let Err(failure) = self.scope.check(&request) {
            return self.refused(sender, target_of(&request).cloned(), failure).await;
        }
        match request {
            Request::Connect(target) => self.connect((sender, receiver), target, place).await,
            Request::ConnectFirst(target) => {
                prioritise(&mut sender);
                self.connect((sender, receiver), target, place).await;
            }
            Request::Listen { id, listen } => self.listen((sender, receiver), id, listen, place).await,
            Request::Measure(bounds) => answer_measurement((sender, receiver), bounds).await,
            Request::Incoming { .. } => self.refused(sender, None, Failure::Malformed).await,
        }
    }

    async fn refused(&self, sender: SendStream, target: Option<Target>, failure: Failure) {
        self.gateway.tally.failed(failure);
        (self.report)(Event::NotOpened { target, failure });
        refuse(sender, failure).await;
    }

    async fn connect(&self, (mut sender, receiver): (SendStream, RecvStream), target: Target, _place: Place) {
        let GatewayOptions { policy, connect_timeout, .. } = &self.gateway.options;
        let dialled = tokio::select! {
            dialled = dial(&target, Some(policy), *connect_timeout) => dialled,
            _ = sender.stopped() => return,
        };
        let connection = match dialled {
            Ok(connection) => connection,
            Err(failure) => return self.refused(sender, Some(target), failure).await,
        };
        let port = connection.local_addr().map_or(0, |local| local.port());
        if answer(&mut sender, Answer::Ready { port }).await.is_err() {
            return reset(&connection);
        }
        let counted = self.gateway.tally.opened(target.to_string());
        (self.report)(Event::Opened { target });
        splice(connection, Bytes::new(), (sender, receiver), counted).await;
    }

    async fn listen(
        self: &Arc<Self>,
        (mut sender, mut receiver): (SendStream, RecvStream),
        id: u32,
        listen: Listen,
        _place: Place,
    ) {
        let bound = match self.gateway.options.remote_listen.permits(listen) {
            true => Listeners::bind(listen).map_err(|error| Failure::of_io(&error)),
            false => Err(Failure::Forbidden),
        };
        let listeners = match bound {
            Ok(listeners) => listeners,
            Err(failure) => return self.refused(sender, None, failure).await,
        };
        if answer(&mut sender, Answer::Ready { port: listeners.port() }).await.is_err() {
            return;
        }
        (self.report)(Event::Listening { addresses: listeners.addresses().to_vec() });
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                (connection, from) = listeners.accept() => {
                    let request = Request::Incoming { id, from };
                    drop(connections.spawn(Arc::clone(self).incoming(connection, request)));
                }
                Some(_) = connections.join_next() => {}
                // The user's side sends nothing but the end of the stream.
                _ = receiver.recv() => break,
            }
        }
    }

    /// Forwards a connection to a listener of the user.
    async fn incoming(self: Arc<Self>, connection: TcpStream, request: Request) {
        let listener = connection.local_addr().map(|local| local.to_string()).unwrap_or_default();
        let opened = async {
            let place = self.gateway.users.enter(&self.user, Instant::now())?;
            let opened = timeout(INCOMING_WITHIN, async {
                let Ok((mut sender, mut receiver)) = self.association.open_stream().await else {
                    return Err(Failure::Exhausted);
                };
                match request::request(&mut sender, &mut receiver, &request).await {
                    Outcome::Ready(_) => Ok((sender, receiver)),
                    Outcome::Failed(failure) => Err(failure),
                    Outcome::Lost => Err(Failure::NoGateway),
                }
            });
            opened.await.unwrap_or(Err(Failure::TimedOut)).map(|streams| (streams, place))
        };
        match opened.await {
            Ok((streams, _place)) => {
                splice(connection, Bytes::new(), streams, self.gateway.tally.opened(listener)).await;
            }
            Err(failure) => {
                self.gateway.tally.failed(failure);
                reset(&connection);
            }
        }
    }
}

fn target_of(request: &Request) -> Option<&Target> {
    match request {
        Request::Connect(target) | Request::ConnectFirst(target) => Some(target),
        Request::Listen { .. } | Request::Incoming { .. } | Request::Measure(_) => None,
    }
}
