//! Control of all paths: passes events to the path that they concern.

use anabranch_core::policy::{
    CongestionControl, Context, Event, EventKind, EventSet, LossCause, Pacing, Reason, SackDone,
    SentTransmission, Slot, View, Window,
};
use anabranch_core::profile::Profile;
use anabranch_core::{MAX_PATHS, PathId};

use crate::component::bbr::path::{Ack, LostChunk, PathBbr};

/// BBR on each path.
#[derive(Clone, Default)]
pub(super) struct BbrControl {
    paths: [Option<Box<PathBbr>>; MAX_PATHS],
}

impl BbrControl {
    fn begin(&mut self, path: PathId, view: &View<'_>) {
        let facts = view.path(path);
        let initial = view.profile.initial_window.for_chunk(facts.largest_chunk, facts.ipv6);
        self.paths[path.index()] = Some(Box::new(PathBbr::new(initial)));
    }

    fn path(&mut self, path: PathId) -> Option<&mut PathBbr> {
        self.paths[path.index()].as_deref_mut()
    }

    fn sack_done(&mut self, done: &SackDone<'_>, view: &View<'_>, context: &mut Context<'_>) {
        for (facts, ack) in view.paths.iter().zip(done.paths) {
            if let Some(path) = self.path(facts.id).filter(|_| !ack.newly_acked().is_zero()) {
                path.acknowledge(&Ack { now: view.now, facts, ack }, context);
            }
        }
    }

    fn loss_event(&mut self, path: PathId, cause: LossCause, view: &View<'_>) {
        let Some(own) = self.path(path) else { return };
        match cause {
            LossCause::FastRetransmit => own.begin_fast_recovery(view.path(path)),
            LossCause::Timeout => own.time_out(view.path(path), view.now),
            // No chunk was lost.
            LossCause::Rescheduled => {}
        }
    }

    fn sent(&mut self, sent: &SentTransmission, view: &View<'_>, context: &mut Context<'_>) {
        let facts = view.path(sent.path);
        if let Some(path) = self.path(sent.path).filter(|_| facts.in_flight <= sent.bytes) {
            path.restart(facts, view.now, context);
        }
    }
}

impl Slot for BbrControl {
    fn events(&self, _: &Profile) -> EventSet {
        EventSet::of(&[
            EventKind::PathAdded,
            EventKind::PathRebound,
            EventKind::Established,
            EventKind::Sent,
            EventKind::SackDone,
            EventKind::Lost,
            EventKind::LossEvent,
            EventKind::Spurious,
        ])
    }

    fn on_event(&mut self, event: &Event<'_>, view: &View<'_>, context: &mut Context<'_>) {
        match *event {
            Event::PathAdded(path) | Event::PathRebound(path) => self.begin(path, view),
            Event::Established => view.paths.iter().for_each(|facts| self.begin(facts.id, view)),
            Event::SackDone(done) => self.sack_done(done, view, context),
            Event::Lost { path, tsn, bytes, cause, .. } if cause != LossCause::Rescheduled => {
                let facts = view.path(path);
                if let (Some(own), Some(stamps)) = (self.path(path), facts.latest_loss) {
                    own.lose(&LostChunk { tsn, bytes, stamps, now: view.now }, facts, context);
                }
            }
            Event::LossEvent { path, cause } => self.loss_event(path, cause, view),
            Event::Spurious { misjudged, tsn, .. } => {
                if let Some(path) = self.path(misjudged) {
                    path.arrive_after_all(tsn, view.path(misjudged));
                }
            }
            Event::Sent(sent) => self.sent(sent, view, context),
            _ => {}
        }
    }
}

impl CongestionControl for BbrControl {
    copied!(CongestionControl);

    fn window(&self, path: PathId) -> Window {
        self.paths[path.index()].as_deref().map_or(Window::default(), PathBbr::window)
    }

    fn pacing(&self, path: PathId) -> Pacing {
        self.paths[path.index()].as_deref().map_or(Pacing::OFF, PathBbr::pacing)
    }

    fn last_reason(&self, path: PathId) -> Reason {
        self.paths[path.index()].as_deref().map_or(Reason::rule("no path"), PathBbr::reason)
    }

    fn set_window(&mut self, path: PathId, window: Window, reason: Reason, view: &View<'_>) {
        let cwnd = window.cwnd.max(view.path(path).largest_chunk);
        if let Some(path) = self.path(path) {
            path.set_window(cwnd, reason);
        }
    }
}
