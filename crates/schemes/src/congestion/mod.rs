//! Windows: the bookkeeping that every scheme shares ([`WindowControl`]), and in it a rule of growth and a rule of reduction.

mod control;
pub mod cut;
pub mod growth;
mod rule;

pub use control::{FirstWindow, GrowthGate, WindowControl};
pub use rule::{Acknowledged, Adjustable, Change, Cut, Growth, Suffered};
