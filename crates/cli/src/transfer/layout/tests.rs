//! Lines of all states of a transfer, at all widths.

use anabranch_net::PathState;
use proptest::prelude::*;

use super::*;

const STATES: [PathState; 4] =
    [PathState::Unconfirmed, PathState::Active, PathState::PotentiallyFailed, PathState::Inactive];
const WIDTHS: std::ops::RangeInclusive<usize> = 20..=220;

fn at(columns: usize) -> Size {
    Size { columns, rows: 24 }
}

/// Returns a transfer of 2,001 files in progress, over two paths.
fn usual() -> Snapshot {
    let totals = Totals {
        found_files: 600,
        found_bytes: 250_000_000,
        expected_files: Some(2001),
        expected_bytes: Some(388_000_000),
        done_files: 344,
        held_bytes: 239_000_000,
        ..Totals::default()
    };
    let path = |local: &str, remote: &str, state| PathLine::sample(local, remote, state);
    Snapshot {
        totals,
        bytes_per_s: 24e6,
        phase: Phase::Moving,
        file: Some("photos/2026/a-long-name-of-a-picture-in-a-folder.jpg".to_owned()),
        paths: vec![
            path("192.168.100.20", "203.0.113.107:9899", PathState::Active),
            path("10.0.0.5", "198.51.100.1:9899", PathState::PotentiallyFailed),
        ],
        sends: true,
    }
}

#[test]
fn eighty_columns_show_bar_figures_name_and_states() {
    let lines = usual().lines(at(80));
    assert_eq!(
        lines,
        [
            "[=======================>              ]   61%  239/388 MB  24 MB/s  0:07 left",
            "344 of 2001 files  photos/2026/a-long-name-of-a-picture-in-a-folder.jpg",
            "  192.168.100.20 - 203.0.113.107:9899  active       24 MB/s  RTT 123.4 ms",
            "  10.0.0.5 - 198.51.100.1:9899         pot. failed  24 MB/s  RTT 123.4 ms",
        ]
    );
}

#[test]
fn offer_without_files_shows_awaited_event_only() {
    for step in [Waiting::Receiver, Waiting::Answer, Waiting::Return] {
        let empty = Snapshot { totals: Totals::default(), phase: Phase::Waiting(step), ..usual() };
        assert_eq!(empty.lines(at(80)), [step.text()]);
        assert_eq!(empty.plain_lines(), [step.text()]);
    }
    let left = Snapshot { phase: Phase::Waiting(Waiting::Return), ..usual() };
    assert!(left.seconds_left().is_none());
    assert!(left.lines(at(100))[0].ends_with("waiting for the receiver to connect again"));
}

#[test]
fn sixty_columns_keep_bar_name_and_state() {
    let lines = usual().lines(at(60));
    assert_eq!(
        lines,
        [
            "[============>       ]   61%  239/388 MB  24 MB/s  0:07 left",
            "344 of 2001 files  photos/2026/a-long-...ure-in-a-folder.jpg",
            "  192.168.100.20 - 203.0.113.107:9899  active       24 MB/s",
            "  10.0.0.5 - 198.51.100.1:9899         pot. failed  24 MB/s",
        ]
    );
}

#[test]
fn hundred_and_twenty_columns_show_every_figure() {
    let rows = usual().lines(at(120));
    assert_eq!(
        rows[2],
        "  192.168.100.20 - 203.0.113.107:9899  active       24 MB/s  RTT 123.4 ms  loss 0.5 %  cwnd 640 kB"
    );
}

#[test]
fn size_that_is_not_known_shows_no_bar() {
    let snapshot = Snapshot {
        totals: Totals { expected_files: None, expected_bytes: None, ..usual().totals },
        ..usual()
    };
    let lines = snapshot.lines(at(80));
    assert_eq!(lines[0], "239 MB  24 MB/s  counting files");
    assert!(lines[1].starts_with("344 files so far  photos/"), "{lines:?}");
}

#[test]
fn pipe_shows_amount_and_rate_only() {
    let totals = Totals { has_pipe: true, expected_files: Some(1), ..held(5_000_000) };
    let lines = Snapshot { totals, ..usual() }.lines(at(80));
    assert_eq!(lines[0], "5 MB  24 MB/s");
    assert!(lines[1].starts_with("0 of 1 file  "), "{lines:?}");
}

#[test]
fn phase_takes_place_of_remaining_time() {
    let first = |phase| Snapshot { phase, ..usual() }.lines(at(80)).remove(0);
    assert!(first(Phase::Stalled(Duration::from_secs(72))).ends_with("stalled for 1:12"));
    assert!(first(Phase::Disconnected(Duration::from_secs(5))).ends_with("connecting again for 0:05"));
    let end = Totals { held_bytes: 388_000_000, ..usual().totals };
    let line = Snapshot { totals: end, ..usual() }.lines(at(80)).remove(0);
    assert!(line.contains("]  100%") && line.ends_with("finishing"), "{line}");
}

#[test]
fn failed_files_count_as_settled_and_are_reported() {
    let totals = Totals { skipped_bytes: 149_000_000, failed_files: 3, ..usual().totals };
    let snapshot = Snapshot { totals, ..usual() };
    assert!(snapshot.lines(at(80))[0].contains("100%"));
    assert!(snapshot.lines(at(80))[1].starts_with("344 of 2001 files, 3 omitted  "));
}

#[test]
fn remaining_time_is_unknown_without_a_rate() {
    let line = Snapshot { bytes_per_s: 0.0, ..usual() }.lines(at(80)).remove(0);
    assert!(line.ends_with("239/388 MB  0 B/s"), "{line}");
    assert_eq!(Snapshot { bytes_per_s: 0.0, ..usual() }.seconds_left(), None);
    assert_eq!(usual().seconds_left().map(f64::ceil), Some(7.0));
}

#[test]
fn paths_that_do_not_fit_share_the_last_row() {
    let paths = vec![PathLine::sample("10.0.0.5", "198.51.100.1:9899", PathState::Active); 30];
    let lines = Snapshot { paths, ..usual() }.lines(at(80));
    assert_eq!(lines.len(), 23);
    assert_eq!(lines[22], "  and 10 more paths, 10 active");
}

#[test]
fn long_addresses_are_cut_before_their_state() {
    let long = "2001:db8:1111:2222:3333:4444:5555:6666";
    let path = PathLine::sample(long, &format!("[{long}]:9899"), PathState::PotentiallyFailed);
    let lines = Snapshot { paths: vec![path], ..usual() }.lines(at(60));
    assert_eq!(lines[2], "  2001:db8:1111:2222:33...:4444:5555:6666]:9899  pot. failed");
}

#[test]
fn plain_lines_have_every_figure_and_no_bar() {
    let lines = usual().plain_lines();
    assert!(lines[0].starts_with(" 61%  239/388 MB  24 MB/s  0:07 left  344 of 2001 files  photos/2026/a-"));
    assert!(lines[1].ends_with("cwnd 640 kB"), "{lines:?}");
}

fn held(held_bytes: u64) -> Totals {
    Totals { held_bytes, ..Totals::default() }
}

prop_compose! {
    fn totals()(
        counts in prop::array::uniform8(prop_oneof![0..3_u64, 0..5_000_000_000_u64, any::<u64>()]),
        flags in prop::array::uniform4(any::<bool>()),
    ) -> Totals {
        let [found_files, found_bytes, files, bytes, done_files, held_bytes, skipped_bytes, reused_bytes] = counts;
        let [all_found, has_files, has_bytes, has_pipe] = flags;
        Totals {
            found_files,
            found_bytes,
            all_found,
            expected_files: has_files.then_some(files),
            expected_bytes: has_bytes.then_some(bytes),
            done_files: done_files / 2,
            failed_files: skipped_bytes / 2,
            held_bytes,
            skipped_bytes,
            reused_bytes,
            has_pipe,
            ..Totals::default()
        }
    }
}

fn phase() -> impl Strategy<Value = Phase> {
    let time = || (0..10_000_000_u64).prop_map(Duration::from_secs);
    prop_oneof![Just(Phase::Moving), time().prop_map(Phase::Stalled), time().prop_map(Phase::Disconnected)]
}

fn path() -> impl Strategy<Value = PathLine> {
    let long = "2001:db8:1111:2222:3333:4444:5555:6666";
    let addresses = prop_oneof![
        Just(("10.0.0.5".to_owned(), "198.51.100.1:9899".to_owned())),
        Just((long.to_owned(), format!("[{long}]:65535"))),
    ];
    (addresses, prop::sample::select(STATES.to_vec()))
        .prop_map(|((local, remote), state)| PathLine::sample(&local, &remote, state))
}

prop_compose! {
    fn snapshot()(
        totals in totals(),
        bytes_per_s in prop_oneof![Just(0.0), 0.0..1e10],
        phase in phase(),
        file in prop::option::of("(\\PC|[漢e\u{301}]){0,300}"),
        paths in prop::collection::vec(path(), 0..12),
        sends: bool,
    ) -> Snapshot {
        Snapshot { totals, bytes_per_s, phase, file, paths, sends }
    }
}

proptest! {
    // Each case covers every width.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_line_is_wider_than_the_terminal(snapshot in snapshot(), rows in 0..60_usize) {
        for columns in WIDTHS {
            let lines = snapshot.lines(Size { columns, rows });
            prop_assert!(lines.len() <= rows.saturating_sub(1).max(2), "{lines:?}");
            for line in &lines {
                prop_assert!(width(line) <= columns, "{columns}: {line:?}");
                prop_assert!(!line.chars().any(char::is_control), "no colours, no other sequences: {line:?}");
            }
        }
    }

    #[test]
    fn every_row_of_a_path_ends_with_its_state_or_figures(snapshot in snapshot()) {
        for columns in WIDTHS {
            let lines = snapshot.lines(Size { columns, rows: 60 });
            for (path, row) in snapshot.paths.iter().zip(&lines[2..]) {
                prop_assert!(row.contains(path.state_text()), "{columns}: {row:?}");
            }
        }
    }
}
