//! `cmt-qa`: CMT that measures its paths, distributes data by predicted arrival, and distinguishes random losses from congestion.

use anabranch_core::policy::Policies;

use crate::ack::delayed::{SACK_DELAY, SACK_EVERY, dac};
use crate::congestion::Wrapped;
use crate::congestion::control::cuc;
use crate::congestion::cut::{floor, floored};
use crate::definition::{Kind, Parameter, Preset, Role, Value, Values};
use crate::loss::missing_reports::{TRIGGER, sfr};
use crate::preset::cmt;
use crate::preset::cmt_qa::data_distribution::{DataDistribution, DistributionRules};
use crate::preset::cmt_qa::least_delay::LeastDelay;
use crate::preset::cmt_qa::path_quality::{QualityEstimator, QualityRules};
use crate::preset::cmt_qa::quality_aware::QualityAware;
use crate::preset::cmt_qa::random_loss::{RandomLoss, RandomLossRules};
use crate::retransmit::rtx;

mod card;
pub mod data_distribution;
pub mod least_delay;
pub mod path_quality;
pub mod quality_aware;
pub mod random_loss;

const PARAMETERS: &[Parameter] = &[
    Parameter::switch(
        "pqem",
        true,
        "paths are measured and judged; without it dds uses SRTT / cwnd for Q, and no loss counts as random",
        "Xu 2013, section 4",
    ),
    Parameter::switch(
        "dds",
        true,
        "new data goes to the path on which it is predicted to arrive first; without it as in `cmt`",
        "Xu 2013, section 5",
    ),
    Parameter::switch(
        "orp",
        true,
        "losses are classified, and retransmitted on the path with the lowest delay; without it as in `cmt`",
        "Xu 2013, section 6",
    ),
    path_quality::BOUND.parameter(),
    path_quality::QUANTILE.parameter(),
    path_quality::INITIAL_SAMPLE.parameter(),
    path_quality::GROUP.parameter(),
    path_quality::LOSS_UNIT.parameter(),
    path_quality::INACTIVE_BELOW.parameter(),
    Parameter {
        name: "judge-after",
        kind: Kind::Count { min: 1, max: 100 },
        unit: "samples",
        default: Value::Number(2),
        about: "pqem: number of samples, including the initial one, before a path may be withdrawn",
        source: "Xu 2013 names none",
    },
    path_quality::READMIT.parameter(),
    data_distribution::PIECE.parameter(),
    data_distribution::DISTRIBUTED.parameter(),
    data_distribution::D_MAX.parameter(),
    data_distribution::QUEUE.parameter(),
    Parameter {
        name: "closeness",
        kind: Kind::Decimal { min: 0.0, max: 1000.0 },
        unit: "",
        default: Value::Decimal(0.0),
        about: "dds: paths whose T_handle is more than this many times the shortest are excluded; 0 excludes none",
        source: "Xu 2013, text before equation 10, names no figure",
    },
    Parameter::switch(
        "replan",
        false,
        "dds: data that waits in the queues at the start of a period is assigned again",
        "Xu 2013 does not say",
    ),
    random_loss::ALGORITHM_3.parameter(),
    random_loss::CONSECUTIVE.parameter(),
    random_loss::LOSS_RTT.parameter(),
    Parameter::switch("excuse-t3", false, "orp: a T3 expiry may count as random too", "Xu 2013, Algorithm 3"),
    least_delay::DELAY.parameter(),
    Parameter::switch(
        "await-room",
        false,
        "orp: a chunk waits for the path with the lowest delay if that is full",
        "Xu 2013, section 6: as soon as possible",
    ),
    rtx("rtx-cwnd"),
    TRIGGER,
    sfr(true),
    cuc(true),
    dac(true),
    SACK_EVERY,
    SACK_DELAY,
    floor("4"),
];

pub(crate) const PRESET: Preset = Preset {
    name: "cmt-qa",
    about: "CMT with measured paths, data assigned by predicted arrival, and random losses distinguished from congestion",
    source: "Xu, Liu, Guan, Zhang, Muntean 2013",
    multipath: true,
    coupled: false,
    unfair_because: "",
    owns: &[Role::Scheduler, Role::Failover],
    parameters: PARAMETERS,
    card: card::CARD,
    profile: floored,
    build,
};

fn build(values: &Values) -> Policies {
    let mut policies = cmt::build(values);
    if values.switch("pqem") {
        policies.estimator = Box::new(QualityEstimator::new(QualityRules::from_values(values)));
    }
    if values.switch("dds") {
        policies.scheduler = Box::new(DataDistribution::new(DistributionRules::from_values(values)));
    }
    if values.switch("orp") {
        let random_loss = RandomLoss::new(RandomLossRules::from_values(values));
        policies.congestion = Box::new(Wrapped::new(random_loss, policies.congestion));
        policies.retransmit = Box::new(LeastDelay::from_values(values));
        policies.failover = Box::new(QualityAware);
    }
    policies
}

#[cfg(test)]
mod tests;
