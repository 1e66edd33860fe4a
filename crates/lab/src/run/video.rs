//! A video flow's two ends: which packet is handed over when, which has arrived when, and the tables that say so.

use std::path::Path;
use std::sync::Arc;

use anabranch_core::Reliability;
use anabranch_core::time::{Span, Time};
use anabranch_sim::Seeds;
use bytes::Bytes;

use crate::run::payload;
use crate::trace::{CsvTable, TraceError};
use crate::video::{Delivery, VideoPlan, VideoResult};
use anabranch_scenario::{FrameReliability, VideoFlow};

/// The end that sends.
#[derive(Debug)]
pub(crate) struct VideoSource {
    plan: Arc<VideoPlan>,
    /// When the first frame is handed over: once the association is open.
    clock: Option<Time>,
    /// The packet that is next.
    next: usize,
    /// What packets carry: as much of it as they are long.
    content: Bytes,
    ordered: bool,
    streams: u16,
    reliability: FrameReliability,
}

/// A packet that is to be sent.
pub(crate) struct VideoPacket {
    pub(crate) content: Bytes,
    /// Its number, which it carries as its payload protocol identifier, so that a packet of one byte has one as well.
    pub(crate) number: u32,
    pub(crate) stream: u16,
    pub(crate) unordered: bool,
    pub(crate) reliability: Reliability,
}

impl VideoSource {
    pub(crate) fn new(plan: Arc<VideoPlan>, flow: &VideoFlow, seeds: &Seeds, name: &str) -> Self {
        let longest = plan.packets().iter().map(|packet| packet.size_bytes).max().unwrap_or(0);
        let content = payload::random_bytes(seeds, name, longest as usize);
        let VideoFlow { ordered, streams, reliability, .. } = *flow;
        VideoSource { plan, clock: None, next: 0, content, ordered, streams, reliability }
    }

    /// The association is open.
    pub(crate) fn start(&mut self, now: Time) {
        self.clock.get_or_insert(now);
    }

    /// When the first frame was handed over.
    pub(crate) fn clock(&self) -> Option<Time> {
        self.clock
    }

    /// When the next packet is handed over.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let packet = self.plan.packets().get(self.next)?;
        let time_ms = self.plan.trace().frames()[packet.frame].time_ms;
        // Times of traces are in microseconds at the finest.
        Some(self.clock? + Span::from_micros((time_ms * 1000.0).round() as u64))
    }

    /// The packet that is due, if one is.
    pub(crate) fn due(&self, now: Time) -> Option<VideoPacket> {
        self.next_at().filter(|at| *at <= now)?;
        let packet = self.plan.packets()[self.next];
        let kind = self.plan.trace().frames()[packet.frame].kind;
        Some(VideoPacket {
            content: self.content.slice(..packet.size_bytes as usize),
            number: self.next as u32,
            stream: (packet.frame % usize::from(self.streams.max(1))) as u16,
            unordered: !self.ordered,
            reliability: self.reliability.of(kind),
        })
    }

    /// It was taken.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }

    /// Whether all packets have been handed over.
    pub(crate) fn is_done(&self) -> bool {
        self.next == self.plan.packets().len()
    }
}

/// The end that shows the video: when each packet was read.
#[derive(Debug)]
pub(crate) struct VideoSink {
    plan: Arc<VideoPlan>,
    arrivals: Vec<Option<Time>>,
}

impl VideoSink {
    pub(crate) fn new(plan: Arc<VideoPlan>) -> Self {
        let arrivals = vec![None; plan.packets().len()];
        VideoSink { plan, arrivals }
    }

    /// A whole packet was read.
    pub(crate) fn arrived(&mut self, now: Time, number: u32) {
        if let Some(arrival) = self.arrivals.get_mut(number as usize) {
            arrival.get_or_insert(now);
        }
    }

    /// What became of the frames by the end of the run; `clock` is when the first was handed over, or should have been.
    pub(crate) fn outcome(&self, clock: Time, end: Time) -> VideoOutcome<'_> {
        let after = |at: Time| at.since(clock).as_millis_f64();
        let arrivals_ms: Vec<Option<f64>> = self.arrivals.iter().map(|at| at.map(after)).collect();
        let deliveries = self.plan.deliveries(&arrivals_ms);
        let result = self.plan.measures(&deliveries, after(end));
        VideoOutcome { plan: &self.plan, arrivals_ms, deliveries, result }
    }
}

/// A video at the end of a run.
pub(crate) struct VideoOutcome<'a> {
    plan: &'a VideoPlan,
    arrivals_ms: Vec<Option<f64>>,
    deliveries: Vec<Delivery>,
    pub(crate) result: VideoResult,
}

/// The names of a flow's tables.
pub(crate) fn table_names(flow: &str) -> [String; 2] {
    [format!("{flow}-frames.csv"), format!("{flow}-arrivals.csv")]
}

impl VideoOutcome<'_> {
    /// Writes a row for each frame in the order of display, and one for each packet.
    pub(crate) fn write(&self, folder: &Path, flow: &str) -> Result<(), TraceError> {
        let [frames, arrivals] = table_names(flow);
        let milliseconds = |time: Option<f64>| time.map_or_else(String::new, |ms| format!("{ms:.6}"));
        let columns =
            ["display", "number", "type", "size_bytes", "time_ms", "complete_ms", "delay_ms", "fate"];
        let mut table = CsvTable::create(folder, &frames, &columns)?;
        let mut shown: Vec<(usize, &Delivery)> = self.deliveries.iter().enumerate().collect();
        shown.sort_by_key(|(_, each)| each.frame.display);
        for (number, each) in shown {
            table.row(&[
                each.frame.display.to_string(),
                number.to_string(),
                each.frame.kind.letter().to_owned(),
                each.frame.size_bytes.to_string(),
                milliseconds(Some(each.frame.time_ms)),
                milliseconds(each.complete_ms),
                milliseconds(each.delay_ms()),
                each.fate.word().to_owned(),
            ]);
        }
        table.flush()?;
        let columns = ["packet", "arrival_ms", "frame", "size_bytes"];
        let mut table = CsvTable::create(folder, &arrivals, &columns)?;
        for (number, (packet, arrival)) in self.plan.packets().iter().zip(&self.arrivals_ms).enumerate() {
            let (frame, size) = (packet.frame.to_string(), packet.size_bytes.to_string());
            table.row(&[number.to_string(), milliseconds(*arrival), frame, size]);
        }
        table.flush()
    }
}
