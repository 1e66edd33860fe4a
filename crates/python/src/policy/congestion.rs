//! Congestion control in Python: growth, reduction and pacing within the accounting that all schemes share.

use anabranch_core::policy::{Event, Pacing as CorePacing, View, Window as CoreWindow};
use anabranch_core::{MAX_PATHS, PathId};
use anabranch_schemes::congestion::{
    Acknowledged as CoreAcknowledged, Change, Cut, Growth, GrowthGate, Pace, PathLoss as CoreLoss,
    WindowControl,
};
use pyo3::prelude::*;

use super::answer::wrong;
use super::hook::Hook;
use super::object::Object;
use super::shapes::{Acknowledged, PaceAsk, Pacing, PathLoss, Window};

/// Returns the standard's accounting with the object's `grow`, `cut` and `pace`. Missing methods are those of the standard.
pub(super) fn control(object: &Object, gate: GrowthGate, tells: bool) -> WindowControl {
    let mut control = WindowControl::new(gate);
    let grows = object.has(Hook::Grow);
    if grows {
        control = control.with_growth(OwnGrowth { object: object.clone(), tells });
    }
    let cuts = object.has(Hook::Cut);
    if cuts {
        control = control.with_cut(OwnCut { object: object.clone(), tells: tells && !grows });
    }
    if object.has(Hook::Pace) {
        let tells = tells && !grows && !cuts;
        control = control.with_pace(OwnPace {
            object: object.clone(),
            tells,
            pacing: [CorePacing::OFF; MAX_PATHS],
        });
    }
    control
}

/// Growth rule that calls the object's `grow`.
#[derive(Debug)]
struct OwnGrowth {
    object: Object,
    tells: bool,
}

impl Growth for OwnGrowth {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        if self.tells {
            self.object.dispatch(event, view);
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

/// Reduction rule that calls the object's `cut`.
#[derive(Debug)]
struct OwnCut {
    object: Object,
    tells: bool,
}

impl Cut for OwnCut {
    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>) {
        if self.tells {
            self.object.dispatch(event, view);
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

/// Pacing rule that calls the object's `pace`.
#[derive(Debug)]
struct OwnPace {
    object: Object,
    tells: bool,
    /// Latest answers by path.
    pacing: [CorePacing; MAX_PATHS],
}

impl Pace for OwnPace {
    fn on_event(&mut self, event: &Event<'_>, windows: &[CoreWindow; MAX_PATHS], view: &View<'_>) {
        if self.tells {
            self.object.dispatch(event, view);
        }
        match *event {
            Event::SackDone(done) => {
                let answered =
                    view.paths.iter().zip(done.paths).filter(|(_, ack)| !ack.newly_acked().is_zero());
                answered.for_each(|(facts, _)| self.ask(facts.id, windows, view));
            }
            Event::PathAdded(path) => self.pacing[path.index()] = CorePacing::OFF,
            Event::Established => view.paths.iter().for_each(|facts| self.ask(facts.id, windows, view)),
            Event::RttSample { path, .. }
            | Event::LossEvent { path, .. }
            | Event::PathState { path, .. }
            | Event::Idle(path) => {
                self.ask(path, windows, view);
            }
            _ => {}
        }
    }

    fn pacing(&self, path: PathId) -> CorePacing {
        self.pacing[path.index()]
    }
}

impl OwnPace {
    fn ask(&mut self, path: PathId, windows: &[CoreWindow; MAX_PATHS], view: &View<'_>) {
        let answer = Python::attach(|py| {
            let ask = || PaceAsk::of(path, windows, view.paths.len());
            self.object.ask(pyo3::intern!(py, "pace"), ask, view, pacing)
        });
        if let Some((pacing, _)) = answer {
            self.pacing[path.index()] = pacing;
        }
    }
}

fn pacing(answer: &Bound<'_, PyAny>) -> PyResult<CorePacing> {
    if answer.is_none() {
        return Ok(CorePacing::OFF);
    }
    match answer.cast::<Pacing>() {
        Ok(pacing) => Ok(pacing.get().pacing),
        Err(_) => Err(wrong("pace", answer, "a Pacing, such as Pacing(rate_kbps=8000), or None")),
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
