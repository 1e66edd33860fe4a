//! Rules around a scheme on which specifications and simulators differ, as one struct of named fields.
//!
//! Code reads a field, never a profile's name. [`Profile::rfc9260`] follows the standard. [`Profile::ns2`] follows the agents of
//! ns-2.35, with one row for its base agent and one for its CMT agent, which the papers used. [`Profile::net`] is the standard with
//! values and extensions for live links.

use crate::time::{Span, Time};
use crate::units::ChunkBytes;

/// Initial window of a path, in terms of its largest DATA chunk M.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialWindow {
    /// Maximum number of chunks: n of min(n M, max(2 M, target)).
    pub chunks: u64,
    /// Target of that formula.
    pub target: ChunkBytes,
    /// Target for an IPv6 address of the peer, whose larger header leaves less for chunks.
    pub target_ipv6: ChunkBytes,
}

impl InitialWindow {
    /// Returns min(n M, max(2 M, target)): RFC 9260 section 7.2.1 with n = 4, RFC 6928 section 2 with n = 10.
    //= docs/rfc9260.txt#section-7.2.1
    //# *  The initial cwnd before data transmission MUST be set to min(4 * PMDCS, max(2 * PMDCS, 4404)) bytes if the peer
    //# address is an IPv4 address and to min(4 * PMDCS, max(2 * PMDCS, 4344)) bytes if the peer address is an IPv6
    //# address.
    pub fn for_chunk(self, largest_chunk: ChunkBytes, ipv6: bool) -> ChunkBytes {
        largest_chunk.times(self.chunks).min(self.large_chunks(largest_chunk, ipv6))
    }

    /// Returns max(2 M, target).
    pub fn large_chunks(self, largest_chunk: ChunkBytes, ipv6: bool) -> ChunkBytes {
        largest_chunk.times(2).max(if ipv6 { self.target_ipv6 } else { self.target })
    }
}

/// Source of a path's first slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// Advertised receiver window of the peer (RFC 9260 section 7.2.1 permits it).
    PeerWindow,
    /// Fixed value (ns-2: 65,536 B).
    Fixed(ChunkBytes),
}

/// Condition that ends slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowStartExit {
    /// The threshold, or a loss (RFC 9260 section 7.2.1).
    AtLoss,
    /// Also round-trip times that grow from one round to the next (HyStart++, RFC 9406).
    AtDelay,
}

/// Condition under which the limit on packets per send opportunity applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BurstArming {
    /// Always (RFC 9260 section 6.1 D).
    Always,
    /// From the first cumulative acknowledgement of a chunk that had been retransmitted (ns-2), and no longer after the limit was
    /// reached if `disarms` (its base agent does, its CMT agent does not).
    AfterRecoveredLoss {
        /// `true` if reaching the limit switches it off again.
        disarms: bool,
    },
}

/// Decay of the window of a path that has sent nothing for a retransmission time-out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdleDecay {
    /// max(cwnd / 2, 4 M), and the first time ssthresh becomes the old window (RFC 9260 section 7.2.1).
    Rfc9260,
    /// If cwnd exceeds 2 M: max(cwnd / 2, 4 M), which raises a window between the two (ns-2).
    Ns2,
}

/// Cost of a chunk in the receive window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUnit {
    /// User data only.
    Payload,
    /// Whole DATA chunks, headers included (ns-2).
    Chunk,
}

/// Time at which the association's initiator may send its first DATA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// After the handshake, which confirms the primary path.
    AfterPrimary,
    /// After every path has answered a HEARTBEAT or failed (ns-2).
    AfterAllConfirmed,
}

/// Packets of the first retransmission opportunity after a fast-retransmit event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstFastRetransmission {
    /// One packet regardless of cwnd; the others wait for the next SACK (RFC 9260 section 7.2.4 item 3, ns-2's base agent).
    OnePacket,
    /// One exempt packet for each path with a loss, then the rest of the list as windows permit (ns-2's CMT agent).
    WholeList,
}

/// Acknowledgements that restart a path's T3 timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum T3Restart {
    /// Acknowledgements of the path's own earliest outstanding TSN (RFC 9260 section 6.3.2 R3, per path).
    OwnEarliest,
    /// Also a cumulative acknowledgement of any chunk of the path at or above its pseudo-cumulative TSN (ns-2's CMT agent).
    OwnEarliestOrCumulative,
    /// Acknowledgements of any chunk on the path: for schemes that detect all losses, also of retransmissions, by time and leave
    /// only silence to T3.
    Any,
}

/// Outcome of a copy that is in flight when another copy of its chunk is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyFate {
    /// Unknown: the copy leaves the flight at the loss of its chunk, at a duplicate report, at the next delivery on its path, or at
    /// T3. The acknowledgement credits the copy on the path of the SACK, else the latest.
    Unjudged,
    /// Delivered if the peer reports a duplicate, and lost if later packets of the path overtake the copy by the packet or the time
    /// threshold of RFC 9002 section 6.1. Judging begins with the first report of a duplicate, because some peers report none. The
    /// acknowledgement credits the copy whose round trip is plausible.
    Judged,
}

/// Time at which a TSN counts as reneged that a gap block acknowledged and later SACKs do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reneging {
    /// At once: the latest SACK replaces earlier ones (ns-2). Reordered SACKs have the same effect.
    AtOnce,
    /// After no SACK has covered the TSN for the longest RTO of any path: reordered SACKs of different paths have then been
    /// followed by newer ones, unlike those of a receiver that dropped data (RFC 9260 section 6.2.1 D iii).
    AfterLongestRto,
}

/// DATA that asks for a SACK at once (the I bit, RFC 7053), besides the messages that the application marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImmediateSack {
    /// The last chunk before a shutdown (RFC 7053 section 4.1).
    BeforeShutdown,
    /// Also all chunks whose acknowledgement the sender waits for: the last one that it has, the last one in a small window,
    /// probes, copies of the head-of-line chunk, and retransmissions after a time-out.
    Tails,
}

/// Agreement with the peer on the flags of SACKs (CMT's DAC), which other stacks encode differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackFlags {
    /// The peer is assumed to use them.
    Assumed,
    /// Both sides announce it in INIT and INIT-ACK. Otherwise flags are neither sent nor read, and gaps make SACKs due at once.
    Announced,
}

/// Loss rates that RTX-LOSSRATE compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRates {
    /// Measured by the sender.
    Measured,
    /// Equal for all paths: ns-2 reads `set-destination-lossrate`, which scripts may omit.
    Unset,
}

/// Rule for a path's recovery point when its window is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryPoint {
    /// Highest outstanding TSN (RFC 9260 section 7.2.4 item 4): one cut per window.
    HighestOutstanding,
    /// The same, but cleared if it is lower than the previous point: ns-2.35 then reads a variable that it never sets, so that a
    /// path whose newest chunks were moved away can be cut again at once.
    HighestOutstandingUnlessLower,
}

/// Probes of an association that has carried no DATA in either direction for longer than HB.interval and RTO.Max.
///
/// The wait between two HEARTBEATs of a path is then as long as the association has been idle, up to `longest_interval`. A
/// HEARTBEAT of the peer delays the next one on its path by one interval, so that both sides alternate. The first DATA ends this.
/// Paths with errors or out of service are always probed every HB.interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleHeartbeats {
    /// Longest wait, to which RTO and jitter are added. A side that is not probed in this time probes.
    pub longest_interval: Span,
    /// Probes are sent at multiples of this span since the endpoint started, so that those of many associations coincide.
    pub tick: Span,
}

impl IdleHeartbeats {
    /// Returns the first tick that is not before `at`.
    pub(crate) fn next_tick(self, at: Time) -> Time {
        let tick = self.tick.as_nanos().max(1);
        Time::from_nanos(at.as_nanos().div_ceil(tick).saturating_mul(tick))
    }
}

/// Rules of a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name by which it is selected, for output only.
    pub name: &'static str,
    /// Initial window of a path.
    pub initial_window: InitialWindow,
    /// Initial slow-start threshold of a path.
    pub initial_ssthresh: InitialSsthresh,
    /// Maximum growth of a window by one SACK in slow start, in largest chunks: L of RFC 9260 section 7.2.1.
    pub slow_start_limit: u64,
    /// Condition that ends slow start.
    pub slow_start_exit: SlowStartExit,
    /// `true` if a window may grow while its path is in fast recovery.
    pub growth_in_recovery: bool,
    /// Floor of ssthresh after a fast retransmit, in largest chunks.
    pub fast_retransmit_floor: u64,
    /// Floor of ssthresh after a T3 expiry, in largest chunks.
    pub timeout_floor: u64,
    /// `true` if T3 recomputes ssthresh even when cwnd is already one chunk (ns-2's base agent does not).
    pub timeout_cuts_at_one_chunk: bool,
    /// `true` if chunks newly acknowledged by the cumulative TSN count as new acknowledgements of their path in missing reports.
    pub cumulative_acks_count_for_missing: bool,
    /// `true` if the highest newly acknowledged TSN is kept from SACK to SACK, so that a SACK without one still reports chunks
    /// missing (ns-2, where split fast retransmit does not replace it).
    pub highest_newly_acked_persists: bool,
    /// `true` if every hole counts a report when the cumulative TSN advances in fast recovery (RFC 9260 section 7.2.4 item 5).
    pub all_holes_count_in_recovery: bool,
    /// `true` if a path's recovery ends once no chunk that was outstanding at its cut is outstanding on the path. Otherwise it ends
    /// with the association's cumulative TSN, which in concurrent transfer waits for the holes of other paths.
    pub recovery_ends_per_path: bool,
    /// `true` if a T3 expiry ends its path's recovery, so that the window grows again in slow start (RFC 6582 section 4 for TCP).
    /// Otherwise it stays at one chunk until all data outstanding at the previous cut has arrived.
    pub timeout_ends_recovery: bool,
    /// `true` if a path becomes potentially failed only when its error counter becomes exactly one (ns-2).
    pub pf_at_first_error_only: bool,
    /// Loss rates that RTX-LOSSRATE compares.
    pub loss_rates: LossRates,
    /// `true` if bytes acknowledged by gap blocks while the window was not full count toward the next increment in congestion
    /// avoidance (ns-2), instead of being clamped to cwnd (RFC 9260 section 7.2.2).
    pub gap_acks_count_when_not_full: bool,
    /// Maximum number of packets per path and send opportunity.
    pub max_burst: u32,
    /// Condition under which that limit applies.
    pub burst_arming: BurstArming,
    /// Packets of the first fast retransmission.
    pub first_fast_retransmission: FirstFastRetransmission,
    /// `true` if new data waits while a lost chunk has not been retransmitted (RFC 9260 section 6.1 C; CMT does not wait).
    pub retransmissions_block_new_data: bool,
    /// `true` if a lost chunk counts as outstanding on its path until it is retransmitted (ns-2), `false` if only until it is
    /// declared lost (RFC 9260 section 6.2.1 D iv).
    pub lost_counts_until_resent: bool,
    /// `true` if the exemption of a fast-retransmit event is renewed at T3 expiries until the next such event (ns-2 does not clear
    /// the mark).
    pub exemption_outlives_event: bool,
    /// `true` if lost chunks that wait for retransmission continue to collect missing reports, and a fast-retransmit event also
    /// cuts the paths of these chunks (ns-2).
    pub pending_losses_are_cut: bool,
    /// Recovery point rule.
    pub recovery_point: RecoveryPoint,
    /// Reneging rule.
    pub reneging: Reneging,
    /// T3 restart rule.
    pub t3_restart: T3Restart,
    /// Outcome of redundant copies.
    pub copy_fate: CopyFate,
    /// `true` if new data may be sent in the opportunity that a T3 expiry opens.
    pub timeout_opens_new_data: bool,
    /// `true` if the end of the silence that the failover policy permits retransmits the outstanding chunks of the path on others.
    pub silence_retransmits: bool,
    /// Window decay of an idle path.
    pub idle_decay: IdleDecay,
    /// Unit of the receive window.
    pub window_unit: WindowUnit,
    /// `true` if the receive window of the association limits the outstanding data of all paths together. Otherwise the receiver
    /// accepts all data and always advertises its whole buffer, like a simulator without a receive buffer.
    pub shared_receive_window: bool,
    /// `true` if a full receive buffer still takes the next in-order TSN.
    pub full_buffer_takes_next: bool,
    /// `true` for silly-window avoidance: the receiver's with window-update SACKs, and the sender's for small chunks.
    pub silly_window_avoidance: bool,
    /// `true` if the SACK for a dropped DATA chunk is suppressed (ns-2).
    pub drop_suppresses_sack: bool,
    /// `true` if a SACK sent by the delayed-ack timer reports its packet count as zero to CMT's delayed-ack rule (ns-2 zeroes the
    /// counter before it builds the SACK).
    pub timer_sack_counts_zero: bool,
    /// Maximum delay of a SACK, also for schemes that ask for a longer one.
    pub sack_delay_max: Span,
    /// DATA that asks for a SACK at once.
    pub immediate_sack: ImmediateSack,
    /// Agreement on the meaning of a SACK's flags.
    pub sack_flags: SackFlags,
    /// `true` if the very first DATA is acknowledged at once (RFC 9260 section 5.1).
    pub first_data_acked_at_once: bool,
    /// `true` if SACKs and other control chunks may share a packet with DATA.
    pub bundle_control: bool,
    /// Time at which data may start.
    pub start: Start,
    /// Largest delay of [`Endpoint::handle_timeout`](crate::Endpoint::handle_timeout). A paced path may send at once the bytes that
    /// it could have sent in that time, so that a coarse timer costs no throughput.
    pub pacing_timer: Span,
    /// Period of the minimum RTT ([`RttFacts::recent_min`](crate::policy::RttFacts)).
    pub min_rtt_window: Span,
    /// RTO before the first sample.
    pub rto_initial: Span,
    /// Lower bound of RTO.
    pub rto_min: Span,
    /// Upper bound of RTO.
    pub rto_max: Span,
    /// HB.interval: a path that is idle for this long plus its RTO is probed.
    pub heartbeat_interval: Span,
    /// Rarer probes of idle associations; `None` probes them every `heartbeat_interval` as well.
    pub idle_heartbeats: Option<IdleHeartbeats>,
    /// Path.Max.Retrans.
    pub path_max_retrans: u32,
    /// Association.Max.Retrans.
    pub association_max_retrans: u32,
    /// Max.Init.Retransmits.
    pub max_init_retransmits: u32,
    /// Time after an INIT until the next path gets one too, unless the peer has answered: a dead path then costs this time instead
    /// of a time-out. `None` tries one path per time-out (RFC 9260 section 5.1).
    pub init_stagger: Option<Span>,
    /// Valid.Cookie.Life.
    pub cookie_life: Span,
}

impl Profile {
    /// Returns the standard's rules and recommended values (RFC 9260 sections 7 and 16).
    pub fn rfc9260() -> Self {
        Profile {
            name: "rfc9260",
            initial_window: InitialWindow {
                chunks: 4,
                target: ChunkBytes::new(4404),
                target_ipv6: ChunkBytes::new(4344),
            },
            initial_ssthresh: InitialSsthresh::PeerWindow,
            //= docs/rfc9260.txt#section-7.2.1
            //# The positive integer L SHOULD be 1 and MAY be larger than 1.
            slow_start_limit: 1,
            slow_start_exit: SlowStartExit::AtLoss,
            growth_in_recovery: false,
            fast_retransmit_floor: 4,
            timeout_floor: 4,
            timeout_cuts_at_one_chunk: true,
            cumulative_acks_count_for_missing: true,
            highest_newly_acked_persists: false,
            all_holes_count_in_recovery: true,
            recovery_ends_per_path: false,
            timeout_ends_recovery: false,
            pf_at_first_error_only: false,
            loss_rates: LossRates::Measured,
            gap_acks_count_when_not_full: false,
            max_burst: 4,
            burst_arming: BurstArming::Always,
            first_fast_retransmission: FirstFastRetransmission::OnePacket,
            retransmissions_block_new_data: true,
            lost_counts_until_resent: false,
            exemption_outlives_event: false,
            pending_losses_are_cut: false,
            recovery_point: RecoveryPoint::HighestOutstanding,
            reneging: Reneging::AfterLongestRto,
            t3_restart: T3Restart::OwnEarliest,
            copy_fate: CopyFate::Unjudged,
            timeout_opens_new_data: true,
            silence_retransmits: false,
            idle_decay: IdleDecay::Rfc9260,
            window_unit: WindowUnit::Payload,
            shared_receive_window: true,
            full_buffer_takes_next: true,
            silly_window_avoidance: true,
            drop_suppresses_sack: false,
            timer_sack_counts_zero: false,
            // RFC 9260 section 6.2: the maximum.
            sack_delay_max: Span::from_millis(500),
            immediate_sack: ImmediateSack::BeforeShutdown,
            sack_flags: SackFlags::Assumed,
            first_data_acked_at_once: true,
            bundle_control: true,
            start: Start::AfterPrimary,
            pacing_timer: Span::ZERO,
            // draft-ietf-ccwg-bbr section 2.14: BBR.MinRTTFilterLen.
            min_rtt_window: Span::from_secs(10),
            //= docs/rfc9260.txt#section-16
            //# The following protocol parameters are RECOMMENDED:
            //= docs/rfc9260.txt#section-16
            //# 'RTO.Min' SHOULD be set as described above in this section.
            rto_initial: Span::from_secs(1),
            rto_min: Span::from_secs(1),
            rto_max: Span::from_secs(60),
            heartbeat_interval: Span::from_secs(30),
            idle_heartbeats: None,
            path_max_retrans: 5,
            association_max_retrans: 10,
            max_init_retransmits: 8,
            init_stagger: None,
            cookie_life: Span::from_secs(60),
        }
    }

    /// Returns the rules with the changes for concurrent transfer: retransmissions do not delay new data on other paths, and a
    /// fast-retransmit event may use every path's window.
    pub fn multipath(self) -> Self {
        Profile {
            first_fast_retransmission: FirstFastRetransmission::WholeList,
            retransmissions_block_new_data: false,
            all_holes_count_in_recovery: false,
            recovery_ends_per_path: true,
            ..self
        }
    }

    /// Returns the standard's rules for multipath schemes.
    pub fn rfc9260_multipath() -> Self {
        Profile::rfc9260().multipath()
    }

    /// Returns the rules of ns-2.35's base SCTP agent.
    pub fn ns2() -> Self {
        Profile {
            name: "ns2",
            initial_window: InitialWindow {
                chunks: 4,
                target: ChunkBytes::new(4380),
                target_ipv6: ChunkBytes::new(4380),
            },
            initial_ssthresh: InitialSsthresh::Fixed(ChunkBytes::new(65_536)),
            timeout_cuts_at_one_chunk: false,
            cumulative_acks_count_for_missing: false,
            highest_newly_acked_persists: true,
            pf_at_first_error_only: true,
            loss_rates: LossRates::Unset,
            gap_acks_count_when_not_full: true,
            burst_arming: BurstArming::AfterRecoveredLoss { disarms: true },
            lost_counts_until_resent: true,
            pending_losses_are_cut: true,
            reneging: Reneging::AtOnce,
            timeout_opens_new_data: false,
            idle_decay: IdleDecay::Ns2,
            window_unit: WindowUnit::Chunk,
            full_buffer_takes_next: false,
            silly_window_avoidance: false,
            drop_suppresses_sack: true,
            timer_sack_counts_zero: true,
            bundle_control: false,
            start: Start::AfterAllConfirmed,
            rto_initial: Span::from_secs(3),
            ..Profile::rfc9260()
        }
    }

    /// Returns the rules of ns-2.35's CMT agent, which the papers used.
    pub fn ns2_multipath() -> Self {
        Profile {
            growth_in_recovery: true,
            fast_retransmit_floor: 2,
            timeout_floor: 2,
            timeout_cuts_at_one_chunk: true,
            burst_arming: BurstArming::AfterRecoveredLoss { disarms: false },
            first_fast_retransmission: FirstFastRetransmission::WholeList,
            retransmissions_block_new_data: false,
            exemption_outlives_event: true,
            recovery_point: RecoveryPoint::HighestOutstandingUnlessLower,
            t3_restart: T3Restart::OwnEarliestOrCumulative,
            first_data_acked_at_once: false,
            all_holes_count_in_recovery: false,
            ..Profile::ns2()
        }
    }

    /// Returns the standard's rules for live links, with the choices that current stacks make where RFC 9260 leaves them open.
    pub fn net() -> Self {
        Profile {
            name: "net",
            // RFC 6928 section 2.
            initial_window: InitialWindow {
                chunks: 10,
                target: ChunkBytes::new(14_600),
                target_ipv6: ChunkBytes::new(14_600),
            },
            // RFC 9260 section 7.2.1: it may be arbitrarily high. The peer's first window is independent of the path.
            initial_ssthresh: InitialSsthresh::Fixed(ChunkBytes::new(1 << 30)),
            slow_start_limit: 8,
            slow_start_exit: SlowStartExit::AtDelay,
            timeout_ends_recovery: true,
            max_burst: 10,
            // Timers of asynchronous runtimes count milliseconds and round up.
            pacing_timer: Span::from_millis(1),
            sack_delay_max: Span::from_millis(50),
            immediate_sack: ImmediateSack::Tails,
            sack_flags: SackFlags::Announced,
            rto_min: Span::from_millis(300),
            // A cut link delays an ordered stream until the chunks on it arrive on another one. RTO.Min is longer than this silence.
            silence_retransmits: true,
            rto_max: Span::from_secs(10),
            heartbeat_interval: Span::from_secs(5),
            idle_heartbeats: Some(IdleHeartbeats {
                // RFC 9000 section 10.1.2: most middleboxes keep the mapping of a UDP flow with a packet every 30 s. The wait with
                // RTO, jitter and tick stays below that up to an RTO of 3 s. RFC 8085 section 3.5 asks for at least 15 s between
                // packets that only keep a mapping.
                longest_interval: Span::from_secs(25),
                // Within the jitter of RTO.Min that RFC 9260 section 8.3 requires.
                tick: Span::from_millis(100),
            }),
            init_stagger: Some(Span::from_millis(250)),
            // Errors of all paths count; with eight paths it still takes more than RTO.Max.
            association_max_retrans: 50,
            ..Profile::rfc9260()
        }
    }

    /// Returns the profile called `name`, in its row for single-path or multipath schemes; `None` for an unknown name.
    pub fn named(name: &str, multipath: bool) -> Option<Self> {
        match (name, multipath) {
            ("rfc9260", false) => Some(Profile::rfc9260()),
            ("rfc9260", true) => Some(Profile::rfc9260_multipath()),
            ("ns2", false) => Some(Profile::ns2()),
            ("ns2", true) => Some(Profile::ns2_multipath()),
            ("net", false) => Some(Profile::net()),
            ("net", true) => Some(Profile::net().multipath()),
            _ => None,
        }
    }

    /// Names that [`Profile::named`] accepts.
    pub const NAMES: [&'static str; 3] = ["rfc9260", "ns2", "net"];

    /// Returns the cost of `payload_bytes` of user data in `chunks` DATA chunks in a receive window.
    pub fn window_cost(&self, payload_bytes: u64, chunks: u64) -> crate::units::WindowBytes {
        match self.window_unit {
            WindowUnit::Payload => crate::units::WindowBytes::new(payload_bytes),
            WindowUnit::Chunk => crate::units::WindowBytes::new(payload_bytes + chunks * 16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_windows_follow_their_formula() {
        let m = ChunkBytes::new(1468);
        assert_eq!(Profile::ns2().initial_window.for_chunk(m, false).get(), 4380);
        assert_eq!(Profile::rfc9260().initial_window.for_chunk(m, false).get(), 4404);
        assert_eq!(Profile::rfc9260().initial_window.for_chunk(ChunkBytes::new(1448), true).get(), 4344);
        assert_eq!(Profile::rfc9260().initial_window.for_chunk(ChunkBytes::new(500), false).get(), 2000);
        assert_eq!(Profile::rfc9260().initial_window.for_chunk(ChunkBytes::new(9000), false).get(), 18_000);
        assert_eq!(Profile::net().initial_window.for_chunk(ChunkBytes::new(1440), false).get(), 14_400);
        assert_eq!(Profile::net().initial_window.for_chunk(m, false).get(), 14_600);
        assert_eq!(Profile::net().initial_window.for_chunk(ChunkBytes::new(9000), false).get(), 18_000);
    }

    #[test]
    fn every_listed_name_has_both_rows() {
        for name in Profile::NAMES {
            assert!(Profile::named(name, false).is_some() && Profile::named(name, true).is_some());
        }
        assert!(Profile::named("ns-2", true).is_none());
    }
}
