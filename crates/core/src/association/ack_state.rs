//! Pending acknowledgement, and the window to advertise in it.

use crate::path_id::PathId;
use crate::policy::AckForm;
use crate::profile::Profile;
use crate::recv::{BlocksByDelivery, Receiver};
use crate::time::Time;
use crate::units::WindowBytes;

/// Urgency of the pending SACK, in increasing order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    #[default]
    No,
    /// Now, but further packets of the same arrival may share it.
    Together,
    Now,
}

/// State of the pending acknowledgement.
#[derive(Clone, Debug, Default)]
pub(crate) struct AckState {
    /// Number of packets with DATA since the last SACK.
    packets: u32,
    /// Latest time at which the SACK is due.
    deadline: Option<Time>,
    due: Due,
    /// Set if the delayed-ack timer made the SACK due.
    by_timer: bool,
    /// Path on which the latest DATA arrived: the SACK is sent back there (RFC 9260 section 6.4).
    path: Option<PathId>,
    /// Window in the last SACK.
    advertised: Option<WindowBytes>,
    any_before: bool,
    /// `true` if both sides announced NR-SACK.
    uses_nr_sack: bool,
    /// Reused memory for the blocks of an NR-SACK.
    blocks: BlocksByDelivery,
}

impl AckState {
    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due > Due::No
    }

    /// Returns `true` if the SACK may cover further packets of the same arrival.
    pub(crate) fn may_cover_more(&self) -> bool {
        self.due < Due::Now
    }

    /// Returns `true` if DATA is not acknowledged, due or not.
    #[inline]
    pub(crate) fn is_due_or_pending(&self) -> bool {
        self.is_due() || self.packets > 0
    }

    /// Returns the number of packets with DATA since the last SACK.
    #[inline]
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// Returns the path on which the SACK is sent back.
    #[inline]
    pub(crate) fn path(&self) -> Option<PathId> {
        self.path
    }

    #[inline]
    pub(crate) fn is_by_timer(&self) -> bool {
        self.by_timer
    }

    #[inline]
    pub(crate) fn uses_nr_sack(&self) -> bool {
        self.uses_nr_sack
    }

    pub(crate) fn agree_on_nr_sack(&mut self, uses_nr_sack: bool) {
        self.uses_nr_sack = uses_nr_sack;
    }

    /// Returns the form of acknowledgement that the peer understands.
    #[inline]
    pub(crate) fn form(&self, wanted: AckForm) -> AckForm {
        if self.uses_nr_sack { wanted } else { AckForm::Sack }
    }

    /// Returns the reused memory for the blocks of an NR-SACK.
    pub(crate) fn blocks_mut(&mut self) -> &mut BlocksByDelivery {
        &mut self.blocks
    }

    /// Counts a packet with DATA. Returns `true` if it is the first one.
    pub(crate) fn note_packet(&mut self, source: PathId) -> bool {
        self.path = Some(source);
        self.packets += 1;
        !std::mem::replace(&mut self.any_before, true)
    }

    /// Makes the SACK due now, on this path.
    pub(crate) fn set_due_on(&mut self, source: PathId) {
        self.path = Some(source);
        self.due = Due::Now;
    }

    /// Makes the SACK due now.
    pub(crate) fn set_due_now(&mut self) {
        self.due = Due::Now;
    }

    /// Makes the SACK due now, unless further packets of the same arrival follow.
    pub(crate) fn set_due_together(&mut self) {
        self.due = self.due.max(Due::Together);
    }

    /// Makes the SACK due at this time, unless it is due earlier.
    pub(crate) fn set_due_by(&mut self, at: Time) {
        self.deadline.get_or_insert(at);
    }

    /// Makes the SACK due if its deadline has passed.
    pub(crate) fn on_deadline(&mut self, now: Time) {
        if self.deadline.take_if(|at| *at <= now).is_some() {
            self.due = Due::Now;
            self.by_timer = true;
        }
    }

    /// Records a sent SACK with this window.
    pub(crate) fn note_sent(&mut self, advertised: WindowBytes) {
        self.advertised = Some(advertised);
        self.packets = 0;
        self.deadline = None;
        self.due = Due::No;
        self.by_timer = false;
    }

    /// Returns `true` if a window that was advertised as too small for a packet has opened far enough for an update.
    //= docs/rfc9260.txt#section-6.2
    //# The receiver MUST avoid sending a large number of window updates -- in particular, large bursts of them.
    pub(crate) fn wants_window_update(
        &self,
        receiver: &Receiver,
        profile: &Profile,
        payload_bytes: usize,
    ) -> bool {
        let worth = window_update_threshold(receiver, profile, payload_bytes);
        let was_closed = self.advertised.is_some_and(|window| window < worth.times(2));
        let opened =
            window_to_advertise(receiver, profile, payload_bytes) >= worth.times(2).min(receiver.buffer());
        was_closed && opened
    }
}

/// Returns the window to advertise: the free buffer, or zero while that is too small to be worth sending (RFC 9260 section 6.2, RFC
/// 1122 section 4.2.3.3). `payload_bytes` are the user bytes of a full chunk.
pub(crate) fn window_to_advertise(
    receiver: &Receiver,
    profile: &Profile,
    payload_bytes: usize,
) -> WindowBytes {
    let free = receiver.free(profile);
    //= docs/rfc9260.txt#section-6.2
    //# The receiver MUST also have an algorithm for advertising its receive window to avoid receiver silly window
    //# syndrome (SWS), as described in [RFC1122].
    if profile.silly_window_avoidance && free < window_update_threshold(receiver, profile, payload_bytes) {
        return WindowBytes::ZERO;
    }
    free
}

fn window_update_threshold(receiver: &Receiver, profile: &Profile, payload_bytes: usize) -> WindowBytes {
    profile.window_cost(payload_bytes as u64, 1).min(WindowBytes::new(receiver.buffer().get() / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn delayed_sack_is_due_at_its_first_deadline_and_by_timer() {
        let mut ack = AckState::default();
        assert!(ack.note_packet(PathId::new(0)));
        ack.set_due_by(at(200));
        assert!(!ack.note_packet(PathId::new(1)));
        ack.set_due_by(at(300));
        ack.on_deadline(at(199));
        assert!(!ack.is_due() && ack.is_due_or_pending());
        ack.on_deadline(at(200));
        assert!(ack.is_due() && ack.is_by_timer());
        assert_eq!((ack.packets(), ack.path(), ack.deadline()), (2, Some(PathId::new(1)), None));
        ack.note_sent(WindowBytes::new(9));
        assert!(!ack.is_due() && !ack.is_due_or_pending() && !ack.is_by_timer());
    }

    #[test]
    fn nr_sack_is_sent_only_if_both_sides_announced_it() {
        let wanted = AckForm::NrSack { keeps_all: true };
        let mut ack = AckState::default();
        assert_eq!(ack.form(wanted), AckForm::Sack);
        ack.agree_on_nr_sack(true);
        assert_eq!(ack.form(wanted), wanted);
    }

    #[test]
    fn window_below_a_packet_is_advertised_as_zero_and_updated_once_open() {
        let profile = Profile { silly_window_avoidance: true, ..Profile::rfc9260() };
        let full = Receiver::new(1 << 32, 1, 0, 100);
        assert_eq!(
            window_to_advertise(&full, &profile, 1_000),
            WindowBytes::new(100),
            "half the buffer is worth it"
        );
        let wide = Receiver::new(1 << 32, 1, 0, 100_000);
        let mut ack = AckState::default();
        assert!(!ack.wants_window_update(&wide, &profile, 1_000), "no window was advertised");
        ack.note_sent(WindowBytes::ZERO);
        assert!(ack.wants_window_update(&wide, &profile, 1_000));
        ack.note_sent(window_to_advertise(&wide, &profile, 1_000));
        assert!(!ack.wants_window_update(&wide, &profile, 1_000));
    }
}
