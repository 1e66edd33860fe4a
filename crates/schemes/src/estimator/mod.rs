//! Figures that several slots read.

mod loss_rate;

pub use loss_rate::MeasuredLossRate;
