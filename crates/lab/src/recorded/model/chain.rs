//! A semi-Markov chain: the durations of the visits of each state, and the states that follow it.

use std::collections::BTreeMap;

use anabranch_sim::Stream;

use super::ModelError;

/// Limit of the number of steps in a state by which it is drawn, so that sums of files with huge counts do not overflow.
const MOST_STEPS: u64 = 1 << 48;

/// Number of occurrences of each value.
pub(super) type Counts = BTreeMap<u32, u32>;

/// Semi-Markov chain. A state that is never entered has neither durations nor transitions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Chain {
    /// Number of transitions to each other state, by state.
    pub(super) transitions: Vec<Counts>,
    /// Number of visits of each duration in steps, by state.
    pub(super) durations: Vec<Counts>,
}

/// Place in a chain.
#[derive(Clone, Copy, Debug)]
pub(super) struct Visit {
    pub(super) state: usize,
    /// Number of steps until the chain leaves the state.
    pub(super) left: usize,
}

impl Chain {
    /// Counts the transitions and durations of states in a circle of steps. The chain thus leaves each state as often as it enters
    /// it, and is in it for the same part of the time.
    pub(super) fn of(sequence: &[usize], states: usize) -> Chain {
        let mut transitions = vec![Counts::new(); states];
        let mut durations = vec![Counts::new(); states];
        let mut visits: Vec<(usize, u32)> =
            sequence.chunk_by(usize::eq).map(|visit| (visit[0], visit.len() as u32)).collect();
        if visits.len() > 1 && visits[0].0 == sequence[sequence.len() - 1] {
            // The last visit continues at the beginning of the circle.
            let last = visits.pop().map_or(0, |(_, duration)| duration);
            visits[0].1 += last;
        }
        for (&(state, duration), &(next, _)) in visits.iter().zip(visits.iter().cycle().skip(1)) {
            *durations[state].entry(duration).or_insert(0) += 1;
            *transitions[state].entry(next as u32).or_insert(0) += 1;
        }
        Chain { transitions, durations }
    }

    /// Draws a state with the part of the time that the chain is in it.
    pub(super) fn enter(&self, stream: &mut Stream) -> Visit {
        let steps = |counts: &Counts| {
            let visits = weights(counts).map(|(steps, count)| steps as u64 * count);
            visits.fold(0, u64::saturating_add).min(MOST_STEPS)
        };
        let shares: Vec<(usize, u64)> = self.durations.iter().map(steps).enumerate().collect();
        self.visit(pick(stream, shares.into_iter()), stream)
    }

    /// Draws the state that follows.
    pub(super) fn leave(&self, state: usize, stream: &mut Stream) -> Visit {
        self.visit(pick(stream, weights(&self.transitions[state])), stream)
    }

    fn visit(&self, state: usize, stream: &mut Stream) -> Visit {
        Visit { state, left: pick(stream, weights(&self.durations[state])) }
    }

    /// Reads a chain of some states.
    ///
    /// # Errors
    /// Returns [`ModelError::Document`] unless each state that is entered is left after some steps, and one is entered.
    pub(super) fn read(rows: &ChainRows, states: usize) -> Result<Chain, ModelError> {
        let ChainRows { transitions, durations } = rows;
        let refused = |what: &str| Err(ModelError::Document(what.to_owned()));
        if transitions.len() != states || durations.len() != states {
            return refused("`transitions` or `durations` does not have a list for each state");
        }
        let is_left = |state: usize| transitions.get(state).is_some_and(|row| !row.is_empty());
        let leads_on = |[next, count]: &[u32; 2]| is_left(*next as usize) && *count > 0;
        if !transitions.iter().flatten().all(leads_on) || transitions.iter().all(Vec::is_empty) {
            return refused(
                "`transitions` leads to a state that does not exist or is not left, or has no count",
            );
        }
        let lasts = |row: &Vec<[u32; 2]>| row.iter().all(|[steps, count]| *steps > 0 && *count > 0);
        let is_complete = |(row, exits): (&Vec<_>, &Vec<_>)| lasts(row) && row.is_empty() == exits.is_empty();
        if !durations.iter().zip(transitions).all(is_complete) {
            return refused(
                "`durations` has no duration of a state in `transitions`, or one without steps or count",
            );
        }
        let counts = |rows: &[Vec<[u32; 2]>]| -> Vec<Counts> {
            rows.iter().map(|row| row.iter().copied().map(<(u32, u32)>::from).collect()).collect()
        };
        Ok(Chain { transitions: counts(transitions), durations: counts(durations) })
    }
}

/// Chain in a file.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainRows {
    pub(super) transitions: Vec<Vec<[u32; 2]>>,
    pub(super) durations: Vec<Vec<[u32; 2]>>,
}

/// Returns values with their weights.
fn weights(counts: &Counts) -> impl Iterator<Item = (usize, u64)> + Clone {
    counts.iter().map(|(&value, &count)| (value as usize, u64::from(count)))
}

/// Draws a value by weight.
fn pick(stream: &mut Stream, weights: impl Iterator<Item = (usize, u64)> + Clone) -> usize {
    let sum = weights.clone().map(|(_, weight)| weight).sum::<u64>().max(1);
    let mut rest = stream.below(sum);
    for (value, weight) in weights {
        match rest.checked_sub(weight) {
            Some(less) => rest = less,
            None => return value,
        }
    }
    0
}
