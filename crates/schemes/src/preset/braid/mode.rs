//! Detection of competing flows that fill a path's queue, round by round.
//!
//! In delay mode, the flow uses the round-trip time to keep the queue short (Vegas). In this mode it would starve beside loss-based
//! flows. If the queue persists although the flow has reduced its window, loss-based flows are filling it. The flow then switches
//! to competitive mode (Copa's mode switch), and increases its window as they do.

use anabranch_core::time::Span;

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[
    Equation {
        name: "Vegas, own queue",
        rule: text!(
            "delay mode, once a round: q = (least round trip of the round - base) rate / M; q > {}: the \
             window shrinks by (q - {}) / {} + {} chunks, to {} of it or {} chunks at least, if it was \
             used",
            TARGET_PACKETS,
            TARGET_PACKETS,
            EXCESS_DIVISOR,
            EXTRA_CHUNKS,
            LEAST_SHARE,
            LEAST_CHUNKS,
        ),
        file: file!(),
    },
    Equation {
        name: "HyStart, end of slow start",
        rule: text!(
            "least round trip of a round - base > base / {}, within {} and {}, and q > {}: cwnd = \
             min(cwnd, rate base_m + {} chunks)",
            SLOW_START_DIVISOR,
            SLOW_START_QUEUE.0,
            SLOW_START_QUEUE.1,
            TARGET_PACKETS,
            TARGET_PACKETS,
        ),
        file: file!(),
    },
    Equation {
        name: "Copa, mode",
        rule: text!(
            "q > {} for more than {} rounds in which the window was used: competitive mode, with the \
             window as if it had grown by a chunk in each of them; a round between them does not count \
             if q exceeds {} with the waits for SACKs only; q < {} for {} rounds: delay mode; q < {} in \
             a round of a drain: delay mode, cwnd = min(cwnd, rate base_m + {} chunks)",
            TARGET_PACKETS,
            PERSISTENT_ROUNDS,
            TARGET_PACKETS,
            TARGET_PACKETS / 2.0,
            EMPTY_ROUNDS,
            TARGET_PACKETS / 2.0,
            TARGET_PACKETS,
        ),
        file: file!(),
    },
];

/// Target number of own packets in the queue without competing flows: Vegas's alpha (Brakmo, O'Malley, Peterson 1994).
pub(super) const TARGET_PACKETS: f64 = 2.0;
/// HyStart (RFC 9406 section 4.2): MIN_RTT_THRESH, MAX_RTT_THRESH, MIN_RTT_DIVISOR.
pub(super) const SLOW_START_QUEUE: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));
pub(super) const SLOW_START_DIVISOR: u64 = 8;
/// Number of rounds after which a persistent queue is attributed to competing flows. Copa waits 5 round trips; the first round here
/// is the one in which the flow reduces its window.
const PERSISTENT_ROUNDS: u32 = 6;
/// Number of rounds without a queue after which competing flows are assumed to be gone. After a reduction, a loss-based flow leaves
/// the queue empty for some rounds.
const EMPTY_ROUNDS: u32 = 10;
/// Divisor of the excess by which the window shrinks, so that the delayed effect of a round is not corrected twice.
const EXCESS_DIVISOR: f64 = 2.0;
/// Number of chunks by which the window shrinks in addition.
const EXTRA_CHUNKS: f64 = 0.5;
/// Least window after one round, as a share of the previous one.
const LEAST_SHARE: f64 = 0.7;
/// Least window in chunks.
const LEAST_CHUNKS: f64 = 2.0;

/// Mode of a path's window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    /// Slow start: the window doubles in each round.
    SlowStart,
    /// Delay mode: the queue is kept short.
    Delay(PersistentQueue),
    /// Competitive mode: the window grows like CUBIC until a loss.
    Competitive {
        /// Number of consecutive rounds without a queue.
        empty_rounds: u32,
    },
}

/// Queue that persists although the window shrinks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct PersistentQueue {
    /// Duration in rounds.
    pub(super) rounds: u32,
    /// Window in bytes without these reductions.
    pub(super) held_bytes: f64,
}

/// Completed round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Round {
    /// Minimum number of the path's packets in the queue during the round.
    pub(super) queue_packets: f64,
    /// Upper bound of `queue_packets`, if no packet waited at the peer for its SACK.
    pub(super) queue_packets_limit: f64,
    /// Set if the queue exceeds HyStart's limit.
    pub(super) ends_slow_start: bool,
    /// Set if the window was in full use.
    pub(super) used: bool,
    /// Set while the path is drained.
    pub(super) draining: bool,
    /// Window in bytes.
    pub(super) cwnd: f64,
    /// Largest chunk in bytes.
    pub(super) chunk: f64,
}

/// Effect of the end of a round on the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    Keep,
    /// Ends slow start.
    FillPath,
    /// Shrinks the window to this many bytes.
    Shrink(f64),
    /// Switches to competitive mode with a window of this many bytes.
    Compete(f64),
    /// Leaves competitive mode, because no competing flow is left.
    Relax,
    /// Reduces the window to fill the path, because a drain emptied the queue: no competing flow kept it.
    OwnQueue,
}

/// Returns the mode after a round, and the step of the window.
pub(super) fn after_round(mode: Mode, round: &Round) -> (Mode, Step) {
    match mode {
        Mode::SlowStart if round.ends_slow_start && round.queue_packets > TARGET_PACKETS => {
            (Mode::Delay(PersistentQueue::default()), Step::FillPath)
        }
        Mode::SlowStart => (mode, Step::Keep),
        Mode::Delay(persistent) => delay_mode(persistent, round),
        Mode::Competitive { .. } if round.queue_packets >= TARGET_PACKETS / 2.0 => {
            (Mode::Competitive { empty_rounds: 0 }, Step::Keep)
        }
        Mode::Competitive { .. } if round.draining => {
            (Mode::Delay(PersistentQueue::default()), Step::OwnQueue)
        }
        Mode::Competitive { empty_rounds } if empty_rounds + 1 >= EMPTY_ROUNDS => {
            (Mode::Delay(PersistentQueue::default()), Step::Relax)
        }
        Mode::Competitive { empty_rounds } => {
            (Mode::Competitive { empty_rounds: empty_rounds + 1 }, Step::Keep)
        }
    }
}

fn delay_mode(persistent: PersistentQueue, round: &Round) -> (Mode, Step) {
    let excess = round.queue_packets - TARGET_PACKETS;
    if excess <= 0.0 {
        // Waits for SACKs may hide a queue that persists. The window neither shrinks nor grows until the next round shows it.
        let hidden = round.queue_packets_limit > TARGET_PACKETS;
        let persistent = if hidden { persistent } else { PersistentQueue::default() };
        return (Mode::Delay(persistent), Step::Keep);
    }
    // The queue persists, but the window did not limit the path.
    if !round.used {
        return (Mode::Delay(persistent), Step::Keep);
    }
    let held = if persistent.rounds == 0 { round.cwnd } else { persistent.held_bytes };
    let persistent = PersistentQueue { rounds: persistent.rounds + 1, held_bytes: held + round.chunk };
    if persistent.rounds > PERSISTENT_ROUNDS {
        return (Mode::Competitive { empty_rounds: 0 }, Step::Compete(persistent.held_bytes.max(round.cwnd)));
    }
    (Mode::Delay(persistent), Step::Shrink(shrunk(excess, round)))
}

/// Returns the window after a round with an excess of packets in the queue.
fn shrunk(excess: f64, round: &Round) -> f64 {
    let less = round.cwnd - (excess / EXCESS_DIVISOR + EXTRA_CHUNKS) * round.chunk;
    less.max(LEAST_CHUNKS * round.chunk).max(LEAST_SHARE * round.cwnd)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: f64 = 1000.0;

    fn round(queue_packets: f64) -> Round {
        Round {
            queue_packets,
            queue_packets_limit: queue_packets,
            ends_slow_start: true,
            used: true,
            draining: false,
            cwnd: 20.0 * CHUNK,
            chunk: CHUNK,
        }
    }

    const DELAY: Mode = Mode::Delay(PersistentQueue { rounds: 0, held_bytes: 0.0 });

    #[test]
    fn slow_start_ends_where_a_queue_builds() {
        assert_eq!(after_round(Mode::SlowStart, &round(3.0)), (DELAY, Step::FillPath));
        assert_eq!(after_round(Mode::SlowStart, &round(2.0)), (Mode::SlowStart, Step::Keep));
        let short = Round { ends_slow_start: false, ..round(3.0) };
        assert_eq!(after_round(Mode::SlowStart, &short), (Mode::SlowStart, Step::Keep));
    }

    #[test]
    fn delay_mode_shrinks_a_used_window_above_the_target_queue() {
        assert_eq!(after_round(DELAY, &round(2.0)), (DELAY, Step::Keep));
        assert_eq!(after_round(DELAY, &round(5.0)).1, Step::Shrink(18.0 * CHUNK));
        assert_eq!(
            after_round(DELAY, &round(100.0)).1,
            Step::Shrink(14.0 * CHUNK),
            "by three tenths at most"
        );
    }

    #[test]
    fn persistent_queue_switches_to_competitive_mode() {
        let mut mode = DELAY;
        for _ in 0..6 {
            let (next, step) = after_round(mode, &round(5.0));
            assert!(matches!(step, Step::Shrink(_)));
            mode = next;
        }
        let smaller = Round { cwnd: 9.0 * CHUNK, ..round(5.0) };
        let competing = (Mode::Competitive { empty_rounds: 0 }, Step::Compete(27.0 * CHUNK));
        assert_eq!(after_round(mode, &smaller), competing);
    }

    #[test]
    fn rounds_not_limited_by_the_window_keep_the_mode() {
        let unused = Round { used: false, ..round(5.0) };
        assert_eq!(after_round(DELAY, &unused), (DELAY, Step::Keep));
        let persistent = Mode::Delay(PersistentQueue { rounds: 6, held_bytes: 30.0 * CHUNK });
        assert_eq!(after_round(persistent, &unused), (persistent, Step::Keep));
        assert_eq!(after_round(persistent, &round(5.0)).1, Step::Compete(31.0 * CHUNK));
    }

    #[test]
    fn one_round_with_a_short_queue_restarts_the_count() {
        let persistent = Mode::Delay(PersistentQueue { rounds: 6, held_bytes: 30.0 * CHUNK });
        assert_eq!(after_round(persistent, &round(1.0)), (DELAY, Step::Keep));
    }

    #[test]
    fn round_whose_queue_waits_may_hide_keeps_the_count() {
        let persistent = Mode::Delay(PersistentQueue { rounds: 6, held_bytes: 30.0 * CHUNK });
        let hidden = Round { queue_packets_limit: 3.0, ..round(0.0) };
        assert_eq!(after_round(persistent, &hidden), (persistent, Step::Keep));
        assert_eq!(after_round(persistent, &round(5.0)).1, Step::Compete(31.0 * CHUNK));
        assert_eq!(after_round(DELAY, &hidden), (DELAY, Step::Keep), "waits alone are no queue");
    }

    #[test]
    fn ten_rounds_without_a_queue_end_competitive_mode() {
        let mut mode = Mode::Competitive { empty_rounds: 0 };
        for _ in 0..9 {
            mode = after_round(mode, &round(0.5)).0;
        }
        assert_eq!(after_round(mode, &round(1.0)).0, Mode::Competitive { empty_rounds: 0 });
        assert_eq!(after_round(mode, &round(0.5)), (DELAY, Step::Relax));
    }

    #[test]
    fn queue_emptied_by_a_drain_is_not_competing_traffic() {
        let competing = Mode::Competitive { empty_rounds: 3 };
        let drained = |queue_packets| Round { draining: true, ..round(queue_packets) };
        assert_eq!(after_round(competing, &drained(0.9)), (DELAY, Step::OwnQueue));
        assert_eq!(
            after_round(competing, &drained(1.0)),
            (Mode::Competitive { empty_rounds: 0 }, Step::Keep)
        );
    }
}
