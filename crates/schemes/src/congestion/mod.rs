//! Windows: the bookkeeping that every scheme shares ([`WindowControl`]), in it a rule of growth and a rule of reduction, and
//! controls that are wrapped around another one.

mod capped;
mod control;
pub mod cut;
pub mod growth;
mod penalised;
mod random_loss;
mod rule;
mod slow_start_exit;
#[cfg(test)]
mod testing;

pub use capped::Capped;
pub use control::{FirstWindow, GrowthGate, WindowControl};
pub use penalised::Penalised;
pub use random_loss::{Consecutive, RandomLoss, RandomLossRules, Reading, RoundTrip};
pub use rule::{Acknowledged, Change, Cut, Growth, Suffered};
