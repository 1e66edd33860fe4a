//! Random loss on a link.
//!
//! The loss of the n-th packet of a source on a link depends on the run's seeds, the names of link and source, the model, and n. It
//! does not depend on the packet's time, on other traffic, or on earlier drops of the queue: packets are counted and their loss is
//! drawn when they reach the link, even if the loss takes place behind the queue. Two schemes with the same seed therefore meet the
//! same channel.

use std::collections::BTreeMap;

use crate::error::{ConfigError, probability};
use crate::rng::Stream;

/// Model of the losses of a link.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum LossModel {
    /// No losses.
    #[default]
    None,
    /// Independent losses with this probability.
    Bernoulli(f64),
    /// Losses in bursts.
    GilbertElliott(GilbertElliott),
    /// Losses of listed packets.
    Trace(LossTrace),
}

/// A Markov chain of two states with a step per packet. A packet is lost with the probability of the current state, which may
/// change afterwards. Every source has a chain of its own, which starts in the good state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability, per packet, to go from the good to the bad state (p).
    pub to_bad: f64,
    /// Probability, per packet, to go from the bad to the good state (r).
    pub to_good: f64,
    /// Loss probability in the good state (1 - k).
    pub loss_in_good: f64,
    /// Loss probability in the bad state (1 - h).
    pub loss_in_bad: f64,
}

impl GilbertElliott {
    /// Returns the simple chain: no packet is lost in the good state and every packet in the bad one. The loss rate is p / (p + r),
    /// and bursts have 1 / r packets on average.
    pub const fn simple(to_bad: f64, to_good: f64) -> Self {
        GilbertElliott { to_bad, to_good, loss_in_good: 0.0, loss_in_bad: 1.0 }
    }

    /// Returns the share of packets lost in the long run.
    pub fn mean_loss(&self) -> f64 {
        let moving = self.to_bad + self.to_good;
        if moving == 0.0 {
            return self.loss_in_good;
        }
        (self.to_good * self.loss_in_good + self.to_bad * self.loss_in_bad) / moving
    }
}

/// Explicit losses: the numbers of the packets of each source that the link loses. The first packet has number 1.
///
/// ```
/// use anabranch_sim::loss::{LossModel, LossTrace};
/// let model = LossModel::Trace(LossTrace::new().lose("flow-1", [3, 4, 9]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LossTrace(BTreeMap<String, Vec<u64>>);

impl LossTrace {
    /// Returns a trace without losses.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds lost packets of a source, in any order.
    pub fn lose(mut self, source: &str, packets: impl IntoIterator<Item = u64>) -> Self {
        let numbers = self.0.entry(source.to_owned()).or_default();
        numbers.extend(packets);
        numbers.sort_unstable();
        numbers.dedup();
        self
    }

    /// Returns the numbers of the packets of a source that are lost, in ascending order.
    pub fn packets(&self, source: &str) -> &[u64] {
        self.0.get(source).map_or(&[], Vec::as_slice)
    }
}

/// Place of the loss on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum LossPlace {
    /// Before the queue: a lost packet occupies neither queue nor link.
    #[default]
    BeforeQueue,
    /// Behind the serialiser: a lost packet occupies queue and link.
    AfterQueue,
}

impl LossModel {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        match self {
            LossModel::None | LossModel::Trace(_) => Ok(()),
            LossModel::Bernoulli(p) => probability("loss", *p),
            LossModel::GilbertElliott(chain) => {
                probability("to_bad", chain.to_bad)?;
                probability("to_good", chain.to_good)?;
                probability("loss_in_good", chain.loss_in_good)?;
                probability("loss_in_bad", chain.loss_in_bad)
            }
        }
    }
}

/// Random numbers reserved for each packet, used or not, so that all models use the same numbers for the same packet.
const DRAWS_PER_PACKET: u64 = 2;

/// State of the losses of one source on one link.
#[derive(Clone, Debug)]
pub(crate) struct SourceLoss {
    stream: Stream,
    /// Number of packets whose random numbers the stream has passed.
    passed: u64,
    bad: bool,
    trace: Vec<u64>,
}

impl SourceLoss {
    pub(crate) fn new(stream: Stream, model: &LossModel, source: &str) -> Self {
        let mut loss = SourceLoss { stream, passed: 0, bad: false, trace: Vec::new() };
        loss.set_model(model, source);
        loss
    }

    /// Sets another model. A chain restarts in the good state. The random numbers of each packet stay the same.
    pub(crate) fn set_model(&mut self, model: &LossModel, source: &str) {
        self.bad = false;
        self.trace = match model {
            LossModel::Trace(trace) => trace.0.get(source).cloned().unwrap_or_default(),
            _ => Vec::new(),
        };
    }

    /// Returns `true` if the packet after `earlier` others of the source is lost. `earlier` must increase with each call.
    #[inline]
    pub(crate) fn draw(&mut self, model: &LossModel, earlier: u64) -> bool {
        match model {
            LossModel::None => false,
            LossModel::Trace(_) => self.trace.binary_search(&(earlier + 1)).is_ok(),
            LossModel::Bernoulli(p) => self.numbers(earlier).0 < *p,
            LossModel::GilbertElliott(chain) => self.move_chain(chain, earlier),
        }
    }

    #[inline]
    fn numbers(&mut self, earlier: u64) -> (f64, f64) {
        if self.passed != earlier {
            self.skip_to(earlier);
        }
        self.passed = earlier + 1;
        (self.stream.unit(), self.stream.unit())
    }

    /// Skips packets for which nothing was drawn because the link had no loss then.
    #[cold]
    fn skip_to(&mut self, earlier: u64) {
        self.stream.skip((earlier - self.passed) * DRAWS_PER_PACKET);
    }

    #[inline(never)]
    fn move_chain(&mut self, chain: &GilbertElliott, earlier: u64) -> bool {
        let (fate, change) = self.numbers(earlier);
        let (loss, leave) =
            if self.bad { (chain.loss_in_bad, chain.to_good) } else { (chain.loss_in_good, chain.to_bad) };
        self.bad ^= change < leave;
        fate < loss
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Seeds;

    fn draws(model: &LossModel, n: u64) -> Vec<bool> {
        let mut loss = SourceLoss::new(Seeds::new(11, 0).stream(&["loss"]), model, "flow");
        (0..n).map(|i| loss.draw(model, i)).collect()
    }

    fn rate(lost: &[bool]) -> f64 {
        lost.iter().filter(|&&l| l).count() as f64 / lost.len() as f64
    }

    #[test]
    fn bernoulli_meets_its_rate_and_its_edges() {
        assert!((rate(&draws(&LossModel::Bernoulli(0.1), 1_000_000)) - 0.1).abs() < 0.001);
        assert_eq!(rate(&draws(&LossModel::Bernoulli(0.0), 1000)), 0.0);
        assert_eq!(rate(&draws(&LossModel::Bernoulli(1.0), 1000)), 1.0);
    }

    #[test]
    fn higher_rate_loses_all_packets_of_a_lower_one() {
        let (low, high) =
            (draws(&LossModel::Bernoulli(0.05), 10_000), draws(&LossModel::Bernoulli(0.2), 10_000));
        assert!(low.iter().zip(&high).all(|(low, high)| high | !low));
    }

    #[test]
    fn gilbert_elliott_meets_loss_rate_and_burst_length() {
        let chain = GilbertElliott::simple(0.02, 0.25);
        let lost = draws(&LossModel::GilbertElliott(chain), 1_000_000);
        assert!((rate(&lost) / chain.mean_loss() - 1.0).abs() < 0.02);
        let bursts = 1 + lost.windows(2).filter(|w| !w[0] && w[1]).count();
        let burst = lost.iter().filter(|&&l| l).count() as f64 / bursts as f64;
        assert!((burst * 0.25 - 1.0).abs() < 0.02, "bursts of {burst}");
    }

    #[test]
    fn gilbert_elliott_with_soft_states_meets_its_mean() {
        let chain = GilbertElliott { to_bad: 0.1, to_good: 0.3, loss_in_good: 0.01, loss_in_bad: 0.5 };
        let lost = draws(&LossModel::GilbertElliott(chain), 1_000_000);
        assert!((rate(&lost) / chain.mean_loss() - 1.0).abs() < 0.02);
        let fixed = GilbertElliott { to_bad: 0.0, to_good: 0.0, loss_in_good: 0.3, loss_in_bad: 1.0 };
        assert_eq!(fixed.mean_loss(), 0.3);
    }

    #[test]
    fn trace_drops_the_listed_packets() {
        let model = LossModel::Trace(LossTrace::new().lose("flow", [4, 2, 4]).lose("other", [1]));
        let lost: Vec<_> =
            draws(&model, 5).iter().enumerate().filter(|(_, l)| **l).map(|(i, _)| i + 1).collect();
        assert_eq!(lost, [2, 4]);
    }

    #[test]
    fn a_packet_keeps_its_numbers_when_the_model_changes_before_it() {
        let (early, late) = (LossModel::None, LossModel::Bernoulli(0.5));
        let reference = draws(&late, 200);
        let mut loss = SourceLoss::new(Seeds::new(11, 0).stream(&["loss"]), &early, "flow");
        for i in 0..57 {
            loss.draw(&early, i);
        }
        loss.set_model(&late, "flow");
        let rest: Vec<_> = (57..200).map(|i| loss.draw(&late, i)).collect();
        assert_eq!(rest, reference[57..]);
    }
}
