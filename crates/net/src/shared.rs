//! What a handle of an association and the host's task share: messages on their way, and what each wants of the other.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_core::protection::RestartContext;
use anabranch_core::{AssociationConfig, AssociationEvent, AssociationId, LocalEnd, PathAddress, PathId};
use anabranch_keying::{ExportError, KeyingError, PeerIdentity, RestartKeys};
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use crate::error::{CloseReason, ConnectError, LocalError, PathError};
use crate::event::KEPT_EVENTS;
use crate::message::{Message, Outgoing};
use crate::protection::DtlsProtection;
use crate::refusals::RefusedPath;
use crate::snapshot::{HostReport, HostStatistics, Snapshot};

/// Bytes that may wait for the task before a sender has to.
pub(crate) const OUTBOX_LIMIT: usize = 256 << 10;

/// Bytes read from the endpoint ahead of the application.
pub(crate) const INBOX_LIMIT: usize = 256 << 10;

/// What handles ask of the task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Open an association.
    Connect(Box<Connect>, oneshot::Sender<Result<Handle, ConnectError>>),
    /// Look at [`State`], which a handle has changed.
    Wake(AssociationId),
    /// Add a path to an association.
    AddPath(AssociationId, PathAddress, oneshot::Sender<Result<PathId, PathError>>),
    /// Take a path from an association.
    RemovePath(AssociationId, PathId, oneshot::Sender<Result<(), PathError>>),
    /// Refuse associations that peers want to open.
    StopAccepting,
    /// Return the state of an association.
    Snapshot(AssociationId, oneshot::Sender<Snapshot>),
    /// Bind a further local address.
    AddLocal(BindAddress, oneshot::Sender<Result<SocketAddr, LocalError>>),
    /// Close the sockets of a local address: of all interfaces if none is named.
    RemoveLocal(LocalEnd, oneshot::Sender<Result<(), LocalError>>),
    /// Look at what packets the interfaces take.
    LookAtInterfaces,
    /// The interface of a local address is connected again.
    Reconnected(LocalEnd),
    /// Routes may have changed: pair local addresses with reported ones again.
    PairAgain,
    /// Return the local addresses that are bound.
    Locals(oneshot::Sender<Vec<SocketAddr>>),
    /// Derive something from the keys of an association.
    Export(AssociationId, Box<Export>, oneshot::Sender<Result<Vec<u8>, ExportError>>),
    /// Return the host's counters.
    Statistics(oneshot::Sender<HostStatistics>),
    /// Return the state of the host and of all of its associations.
    Report(oneshot::Sender<HostReport>),
}

/// Parameters of [`Command::Connect`].
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) paths: Vec<PathAddress>,
    pub(crate) sctp_port: u16,
    pub(crate) config: AssociationConfig,
    /// For an association that is to be protected.
    pub(crate) dtls: Option<DtlsProtection>,
    /// To restart one that was lost.
    pub(crate) restart: Option<RestartContext>,
}

/// Parameters of [`Command::Export`].
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) label: Vec<u8>,
    pub(crate) context: Option<Vec<u8>>,
    pub(crate) length: usize,
}

/// The address of a socket.
#[derive(Clone, Debug)]
pub(crate) struct BindAddress {
    pub(crate) address: SocketAddr,
    /// The interface that packets are to leave through.
    pub(crate) interface: Option<String>,
}

/// Sends commands to the host's task.
pub(crate) type Commands = mpsc::UnboundedSender<Command>;

/// The state of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake runs.
    Opening,
    /// Up.
    Open,
    /// The peer has shut down.
    PeerClosing,
    /// Closed, gracefully or not.
    Closed(Result<(), CloseReason>),
}

/// What waits to be received.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// A message, or a piece of one.
    Message(Message),
    /// The peer's previous incarnation ends here.
    Restarted,
}

/// The state behind the lock. Nobody holds it across an await.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) outbox: VecDeque<Outgoing>,
    pub(crate) outbox_bytes: usize,
    pub(crate) inbox: VecDeque<Inbound>,
    pub(crate) inbox_bytes: usize,
    /// The endpoint holds more to read than the inbox takes.
    pub(crate) more: bool,
    /// Streams that messages may be sent on.
    pub(crate) streams: u16,
    /// The peer takes FORWARD-TSN.
    pub(crate) partial_reliability: bool,
    /// Who the peer has proved to be, if packets are protected.
    pub(crate) identity: Option<PeerIdentity>,
    /// Error that has ended its key management.
    pub(crate) keying_error: Option<KeyingError>,
    /// Set on closing if the peer had answered the handshake.
    pub(crate) answered: bool,
    /// Paths on which the attempt to open it was refused.
    pub(crate) refused: Vec<RefusedPath>,
    /// Packets are protected, so that the messages of the key management are not the application's.
    pub(crate) protected: bool,
    /// For the application to store, which has not taken them yet.
    pub(crate) restart_keys: Option<RestartKeys>,
    pub(crate) shutdown_wanted: bool,
    pub(crate) abort_wanted: bool,
    /// No handle is left.
    pub(crate) abandoned: bool,
    /// A [`Command::Wake`] is on its way.
    pub(crate) woken: bool,
    /// None while nobody has listened, because it takes room for [`KEPT_EVENTS`], and once the association is closed: listeners see
    /// the end of the stream.
    events: Option<broadcast::Sender<AssociationEvent>>,
    /// The peer restarted after a shutdown had been asked for: it cannot end gracefully any more.
    pub(crate) restarted_in_shutdown: bool,
    /// Its state when it was closed.
    pub(crate) last: Option<Snapshot>,
}

/// An association as both sides see it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: AssociationId,
    state: Mutex<State>,
    /// Something came into the inbox, or it is closed.
    pub(crate) readable: Notify,
    /// The outbox has room, or it is closed.
    pub(crate) writable: Notify,
    /// The phase changed.
    pub(crate) changed: Notify,
}

impl Shared {
    pub(crate) fn new(id: AssociationId, streams: u16) -> Self {
        let state = State {
            phase: Phase::Opening,
            outbox: VecDeque::new(),
            outbox_bytes: 0,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            more: false,
            streams,
            partial_reliability: false,
            identity: None,
            keying_error: None,
            answered: false,
            refused: Vec::new(),
            protected: false,
            restart_keys: None,
            shutdown_wanted: false,
            abort_wanted: false,
            abandoned: false,
            woken: false,
            events: None,
            restarted_in_shutdown: false,
            last: None,
        };
        let (readable, writable, changed) = (Notify::new(), Notify::new(), Notify::new());
        Shared { id, state: Mutex::new(state), readable, writable, changed }
    }

    /// Nothing under this lock can be left half done by a panic, so a poisoned one is as good.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the task to look, unless it has been told.
    pub(crate) fn wake(&self, state: &mut State, commands: &Commands) {
        if !std::mem::replace(&mut state.woken, true) {
            // A task that is gone has said so in the phase.
            let _ = commands.send(Command::Wake(self.id));
        }
    }

    /// The events from now on; `None` if it is closed.
    pub(crate) fn listen(&self) -> Option<broadcast::Receiver<AssociationEvent>> {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Closed(_)) {
            return None;
        }
        Some(state.events.get_or_insert_with(|| broadcast::Sender::new(KEPT_EVENTS)).subscribe())
    }

    pub(crate) fn dispatch_event(&self, event: AssociationEvent) {
        if let Some(events) = &self.lock().events {
            // Nobody need listen.
            let _ = events.send(event);
        }
    }

    /// Closes it and wakes all that wait.
    pub(crate) fn close(&self, outcome: Result<(), CloseReason>) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Closed(_)) {
            return;
        }
        state.phase = Phase::Closed(outcome);
        state.outbox.clear();
        state.outbox_bytes = 0;
        state.more = false;
        state.events = None;
        state.restart_keys = None;
        drop(state);
        self.notify_all();
    }

    pub(crate) fn notify_all(&self) {
        self.readable.notify_waiters();
        self.writable.notify_waiters();
        self.changed.notify_waiters();
    }
}

/// What all handles of an association share. The last one to be dropped aborts the association, unless it has been shut down.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: Commands,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let peer_is_done = state.phase == Phase::PeerClosing && state.inbox.is_empty() && !state.more;
        state.abandoned = true;
        state.inbox.clear();
        state.inbox_bytes = 0;
        if matches!(state.phase, Phase::Closed(_)) {
            return;
        }
        state.abort_wanted |= !state.shutdown_wanted && !peer_is_done;
        self.shared.wake(&mut state, &self.commands);
    }
}

/// Waits until `look` finds what it looks for; `notify` says when to look again. Cancel-safe if `look` changes nothing unless it
/// finds something.
pub(crate) async fn wait_for<T>(notify: &Notify, mut look: impl FnMut() -> Option<T>) -> T {
    // Mostly it is there, and nobody has to stand in line for it.
    if let Some(found) = look() {
        return found;
    }
    loop {
        let mut notified = std::pin::pin!(notify.notified());
        // From here on no notification is missed, whatever happens before the await.
        notified.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        notified.await;
    }
}
