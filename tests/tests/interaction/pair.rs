//! Two endpoints under the control of the test: without keys, or with a key management on each side.

use anabranch_core::Handled;
use anabranch_core::time::Span;
use anabranch_keying::{KeyManager, KeyingEvent};
use anabranch_tests::duo::{Duo, Reading};
use anabranch_tests::managed::Managed;
use anabranch_tests::network::{Packet, Side};

/// Operations on a pair of endpoints.
pub(crate) trait Pair: Sized {
    /// Returns the endpoints.
    fn duo(&self) -> &Duo;

    /// Returns the endpoints for use.
    fn duo_mut(&mut self) -> &mut Duo;

    /// Performs all actions that are possible without a lapse of time.
    fn settle(&mut self);

    /// Lets time pass until a condition is true. Returns `true` if it became true within `span`.
    fn run_until(&mut self, span: Span, done: impl FnMut(&Self) -> bool) -> bool;

    /// Lets time pass, and notifies the endpoints only at its end.
    fn oversleep(&mut self, span: Span);

    /// Reads at most this number of messages or parts of them.
    fn read(&mut self, side: Side, most: usize);

    /// Sets the reading mode of a side.
    fn set_reading(&mut self, side: Side, reading: Reading);

    /// Passes a packet of any origin to its destination.
    fn deliver(&mut self, packet: &Packet) -> Handled;

    /// Returns the stage of a side's key management, which only grows, or zero without one.
    fn keying_stage(&self, side: Side) -> u64;

    /// Returns `true` if a side can carry user data.
    fn is_ready(&self, side: Side) -> bool;

    /// Returns `true` if a side accepted only protected packets, at its end at the latest.
    fn was_protected(&self, side: Side) -> bool;

    /// Removes the state of a side with stored restart keys and restarts it. Returns `true` if it had such keys.
    fn restart(&mut self, side: Side) -> bool;

    /// Lets time pass.
    fn run(&mut self, span: Span) {
        self.run_until(span, |_| false);
    }
}

impl Pair for Duo {
    fn duo(&self) -> &Duo {
        self
    }

    fn duo_mut(&mut self) -> &mut Duo {
        self
    }

    fn settle(&mut self) {
        Duo::settle(self);
    }

    fn run_until(&mut self, span: Span, done: impl FnMut(&Self) -> bool) -> bool {
        Duo::run_until(self, span, done)
    }

    fn oversleep(&mut self, span: Span) {
        Duo::oversleep(self, span);
    }

    fn read(&mut self, side: Side, most: usize) {
        Duo::read(self, side, most);
    }

    fn set_reading(&mut self, side: Side, reading: Reading) {
        self.reading[side.index()] = reading;
    }

    fn deliver(&mut self, packet: &Packet) -> Handled {
        let handled = Duo::deliver(self, packet);
        Duo::settle(self);
        handled
    }

    fn keying_stage(&self, _: Side) -> u64 {
        0
    }

    fn was_protected(&self, _: Side) -> bool {
        false
    }

    fn restart(&mut self, _: Side) -> bool {
        false
    }

    fn is_ready(&self, side: Side) -> bool {
        self.nodes[side.index()].try_association().is_some_and(|association| association.is_established())
    }
}

impl Pair for Managed {
    fn duo(&self) -> &Duo {
        &self.duo
    }

    fn duo_mut(&mut self) -> &mut Duo {
        &mut self.duo
    }

    fn settle(&mut self) {
        Managed::settle(self);
    }

    fn run_until(&mut self, span: Span, done: impl FnMut(&Self) -> bool) -> bool {
        Managed::run_until(self, span, done)
    }

    fn oversleep(&mut self, span: Span) {
        Managed::oversleep(self, span);
    }

    fn read(&mut self, side: Side, most: usize) {
        Managed::read(self, side, most);
    }

    /// Sets how the application of a side reads. It has nothing to read before there are keys.
    fn set_reading(&mut self, side: Side, reading: Reading) {
        self.keying[side.index()].paused = reading == Reading::ByHand && self.is_ready(side);
    }

    fn deliver(&mut self, packet: &Packet) -> Handled {
        Managed::deliver(self, packet)
    }

    fn keying_stage(&self, side: Side) -> u64 {
        self.reported(side).len() as u64
    }

    fn was_protected(&self, side: Side) -> bool {
        let keys = [KeyingEvent::Established, KeyingEvent::Restarted];
        self.reported(side).iter().any(|told| keys.contains(told))
    }

    fn is_ready(&self, side: Side) -> bool {
        let manager = self.keying[side.index()].manager.as_ref();
        self.association_is_up(side) && manager.is_some_and(KeyManager::is_established)
    }

    fn restart(&mut self, side: Side) -> bool {
        let Some(keys) = self.keying[side.index()].stored.pop() else { return false };
        self.crash(side);
        Managed::restart(self, side, &keys);
        true
    }
}
