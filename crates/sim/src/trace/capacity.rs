//! Capacity over time: Mahimahi's delivery opportunities, or rates that hold from their time on.

use std::io::{self, BufRead, Write};
use std::sync::Arc;

use anabranch_core::time::{Rate, Span, Time};
use anabranch_core::units::WireBytes;

use super::lines::{Lines, decimal};
use super::table::{Columns, Table};
use super::{MAX_DURATION, MAX_POINTS, MAX_RATE, Playback, TraceError};

/// Bytes of a delivery opportunity in a Mahimahi file: an Ethernet frame's payload and four bytes of the tunnel's header.
pub const OPPORTUNITY: WireBytes = WireBytes::new(1504);
/// Work of a byte where rates are constant: 8 bits, each of which a rate of 1 bit/s sends in 10^9 ns.
pub(super) const WORK_PER_BYTE: u128 = 8_000_000_000;
const MILLISECOND: u64 = 1_000_000;

/// Capacity of a link over time. Copies share their points.
///
/// ```
/// use anabranch_sim::CapacityTrace;
/// // Two opportunities after 2 ms and one after 5 ms: 4,512 bytes each 5 ms.
/// let trace = CapacityTrace::read_mahimahi(&b"2\n2\n5\n"[..])?;
/// assert_eq!(trace.mean_rate().as_bps(), 7_219_200);
/// # Ok::<(), anabranch_sim::TraceError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityTrace {
    pub(super) curve: Arc<Curve>,
    pub(super) duration: Span,
    pub(super) kind: Kind,
}

/// Meaning of a trace's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Work is bytes, all of which come at the moment of the point.
    Opportunities { size: u64 },
    /// Work is [`WORK_PER_BYTE`] for each byte, and comes at a constant rate until the point.
    Rates,
}

/// End of a stretch of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    /// Time since the beginning of the trace, in ns.
    pub(super) at: u64,
    /// Work that the trace admits up to and including this time.
    pub(super) work: u128,
}

/// Work over time, which never decreases and increases at least once. Times increase.
#[derive(Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) points: Vec<Point>,
}

impl Curve {
    /// Returns the work of the whole trace.
    pub(super) fn total(&self) -> u128 {
        self.points.last().map_or(0, |point| point.work)
    }

    /// Returns the point before the one of this index, which is the origin for the first.
    #[inline]
    pub(super) fn before(&self, index: usize) -> Point {
        index.checked_sub(1).map_or(Point { at: 0, work: 0 }, |index| self.points[index])
    }
}

/// Unit of the rates in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// bit/s.
    BitPerSecond,
    /// kbit/s.
    KilobitPerSecond,
    /// Mbit/s.
    MegabitPerSecond,
    /// B/s.
    BytePerSecond,
}

impl RateUnit {
    /// Units with their names in scenarios and on the command line.
    pub const NAMES: [(&'static str, RateUnit); 4] = [
        ("bit/s", RateUnit::BitPerSecond),
        ("kbit/s", RateUnit::KilobitPerSecond),
        ("Mbit/s", RateUnit::MegabitPerSecond),
        ("B/s", RateUnit::BytePerSecond),
    ];

    /// Names of columns that state a unit.
    const COLUMNS: [(&str, RateUnit); 3] = [
        ("bytes_per_second", RateUnit::BytePerSecond),
        ("kbit_per_second", RateUnit::KilobitPerSecond),
        ("bits_per_second", RateUnit::BitPerSecond),
    ];

    /// Returns the unit of this name.
    ///
    /// # Errors
    /// Returns the list of names for any other text.
    pub fn named(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        found.map(|(_, unit)| *unit).ok_or_else(|| "expected bit/s, kbit/s, Mbit/s or B/s".to_owned())
    }

    /// Returns the unit that the name of a column states, or Mbit/s.
    fn of_column(name: &str) -> Self {
        let stated = Self::COLUMNS.iter().find(|(column, _)| name.eq_ignore_ascii_case(column));
        stated.map_or(RateUnit::MegabitPerSecond, |(_, unit)| *unit)
    }

    /// Parses a rate as bit/s.
    fn read(self, text: &str) -> Option<u64> {
        match self {
            RateUnit::BitPerSecond => decimal(text, 0),
            RateUnit::KilobitPerSecond => decimal(text, 3),
            RateUnit::MegabitPerSecond => decimal(text, 6),
            RateUnit::BytePerSecond => {
                decimal(text, 3).and_then(|thousandths| Some(thousandths.checked_mul(8)? / 1000))
            }
        }
    }
}

const RATE_COLUMNS: &str = "the time in seconds and the rate in Mbit/s";

impl CapacityTrace {
    /// Reads a file of Mahimahi: each line is the millisecond of an opportunity to deliver [`OPPORTUNITY`] bytes. The trace lasts
    /// until its last opportunity.
    ///
    /// # Errors
    /// Returns [`TraceError`] with the line, if the file is malformed, out of order, too large, or has no opportunity after time
    /// zero.
    pub fn read_mahimahi(input: impl BufRead) -> Result<Self, TraceError> {
        Self::opportunities_of(Lines::new(input))
    }

    fn opportunities_of(mut lines: Lines<impl BufRead>) -> Result<Self, TraceError> {
        let mut builder = OpportunityBuilder::default();
        while let Some((line, text)) = lines.next()? {
            let value = || TraceError::Value {
                line,
                text: text.to_owned(),
                quantity: "millisecond of a delivery opportunity",
                remedy: "each line of a Mahimahi file is a whole number of milliseconds",
            };
            let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
            let ms = decimal(text, 0).filter(|_| is_whole).ok_or_else(value)?;
            builder.add(ms, line)?;
        }
        builder.build()
    }

    /// Returns a trace with an opportunity at each of these milliseconds, which do not decrease.
    ///
    /// # Errors
    /// As [`read_mahimahi`](Self::read_mahimahi), with the number of the opportunity as the line.
    pub fn from_opportunities(milliseconds: impl IntoIterator<Item = u64>) -> Result<Self, TraceError> {
        let mut builder = OpportunityBuilder::default();
        for (line, ms) in (1..).zip(milliseconds) {
            builder.add(ms, line)?;
        }
        builder.build()
    }

    /// Reads a table with a time and a rate in each line, separated by a comma, semicolon, tab or blanks. A rate holds until the next
    /// time. Without `unit`, rates are in Mbit/s, or in the unit that the name of their column states: `bytes_per_second`,
    /// `kbit_per_second` or `bits_per_second`.
    ///
    /// # Errors
    /// Returns [`TraceError`] with the line, if the file is malformed, out of order, too large, has fewer than two points, or no
    /// capacity.
    pub fn read_rates(
        input: impl BufRead,
        columns: &Columns,
        unit: Option<RateUnit>,
    ) -> Result<Self, TraceError> {
        Self::rates_of(Lines::new(input), columns, unit)
    }

    /// Reads a file of Mahimahi if its first line is a whole number alone and `columns` has no step, or else a table of rates.
    ///
    /// # Errors
    /// As [`read_mahimahi`](Self::read_mahimahi) and [`read_rates`](Self::read_rates).
    pub fn read(input: impl BufRead, columns: &Columns, unit: Option<RateUnit>) -> Result<Self, TraceError> {
        let mut lines = Lines::new(input);
        let first = lines.peek()?.unwrap_or_default();
        let has_times = columns.step.is_none();
        if has_times && !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::opportunities_of(lines);
        }
        Self::rates_of(lines, columns, unit)
    }

    fn rates_of(
        lines: Lines<impl BufRead>,
        columns: &Columns,
        unit: Option<RateUnit>,
    ) -> Result<Self, TraceError> {
        let table = Table::read(lines, columns, RATE_COLUMNS, |name, line, text| {
            let unit = unit.unwrap_or_else(|| RateUnit::of_column(name));
            let rate = unit.read(text).filter(|bps| *bps <= MAX_RATE);
            rate.map(Rate::from_bps).ok_or_else(|| TraceError::Value {
                line,
                text: text.to_owned(),
                quantity: "rate of at most 1 Tbit/s",
                remedy: "give a number that is not negative, and leave the field empty where nothing was measured",
            })
        })?;
        let Table { points, duration } = table.nonempty("two lines of a time and a rate")?;
        Self::from_rates(points, duration)
    }

    /// Returns a trace in which each rate holds from its time until the next, and the last one until `duration`. The first time is
    /// zero.
    ///
    /// # Errors
    /// Returns [`TraceError`] with the number of the point as the line, if times do not increase, a rate is above [`MAX_RATE`],
    /// there are too many points, or the trace lasts no time or too long or has no capacity.
    pub fn from_rates(
        rates: impl IntoIterator<Item = (Span, Rate)>,
        duration: Span,
    ) -> Result<Self, TraceError> {
        let mut points: Vec<Point> = Vec::new();
        let mut present: Option<(Span, Rate)> = None;
        let mut work = 0;
        let end = std::iter::once((duration, Rate::from_bps(0)));
        for (line, (at, rate)) in (1..).zip(rates.into_iter().chain(end)) {
            if points.len() >= MAX_POINTS {
                return Err(TraceError::Large { line });
            }
            let since = present.map_or(Span::ZERO, |(since, _)| since);
            let advances = present.map_or(at.is_zero(), |(since, _)| at > since);
            if !advances {
                return Err(TraceError::Order { line, time: format!("{} s", at.as_secs_f64()) });
            }
            if rate.as_bps() > MAX_RATE {
                return Err(TraceError::Parameter { name: "rate", what: "must be at most 1 Tbit/s" });
            }
            if let Some((_, former)) = present {
                work += u128::from(former.as_bps()) * u128::from((at - since).as_nanos());
                points.push(Point { at: at.as_nanos(), work });
            }
            present = Some((at, rate));
        }
        if duration > MAX_DURATION {
            return Err(TraceError::Long { line: points.len() as u64 });
        }
        if work == 0 {
            return Err(TraceError::NoCapacity);
        }
        Ok(CapacityTrace { curve: Arc::new(Curve { points }), duration, kind: Kind::Rates })
    }

    /// Returns the time after which the trace repeats.
    pub fn duration(&self) -> Span {
        self.duration
    }

    /// Returns the mean capacity.
    pub fn mean_rate(&self) -> Rate {
        let bits = self.bits(self.curve.total());
        let bps = (bits * 1_000_000_000 / u128::from(self.duration.as_nanos())).max(1);
        Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX))
    }

    fn bits(&self, work: u128) -> u128 {
        match self.kind {
            Kind::Opportunities { .. } => work * 8,
            Kind::Rates => work * 8 / WORK_PER_BYTE,
        }
    }

    /// Returns the capacity between two times of one repetition of the trace, in bits. Opportunities at `from` count, and those at
    /// `to` count only if it is the end of the trace.
    pub fn bits_between(&self, from: Span, to: Span) -> u64 {
        let last = self.duration.as_nanos();
        let until = |span: Span| match self.kind {
            Kind::Opportunities { .. } if span.as_nanos() < last => {
                span.as_nanos().checked_sub(1).map_or(0, |before| self.work_until(before))
            }
            _ => self.work_until(span.as_nanos().min(last)),
        };
        u64::try_from(self.bits(until(to).saturating_sub(until(from)))).unwrap_or(u64::MAX)
    }

    /// Returns the work up to and including a time of one repetition.
    pub(super) fn work_until(&self, at: u64) -> u128 {
        self.work_at(self.curve.points.partition_point(|point| point.at <= at), at)
    }

    /// Returns the work up to and including a time of one repetition, with the index of the first point after that time.
    #[inline]
    pub(super) fn work_at(&self, index: usize, at: u64) -> u128 {
        let before = self.curve.before(index);
        match self.kind {
            Kind::Opportunities { .. } => before.work,
            Kind::Rates => self.curve.points.get(index).map_or(before.work, |point| {
                before.work + rate_of(before, *point) * u128::from(at - before.at)
            }),
        }
    }

    /// Returns the mean rate of each step of the trace. The last step may be shorter.
    ///
    /// # Errors
    /// Returns an error if the step is zero, or so short that the trace has more than [`MAX_POINTS`].
    pub fn rates(&self, step: Span) -> Result<Vec<(Span, Rate)>, TraceError> {
        let steps = self.duration.as_nanos().div_ceil(step.as_nanos().max(1));
        if step.is_zero() || steps > MAX_POINTS as u64 {
            let what =
                "must be longer than zero and not so short that the trace has more than 4194304 points";
            return Err(TraceError::Parameter { name: "step", what });
        }
        let rate = |n: u64| {
            let from = step.times(n);
            let to = step.times(n + 1).min(self.duration);
            let bits = u128::from(self.bits_between(from, to)) * 1_000_000_000;
            let bps = bits / u128::from((to - from).as_nanos());
            (from, Rate::from_bps(u64::try_from(bps).unwrap_or(u64::MAX).min(MAX_RATE)))
        };
        Ok((0..steps).map(rate).collect())
    }

    /// Returns the trace as mean rates of steps.
    ///
    /// # Errors
    /// As [`rates`](Self::rates).
    pub fn resampled(&self, step: Span) -> Result<Self, TraceError> {
        Self::from_rates(self.rates(step)?, self.duration)
    }

    /// Returns the trace with its capacity multiplied by a factor.
    ///
    /// # Errors
    /// Returns an error if the factor is not above 0 and at most 1000, or if no capacity remains.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        if !(factor > 0.0 && factor <= 1000.0) {
            return Err(TraceError::Parameter { name: "factor", what: "must be above 0 and at most 1000" });
        }
        let scale = |number: u64| libm::round(number as f64 * factor) as u64;
        match self.kind {
            Kind::Opportunities { size } => {
                let scaled = scale(size);
                if scaled == 0 {
                    return Err(TraceError::NoCapacity);
                }
                let points = self.curve.points.iter();
                let points = points.map(|point| Point {
                    work: point.work / u128::from(size) * u128::from(scaled),
                    ..*point
                });
                let curve = Arc::new(Curve { points: points.collect() });
                Ok(CapacityTrace { curve, kind: Kind::Opportunities { size: scaled }, ..*self })
            }
            Kind::Rates => {
                let rates = self.rate_segments().map(|(at, rate)| (at, Rate::from_bps(scale(rate.as_bps()))));
                Self::from_rates(rates, self.duration)
            }
        }
    }

    /// Returns the rates of a trace that has them.
    fn rate_segments(&self) -> impl Iterator<Item = (Span, Rate)> {
        (0..self.curve.points.len()).map(|index| {
            let before = self.curve.before(index);
            let bps = rate_of(before, self.curve.points[index]);
            (Span::from_nanos(before.at), Rate::from_bps(bps as u64))
        })
    }

    /// Returns the section between two times as a trace of its own.
    ///
    /// # Errors
    /// Returns an error if the section is empty, ends after the trace, or has no capacity.
    pub fn cut(&self, from: Span, to: Span) -> Result<Self, TraceError> {
        if from >= to || to > self.duration {
            let what = "must end after its beginning and not after the trace";
            return Err(TraceError::Parameter { name: "section", what });
        }
        let duration = to - from;
        match self.kind {
            Kind::Rates => {
                // The stretch in force at the beginning of the section begins with it.
                let points = &self.curve.points;
                let first = points.partition_point(|point| point.at <= from.as_nanos());
                let within = self.rate_segments().skip(first).take_while(|(at, _)| *at < to);
                Self::from_rates(within.map(|(at, rate)| (at - from, rate)), duration)
            }
            Kind::Opportunities { .. } => {
                let (start, end) = (from.as_nanos(), to.as_nanos());
                let base = if start == 0 { 0 } else { self.work_until(start - 1) };
                let within = self.curve.points.iter().filter(|point| (start..=end).contains(&point.at));
                let mut points: Vec<_> =
                    within.map(|point| Point { at: point.at - start, work: point.work - base }).collect();
                let total = points.last().map_or(0, |point| point.work);
                if total == 0 {
                    return Err(TraceError::NoCapacity);
                }
                if points.last().is_some_and(|last| last.at < duration.as_nanos()) {
                    points.push(Point { at: duration.as_nanos(), work: total });
                }
                Ok(CapacityTrace { curve: Arc::new(Curve { points }), duration, ..*self })
            }
        }
    }

    /// Writes the trace in Mahimahi's format. Rates become an opportunity in the millisecond in which they have carried its bytes.
    /// The last line is the end of the trace, rounded up, so that it repeats as the original does; it is an opportunity more than
    /// the capacity where none is due there.
    ///
    /// # Errors
    /// Returns an error if the output cannot be written.
    pub fn write_mahimahi(&self, mut output: impl Write) -> io::Result<()> {
        let per_byte = match self.kind {
            Kind::Opportunities { .. } => 1,
            Kind::Rates => WORK_PER_BYTE,
        };
        let opportunity = u128::from(OPPORTUNITY.get()) * per_byte;
        let end = self.duration.as_nanos().div_ceil(MILLISECOND);
        let (mut written, mut last) = (0, None);
        for ms in 0..=end {
            let due = self.work_until((ms * MILLISECOND).min(self.duration.as_nanos())) / opportunity;
            for _ in written..due {
                writeln!(output, "{ms}")?;
                last = Some(ms);
            }
            written = due;
        }
        if last != Some(end) {
            writeln!(output, "{end}")?;
        }
        Ok(())
    }

    /// Writes the mean rates of steps as lines of seconds and Mbit/s.
    ///
    /// # Errors
    /// Returns an error if the step is out of its range, or the output cannot be written.
    pub fn write_rates(&self, step: Span, mut output: impl Write) -> io::Result<()> {
        let rates = self.rates(step).map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        writeln!(output, "seconds,mbit_per_second")?;
        for (at, rate) in rates {
            let (nanos, bps) = (at.as_nanos(), rate.as_bps());
            let seconds = format_args!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
            writeln!(output, "{seconds},{}.{:06}", bps / 1_000_000, bps % 1_000_000)?;
        }
        Ok(())
    }
}

/// Returns the rate between two points, in bit/s.
#[inline]
pub(super) fn rate_of(before: Point, point: Point) -> u128 {
    let work = point.work - before.work;
    let nanos = point.at - before.at;
    match u64::try_from(work) {
        Ok(work) => u128::from(work / nanos),
        Err(_) => work / u128::from(nanos),
    }
}

impl Playback<CapacityTrace> {
    /// Returns the capacity between two times of a run, in bits.
    pub fn bits_between(&self, from: Time, to: Time) -> u64 {
        let period = self.trace.duration.as_nanos();
        let until = |time: Time| {
            let at = (time + self.offset).as_nanos();
            if !self.repeat {
                return self.trace.work_until(at.min(period));
            }
            u128::from(at / period) * self.trace.curve.total() + self.trace.work_until(at % period)
        };
        u64::try_from(self.trace.bits(until(to).saturating_sub(until(from)))).unwrap_or(u64::MAX)
    }
}

#[derive(Default)]
struct OpportunityBuilder {
    points: Vec<Point>,
    work: u128,
}

impl OpportunityBuilder {
    fn add(&mut self, ms: u64, line: u64) -> Result<(), TraceError> {
        let at = Span::from_millis(ms);
        if at > MAX_DURATION {
            return Err(TraceError::Long { line });
        }
        self.work += u128::from(OPPORTUNITY.get());
        let point = Point { at: at.as_nanos(), work: self.work };
        let is_full = self.points.len() >= MAX_POINTS;
        match self.points.last_mut() {
            Some(last) if last.at == point.at => *last = point,
            Some(last) if last.at > point.at => {
                return Err(TraceError::Order { line, time: format!("{ms} ms") });
            }
            _ if is_full => return Err(TraceError::Large { line }),
            _ => self.points.push(point),
        }
        Ok(())
    }

    fn build(mut self) -> Result<CapacityTrace, TraceError> {
        let points = self.points.len();
        let duration = Span::from_nanos(self.points.last().map_or(0, |point| point.at));
        if duration.is_zero() {
            return Err(TraceError::Empty { points, least: "one opportunity after millisecond 0" });
        }
        self.points.shrink_to_fit();
        let kind = Kind::Opportunities { size: OPPORTUNITY.get() };
        Ok(CapacityTrace { curve: Arc::new(Curve { points: self.points }), duration, kind })
    }
}
