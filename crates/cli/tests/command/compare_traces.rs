//! Transfers over a relay and over the simulator's links that follow the same trace sections.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::thread;

use tempfile::TempDir;

use crate::judged::{Judged, LATEST_US, is_reached};
use crate::support::anabranch;

/// Accepted difference between goodput over a relay and the range of simulated ones.
const TOLERANCE: f64 = 0.05;
/// Additional delays of the simulated runs, in µs. Hosts on sockets answer up to 2 ms later than simulated ones.
const DELAYS_US: [u32; 5] = [0, 400, 800, 1200, 2000];

/// Paths with their column and delay in ms.
const PATHS: [(&str, u32); 2] = [("ULtput_x", 25), ("ULtput_y", 40)];
/// Factor that makes rates those of some Mbit/s, at which hosts need little of a processor.
const SCALE: f64 = 0.25;

/// Writes a section of 6 s that a model of two operators generates. Returns its name.
fn generated(folder: &Path, seed: u32) -> String {
    let (seed, out) = (seed.to_string(), folder.join(format!("{seed}.csv")));
    let model = "contrib/models/two-operators-uplink.toml";
    let out = out.to_str().expect("text");
    let make = ["trace", "make", model, "--duration", "6s", "--seed", &seed, "--out", out];
    anabranch(&make).with_status(0);
    seed
}

/// Writes the first 6 s of up to three tables of two operators' uplinks, which are in the folder that `ANABRANCH_TWO_OPERATORS`
/// names. Returns the names of the sections. Recorded networks are not in the repository.
fn recorded(folder: &Path) -> Vec<String> {
    let Some(data) = std::env::var_os("ANABRANCH_TWO_OPERATORS") else { return Vec::new() };
    let files = std::fs::read_dir(data).expect("ANABRANCH_TWO_OPERATORS is a folder");
    let mut files: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    files.sort_unstable();
    assert!(!files.is_empty(), "ANABRANCH_TWO_OPERATORS has files");
    let section = |(index, file): (usize, &PathBuf)| {
        let name = format!("recorded-{index}");
        let lines = std::fs::read_to_string(file).expect("a table");
        // The header and twelve steps of half a second.
        let section: Vec<&str> = lines.lines().take(13).collect();
        std::fs::write(folder.join(format!("{name}.csv")), section.join("\n")).expect("a section");
        name
    };
    files.iter().take(3).enumerate().map(section).collect()
}

/// Writes a scenario of a bulk flow over these paths, with delays longer by `later_us`. Returns its path.
fn scenario(folder: &Path, section: &str, paths: &[(&str, u32)], later_us: u32) -> String {
    let scheme = if paths.len() > 1 { "bonded" } else { "sctp" };
    let mut text = format!(
        "[run]\nduration = '6 s'\nschemes = ['{scheme}']\n\
         [association]\nrecv_buffer = '4 MiB'\nencapsulation = 'udp'\n"
    );
    for (column, delay_ms) in paths {
        let delay_us = 1000 * delay_ms + later_us;
        writeln!(
            text,
            "[[path]]\ncapacity = {{ file = '{section}.csv', column = '{column}', scale = {SCALE} }}\n\
             delay = '{delay_us} us'\nqueue = '100 packets'"
        )
        .expect("text");
    }
    let names: String = paths.iter().map(|(column, _)| *column).collect();
    let file = folder.join(format!("{section}-{names}-{later_us}.toml"));
    std::fs::write(&file, text).expect("a scenario");
    file.to_str().expect("text").to_owned()
}

fn goodput(run: &serde_json::Value) -> f64 {
    run["goodput_kbps"].as_f64().expect("a rate")
}

/// Checks that a relay that is not late delivers as much as simulated links. Returns `false` if too few runs were in time.
fn relay_agrees(folder: &Path, section: &str, paths: &[(&str, u32)]) -> bool {
    let simulated = DELAYS_US.map(|later_us| {
        let file = scenario(folder, section, paths, later_us);
        goodput(&anabranch(&["run", &file, "--json"]).with_status(0).json_lines()[0])
    });
    let least = simulated.into_iter().fold(f64::INFINITY, f64::min) * (1.0 - TOLERANCE);
    let most = simulated.into_iter().fold(0.0, f64::max) * (1.0 + TOLERANCE);
    let file = scenario(folder, section, paths, 0);
    is_reached(|| {
        let lines = anabranch(&["compare", &file, "--json", "--quiet"]).with_status(0).json_lines();
        let sockets = &lines[0]["sockets"];
        let late_us = 1000.0 * sockets["late_mean_ms"].as_f64().expect("a time");
        let found = goodput(sockets);
        let figures = format!("{file}: {found} kbit/s, {simulated:?}");
        Judged::new(late_us < LATEST_US, (least..=most).contains(&found), figures)
    })
}

#[test]
fn transfer_over_relay_is_as_fast_as_simulated_on_trace_sections() {
    let folder = TempDir::new().expect("a folder");
    let folder = folder.path();
    let mut sections: Vec<String> = (1..=3).map(|seed| generated(folder, seed)).collect();
    sections.extend(recorded(folder));
    let sets: [&[(&str, u32)]; 3] = [&PATHS[..1], &PATHS[1..], &PATHS];
    let late: usize = thread::scope(|scope| {
        let runs = sets.map(|paths| {
            let sections = &sections;
            scope.spawn(move || {
                sections.iter().filter(|section| !relay_agrees(folder, section, paths)).count()
            })
        });
        runs.into_iter().map(|run| run.join().expect("no failure")).sum()
    });
    if late > 0 {
        println!(
            "{late} of {} comparisons are left out, since the machine delayed packets of the relay",
            3 * sections.len()
        );
    }
}
