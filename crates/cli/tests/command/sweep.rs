//! `anabranch run --sweep`.

use std::fs;

use serde_json::Value;

use crate::support::{anabranch, short_run};

#[test]
fn a_sweep_is_a_table_of_schemes_and_values() {
    let ended = short_run(&["--sweep", "path.path-2.loss=0,5 %,0.1"]).with_status(0);
    let header = ended.out.lines().next().expect("a header");
    assert_eq!(header.split_whitespace().collect::<Vec<_>>(), ["scheme", "0", "5", "%", "0.1", "mean"]);
    let rows = ended.rows();
    assert_eq!(rows.iter().map(|row| row[0]).collect::<Vec<_>>(), ["sctp", "cmt", "cmt-pf"]);
    assert!(rows.iter().all(|row| row.len() == 1 + 4 * 3), "four intervals: {rows:?}");
    for expected in ["columns     path.path-2.loss", "goodput in kbit/s: user bytes", "seeds 1, 2"] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
}

#[test]
fn column_equals_a_run_of_its_value_and_mean_is_over_columns() {
    let scheme = ["--schemes", "cmt", "--seeds", "1"];
    let alone = |loss: &str| {
        let set = format!("path.path-2.loss={loss}");
        let runs = short_run(&[&scheme[..], &["--json", "--set", &set]].concat()).with_status(0).json_lines();
        runs[0]["goodput_kbps"].as_f64().expect("a number")
    };
    let (none, some) = (alone("0"), alone("0.1"));
    assert!(none > some);
    let ended = short_run(&[&scheme[..], &["--sweep", "path.path-2.loss=0,0.1"]].concat()).with_status(0);
    let cells = [none, some, (none + some) / 2.0].map(|cell| match cell {
        large if large >= 1000.0 => format!("{large:.0}"),
        small => format!("{small:.1}"),
    });
    assert_eq!(ended.rows()[0][1..], cells, "{}", ended.out);
}

#[test]
fn json_of_a_sweep_adds_only_the_value_of_each_run() {
    let arguments = ["--schemes", "sctp,cmt", "--json", "--threads", "2"];
    let sweep = ["--sweep", "path.*.delay=10 ms,'20 ms'"];
    let runs = short_run(&[&arguments[..], &sweep].concat()).with_status(0).json_lines();
    let order: Vec<_> = runs
        .iter()
        .map(|run| (run["sweep"]["path.*.delay"].as_str(), run["scheme"].as_str(), run["seed"].as_u64()))
        .collect();
    let mut expected = Vec::new();
    for seed in [1, 2] {
        for value in ["10 ms", "'20 ms'"] {
            expected.extend(["sctp", "cmt"].map(|scheme| (Some(value), Some(scheme), Some(seed))));
        }
    }
    assert_eq!(order, expected);
    let set = ["--set", "path.*.delay='20 ms'"];
    let plain = short_run(&[&arguments[..], &set].concat()).with_status(0).json_lines();
    let swept: Vec<&Value> = runs.iter().filter(|run| run["sweep"]["path.*.delay"] == "'20 ms'").collect();
    assert_eq!(swept.len(), plain.len());
    for (swept, plain) in swept.into_iter().zip(&plain) {
        let mut swept = swept.clone();
        swept.as_object_mut().expect("an object").remove("sweep");
        assert_eq!(&swept, plain);
    }
    assert_eq!(plain[0]["sweep"], Value::Null);
}

#[test]
fn a_profile_and_a_scheme_of_a_flow_can_be_swept() {
    let ended = short_run(&["--sweep", "run.profile=rfc9260,ns2", "--schemes", "cmt"]).with_status(0);
    for expected in ["user bytes delivered", "; or unique DATA chunks"] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
    let arguments = ["run", "scenarios/shared-bottleneck.toml", "--set", "run.duration='24 s'"];
    let sweep = ["--seeds", "1", "--sweep", "flow.multipath.scheme=cmt,cmt(trigger=4,floor=4)"];
    let ended = anabranch(&[&arguments[..], &sweep].concat()).with_status(0);
    let rows = ended.rows();
    assert_eq!(
        rows.iter().map(|row| row[0]).collect::<Vec<_>>(),
        ["cmt,sctp", "cmt(trigger=4,floor=4),sctp"]
    );
    assert!(rows[0].contains(&"-") && ended.out.contains("of all flows together"), "{}", ended.out);
}

#[test]
fn every_value_has_a_folder_of_its_own_for_captures_and_traces() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().to_str().expect("a path");
    let sweep = ["--sweep", "path.path-2.loss=0,5 %", "--schemes", "cmt", "--seeds", "1"];
    let ended = short_run(&[&sweep[..], &["--trace", trace]].concat()).with_status(0);
    assert!(ended.out.contains("path.path-2.loss=VALUE"), "{}", ended.out);
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(names, ["path.path-2.loss=0", "path.path-2.loss=5__"]);
    anabranch(&["explain", folder.path().join(&names[0]).to_str().expect("a path")]).with_status(0);
}

#[test]
fn mistakes_name_the_key_and_the_value() {
    let cases: &[(&[&str], &[&str])] = &[
        (
            &["--sweep", "path.path-2.loss=0,7"],
            &["--sweep path.path-2.loss=7: `path.path-2.loss` is out of range", "found 7"],
        ),
        (
            &["--sweep", "path.path-2.los=0"],
            &["--sweep path.path-2.los=0: unknown key", "did you mean `loss`?"],
        ),
        (&["--sweep", "path.path2.loss=0"], &["--sweep path.path2.loss=0", "did you mean `path-2`?"]),
        (&["--sweep", "loss"], &["--sweep", "expected KEY=VALUE,VALUE", "found `loss`"]),
        (&["--sweep", "path.path-2.loss=0,,1"], &["`path.path-2.loss` has an empty value"]),
        (&["--sweep", "path.path-2.loss=0,1,0"], &["`path.path-2.loss` has the value `0` twice"]),
        (&["--sweep", "run.profile=ns2,ns3"], &["--sweep run.profile=ns3: unknown profile `ns3`"]),
        (&["--sweep", "run.schemes=[\"cmtt\"]"], &["--sweep run.schemes=[\"cmtt\"]: unknown scheme"]),
        (
            &["--sweep", "run.profile=ns2", "--profile", "ns2"],
            &["--sweep run.profile: --profile gives it a value too"],
        ),
        (&["--sweep", "a=1", "--set", "a=2"], &["--sweep a: --set gives it a value too"]),
        (
            &["--sweep", "flow.flow-1.scheme=cmt,cmtt"],
            &["with flow.flow-1.scheme=cmtt: flow `flow-1`: unknown scheme"],
        ),
        (&["--sweep", "a=1", "--sweep", "b=1"], &["--sweep"]),
    ];
    for (arguments, expected) in cases {
        let ended = short_run(arguments).with_status(2);
        for text in *expected {
            assert!(ended.err.contains(text), "no `{text}` in:\n{}", ended.err);
        }
        assert_eq!(ended.out, "");
    }
}
