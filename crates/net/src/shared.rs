//! State shared by the handles of an association and the endpoint's task: messages in transit, and mutual requests.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::keying::{ExportError, KeyingError, PeerIdentity, RestartKeys};
use crate::link_use::{LinkName, LinkUse};
use anabranch_core::protection::RestartContext;
use anabranch_core::{
    AssociationConfig, AssociationEvent, AssociationId, LocalEnd, PathAddress, PathId, SendOptions, SendRules,
};
use tokio::sync::{Notify, broadcast, mpsc, oneshot};

use crate::error::{CloseReason, ConnectError, LocalError, PathError, SendError};
use crate::event::KEPT_EVENTS;
use crate::mailbox::Mailbox;
use crate::message::Message;
use crate::protection::DtlsProtection;
use crate::refusals::RefusedPath;
use crate::side_outlet::SideDatagram;
use crate::snapshot::{EndpointReport, EndpointStatistics, Snapshot};
use crate::stream_state::{STREAM_CONTROL_PPID, StreamTable};

/// Bytes read from the endpoint ahead of the application.
pub(crate) const INBOX_LIMIT: usize = 256 << 10;

/// Command to the endpoint's task.
#[derive(Debug)]
pub(crate) enum Command {
    /// Opens an association.
    Connect(Box<Connect>, oneshot::Sender<Result<Handle, ConnectError>>),
    /// Checks the [`State`] that a handle has changed.
    Wake(AssociationId),
    /// Adds a path to an association.
    AddPath(AssociationId, PathAddress, oneshot::Sender<Result<PathId, PathError>>),
    /// Removes a path from an association.
    RemovePath(AssociationId, PathId, oneshot::Sender<Result<(), PathError>>),
    /// Refuses new associations of peers.
    StopAccepting,
    /// Returns the state of an association.
    Snapshot(AssociationId, oneshot::Sender<Snapshot>),
    /// Binds a further local address.
    AddLocal(BindAddress, oneshot::Sender<Result<SocketAddr, LocalError>>),
    /// Closes the sockets of a local address, on all interfaces if none is named.
    RemoveLocal(LocalEnd, oneshot::Sender<Result<(), LocalError>>),
    /// Takes a local address out of use.
    WithholdLocal(LocalEnd, oneshot::Sender<Result<(), LocalError>>),
    /// Puts a withheld local address into use again.
    RestoreLocal(LocalEnd, oneshot::Sender<Result<(), LocalError>>),
    /// Changes the use of a link.
    SetLinkUse(LinkName, LinkUse),
    /// Updates the MTUs of interfaces.
    LookAtInterfaces,
    /// Reports that the interface of a local address is connected again.
    Reconnected(LocalEnd),
    /// Repeats the pairing of local and reported addresses, since routes may have changed.
    PairAgain,
    /// Returns the bound local addresses.
    Locals(oneshot::Sender<Vec<SocketAddr>>),
    /// Returns the local ends of all sockets.
    LocalEnds(oneshot::Sender<Vec<LocalEnd>>),
    /// Opens the side channel.
    OpenSideChannel(oneshot::Sender<mpsc::Receiver<SideDatagram>>),
    /// Sends a datagram that is not an SCTP packet.
    SendSideDatagram(Box<SideDatagram>),
    /// Exports bytes derived from the keys of an association.
    Export(AssociationId, Box<Export>, oneshot::Sender<Result<Vec<u8>, ExportError>>),
    /// Returns the endpoint's counters.
    Statistics(oneshot::Sender<EndpointStatistics>),
    /// Returns the state of the endpoint and of all its associations.
    Report(oneshot::Sender<EndpointReport>),
}

/// Parameters of [`Command::Connect`].
#[derive(Debug)]
pub(crate) struct Connect {
    pub(crate) paths: Vec<PathAddress>,
    pub(crate) sctp_port: u16,
    pub(crate) config: AssociationConfig,
    /// Protection of the association, if any.
    pub(crate) dtls: Option<DtlsProtection>,
    /// Context for restarting a lost association.
    pub(crate) restart: Option<RestartContext>,
}

/// Parameters of [`Command::Export`].
#[derive(Debug)]
pub(crate) struct Export {
    pub(crate) label: Vec<u8>,
    pub(crate) context: Option<Vec<u8>>,
    pub(crate) length: usize,
}

/// Address of a socket.
#[derive(Clone, Debug)]
pub(crate) struct BindAddress {
    pub(crate) address: SocketAddr,
    /// Interface through which packets are sent.
    pub(crate) interface: Option<String>,
}

/// Sender of commands to the endpoint's task.
pub(crate) type Commands = mpsc::UnboundedSender<Command>;

/// Phase of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The handshake is in progress.
    Opening,
    /// The association is established.
    Open,
    /// The peer has shut down.
    PeerClosing,
    /// Closed, gracefully or not.
    Closed(Result<(), CloseReason>),
}

/// Item that waits to be received.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// Message, or a piece of one.
    Message(Message),
    /// End of the peer's previous incarnation.
    Restarted,
}

/// State behind the lock, which is never held across an await.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// Messages for the endpoint.
    pub(crate) mailbox: Mailbox,
    pub(crate) inbox: VecDeque<Inbound>,
    pub(crate) inbox_bytes: usize,
    /// Set if the endpoint has more data than the inbox takes.
    pub(crate) more: bool,
    /// Rules for messages of the application.
    pub(crate) rules: SendRules,
    /// Streams with handles.
    pub(crate) streams: StreamTable,
    /// Proved identity of the peer, if packets are protected.
    pub(crate) identity: Option<PeerIdentity>,
    /// Error that ended its key management.
    pub(crate) keying_error: Option<KeyingError>,
    /// Set at the end if the peer had answered the handshake.
    pub(crate) answered: bool,
    /// Paths on which the attempt to open it was refused.
    pub(crate) refused: Vec<RefusedPath>,
    /// Restart keys that the application has not taken yet.
    pub(crate) restart_keys: Option<RestartKeys>,
    pub(crate) shutdown_wanted: bool,
    pub(crate) abort_wanted: bool,
    /// Set if the endpoint aborts the association because its links are barred.
    pub(crate) is_barred: bool,
    /// Set once no handle is left.
    pub(crate) abandoned: bool,
    /// Set while a [`Command::Wake`] is pending.
    pub(crate) woken: bool,
    /// `None` before the first listener, because it needs room for [`KEPT_EVENTS`], and once the association is closed: listeners
    /// see the end of the stream.
    events: Option<broadcast::Sender<AssociationEvent>>,
    /// Set if the peer restarted after a shutdown was requested, which rules out a graceful end.
    pub(crate) restarted_in_shutdown: bool,
    /// State at the end of the association.
    pub(crate) last: Option<Snapshot>,
}

impl State {
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed(_))
    }

    /// Returns the error for new data on an association that has ended or is about to.
    pub(crate) fn is_ending(&self) -> Option<SendError> {
        let closing = SendError::from(anabranch_core::SendError::Closing);
        match self.phase {
            Phase::Closed(outcome) => Some(outcome.err().map_or(closing, SendError::Closed)),
            Phase::PeerClosing => Some(closing),
            _ => (self.shutdown_wanted || self.abort_wanted).then_some(closing),
        }
    }

    /// Checks whether a message can be accepted at all, now or later.
    pub(crate) fn admits(&self, payload: &[u8], options: SendOptions) -> Result<(), SendError> {
        if let Some(error) = self.is_ending() {
            return Err(error);
        }
        if self.streams.has_markers() && options.ppid == STREAM_CONTROL_PPID {
            return Err(SendError::ReservedProtocol);
        }
        Ok(self.rules.check(payload, options)?)
    }

    /// Returns the bytes that were read from the endpoint and not by the application.
    pub(crate) fn unread(&self) -> usize {
        self.inbox_bytes + self.streams.unread()
    }

    /// Wakes the tasks that wait on streams.
    fn wake_streams(&mut self) {
        self.streams.wake_all();
        self.mailbox.wake_all();
    }
}

/// Association as shared by its handles and the task.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) id: AssociationId,
    /// Set if the application uses stream handles.
    pub(crate) stream_control: bool,
    state: Mutex<State>,
    /// Notified when the inbox receives an item or the association is closed.
    pub(crate) readable: Notify,
    /// Notified when there is room for messages or the association is closed.
    pub(crate) writable: Notify,
    /// Notified when the phase changes.
    pub(crate) changed: Notify,
    /// Notified when a stream was opened by the peer, or its identifier became free.
    pub(crate) opened: Notify,
}

impl Shared {
    pub(crate) fn new(id: AssociationId, rules: SendRules, stream_control: bool) -> Self {
        let state = State {
            phase: Phase::Opening,
            mailbox: Mailbox::default(),
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            more: false,
            rules,
            streams: StreamTable::default(),
            identity: None,
            keying_error: None,
            answered: false,
            refused: Vec::new(),
            restart_keys: None,
            shutdown_wanted: false,
            abort_wanted: false,
            is_barred: false,
            abandoned: false,
            woken: false,
            events: None,
            restarted_in_shutdown: false,
            last: None,
        };
        Shared {
            id,
            stream_control,
            state: Mutex::new(state),
            readable: Notify::new(),
            writable: Notify::new(),
            changed: Notify::new(),
            opened: Notify::new(),
        }
    }

    /// Locks the state. A poisoned lock is still consistent, because no panic can interrupt a change.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the task, unless that is pending already.
    pub(crate) fn wake(&self, state: &mut State, commands: &Commands) {
        if !std::mem::replace(&mut state.woken, true) {
            // A task that ended has set the phase.
            let _ = commands.send(Command::Wake(self.id));
        }
    }

    /// Returns a receiver of future events, or `None` if the association is closed.
    pub(crate) fn listen(&self) -> Option<broadcast::Receiver<AssociationEvent>> {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Closed(_)) {
            return None;
        }
        Some(state.events.get_or_insert_with(|| broadcast::Sender::new(KEPT_EVENTS)).subscribe())
    }

    pub(crate) fn dispatch_event(&self, event: AssociationEvent) {
        if let Some(events) = &self.lock().events {
            // There may be no listeners.
            let _ = events.send(event);
        }
    }

    /// Closes the association and wakes all waiting tasks.
    pub(crate) fn close(&self, outcome: Result<(), CloseReason>) {
        let mut state = self.lock();
        if matches!(state.phase, Phase::Closed(_)) {
            return;
        }
        state.phase = Phase::Closed(outcome);
        state.mailbox.clear();
        state.more = false;
        state.events = None;
        state.restart_keys = None;
        drop(state);
        self.notify_all();
    }

    pub(crate) fn notify_all(&self) {
        self.lock().wake_streams();
        self.opened.notify_waiters();
        self.readable.notify_waiters();
        self.writable.notify_waiters();
        self.changed.notify_waiters();
    }
}

/// State shared by all handles of an association. Dropping the last one aborts the association, unless it has been shut down.
#[derive(Debug)]
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) commands: Commands,
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let peer_is_done = state.phase == Phase::PeerClosing && state.unread() == 0 && !state.more;
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

/// Waits until `look` returns a value, and calls it again after each notification. Cancel-safe if `look` only changes state when it
/// returns a value.
pub(crate) async fn wait_for<T>(notify: &Notify, mut look: impl FnMut() -> Option<T>) -> T {
    // The value is usually available at once, without registering for a notification.
    if let Some(found) = look() {
        return found;
    }
    loop {
        let mut notified = std::pin::pin!(notify.notified());
        // From here on no notification is missed.
        notified.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        notified.await;
    }
}
