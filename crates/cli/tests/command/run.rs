//! Output of successful `anabranch run` commands.

use std::fs;

use serde_json::Value;

use crate::support::{anabranch, short_run, workspace};

#[test]
fn a_table_has_a_row_for_each_scheme_and_says_what_it_counts() {
    let ended = short_run(&[]).with_status(0);
    let rows = ended.rows();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    assert_eq!(names, ["sctp", "cmt", "cmt-pf"]);
    assert!(rows.iter().all(|row| row[1] == "2" && row[3] == "±"), "{rows:?}");
    for expected in [
        "user bytes delivered to the application",
        "95 % confidence interval",
        "over path-1/path-2",
        "scenarios/two-path.toml, profile rfc9260, 2 s, seeds 1, 2",
    ] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
    assert_eq!(ended.err, "", "no progress where there is no terminal");
}

#[test]
fn a_profile_changes_what_goodput_counts() {
    let ended = short_run(&["--profile", "ns2", "--schemes", "cmt"]).with_status(0);
    assert!(ended.out.contains("unique DATA chunks") && ended.out.contains("profile ns2"), "{}", ended.out);
}

#[test]
fn where_there_is_no_interval_the_reason_is_given() {
    let ended = short_run(&["--schemes", "cmt", "--seeds", "7,"]).with_status(0);
    assert!(ended.out.contains("n = 1, no interval") && ended.out.contains("seed 7"), "{}", ended.out);
    assert!(!ended.out.contains('±'));
    let arguments = ["--schemes", "cmt", "--set", "path.*.loss=0"];
    let ended = short_run(&arguments).with_status(0);
    assert!(ended.out.contains("deterministic, no interval"), "{}", ended.out);
}

#[test]
fn json_has_one_object_for_each_run_seed_by_seed() {
    let ended = short_run(&["--json", "--schemes", "sctp,cmt", "--seeds", "3,7"]).with_status(0);
    let runs = ended.json_lines();
    let order: Vec<_> = runs.iter().map(|run| (run["scheme"].as_str(), run["seed"].as_u64())).collect();
    let expected = [("sctp", 3), ("cmt", 3), ("sctp", 7), ("cmt", 7)];
    assert_eq!(order, expected.map(|(scheme, seed)| (Some(scheme), Some(seed))));
    for run in &runs {
        for figure in ["goodput_kbps", "duration_s", "retransmissions", "timeouts", "fast_retransmits"] {
            assert!(run[figure].is_number(), "{figure}: {run}");
        }
        let paths = run["paths"].as_array().expect("a list");
        assert_eq!(paths.iter().filter_map(|path| path["name"].as_str()).count(), 2);
        let counts = ["data_packets", "bytes", "drops"];
        assert!(paths.iter().all(|path| counts.iter().all(|count| path[count].is_u64())), "{run}");
        let shares: f64 = paths.iter().filter_map(|path| path["share"].as_f64()).sum();
        assert!((shares - 1.0).abs() < 1e-12, "{run}");
        let (scheme, seed) = (run["scheme"].as_str().expect("a name"), &run["seed"]);
        assert_eq!(run["label"], format!("{scheme}-seed{seed}"));
        assert!(run["failure"].is_null(), "{run}");
    }
}

#[test]
fn neither_threads_nor_time_change_the_results() {
    let with = |threads| {
        short_run(&["--json", "--digest", "--schemes", "all", "--threads", threads]).with_status(0).out
    };
    let one = with("1");
    assert!(!one.is_empty());
    assert_eq!(one, with("2"));
    assert_eq!(one, with("2"));
}

#[test]
fn schemes_seeds_and_settings_make_a_difference() {
    let ended = short_run(&["--json", "--digest", "--schemes", "sctp,cmt"]).with_status(0);
    let runs = ended.json_lines();
    let other =
        short_run(&["--json", "--schemes", "cmt", "--set", "path.path-1.delay='10 ms'"]).with_status(0);
    let goodput = |run: &Value| run["goodput_kbps"].as_f64().expect("a number");
    // Results alternate between schemes.
    assert!(goodput(&runs[1]) > 1.1 * goodput(&runs[0]), "{runs:?}");
    assert!(goodput(&other.json_lines()[0]) > 1.1 * goodput(&runs[1]));
    assert!(runs[0]["digest"].is_string() && runs[0]["digest"] != runs[2]["digest"]);
}

#[test]
fn a_scheme_named_twice_is_run_once() {
    let ended = short_run(&["--json", "--schemes", "cmt,all,cmt", "--seeds", "1"]).with_status(0);
    let runs = ended.json_lines();
    let schemes: Vec<_> = runs.iter().filter_map(|run| run["scheme"].as_str()).collect();
    assert_eq!(schemes.iter().filter(|scheme| **scheme == "cmt").count(), 1);
    assert_eq!(schemes[0], "cmt");
    assert!(schemes.len() > 3);
}

#[test]
fn schemes_that_the_file_defines_go_by_their_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.toml");
    let text = fs::read_to_string(workspace().join("scenarios/two-path.toml")).expect("a scenario");
    let definitions = "[scheme.eager]\nexpression = \"cmt( trigger = 2 )\"\nabout = \"retransmits early\"\n\
                       [scheme.eager-asap]\nexpression = \"eager(rtx=rtx-asap)\"\n[scheme.unused]\nexpression = \"sctp\"\n";
    fs::write(&file, format!("{text}\n{definitions}")).expect("written");
    let file = file.to_str().expect("a path");
    let set = ["--set", "run.duration='2 s'", "--seeds", "1", "--set", "run.schemes=[\"sctp\", \"eager\"]"];
    let ended = anabranch(&[&["run", file], &set[..]].concat()).with_status(0);
    assert_eq!(ended.rows().iter().map(|row| row[0]).collect::<Vec<_>>(), ["sctp", "eager"]);
    assert!(ended.out.contains("eager is cmt(trigger=2): retransmits early"), "{}", ended.out);
    assert!(!ended.out.contains("unused"), "{}", ended.out);
    let more = ["--schemes", "eager-asap, eager(sfr=false),cmt(rtx=rtx-asap,trigger=2)", "--json"];
    let ended = anabranch(&[&["run", file], &set[..], &more].concat()).with_status(0);
    let mut runs = ended.json_lines();
    let names: Vec<_> = runs.iter().filter_map(|run| run["scheme"].as_str()).collect();
    assert_eq!(names, ["eager-asap", "eager(sfr=false)", "cmt(rtx=rtx-asap,trigger=2)"]);
    for run in &mut runs {
        for key in ["scheme", "label", "flows"] {
            run[key] = Value::Null;
        }
    }
    assert_eq!(runs[0], runs[2], "a name is nothing but a name");
    let ended = anabranch(&["run", file, "--schemes", "egaer"]).with_status(2);
    assert!(ended.err.contains("did you mean `eager`?"), "{}", ended.err);
    let ended = anabranch(&[&["run", file], &set[..], &["--set", "flow.flow-1.scheme=eager"]].concat());
    assert!(ended.with_status(0).out.contains("eager is cmt(trigger=2)"));
}

#[test]
fn a_file_arrives_as_it_was_sent_and_its_hash_is_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("data.bin"), b"anabranch\n".repeat(10_000)).expect("written");
    let text = fs::read_to_string(workspace().join("scenarios/file.toml")).expect("a scenario");
    let (before, after) = text.split_once("size = \"8 MB\"").expect("its size");
    let file = folder.path().join("file.toml");
    fs::write(&file, format!("{before}path = \"data.bin\"{after}")).expect("written");
    let ended = anabranch(&["run", file.to_str().expect("a path"), "--seeds", "2"]).with_status(0);
    assert!(ended.out.contains("SHA-256 equal to what was sent in 6 of 6 runs"), "{}", ended.out);
    let hash = "58871d42ba691f930c80f775fc66cadcc23e02a51869efb299d61744bce34d04";
    assert!(ended.out.contains(hash), "{}", ended.out);
    assert!(ended.out.contains("transfer time") && ended.out.contains("2 of 2"), "{}", ended.out);
}

#[test]
fn flows_are_told_apart() {
    let arguments =
        ["run", "scenarios/shared-bottleneck.toml", "--set", "run.duration='24 s'", "--seeds", "1"];
    let ended = anabranch(&arguments).with_status(0);
    for expected in ["multipath (cmt)", "single-path (sctp)", "cmt,sctp"] {
        assert!(ended.out.contains(expected), "{}", ended.out);
    }
    let ended = anabranch(&[&arguments[..], &["--schemes", "cmt"]].concat()).with_status(2);
    assert!(ended.err.contains("--schemes: has no effect"), "{}", ended.err);
}

#[test]
fn fairness_is_in_the_table_and_in_json() {
    let arguments =
        ["run", "scenarios/shared-bottleneck.toml", "--set", "run.duration='24 s'", "--seeds", "2"];
    let json = anabranch(&[&arguments[..], &["--json"]].concat()).with_status(0).json_lines();
    let mut sum = 0.0;
    for run in &json {
        let goodput = |flow: usize| run["flows"][flow]["goodput_kbps"].as_f64().expect("a number");
        let (a, b) = (goodput(0), goodput(1));
        let jain = run["jain_index"].as_f64().expect("a number");
        assert!((jain - (a + b) * (a + b) / (2.0 * (a * a + b * b))).abs() < 1e-12, "{run}");
        sum += jain;
    }
    let table = anabranch(&arguments).with_status(0).out;
    assert!(table.contains("Jain's") && table.contains(&format!("{:.3}", sum / 2.0)), "{table}");
    let alone = short_run(&["--json", "--schemes", "cmt"]).with_status(0).json_lines();
    assert!(alone[0]["jain_index"].is_null(), "one flow alone is neither fair nor unfair");
}

#[test]
fn captures_and_traces_are_written_to_the_named_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let (pcap, trace) = (folder.path().join("new/pcap"), folder.path().join("new/trace"));
    let (pcap, trace) = (pcap.to_str().expect("a path"), trace.to_str().expect("a path"));
    let arguments = ["--schemes", "cmt(trigger=4)", "--pcap", pcap, "--trace", trace];
    let ended = short_run(&arguments).with_status(0);
    assert!(ended.out.contains(pcap) && ended.out.contains(trace), "{}", ended.out);
    let capture = fs::read(format!("{pcap}/cmt_trigger=4_-seed2.pcapng")).expect("a capture");
    assert_eq!(capture[..4], [0x0A, 0x0D, 0x0D, 0x0A]);
    let sheets = fs::read_dir(format!("{trace}/cmt_trigger=4_-seed1")).expect("a folder");
    assert!(sheets.count() >= 3);
    let plain = short_run(&["--schemes", "cmt(trigger=4)", "--json"]).with_status(0);
    let traced = short_run(&[&arguments[..], &["--json", "--quiet"]].concat()).with_status(0);
    assert_eq!(plain.out, traced.out, "watching changes nothing");
    assert_eq!(traced.err, "");
}

#[test]
fn captures_of_runs_keep_headers_by_default() {
    let folder = tempfile::tempdir().expect("a folder");
    let size = |name: &str, more: &[&str]| {
        let pcap = folder.path().join(name);
        let arguments = ["--schemes", "cmt", "--seeds", "1,", "--pcap", pcap.to_str().expect("a path")];
        short_run(&[&arguments[..], more].concat()).with_status(0);
        fs::metadata(pcap.join("cmt-seed1.pcapng")).expect("a capture").len()
    };
    let (usual, full) = (size("usual", &[]), size("full", &["--snaplen", "full"]));
    assert!(usual * 3 < full, "{usual} and {full} bytes");
    assert_eq!(size("zero", &["--snaplen", "0"]), full);
    assert!(size("half", &["--snaplen", "512B"]) > usual);
}

#[test]
fn limiting_receive_buffer_is_named_with_a_remedy() {
    let wide = ["--set", "path.*.loss=0", "--set", "path.*.rate='100 Mbit/s'", "--set", "run.duration='3 s'"];
    let small = ["run", "scenarios/two-path.toml", "--schemes", "cmt", "--seeds", "1"];
    let buffer = |size: &str| {
        let size = format!("association.recv_buffer='{size}'");
        anabranch(&[&small[..], &wide, &["--set", &size]].concat()).with_status(0).out
    };
    let out = buffer("64 KiB");
    // 200 Mbit/s for 180 ms are 4.5 MB.
    for expected in ["limited by recv_buffer, which is 64 KiB: cmt", "recv_buffer='16 MiB'"] {
        assert!(out.contains(expected), "no `{expected}` in:\n{out}");
    }
    let out = buffer("16 MiB");
    assert!(!out.contains("limited by"), "{out}");
}

#[test]
fn remedy_of_a_limiting_receive_buffer_counts_traced_links() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("rate.csv"), "0,150\n1,50\n").expect("a trace");
    fs::write(folder.path().join("delay.csv"), "0,20\n1,90\n").expect("a trace");
    let file = folder.path().join("traced.toml");
    let text = "[run]\nduration = \"3 s\"\nschemes = [\"sctp\"]\n[[path]]\ncapacity = \"rate.csv\"\ndelay_trace = \"delay.csv\"\n";
    fs::write(&file, text).expect("a scenario");
    let out = anabranch(&["run", file.to_str().expect("a path"), "--seeds", "1"]).with_status(0).out;
    // 100 Mbit/s for 180 ms are 2.25 MB.
    assert!(out.contains("recv_buffer='8 MiB'"), "{out}");
}

#[test]
fn abandoned_messages_have_a_column_for_each_cause() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("late.toml");
    let text = "[run]\nduration = \"5 s\"\n[[path]]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nloss = 0.1\n[[flow]]\n\
                kind = \"messages\"\nsize = \"4000 B\"\ninterval = \"20 ms\"\nreliability = { lifetime = \"100 ms\" }\n";
    fs::write(&file, text).expect("a file");
    let run = ["run", file.to_str().expect("a path"), "--schemes", "sctp", "--seeds", "1"];
    let out = anabranch(&run).with_status(0).out;
    let table = out.rsplit("messages").next().expect("a table");
    let figures: Vec<f64> = table.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    // Abandoned messages: all, unsent, then by retransmissions, lifetime, priority and streams.
    assert!(table.contains("by streams"), "{out}");
    assert!(figures[0] > 0.0 && figures[2..6].iter().sum::<f64>() == figures[0], "{out}");
}
