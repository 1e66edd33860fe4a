//! Transfers of different lengths that are equal otherwise, and so have the same beginning.
//!
//! Only the longest transfer is simulated from its beginning. Shortly before a shorter one would take its last message from the
//! queue, the world is copied, and the copy continues without the rest of the queue. Until then no policy has seen a difference but
//! the amount of queued data, which was more than all windows ([`Policies::copied`](anabranch_core::policy::Policies::copied)).
//! Results are those of whole runs; jobs that cannot be copied are whole runs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_core::Association;
use anabranch_scenario::{FileSource, FlowKind};

use crate::run::application::Progress;
use crate::run::build::BuiltWorld;
use crate::run::{Job, RunEnd, RunResult};

/// Maximum number of jobs that share one beginning.
const MOST_JOBS: usize = 256;

/// Bytes that are sent after the copy in any case, for retransmissions and chunks that the sender has bound to a path.
const LEAST_REMAINING_BYTES: u64 = 64 << 10;

/// Job with its index in the batch.
pub(super) type Indexed = (usize, Job);

/// Groups consecutive jobs that share their beginning.
pub(super) fn families(jobs: impl Iterator<Item = Indexed>) -> impl Iterator<Item = Vec<Indexed>> {
    let mut jobs = jobs.peekable();
    std::iter::from_fn(move || {
        let mut family = vec![jobs.next()?];
        // Other jobs share nothing, so the next one is not made before it is due.
        let is_transfer = transfer_bytes(&family[0].1).is_some();
        while is_transfer
            && family.len() < MOST_JOBS
            && let Some(job) = jobs.next_if(|(_, job)| share_beginning(&family[0].1, job))
        {
            family.push(job);
        }
        Some(family)
    })
}

/// Returns the length of the generated content of a job whose only flow transfers it. Traces and captures need whole runs.
fn transfer_bytes(job: &Job) -> Option<u64> {
    let [flow] = &job.scenario.flows[..] else { return None };
    let FlowKind::File(FileSource::SizeBytes(bytes)) = flow.kind else { return None };
    (job.pcap.is_none() && job.trace.is_none()).then_some(bytes)
}

/// Returns `true` if two jobs transfer generated contents and may differ in their lengths only.
fn share_beginning(one: &Job, other: &Job) -> bool {
    let alike = transfer_bytes(one).is_some()
        && transfer_bytes(other).is_some()
        && (one.seed, one.digest, &one.part) == (other.seed, other.digest, &other.part)
        && one.scheme.to_string() == other.scheme.to_string()
        && one.files.folder() == other.files.folder()
        && one.conventions == other.conventions;
    alike && {
        let mut scenario = (*other.scenario).clone();
        scenario.flows[0].kind.clone_from(&one.scenario.flows[0].kind);
        scenario == *one.scenario
    }
}

/// Runs the jobs of a family as far as they can share their beginning, and passes their results to `done`. Returns the other jobs,
/// which have no results: all of them after an error or a stop.
pub(super) fn run_family(
    family: Vec<Indexed>,
    continues: impl Fn() -> bool,
    done: impl Fn(usize, RunResult),
) -> Vec<Indexed> {
    if family.len() == 1 {
        return family;
    }
    let mut finished = vec![false; family.len()];
    // A job that has panicked or failed does so again as a whole run, which reports it.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        run_shared(&family, &continues, |at, result| {
            finished[at] = true;
            done(family[at].0, result);
        });
    }));
    let others = family.into_iter().zip(finished).filter(|(_, finished)| !finished);
    others.map(|(job, _)| job).collect()
}

/// Runs the longest job, and the shorter ones from copies.
fn run_shared(family: &[Indexed], continues: &impl Fn() -> bool, mut done: impl FnMut(usize, RunResult)) {
    let bytes = |at: &usize| transfer_bytes(&family[*at].1);
    let mut order: Vec<usize> = (0..family.len()).collect();
    order.sort_by_key(bytes);
    let Some(longest) = order.pop() else { return };
    order.reverse();
    let mut branches = Branches { shorter: order, reserve_bytes: 0, position: 0, advance_bytes: 0 };
    let mut look = |built: &mut BuiltWorld| {
        while let Some((at, copy)) = branches.next(built, family) {
            let job = &family[at].1;
            if let Some(result) = copy.and_then(|copy| finish(job, copy, continues)) {
                done(at, result);
            }
        }
    };
    let job = &family[longest].1;
    let Ok(Some(built)) = job.run_built(continues, Some(&mut look)) else { return };
    if let Ok(result) = built.finish(job) {
        done(longest, result);
    }
}

/// Continues a copy to its end.
fn finish(job: &Job, mut built: BuiltWorld, continues: &impl Fn() -> bool) -> Option<RunResult> {
    match job.advance(&mut built, continues, None) {
        RunEnd::End => built.finish(job).ok(),
        RunEnd::Stop | RunEnd::OrderUnknown => None,
    }
}

/// Shorter transfers that are still part of the longest one.
struct Branches {
    /// Places in the family, the longest transfer first.
    shorter: Vec<usize>,
    /// Maximum so far of all windows together.
    reserve_bytes: u64,
    /// Data that the sender has taken from the queue so far.
    position: u64,
    /// Maximum increase of `position` between two looks.
    advance_bytes: u64,
}

impl Branches {
    /// Returns the place of the next transfer that is about to end, with its world. Without a world it has to be a whole run.
    fn next(&mut self, built: &mut BuiltWorld, family: &[Indexed]) -> Option<(usize, Option<BuiltWorld>)> {
        let at = *self.shorter.last()?;
        let bytes = transfer_bytes(&family[at].1)?;
        let (progress, association) = built.transfer()?;
        self.note(progress, association);
        let remaining = progress.last_message(bytes).checked_sub(self.position);
        let near_bytes = self.reserve_bytes + 2 * self.advance_bytes;
        if remaining.is_some_and(|remaining| remaining > near_bytes) {
            return None;
        }
        self.shorter.pop();
        let is_early = remaining.is_some_and(|remaining| remaining >= self.reserve_bytes);
        Some((at, if is_early { built.copied_with(bytes) } else { None }))
    }

    fn note(&mut self, progress: &Progress, association: &Association) {
        let facts = association.association_facts();
        let windows: u64 = association.paths().iter().map(|path| path.cwnd.get()).sum();
        let windows = windows + facts.peer_window_advertised.get().max(facts.peer_window_initial.get());
        self.reserve_bytes = self.reserve_bytes.max(windows + LEAST_REMAINING_BYTES);
        let position = progress.position(association);
        self.advance_bytes = self.advance_bytes.max(position.saturating_sub(self.position));
        self.position = position;
    }
}

#[cfg(test)]
mod tests;
