//! `anabranch schemes`, help and version.

use serde_json::Value;

use crate::support::anabranch;

#[test]
fn all_schemes_are_listed_with_their_parameters_and_sources() {
    let ended = anabranch(&["schemes"]).with_status(0);
    for expected in ["sctp", "naive-cmt", "cmt-pf", "source: RFC 9260", "trigger", "3 missing reports"] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
}

#[test]
fn a_card_shows_what_the_parameters_take() {
    let ended = anabranch(&["schemes", "cmt-pf"]).with_status(0);
    for expected in ["pf1, pf2", "RFC 7829", "0ms to 500ms", "on several paths at once", "true, false"] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
    assert!(!ended.out.contains("naive-cmt"));
}

#[test]
fn an_unknown_scheme_is_answered_with_the_nearest() {
    let ended = anabranch(&["schemes", "cmt-fp"]).with_status(2);
    assert!(ended.err.contains("did you mean `cmt-pf`?"), "{}", ended.err);
    let ended = anabranch(&["schemes", "cmt(trigger=4)"]).with_status(2);
    assert!(ended.err.contains("anabranch schemes cmt"), "{}", ended.err);
}

#[test]
fn json_gives_every_card() {
    let all: Value =
        serde_json::from_str(&anabranch(&["schemes", "--json"]).with_status(0).out).expect("JSON");
    let all = all.as_array().expect("an array");
    let cmt = all.iter().find(|scheme| scheme["name"] == "cmt").expect("cmt");
    assert_eq!(cmt["multipath"], true);
    assert!(cmt["about"].is_string() && cmt["source"].is_string());
    let parameters = cmt["parameters"].as_array().expect("an array");
    let parameter = |name: &str| parameters.iter().find(|p| p["name"] == name).expect("a parameter");
    assert_eq!(parameter("rtx")["kind"], "choice");
    assert!(parameter("rtx")["choices"].as_array().is_some_and(|names| names.len() == 5));
    assert_eq!(parameter("sfr")["default"], true);
    assert_eq!(parameter("sack-delay")["unit"], "ms");
    let trigger = parameter("trigger");
    let bounds = [&trigger["min"], &trigger["max"], &trigger["default"]].map(Value::as_u64);
    assert_eq!(bounds, [Some(1), Some(100), Some(3)]);
    let one: Value =
        serde_json::from_str(&anabranch(&["schemes", "cmt", "--json"]).with_status(0).out).expect("JSON");
    assert_eq!(one.as_array().map(Vec::as_slice), Some(std::slice::from_ref(cmt)));
}

#[test]
fn help_has_examples_and_the_version_is_printed() {
    for arguments in [&["--help"][..], &["run", "--help"], &["schemes", "--help"]] {
        let ended = anabranch(arguments).with_status(0);
        assert!(ended.out.contains("Examples:\n"), "{}", ended.out);
    }
    let ended = anabranch(&["--version"]).with_status(0);
    assert_eq!(ended.out, format!("anabranch {}\n", env!("CARGO_PKG_VERSION")));
    anabranch(&[]).with_status(2);
}
