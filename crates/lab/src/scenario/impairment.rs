//! What a link does to packets besides losing them: `policer`, `jitter` and `aggregation`, each of one direction.

use anabranch_core::time::Span;
use anabranch_core::units::WireBytes;
use anabranch_sim::{Aggregation, Jitter, JitterDistribution, JitterOrder, Policer};

use super::document::{Node, Value};
use super::error::ProblemKind;
use super::fault::Fault;
use super::reader::Reader;
use super::shape::{AnyRate, DATA_SIZE, DELAY, INSTANT, IntegerIn, OneOf, Shape, SpanIn};

/// What a direction does to packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Impairments {
    /// What it drops before the queue.
    pub policer: Option<Policer>,
    /// What its delay differs by.
    pub jitter: Option<Jitter>,
    /// How packets wait for each other.
    pub aggregation: Option<Aggregation>,
}

/// The keys of these.
pub(super) const KEYS: [&str; 3] = ["policer", "jitter", "aggregation"];

/// Packets of a batch at most.
const MOST_PACKETS: u64 = 1_000_000;

/// More than nothing, and no longer than packets may be on their way.
const SOME_DELAY: SpanIn = SpanIn(INSTANT..=LONGEST_DELAY);
const LONGEST_DELAY: Span = Span::from_secs(3600);

/// Words for what jitter does to the order of packets.
pub(super) const ORDERS: &[(&str, JitterOrder)] = &[("kept", JitterOrder::Kept), ("free", JitterOrder::Free)];

#[derive(Clone, Copy)]
enum Model {
    Uniform,
    Normal,
}

const MODELS: &[(&str, Model)] = &[("uniform", Model::Uniform), ("normal", Model::Normal)];

/// Reads the three keys; `None` if one of them is wrong.
pub(super) fn read_impairments(reader: &mut Reader<'_>) -> Option<Impairments> {
    let policer = read_inner(reader, "policer", read_policer);
    let jitter = read_jitter(reader);
    let aggregation = read_inner(reader, "aggregation", read_aggregation);
    Some(Impairments { policer: policer?, jitter: jitter?, aggregation: aggregation? })
}

/// Reads a table that need not be given: `None` if it is wrong, `Some(None)` if it is not given.
fn read_inner<T>(
    reader: &mut Reader<'_>,
    key: &'static str,
    read: impl Fn(&mut Reader<'_>) -> Option<T>,
) -> Option<Option<T>> {
    if reader.node(key).is_none() {
        return Some(None);
    }
    let mut inner = reader.table(key)?;
    let value = read(&mut inner);
    inner.finish();
    value.map(Some)
}

fn read_policer(reader: &mut Reader<'_>) -> Option<Policer> {
    let rate = reader.required("rate", &AnyRate);
    let burst = reader.required("burst", &DATA_SIZE);
    Some(Policer { rate: rate?, burst: WireBytes::new(burst?) })
}

fn read_aggregation(reader: &mut Reader<'_>) -> Option<Aggregation> {
    let period = reader.required("period", &SOME_DELAY);
    let most_packets = reader.optional("packets", &IntegerIn(1..=MOST_PACKETS));
    Some(Aggregation { period: period?, most_packets: most_packets? })
}

fn read_jitter(reader: &mut Reader<'_>) -> Option<Option<Jitter>> {
    match reader.node("jitter") {
        Some(Node { value: Value::Table(_), .. }) => read_inner(reader, "jitter", read_jitter_table),
        _ => reader.optional("jitter", &MostJitter),
    }
}

fn read_jitter_table(reader: &mut Reader<'_>) -> Option<Jitter> {
    let distribution = match reader.required("model", &OneOf(MODELS)) {
        Some(Model::Uniform) => reader.required("most", &SOME_DELAY).map(JitterDistribution::Uniform),
        Some(Model::Normal) => read_normal(reader),
        None => {
            // Which of these belong here is not known without the model.
            reader.know(&["most", "mean", "deviation"]);
            None
        }
    };
    let order = reader.or("order", &OneOf(ORDERS), JitterOrder::Kept);
    Some(Jitter { distribution: distribution?, order: order? })
}

fn read_normal(reader: &mut Reader<'_>) -> Option<JitterDistribution> {
    let mean = reader.required("mean", &SOME_DELAY);
    let deviation = reader.required("deviation", &DELAY);
    let (mean, deviation) = (mean?, deviation?);
    if deviation > mean {
        let message =
            format!("`{}` is more than the mean: most delays would be cut off", reader.key("deviation"));
        let help = "give at most the mean, or use the model \"uniform\"";
        reader.fault("deviation", Fault::because(ProblemKind::OutOfRange, message, help));
        return None;
    }
    Some(JitterDistribution::Normal { mean, deviation })
}

/// A bare time: uniform jitter up to that, in order.
struct MostJitter;

impl Shape for MostJitter {
    type Output = Jitter;

    fn expected(&self) -> String {
        format!("{}, or a table with a `model`", SOME_DELAY.expected())
    }

    fn read(&self, node: &Node) -> Result<Jitter, Fault> {
        let wrong_type = |fault: Fault| match fault.kind() {
            ProblemKind::InvalidValue => fault.expecting(self.expected()),
            _ => fault,
        };
        let most = SOME_DELAY.read(node).map_err(wrong_type)?;
        Ok(Jitter { distribution: JitterDistribution::Uniform(most), order: JitterOrder::Kept })
    }
}
