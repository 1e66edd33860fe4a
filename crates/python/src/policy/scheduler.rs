//! Scheduler in Python.

use anabranch_core::PathSet;
use anabranch_core::policy::{
    Context, Decision, Event, Pick, Refused, Scheduler, SendAsk as CoreAsk, Slot, View, WaitFor,
};
use pyo3::prelude::*;

use super::answer::{NO_REASON, pick, refused};
use super::object::Object;
use super::shapes::SendAsk;

/// Scheduler that calls the object's `pick`.
#[derive(Debug)]
pub(super) struct OwnScheduler {
    pub(super) object: Object,
    /// Set if this slot passes events to the object.
    pub(super) tells: bool,
}

impl Slot for OwnScheduler {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, _: &mut Context<'_>) {
        if self.tells {
            self.object.dispatch(event, view);
        }
    }
}

impl Scheduler for OwnScheduler {
    fn pick(&mut self, ask: &CoreAsk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Pick> {
        let answer =
            Python::attach(|py| self.object.ask(pyo3::intern!(py, "pick"), || SendAsk::of(ask), view, pick));
        let Some((choice, reason)) = answer else {
            return Decision::new(Pick::Wait(WaitFor::Window), NO_REASON);
        };
        let chosen: PathSet = match choice {
            Pick::Path(path) | Pick::Bind(path) => [path].into_iter().collect(),
            Pick::Copies(paths) => paths,
            Pick::Wait(_) => PathSet::EMPTY,
        };
        let refused: Refused = refused(chosen, view);
        Decision::with_refused(choice, reason, refused)
    }
}
