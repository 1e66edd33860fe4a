//! Single-path SCTP: what times out goes to another active path if there is one, what fast retransmit finds stays
//! (RFC 9260 sections 6.3.3 E4 and 6.4.1).

use anabranch_core::policy::{Context, Decision, Event, LossCause, LostChunk, Reason, Refused, RetransmitPath, Route, Slot, View};
use anabranch_core::time::Time;

use crate::retransmit::{if_room, nowhere};

/// Time-outs to an alternate path, the rest to the same.
#[derive(Debug)]
pub struct Alternate {
    /// Whether fast retransmissions go to the alternate path too (ns-2's `rtxToAlt_`).
    pub fast_retransmissions_too: bool,
}

impl Slot for Alternate {
    fn on_event(&mut self, _: &Event<'_>, _: &View<'_>, _: &mut Context<'_>) {}

    fn deadline(&self) -> Option<Time> {
        None
    }
}

impl RetransmitPath for Alternate {
    fn route(&mut self, chunk: &LostChunk, view: &View<'_>, _: &mut Context<'_>) -> Decision<Route> {
        let away = chunk.cause == LossCause::Timeout || self.fast_retransmissions_too;
        let n = view.paths.len();
        let first = usize::from(away);
        let next = (first..=n).map(|step| &view.paths[(chunk.path.index() + step) % n]).find(|p| p.is_active());
        let rule = if away { "an alternate path" } else { "where it was sent before" };
        match next {
            Some(path) => if_room(path, Reason::rule(rule), Refused::new()),
            None => nowhere(),
        }
    }
}
