//! Ends of a video flow: the times at which packets are sent and arrive, and the tables with these times.

use std::path::Path;
use std::sync::Arc;

use anabranch_core::Reliability;
use anabranch_core::time::{Span, Time};
use anabranch_sim::Seeds;
use bytes::Bytes;

use crate::run::payload;
use crate::video::{Delivery, VideoPlan, VideoResult};
use anabranch_scenario::{FrameReliability, VideoFlow};
use anabranch_trace::{CsvTable, TraceError};

/// End that sends the video.
#[derive(Debug)]
pub(crate) struct VideoSource {
    plan: Arc<VideoPlan>,
    /// Time of the first frame, once the association is open.
    clock: Option<Time>,
    /// Index of the next packet.
    next: usize,
    /// Content of packets, truncated to their length.
    content: Bytes,
    ordered: bool,
    streams: u16,
    reliability: FrameReliability,
}

/// A packet to send.
pub(crate) struct VideoPacket {
    pub(crate) content: Bytes,
    /// Number of the packet, which is also its payload protocol identifier, so that even a packet of one byte has a number.
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

    /// Starts the clock, once the association is open.
    pub(crate) fn start(&mut self, now: Time) {
        self.clock.get_or_insert(now);
    }

    /// Returns the time of the first frame.
    pub(crate) fn clock(&self) -> Option<Time> {
        self.clock
    }

    /// Returns the time of the next packet.
    pub(crate) fn next_at(&self) -> Option<Time> {
        let packet = self.plan.packets().get(self.next)?;
        let time_ms = self.plan.trace().frames()[packet.frame].time_ms;
        // Traces have times of at most microsecond precision.
        Some(self.clock? + Span::from_micros((time_ms * 1000.0).round() as u64))
    }

    /// Returns the packet that is due, if any.
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

    /// Advances to the next packet, after the association has accepted this one.
    pub(crate) fn advance(&mut self) {
        self.next += 1;
    }

    /// Returns `true` if all packets have been sent.
    pub(crate) fn is_done(&self) -> bool {
        self.next == self.plan.packets().len()
    }
}

/// End that shows the video, with the time at which each packet was read.
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

    /// Records a complete packet.
    pub(crate) fn arrived(&mut self, now: Time, number: u32) {
        if let Some(arrival) = self.arrivals.get_mut(number as usize) {
            arrival.get_or_insert(now);
        }
    }

    /// Returns the outcome of the frames at the end of the run. `clock` is the time at which the first frame was sent or should
    /// have been sent.
    pub(crate) fn outcome(&self, clock: Time, end: Time) -> VideoOutcome<'_> {
        let after = |at: Time| at.since(clock).as_millis_f64();
        let arrivals_ms: Vec<Option<f64>> = self.arrivals.iter().map(|at| at.map(after)).collect();
        let deliveries = self.plan.deliveries(&arrivals_ms);
        let result = self.plan.measures(&deliveries, after(end));
        VideoOutcome { plan: &self.plan, arrivals_ms, deliveries, result }
    }
}

/// Outcome of a video at the end of a run.
pub(crate) struct VideoOutcome<'a> {
    plan: &'a VideoPlan,
    arrivals_ms: Vec<Option<f64>>,
    deliveries: Vec<Delivery>,
    pub(crate) result: VideoResult,
}

/// Returns the names of a flow's tables.
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
