//! Rules of growth, one file each, and what they share.

mod balia;
mod coupled;
mod lia;
mod olia;
mod pooled;
mod rate_difference;
mod resource_pooling_v1;
mod resource_pooling_v2;
mod standard;

pub use balia::BaliaGrowth;
pub use lia::LiaGrowth;
pub use olia::{BestPaths, OliaGrowth};
pub use rate_difference::{Applies, RateDifferenceGrowth, RttSource, rate_difference};
pub use resource_pooling_v1::ResourcePoolingV1Growth;
pub use resource_pooling_v2::ResourcePoolingV2Growth;
pub use standard::StandardGrowth;

pub(crate) use balia::alpha as balia_alpha;
pub(crate) use coupled::{Flow, Flows};
pub(crate) use pooled::{coupled_paths, part, threshold_share};
