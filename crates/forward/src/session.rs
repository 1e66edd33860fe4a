//! Association with the gateway: its configuration, its first exchange, and its replacement after the gateway was lost.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::{Duration, Instant};

use anabranch_mapping::{STREAM_SCHEDULER, STREAMS};
use anabranch_net::{Association, Config, Endpoint, RecvStream, SendOptions, SendStream};
use bytes::Bytes;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::dial::dial;
use crate::event::{Event, Reporter};
use crate::failure::Failure;
use crate::listen_spec::Forwarding;
use crate::liveness::{Liveness, Observation, Verdict};
use crate::message::{Answer, Notice, Request};
use crate::priority::prioritise;
use crate::request::{Outcome, answer, read_request, refuse, request};
use crate::splice::splice;
use crate::target::Target;
use crate::uplink::Uplink;

/// Time for the gateway to answer the first probe.
const GREETED_WITHIN: Duration = Duration::from_secs(5);
/// Time between two observations of an association.
const OBSERVED_EVERY: Duration = Duration::from_millis(250);
/// Pause after a failed attempt to replace a lost association.
const PAUSE: Duration = Duration::from_millis(250);
/// Silence after which an association is replaced although the gateway was not restarted.
const ABANDONED_AFTER: Duration = Duration::from_secs(10);
/// Time for a target of this side to accept a connection.
const DIALLED_WITHIN: Duration = Duration::from_secs(10);

/// Configures an association for forwarding, on both sides. Connections share its rate equally, or by their weights.
pub fn configure(config: Config) -> Config {
    config.stream_control().streams(STREAMS).stream_scheduler(STREAM_SCHEDULER)
}

/// Association with a gateway that has answered.
#[derive(Debug)]
pub struct Connected {
    /// Endpoint of the association. Its paths follow changes of this machine's addresses while it is kept.
    endpoint: Endpoint,
    pub(crate) association: Association,
    instance: u64,
}

/// Error: there is no association with the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectFailed {
    /// Reason, with a remedy.
    pub message: String,
    /// Set if further attempts are useless.
    pub is_final: bool,
}

impl Connected {
    /// Returns the association.
    pub fn association(&self) -> &Association {
        &self.association
    }

    /// Returns the endpoint of the association.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }
}

/// Checks that the peer is a gateway of this version.
///
/// # Errors
/// Returns the reason, and aborts the association.
pub async fn greet((endpoint, association): (Endpoint, Association)) -> Result<Connected, ConnectFailed> {
    let replied = async {
        send_probe(&association).await?;
        let message = association.recv().await.ok().flatten()?;
        Some(Notice::decode(&message.payload))
    };
    let why = match timeout(GREETED_WITHIN, replied).await {
        Ok(Some(Ok(Notice::ProbeReply { instance }))) => {
            return Ok(Connected { endpoint, association, instance });
        }
        Ok(Some(Err(Failure::Version))) => Failure::Version.to_string(),
        Ok(_) | Err(_) => "the other side is not a gateway that serves this key; run `anabranch gateway` there and read its messages".to_owned(),
    };
    association.abort();
    Err(ConnectFailed { message: why, is_final: false })
}

pub(crate) async fn send_probe(association: &Association) -> Option<()> {
    association.send(Notice::Probe.encode(), SendOptions::default().unordered()).await.ok()
}

/// End of the use of an association.
enum Ended {
    Replaced(Connected),
    Lost(String),
}

/// Keeps an association with the gateway, which `uplink` uses already. Returns after an error that makes further attempts useless.
pub(crate) async fn keep<F>(uplink: &Uplink, first: Connected, connect: impl Fn() -> F) -> ConnectFailed
where
    F: Future<Output = Result<(Endpoint, Association), ConnectFailed>>,
{
    let attempt = || async { greet(connect().await?).await };
    let mut current = first;
    loop {
        let next = match Tended::new(uplink, &current).run(&attempt).await {
            Ended::Replaced(next) => {
                uplink.report(Event::Lost { why: "the gateway was restarted or has lost it".to_owned() });
                Ok(next)
            }
            Ended::Lost(why) => {
                uplink.leave();
                uplink.report(Event::Lost { why });
                reconnect(&attempt).await
            }
        };
        current.association.abort();
        match next {
            Ok(next) => current = next,
            Err(failed) => return failed,
        }
        uplink.enter(&current.association);
        uplink.report(Event::Restored);
    }
}

/// Tries to connect until it succeeds.
async fn reconnect<F>(attempt: impl Fn() -> F) -> Result<Connected, ConnectFailed>
where
    F: Future<Output = Result<Connected, ConnectFailed>>,
{
    loop {
        match attempt().await {
            Err(failed) if !failed.is_final => sleep(PAUSE).await,
            outcome => return outcome,
        }
    }
}

/// Association in use.
struct Tended<'a> {
    uplink: &'a Uplink,
    current: &'a Connected,
    liveness: Liveness,
    silence: Duration,
    /// Copies of the association that are counted already.
    copies: u64,
    streams: JoinSet<()>,
}

impl<'a> Tended<'a> {
    fn new(uplink: &'a Uplink, current: &'a Connected) -> Self {
        let liveness = Liveness::new(Instant::now());
        Tended { uplink, current, liveness, silence: Duration::ZERO, copies: 0, streams: JoinSet::new() }
    }

    async fn run<F>(mut self, attempt: impl Fn() -> F) -> Ended
    where
        F: Future<Output = Result<Connected, ConnectFailed>>,
    {
        let association = &self.current.association;
        for (id, forwarding) in self.uplink.remote() {
            let listening =
                listen_remotely(association.clone(), *id, forwarding.clone(), self.uplink.reporter());
            self.streams.spawn(listening);
        }
        let mut ticks = interval(OBSERVED_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut replacement: Option<Pin<Box<F>>> = None;
        loop {
            let replacing = async {
                match &mut replacement {
                    Some(attempt) => attempt.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = association.closed() => return Ended::Lost(why(ended.err())),
                message = association.recv() => match message {
                    Ok(Some(message)) if self.accepts(&message.payload) => {}
                    Ok(Some(_)) => return Ended::Lost("the gateway sent a malformed message".to_owned()),
                    Ok(None) | Err(_) => return Ended::Lost(why(association.closed().await.err())),
                },
                Ok(Some(stream)) = association.accept_stream() => self.incoming(stream),
                _ = ticks.tick() => {
                    self.observe().await;
                    if self.silence > Duration::ZERO && replacement.is_none() {
                        replacement = Some(Box::pin(attempt()));
                    }
                }
                connected = replacing => {
                    replacement = None;
                    match connected {
                        Ok(next) if self.is_better(&next) => return Ended::Replaced(next),
                        Ok(next) => next.association.abort(),
                        Err(_) => {}
                    }
                }
                Some(_) = self.streams.join_next() => {}
            }
        }
    }

    /// Returns `true` if the association has to be replaced by another one with the gateway.
    fn is_better(&self, next: &Connected) -> bool {
        let was_restarted = next.instance != self.current.instance;
        self.silence > Duration::ZERO && (was_restarted || self.silence > ABANDONED_AFTER)
    }

    /// Handles an unordered message. Returns `false` if it violates the protocol.
    fn accepts(&self, payload: &[u8]) -> bool {
        match Notice::decode(payload) {
            Ok(Notice::ProbeReply { instance }) => instance == self.current.instance,
            Ok(Notice::Datagram { flow, peer, payload }) => {
                self.uplink.pass(flow, (peer, payload));
                true
            }
            Ok(Notice::Probe) | Err(_) => false,
        }
    }

    async fn observe(&mut self) {
        let association = &self.current.association;
        let snapshot = association.snapshot().await;
        let delivered: u64 = snapshot.paths.iter().map(|path| path.delivered_bytes).sum();
        let observation = Observation {
            heard: delivered + snapshot.statistics.sacks_received + snapshot.statistics.chunks_received,
            is_unacknowledged: snapshot.send_buffered_bytes > 0,
            is_used: self.uplink.is_used(),
        };
        let copies = snapshot.statistics.copies_sent;
        self.uplink.tally().copied(copies.saturating_sub(self.copies));
        self.copies = copies;
        self.silence = Duration::ZERO;
        match self.liveness.observe(Instant::now(), observation) {
            Verdict::Alive => {}
            // Data waits if there is no room for the probe.
            Verdict::Probe => drop(timeout(Duration::ZERO, send_probe(association)).await),
            Verdict::Silent(silence) => self.silence = silence,
        }
        self.uplink.set_silent(self.silence > Duration::ZERO);
    }

    /// Serves a stream that the gateway has opened.
    fn incoming(&mut self, (sender, receiver): (SendStream, RecvStream)) {
        let targets: BTreeMap<u32, Target> =
            self.uplink.remote().map(|(id, forwarding)| (*id, forwarding.target.clone())).collect();
        self.streams.spawn(serve_incoming(self.uplink.clone(), targets, sender, receiver));
    }
}

fn why(reason: Option<impl ToString>) -> String {
    reason.map_or_else(|| "the gateway ended it".to_owned(), |reason| reason.to_string())
}

async fn serve_incoming(
    uplink: Uplink,
    targets: BTreeMap<u32, Target>,
    mut sender: SendStream,
    mut receiver: RecvStream,
) {
    let target = match read_request(&mut receiver).await {
        Ok(Request::Incoming { id, .. }) => targets.get(&id).ok_or(Failure::Forbidden),
        Ok(_) => Err(Failure::Malformed),
        Err(failure) => Err(failure),
    };
    let dialled = match target {
        Ok(target) => {
            let dialled = dial(target, None, DIALLED_WITHIN).await;
            dialled.map(|connection| (connection, target)).map_err(|failure| (Some(target.clone()), failure))
        }
        Err(failure) => Err((None, failure)),
    };
    match dialled {
        Ok((connection, target)) => {
            let port = connection.local_addr().map_or(0, |local| local.port());
            if uplink.has_priority(target) {
                prioritise(&mut sender);
            }
            if answer(&mut sender, Answer::Ready { port }).await.is_ok() {
                let counted = uplink.tally().opened(target.to_string());
                splice(connection, Bytes::new(), (sender, receiver), counted).await;
            }
        }
        Err((target, failure)) => {
            uplink.failed(target, failure);
            refuse(sender, failure).await;
        }
    }
}

/// Requests a listener at the gateway, and keeps its stream until the gateway ends it.
async fn listen_remotely(association: Association, id: u32, forwarding: Forwarding, report: Reporter) {
    let Ok((mut sender, mut receiver)) = association.open_stream().await else { return };
    let Forwarding { listen, target } = forwarding;
    match request(&mut sender, &mut receiver, &Request::Listen { id, listen }).await {
        Outcome::Ready(port) => {
            report(Event::RemoteListening { port, target });
            // The gateway sends nothing but the end of the stream.
            let _ = receiver.recv().await;
        }
        Outcome::Failed(failure) => report(Event::RemoteNotListening { port: listen.port, failure }),
        Outcome::Lost => {}
    }
}
