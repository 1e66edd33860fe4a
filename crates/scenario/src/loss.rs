//! Loss on a link: a probability, or tables that name a model, a place and a direction.

use anabranch_sim::{GilbertElliott, LossModel, LossPlace, LossTrace};

use crate::direction::{ANY, Directions};
use crate::document::{Node, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{Form, IntegerIn, OneOf, Probability};
use crate::inner::Inner;
use crate::reader::Reader;
use crate::section::{Described, section};

/// Source under which a loss trace of a scenario lists the packets that each flow loses. No flow has this name.
pub const EACH_FLOW: &str = "*";

/// One process that loses packets in one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Packets that are lost. A trace lists them under [`EACH_FLOW`].
    pub model: LossModel,
    /// Place on the link where they are lost.
    pub place: LossPlace,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    Bernoulli,
    GilbertElliott,
    Trace,
}

section! {
    /// A process that loses packets on a link.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct LossRows {
        /// Independent losses, a chain of a good and a bad state, or the packets in `lost`.
        model: Model = "model" [selects required] OneOf(&[
            ("bernoulli", Model::Bernoulli),
            ("gilbert-elliott", Model::GilbertElliott),
            ("trace", Model::Trace),
        ]);
        /// Loss probability.
        rate: Option<f64> = "rate" [only ["bernoulli"] required] Probability;
        /// Probability per packet of a change from the good to the bad state. A run starts in the good state.
        p: Option<f64> = "p" [only ["gilbert-elliott"] required] Probability;
        /// Probability per packet of a change from the bad to the good state; more than 0.
        r: Option<f64> = "r" [only ["gilbert-elliott"] required] Probability;
        /// Probability that a packet is lost in the good state.
        loss_good: Option<f64> = "loss_good" [only ["gilbert-elliott"] or 0.0] Probability;
        /// Probability that a packet is lost in the bad state.
        loss_bad: Option<f64> = "loss_bad" [only ["gilbert-elliott"] or 1.0] Probability;
        /// Numbers of the lost packets, counted per flow on this link and direction; cross traffic loses none.
        lost: Option<Vec<u64>> = "lost" [only ["trace"] required] PacketNumbers;
        /// Before: a lost packet uses neither queue nor link. After: it uses both.
        place: LossPlace = "where" [or LossPlace::BeforeQueue]
            OneOf(&[("before-queue", LossPlace::BeforeQueue), ("after-queue", LossPlace::AfterQueue)]);
        /// Not allowed inside `reverse`.
        direction: Option<Directions> = "direction" [optional "`\"forward\"`"] ANY;
    }
}

/// Losses of one key of a file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Losses {
    /// Losses in the direction of the data. If the key belongs to one direction, losses in that direction.
    pub(crate) forward: Option<Vec<Loss>>,
    /// Losses against the data.
    pub(crate) reverse: Option<Vec<Loss>>,
}

impl Losses {
    /// Returns the losses of a key that belongs to one direction.
    pub(crate) fn one_way(losses: &[Loss]) -> Losses {
        Losses { forward: Some(losses.to_vec()), reverse: None }
    }

    /// Sorts losses by direction. An empty list means no losses.
    fn gather(all: Vec<Directed>) -> Losses {
        let mut losses = Losses::default();
        if all.is_empty() {
            losses.forward = Some(Vec::new());
        }
        for Directed { loss, direction } in all {
            let direction = direction.unwrap_or(Directions::Forward);
            if direction != Directions::Reverse {
                losses.forward.get_or_insert_default().push(loss.clone());
            }
            if direction != Directions::Forward {
                losses.reverse.get_or_insert_default().push(loss);
            }
        }
        losses
    }
}

/// A loss with the direction of its table.
struct Directed {
    loss: Loss,
    direction: Option<Directions>,
}

impl Described for Directed {
    type Rows = LossRows;

    fn from_rows(rows: LossRows, reader: &mut Reader<'_>) -> Option<Directed> {
        let model = match rows.model {
            Model::Bernoulli => LossModel::Bernoulli(rows.rate?),
            Model::GilbertElliott => {
                if rows.r == Some(0.0) {
                    let message = format!("`{}` is zero: the bad state would never end", reader.key("r"));
                    let help =
                        "give the probability of leaving it, or use an event with `up = false` for an outage";
                    reader.fault("r", Fault::explained(ProblemKind::OutOfRange, message, help));
                    return None;
                }
                LossModel::GilbertElliott(GilbertElliott {
                    to_bad: rows.p?,
                    to_good: rows.r?,
                    loss_in_good: rows.loss_good?,
                    loss_in_bad: rows.loss_bad?,
                })
            }
            Model::Trace => LossModel::Trace(LossTrace::new().lose(EACH_FLOW, rows.lost?)),
        };
        Some(Directed { loss: Loss { model, place: rows.place }, direction: rows.direction })
    }

    fn to_rows(&self) -> LossRows {
        let none = LossRows {
            model: Model::Bernoulli,
            rate: None,
            p: None,
            r: None,
            loss_good: None,
            loss_bad: None,
            lost: None,
            place: self.loss.place,
            direction: self.direction,
        };
        match &self.loss.model {
            LossModel::None => LossRows { rate: Some(0.0), ..none },
            LossModel::Bernoulli(rate) => LossRows { rate: Some(*rate), ..none },
            LossModel::GilbertElliott(chain) => LossRows {
                model: Model::GilbertElliott,
                p: Some(chain.to_bad),
                r: Some(chain.to_good),
                loss_good: Some(chain.loss_in_good),
                loss_bad: Some(chain.loss_in_bad),
                ..none
            },
            LossModel::Trace(trace) => {
                LossRows { model: Model::Trace, lost: Some(trace.packets(EACH_FLOW).to_vec()), ..none }
            }
        }
    }
}

/// A probability, a table, or a list of tables.
pub(crate) struct LossList;

const TABLE: Inner<Directed> = Inner::new("Loss");

impl LossList {
    /// Reads a table. It must not have a direction if the surrounding table determines it.
    fn table<'a>(&self, around: &Reader<'a>, node: &'a Node, path: String) -> Option<Directed> {
        let mut reader = around.as_table(node, path)?;
        if around.has_direction() {
            let help = "its direction is that of the table around it; losses of the opposite direction go into `reverse`";
            reader.refuse("direction", help);
        }
        Directed::read(reader)
    }
}

impl Form for LossList {
    type Output = Losses;

    fn expected(&self) -> String {
        format!("{}, or {}", Probability.expected(), TABLE.expected())
    }

    fn read(&self, node: &Node) -> Result<Losses, Fault> {
        let rate = Probability.read(node).map_err(|fault| match fault.kind() {
            ProblemKind::InvalidValue => fault.with_expected(self.expected()),
            _ => fault,
        })?;
        let loss = Loss { model: LossModel::Bernoulli(rate), place: LossPlace::BeforeQueue };
        // A probability of zero is not a loss process.
        Ok(Losses { forward: Some(if rate > 0.0 { vec![loss] } else { Vec::new() }), reverse: None })
    }

    fn write(&self, value: &Losses) -> String {
        let losses = value.forward.iter().flatten();
        let tables: Vec<String> =
            losses.map(|loss| TABLE.write(&Directed { loss: loss.clone(), direction: None })).collect();
        format!("[{}]", tables.join(", "))
    }

    fn about(&self) -> About {
        let python = "float | str | Loss | Sequence[Loss]";
        About {
            class: Some("Loss"),
            ..About::plain("probability, table or list of tables, see below", python)
        }
    }

    fn read_key<'a>(&self, reader: &Reader<'a>, key: &'static str, node: &'a Node) -> Option<Losses> {
        let path = reader.key(key);
        match &node.value {
            Value::Table(_) => Some(Losses::gather(vec![self.table(reader, node, path)?])),
            Value::List(items) => {
                let read = |(index, item)| self.table(reader, item, format!("{path}.{index}"));
                let all: Vec<Option<Directed>> = items.iter().enumerate().map(read).collect();
                all.into_iter().collect::<Option<Vec<_>>>().map(Losses::gather)
            }
            _ => self.read(node).map_err(|fault| reader.fault(key, fault)).ok(),
        }
    }
}

/// Numbers of packets, in any order.
struct PacketNumbers;

impl Form for PacketNumbers {
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
            number.map_err(|fault| fault.with_expected(self.expected()).at(&item.origin))
        };
        items.iter().map(number).collect()
    }

    fn write(&self, value: &Vec<u64>) -> String {
        format!("{value:?}")
    }

    fn about(&self) -> About {
        About::plain("list of numbers from 1", "Sequence[int]")
    }
}
