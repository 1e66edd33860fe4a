//! Media that both directions of a link share: one of them sends at a time.

use anabranch_core::time::Span;

use super::World;
use crate::error::{ConfigError, require};
use crate::route::LinkId;

impl World {
    /// Lets two links share a medium, as uplink and downlink of a radio cell do. While one sends, packets of the other wait, and links
    /// with waiting packets send in turn, one packet each. Each packet occupies the medium for `access` besides its serialisation.
    ///
    /// # Errors
    /// Returns an error if a link already shares a medium, sends in batches or follows a trace of its capacity.
    pub fn share_medium(&mut self, one: LinkId, other: LinkId, access: Span) -> Result<(), ConfigError> {
        self.assert_not_ahead();
        require(one != other, "medium", "must be shared by two links")?;
        for (end, other) in [(one, other), (other, one)] {
            let entry = &mut self.links[end.index()];
            entry.link.share_medium(access)?;
            entry.shares_with = Some(other);
        }
        Ok(())
    }

    /// Gives the medium to the link whose turn it is, after a packet of `sent` left it.
    pub(super) fn pass_medium(&mut self, sent: LinkId, other: LinkId) {
        for (next, waiting) in [(other, sent), (sent, other)] {
            self.links[waiting.index()].link.set_medium_busy(true);
            self.links[next.index()].link.set_medium_busy(false);
            let entry = &mut self.links[next.index()];
            let departure = entry.link.start(self.now, &self.pool);
            if let Some(time) = departure {
                self.events.schedule(entry.departure, time);
            }
            self.discard_queue_drops(next);
            if departure.is_some() {
                return;
            }
        }
        self.links[other.index()].link.set_medium_busy(false);
    }
}
