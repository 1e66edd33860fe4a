//! `queue`: the limit of a queue and its discipline.

use anabranch_core::time::Span;
use anabranch_core::units::WireBytes;
use anabranch_sim::{CoDel, Discipline, FqCoDel, Pie, QueueLimit, Red};

use crate::document::{Node, Value};
use crate::error::ProblemKind;
use crate::fault::Fault;
use crate::field::About;
use crate::form::{AnyQueue, Form, IntegerIn, NumberIn, OneOf, Probability, SOME_DELAY, SizeIn, WireSize};
use crate::inner::Inner;
use crate::reader::Reader;
use crate::section::{Described, section};

/// Queue of one direction of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Limit of the queue.
    pub limit: QueueLimit,
    /// Rule by which it drops packets before it is full.
    pub discipline: Discipline,
}

impl Queue {
    /// Queue of a link without `queue`.
    pub const DEFAULT: Queue = Queue::drop_tail(QueueLimit::Packets(50));

    /// Returns a queue that drops packets only when it is full.
    pub const fn drop_tail(limit: QueueLimit) -> Queue {
        Queue { limit, discipline: Discipline::DropTail }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    DropTail,
    CoDel,
    FqCoDel,
    Pie,
    Red,
}

/// Average queue, in packets.
const PACKETS: NumberIn = NumberIn(0.0..=1e9);

/// Mean or largest size of a packet.
const PACKET: WireSize = WireSize(SizeIn(1..=65_535, "B"));

section! {
    /// Queue of one direction of a link.
    #[derive(Clone, Debug, PartialEq)]
    pub(crate) struct QueueRows {
        /// Limit of the queue, at which it drops arriving packets under each discipline.
        limit: QueueLimit = "limit" [or Queue::DEFAULT.limit] AnyQueue;
        /// [Rule](simulator.md#managed-queues) by which packets are dropped before the queue is full.
        kind: Kind = "discipline" [selects or Kind::DropTail] OneOf(&[
            ("drop-tail", Kind::DropTail),
            ("codel", Kind::CoDel),
            ("fq-codel", Kind::FqCoDel),
            ("pie", Kind::Pie),
            ("red", Kind::Red),
        ]);
        /// Acceptable waiting time of a persistent queue; `"15 ms"` by default with `pie`.
        target: Option<Span> = "target" [only ["codel", "fq-codel", "pie"] optional "`\"5 ms\"`"] SOME_DELAY;
        /// Time for which the waiting time exceeds the target before the first drop; longer than `target`.
        interval: Option<Span> = "interval" [only ["codel", "fq-codel"] or Span::from_millis(100)] SOME_DELAY;
        /// Number of queues, onto which flows are hashed.
        flows: Option<u32> = "flows" [only ["fq-codel"] or 1024_u32] IntegerIn(1..=65_536_u32);
        /// Bytes that a flow sends in a round.
        quantum: Option<WireBytes> = "quantum" [only ["fq-codel"] or WireBytes::new(1514)] PACKET;
        /// Time between two updates of the drop probability.
        update: Option<Span> = "update" [only ["pie"] or Span::from_millis(15)] SOME_DELAY;
        /// Length of a burst that passes without drops.
        burst: Option<Span> = "burst" [only ["pie"] or Span::from_millis(150)] SOME_DELAY;
        /// Average queue in packets from which packets are dropped.
        min_packets: Option<f64> = "min_packets" [only ["red"] or 5.0] PACKETS;
        /// Average queue in packets at which `probability` applies; more than `min_packets`.
        max_packets: Option<f64> = "max_packets" [only ["red"] or 15.0] PACKETS;
        /// Drop probability at `max_packets`; more than 0.
        probability: Option<f64> = "probability" [only ["red"] or 0.02] Probability;
        /// Weight of the current queue in the average; between 0 and 1.
        weight: Option<f64> = "weight" [only ["red"] or 0.002] Probability;
        /// Mean size of a packet; `"1000 B"` by default with `pie`.
        mean_packet: Option<WireBytes> = "mean_packet" [only ["pie", "red"] optional "`\"500 B\"`"] PACKET;
    }
}

impl Described for Queue {
    type Rows = QueueRows;

    fn from_rows(rows: QueueRows, reader: &mut Reader<'_>) -> Option<Queue> {
        let discipline = match rows.kind {
            Kind::DropTail => Discipline::DropTail,
            Kind::CoDel => Discipline::CoDel(codel(&rows)?),
            Kind::FqCoDel => {
                let (quantum, flows) = (rows.quantum?, rows.flows?);
                Discipline::FqCoDel(FqCoDel { codel: codel(&rows)?, quantum, flows })
            }
            Kind::Pie => {
                let usual = Pie::default();
                Discipline::Pie(Pie {
                    target: rows.target.unwrap_or(usual.target),
                    update: rows.update?,
                    burst: rows.burst?,
                    mean_packet: rows.mean_packet.unwrap_or(usual.mean_packet),
                })
            }
            Kind::Red => Discipline::Red(Red {
                min_packets: rows.min_packets?,
                max_packets: rows.max_packets?,
                max_probability: rows.probability?,
                weight: rows.weight?,
                mean_packet: rows.mean_packet.unwrap_or(Red::default().mean_packet),
                ..Red::default()
            }),
        };
        if let Err(error) = discipline.validate() {
            let message = format!("a queue like this is not possible: {error}");
            let help = "change the parameter, or remove it for its default";
            reader.fault_here(Fault::explained(ProblemKind::OutOfRange, message, help));
            return None;
        }
        Some(Queue { limit: rows.limit, discipline })
    }

    fn to_rows(&self) -> QueueRows {
        let none = QueueRows {
            limit: self.limit,
            kind: Kind::DropTail,
            target: None,
            interval: None,
            flows: None,
            quantum: None,
            update: None,
            burst: None,
            min_packets: None,
            max_packets: None,
            probability: None,
            weight: None,
            mean_packet: None,
        };
        match self.discipline {
            Discipline::DropTail => none,
            Discipline::CoDel(codel) => QueueRows {
                kind: Kind::CoDel,
                target: Some(codel.target),
                interval: Some(codel.interval),
                ..none
            },
            Discipline::FqCoDel(fq) => QueueRows {
                kind: Kind::FqCoDel,
                target: Some(fq.codel.target),
                interval: Some(fq.codel.interval),
                flows: Some(fq.flows),
                quantum: Some(fq.quantum),
                ..none
            },
            Discipline::Pie(pie) => QueueRows {
                kind: Kind::Pie,
                target: Some(pie.target),
                update: Some(pie.update),
                burst: Some(pie.burst),
                mean_packet: Some(pie.mean_packet),
                ..none
            },
            Discipline::Red(red) => QueueRows {
                kind: Kind::Red,
                min_packets: Some(red.min_packets),
                max_packets: Some(red.max_packets),
                probability: Some(red.max_probability),
                weight: Some(red.weight),
                mean_packet: Some(red.mean_packet),
                ..none
            },
        }
    }
}

fn codel(rows: &QueueRows) -> Option<CoDel> {
    let usual = CoDel::default();
    Some(CoDel { target: rows.target.unwrap_or(usual.target), interval: rows.interval?, ..usual })
}

/// A queue length, or a table with a discipline.
pub(crate) struct QueueForm;

const TABLE: Inner<Queue> = Inner::new("Queue");

impl Form for QueueForm {
    type Output = Queue;

    fn expected(&self) -> String {
        format!("{}, or {}", AnyQueue.expected(), TABLE.expected())
    }

    fn read(&self, node: &Node) -> Result<Queue, Fault> {
        AnyQueue.read(node).map(Queue::drop_tail)
    }

    fn write(&self, value: &Queue) -> String {
        match value.discipline {
            Discipline::DropTail => AnyQueue.write(&value.limit),
            _ => TABLE.write(value),
        }
    }

    fn about(&self) -> About {
        let python = "str | Queue".to_owned();
        let limit = AnyQueue.about();
        let text = format!("{}, or {}", limit.text, TABLE.about().text);
        About { text, python, class: Some("Queue"), unit: limit.unit }
    }

    fn read_key<'a>(&self, reader: &Reader<'a>, key: &'static str, node: &'a Node) -> Option<Queue> {
        match &node.value {
            Value::Table(_) => TABLE.read_key(reader, key, node),
            _ => self.read(node).map_err(|fault| reader.fault(key, fault)).ok(),
        }
    }
}
