//! Delay, loss and outages over time.

use std::io::BufRead;
use std::sync::Arc;

use anabranch_core::time::{Span, Time};

use super::lines::{Lines, decimal};
use super::table::{Columns, Table};
use super::{MAX_DURATION, MAX_POINTS, Playback, TraceError};
use crate::dynamics::LinkChange;
use crate::error::{ConfigError, require};
use crate::loss::LossModel;

/// Changes of a link over time, each of which holds until the next of its kind. Copies share their points.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    points: Arc<[(Span, LinkChange)]>,
    duration: Span,
}

const LEAST: &str = "two lines of a time and a value";

impl Series {
    /// Returns a series of changes, in the order of their times from zero on, that lasts for `duration`.
    ///
    /// # Errors
    /// Returns [`TraceError`] if there are no points or too many, times do not increase from zero, or the series lasts no time or
    /// too long.
    pub fn new(points: Vec<(Span, LinkChange)>, duration: Span) -> Result<Self, TraceError> {
        if points.is_empty() || duration.is_zero() {
            return Err(TraceError::Empty { points: points.len(), least: LEAST });
        }
        let line = points.len() as u64;
        if points.len() > MAX_POINTS {
            return Err(TraceError::Large { line });
        }
        if duration > MAX_DURATION {
            return Err(TraceError::Long { line });
        }
        let starts_at_zero = points[0].0.is_zero();
        let disorder = points.windows(2).position(|pair| pair[0].0 >= pair[1].0).map(|index| index + 1);
        let late = points.iter().position(|(at, _)| *at >= duration);
        if let Some(index) = disorder.or(late).or((!starts_at_zero).then_some(0)) {
            let time = format!("{} s", points[index].0.as_secs_f64());
            return Err(TraceError::Order { line: index as u64 + 1, time });
        }
        Ok(Series { points: points.into(), duration })
    }

    /// Reads lines of a time in seconds and a one-way delay in milliseconds.
    ///
    /// # Errors
    /// Returns [`TraceError`] with the line, if the input is malformed, out of order, too large, or has fewer than two points.
    pub fn read_delays(input: impl BufRead, columns: &Columns) -> Result<Self, TraceError> {
        Self::read(input, columns, "the time in seconds and the delay in ms", |text| {
            let nanos = decimal(text, 6).filter(|nanos| *nanos <= 3_600_000_000_000);
            let change = nanos.map(|nanos| LinkChange::Delay(Span::from_nanos(nanos)));
            change.ok_or((
                "delay in ms",
                "give a number from 0 to 3600000, and leave the field empty where nothing was measured",
            ))
        })
    }

    /// Reads lines of a time in seconds and a loss probability from 0 to 1.
    ///
    /// # Errors
    /// As [`read_delays`](Self::read_delays).
    pub fn read_losses(input: impl BufRead, columns: &Columns) -> Result<Self, TraceError> {
        Self::read(input, columns, "the time in seconds and the loss probability", |text| {
            let billionths = decimal(text, 9).filter(|billionths| *billionths <= 1_000_000_000);
            let model = billionths.map(|billionths| LossModel::Bernoulli(billionths as f64 / 1e9));
            model
                .map(LinkChange::Loss)
                .ok_or(("loss probability", "give a number from 0 to 1, not a percentage"))
        })
    }

    /// Reads lines of a time in seconds and 1 or 0: the link is up or down from then on.
    ///
    /// # Errors
    /// As [`read_delays`](Self::read_delays).
    pub fn read_outages(input: impl BufRead, columns: &Columns) -> Result<Self, TraceError> {
        Self::read(input, columns, "the time in seconds and 1 (up) or 0 (down)", |text| match text {
            "1" | "up" => Ok(LinkChange::Up),
            "0" | "down" => Ok(LinkChange::Down),
            _ => Err(("state of a link", "give 1 or up, 0 or down")),
        })
    }

    fn read(
        input: impl BufRead,
        columns: &Columns,
        what: &'static str,
        change: impl Fn(&str) -> Result<LinkChange, (&'static str, &'static str)>,
    ) -> Result<Self, TraceError> {
        let table = Table::read(Lines::new(input), columns, what, |_, line, text| {
            change(text).map_err(|(quantity, remedy)| TraceError::Value {
                line,
                text: text.to_owned(),
                quantity,
                remedy,
            })
        })?;
        let Table { points, duration } = table.nonempty(LEAST)?;
        Self::new(points, duration)
    }

    /// Returns the series with its delays multiplied by a factor, such as 0.5 for delays of round trips.
    ///
    /// # Errors
    /// Returns an error if the factor is not above 0 and at most 1000.
    pub fn scaled(&self, factor: f64) -> Result<Self, TraceError> {
        if !(factor > 0.0 && factor <= 1000.0) {
            return Err(TraceError::Parameter { name: "factor", what: "must be above 0 and at most 1000" });
        }
        let scale = |span: Span| Span::from_nanos(libm::round(span.as_nanos() as f64 * factor) as u64);
        let scaled = |(at, change): &(Span, LinkChange)| match change {
            LinkChange::Delay(delay) => (*at, LinkChange::Delay(scale(*delay))),
            other => (*at, other.clone()),
        };
        Ok(Series { points: self.points.iter().map(scaled).collect(), ..*self })
    }

    /// Returns the longest delay of a series of delays.
    pub fn longest_delay(&self) -> Option<Span> {
        let delay_of = |(_, change): &(Span, LinkChange)| match change {
            LinkChange::Delay(delay) => Some(*delay),
            _ => None,
        };
        self.points.iter().filter_map(delay_of).max()
    }

    /// Returns the time after which the series repeats.
    pub fn duration(&self) -> Span {
        self.duration
    }
}

impl Playback<Series> {
    /// Returns the change that is in force at a time of a run.
    pub fn at(&self, time: Time) -> &LinkChange {
        let at = (time + self.offset).since(Time::ZERO);
        let period = self.trace.duration;
        let within = Span::from_nanos(at.as_nanos() % period.as_nanos());
        let within = if self.repeat || at < period { within } else { period };
        let index = self.trace.points.partition_point(|(at, _)| *at <= within);
        &self.trace.points[index - 1].1
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let within = self.repeat || self.offset < self.trace.duration;
        require(within, "series offset", "must be within a series that is not repeated")?;
        self.trace.points.iter().try_for_each(|(_, change)| change.check())
    }
}

/// Place in a series. At the beginning of the run, the value in force there is next.
#[derive(Clone, Debug)]
pub(crate) struct SeriesCursor {
    playback: Playback<Series>,
    cycle: u64,
    index: usize,
    is_first: bool,
}

impl SeriesCursor {
    pub(crate) fn new(playback: Playback<Series>) -> Self {
        let (offset, period) = (playback.offset.as_nanos(), playback.trace.duration.as_nanos());
        let (cycle, within) = (offset / period, Span::from_nanos(offset % period));
        let index = playback.trace.points.partition_point(|(at, _)| *at <= within) - 1;
        SeriesCursor { playback, cycle, index, is_first: true }
    }

    /// Returns `true` if all changes of the series satisfy a condition.
    pub(crate) fn all(&self, condition: impl Fn(&LinkChange) -> bool) -> bool {
        self.playback.trace.points.iter().all(|(_, change)| condition(change))
    }

    /// Returns the time of the next change.
    pub(crate) fn next_time(&self) -> Option<Time> {
        if self.is_first {
            return Some(Time::ZERO);
        }
        if self.cycle > 0 && !self.playback.repeat {
            return None;
        }
        let within = self.playback.trace.points[self.index].0;
        let at = self.playback.trace.duration.times(self.cycle) + within;
        Some(Time::ZERO + (at - self.playback.offset))
    }

    /// Takes the next change out.
    pub(crate) fn pop(&mut self) -> LinkChange {
        let change = self.playback.trace.points[self.index].1.clone();
        self.is_first = false;
        self.index += 1;
        if self.index == self.playback.trace.points.len() {
            (self.index, self.cycle) = (0, self.cycle + 1);
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(ms: u64) -> LinkChange {
        LinkChange::Delay(Span::from_millis(ms))
    }

    fn changes(playback: Playback<Series>, count: usize) -> Vec<(u64, LinkChange)> {
        let mut cursor = SeriesCursor::new(playback);
        let next = || {
            let at = cursor.next_time()?;
            Some((at.as_nanos() / 1_000_000, cursor.pop()))
        };
        std::iter::from_fn(next).take(count).collect()
    }

    fn series() -> Series {
        Series::read_delays(&b"seconds,ms\n100,10\n100.5,20\n102,30\n"[..], &Columns::default())
            .expect("a valid series")
    }

    #[test]
    fn last_value_lasts_as_long_as_the_one_before_it() {
        assert_eq!(series().duration(), Span::from_millis(3500));
    }

    #[test]
    fn series_repeats_after_its_duration() {
        let expected =
            [(0, delay(10)), (500, delay(20)), (2000, delay(30)), (3500, delay(10)), (4000, delay(20))];
        assert_eq!(changes(Playback::repeated(series()), 5), expected);
    }

    #[test]
    fn series_without_repetition_keeps_its_last_value() {
        assert_eq!(
            changes(Playback::once(series()), 9),
            [(0, delay(10)), (500, delay(20)), (2000, delay(30))]
        );
    }

    #[test]
    fn offset_begins_with_the_value_in_force() {
        let playback = Playback::repeated(series()).starting_at(Span::from_millis(1000));
        assert_eq!(changes(playback, 3), [(0, delay(20)), (1000, delay(30)), (2500, delay(10))]);
        let playback = Playback::repeated(series()).starting_at(Span::from_millis(2000 + 3500));
        assert_eq!(changes(playback, 2), [(0, delay(30)), (1500, delay(10))]);
        let playback = Playback::once(series()).starting_at(Span::from_millis(3500));
        assert!(playback.check().is_err());
    }

    #[test]
    fn losses_and_outages_are_read_by_their_columns() {
        let losses = Series::read_losses(&b"0 0.25\n1 0\n"[..], &Columns::default())
            .map(|series| series.points[0].1.clone());
        assert_eq!(losses, Ok(LinkChange::Loss(LossModel::Bernoulli(0.25))));
        let outages = Series::read_outages(&b"0,1\n1,0\n2,up\n3,down\n"[..], &Columns::default())
            .expect("a valid series");
        let states: Vec<_> = outages.points.iter().map(|(_, change)| change.clone()).collect();
        assert_eq!(states, [LinkChange::Up, LinkChange::Down, LinkChange::Up, LinkChange::Down]);
    }

    #[test]
    fn malformed_series_name_the_line_and_the_remedy() {
        for (error, expected) in [
            (
                Series::read_delays(&b"0,1\n1,-5\n"[..], &Columns::default()),
                "line 2: \"-5\" is no delay in ms; give a number from 0",
            ),
            (
                Series::read_losses(&b"0,0\n1,50\n"[..], &Columns::default()),
                "line 2: \"50\" is no loss probability; give a number from 0 to 1",
            ),
            (
                Series::read_outages(&b"0,2\n"[..], &Columns::default()),
                "line 1: \"2\" is no state of a link; give 1 or up",
            ),
            (
                Series::read_delays(&b"0,1\n0,2\n"[..], &Columns::default()),
                "line 2: 0 is not after the line before it; sort",
            ),
            (
                Series::read_delays(&b"0,1,2\n"[..], &Columns::default()),
                "line 1 has 3 columns instead of 2; keep the time in seconds and",
            ),
            (
                Series::read_delays(&b"0,1\n"[..], &Columns::default()),
                "the trace has 1 points and lasts no time; give at least two lines",
            ),
            (Series::read_delays(&b""[..], &Columns::default()), "the trace has 0 points"),
        ] {
            let error = error.expect_err(expected).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn series_in_disorder_are_refused() {
        let (at, end) = (Span::from_secs, Span::from_secs(9));
        for points in [
            vec![],
            vec![(at(1), delay(1))],
            vec![(at(0), delay(1)), (at(0), delay(2))],
            vec![(at(0), delay(1)), (at(9), delay(2))],
        ] {
            assert!(Series::new(points.clone(), end).is_err(), "{points:?}");
        }
        assert!(Series::new(vec![(at(0), delay(1))], Span::ZERO).is_err());
        assert!(Series::new(vec![(at(0), delay(1))], end).is_ok());
    }
}
