//! Task that owns the sockets, the endpoint and the timers.

use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use anabranch_core::{
    AssociationEvent, AssociationId, Endpoint, Handled, LocalEnd, PathAddress, ReceivedMessage,
};
use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Sleep;

use crate::accept_queue::AcceptQueue;
use crate::clock::Clock;
use crate::error::{CloseReason, ConnectError, PathError};
use crate::key_store::KeyStore;
use crate::link_use::LinkUses;
use crate::message::Message;
use crate::observer::DatagramOutcome;
use crate::observer_slot::ObserverSlot;
use crate::outlet::Outlet;
use crate::pairing::Pairing;
use crate::peer::udp_address;
use crate::refusals::Refusals;
use crate::shared::{Command, Commands, Connect, Handle, INBOX_LIMIT, Inbound, Phase, Shared, State};
use crate::side_outlet::SideOutlet;
use crate::snapshot::{AssociationReport, EndpointReport, EndpointStatistics, Snapshot};
use crate::socket::{ArrivalInfo, RecvBuffers, Socket, SocketCounters};
use crate::stream_state::{UNREAD_LIMIT, Violation};
use crate::withheld::WithheldEnds;

/// Receive calls on one socket before the other sockets and the endpoint get their turn.
const RECV_CALLS: usize = 4;

/// Receive calls per turn on one socket while a turn cannot send all data. Acknowledgements then arrive as fast as data is sent.
const RECV_CALLS_BEHIND: usize = 16;

/// Maximum number of commands per turn.
const COMMANDS: usize = 256;

/// Bytes of packets per turn, before arrived datagrams are read. While thousands of associations send full windows, a socket's
/// buffer overflows: the system drops SACKs, and time-outs follow.
const TURN_BYTES: usize = 512 << 10;

pub(crate) struct Driver {
    pub(crate) clock: Clock,
    pub(crate) endpoint: Endpoint,
    pub(crate) sockets: Vec<Socket>,
    /// Local ends that are out of use.
    pub(crate) withheld: WithheldEnds,
    /// Links with a cost or a limit.
    pub(crate) links: LinkUses,
    /// Sums of the counters of closed sockets.
    pub(crate) closed: SocketCounters,
    commands: mpsc::UnboundedReceiver<Command>,
    /// Sender for handles of associations that peers open. Upgrading fails once all handles are dropped.
    handles: mpsc::WeakUnboundedSender<Command>,
    queue: Weak<AcceptQueue>,
    /// Open associations.
    pub(crate) entries: BTreeMap<AssociationId, Arc<Shared>>,
    /// Associations to service before the next wait.
    pub(crate) due: BTreeSet<AssociationId>,
    /// Associations to service again after other tasks have run.
    due_later: BTreeSet<AssociationId>,
    /// Closed associations whose last packets may not have been sent yet.
    pub(crate) spent: Vec<AssociationId>,
    pub(crate) keys: KeyStore,
    pub(crate) pairing: Pairing,
    pub(crate) refusals: Refusals,
    pub(crate) watch: ObserverSlot,
    side: SideOutlet,
    /// Set once every handle has been dropped.
    unattended: bool,
    /// Set if the endpoint had more to send than a turn allows.
    behind: bool,
}

/// The task's ends of the command channel.
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
            withheld: WithheldEnds::default(),
            links: LinkUses::default(),
            closed: SocketCounters::default(),
            commands,
            handles,
            queue,
            entries: BTreeMap::new(),
            due: BTreeSet::new(),
            due_later: BTreeSet::new(),
            spent: Vec::new(),
            keys,
            pairing: Pairing::default(),
            refusals: Refusals::default(),
            watch,
            side: SideOutlet::default(),
            unattended: false,
            behind: false,
        }
    }

    pub(crate) async fn run(mut self) {
        let mut sleep = Box::pin(tokio::time::sleep_until(self.clock.instant(self.clock.now())));
        self.update_interface_mtus();
        loop {
            // Commands are handled before packets, because a packet may end the association that an accepted message is for.
            self.take_commands();
            self.settle();
            // Datagrams that arrived while the process was suspended are older than the expired time-outs, and may prevent them.
            let due = self.endpoint.poll_timeout().is_some_and(|at| at <= self.clock.now());
            self.receive(if due { ArrivalInfo::System } else { ArrivalInfo::Runtime });
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
            if self.behind || !self.due_later.is_empty() {
                self.due.append(&mut self.due_later);
                // Lets the runtime detect arrived datagrams, and writers use the room for messages.
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
            // The endpoint does not report the associations whose timers have expired, so all associations are marked for the
            // observer.
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
                // If the caller has dropped its future, the handle is dropped and the association aborted.
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
            Command::WithholdLocal(end, reply) => {
                let _ = reply.send(self.withhold_local(end));
            }
            Command::RestoreLocal(end, reply) => {
                let _ = reply.send(self.restore_local(end));
            }
            Command::SetLinkUse(name, usage) => self.set_link_use(&name, usage),
            Command::LookAtInterfaces => self.update_interface_mtus(),
            Command::Reconnected(local) => self.reconnected(local),
            Command::PairAgain => self.pair_again(),
            Command::Locals(reply) => {
                let _ = reply.send(self.locals());
            }
            Command::LocalEnds(reply) => {
                let _ = reply.send(self.local_ends());
            }
            Command::OpenSideChannel(reply) => {
                let _ = reply.send(self.side.open());
            }
            Command::SendSideDatagram(datagram) => self.send_side_datagram(&datagram),
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

    fn report(&self) -> EndpointReport {
        let associations = self.entries.keys().filter_map(|id| {
            let association = self.endpoint.association(*id)?;
            let established = association.is_established();
            Some(AssociationReport { number: id.number(), established, snapshot: Snapshot::of(association) })
        });
        EndpointReport {
            statistics: self.statistics(),
            associations: associations.collect(),
            withheld: self.withheld.iter().collect(),
            links: self.links.report(&self.sockets),
        }
    }

    fn statistics(&self) -> EndpointStatistics {
        let mut statistics = EndpointStatistics {
            discards: *self.endpoint.discards(),
            keying: self.keys.counters(),
            associations: self.entries.len(),
            ..EndpointStatistics::default()
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
        let checked = self.check_paths(&paths, sctp_port)?;
        let (paths, withheld) = self.permitted_paths(checked)?;
        let handles = self.handles.upgrade().ok_or(ConnectError::EndpointGone)?;
        let stream_control = config.stream_control;
        let now = self.clock.now();
        let id = match restart {
            Some(keys) => self.endpoint.restart(now, sctp_port, &paths, config, keys)?,
            None => self.endpoint.connect(now, sctp_port, &paths, config)?,
        };
        if let Some(dtls) = dtls {
            self.keys.opened(id, dtls);
        }
        self.withheld.keep(id, withheld);
        self.begin_costs(id);
        self.refusals.watch(now, id);
        self.report_errors();
        self.enter(id, stream_control, handles).ok_or(ConnectError::EndpointGone)
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

    /// Checks that the endpoint can have this path. Returns it with the interface to which its socket is bound.
    pub(crate) fn check_path(&self, path: PathAddress) -> Result<PathAddress, PathError> {
        let PathAddress { local, remote, udp_port, .. } = path;
        let mut of_address = self.sockets.iter().map(Socket::end).filter(|end| end.address == local);
        // A path without an interface begins at the first socket of its address. A socket without an interface serves all paths.
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

    /// Registers an association of the endpoint.
    fn enter(&mut self, id: AssociationId, stream_control: bool, commands: Commands) -> Option<Handle> {
        let rules = self.endpoint.association(id)?.send_rules();
        let shared = Arc::new(Shared::new(id, rules, stream_control));
        self.entries.insert(id, Arc::clone(&shared));
        Some(Handle { shared, commands })
    }

    /// Processes arrived datagrams. The answer to a datagram is written before the next one is read, unless it is a SACK that the
    /// next one may share. Data of other associations waits: datagrams are lost when the system's socket buffer is full, waiting
    /// data is not. Therefore answers also end after a turn's bytes while more data is waiting: each SACK releases at least as much
    /// as it acknowledges, which causes the next SACKs.
    fn receive(&mut self, ask: ArrivalInfo) {
        RecvBuffers::lend(|buffers| self.receive_into(buffers, ask));
    }

    fn receive_into(&mut self, buffers: &mut RecvBuffers, ask: ArrivalInfo) {
        let now = self.clock.now();
        let (calls, mut room) =
            if self.behind { (RECV_CALLS_BEHIND, TURN_BYTES) } else { (RECV_CALLS, usize::MAX) };
        let Driver { endpoint, sockets, watch, keys, due, withheld, side, .. } = self;
        for index in 0..sockets.len() {
            let (local, end) = (sockets[index].local(), sockets[index].end());
            let is_dropped = withheld.drops(now, end);
            for _ in 0..calls {
                let filled = sockets[index].recv(buffers, ask);
                if filled == 0 {
                    break;
                }
                for (from, datagram) in buffers.datagrams(filled).filter(|_| !is_dropped) {
                    if side.takes(end, from, datagram) {
                        continue;
                    }
                    let address = PathAddress::over_udp(local.ip(), from).from_end(end);
                    let handled = endpoint.handle_datagram(now, address, datagram);
                    watch.datagram(now, local, from, datagram_outcome(handled), datagram);
                    if let Handled::New(id) | Handled::Delivered(id) = handled {
                        watch.touch(id);
                        // The first message of the key management is bundled with the pending COOKIE ECHO.
                        if keys.is_key_management_pending(id)
                            && let Some(association) = endpoint.association_mut(id)
                        {
                            // A failure occurs again when the association is serviced.
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

    /// Sends packets and processes events until the endpoint has no more, or the turn is over. Packets are sent first, because an
    /// application that learns of the end of an association may end the process.
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
        watch.report_touched(clock.now(), endpoint);
        spent.retain(|id| !endpoint.forget(*id));
    }

    /// Sends the packets of this association.
    pub(crate) fn transmit_of(&mut self, id: AssociationId) {
        let now = self.clock.now();
        let Driver { endpoint, sockets, watch, .. } = self;
        Outlet::new(now, sockets, watch)
            .gather(usize::MAX, |packet| endpoint.poll_transmit_of(now, id, packet));
    }

    /// Sends the endpoint's packets within this turn.
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
            // A smaller probe follows at once; each time the search range shrinks.
            if !self.report_too_long() {
                return;
            }
        }
    }

    /// Reports packets that exceeded the interface's MTU to the endpoint. Returns `true` if there were any.
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
        // The MTU of an interface may have shrunk.
        self.update_interface_mtus();
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
            AssociationEvent::StreamsReset { direction, ref streams } => {
                self.streams_reset(id, &shared, direction, streams);
                shared.dispatch_event(event);
            }
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
                    (state.mailbox.messages(), state.restarted_in_shutdown)
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
                let is_barred = shared.lock().is_barred;
                let ended = if is_barred { CloseReason::Barred } else { CloseReason::Aborted(reason) };
                self.on_closed(id, &shared, Err(ended));
            }
            // All others concern the application only.
            _ => shared.dispatch_event(event),
        }
    }

    /// Handles the end of a handshake. The application cannot use a protected association before it has keys.
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

    /// Hands the association to the application that opened or accepts it.
    pub(crate) fn admit(&mut self, id: AssociationId) {
        if !self.entries.contains_key(&id) {
            let (Some(queue), Some(handles)) = (self.queue.upgrade(), self.handles.upgrade()) else {
                self.refuse(id);
                return;
            };
            let Some(association) = self.enter(id, self.wants_stream_control(id), handles) else { return };
            self.begin_costs(id);
            self.open(id);
            queue.offer(association, self.source_of(id));
        }
        self.open(id);
    }

    fn open(&mut self, id: AssociationId) {
        let Some(shared) = self.entries.get(&id) else { return };
        let mut state = shared.lock();
        self.begin_streams(id, &mut state);
        if let Some(association) = self.endpoint.association_mut(id) {
            state.grant_room(association);
        }
        state.identity = self.keys.identity(id);
        state.phase = Phase::Open;
        drop(state);
        shared.changed.notify_waiters();
    }

    fn wants_stream_control(&self, id: AssociationId) -> bool {
        self.endpoint.association(id).is_some_and(anabranch_core::Association::announces_stream_control)
    }

    /// Aborts an association that cannot be accepted.
    fn refuse(&mut self, id: AssociationId) {
        let now = self.clock.now();
        if let Some(association) = self.endpoint.association_mut(id) {
            association.abort(now);
        }
        self.spent.push(id);
    }

    /// Discards the messages queued for the peer's previous incarnation, as the endpoint does.
    fn restarted(&mut self, id: AssociationId, shared: &Arc<Shared>) {
        let mut state = shared.lock();
        state.mailbox.clear();
        state.inbox.push_back(Inbound::Restarted);
        state.streams.restart();
        state.restarted_in_shutdown = state.shutdown_wanted;
        state.restart_keys = None;
        drop(state);
        shared.dispatch_event(AssociationEvent::Restarted);
        shared.notify_all();
        self.due.insert(id);
    }

    fn on_closed(&mut self, id: AssociationId, shared: &Arc<Shared>, outcome: Result<(), CloseReason>) {
        let now = self.clock.now();
        if let Some(association) = self.endpoint.association_mut(id) {
            let mut state = shared.lock();
            // The endpoint is about to forget the association, so all readable data is taken now. Its buffer bounds the amount.
            let mut keys =
                |piece: &_, payload: &[u8], at: &mut _| self.keys.take(now, id, (piece, payload), at);
            // A violation no longer matters.
            let _ = fill_inbox(shared, &mut state, association, usize::MAX, &mut keys);
            state.last = Some(Snapshot::of(association));
            state.answered = association.has_answered();
        }
        self.watch.closed(self.clock.now(), id, &mut self.endpoint, &outcome);
        shared.close(outcome);
        self.entries.remove(&id);
        self.keys.forget(id);
        self.pairing.forget(id);
        self.withheld.forget(id);
        self.spent.push(id);
    }

    /// Moves messages between an association's handles and the endpoint, and executes requests of the handles.
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
        let limit = if shared.stream_control { UNREAD_LIMIT } else { INBOX_LIMIT };
        let received = match fill_inbox(&shared, &mut state, association, limit, &mut keys) {
            Ok(received) => received,
            Err(violation) => {
                association.abort_for_protocol(now, violation.text());
                return;
            }
        };
        state.prioritise_streams(association);
        state.serve_application(association, now);
        let has_room = state.grant_room(association);
        if state.mailbox.wake_writers_for_room() {
            self.due_later.insert(id);
        }
        let streams_changed = state.streams.take_changed();
        if state.shutdown_wanted && state.mailbox.is_empty() {
            association.shutdown(now);
        }
        drop(state);
        if has_room {
            shared.writable.notify_waiters();
        }
        if received {
            shared.readable.notify_waiters();
        }
        if streams_changed {
            shared.opened.notify_waiters();
        }
        self.advance_keys(id);
    }
}

impl Drop for Driver {
    /// Closes all associations, because the runtime may stop the task at any time and callers must not wait forever.
    fn drop(&mut self) {
        self.links.end(&self.sockets);
        for shared in self.entries.values() {
            shared.close(Err(CloseReason::EndpointGone));
        }
        if let Some(queue) = self.queue.upgrade() {
            queue.endpoint_gone();
        }
    }
}

fn poll_sockets(sockets: &[Socket], cx: &mut Context<'_>) -> Poll<()> {
    // Polls each socket, so that each wakes the task.
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

/// Gathers the packets that answer a datagram, unless they may wait for others that arrived with it. Returns their bytes.
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

/// Reads from the endpoint until `limit` bytes are unread. Returns `true` if it read any. `keys` takes key management messages.
pub(crate) fn fill_inbox(
    shared: &Shared,
    state: &mut State,
    association: &mut anabranch_core::Association,
    limit: usize,
    keys: &mut dyn FnMut(&ReceivedMessage, &[u8], &mut anabranch_core::Association) -> bool,
) -> Result<bool, Violation> {
    let mut any = false;
    while state.unread() < limit {
        let mut payload = Vec::new();
        let Some(piece) = association.recv(&mut payload) else {
            state.more = false;
            return Ok(any);
        };
        if keys(&piece, &payload, association) || state.abandoned {
            continue;
        }
        let message = message(piece, payload);
        if shared.stream_control {
            state.sort_in(message)?;
        } else {
            state.inbox_bytes += message.payload.len();
            state.inbox.push_back(Inbound::Message(message));
        }
        any = true;
    }
    state.more = true;
    Ok(any)
}

fn message(piece: ReceivedMessage, payload: Vec<u8>) -> Message {
    let ReceivedMessage { stream, ppid, unordered, beginning, ending, .. } = piece;
    Message { stream, ppid, unordered, beginning, ending, payload: Bytes::from(payload) }
}
