//! Way to the gateway: the current association, on which streams to targets are opened, and the counters.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_mapping::FlowRate;
use anabranch_net::{Association, RecvStream, SendStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::copies::Copies;
use crate::datagrams::{Carrier, Datagram, MAX_QUEUED, Queue};
use crate::event::{Event, Reporter};
use crate::failure::Failure;
use crate::listen_spec::Forwarding;
use crate::message::Request;
use crate::priority::{Priority, prioritise};
use crate::request::{Outcome, request};
use crate::tally::Tally;
use crate::target::Target;

/// Time that a new connection waits for an association with the gateway.
const GATEWAY_WITHIN: Duration = Duration::from_secs(10);
/// Time for the gateway to answer a request, after its own time for the target.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);
/// Time for the association to end.
const CLOSED_WITHIN: Duration = Duration::from_secs(1);
/// Number of associations on which a request is tried.
const MAX_TRIES: usize = 3;

/// Way to the gateway. Clones share the association and the counters.
#[derive(Clone)]
pub(crate) struct Uplink {
    inner: Arc<Inner>,
}

/// Association with the gateway.
#[derive(Clone)]
struct Session {
    number: u64,
    association: Association,
    datagrams: Carrier,
}

struct Inner {
    session: watch::Sender<Option<Session>>,
    entered: AtomicU64,
    tally: Tally,
    /// Number of connections that wait for an answer of the gateway.
    requests: AtomicUsize,
    /// Set while the gateway acknowledges nothing.
    is_silent: AtomicBool,
    /// Queues of the flows of datagrams, by number.
    flows: Mutex<BTreeMap<u32, mpsc::Sender<Datagram>>>,
    copies: Copies,
    remote: Vec<(u32, Forwarding)>,
    /// Ports whose connections have priority.
    priority: Priority,
    report: Reporter,
}

impl Uplink {
    /// Returns the way to a gateway that is not connected yet, with these listeners there.
    pub(crate) fn new(remote: Vec<Forwarding>, priority: Priority, report: Reporter) -> Self {
        let inner = Inner {
            session: watch::Sender::new(None),
            entered: AtomicU64::new(0),
            tally: Tally::default(),
            requests: AtomicUsize::new(0),
            is_silent: AtomicBool::new(false),
            flows: Mutex::default(),
            copies: Copies::new(),
            remote: (0..).zip(remote).collect(),
            priority,
            report,
        };
        Uplink { inner: Arc::new(inner) }
    }

    /// Returns the counters.
    pub(crate) fn tally(&self) -> &Tally {
        &self.inner.tally
    }

    /// Opens a stream to a target. A request whose association is lost before the answer is repeated on the next one.
    pub(crate) async fn open(&self, target: &Target) -> Result<(SendStream, RecvStream), Failure> {
        let _counted = CountedRequest::new(&self.inner.requests);
        let mut tried = None;
        for _ in 0..MAX_TRIES {
            let Session { number, association, .. } = self.session_after(tried).await?;
            let opened = timeout(ANSWERED_WITHIN, async {
                let Ok((mut sender, mut receiver)) = association.open_stream().await else {
                    return Ok(None);
                };
                let wanted = match self.has_priority(target) {
                    true => {
                        prioritise(&mut sender);
                        Request::ConnectFirst(target.clone())
                    }
                    false => Request::Connect(target.clone()),
                };
                match request(&mut sender, &mut receiver, &wanted).await {
                    Outcome::Ready(_) => Ok(Some((sender, receiver))),
                    Outcome::Failed(failure) => Err(failure),
                    Outcome::Lost => Ok(None),
                }
            });
            match opened.await {
                Ok(Ok(Some(streams))) => {
                    self.report(Event::Opened { target: target.clone() });
                    return Ok(streams);
                }
                Ok(Ok(None)) => tried = Some(number),
                Ok(Err(failure)) => return Err(failure),
                Err(_) if self.inner.is_silent.load(Ordering::Relaxed) => return Err(Failure::NoGateway),
                Err(_) => return Err(Failure::TimedOut),
            }
        }
        Err(Failure::NoGateway)
    }

    /// Returns `true` if connections to this target have priority.
    pub(crate) fn has_priority(&self, target: &Target) -> bool {
        self.inner.priority.includes(target.port)
    }

    /// Returns the association, or the next one if it is the one that was tried. Waits for it.
    async fn session_after(&self, tried: Option<u64>) -> Result<Session, Failure> {
        let mut session = self.inner.session.subscribe();
        let is_next =
            |session: &Option<Session>| session.as_ref().is_some_and(|one| tried != Some(one.number));
        let found = timeout(GATEWAY_WITHIN, session.wait_for(is_next)).await;
        found.ok().and_then(Result::ok).and_then(|session| session.clone()).ok_or(Failure::NoGateway)
    }

    /// Ends the association with the gateway: gracefully, or by an ABORT that resets open connections.
    pub(crate) async fn close(&self) {
        let session = self.inner.session.send_replace(None);
        if let Some(Session { association, .. }) = session {
            if self.inner.tally.totals().open == 0 {
                let _ = timeout(CLOSED_WITHIN, association.shutdown()).await;
            }
            association.abort();
            // The peer detects the end later if no packet reaches it.
            let _ = timeout(CLOSED_WITHIN, association.closed()).await;
        }
    }

    /// Counts and reports a connection that was not opened.
    pub(crate) fn failed(&self, target: Option<Target>, failure: Failure) {
        self.inner.tally.failed(failure);
        self.report(Event::NotOpened { target, failure });
    }

    pub(crate) fn report(&self, event: Event) {
        (self.inner.report)(event);
    }

    pub(crate) fn reporter(&self) -> Reporter {
        Arc::clone(&self.inner.report)
    }

    /// Returns the listeners at the gateway, by number.
    pub(crate) fn remote(&self) -> impl Iterator<Item = &(u32, Forwarding)> {
        self.inner.remote.iter()
    }

    /// Returns `true` if connections are open or wait for the gateway.
    pub(crate) fn is_used(&self) -> bool {
        let requests = self.inner.requests.load(Ordering::Relaxed);
        requests > 0
            || !self.flows().is_empty()
            || !self.inner.remote.is_empty()
            || self.inner.tally.totals().open > 0
    }

    /// Begins a flow of datagrams.
    pub(crate) fn begin_flow(&self) -> Flow {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (queue, datagrams) = mpsc::channel(MAX_QUEUED);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        self.flows().insert(id, queue);
        Flow { uplink: self.clone(), id, rate: FlowRate::default(), datagrams }
    }

    /// Passes a datagram for a program to its flow. Those of flows that have ended are dropped.
    pub(crate) fn pass(&self, flow: u32, datagram: Datagram) {
        if let Some(queue) = self.flows().get(&flow) {
            let _ = queue.try_send(datagram);
        }
    }

    fn flows(&self) -> MutexGuard<'_, BTreeMap<u32, mpsc::Sender<Datagram>>> {
        self.inner.flows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records whether the gateway acknowledges nothing.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        self.inner.is_silent.store(is_silent, Ordering::Relaxed);
    }

    /// Uses an association for new connections from now on.
    pub(crate) fn enter(&self, association: &Association) {
        let number = self.inner.entered.fetch_add(1, Ordering::Relaxed);
        let datagrams = Carrier::new(association.clone());
        let session = Session { number, association: association.clone(), datagrams };
        self.inner.session.send_replace(Some(session));
    }

    /// Lets new connections wait for another association.
    pub(crate) fn leave(&self) {
        self.inner.session.send_replace(None);
    }
}

/// Flow of datagrams of a program. It ends when it is dropped.
pub(crate) struct Flow {
    uplink: Uplink,
    id: u32,
    rate: FlowRate,
    datagrams: Queue,
}

impl Flow {
    /// Sends a datagram of the program, or drops it if there is no association with the gateway.
    pub(crate) async fn send(&mut self, datagram: Datagram) {
        let session = self.uplink.inner.session.borrow().clone();
        if let Some(Session { datagrams, .. }) = session {
            let bytes = datagram.1.len();
            self.uplink.tally().sent_to_peer(bytes);
            let duplicate = self.uplink.inner.copies.wants(&mut self.rate, bytes);
            datagrams.send(self.id, datagram, duplicate).await;
        }
    }

    /// Returns the next datagram for the program. Cancel-safe.
    pub(crate) async fn recv(&mut self) -> Option<Datagram> {
        let datagram = self.datagrams.recv().await?;
        self.uplink.tally().received_from_peer(datagram.1.len());
        Some(datagram)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.uplink.flows().remove(&self.id);
    }
}

/// Connection that waits for an answer of the gateway, until it is dropped.
struct CountedRequest<'a>(&'a AtomicUsize);

impl<'a> CountedRequest<'a> {
    fn new(requests: &'a AtomicUsize) -> Self {
        requests.fetch_add(1, Ordering::Relaxed);
        CountedRequest(requests)
    }
}

impl Drop for CountedRequest<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
