//! Packets that the system does not send or the network does not deliver while an INIT is unanswered.

use std::io;

use anabranch_core::time::Span;
use anabranch_core::{AssociationId, PathAddress, Refusal};

use crate::driver::Driver;
use crate::interface::{check_route, is_neighbour_silent};
use crate::peer::udp_address;
use crate::refusals::RefusedPath;
use crate::socket::{Socket, Undelivered, UndeliveredCause};

/// Interval of checks of routes and neighbours of unanswered paths.
const CHECK_EVERY: Span = Span::from_millis(100);

impl Driver {
    /// Enables ICMP reports while an INIT is unanswered.
    pub(crate) fn report_errors(&mut self) {
        let Driver { endpoint, refusals, sockets, .. } = self;
        let waits = |id: &AssociationId| {
            endpoint
                .association(*id)
                .is_some_and(|association| association.unanswered_init().next().is_some())
        };
        refusals.opening.retain(waits);
        let is_opening = !refusals.opening.is_empty();
        refusals.next_check = refusals.next_check.filter(|_| is_opening);
        for socket in sockets {
            socket.report_errors(is_opening);
        }
    }

    /// Ends attempts on paths whose INIT the system or the network has refused.
    pub(crate) fn handle_refusals(&mut self) {
        if self.refusals.next_check.is_none() {
            return;
        }
        let mut undelivered = Vec::new();
        for socket in &mut self.sockets {
            let (end, device) = (socket.end(), socket.bound_device().map(str::to_owned));
            undelivered
                .extend(socket.take_undelivered().into_iter().map(|packet| (end, device.clone(), packet)));
        }
        let now = self.clock.now();
        for (end, device, packet) in undelivered {
            let path = PathAddress::over_udp(end.address, packet.destination).from_end(end);
            if let Some(refusal) = refusal_of_packet(path, device.as_deref(), &packet)
                && let Some(id) = self.endpoint.packet_refused(now, path, &packet.quoted, refusal)
            {
                self.refused(id, RefusedPath { path, refusal });
            }
        }
        if self.refusals.next_check.is_some_and(|at| at <= now) {
            self.refusals.next_check = Some(now + CHECK_EVERY);
            self.check_routes();
        }
    }

    /// Checks the routes and neighbours of unanswered paths. The system reports neither to a socket that is bound to an interface.
    fn check_routes(&mut self) {
        let now = self.clock.now();
        let waiting =
            self.refusals.opening.iter().filter_map(|id| Some((*id, self.endpoint.association(*id)?)));
        let paths =
            waiting.flat_map(|(id, association)| association.unanswered_init().map(move |path| (id, path)));
        let paths: Vec<(AssociationId, PathAddress)> = paths.collect();
        for (id, path) in paths {
            let Some(socket) = self.sockets.iter().find(|socket| socket.end() == path.local_end()) else {
                continue;
            };
            if let Some(refusal) = refusal_of_path(path, socket)
                && self.endpoint.init_refused(now, id, path, refusal)
            {
                self.refused(id, RefusedPath { path, refusal });
            }
        }
    }

    /// Stores the reason for the error of the attempt.
    fn refused(&mut self, id: AssociationId, refused: RefusedPath) {
        if let Some(shared) = self.entries.get(&id) {
            shared.lock().refused.push(refused);
        }
    }
}

/// Returns the reason for which a packet was not delivered. A local error counts only if the system refuses the path to another
/// socket as well, because a send call may return an error caused by an ICMP message.
fn refusal_of_packet(path: PathAddress, device: Option<&str>, packet: &Undelivered) -> Option<Refusal> {
    match &packet.cause {
        UndeliveredCause::Icmp(refusal) => Some(*refusal),
        // Caused by a packet filter of this host, never by an ICMP message.
        UndeliveredCause::Local(error) if is_filtered(error) => Some(Refusal::Prohibited),
        UndeliveredCause::Local(_) => refusal_of(&check_route(path.local, device, packet.destination).err()?),
    }
}

fn refusal_of_path(path: PathAddress, socket: &Socket) -> Option<Refusal> {
    match check_route(path.local, socket.bound_device(), udp_address(path)) {
        Err(error) => refusal_of(&error),
        Ok(()) => is_neighbour_silent(path.local_end(), path.remote).then_some(Refusal::HostUnreachable),
    }
}

/// Converts an error. Returns `None` for an error that is unrelated to the route.
fn refusal_of(error: &io::Error) -> Option<Refusal> {
    match error.kind() {
        io::ErrorKind::HostUnreachable => Some(Refusal::HostUnreachable),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => Some(Refusal::NoRoute),
        io::ErrorKind::PermissionDenied => Some(Refusal::Prohibited),
        // Black hole in the routing table of Linux.
        io::ErrorKind::InvalidInput => Some(Refusal::NoRoute),
        _ => None,
    }
}

/// Returns `true` for the error of a packet that a filter of this host drops.
fn is_filtered(error: &io::Error) -> bool {
    const OPERATION_NOT_PERMITTED: i32 = 1;
    error.raw_os_error() == Some(OPERATION_NOT_PERMITTED)
}
