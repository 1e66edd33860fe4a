//! Goals of measurements in real time, which a busy machine may disturb.

/// Maximum mean time by which a relay is late, in µs. Above it, the machine is too busy and the measurement is ignored.
pub(crate) const LATEST_US: f64 = 500.0;
/// Maximum number of measurements until one reaches its goal.
const ATTEMPTS: usize = 5;
/// Number of undisturbed measurements below the goal after which the test fails. Fewer may be due to a machine that delays the hosts.
const MOST_MISSED: usize = 3;

/// Measurement beside its goal.
pub(crate) enum Judged {
    Reached,
    Missed(String),
    /// The machine has delayed packets.
    Disturbed,
}

impl Judged {
    /// A measurement counts only if its relays were in time.
    pub(crate) fn new(in_time: bool, reached: bool, figures: String) -> Self {
        match (in_time, reached) {
            (false, _) => Judged::Disturbed,
            (true, true) => Judged::Reached,
            (true, false) => Judged::Missed(figures),
        }
    }
}

/// Measures until a measurement reaches its goal. Returns `false` if the machine has disturbed too many measurements for a verdict.
#[track_caller]
pub(crate) fn is_reached(mut measure: impl FnMut() -> Judged) -> bool {
    let mut missed = Vec::new();
    for _ in 0..ATTEMPTS {
        match measure() {
            Judged::Reached => return true,
            Judged::Missed(figures) => missed.push(figures),
            Judged::Disturbed => {}
        }
        assert!(missed.len() < MOST_MISSED, "{missed:?}");
    }
    println!("left out, because the machine delayed packets of the links; {missed:?}");
    false
}
