//! Loss on a link: a probability, or tables that name a model, a place and a direction.

use super::document::{Node, Value};
use super::error::ProblemKind;
use super::fault::Fault;
use super::reader::Reader;
use super::shape::{IntegerIn, OneOf, Probability, Shape};

/// One process that loses packets in one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Which packets are lost.
    pub model: LossModel,
    /// Where on the link they are lost.
    pub place: LossPlace,
}

/// Which packets are lost.
#[derive(Clone, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet for itself.
    Bernoulli {
        /// Probability that a packet is lost.
        rate: f64,
    },
    /// In bursts: a chain of a good and a bad state that may change with every packet and starts good.
    GilbertElliott {
        /// Probability of going from good to bad.
        p: f64,
        /// Probability of going from bad to good; more than zero.
        r: f64,
        /// Probability that a packet is lost in the good state.
        loss_good: f64,
        /// Probability that a packet is lost in the bad state.
        loss_bad: f64,
    },
    /// Exactly these packets.
    Trace {
        /// Numbers of the packets of flows, counted from 1 in this direction of this link. Ascending, none twice.
        lost: Vec<u64>,
    },
}

/// Where on a link packets are lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossPlace {
    /// Before they could take a place in the queue.
    BeforeQueue,
    /// After they have taken up queue and link.
    AfterQueue,
}

/// Words for the places.
pub(super) const PLACES: &[(&str, LossPlace)] =
    &[("before-queue", LossPlace::BeforeQueue), ("after-queue", LossPlace::AfterQueue)];

/// Losses as a file gives them under one key.
#[derive(Clone, Debug, Default)]
pub(super) struct Losses {
    /// In the direction of the data; or, where the key stands for one direction, in that one.
    pub(super) forward: Option<Vec<Loss>>,
    /// Against the data.
    pub(super) reverse: Option<Vec<Loss>>,
}

/// Which way the losses under a key apply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sides {
    /// As each table says; with the data if it does not say.
    Both,
    /// One way that is known already, so that a table must not say it.
    One,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Forward,
    Reverse,
    Both,
}

#[derive(Clone, Copy)]
enum Model {
    Bernoulli,
    GilbertElliott,
    Trace,
}

const MODELS: &[(&str, Model)] =
    &[("bernoulli", Model::Bernoulli), ("gilbert-elliott", Model::GilbertElliott), ("trace", Model::Trace)];

const SIDES: &[(&str, Side)] =
    &[("forward", Side::Forward), ("reverse", Side::Reverse), ("both", Side::Both)];

/// Reads `loss`; `None` if it is wrong. A key that is not given gives no losses of either direction.
pub(super) fn read_losses(reader: &mut Reader<'_>, sides: Sides) -> Option<Losses> {
    let Some(node) = reader.node("loss") else { return Some(Losses::default()) };
    let path = reader.key("loss");
    match &node.value {
        Value::Table(_) => read_table(reader.as_table(node, path)?, sides).map(|one| gather([one])),
        Value::List(items) => {
            let table = |(index, item)| reader.as_table(item, format!("{path}.{index}"));
            let read = |place| table(place).and_then(|table| read_table(table, sides));
            let all: Vec<Option<(Side, Loss)>> = items.iter().enumerate().map(read).collect();
            all.into_iter().collect::<Option<Vec<_>>>().map(gather)
        }
        _ => match Rate.read(node) {
            Ok(losses) => Some(Losses { forward: Some(losses), reverse: None }),
            Err(fault) => {
                reader.fault("loss", fault);
                None
            }
        },
    }
}

/// Sorts losses by direction. An empty list says that nothing is lost.
fn gather(all: impl IntoIterator<Item = (Side, Loss)>) -> Losses {
    let mut losses = Losses::default();
    let mut empty = true;
    for (side, loss) in all {
        empty = false;
        if side != Side::Reverse {
            losses.forward.get_or_insert_default().push(loss.clone());
        }
        if side != Side::Forward {
            losses.reverse.get_or_insert_default().push(loss);
        }
    }
    if empty {
        losses.forward = Some(Vec::new());
    }
    losses
}

fn read_table(mut reader: Reader<'_>, sides: Sides) -> Option<(Side, Loss)> {
    let model = reader.required("model", &OneOf(MODELS));
    let model = match model {
        Some(model) => read_model(&mut reader, model),
        None => {
            // Which of these belong here is not known without the model.
            reader.know(&["rate", "p", "r", "loss_good", "loss_bad", "lost"]);
            None
        }
    };
    let place = reader.or("where", &OneOf(PLACES), LossPlace::BeforeQueue);
    let side = match sides {
        Sides::Both => reader.or("direction", &OneOf(SIDES), Side::Forward),
        Sides::One => {
            reader.refuse("direction", "the direction is known from the table around it");
            Some(Side::Forward)
        }
    };
    reader.finish();
    Some((side?, Loss { model: model?, place: place? }))
}

fn read_model(reader: &mut Reader<'_>, model: Model) -> Option<LossModel> {
    match model {
        Model::Bernoulli => reader.required("rate", &Probability).map(|rate| LossModel::Bernoulli { rate }),
        Model::GilbertElliott => {
            let p = reader.required("p", &Probability);
            let r = reader.required("r", &Probability);
            let good = reader.or("loss_good", &Probability, 0.0);
            let bad = reader.or("loss_bad", &Probability, 1.0);
            let (p, r) = (p?, r?);
            if r == 0.0 {
                let message = format!("`{}` is zero: the bad state would never end", reader.key("r"));
                let help =
                    "give the probability of leaving it, or use an event with `up = false` for an outage";
                reader.fault("r", Fault::because(ProblemKind::OutOfRange, message, help));
                return None;
            }
            Some(LossModel::GilbertElliott { p, r, loss_good: good?, loss_bad: bad? })
        }
        Model::Trace => reader.required("lost", &PacketNumbers).map(|lost| LossModel::Trace { lost }),
    }
}

/// A bare probability: none is no loss process at all.
struct Rate;

impl Shape for Rate {
    type Output = Vec<Loss>;

    fn expected(&self) -> String {
        format!("{}, or a table with a `model`", Probability.expected())
    }

    fn read(&self, node: &Node) -> Result<Vec<Loss>, Fault> {
        let wrong_type = |fault: Fault| match fault.kind() {
            ProblemKind::InvalidValue => fault.expecting(self.expected()),
            _ => fault,
        };
        let rate = Probability.read(node).map_err(wrong_type)?;
        let loss = Loss { model: LossModel::Bernoulli { rate }, place: LossPlace::BeforeQueue };
        Ok(if rate > 0.0 { vec![loss] } else { Vec::new() })
    }
}

/// Numbers of packets, in any order.
struct PacketNumbers;

impl Shape for PacketNumbers {
    type Output = Vec<u64>;

    fn expected(&self) -> String {
        "a list of packet numbers from 1, such as [3, 17]".to_owned()
    }

    fn read(&self, node: &Node) -> Result<Vec<u64>, Fault> {
        let Value::List(items) = &node.value else {
            return Err(Fault::invalid(self.expected(), node.value.to_string()));
        };
        let number = |item: &Node| {
            let number = IntegerIn(1..=i64::MAX as u64).read(item);
            number.map_err(|fault| fault.expecting(self.expected()).at(&item.origin))
        };
        let mut lost = items.iter().map(number).collect::<Result<Vec<u64>, Fault>>()?;
        lost.sort_unstable();
        lost.dedup();
        Ok(lost)
    }
}
