//! Conversion of time stamps between the protocol and the system.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::protocol::FileTime;

/// Maximum distance of a file's time from 1970: about 34,000 years. File systems with 64-bit times store any value, but readers may
/// overflow: `cap-std` panics at the smallest number, so that one offer would make a name, or a whole folder, permanently unusable.
const FURTHEST_SECONDS: i64 = 1 << 40;

/// Returns the time stamp for a file, limited to the allowed range.
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
    fn unrepresentable_time_becomes_the_nearest_valid_one() {
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
