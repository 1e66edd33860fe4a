//! The task that owns the sockets, the endpoint and the timers.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Instant;

use anabranch_core::time::Time;
use anabranch_core::{
    AssociationEvent, AssociationId, Endpoint, Handled, LocalEnd, PathAddress, ReceivedMessage, SendError,
};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;

use crate::accept_queue::AcceptQueue;
use crate::clock::Clock;
use crate::error::{CloseReason, ConnectError, PathError};
use crate::key_store::KeyStore;
use crate::message::Message;
use crate::observer::DatagramOutcome;
use crate::observer_slot::ObserverSlot;
use crate::outlet::Outlet;
use crate::pairing::Pairing;
use crate::peer::udp_address;
use crate::refusals::Refusals;
use crate::shared::{
    Command, Commands, Connect, Handle, INBOX_LIMIT, Inbound, OUTBOX_LIMIT, Phase, Shared, State,
};
use crate::snapshot::{AssociationReport, HostReport, HostStatistics, Snapshot};
use crate::socket::{Ask, RecvBuffers, Socket, SocketCounters};

/// Calls that receive from one socket before the others have their turn and the endpoint its say.
const RECV_CALLS: usize = 4;

/// The same while more is to be sent than a turn takes: answers to it come in as fast as it leaves.
const RECV_CALLS_BEHIND: usize = 16;

/// Commands in one turn.
const COMMANDS: usize = 256;

/// Bytes of packets in one turn, before what has arrived meanwhile is looked at. A socket has no room for what arrives while thousands
/// of associations send all that their windows let them: the system drops SACKs then, and time-outs follow.
const TURN_BYTES: usize = 512 << 10;

pub(crate) struct Driver {
    pub(crate) clock: Clock,
    pub(crate) endpoint: Endpoint,
    pub(crate) sockets: Vec<Socket>,
    /// Counters of sockets that have been closed since.
    pub(crate) closed: SocketCounters,
    commands: mpsc::UnboundedReceiver<Command>,
    /// For handles of associations that peers open; none can be made once no handle of any kind is left.
    handles: mpsc::WeakUnboundedSender<Command>,
    queue: Weak<AcceptQueue>,
    /// The associations that are not closed.
    pub(crate) entries: BTreeMap<AssociationId, Arc<Shared>>,
    /// Associations to service before the next wait.
    pub(crate) due: BTreeSet<AssociationId>,
    /// Closed associations whose last packets may still have to leave.
    pub(crate) spent: Vec<AssociationId>,
    pub(crate) keys: KeyStore,
    pub(crate) pairing: Pairing,
    pub(crate) refusals: Refusals,
    pub(crate) watch: ObserverSlot,
    /// Every handle has been dropped.
    unattended: bool,
    /// The endpoint had more to send than this turn takes.
    behind: bool,
}

/// The task's ends of the channel that commands come through.
pub(crate) struct CommandEnds {
    pub(crate) commands: mpsc::UnboundedReceiver<Command>,
    /// See [`Driver::handles`].
    pub(crate) handles: mpsc::WeakUnboundedSender<Command>,
}

impl Driver {
    pub(crate) fn new(
        clock: Clock,
        endpoint: Endpoint,
        sockets: Vec<Socket>,
        ends: CommandEnds,
        queue: Weak<AcceptQueue>,
        keys: KeyStore,
        watch: ObserverSlot,
    ) -> Self {
        let CommandEnds { commands, handles } = ends;
        Driver {
            clock,
            endpoint,
            sockets,
            closed: SocketCounters::default(),
            commands,
            handles,
            queue,
            entries: BTreeMap::new(),
            due: BTreeSet::new(),
            spent: Vec::new(),
            keys,
            pairing: Pairing::default(),
            refusals: Refusals::default(),
            watch,
            unattended: false,
            behind: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut sleep = Box::pin(tokio::time::sleep_until(self.clock.instant(self.clock.now())));
        self.look_at_interfaces();
        loop {
            // Messages that were accepted come before packets that may say that it is too late for them.
            self.take_commands();
            self.settle();
            // What came while the process was held up is older than the time-outs that have passed meanwhile, and may answer them.
            let due = self.endpoint.poll_timeout().is_some_and(|at| at <= self.clock.now());
            self.receive(if due { Ask::System } else { Ask::Runtime });
            self.handle_refusals();
            self.handle_timeout();
            self.offer_paths();
            self.settle();
            if self.unattended {
                self.refuse_pending();
            }
            if self.is_done() {
                return;
            }
            if self.behind {
                // The runtime hears of what has arrived meanwhile.
                tokio::task::yield_now().await;
                continue;
            }
            self.watch.idle(self.clock.now());
            if let Some(command) = self.wait(sleep.as_mut()).await {
                self.handle_command(command);
            }
        }
    }

    fn handle_timeout(&mut self) {
        let now = self.clock.now();
        if self.watch.is_on() && self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            // The endpoint does not say whose timers expired.
            self.endpoint.associations().for_each(|id| self.watch.touch(id));
        }
        self.endpoint.handle_timeout(now);
        self.due.extend(self.keys.due(now));
    }

    fn is_done(&self) -> bool {
        let nothing_left = self.entries.is_empty() && self.spent.is_empty();
        self.unattended && nothing_left && !self.behind && self.sockets.iter().all(Socket::is_idle)
    }

    /// Waits for a command, a datagram, room in a blocked socket, or the next deadline.
    async fn wait(&mut self, mut sleep: Pin<&mut Sleep>) -> Option<Command> {
        self.report_errors();
        let deadlines = [
            self.endpoint.poll_timeout(),
            self.keys.deadline(),
            self.pairing.deadline(),
            self.refusals.deadline(),
        ];
        let next = deadlines.into_iter().flatten().min();
        let deadline = next.map(|at| self.clock.instant(at));
        if let Some(deadline) = deadline
            && sleep.deadline() != deadline
        {
            sleep.as_mut().reset(deadline);
        }
        let Driver { sockets, commands, unattended, .. } = self;
        let ready = poll_fn(|cx| poll_sockets(sockets, cx));
        tokio::select! {
            command = commands.recv(), if !*unattended => {
                *unattended = command.is_none();
                command
            }
            () = ready => None,
            () = error_of_any(sockets) => None,
            () = sleep, if deadline.is_some() => None,
        }
    }

    fn take_commands(&mut self) {
        for _ in 0..COMMANDS {
            match self.commands.try_recv() {
                Ok(command) => self.handle_command(command),
                Err(_) => return,
            }
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Connect(connect, reply) => {
                // If nobody waits any more, the handle is dropped and the association aborted.
                let _ = reply.send(self.connect(*connect));
            }
            Command::Wake(id) => {
                self.due.insert(id);
            }
            Command::AddPath(id, path, reply) => {
                let _ = reply.send(self.add_path(id, path));
            }
            Command::RemovePath(id, path, reply) => {
                let _ = reply.send(self.remove_path(id, path));
            }
            Command::StopAccepting => self.endpoint.stop_accepting(),
            Command::Snapshot(id, reply) => self.snapshot(id, reply),
            Command::AddLocal(address, reply) => {
                let _ = reply.send(self.add_local(&address));
            }
            Command::RemoveLocal(address, reply) => {
                let _ = reply.send(self.remove_local(address));
            }
            Command::LookAtInterfaces => self.look_at_interfaces(),
            Command::Reconnected(local) => self.reconnected(local),
            Command::PairAgain => self.pair_again(),
            Command::Locals(reply) => {
                let _ = reply.send(self.locals());
            }
            Command::Export(id, export, reply) => {
                let mut out = vec![0; export.length];
                let done = self.keys.export(id, &export.label, export.context.as_deref(), &mut out);
                let _ = reply.send(done.map(|()| out));
            }
            Command::Statistics(reply) => {
                let _ = reply.send(self.statistics());
            }
            Command::Report(reply) => {
                let _ = reply.send(self.report());
            }
        }
    }

    fn snapshot(&self, id: AssociationId, reply: oneshot::Sender<Snapshot>) {
        if let Some(association) = self.endpoint.association(id) {
            let _ = reply.send(Snapshot::of(association));
        }
    }

    fn report(&self) -> HostReport {
        let associations = self.entries.keys().filter_map(|id| {
            let association = self.endpoint.association(*id)?;
            let established = association.is_established();
            Some(AssociationReport { number: id.number(), established, snapshot: Snapshot::of(association) })
        });
        HostReport { statistics: self.statistics(), associations: associations.collect() }
    }

    fn statistics(&self) -> HostStatistics {
        let mut statistics = HostStatistics {
            discards: *self.endpoint.discards(),
            keying: self.keys.counters(),
            associations: self.entries.len(),
            ..HostStatistics::default()
        };
        for counters in self.sockets.iter().map(|socket| &socket.counters).chain([&self.closed]) {
            statistics.datagrams_received += counters.received;
            statistics.bytes_received += counters.received_bytes;
            statistics.datagrams_sent += counters.sent;
            statistics.bytes_sent += counters.sent_bytes;
            statistics.send_calls += counters.send_calls;
            statistics.send_failures += counters.failures;
            statistics.send_overflows += counters.overflows;
        }
        statistics
    }

    fn connect(&mut self, connect: Connect) -> Result<Handle, ConnectError> {
        let Connect { paths, sctp_port, mut config, dtls, restart } = connect;
        config.trace = self.watch.wants_decisions();
        let paths = self.check_paths(&paths, sctp_port)?;
        let handles = self.handles.upgrade().ok_or(ConnectError::HostGone)?;
        let streams = config.streams;
        let now = self.clock.now();
        let id = match restart {
            Some(keys) => self.endpoint.restart(now, sctp_port, &paths, config, keys)?,
            None => self.endpoint.connect(now, sctp_port, &paths, config)?,
        };
        if let Some(dtls) = dtls {
            self.keys.opened(id, dtls);
        }
        self.refusals.watch(now, id);
        self.report_errors();
        Ok(self.enter(id, streams, handles))
    }

    fn check_paths(
        &mut self,
        paths: &[PathAddress],
        sctp_port: u16,
    ) -> Result<Vec<PathAddress>, ConnectError> {
        //= docs/rfc9260.txt#section-3.1
        //# The Destination Port Number 0 MUST NOT be used.
        if sctp_port == 0 {
            return Err(ConnectError::PortZero);
        }
        let mut checked = Vec::with_capacity(paths.len());
        for &path in paths {
            checked.push(self.check_path(path)?);
            let remote = udp_address(path);
            //= docs/rfc9260.txt#section-1.3
            //# Two SCTP endpoints MUST NOT have more than one SCTP association between them at any given time.
            if self.endpoint.association_with(remote.ip(), Some(remote.port()), sctp_port).is_some() {
                return Err(ConnectError::Exists(remote));
            }
        }
        Ok(checked)
    }

    /// Checks that the host can have this path, and returns it with the interface that its socket is bound to.
    pub(crate) fn check_path(&self, path: PathAddress) -> Result<PathAddress, PathError> {
        let PathAddress { local, remote, udp_port, .. } = path;
        let mut of_address = self.sockets.iter().map(Socket::end).filter(|end| end.address == local);
        // A path that names no interface begins at the first socket of its address, and a socket that is bound to none serves all.
        let fits = |end: &LocalEnd| *end == path.local_end() || end.interface == 0 || path.interface == 0;
        let Some(end) = of_address.find(fits) else {
            let known = self.sockets.iter().map(|socket| socket.local().ip()).collect();
            return Err(PathError::NoSuchLocal { local, known });
        };
        if local.is_ipv4() != remote.is_ipv4() {
            return Err(PathError::Family { local, remote });
        }
        if udp_port == Some(0) {
            return Err(PathError::PortZero);
        }
        Ok(path.from_end(end))
    }

    fn enter(&mut self, id: AssociationId, streams: u16, commands: Commands) -> Handle {
        let shared = Arc::new(Shared::new(id, streams));
        self.entries.insert(id, Arc::clone(&shared));
        Handle { shared, commands }
    }

    /// Takes in what has arrived. What answers a datagram is written before the next one is looked at, unless that is a SACK which
    /// the next one may share. What other associations have to send is left for later: what has arrived at a socket is lost when
    /// the system has no room for more, and what waits here is not. Therefore answers end after a turn's bytes too while more is to
    /// be sent: each SACK lets go at least as much as it acknowledges, and that brings the next SACKs.
    fn receive(&mut self, ask: Ask) {
        RecvBuffers::lend(|buffers| self.receive_into(buffers, ask));
    }

    fn receive_into(&mut self, buffers: &mut RecvBuffers, ask: Ask) {
        let now = self.clock.now();
        let (calls, mut room) =
            if self.behind { (RECV_CALLS_BEHIND, TURN_BYTES) } else { (RECV_CALLS, usize::MAX) };
        let Driver { endpoint, sockets, watch, keys, due, .. } = self;
        for index in 0..sockets.len() {
            let (local, end) = (sockets[index].local(), sockets[index].end());
            for _ in 0..calls {
                let filled = sockets[index].recv(buffers, ask);
                if filled == 0 {
                    break;
                }
                for (from, datagram) in buffers.datagrams(filled) {
                    let address = PathAddress::over_udp(local.ip(), from).from_end(end);
                    let handled = endpoint.handle_datagram(now, address, datagram);
                    watch.datagram(now, local, from, datagram_outcome(handled), datagram);
                    if let Handled::New(id) | Handled::Delivered(id) = handled {
                        watch.touch(id);
                        // Its first message goes with the COOKIE ECHO that is about to leave.
                        if keys.is_to_begin(id)
                            && let Some(association) = endpoint.association_mut(id)
                        {
                            // A failure shows again when it is served.
                            let _ = keys.begin(now, id, association);
                            due.insert(id);
                        }
                    }
                    if room > 0 || handled == Handled::Replied {
                        let mut outlet = Outlet::new(now, sockets, watch);
                        room = room.saturating_sub(answer(endpoint, &mut outlet, handled));
                    }
                }
            }
        }
    }

    /// Lets out packets and events until the endpoint has nothing more to say, or the turn is over. Packets go first: whoever learns
    /// that an association is over may end the process.
    fn settle(&mut self) {
        loop {
            self.transmit();
            let mut quiet = true;
            while let Some((id, event)) = match self.behind {
                true => self.endpoint.poll_settled_event(),
                false => self.endpoint.poll_event(),
            } {
                quiet = false;
                self.on_event(id, event);
            }
            for id in std::mem::take(&mut self.due) {
                quiet = false;
                self.service_association(id);
            }
            if quiet || self.behind {
                break;
            }
        }
        let Driver { spent, endpoint, watch, clock, .. } = self;
        watch.look(clock.now(), endpoint);
        spent.retain(|id| !endpoint.forget(*id));
    }

    /// Lets out what this association has to send.
    pub(crate) fn transmit_of(&mut self, id: AssociationId) {
        let now = self.clock.now();
        let Driver { endpoint, sockets, watch, .. } = self;
        Outlet::new(now, sockets, watch)
            .gather(usize::MAX, |packet| endpoint.poll_transmit_of(now, id, packet));
    }

    /// Lets out what the endpoint has to send, as far as this turn goes.
    fn transmit(&mut self) {
        loop {
            let now = self.clock.now();
            let Driver { endpoint, sockets, watch, .. } = self;
            let mut outlet = Outlet::new(now, sockets, watch);
            let bytes = outlet.gather(TURN_BYTES, |packet| endpoint.poll_transmit(now, packet));
            outlet.flush();
            self.behind = bytes >= TURN_BYTES;
            if self.behind {
                self.endpoint.end_turn();
            }
            // A smaller probe follows at once; each time there is less left to search.
            if !self.report_too_long() {
                return;
            }
        }
    }

    /// The endpoint learns at once of packets that are longer than the interface takes; whether there were any.
    fn report_too_long(&mut self) -> bool {
        let refused = |socket: &mut Socket| {
            let local = socket.end();
            let packets = socket.take_too_long().into_iter();
            packets.map(move |(to, bytes)| (PathAddress::over_udp(local.address, to).from_end(local), bytes))
        };
        let too_long: Vec<(PathAddress, usize)> = self.sockets.iter_mut().flat_map(refused).collect();
        if too_long.is_empty() {
            return false;
        }
        // An interface may take less than it did.
        self.look_at_interfaces();
        let now = self.clock.now();
        for &(address, bytes) in &too_long {
            self.endpoint.packet_too_long(now, address, bytes);
        }
        true
    }

    fn on_event(&mut self, id: AssociationId, event: AssociationEvent) {
        self.watch.touch(id);
        if event == AssociationEvent::Connected {
            self.connected(id);
        }
        let Some(shared) = self.entries.get(&id).cloned() else {
            self.on_pending_event(id, event);
            return;
        };
        match event {
            AssociationEvent::Connected | AssociationEvent::Readable | AssociationEvent::Writable => {
                self.due.insert(id);
            }
            AssociationEvent::PathState { .. }
            | AssociationEvent::PathAdded { .. }
            | AssociationEvent::PathRebound { .. }
            | AssociationEvent::Abandoned { .. }
            | AssociationEvent::NoPartialReliability => shared.dispatch_event(event),
            AssociationEvent::PathRemoved { .. } => {
                shared.dispatch_event(event);
                self.pair(id);
            }
            AssociationEvent::PeerAddresses => self.reported(id),
            AssociationEvent::Restarted => {
                self.keys.restarted(id);
                self.restarted(id, &shared);
            }
            AssociationEvent::ShutdownReceived => {
                shared.lock().phase = Phase::PeerClosing;
                shared.dispatch_event(event);
                shared.notify_all();
            }
            AssociationEvent::Closed => {
                let (messages, restarted) = {
                    let state = shared.lock();
                    (state.outbox.len(), state.restarted_in_shutdown)
                };
                let outcome = match messages {
                    _ if restarted => Err(CloseReason::Restarted),
                    0 => Ok(()),
                    messages => Err(CloseReason::Undelivered { messages }),
                };
                shared.dispatch_event(event);
                self.on_closed(id, &shared, outcome);
            }
            AssociationEvent::Aborted(reason) => {
                let reason = self.reason_of_abort(id, reason);
                shared.dispatch_event(AssociationEvent::Aborted(reason));
                self.on_closed(id, &shared, Err(CloseReason::Aborted(reason)));
            }
        }
    }

    /// The handshake is done, or begun and done if the peer opened it. Nobody gets to use the association before there are keys,
    /// if there are to be any.
    fn connected(&mut self, id: AssociationId) {
        if !self.entries.contains_key(&id) && !self.keys.holds(id) {
            self.await_keys(id);
        }
        if self.keys.awaits_keys(id) {
            self.due.insert(id);
        } else {
            self.admit(id);
        }
    }

    /// The association may be used: by whoever opened it, or by whoever accepts it.
    pub(crate) fn admit(&mut self, id: AssociationId) {
        let streams = self.endpoint.association(id).map_or(0, anabranch_core::Association::outbound_streams);
        if !self.entries.contains_key(&id) {
            let (Some(queue), Some(handles)) = (self.queue.upgrade(), self.handles.upgrade()) else {
                self.refuse(id);
                return;
            };
            let association = self.enter(id, streams, handles);
            self.open(id, streams);
            queue.offer(association, self.source_of(id));
        }
        self.open(id, streams);
    }

    fn open(&self, id: AssociationId, streams: u16) {
        let Some(shared) = self.entries.get(&id) else { return };
        let mut state = shared.lock();
        state.streams = streams;
        state.partial_reliability = self.takes_forward_tsn(id);
        state.identity = self.keys.identity(id);
        state.protected = self.keys.holds(id);
        state.phase = Phase::Open;
        drop(state);
        shared.changed.notify_waiters();
    }

    fn takes_forward_tsn(&self, id: AssociationId) -> bool {
        self.endpoint.association(id).and_then(|association| association.supports_partial_reliability())
            == Some(true)
    }

    /// Nobody is there to accept it.
    fn refuse(&mut self, id: AssociationId) {
        let now = self.clock.now();
        if let Some(association) = self.endpoint.association_mut(id) {
            association.abort(now);
        }
        self.spent.push(id);
    }

    /// What was queued here for the peer's previous incarnation is discarded, as the endpoint discards what it had queued.
    fn restarted(&mut self, id: AssociationId, shared: &Arc<Shared>) {
        let mut state = shared.lock();
        state.outbox.clear();
        state.outbox_bytes = 0;
        state.inbox.push_back(Inbound::Restarted);
        state.restarted_in_shutdown = state.shutdown_wanted;
        state.restart_keys = None;
        state.partial_reliability = self.takes_forward_tsn(id);
        drop(state);
        shared.dispatch_event(AssociationEvent::Restarted);
        shared.notify_all();
        self.due.insert(id);
    }

    fn on_closed(&mut self, id: AssociationId, shared: &Arc<Shared>, outcome: Result<(), CloseReason>) {
        let now = self.clock.now();
        if let Some(association) = self.endpoint.association_mut(id) {
            let mut state = shared.lock();
            // The endpoint is about to forget it, so whatever can be read is taken now; its buffer bounds that.
            let mut keys =
                |piece: &_, payload: &[u8], at: &mut _| self.keys.take(now, id, (piece, payload), at);
            fill_inbox(&mut state, association, usize::MAX, &mut keys);
            state.last = Some(Snapshot::of(association));
            state.answered = association.has_answered();
        }
        self.watch.closed(self.clock.now(), id, &mut self.endpoint, &outcome);
        shared.close(outcome);
        self.entries.remove(&id);
        self.keys.forget(id);
        self.pairing.forget(id);
        self.spent.push(id);
    }

    /// Moves messages between an association's handles and the endpoint, and carries out what the handles asked for.
    fn service_association(&mut self, id: AssociationId) {
        self.watch.touch(id);
        let may_talk = self.serve_keys(id);
        let Some(shared) = self.entries.get(&id).cloned() else { return };
        let now = self.clock.now();
        let Some(association) = self.endpoint.association_mut(id) else { return };
        let mut state = shared.lock();
        state.woken = false;
        if state.abort_wanted {
            association.abort(now);
            return;
        }
        if !may_talk {
            return;
        }
        let mut keys = |piece: &_, payload: &[u8], at: &mut _| self.keys.take(now, id, (piece, payload), at);
        let (sent, received) = (
            empty_outbox(&mut state, association, now),
            fill_inbox(&mut state, association, INBOX_LIMIT, &mut keys),
        );
        if state.shutdown_wanted && state.outbox.is_empty() {
            association.shutdown(now);
        }
        drop(state);
        if sent {
            shared.writable.notify_waiters();
        }
        if received {
            shared.readable.notify_waiters();
        }
        self.advance_keys(id);
    }
}

impl Drop for Driver {
    /// The runtime may stop the task at any time; nobody is to wait for it then.
    fn drop(&mut self) {
        for shared in self.entries.values() {
            shared.close(Err(CloseReason::HostGone));
        }
        if let Some(queue) = self.queue.upgrade() {
            queue.host_gone();
        }
    }
}

fn poll_sockets(sockets: &[Socket], cx: &mut Context<'_>) -> Poll<()> {
    // Each is asked, so that each wakes the task.
    let ready = sockets.iter().filter(|socket| socket.poll_ready(cx).is_ready()).count();
    if ready > 0 { Poll::Ready(()) } else { Poll::Pending }
}

/// Waits until a socket has errors to report.
async fn error_of_any(sockets: &[Socket]) {
    let reporting = sockets.iter().filter(|socket| socket.reports_errors());
    let mut errors: Vec<_> = reporting.map(|socket| Box::pin(socket.error())).collect();
    poll_fn(|cx| {
        match errors.iter_mut().filter_map(|error| error.as_mut().poll(cx).is_ready().then_some(())).count() {
            0 => Poll::Pending,
            _ => Poll::Ready(()),
        }
    })
    .await;
}

fn datagram_outcome(handled: Handled) -> DatagramOutcome {
    match handled {
        Handled::New(_) | Handled::Delivered(_) | Handled::Replied => DatagramOutcome::Received,
        Handled::Discarded(reason) => DatagramOutcome::Discarded(reason),
    }
}

/// Gathers packets that answer a datagram, unless they may wait for those that arrived with it; how many bytes.
fn answer(endpoint: &mut Endpoint, outlet: &mut Outlet<'_>, handled: Handled) -> usize {
    let now = outlet.now;
    match handled {
        Handled::New(id) | Handled::Delivered(id) => {
            let waits = endpoint.association(id).is_none_or(|association| association.awaits_more());
            let most = if waits { 0 } else { usize::MAX };
            outlet.gather(most, |packet| endpoint.poll_transmit_of(now, id, packet))
        }
        Handled::Replied | Handled::Discarded(_) => {
            outlet.gather(usize::MAX, |packet| endpoint.poll_reply(packet))
        }
    }
}

/// Hands messages to the endpoint until its send buffer is full; whether senders that wait may go on.
fn empty_outbox(state: &mut State, association: &mut anabranch_core::Association, now: Time) -> bool {
    let full_before = state.outbox_bytes >= OUTBOX_LIMIT;
    while let Some(message) = state.outbox.front() {
        match association.send_at(now, message.payload.clone(), message.options(Instant::now)) {
            // The endpoint says so when there is room.
            Err(SendError::BufferFull { .. }) => break,
            // What is left is counted when the association ends.
            Err(SendError::Closing) => break,
            // It waits until there are keys.
            Err(SendError::NotProtected) => break,
            // A peer that has restarted may take less than before; `send` refuses then.
            Ok(())
            | Err(
                SendError::NoSuchStream { .. }
                | SendError::Empty
                | SendError::NoPartialReliability
                | SendError::KeyManagementOnly,
            ) => {
                state.outbox_bytes -= message.payload.len();
                state.outbox.pop_front();
            }
        }
    }
    full_before && state.outbox_bytes < OUTBOX_LIMIT
}

/// Reads from the endpoint until the inbox holds `limit` bytes; whether it got something. `keys` takes what is the key
/// management's.
fn fill_inbox(
    state: &mut State,
    association: &mut anabranch_core::Association,
    limit: usize,
    keys: &mut dyn FnMut(&ReceivedMessage, &[u8], &mut anabranch_core::Association) -> bool,
) -> bool {
    let mut any = false;
    while state.inbox_bytes < limit {
        let mut payload = Vec::new();
        let Some(piece) = association.recv(&mut payload) else {
            state.more = false;
            return any;
        };
        if keys(&piece, &payload, association) || state.abandoned {
            continue;
        }
        state.inbox_bytes += payload.len();
        state.inbox.push_back(Inbound::Message(message(piece, payload)));
        any = true;
    }
    state.more = true;
    any
}

fn message(piece: ReceivedMessage, payload: Vec<u8>) -> Message {
    let ReceivedMessage { stream, ppid, unordered, beginning, ending, .. } = piece;
    Message { stream, ppid, unordered, beginning, ending, payload: Bytes::from(payload) }
}
