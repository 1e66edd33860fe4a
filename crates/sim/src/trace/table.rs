//! Tables with a time and a value in each line.

use std::io::BufRead;

use anabranch_core::time::Span;

use super::lines::{Lines, decimal, fields};
use super::{MAX_DURATION, MAX_POINTS, TraceError};

/// Columns of a table, each by its name in the first line, or by its number from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Column of the time; the first one if it is not set.
    pub time: Option<String>,
    /// Column of the value. If it is not set, the table has two columns, and the value is in the second. With `step` it has one
    /// column.
    pub value: Option<String>,
    /// Set if times are in milliseconds in place of seconds.
    pub in_milliseconds: bool,
    /// Time that each line lasts, in tables without times.
    pub step: Option<Span>,
}

/// Indices of the two columns, and the number of columns of a table without others.
#[derive(Clone, Copy)]
struct Place {
    /// `None` if lines have no times.
    time: Option<usize>,
    value: usize,
    expected: Option<usize>,
}

impl Columns {
    fn of_number(name: &str) -> Option<usize> {
        name.parse::<usize>().ok()?.checked_sub(1)
    }

    /// Returns `true` if only the first line of the file can tell the columns.
    fn needs_header(&self) -> bool {
        [&self.time, &self.value].into_iter().flatten().any(|name| Self::of_number(name).is_none())
    }

    /// Returns the place of the columns below a line with these names.
    fn place(&self, line: u64, header: &[&str]) -> Result<Place, TraceError> {
        let find = |name: &Option<String>, default: usize| {
            let Some(name) = name else { return Ok(default) };
            let named = header.iter().position(|other| *other == name.as_str());
            named.or_else(|| Self::of_number(name)).ok_or_else(|| TraceError::NoColumn {
                line,
                name: name.clone(),
                columns: header.iter().map(|name| (*name).to_owned()).collect(),
            })
        };
        let has_times = self.step.is_none();
        let expected = (self.time.is_none() && self.value.is_none()).then_some(1 + usize::from(has_times));
        let time = if has_times { Some(find(&self.time, 0)?) } else { None };
        Ok(Place { time, value: find(&self.value, usize::from(has_times))?, expected })
    }
}

/// Values by time, and the time of their end.
pub(super) struct Table<T> {
    pub(super) points: Vec<(Span, T)>,
    pub(super) duration: Span,
}

impl<T> Table<T> {
    /// Reads the lines of a table. Times count from the first line, and the last line lasts as long as the one before it. Lines
    /// without a value, and lines that repeat the one before them, give no point. `columns_text` describes both columns.
    pub(super) fn read(
        mut lines: Lines<impl BufRead>,
        columns: &Columns,
        columns_text: &'static str,
        read_value: impl Fn(&str, u64, &str) -> Result<T, TraceError>,
    ) -> Result<Self, TraceError> {
        let (place, name) = read_header(&mut lines, columns)?;
        let mut rows = Rows::new(place, columns, columns_text);
        let mut points: Vec<(Span, T)> = Vec::new();
        let (mut former, mut former_value) = (None, String::new());
        while let Some((line, text)) = lines.next()? {
            let Some((at, value)) = rows.row(line, text)? else { continue };
            if former == Some(at) && value == former_value {
                continue;
            }
            if former.is_some_and(|former| at <= former) {
                return Err(rows.disorder(line, text));
            }
            if points.len() >= MAX_POINTS {
                return Err(TraceError::Large { line });
            }
            let value_read = read_value(&name, line, value)?;
            // The first value applies from the first line on.
            points.push((former.map_or(Span::ZERO, |_| at), value_read));
            former = Some(at);
            former_value.clear();
            former_value.push_str(value);
        }
        let [before, last] = rows.latest;
        Ok(Table { points, duration: last + (last - before) })
    }

    /// Returns the table, or an error if it has no point or lasts no time.
    pub(super) fn nonempty(self, least: &'static str) -> Result<Self, TraceError> {
        if self.points.is_empty() || self.duration.is_zero() {
            return Err(TraceError::Empty { points: self.points.len(), least });
        }
        Ok(self)
    }
}

/// Takes the line with names, if there is one. Returns the places of the columns and the name of the value.
fn read_header(lines: &mut Lines<impl BufRead>, columns: &Columns) -> Result<(Place, String), TraceError> {
    let first = lines.peek()?.unwrap_or_default();
    let is_header = columns.needs_header() || first.starts_with(|c: char| c.is_alphabetic());
    if !is_header {
        return Ok((columns.place(1, &[])?, String::new()));
    }
    let Some((line, text)) = lines.next()? else { return Ok((columns.place(1, &[])?, String::new())) };
    let header: Vec<&str> = fields(text).map(|name| name.trim_matches('"')).collect();
    let place = columns.place(line, &header)?;
    Ok((place, header.get(place.value).map(|name| (*name).to_owned()).unwrap_or_default()))
}

/// Reader of the lines below the names.
struct Rows {
    place: Place,
    columns: &'static str,
    in_milliseconds: bool,
    /// Time that each line lasts, if lines have no times.
    step: Option<Span>,
    /// Number of lines before the current one.
    count: u64,
    /// Time of the first line, in ns.
    first: Option<u64>,
    /// Latest two different times.
    latest: [Span; 2],
}

impl Rows {
    fn new(place: Place, columns: &Columns, columns_text: &'static str) -> Self {
        let Columns { in_milliseconds, step, .. } = *columns;
        let latest = [Span::ZERO; 2];
        Rows { place, columns: columns_text, in_milliseconds, step, count: 0, first: None, latest }
    }

    /// Returns the time since the first line and the text of the value, if the line has both.
    fn row<'t>(&mut self, line: u64, text: &'t str) -> Result<Option<(Span, &'t str)>, TraceError> {
        let (time, value) = self.fields_of(line, text)?;
        let number = self.count;
        self.count += 1;
        let at = match (self.step, time) {
            (Some(step), _) => step.times(number),
            (None, Some("")) | (None, None) => return Ok(None),
            (None, Some(time)) => self.since_first(line, text, time)?,
        };
        if at > MAX_DURATION {
            return Err(TraceError::Long { line });
        }
        if at > self.latest[1] {
            self.latest = [self.latest[1], at];
        }
        Ok((!value.is_empty()).then_some((at, value)))
    }

    /// Returns the texts of the time, if lines have times, and of the value.
    fn fields_of<'t>(&self, line: u64, text: &'t str) -> Result<(Option<&'t str>, &'t str), TraceError> {
        let Place { time, value, expected } = self.place;
        let (mut found, mut fields_of_row) = (0, [None; 2]);
        for field in fields(text) {
            for (place, slot) in [time, Some(value)].into_iter().zip(&mut fields_of_row) {
                if place == Some(found) {
                    *slot = Some(field.trim_matches('"'));
                }
            }
            found += 1;
        }
        let [time_text, Some(value_text)] = fields_of_row else {
            return Err(self.columns_fault(line, found));
        };
        if time.is_some() != time_text.is_some() || expected.is_some_and(|n| n != found) {
            return Err(self.columns_fault(line, found));
        }
        Ok((time_text, value_text))
    }

    fn columns_fault(&self, line: u64, found: usize) -> TraceError {
        let Place { time, value, expected } = self.place;
        let expected = expected.unwrap_or(time.map_or(value, |time| time.max(value)) + 1);
        let columns = if time.is_some() { self.columns } else { "one value, or name its column" };
        TraceError::Columns { line, found, expected, columns }
    }

    fn since_first(&mut self, line: u64, text: &str, time: &str) -> Result<Span, TraceError> {
        let parsed = if self.in_milliseconds { decimal(time, 6) } else { time_of(time) };
        let nanos = parsed.ok_or_else(|| TraceError::Value {
            line,
            text: time.to_owned(),
            quantity: "time",
            remedy: if self.in_milliseconds {
                "give milliseconds"
            } else {
                "give seconds, or a date such as 2023-05-13 15:41:13.965"
            },
        })?;
        let origin = *self.first.get_or_insert(nanos);
        nanos.checked_sub(origin).map(Span::from_nanos).ok_or_else(|| self.disorder(line, text))
    }

    fn disorder(&self, line: u64, text: &str) -> TraceError {
        let time = self.place.time.and_then(|time| fields(text).nth(time)).unwrap_or_default();
        TraceError::Order { line, time: time.to_owned() }
    }
}

/// Parses a time in seconds, or a date with a time of day, as ns.
fn time_of(text: &str) -> Option<u64> {
    if let Some(nanos) = decimal(text, 9) {
        return Some(nanos);
    }
    let (date, clock) = text.trim_end_matches('Z').split_once([' ', 'T'])?;
    let numbers = |text: &str, separator| -> Option<[u64; 3]> {
        let mut parts = text.split(separator);
        let numbers = [decimal(parts.next()?, 9)?, decimal(parts.next()?, 9)?, decimal(parts.next()?, 9)?];
        parts.next().is_none().then_some(numbers)
    };
    const UNIT: u64 = 1_000_000_000;
    let ([year, month, day], [hour, minute, second]) = (numbers(date, '-')?, numbers(clock, ':')?);
    let (year, month, day) = (year / UNIT, month / UNIT, day / UNIT);
    if !((1970..2500).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)) {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let year = if month <= 2 { year - 1 } else { year };
    let month = (month + 9) % 12;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    (days * 86_400 * UNIT + hour * 3600 + minute * 60).checked_add(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        text: &str,
        time: Option<&str>,
        value: Option<&str>,
    ) -> Result<(Vec<(u64, u64)>, u64), TraceError> {
        let (time, value) = (time.map(str::to_owned), value.map(str::to_owned));
        read_columns(text, &Columns { time, value, ..Columns::default() })
    }

    fn read_columns(text: &str, columns: &Columns) -> Result<(Vec<(u64, u64)>, u64), TraceError> {
        let number = |_: &str, line, text: &str| {
            decimal(text, 0).ok_or_else(|| TraceError::Value {
                line,
                text: text.to_owned(),
                quantity: "number",
                remedy: "write a number",
            })
        };
        let table = Table::read(Lines::new(text.as_bytes()), columns, "a time and a number", number)?;
        let points = table.points.into_iter().map(|(at, value)| (at.as_nanos() / 1_000_000, value)).collect();
        Ok((points, table.duration.as_nanos() / 1_000_000))
    }

    const WIDE: &str = "time,x,tech,y\n10.0,1,\"5G, low\",5\n10.5,,,6\n11.0,3,,\n";

    #[test]
    fn columns_are_found_by_name_or_number() {
        let text = "time,x,y\n10.0,1,5\n10.5,2,6\n11.0,3,7\n";
        let expected = Ok((vec![(0, 5), (500, 6), (1000, 7)], 1500));
        assert_eq!(read(text, None, Some("y")), expected);
        assert_eq!(read(text, Some("time"), Some("3")), expected);
        assert_eq!(read(text.split_once('\n').expect("lines").1, None, Some("3")), expected);
        let error = read(text, None, Some("z")).expect_err("no such column").to_string();
        assert_eq!(error, "line 1: there is no column \"z\"; the columns are time, x, y");
        let error = read(text, None, None).expect_err("three columns").to_string();
        assert!(error.starts_with("line 2 has 3 columns instead of 2"), "{error}");
    }

    #[test]
    fn lines_without_a_value_give_no_point_and_keep_the_duration() {
        let wide = WIDE.replace("\"5G, low\"", "5G");
        assert_eq!(read(&wide, None, Some("x")), Ok((vec![(0, 1), (1000, 3)], 1500)));
        assert_eq!(read(&wide, None, Some("y")), Ok((vec![(0, 5), (500, 6)], 1500)));
        let late = "t,x\n1,\n2,7\n3,8\n";
        assert_eq!(read(late, None, Some("x")), Ok((vec![(0, 7), (2000, 8)], 3000)));
    }

    #[test]
    fn repeated_line_is_skipped_and_a_contradicting_one_refused() {
        assert_eq!(read("1,5\n1,5\n2,6\n2,6\n", None, None), Ok((vec![(0, 5), (1000, 6)], 2000)));
        for text in ["1,5\n1,6\n", "1,5\n2,6\n2,7\n", "2,5\n1,5\n", "1,5\n3,6\n2,7\n"] {
            let error = read(text, None, None).expect_err(text).to_string();
            assert!(error.contains("is not after the line before it"), "{error}");
        }
    }

    #[test]
    fn lines_without_times_last_a_step_each() {
        let columns = Columns { step: Some(Span::from_millis(10)), ..Columns::default() };
        assert_eq!(read_columns("24\n18\n18\n", &columns), Ok((vec![(0, 24), (10, 18), (20, 18)], 30)));
        let error = read_columns("24\n0,18\n", &columns).expect_err("two columns").to_string();
        assert_eq!(error, "line 2 has 2 columns instead of 1; keep one value, or name its column");
        let named = Columns { value: Some("y".to_owned()), ..columns };
        assert_eq!(read_columns("x,y\n1,5\n2,\n3,6\n", &named), Ok((vec![(0, 5), (20, 6)], 30)));
    }

    #[test]
    fn times_may_be_milliseconds_beside_columns_of_any_number() {
        let value = Some("2".to_owned());
        let columns = Columns { value, in_milliseconds: true, ..Columns::default() };
        assert_eq!(read_columns("40 31 0 1 1\n140 33\n", &columns), Ok((vec![(0, 31), (100, 33)], 200)));
        let error = read_columns("-5 31\n", &columns).expect_err("no time").to_string();
        assert_eq!(error, "line 1: \"-5\" is no time; give milliseconds");
    }

    #[test]
    fn dates_are_times() {
        assert_eq!(time_of("1970-01-01 00:00:00"), Some(0));
        assert_eq!(time_of("2000-03-01T00:00:00.5Z"), Some(951_868_800_500_000_000));
        assert_eq!(time_of("2023-05-13 15:41:13.965118"), Some(1_683_992_473_965_118_000));
        for text in ["2023-13-01 00:00:00", "1969-12-31 00:00:00", "2023-05-13", "2023-05-13 15:41", "noon"] {
            assert_eq!(time_of(text), None, "{text}");
        }
    }
}
