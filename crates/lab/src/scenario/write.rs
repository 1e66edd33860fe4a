//! Writes a scenario with everything that was left to defaults, so that the text stands for itself.

use std::fmt::Write as _;

use anabranch_core::Reliability;
use anabranch_sim::{Aggregation, Jitter, JitterDistribution, Policer};
use toml_writer::ToTomlValue as _;

use super::Scenario;
use super::association::{Association, ENCAPSULATIONS, PROTECTIONS, SendBuffer};
use super::background::{Background, TrafficModel};
use super::beside::MessagesBeside;
use super::direction::DIRECTIONS;
use super::event::Event;
use super::flow::{FLOW_DIRECTIONS, FileSource, Flow, FlowKind};
use super::impairment::{Impairments, ORDERS};
use super::link::{Duplex, OneWay};
use super::loss::{Loss, LossModel, PLACES};
use super::run::{Run, Stop};
use super::units::{format_queue, format_rate, format_size, format_span};
use super::video::{FrameReliability, VideoFlow};
use crate::video::FrameType;

/// The text of a scenario.
pub(super) fn scenario(scenario: &Scenario) -> String {
    let mut out = Writer::default();
    out.run(&scenario.run);
    out.association(&scenario.association);
    for scheme in &scenario.schemes {
        out.header(&format!("[scheme.{}]", scheme.name));
        out.text("is", &scheme.is);
        if let Some(about) = &scheme.about {
            out.text("about", about);
        }
    }
    for link in &scenario.links {
        out.header("[[link]]");
        out.text("name", &link.name);
        out.duplex("link", &link.duplex);
    }
    for path in &scenario.paths {
        out.header("[[path]]");
        out.text("name", &path.name);
        let via = path.via.iter().map(|&index| scenario.links[index].name.as_str());
        if !path.via.is_empty() {
            out.texts("via", via);
        }
        if let Some(own) = &path.own {
            out.duplex("path", own);
        }
    }
    for flow in &scenario.flows {
        out.flow(flow, scenario);
    }
    out.0
}

/// Collects lines.
#[derive(Default)]
struct Writer(String);

impl Writer {
    fn header(&mut self, header: &str) {
        let gap = if self.0.is_empty() { "" } else { "\n" };
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{gap}{header}");
    }

    /// A line with a value that is TOML already.
    fn raw(&mut self, key: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{key} = {value}");
    }

    fn text(&mut self, key: &str, value: &str) {
        self.raw(key, quote(value));
    }

    fn texts<'a>(&mut self, key: &str, values: impl Iterator<Item = &'a str>) {
        let list: Vec<String> = values.map(quote).collect();
        self.raw(key, format!("[{}]", list.join(", ")));
    }

    fn run(&mut self, run: &Run) {
        self.header("[run]");
        match run.stop {
            Stop::After(duration) => self.text("duration", &format_span(duration)),
            Stop::Transfer { cap } => {
                self.text("stop", "transfer");
                if let Some(cap) = cap {
                    self.text("duration", &format_span(cap));
                }
            }
        }
        self.texts("schemes", run.schemes.iter().map(String::as_str));
        let counted = run.seeds.iter().copied().eq(1..=run.seeds.len() as u64);
        match counted {
            true => self.raw("seeds", run.seeds.len()),
            false => self.raw("seeds", format!("{:?}", run.seeds)),
        }
        self.text("profile", &run.profile);
        self.text("start", &format_span(run.start));
        self.text("warmup", &format_span(run.warmup));
        if run.delays {
            self.raw("delays", run.delays);
        }
    }

    fn association(&mut self, association: &Association) {
        self.header("[association]");
        self.text("recv_buffer", &format_size(association.recv_buffer_bytes));
        match association.send_buffer {
            SendBuffer::Unlimited => self.text("send_buffer", "unlimited"),
            SendBuffer::Bytes(bytes) => self.text("send_buffer", &format_size(bytes)),
        }
        self.raw("streams", association.streams);
        self.raw("ordered", association.ordered);
        if let Some(message) = association.message_bytes {
            self.text("message", &format_size(message));
        }
        self.text("mtu", &format_size(association.mtu_bytes));
        self.text("encapsulation", word(ENCAPSULATIONS, association.encapsulation));
        self.text("protection", word(PROTECTIONS, association.protection));
    }

    fn duplex(&mut self, table: &str, duplex: &Duplex) {
        self.one_way(&duplex.forward);
        self.header(&format!("[{table}.reverse]"));
        self.one_way(&duplex.reverse);
        for background in &duplex.background {
            self.header(&format!("[[{table}.background]]"));
            self.background(background);
        }
        for event in &duplex.events {
            self.header(&format!("[[{table}.event]]"));
            self.event(event);
        }
    }

    fn one_way(&mut self, way: &OneWay) {
        self.text("rate", &format_rate(way.rate));
        self.text("delay", &format_span(way.delay));
        self.text("queue", &format_queue(way.queue));
        self.raw("loss", losses(&way.loss));
        let Impairments { policer, jitter, aggregation } = way.impairments;
        if let Some(Policer { rate, burst }) = policer {
            let (rate, burst) = (quote(&format_rate(rate)), quote(&format_size(burst.get())));
            self.raw("policer", format!("{{ rate = {rate}, burst = {burst} }}"));
        }
        if let Some(jitter) = jitter {
            self.raw("jitter", inline_jitter(jitter));
        }
        if let Some(Aggregation { period, most_packets }) = aggregation {
            let packets = most_packets.map_or_else(String::new, |most| format!(", packets = {most}"));
            self.raw("aggregation", format!("{{ period = {}{packets} }}", quote(&format_span(period))));
        }
    }

    fn background(&mut self, background: &Background) {
        match background.source {
            TrafficModel::Cbr { rate, jitter } => {
                self.text("kind", "cbr");
                self.text("rate", &format_rate(rate));
                self.raw("jitter", float(jitter));
            }
            TrafficModel::Poisson { rate } => {
                self.text("kind", "poisson");
                self.text("rate", &format_rate(rate));
            }
            TrafficModel::Pareto { rate, burst, idle, shape, fragment_bytes } => {
                self.text("kind", "pareto");
                self.text("rate", &format_rate(rate));
                self.text("burst", &format_span(burst));
                self.text("idle", &format_span(idle));
                self.raw("shape", float(shape));
                if let Some(fragment) = fragment_bytes {
                    self.text("fragment", &format_size(fragment));
                }
            }
        }
        self.text("packet", &format_size(background.packet_bytes));
        self.text("direction", word(DIRECTIONS, background.direction));
        self.text("start", &format_span(background.start));
        if let Some(stop) = background.stop {
            self.text("stop", &format_span(stop));
        }
        self.raw("count", background.count);
    }

    fn event(&mut self, event: &Event) {
        self.text("at", &format_span(event.at));
        self.text("direction", word(DIRECTIONS, event.direction));
        if let Some(up) = event.up {
            self.raw("up", up);
        }
        if let Some(rate) = event.rate {
            self.text("rate", &format_rate(rate));
        }
        if let Some(delay) = event.delay {
            self.text("delay", &format_span(delay));
        }
        if let Some(loss) = &event.loss {
            self.raw("loss", losses(loss));
        }
    }

    fn flow(&mut self, flow: &Flow, scenario: &Scenario) {
        self.header("[[flow]]");
        self.text("name", &flow.name);
        self.flow_kind(&flow.kind);
        self.text("start", &format_span(flow.start));
        self.texts("paths", flow.paths.iter().map(|&index| scenario.paths[index].name.as_str()));
        if let Some(scheme) = &flow.scheme {
            self.text("scheme", scheme);
        }
        self.text("direction", word(FLOW_DIRECTIONS, flow.direction));
        if let Some(rate) = flow.reader {
            self.text("reader", &format_rate(rate));
        }
        if let Some(MessagesBeside { size_bytes, interval, ordered }) = flow.beside {
            let (size, interval) = (quote(&format_size(size_bytes)), quote(&format_span(interval)));
            self.raw("messages", format!("{{ size = {size}, interval = {interval}, ordered = {ordered} }}"));
        }
    }

    fn flow_kind(&mut self, kind: &FlowKind) {
        match kind {
            FlowKind::Bulk => self.text("kind", "bulk"),
            FlowKind::File(source) => {
                self.text("kind", "file");
                match source {
                    FileSource::Path(path) => self.text("path", &path.to_string_lossy()),
                    FileSource::SizeBytes(bytes) => self.text("size", &format_size(*bytes)),
                }
            }
            FlowKind::Messages { size_bytes, interval, count, ordered, streams, reliability } => {
                self.text("kind", "messages");
                self.text("size", &format_size(*size_bytes));
                self.text("interval", &format_span(*interval));
                if let Some(count) = count {
                    self.raw("count", count);
                }
                self.raw("ordered", ordered);
                self.raw("streams", streams);
                if let Some(table) = reliability_table(*reliability) {
                    self.raw("reliability", table);
                }
            }
            FlowKind::Video(video) => self.video(video),
        }
    }

    fn video(&mut self, video: &VideoFlow) {
        let VideoFlow { trace, deadline, payload_bytes, ordered, streams, reliability } = video;
        self.text("kind", "video");
        self.text("trace", &trace.to_string_lossy());
        self.text("deadline", &format_span(*deadline));
        if let Some(payload) = payload_bytes {
            self.text("payload", &format_size(*payload));
        }
        self.raw("ordered", ordered);
        self.raw("streams", streams);
        if let Some(table) = frame_reliability_table(reliability) {
            self.raw("reliability", table);
        }
    }
}

fn inline_jitter(jitter: Jitter) -> String {
    let span = |span| quote(&format_span(span));
    let model = match jitter.distribution {
        JitterDistribution::Uniform(most) => format!("model = \"uniform\", most = {}", span(most)),
        JitterDistribution::Normal { mean, deviation } => {
            format!("model = \"normal\", mean = {}, deviation = {}", span(mean), span(deviation))
        }
    };
    format!("{{ {model}, order = \"{}\" }}", word(ORDERS, jitter.order))
}

/// A limit as an inline table; full reliability is what holds without one.
fn reliability_table(reliability: Reliability) -> Option<String> {
    match reliability {
        Reliability::Full => None,
        Reliability::MaxRetransmissions(most) => Some(format!("{{ max_retransmissions = {most} }}")),
        Reliability::Lifetime(lifetime) => Some(format!("{{ lifetime = \"{}\" }}", format_span(lifetime))),
        Reliability::Priority(number) => Some(format!("{{ priority = {number} }}")),
        Reliability::LifetimeAndRetransmissions { lifetime, max_retransmissions } => Some(format!(
            "{{ max_retransmissions = {max_retransmissions}, lifetime = \"{}\" }}",
            format_span(lifetime)
        )),
    }
}

/// One limit, or those by type.
fn frame_reliability_table(reliability: &FrameReliability) -> Option<String> {
    if *reliability == FrameReliability::all(reliability.i) {
        return reliability_table(reliability.i);
    }
    let limit = |kind: FrameType| {
        let table = reliability_table(reliability.of(kind))?;
        Some(format!("{} = {table}", kind.letter()))
    };
    let limits: Vec<String> = FrameType::ALL.into_iter().filter_map(limit).collect();
    Some(format!("{{ {} }}", limits.join(", ")))
}

/// Losses as an inline list of tables.
fn losses(all: &[Loss]) -> String {
    let all: Vec<String> = all.iter().map(loss).collect();
    format!("[{}]", all.join(", "))
}

fn loss(loss: &Loss) -> String {
    let model = match &loss.model {
        LossModel::Bernoulli { rate } => format!("model = \"bernoulli\", rate = {}", float(*rate)),
        LossModel::GilbertElliott { p, r, loss_good, loss_bad } => format!(
            "model = \"gilbert-elliott\", p = {}, r = {}, loss_good = {}, loss_bad = {}",
            float(*p),
            float(*r),
            float(*loss_good),
            float(*loss_bad)
        ),
        LossModel::Trace { lost } => format!("model = \"trace\", lost = {lost:?}"),
    };
    format!("{{ {model}, where = \"{}\" }}", word(PLACES, loss.place))
}

/// The shortest number that reads back as the same one.
fn float(number: f64) -> String {
    format!("{number:?}")
}

fn quote(text: &str) -> String {
    text.to_toml_value()
}

/// The word for a value.
fn word<T: PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, known)| *known == value).map_or("", |(word, _)| word)
}
