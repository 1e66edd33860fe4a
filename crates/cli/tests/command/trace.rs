//! `anabranch trace`: statistics, conversion and models of recorded networks.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::support::anabranch;

/// Writes a table of two operators with steps of half a second: one alternates between 8 and 4 Mbit/s, and the other has an outage
/// of 2 s in every 20 s.
fn drive(folder: &TempDir) -> std::path::PathBuf {
    let mut table = "time,rate_a,tech,rate_b\n".to_owned();
    for step in 0..240 {
        let (a, b) = (if step % 40 < 20 { 8 } else { 4 }, if step % 40 < 4 { 0 } else { 2 });
        writeln!(table, "{}.{},{a},5G,{b}", 100 + step / 2, step % 2 * 5).expect("text");
    }
    let file = folder.path().join("drive.csv");
    fs::write(&file, table).expect("a table");
    file
}

fn run(arguments: &[&str]) -> String {
    anabranch(arguments).with_status(0).out
}

fn json(file: &Path, columns: &[&str]) -> Vec<serde_json::Value> {
    let mut arguments = vec!["trace", "info", text(file), "--json"];
    arguments.extend(columns.iter().flat_map(|column| ["--column", column]));
    anabranch(&arguments).with_status(0).json_lines()
}

#[test]
fn info_of_two_columns_has_outages_and_their_correlation() {
    let folder = TempDir::new().expect("a folder");
    let lines = json(&drive(&folder), &["rate_a", "rate_b"]);
    let [a, b, pair] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(a["statistics"]["mean_bps"], 6e6);
    assert_eq!(a["statistics"]["quantiles_bps"][4], 8e6);
    assert_eq!(b["statistics"]["outages"]["mean_s"], 2.0);
    assert_eq!(b["statistics"]["outages"]["per_hour"], 180.0);
    assert!(pair["correlation"].as_f64().expect("a number") < -0.3, "{pair}");
    let shown = run(&["trace", "info", text(&drive(&folder)), "--column", "rate_b"]);
    assert!(
        shown.contains("outages          10.00 % of the time, 180.0 per hour, 2.0 s in the mean"),
        "{shown}"
    );
}

#[test]
fn formats_are_converted_without_loss() {
    let folder = TempDir::new().expect("a folder");
    let drive = drive(&folder);
    let at = |name: &str| folder.path().join(name);
    for (from, to, options) in [
        (&drive, "rates", ["--column", "rate_a"]),
        (&at("rates"), "bytes", ["--scale", "2"]),
        (&at("bytes"), "mahimahi", ["--scale", "0.5"]),
    ] {
        let out = at(to);
        run(&["trace", "convert", text(from), "--to", to, "--out", text(&out), options[0], options[1]]);
    }
    assert!(
        fs::read_to_string(at("bytes")).expect("a table").starts_with("second,bytes_per_second\n0,2000000\n")
    );
    let [mahimahi, rates] = [at("mahimahi"), at("rates")].map(|file| json(&file, &[]).remove(0));
    for (index, quantile) in
        rates["statistics"]["quantiles_bps"].as_array().expect("a list").iter().enumerate()
    {
        let found = mahimahi["statistics"]["quantiles_bps"][index].as_f64().expect("a number");
        assert!((found / quantile.as_f64().expect("a number") - 1.0).abs() < 0.01, "{found} for {quantile}");
    }
}

#[test]
fn section_that_is_cut_has_its_duration_and_rates() {
    let folder = TempDir::new().expect("a folder");
    let rates = folder.path().join("rates");
    run(&["trace", "convert", text(&drive(&folder)), "--column", "rate_a", "--out", text(&rates)]);
    let cut = run(&["trace", "cut", text(&rates), "9.5s..11s"]);
    assert_eq!(
        cut.lines().skip(1).map(|line| line.split_once(',').expect("columns").1).collect::<Vec<_>>(),
        ["8.000000", "4.000000", "4.000000"]
    );
    let error = anabranch(&["trace", "cut", text(&rates), "100s..200s"]).with_status(1).err;
    assert!(error.contains("section must end after its beginning and not after the trace"), "{error}");
}

#[test]
fn model_generates_traces_that_a_scenario_can_follow() {
    let folder = TempDir::new().expect("a folder");
    let [model, made] = ["model.toml", "made.csv"].map(|name| folder.path().join(name));
    let drive = drive(&folder);
    let columns = ["--column", "rate_a", "--column", "rate_b"];
    let fit = ["trace", "fit", text(&drive), "--source", "a test", "--out", text(&model)];
    run(&[&fit[..], &columns].concat());
    run(&["trace", "make", text(&model), "--duration", "10min", "--out", text(&made)]);
    assert_eq!(
        run(&["trace", "make", text(&model), "--duration", "10min"]),
        fs::read_to_string(&made).expect("a table")
    );
    let lines = json(&made, &["rate_a", "rate_b"]);
    let share = lines[1]["statistics"]["outages"]["share"].as_f64().expect("a number");
    assert!((share - 0.1).abs() < 0.05, "{share}");
    let scenario = folder.path().join("s.toml");
    let path = |column: &str| {
        format!("[[path]]\ncapacity = {{ file = \"made.csv\", column = \"{column}\" }}\ndelay = \"9 ms\"\n")
    };
    fs::write(&scenario, format!("[run]\nduration = \"5 s\"\n{}{}", path("rate_a"), path("rate_b")))
        .expect("a scenario");
    run(&["run", text(&scenario)]);
}

#[test]
fn files_that_cannot_be_read_are_errors_or_left_out() {
    let folder = TempDir::new().expect("a folder");
    let (drive, bad) = (drive(&folder), folder.path().join("bad.csv"));
    fs::write(&bad, "time,rate_a\n1,x\n").expect("a table");
    let arguments = ["trace", "info", text(&drive), text(&bad), "--column", "rate_a"];
    let ended = anabranch(&arguments).with_status(1);
    assert!(ended.err.contains("bad.csv: line 2: \"x\" is no rate"), "{}", ended.err);
    let ended = anabranch(&[&arguments[..], &["--skip"]].concat()).with_status(0);
    assert!(ended.err.contains("bad.csv") && ended.err.contains("left out"), "{}", ended.err);
    let ended = anabranch(&["trace", "info", text(&drive), "--column", "rate_c"]).with_status(1);
    assert!(
        ended.err.contains("no column \"rate_c\"; the columns are time, rate_a, tech, rate_b"),
        "{}",
        ended.err
    );
    let ended = anabranch(&["trace", "make", text(&drive)]).with_status(1);
    assert!(ended.err.contains("`anabranch trace fit` writes such a file"), "{}", ended.err);
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}
