//! Congestion control in Python: rules of growth and reduction inside the accounting that all schemes share.

use anabranch_core::policy::{Event, View};
use anabranch_schemes::congestion::{
    Acknowledged as CoreAcknowledged, Change, Cut, Growth, GrowthGate, PathLoss as CoreLoss, WindowControl,
};
use pyo3::prelude::*;

use super::answer::wrong;
use super::hook::Hook;
use super::object::Object;
use super::shapes::{Acknowledged, PathLoss, Window};

/// The standard's accounting with the object's `grow` and `cut`; where it has none, the standard's.
pub(super) fn control(object: &Object, gate: GrowthGate, tells: bool) -> WindowControl {
    let mut control = WindowControl::new(gate);
    let grows = object.has(Hook::Grow);
    if grows {
        control = control.with_growth(OwnGrowth { object: object.clone(), tells });
    }
    if object.has(Hook::Cut) {
        control = control.with_cut(OwnCut { object: object.clone(), tells: tells && !grows });
    }
    control
}

/// Asks the object's `grow`.
#[derive(Debug)]
struct OwnGrowth {
    object: Object,
    tells: bool,
}

impl Growth for OwnGrowth {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        if self.tells {
            self.object.tell(event, view);
        }
    }

    fn grow(&mut self, acknowledged: &CoreAcknowledged<'_>) -> Option<Change> {
        let answer = Python::attach(|py| {
            let ask = || Acknowledged::of(acknowledged);
            self.object.ask(pyo3::intern!(py, "grow"), ask, acknowledged.view, |answer| {
                if answer.is_none() { Ok(None) } else { window("grow", answer).map(Some) }
            })
        });
        let (window, reason) = answer?;
        window.map(|window| Change { window, reason })
    }
}

/// Asks the object's `cut`.
#[derive(Debug)]
struct OwnCut {
    object: Object,
    tells: bool,
}

impl Cut for OwnCut {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        if self.tells {
            self.object.tell(event, view);
        }
    }

    fn cut(&mut self, loss: &CoreLoss<'_>) -> Change {
        let answer = Python::attach(|py| {
            let ask = || PathLoss::of(loss);
            self.object.ask(pyo3::intern!(py, "cut"), ask, loss.view, |answer| window("cut", answer))
        });
        let (window, reason) = answer.unwrap_or((loss.window(), super::answer::NO_REASON));
        Change { window, reason }
    }
}

fn window(method: &str, answer: &Bound<'_, PyAny>) -> PyResult<anabranch_core::policy::Window> {
    match answer.cast::<Window>() {
        Ok(window) => Ok(window.get().window),
        Err(_) => {
            Err(wrong(method, answer, "a Window, such as the one asked about with `replace(cwnd_bytes=…)`"))
        }
    }
}
