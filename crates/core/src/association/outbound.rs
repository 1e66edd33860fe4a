//! Construction of packets, and their order.

use crate::association::dispatch::Dispatcher;
use crate::association::transmission::{Outlet, Transmission};
use crate::association::{Association, State};
use crate::packet_buffer::PacketBuffer;
use crate::path_id::PathId;
use crate::policy::OpportunityCause;

impl Association {
    /// Borrows the parts that a packet with DATA passes through.
    #[inline]
    pub(crate) fn outlet(&mut self) -> Outlet<'_> {
        self.transmission().1
    }

    /// Borrows the transmission of DATA, and the parts that a packet passes through.
    #[inline]
    pub(crate) fn transmission(&mut self) -> (&mut Transmission, Outlet<'_>) {
        let Association {
            now,
            state,
            paths,
            sender,
            policies,
            outputs,
            reachability,
            transmission,
            identity,
            protection,
            ack,
            receiver,
            recovery,
            ..
        } = self;
        let d = Dispatcher { now: *now, paths, sender, policies, outputs, reachability };
        let receiver = receiver.as_mut();
        (transmission, Outlet { d, identity, protection, ack, receiver, recovery, state })
    }

    /// Writes the next packet into `buf` and returns its path; `None` if there is no packet to send now. A packet that exceeds the
    /// allowance of an unvalidated address is dropped.
    pub(crate) fn poll_transmit(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if self.is_quiet() {
            return None;
        }
        loop {
            let path = self.next_packet(buf)?;
            if let Some(failure) = self.protection.failure() {
                return self.end_without_keys(failure);
            }
            // A packet that could not be sealed is empty.
            if !buf.is_empty() && self.may_send(path, buf.len()) {
                return Some(path);
            }
        }
    }

    /// Returns `true` if there is nothing to send: no source of packets has to be asked.
    fn is_quiet(&self) -> bool {
        !self.is_early()
            && self.control.is_empty()
            && !self.ack.is_due()
            && !self.sender.owes_forward_tsn()
            && !self.transmission.is_open()
    }

    // Inlining this into the loop of `poll_transmit` makes the compiler compute the addresses of 25 fields before the loop.
    #[inline(never)]
    fn next_packet(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !self.control.is_empty()
            && let Some(path) = self.transmit_control(buf)
        {
            return Some(path);
        }
        if self.is_early()
            && let Some(path) = self.transmit_early(buf)
        {
            return Some(path);
        }
        if self.ack.is_due()
            && !self.sack_can_ride()
            && let Some(path) = self.transmit_sack(buf)
        {
            return Some(path);
        }
        if self.sender.owes_forward_tsn()
            && !self.forward_tsn_can_ride()
            && let Some(path) = self.transmit_forward_tsn(buf)
        {
            return Some(path);
        }
        if let Some(path) = self.transmit_data(buf) {
            return Some(path);
        }
        if self.is_quiet() {
            return None;
        }
        // An event of the opportunity may have queued a HEARTBEAT.
        if !self.control.is_empty()
            && let Some(path) = self.transmit_control(buf)
        {
            return Some(path);
        }
        if let Some(path) = self.transmit_forward_tsn(buf) {
            return Some(path);
        }
        self.transmit_sack(buf)
    }

    /// Returns `true` if no path carries user data yet, but a COOKIE ECHO or key management may have to be sent.
    fn is_early(&self) -> bool {
        match &self.state {
            State::CookieEchoed { echo, .. } => echo.is_due() || self.protection.awaits_keys(),
            State::Established => self.protection.awaits_keys() && !self.paths.any_active(),
            _ => false,
        }
    }

    fn transmit_early(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        let (transmission, mut outlet) = self.transmission();
        let path = transmission.next_early(&mut outlet, buf);
        self.queue_started_heartbeats();
        path
    }

    fn transmit_data(&mut self, buf: &mut PacketBuffer) -> Option<PathId> {
        if !self.transmission.is_open() || !self.may_carry_data() {
            return None;
        }
        let (transmission, mut outlet) = self.transmission();
        let path = transmission.next(&mut outlet, buf);
        self.queue_started_heartbeats();
        path
    }

    /// Returns `true` if DATA may be sent in this state (RFC 9260 section 6). Messages whose limits are exceeded are abandoned before.
    //= docs/rfc9260.txt#section-3.3.11
    //# This chunk MUST precede any DATA chunk sent within the association but MAY be bundled with one or more DATA chunks
    //# in the same packet.
    //= docs/rfc9260.txt#section-5
    //# Before the first data transmission can take place from one SCTP endpoint ("A") to another SCTP endpoint ("Z"), the
    //# two endpoints MUST complete an initialization process in order to set up an SCTP association between them.
    //= docs/rfc9260.txt#section-6
    //# Data transmission MUST only happen in the ESTABLISHED, SHUTDOWN- PENDING, and SHUTDOWN-RECEIVED states.
    fn may_carry_data(&self) -> bool {
        self.transmission.is_started() && self.state.takes_sacks() && !self.owes_abandonment()
    }

    /// Opens a send opportunity.
    pub(crate) fn open_opportunity(&mut self, cause: OpportunityCause, new_data: bool) {
        self.transmission.open(cause, new_data);
    }
}
