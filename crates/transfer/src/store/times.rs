//! Time stamps of files as the protocol has them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::protocol::FileTime;

/// The furthest from 1970 that a file's time is set to: some 34,000 years. File systems that keep 64 bits keep anything, and what
/// reads such a time may not be able to count with it: `cap-std` panics at the smallest number, so that one offer would make a
/// name, or a whole folder, unusable for good.
const FURTHEST_SECONDS: i64 = 1 << 40;

/// A time stamp as a file gets it, or the nearest one that a file may have.
pub(crate) fn to_system_time(changed: FileTime) -> SystemTime {
    let seconds = changed.seconds.clamp(-FURTHEST_SECONDS, FURTHEST_SECONDS);
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds >= 0 { UNIX_EPOCH.checked_add(whole) } else { UNIX_EPOCH.checked_sub(whole) };
    base.and_then(|base| base.checked_add(Duration::from_nanos(u64::from(changed.nanos))))
        .unwrap_or(UNIX_EPOCH)
}

pub(crate) fn from_system_time(time: SystemTime) -> FileTime {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => FileTime {
            seconds: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            nanos: after.subsec_nanos(),
        },
        Err(error) => {
            let before = error.duration();
            let up = i64::from(before.subsec_nanos() > 0);
            FileTime {
                seconds: -i64::try_from(before.as_secs()).unwrap_or(i64::MAX - 1) - up,
                nanos: (1_000_000_000 - before.subsec_nanos()) % 1_000_000_000,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_that_nothing_can_count_with_is_the_nearest_that_a_file_may_have() {
        for (seconds, set) in [
            (0, 0),
            (-5, -5),
            (i64::MIN, -FURTHEST_SECONDS),
            (i64::MAX, FURTHEST_SECONDS),
            (1 << 41, 1 << 40),
        ] {
            let time = to_system_time(FileTime { seconds, nanos: 7 });
            assert_eq!(from_system_time(time), FileTime { seconds: set, nanos: 7 });
        }
    }
}
