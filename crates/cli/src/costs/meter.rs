//! Stored count of the bytes of a link, per day, in a file that all commands of a user share.
//!
//! A command reserves bytes in the file when it opens the count, and renews the reservation before it is used. A crash leaves at most
//! the reserved bytes too many in the count. The bytes that a link carried since the last count are missing only as far as they exceed
//! the reservation. The regular end of a command returns the rest of its reservation.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::calendar::{Day, Period};
use super::description::Limit;

/// Version of the file's format.
const VERSION: u32 = 1;
/// Maximum length of a file in bytes.
const MOST_FILE_BYTES: u64 = 64 << 10;
/// Number of days that are kept: more than the longest period has.
const KEPT_DAYS: usize = 40;
/// Minimum reservation in bytes.
const LEAST_RESERVED: u64 = 64 << 10;
/// Parts of a limit that a reservation has at least and at most.
const RESERVED_PARTS: (u64, u64) = (1_000, 100);
/// Multiple of the last bytes that a reservation must still have after them. Otherwise it is renewed.
const LEAST_REST: u64 = 2;
/// Maximum time to wait for another command that writes the file.
const LOCK_WITHIN: Duration = Duration::from_secs(2);
/// Pause between two attempts to lock the file.
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// Reason for which a count cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(super) enum MeterError {
    #[error("{}: {source}; the count of a limited link is kept there, so make the folder writable, or leave the limit out", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(
        "{}: the count of this link is damaged ({why}); restore the file, or remove it to begin at zero", path.display()
    )]
    Damaged { path: PathBuf, why: String },
    #[error("{}: another command has kept the file locked for {} s; end it, or try again", path.display(), LOCK_WITHIN.as_secs())]
    Locked { path: PathBuf },
}

/// Content of a file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: u32,
    link: String,
    /// Bytes of each day.
    days: BTreeMap<String, u64>,
}

/// Bytes of each day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts(BTreeMap<Day, u64>);

impl Counts {
    /// Returns the day on which bytes count. The day never precedes the latest one with bytes, so that a clock that is set back
    /// gives no new limit. If the latest day is later than today by more than a period, the clock is or was wrong. The bytes of
    /// later days are then moved to the current day.
    fn settle(&mut self, today: Day, period: Period) -> Day {
        let latest = self.0.keys().next_back().copied().unwrap_or(today);
        if today < Day::EARLIEST {
            // The clock of the machine is not set yet.
            return latest.max(Day::EARLIEST);
        }
        if latest.days_since(today) <= period.most_days() {
            return latest.max(today);
        }
        let ahead = self.0.split_off(&today);
        self.add(today, ahead.into_values().fold(0, u64::saturating_add));
        today
    }

    fn add(&mut self, day: Day, bytes: u64) {
        if bytes > 0 {
            let of_day = self.0.entry(day).or_default();
            *of_day = of_day.saturating_add(bytes);
        }
        // The distance to the oldest day is unknown while the clock may be wrong.
        while self.0.len() > KEPT_DAYS {
            self.0.pop_first();
        }
    }

    fn subtract(&mut self, day: Day, bytes: u64) {
        if let Some(of_day) = self.0.get_mut(&day) {
            *of_day = of_day.saturating_sub(bytes);
            if *of_day == 0 {
                self.0.remove(&day);
            }
        }
    }

    fn since(&self, first: Day) -> u64 {
        self.0.range(first..).map(|(_, bytes)| *bytes).fold(0, u64::saturating_add)
    }
}

/// Bytes in the file that this command has reserved and not used.
#[derive(Clone, Copy, Debug)]
struct Reservation {
    day: Day,
    bytes: u64,
}

/// Use of a link in the current period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) used_bytes: u64,
    /// First day of the next period.
    pub(super) until: Day,
}

/// Count of a limited link.
pub(super) struct Meter {
    path: PathBuf,
    link: String,
    limit: Limit,
    reservation: Option<Reservation>,
    usage: Usage,
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("path", &self.path).field("usage", &self.usage).finish_non_exhaustive()
    }
}

impl Meter {
    /// Opens the count of a link in a folder, which is created if it does not exist, and reserves the first bytes.
    ///
    /// # Errors
    /// Returns an error if the count cannot be read or stored. It is never silently zero.
    pub(super) fn open(folder: &Path, link: &str, limit: Limit, today: Day) -> Result<Self, MeterError> {
        let path = folder.join(format!("{}.json", file_name(link)));
        fs::create_dir_all(folder).map_err(|source| MeterError::File { path: folder.to_owned(), source })?;
        let usage = Usage { used_bytes: 0, until: limit.period.end(today) };
        let mut meter = Meter { path, link: link.to_owned(), limit, reservation: None, usage };
        meter.store(today, 0, LEAST_RESERVED)?;
        Ok(meter)
    }

    /// Counts bytes, and returns the use of the current period. `bytes` may be zero, to learn of other commands and of a new period.
    ///
    /// # Errors
    /// Returns an error if the count cannot be read or stored. The bytes are then not counted.
    pub(super) fn count(&mut self, today: Day, bytes: u64) -> Result<Usage, MeterError> {
        let reserved = self.reservation.filter(|reserved| reserved.day >= today);
        if bytes == 0 && (reserved.is_some() || self.reservation.is_none()) {
            let stored = self.read()?;
            let (counts, day) = self.settled(&stored, today);
            if counts == stored || !self.uses_up(&counts, day) {
                self.usage = self.usage_of(&counts, day);
                return Ok(self.usage);
            }
        }
        if let Some(reserved) = reserved.filter(|one| bytes > 0 && one.bytes / (1 + LEAST_REST) >= bytes) {
            self.reservation = Some(Reservation { bytes: reserved.bytes - bytes, ..reserved });
            self.usage.used_bytes = self.usage.used_bytes.saturating_add(bytes);
            return Ok(self.usage);
        }
        let (least, most) = RESERVED_PARTS;
        let parts =
            (self.limit.bytes / least).max(LEAST_RESERVED)..=(self.limit.bytes / most).max(LEAST_RESERVED);
        self.store(today, bytes, bytes.saturating_mul(4).clamp(*parts.start(), *parts.end()))?;
        Ok(self.usage)
    }

    /// Returns the reserved bytes that were not used.
    ///
    /// # Errors
    /// Returns an error if the count cannot be read or stored.
    pub(super) fn close(&mut self, today: Day) -> Result<(), MeterError> {
        if self.reservation.is_none() { Ok(()) } else { self.store(today, 0, 0) }
    }

    pub(super) fn limit(&self) -> Limit {
        self.limit
    }

    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    pub(super) fn is_used_up(&self) -> bool {
        self.usage.used_bytes >= self.limit.bytes
    }

    fn usage_of(&self, counts: &Counts, day: Day) -> Usage {
        let first = self.limit.period.start(day);
        let unused = self.reservation.filter(|one| one.day >= first).map_or(0, |one| one.bytes);
        Usage { used_bytes: counts.since(first).saturating_sub(unused), until: self.limit.period.end(day) }
    }

    /// Returns the counts with bytes of wrong clocks moved, and the day on which bytes count.
    fn settled(&self, stored: &Counts, today: Day) -> (Counts, Day) {
        let mut counts = stored.clone();
        let day = counts.settle(today, self.limit.period);
        (counts, day)
    }

    fn uses_up(&self, counts: &Counts, day: Day) -> bool {
        self.usage_of(counts, day).used_bytes >= self.limit.bytes
    }

    /// Replaces the rest of the reservation by new bytes and another reservation while no other command changes the file.
    ///
    /// Days are moved in the file only with new bytes, because the clock may be wrong now, or if they use the limit up, because no
    /// new bytes follow. Otherwise nothing is reserved.
    fn store(&mut self, today: Day, bytes: u64, reserved: u64) -> Result<(), MeterError> {
        let _lock = self.lock()?;
        let mut counts = self.read()?;
        if let Some(unused) = self.reservation {
            counts.subtract(unused.day, unused.bytes);
        }
        let (mut settled, day) = self.settled(&counts, today);
        let used = settled.since(self.limit.period.start(day));
        let is_stored = settled == counts || bytes > 0 || used >= self.limit.bytes;
        if is_stored {
            settled.add(day, bytes.saturating_add(reserved));
        }
        let written = self.write(if is_stored { &settled } else { &counts });
        written.map_err(|source| MeterError::File { path: self.path.clone(), source })?;
        self.reservation = Some(Reservation { day, bytes: reserved }).filter(|_| is_stored && reserved > 0);
        self.usage = self.usage_of(&settled, day);
        Ok(())
    }

    /// Locks a file beside the counts, because these are replaced.
    fn lock(&self) -> Result<File, MeterError> {
        let path = self.path.with_extension("lock");
        let failed = |source| MeterError::File { path: path.clone(), source };
        let file = options().write(true).create(true).truncate(false).open(&path).map_err(failed)?;
        let until = Instant::now() + LOCK_WITHIN;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                    return Err(MeterError::Locked { path: path.clone() });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            }
        }
    }

    fn read(&self) -> Result<Counts, MeterError> {
        let mut text = String::new();
        let damaged = |why: String| MeterError::Damaged { path: self.path.clone(), why };
        match File::open(&self.path).and_then(|file| file.take(MOST_FILE_BYTES).read_to_string(&mut text)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Counts::default()),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(damaged("it is no text".to_owned()));
            }
            Err(source) => return Err(MeterError::File { path: self.path.clone(), source }),
            Ok(_) => {}
        }
        let stored: Stored = serde_json::from_str(&text).map_err(|error| damaged(error.to_string()))?;
        if stored.version != VERSION {
            return Err(damaged(format!("version {} instead of {VERSION}", stored.version)));
        }
        if stored.link != self.link {
            return Err(damaged(format!("it belongs to {}", stored.link.escape_debug())));
        }
        let day = |(day, bytes): (&String, &u64)| Some((Day::read(day)?, *bytes));
        let counts: Option<BTreeMap<Day, u64>> = stored.days.iter().map(day).collect();
        counts.map(Counts).ok_or_else(|| damaged("a day does not exist".to_owned()))
    }

    /// Replaces the file, so that it has the old or the new content after a crash of the system.
    fn write(&self, counts: &Counts) -> io::Result<()> {
        let days = counts.0.iter().map(|(day, bytes)| (day.to_string(), *bytes)).collect();
        let stored = Stored { version: VERSION, link: self.link.clone(), days };
        let text = serde_json::to_string(&stored).map_err(io::Error::other)? + "\n";
        let new = self.path.with_extension("new");
        let mut file = options().write(true).create(true).truncate(true).open(&new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        #[cfg(unix)]
        if let Some(folder) = self.path.parent() {
            // The new content is in place. After an error, the caller would count the bytes twice.
            let _ = File::open(folder).and_then(|folder| folder.sync_all());
        }
        Ok(())
    }
}

fn options() -> OpenOptions {
    #[allow(unused_mut)]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns the name of a link with every unusual byte replaced by its hexadecimal digits, which keeps names apart.
fn file_name(link: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    link.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Limit = Limit { bytes: 2_000_000_000, period: Period::Month };

    fn day(text: &str) -> Day {
        Day::read(text).expect(text)
    }

    fn open(folder: &Path, today: &str) -> Meter {
        Meter::open(folder, "wwan0", LIMIT, day(today)).expect("it opens")
    }

    fn used(meter: &mut Meter, today: &str, bytes: u64) -> u64 {
        meter.count(day(today), bytes).expect("it counts").used_bytes
    }

    #[test]
    fn count_continues_after_a_restart() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-11-28");
        assert_eq!(used(&mut meter, "2026-11-28", 5_000_000), 5_000_000);
        assert_eq!(used(&mut meter, "2026-11-28", 10), 5_000_010);
        meter.close(day("2026-11-28")).expect("it closes");
        let meter = open(folder.path(), "2026-11-28");
        assert_eq!(meter.usage().used_bytes, 5_000_010);
        assert_eq!(meter.usage().until, day("2026-12-01"));
    }

    #[test]
    fn killed_command_leaves_a_part_of_the_limit_too_much() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-11-28");
        used(&mut meter, "2026-11-28", 1);
        used(&mut meter, "2026-11-28", 1_000_000);
        drop(meter);
        let after = open(folder.path(), "2026-11-28").usage().used_bytes;
        let most = 1_000_001 + LIMIT.bytes / RESERVED_PARTS.1;
        assert!((1_000_001..=most).contains(&after), "{after}");
    }

    #[test]
    fn bytes_since_the_last_count_are_reserved_before_a_crash() {
        let folder = tempfile::tempdir().expect("a folder");
        drop(open(folder.path(), "2026-11-28"));
        assert_eq!(open(folder.path(), "2026-11-28").usage().used_bytes, LEAST_RESERVED);
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-11-28");
        let mut carried = 0;
        for bytes in (1..200).map(|round| round * 10_000) {
            carried += bytes;
            used(&mut meter, "2026-11-28", bytes);
            let stored = meter.read().expect("it is read").since(day("2026-11-01"));
            assert!(stored >= carried + LEAST_REST * bytes, "{stored} of {carried}");
        }
    }

    #[test]
    fn failed_count_is_repeated_without_loss() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-11-28");
        let blocker = folder.path().join("wwan0.new");
        fs::create_dir(&blocker).expect("a folder in place of the file");
        assert!(meter.count(day("2026-11-28"), 1_000_000).is_err());
        assert_eq!(meter.usage().used_bytes, 0);
        fs::remove_dir(&blocker).expect("it is removed");
        assert_eq!(used(&mut meter, "2026-11-28", 1_000_000), 1_000_000);
    }

    #[test]
    fn commands_that_share_a_link_count_together() {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut one, mut other) = (open(folder.path(), "2026-11-28"), open(folder.path(), "2026-11-28"));
        let all: u64 = 500_000_000;
        for _ in 0..100 {
            used(&mut one, "2026-11-28", all / 200);
            used(&mut other, "2026-11-28", all / 200);
        }
        one.close(day("2026-11-28")).expect("it closes");
        assert_eq!(used(&mut other, "2026-11-28", 0), all);
    }

    #[test]
    fn new_period_begins_at_zero() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-11-30");
        used(&mut meter, "2026-11-30", 2_000_000_000);
        assert!(meter.is_used_up());
        assert_eq!(used(&mut meter, "2026-12-01", 0), 0);
        assert!(!meter.is_used_up());
        assert_eq!(used(&mut meter, "2026-12-01", 100), 100);
        meter.close(day("2026-12-01")).expect("it closes");
        assert_eq!(open(folder.path(), "2026-12-31").usage().used_bytes, 100);
    }

    #[test]
    fn clock_that_is_set_back_gives_no_new_limit() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-11-28");
        used(&mut meter, "2026-11-28", 1_000);
        assert_eq!(used(&mut meter, "2026-10-31", 1_000), 2_000);
        // A machine without a clock begins in 1970.
        assert_eq!(used(&mut meter, "1970-01-01", 0), 2_000);
        assert_eq!(used(&mut meter, "1970-01-01", 1_000), 3_000);
        assert_eq!(used(&mut meter, "2026-11-29", 0), 3_000);
    }

    #[test]
    fn bytes_of_a_clock_far_ahead_count_today() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2040-01-01");
        used(&mut meter, "2040-01-01", 1_000);
        meter.close(day("2040-01-01")).expect("it closes");
        let mut meter = open(folder.path(), "2026-11-28");
        assert_eq!(used(&mut meter, "2026-11-28", 0), 1_000);
        assert_eq!(used(&mut meter, "2026-11-28", 500), 1_500);
        assert_eq!(used(&mut meter, "2026-12-01", 0), 0);
    }

    #[test]
    fn clock_ahead_for_a_moment_bars_a_daily_limit_for_one_day() {
        let folder = tempfile::tempdir().expect("a folder");
        let limit = Limit { bytes: 1_000_000, period: Period::Day };
        let open = |today: &str| Meter::open(folder.path(), "wwan0", limit, day(today)).expect("it opens");
        let mut meter = open("2026-12-20");
        used(&mut meter, "2026-12-20", 1_000_000);
        assert_eq!(used(&mut meter, "2026-11-28", 0), 1_000_000);
        assert_eq!(used(&mut meter, "2026-11-29", 0), 0);
        drop(meter);
        let mut meter = open("2026-12-20");
        used(&mut meter, "2026-12-20", 1_000_000);
        meter.close(day("2026-12-20")).expect("it closes");
        assert!(open("2026-11-30").is_used_up());
        assert!(!open("2026-12-01").is_used_up());
    }

    #[test]
    fn command_with_a_wrong_clock_and_without_bytes_moves_no_days() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-11-28");
        used(&mut meter, "2026-11-28", 1_000);
        meter.close(day("2026-11-28")).expect("it closes");
        for wrong in ["2026-03-01", "2040-01-01"] {
            let mut meter = open(folder.path(), wrong);
            used(&mut meter, wrong, 0);
            meter.close(day(wrong)).expect("it closes");
            assert_eq!(
                meter.read().expect("it is read"),
                Counts([(day("2026-11-28"), 1_000)].into()),
                "{wrong}"
            );
        }
    }

    #[test]
    fn damaged_file_is_an_error_with_a_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("wwan0.json");
        for text in [
            "",
            "{",
            "\u{0}",
            r#"{"version":1,"link":"wwan0"}"#,
            r#"{"version":2,"link":"wwan0","days":{}}"#,
            r#"{"version":1,"link":"wlan0","days":{}}"#,
            r#"{"version":1,"link":"wwan0","days":{"2026-02-30":1}}"#,
            r#"{"version":1,"link":"wwan0","days":{"2026-11-28":-1}}"#,
            r#"{"version":1,"link":"wwan0","days":{"2026-11-28":1},"more":1}"#,
        ] {
            fs::write(&file, text).expect("it is written");
            let error = Meter::open(folder.path(), "wwan0", LIMIT, day("2026-11-28")).expect_err(text);
            assert!(matches!(error, MeterError::Damaged { .. }), "{text}: {error}");
            assert!(
                error.to_string().contains("wwan0.json") && error.to_string().contains("remove it"),
                "{error}"
            );
            assert_eq!(fs::read_to_string(&file).expect("it is kept"), text);
        }
        fs::write(&file, [0xff, 0xfe]).expect("it is written");
        assert!(Meter::open(folder.path(), "wwan0", LIMIT, day("2026-11-28")).is_err());
    }

    #[test]
    fn count_of_many_days_stays_small() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut meter = open(folder.path(), "2026-01-01");
        let mut today = day("2026-01-01");
        for _ in 0..400 {
            meter.count(today, u64::MAX / 2).expect("it counts");
            today = Period::Day.end(today);
        }
        assert!(meter.read().expect("it is read").0.len() <= KEPT_DAYS);
        assert!(fs::metadata(&meter.path).expect("it exists").len() < 4096);
        assert!(meter.is_used_up());
    }

    #[test]
    fn unusual_names_of_links_have_files_of_their_own() {
        assert_eq!(file_name("wwan0"), "wwan0");
        assert_eq!(file_name("fd00::1"), "fd00%3a%3a1");
        assert_ne!(file_name("a.b"), file_name("a b"));
        assert_eq!(file_name(".."), "%2e%2e");
    }
}
