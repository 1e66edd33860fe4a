//! Effects of a link on packets besides loss: `policer`, `jitter`, `aggregation` and `fading`, each of one direction.

use anabranch_core::time::{Rate, Span};
use anabranch_core::units::WireBytes;
use anabranch_sim::{Aggregation, Fading, Jitter, JitterDistribution, JitterOrder, Policer};

use crate::document::Node;
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{
    AnyRate, DATA_SIZE, DELAY, Form, IntegerIn, NumberIn, OneOf, Probability, SOME_DELAY, WireSize,
};
use crate::inner::{Inner, Short};
use crate::reader::Reader;
use crate::section::{Described, section};

/// Maximum number of packets of a batch.
const MOST_PACKETS: u64 = 1_000_000;

section! {
    /// Effects of one direction of a link on packets besides loss.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct Impairments {
        /// Policer, of the forward direction by default.
        policer: Option<Policer> = "policer" [optional "none"] Inner::<Policer>::new("Policer");
        /// Random delay, forward by default.
        jitter: Option<Jitter> = "jitter" [optional "none"] Short(Inner::<Jitter>::new("Jitter"), UniformJitter);
        /// Transmission in batches, forward by default.
        aggregation: Option<Aggregation> = "aggregation" [optional "none"] Inner::<Aggregation>::new("Aggregation");
        /// Rate adaptation over a [fading channel](simulator.md#radio), forward by default; `rate` is the highest rate.
        fading: Option<Fading> = "fading" [optional "none"] Inner::<Fading>::new("Fading");
    }
}

section! {
    impl Policer {
        /// Long-term rate, in bits on the wire.
        rate: Rate = "rate" [required] AnyRate;
        /// Wire bytes that pass at once after a pause, at least `association.mtu`. With less than two packets the bucket overflows
        /// between packets, and the throughput is below `rate`.
        burst: WireBytes = "burst" [required] WireSize(DATA_SIZE);
    }
}

section! {
    impl Aggregation {
        /// Longest wait of the first packet of a batch.
        period: Span = "period" [required] SOME_DELAY;
        /// Size at which a batch starts without waiting; also its maximum.
        most_packets: Option<u64> = "packets" [optional "no limit"] IntegerIn(1..=MOST_PACKETS);
    }
}

section! {
    impl Fading {
        /// Mean signal-to-noise ratio in dB.
        snr_db: f64 = "snr" [required] NumberIn(0.0..=40.0);
        /// Largest Doppler shift in Hz: the speed of the station over the wavelength.
        doppler_hz: f64 = "doppler" [required] NumberIn(0.1..=1000.0);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    Uniform,
    Normal,
    Retransmission,
}

section! {
    /// Delay that is drawn for each packet.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct JitterRows {
        /// All delays up to `most` equally likely, a normal distribution cut off at 0 and at twice the mean, or
        /// [retransmissions of the link layer](simulator.md#policers-jitter-and-aggregation).
        model: Model = "model" [selects required] OneOf(&[
            ("uniform", Model::Uniform),
            ("normal", Model::Normal),
            ("retransmission", Model::Retransmission),
        ]);
        /// The largest delay; uniform from 0.
        most: Option<Span> = "most" [only ["uniform"] required] SOME_DELAY;
        /// Mean; the distribution is truncated at 0 and at twice the mean.
        mean: Option<Span> = "mean" [only ["normal"] required] SOME_DELAY;
        /// Standard deviation before truncation.
        deviation: Option<Span> = "deviation" [only ["normal"] required] DELAY;
        /// Probability that an attempt fails.
        failure: Option<f64> = "failure" [only ["retransmission"] or 0.1] Probability;
        /// Time from an attempt to the next.
        round: Option<Span> = "round" [only ["retransmission"] or Span::from_millis(8)] SOME_DELAY;
        /// Largest number of retransmissions of a packet; the last one succeeds.
        attempts: Option<u32> = "attempts" [only ["retransmission"] or 3_u32] IntegerIn(1..=1000_u32);
        /// `kept`: no packet overtakes another; one that would arrives with the packet before it, so the mean delay grows
        /// with the rate. `free`: packets may overtake each other.
        order: JitterOrder = "order" [or JitterOrder::Kept]
            OneOf(&[("kept", JitterOrder::Kept), ("free", JitterOrder::Free)]);
    }
}

impl Described for Policer {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}

impl Described for Aggregation {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}

impl Described for Fading {
    type Rows = Self;

    fn from_rows(rows: Self, _: &mut Reader<'_>) -> Option<Self> {
        Some(rows)
    }

    fn to_rows(&self) -> Self {
        *self
    }
}

impl Described for Jitter {
    type Rows = JitterRows;

    fn from_rows(rows: JitterRows, reader: &mut Reader<'_>) -> Option<Jitter> {
        let distribution = match rows.model {
            Model::Uniform => JitterDistribution::Uniform(rows.most?),
            Model::Normal => {
                let (mean, deviation) = (rows.mean?, rows.deviation?);
                if deviation > mean {
                    let key = reader.key("deviation");
                    let message = format!("`{key}` is more than the mean: most delays would be cut off");
                    let help = "give at most the mean, or use the model \"uniform\"";
                    reader.fault("deviation", Fault::explained(ProblemKind::OutOfRange, message, help));
                    return None;
                }
                JitterDistribution::Normal { mean, deviation }
            }
            Model::Retransmission => JitterDistribution::Retransmission {
                failure: rows.failure?,
                round: rows.round?,
                most: rows.attempts?,
            },
        };
        Some(Jitter { distribution, order: rows.order })
    }

    fn to_rows(&self) -> JitterRows {
        let rows = JitterRows {
            model: Model::Uniform,
            most: None,
            mean: None,
            deviation: None,
            failure: None,
            round: None,
            attempts: None,
            order: self.order,
        };
        match self.distribution {
            JitterDistribution::Uniform(most) => JitterRows { most: Some(most), ..rows },
            JitterDistribution::Normal { mean, deviation } => {
                let (mean, deviation) = (Some(mean), Some(deviation));
                JitterRows { model: Model::Normal, mean, deviation, ..rows }
            }
            JitterDistribution::Retransmission { failure, round, most } => JitterRows {
                model: Model::Retransmission,
                failure: Some(failure),
                round: Some(round),
                attempts: Some(most),
                ..rows
            },
        }
    }
}

/// A time alone: uniform jitter up to that time, in order.
struct UniformJitter;

impl Form for UniformJitter {
    type Output = Jitter;

    fn expected(&self) -> String {
        SOME_DELAY.expected()
    }

    fn read(&self, node: &Node) -> Result<Jitter, Fault> {
        let most = SOME_DELAY.read(node)?;
        Ok(Jitter { distribution: JitterDistribution::Uniform(most), order: JitterOrder::Kept })
    }

    fn write(&self, value: &Jitter) -> String {
        Inner::new("Jitter").write(value)
    }

    fn about(&self) -> About {
        SOME_DELAY.about()
    }
}
