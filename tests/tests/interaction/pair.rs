//! Two endpoints as the test drives them: without keys, or with a key management on each side.

use anabranch_core::Handled;
use anabranch_core::time::Span;
use anabranch_keying::{KeyManager, KeyingEvent};
use anabranch_tests::duo::{Duo, Reading};
use anabranch_tests::managed::Managed;
use anabranch_tests::network::{Packet, Side};

/// What it takes to drive them.
pub(crate) trait Pair: Sized {
    /// The endpoints.
    fn duo(&self) -> &Duo;

    /// The endpoints, to use.
    fn duo_mut(&mut self) -> &mut Duo;

    /// Lets everything happen that can without time passing.
    fn settle(&mut self);

    /// Lets time pass until something is so; whether it came to be within `span`.
    fn run_until(&mut self, span: Span, done: impl FnMut(&Self) -> bool) -> bool;

    /// Lets time pass unseen by the endpoints, and only then tells them.
    fn oversleep(&mut self, span: Span);

    /// Reads at most so many messages or parts of them.
    fn read(&mut self, side: Side, most: usize);

    /// How a side reads from now on.
    fn set_reading(&mut self, side: Side, reading: Reading);

    /// Gives a packet to the side that it is for, whoever has made it.
    fn deliver(&mut self, packet: &Packet) -> Handled;

    /// How far the key management of a side is, if there is one: it only grows.
    fn keying_stage(&self, side: Side) -> u64;

    /// Whether a side can carry what users send.
    fn is_ready(&self, side: Side) -> bool;

    /// Whether a side took protected packets alone, at its end at the latest.
    fn was_protected(&self, side: Side) -> bool;

    /// A side that has stored keys for a restart loses everything else and restarts; whether it had any.
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

    /// An application has nothing to read before there are keys.
    fn set_reading(&mut self, side: Side, reading: Reading) {
        self.keying[side.index()].paused = reading == Reading::ByHand && self.is_ready(side);
    }

    fn deliver(&mut self, packet: &Packet) -> Handled {
        Managed::deliver(self, packet)
    }

    fn keying_stage(&self, side: Side) -> u64 {
        self.told(side).len() as u64
    }

    fn was_protected(&self, side: Side) -> bool {
        let keys = [KeyingEvent::Established, KeyingEvent::Restarted];
        self.told(side).iter().any(|told| keys.contains(told))
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
