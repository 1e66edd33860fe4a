//! Estimators: figures of paths that several slots read.

pub(crate) mod loss_rate;
mod rate_model;

pub use loss_rate::MeasuredLossRate;
pub use rate_model::{RATE_ROUNDS, RateModel};

use anabranch_core::PathSet;
use anabranch_core::policy::View;

/// The active paths that their estimator does not advise against; all active ones if it advises against each of them, since
/// data has to go somewhere.
pub(crate) fn advised(view: &View<'_>) -> PathSet {
    let all: PathSet = view.active().map(|path| path.id).collect();
    let advised: PathSet =
        view.active().filter(|path| !path.estimates.withdrawn).map(|path| path.id).collect();
    if advised.is_empty() { all } else { advised }
}
