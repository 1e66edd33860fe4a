//! Retransmission in Python.

use anabranch_core::policy::{
    Context, Decision, Event, LostChunk as CoreChunk, RetransmitChoice, RetransmitPath, Slot, View, WaitFor,
};
use pyo3::prelude::*;

use super::answer::{NO_REASON, route};
use super::object::Object;
use super::shapes::LostChunk;

/// Policy that calls the object's `route`.
#[derive(Debug)]
pub(super) struct OwnRetransmit {
    pub(super) object: Object,
    /// Set if this slot passes events to the object.
    pub(super) tells: bool,
}

impl Slot for OwnRetransmit {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        if self.tells {
            self.object.dispatch(event, view);
        }
    }
}

impl RetransmitPath for OwnRetransmit {
    fn route(
        &mut self,
        chunk: &CoreChunk,
        view: &View<'_>,
        _: &mut Context<'_>,
    ) -> Decision<RetransmitChoice> {
        let answer = Python::attach(|py| {
            self.object.ask(pyo3::intern!(py, "route"), || LostChunk::of(chunk), view, route)
        });
        let (choice, reason) = answer.unwrap_or((RetransmitChoice::Wait(WaitFor::Window), NO_REASON));
        Decision::new(choice, reason)
    }
}
