//! Estimators: figures of paths that several slots read.

pub(crate) mod loss_rate;
mod rate_model;

pub use loss_rate::MeasuredLossRate;
pub use rate_model::{RATE_ROUNDS, RateModel};

use anabranch_core::PathSet;
use anabranch_core::policy::View;

/// Returns the active paths that their estimator does not withdraw. If all are withdrawn, returns all active paths, because data
/// has to be sent on some path.
pub(crate) fn advised(view: &View<'_>) -> PathSet {
    let all: PathSet = view.active().map(|path| path.id).collect();
    let advised: PathSet =
        view.active().filter(|path| !path.estimates.withdrawn).map(|path| path.id).collect();
    if advised.is_empty() { all } else { advised }
}
