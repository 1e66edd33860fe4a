//! Links on the command line: `rate=10Mbit,delay=45ms,loss=1%,queue=50p`.

use anabranch_core::time::{Rate, Span, Time};
use anabranch_relay::RelayConfig;
use anabranch_scenario::units;
use anabranch_sim::{
    Aggregation, GilbertElliott, Jitter, LinkConfig, LossModel, LossPlace, LossTrace, Policer, QueueConfig,
};

use super::impairment::{read_aggregation, read_jitter, read_policer};
use super::rate::read_rate;
use crate::quantity;

/// Description of a link without a name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LinkSpec {
    rate: Rate,
    delay: Span,
    queue: QueueConfig,
    loss: LossModel,
    place: LossPlace,
    policer: Option<Policer>,
    jitter: Option<Jitter>,
    aggregation: Option<Aggregation>,
}

const KEYS: [&str; 8] = ["rate", "delay", "loss", "queue", "where", "policer", "jitter", "aggregation"];
/// Default of scenario files.
const DEFAULT_QUEUE: QueueConfig = QueueConfig::packets(50);
const LONGEST_DELAY: Span = Span::from_secs(3600);
const EXAMPLE: &str = "rate=10Mbit,delay=45ms,loss=1%,queue=50p";

impl LinkSpec {
    pub(crate) fn named(self, name: String) -> LinkConfig {
        LinkConfig::new(name, self.rate, self.delay, self.queue)
            .with_loss(self.loss, self.place)
            .with_policer(self.policer)
            .with_jitter(self.jitter)
            .with_aggregation(self.aggregation)
    }

    /// Reads the keys in any order. `rate` and `delay` are required.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut values = [None; KEYS.len()];
        for item in outside_parentheses(text, ',').map(str::trim) {
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
        let [rate, delay, loss, queue, place, policer, jitter, aggregation] = values;
        let needed = |key, value: Option<_>| value.ok_or_else(|| missing(key));
        Ok(LinkSpec {
            rate: read_rate("rate", needed("rate", rate)?)?,
            delay: read_delay(needed("delay", delay)?)?,
            queue: queue.map_or(Ok(DEFAULT_QUEUE), read_queue)?,
            loss: loss.map_or(Ok(LossModel::None), read_loss)?,
            place: place.map_or(Ok(LossPlace::BeforeQueue), read_place)?,
            policer: policer.map(read_policer).transpose()?,
            jitter: jitter.map(read_jitter).transpose()?,
            aggregation: aggregation.map(read_aggregation).transpose()?,
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

fn read_delay(text: &str) -> Result<Span, String> {
    let delay = units::parse_span(text).map_err(bad("delay"))?;
    if delay > LONGEST_DELAY {
        return Err(format!("`delay`: expected 1 h at most, found `{text}`"));
    }
    Ok(delay)
}

/// Reads a queue as in scenario files, or a short number of packets: `50p`.
fn read_queue(text: &str) -> Result<QueueConfig, String> {
    if text == "unlimited" {
        return Ok(QueueConfig::unlimited());
    }
    let short = text.strip_suffix('p').map(str::trim_end).filter(|number| is_number(number));
    let long = short.map_or_else(|| text.to_owned(), |number| format!("{number} packets"));
    let limit = units::parse_queue(&long).map_err(bad("queue"))?;
    Ok(QueueConfig::limited(limit))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Reads a loss: `1%`, or a model with the keys of scenario files, such as `gilbert-elliott(p=0.01,r=0.25)` or `trace(3,17)`.
fn read_loss(text: &str) -> Result<LossModel, String> {
    let called = text.strip_suffix(')').and_then(|text| text.split_once('('));
    match called.map(|(model, inside)| (model.trim_end(), inside)) {
        Some(("bernoulli", inside)) => read_bernoulli(inside),
        Some(("gilbert-elliott", inside)) => read_gilbert_elliott(inside),
        Some(("trace", inside)) => read_trace(inside),
        Some((model, _)) => Err(format!(
            "`loss`: there is no model `{model}`; there are `bernoulli`, `gilbert-elliott` and `trace`"
        )),
        None => match read_share(text) {
            Some(0.0) => Ok(LossModel::None),
            Some(loss) => Ok(LossModel::Bernoulli(loss)),
            None => Err(format!(
                "`loss`: expected a share from 0% to 100%, such as `1%` or `0.01`, found `{text}`"
            )),
        },
    }
}

/// Reads a probability, or a percentage.
fn read_share(text: &str) -> Option<f64> {
    let (number, scale) = match text.strip_suffix('%') {
        Some(percent) => (percent.trim_end(), 100.0),
        None => (text, 1.0),
    };
    let digits = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = if digits { number.parse::<f64>().ok() } else { None };
    value.map(|value| value / scale).filter(|share| *share <= 1.0)
}

fn read_bernoulli(inside: &str) -> Result<LossModel, String> {
    let [rate] = read_shares(inside, ["rate"])?;
    let rate = rate.ok_or("`loss`: `bernoulli` needs its `rate`, as in `bernoulli(rate=1%)`")?;
    Ok(LossModel::Bernoulli(rate))
}

fn read_gilbert_elliott(inside: &str) -> Result<LossModel, String> {
    let [p, r, good, bad] = read_shares(inside, ["p", "r", "loss_good", "loss_bad"])?;
    let (Some(p), Some(r)) = (p, r) else {
        return Err(
            "`loss`: `gilbert-elliott` needs `p` and `r`, as in `gilbert-elliott(p=0.01,r=0.25)`".to_owned()
        );
    };
    if r == 0.0 {
        return Err("`loss`: with `r=0` the bad state never ends; use `--cut` for an outage".to_owned());
    }
    let chain = GilbertElliott {
        to_bad: p,
        to_good: r,
        loss_in_good: good.unwrap_or(0.0),
        loss_in_bad: bad.unwrap_or(1.0),
    };
    Ok(LossModel::GilbertElliott(chain))
}

fn read_shares<const N: usize>(inside: &str, keys: [&str; N]) -> Result<[Option<f64>; N], String> {
    let mut values = [None; N];
    for item in inside.split(',').map(str::trim) {
        let known = keys.map(|key| format!("`{key}`")).join(", ");
        let pair = item.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        let index = pair.and_then(|(key, _)| keys.iter().position(|known| *known == key));
        let (Some((key, value)), Some(index)) = (pair, index) else {
            return Err(format!("`loss`: expected KEY=SHARE with {known}, found `{item}`"));
        };
        let share = read_share(value).ok_or_else(|| {
            format!("`loss`: expected a share from 0% to 100% for `{key}`, found `{value}`")
        })?;
        if values[index].replace(share).is_some() {
            return Err(format!("`loss`: `{key}` is there twice: leave one of them out"));
        }
    }
    Ok(values)
}

fn read_trace(inside: &str) -> Result<LossModel, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<u64>().ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            format!("`loss`: expected numbers of packets from 1, such as `trace(3,17)`, found `{text}`")
        })
    };
    let lost = inside.split(',').map(number).collect::<Result<Vec<u64>, String>>()?;
    Ok(LossModel::Trace(LossTrace::new().lose(RelayConfig::SOURCE, lost)))
}

/// Returns the parts between separators outside of parentheses.
fn outside_parentheses(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0
    })
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
        let read = |text| quantity::read_time(text).map(|time| Span::from_nanos(time.as_nanos() as u64));
        let (from, to) = (Time::ZERO + read(from)?, Time::ZERO + read(to)?);
        if from >= to {
            return Err(format!("expected an end after the beginning, such as `5s..10s`, found `{text}`"));
        }
        Ok(Cut { from, to })
    }
}

#[cfg(test)]
mod tests {
    use anabranch_core::units::WireBytes;

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
    fn a_link_polices_delays_and_batches_as_it_is_told() {
        let text = "rate=10Mbit,delay=45ms,policer=1.5Mbit/30kB,jitter=5ms/free,aggregation=5ms/32";
        let link = LinkSpec::read(text).expect("a link").named("relay-1/forward".to_owned());
        let plain =
            LinkSpec::read("rate=10Mbit,delay=45ms").expect("a link").named("relay-1/forward".to_owned());
        let told = plain
            .with_policer(read_policer("1.5Mbit/30kB").ok())
            .with_jitter(read_jitter("5ms/free").ok())
            .with_aggregation(read_aggregation("5ms/32").ok());
        assert_eq!(link, told);
        for (text, key) in
            [("policer=1Mbit", "`policer`"), ("jitter=0s", "`jitter`"), ("aggregation=x", "`aggregation`")]
        {
            assert!(refused(&format!("rate=1Mbit,delay=1ms,{text}")).contains(key), "{text}");
        }
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
    fn losses_have_the_models_of_scenario_files() {
        let loss =
            |text: &str| LinkSpec::read(&format!("loss={text}, rate=1Mbit, delay=1ms")).map(|link| link.loss);
        assert_eq!(loss("bernoulli(rate=2%)"), Ok(LossModel::Bernoulli(0.02)));
        let simple = GilbertElliott::simple(0.01, 0.25);
        assert_eq!(loss("gilbert-elliott(p=1%, r=0.25)"), Ok(LossModel::GilbertElliott(simple)));
        let soft = GilbertElliott { loss_in_good: 0.001, loss_in_bad: 0.5, ..simple };
        let text = "gilbert-elliott(loss_bad=50%,loss_good=0.1%,r=25%,p=0.01)";
        assert_eq!(loss(text), Ok(LossModel::GilbertElliott(soft)));
        let trace = LossTrace::new().lose(RelayConfig::SOURCE, [3, 17]);
        assert_eq!(loss("trace(17, 3)"), Ok(LossModel::Trace(trace)));
    }

    #[test]
    fn what_is_wrong_is_named_with_what_to_write() {
        for (text, expected) in [
            ("", "is no KEY=VALUE; write a link such as `rate=10Mbit"),
            ("10Mbit", "`10Mbit` is no KEY=VALUE"),
            ("rate=10Mbit", "`delay` is missing"),
            ("delay=45ms", "`rate` is missing"),
            ("rat=10Mbit,delay=1ms", "a link has no `rat`; did you mean `rate`?"),
            ("rate=10Mbit,reverse=1ms", "a link has no `reverse`; it has `rate`, `delay`"),
            ("rate=1Mbit,rate=2Mbit,delay=1ms", "`rate` is there twice"),
            ("rate=10Mbps,delay=1ms", "expected bits per second"),
            ("rate=0Mbit,delay=1ms", "a link that sends nothing"),
            ("rate=10x,delay=1ms", "as in 500K, 8M"),
            ("rate=10Mbit,delay=2h", "1 h at most"),
            ("rate=10Mbit,delay=-1ms", "negative"),
            ("rate=10Mbit,delay=1ms,loss=101%", "`loss`: expected a share from 0% to 100%"),
            ("rate=10Mbit,delay=1ms,loss=NaN", "found `NaN`"),
            ("rate=10Mbit,delay=1ms,loss=%", "`loss`"),
            ("rate=10Mbit,delay=1ms,loss=1e-3", "`loss`"),
            ("rate=10Mbit,delay=1ms,queue=50", "`queue`"),
            ("rate=10Mbit,delay=1ms,where=queue", "`before-queue` or `after-queue`"),
            ("rate=10Mbit,,delay=1ms", "`` is no KEY=VALUE"),
            ("rate=1Mbit,delay=1ms,loss=pareto(a=1)", "there is no model `pareto`; there are `bernoulli`"),
            ("rate=1Mbit,delay=1ms,loss=bernoulli()", "expected KEY=SHARE with `rate`"),
            ("rate=1Mbit,delay=1ms,loss=gilbert-elliott(p=1%)", "needs `p` and `r`"),
            ("rate=1Mbit,delay=1ms,loss=gilbert-elliott(p=1%,r=0)", "never ends; use `--cut`"),
            ("rate=1Mbit,delay=1ms,loss=gilbert-elliott(p=1%,p=2%)", "`p` is there twice"),
            ("rate=1Mbit,delay=1ms,loss=gilbert-elliott(p=2,r=1)", "a share from 0% to 100% for `p`"),
            ("rate=1Mbit,delay=1ms,loss=gilbert-elliott(p=1%,q=1)", "found `q=1`"),
            ("rate=1Mbit,delay=1ms,loss=trace(0)", "numbers of packets from 1"),
            ("rate=1Mbit,delay=1ms,loss=trace()", "such as `trace(3,17)`"),
            ("rate=1Mbit,delay=1ms,loss=trace(3", "`loss`"),
        ] {
            let error = refused(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn cuts_have_a_beginning_and_a_later_end() {
        let cut: Cut = "5s..10s".parse().expect("a cut");
        assert_eq!(cut.to.since(cut.from), Span::from_secs(5));
        for text in ["", "5s", "5s..", "..5s", "10s..5s", "5s..5s", "5..10x", "5s...10s"] {
            assert!(text.parse::<Cut>().is_err(), "{text} was accepted");
        }
    }
}
