//! Links as written on the command line: `rate=10Mbit,delay=45ms,loss=1%,queue=50p`.

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;
use anabranch_lab::scenario::units::{self, Queue};
use anabranch_sim::{LinkConfig, LossModel, LossPlace, QueueConfig};

/// What a link is like, before it has a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    rate: Rate,
    delay: Span,
    queue: QueueConfig,
    loss: LossModel,
    place: LossPlace,
}

const KEYS: [&str; 5] = ["rate", "delay", "loss", "queue", "where"];
/// As in scenario files.
const DEFAULT_QUEUE: QueueConfig = QueueConfig::packets(50);
const LONGEST_DELAY: Span = Span::from_secs(3600);
const EXAMPLE: &str = "rate=10Mbit,delay=45ms,loss=1%,queue=50p";

impl LinkSpec {
    pub(crate) fn named(self, name: String) -> LinkConfig {
        LinkConfig::new(name, self.rate, self.delay, self.queue).with_loss(self.loss, self.place)
    }

    /// Reads the keys in any order. `rate` and `delay` have to be there.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut values = [None; KEYS.len()];
        for item in text.split(',').map(str::trim) {
            let Some((key, value)) = item.split_once('=') else {
                return Err(format!("`{item}` is no KEY=VALUE; write a link such as `{EXAMPLE}`"));
            };
            let (key, value) = (key.trim(), value.trim());
            let Some(index) = KEYS.iter().position(|known| *known == key) else {
                return Err(unknown(key));
            };
            if values[index].replace(value).is_some() {
                return Err(format!("`{key}` is there twice: leave one of them out"));
            }
        }
        let [rate, delay, loss, queue, place] = values;
        let needed = |key, value: Option<_>| value.ok_or_else(|| missing(key));
        Ok(LinkSpec {
            rate: read_rate(needed("rate", rate)?)?,
            delay: read_delay(needed("delay", delay)?)?,
            queue: queue.map_or(Ok(DEFAULT_QUEUE), read_queue)?,
            loss: loss.map_or(Ok(LossModel::None), read_loss)?,
            place: place.map_or(Ok(LossPlace::BeforeQueue), read_place)?,
        })
    }
}

fn missing(key: &str) -> String {
    format!("`{key}` is missing; write a link such as `{EXAMPLE}`")
}

fn unknown(key: &str) -> String {
    let known = KEYS.map(|key| format!("`{key}`")).join(", ");
    let distance = |known: &&str| strsim::damerau_levenshtein(key, known);
    let nearest = KEYS.iter().min_by_key(|known| distance(known)).filter(|known| distance(known) <= 2);
    match nearest {
        Some(nearest) => format!("a link has no `{key}`; did you mean `{nearest}`?"),
        None => format!("a link has no `{key}`; it has {known}"),
    }
}

fn bad(key: &str) -> impl Fn(units::UnitError) -> String {
    let key = key.to_owned();
    move |error| format!("`{key}`: {error}")
}

/// As in scenario files, or in short as tc writes it: `10Mbit`.
fn read_rate(text: &str) -> Result<Rate, String> {
    let long = if text.ends_with("bit") { format!("{text}/s") } else { text.to_owned() };
    let rate = units::parse_rate(&long).map_err(bad("rate"))?;
    if rate.as_bps() == 0 {
        return Err(
            "`rate`: a link that sends nothing; write a rate such as `10Mbit`, and cut it with `--cut`"
                .to_owned(),
        );
    }
    Ok(rate)
}

fn read_delay(text: &str) -> Result<Span, String> {
    let delay = units::parse_span(text).map_err(bad("delay"))?;
    if delay > LONGEST_DELAY {
        return Err(format!("`delay`: expected 1 h at most, found `{text}`"));
    }
    Ok(delay)
}

/// As in scenario files, or in short as a number of packets: `50p`.
fn read_queue(text: &str) -> Result<QueueConfig, String> {
    if text == "unlimited" {
        return Ok(QueueConfig::unlimited());
    }
    let short = text.strip_suffix('p').map(str::trim_end).filter(|number| is_number(number));
    let long = short.map_or_else(|| text.to_owned(), |number| format!("{number} packets"));
    Ok(match units::parse_queue(&long).map_err(bad("queue"))? {
        Queue::Packets(packets) => QueueConfig::packets(packets),
        Queue::Bytes(bytes) => QueueConfig::bytes(WireBytes::new(bytes)),
        Queue::Delay(span) => QueueConfig::time(span),
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `1%`, or a probability as in scenario files.
fn read_loss(text: &str) -> Result<LossModel, String> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = if digits { number.parse::<f64>().ok() } else { None };
    match value.map(|value| value / scale) {
        Some(0.0) => Ok(LossModel::None),
        Some(loss) if loss <= 1.0 => Ok(LossModel::Bernoulli(loss)),
        _ => Err(format!("`loss`: expected a share from 0% to 100%, such as `1%` or `0.01`, found `{text}`")),
    }
}

fn read_place(text: &str) -> Result<LossPlace, String> {
    match text {
        "before-queue" => Ok(LossPlace::BeforeQueue),
        "after-queue" => Ok(LossPlace::AfterQueue),
        _ => Err(format!("`where`: expected `before-queue` or `after-queue`, found `{text}`")),
    }
}

/// An outage: `5s..10s` after the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cut {
    pub(crate) from: Time,
    pub(crate) to: Time,
}

impl std::str::FromStr for Cut {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((from, to)) = text.split_once("..") else {
            return Err(format!("expected two times such as `5s..10s`, found `{text}`"));
        };
        let read = |text| units::parse_span(text).map_err(|error| error.to_string());
        let (from, to) = (Time::ZERO + read(from)?, Time::ZERO + read(to)?);
        if from >= to {
            return Err(format!("expected an end after the beginning, such as `5s..10s`, found `{text}`"));
        }
        Ok(Cut { from, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        LinkSpec::read(text).expect_err(text)
    }

    #[test]
    fn short_and_long_forms_say_the_same() {
        let short = LinkSpec::read("rate=10Mbit,delay=45ms,loss=1%,queue=50p");
        let long = LinkSpec::read("queue=50 packets, loss=0.01, delay=45 ms, rate=10 Mbit/s");
        assert_eq!(short, long);
        let link = short.expect("a link");
        assert_eq!((link.rate, link.delay), (Rate::from_bps(10_000_000), Span::from_millis(45)));
        assert_eq!((link.loss, link.queue), (LossModel::Bernoulli(0.01), QueueConfig::packets(50)));
    }

    #[test]
    fn what_is_not_said_is_as_in_scenario_files() {
        let link = LinkSpec::read("rate=387kbit,delay=0s").expect("a link");
        let found = (link.queue, link.loss, link.place);
        assert_eq!(found, (QueueConfig::packets(50), LossModel::None, LossPlace::BeforeQueue));
    }

    #[test]
    fn queues_have_packets_bytes_or_time() {
        let queue =
            |text: &str| LinkSpec::read(&format!("rate=1Mbit,delay=1ms,queue={text}")).map(|link| link.queue);
        assert_eq!(queue("64KiB"), Ok(QueueConfig::bytes(WireBytes::new(65_536))));
        assert_eq!(queue("100ms"), Ok(QueueConfig::time(Span::from_millis(100))));
        assert_eq!(queue("0p"), Ok(QueueConfig::packets(0)));
        assert_eq!(queue("unlimited"), Ok(QueueConfig::unlimited()));
        assert!(queue("p").is_err() && queue("-1p").is_err() && queue("1.5p").is_err());
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, expected) in [
            ("", "is no KEY=VALUE; write a link such as `rate=10Mbit"),
            ("10Mbit", "`10Mbit` is no KEY=VALUE"),
            ("rate=10Mbit", "`delay` is missing"),
            ("delay=45ms", "`rate` is missing"),
            ("rat=10Mbit,delay=1ms", "a link has no `rat`; did you mean `rate`?"),
            ("rate=10Mbit,jitter=1ms", "a link has no `jitter`; it has `rate`, `delay`"),
            ("rate=1Mbit,rate=2Mbit,delay=1ms", "`rate` is there twice"),
            ("rate=10Mbps,delay=1ms", "did you mean `Mbit/s`?"),
            ("rate=0Mbit,delay=1ms", "a link that sends nothing"),
            ("rate=10,delay=1ms", "without a unit"),
            ("rate=10Mbit,delay=2h", "1 h at most"),
            ("rate=10Mbit,delay=-1ms", "negative"),
            ("rate=10Mbit,delay=1ms,loss=101%", "`loss`: expected a share from 0% to 100%"),
            ("rate=10Mbit,delay=1ms,loss=NaN", "found `NaN`"),
            ("rate=10Mbit,delay=1ms,loss=%", "`loss`"),
            ("rate=10Mbit,delay=1ms,loss=1e-3", "`loss`"),
            ("rate=10Mbit,delay=1ms,queue=50", "`queue`"),
            ("rate=10Mbit,delay=1ms,where=queue", "`before-queue` or `after-queue`"),
            ("rate=10Mbit,,delay=1ms", "`` is no KEY=VALUE"),
        ] {
            let error = refused(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn cuts_have_a_beginning_and_a_later_end() {
        let cut: Cut = "5s..10s".parse().expect("a cut");
        assert_eq!(cut.to.since(cut.from), Span::from_secs(5));
        for text in ["", "5s", "5s..", "..5s", "10s..5s", "5s..5s", "5..10", "5s...10s"] {
            assert!(text.parse::<Cut>().is_err(), "{text} was accepted");
        }
    }
}
