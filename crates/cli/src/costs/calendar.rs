//! Days and periods of limits, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;
/// Last day that is read and written, 9999-12-31.
const LAST_DAY: u32 = 2_932_896;

/// Day, as the number of days since 1970-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Day(u32);

impl Day {
    /// Day before which no clock was right when this was written, 2026-01-01.
    pub(super) const EARLIEST: Day = Day(20_454);

    /// Returns the day of a time. Times before 1970 count as its first day.
    pub(super) fn of(time: SystemTime) -> Self {
        let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Day(u32::try_from(seconds / SECONDS_PER_DAY).unwrap_or(LAST_DAY).min(LAST_DAY))
    }

    /// Returns the days from `earlier` to this day, or 0 if it is later.
    pub(super) fn days_since(self, earlier: Day) -> u32 {
        self.0.saturating_sub(earlier.0)
    }

    /// Reads a day such as 2026-11-28.
    pub(super) fn read(text: &str) -> Option<Self> {
        let [year, month, day] = text.split('-').collect::<Vec<_>>().try_into().ok()?;
        let is_long =
            |part: &str, digits: usize| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit());
        if !is_long(year, 4) || !is_long(month, 2) || !is_long(day, 2) {
            return None;
        }
        let (year, month, day): (u32, u32, u32) =
            (year.parse().ok()?, month.parse().ok()?, day.parse().ok()?);
        if year < 1970 || !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
            return None;
        }
        Some(Day(first_of(year, month) + day - 1))
    }

    /// Returns year, month and day of the month.
    fn parts(self) -> (u32, u32, u32) {
        let mut year = 1970 + self.0 / 366;
        while first_of(year + 1, 1) <= self.0 {
            year += 1;
        }
        let mut month = 1;
        while month < 12 && first_of(year, month + 1) <= self.0 {
            month += 1;
        }
        (year, month, self.0 - first_of(year, month) + 1)
    }
}

impl std::fmt::Display for Day {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (year, month, day) = self.parts();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u32, month: u32) -> u32 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the number of the first day of a month.
fn first_of(year: u32, month: u32) -> u32 {
    let past = year - 1;
    // Leap years up to 1969: 477.
    let leap_days = past / 4 - past / 100 + past / 400 - 477;
    let before_year = (year - 1970) * 365 + leap_days;
    before_year + (1..month).map(|month| days_of(year, month)).sum::<u32>()
}

/// Period of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Period {
    Day,
    /// Monday to Sunday.
    Week,
    /// Calendar month.
    Month,
}

impl Period {
    pub(super) const ALL: [Period; 3] = [Period::Day, Period::Week, Period::Month];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Period::Day => "day",
            Period::Week => "week",
            Period::Month => "month",
        }
    }

    /// Returns the maximum number of days of a period.
    pub(super) const fn most_days(self) -> u32 {
        match self {
            Period::Day => 1,
            Period::Week => 7,
            Period::Month => 31,
        }
    }

    /// Returns the first day of the period that contains a day.
    pub(super) fn start(self, day: Day) -> Day {
        match self {
            Period::Day => day,
            // 1970-01-01 was a Thursday.
            Period::Week => Day(day.0.saturating_sub((day.0 + 3) % 7)),
            Period::Month => {
                let (year, month, _) = day.parts();
                Day(first_of(year, month))
            }
        }
    }

    /// Returns the first day of the next period.
    pub(super) fn end(self, day: Day) -> Day {
        match self {
            Period::Day => Day(day.0 + 1),
            Period::Week => Day(day.0 + 7 - (day.0 + 3) % 7),
            Period::Month => {
                let (year, month, _) = day.parts();
                let (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                Day(first_of(year, month))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn day(text: &str) -> Day {
        Day::read(text).expect(text)
    }

    #[test]
    fn every_day_is_read_as_it_is_written() {
        for number in (0..40_000).chain([LAST_DAY]) {
            assert_eq!(Day::read(&Day(number).to_string()), Some(Day(number)), "{number}");
        }
        assert_eq!(Day(0).to_string(), "1970-01-01");
        assert_eq!(Day::EARLIEST.to_string(), "2026-01-01");
        assert_eq!(Day(LAST_DAY).to_string(), "9999-12-31");
        assert_eq!(Day::of(UNIX_EPOCH + Duration::from_secs(1_790_553_599)).to_string(), "2026-09-27");
        assert_eq!(Day::of(UNIX_EPOCH - Duration::from_secs(1)), Day(0));
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for text in [
            "",
            "2026-02-29",
            "2100-02-29",
            "2026-13-01",
            "2026-1-1",
            "1969-12-31",
            "2026-01-00",
            "+026-01-01",
        ] {
            assert_eq!(Day::read(text), None, "{text}");
        }
        assert!(Day::read("2000-02-29").is_some());
    }

    #[test]
    fn periods_begin_and_end_with_the_calendar() {
        // A Saturday.
        let saturday = day("2026-11-28");
        let ends = |period: Period| (period.start(saturday).to_string(), period.end(saturday).to_string());
        assert_eq!(ends(Period::Day), ("2026-11-28".to_owned(), "2026-11-29".to_owned()));
        assert_eq!(ends(Period::Week), ("2026-11-23".to_owned(), "2026-11-30".to_owned()));
        assert_eq!(ends(Period::Month), ("2026-11-01".to_owned(), "2026-12-01".to_owned()));
        assert_eq!(Period::Month.end(day("2026-12-31")).to_string(), "2027-01-01");
        assert_eq!(Period::Week.start(day("2026-11-30")).to_string(), "2026-11-30");
    }
}
