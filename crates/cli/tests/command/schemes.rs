//! `anabranch schemes`, help and version.

use serde_json::Value;

use crate::support::anabranch;

#[test]
fn all_schemes_are_listed_with_summary_and_source() {
    let ended = anabranch(&["schemes"]).with_status(0);
    for expected in ["Schemes\nsctp ", "\nnaive-cmt ", "\ncmt-pf ", "(RFC 9260)"] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
}

#[test]
fn a_card_shows_rules_parameters_and_open_points() {
    let ended = anabranch(&["schemes", "cmt-pf"]).with_status(0);
    for expected in [
        "new data  on several paths at once",
        "As `cmt`, but after one T3 expiry",
        "\nParameters\n",
        "pf1, pf2",
        "RFC 7829",
        "3 missing reports",
        "0ms to 500ms",
        "true, false",
        "\nRules\n",
        "\nSFR, split fast retransmit\n",
        "    crates/schemes/src/loss/missing_reports.rs\n",
        "\nOpen points and choices\n",
        "    Change it with: pf\n",
        "--schemes 'cmt-pf(pf=pf2)'",
    ] {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
    assert!(!ended.out.contains("naive-cmt"));
}

#[test]
fn an_unknown_scheme_is_answered_with_the_nearest() {
    let ended = anabranch(&["schemes", "cmt-fp"]).with_status(2);
    assert!(ended.err.contains("did you mean `cmt-pf`?"), "{}", ended.err);
    let ended = anabranch(&["schemes", "cmt(triger=4)"]).with_status(2);
    assert!(ended.err.contains("did you mean `trigger`?"), "{}", ended.err);
}

#[test]
fn an_expression_is_taken_apart() {
    let expression = "cmt( trigger=4, sfr=true )";
    let ended = anabranch(&["schemes", expression]).with_status(0);
    assert!(ended.out.starts_with("cmt(trigger=4,sfr=true)\n\ncmt "), "{}", ended.out);
    for expected in ["4 missing reports instead of 3: reports", "sfr         true: split", "200 ms: longest"]
    {
        assert!(ended.out.contains(expected), "no `{expected}` in:\n{}", ended.out);
    }
    let ended = anabranch(&["schemes", expression, "--json"]).with_status(0);
    let whole: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(whole["expression"], "cmt(trigger=4,sfr=true)");
    assert_eq!((&whole["scheme"]["name"], &whole["scheme"]["values"]["trigger"]), (&"cmt".into(), &4.into()));
    assert_eq!(whole["components"], Value::Array(Vec::new()));
    anabranch(&["schemes", expression, "--markdown"]).with_status(2);
}

#[test]
fn component_can_be_shown_and_added() {
    let all = anabranch(&["schemes", "--json"]).with_status(0);
    let all: Value = serde_json::from_str(&all.out).expect("JSON");
    let all = all.as_array().expect("an array");
    for component in all.iter().filter(|entry| entry["kind"] == "component") {
        let (name, example) = (component["name"].as_str(), component["example"].as_str());
        let (name, example) = (name.expect("a name"), example.expect("an example"));
        let card = anabranch(&["schemes", name]).with_status(0).out;
        assert!(card.contains("\nadd to ") && card.contains(&format!("--schemes '{example}'")), "{card}");
        let taken_apart = anabranch(&["schemes", example]).with_status(0).out;
        assert!(taken_apart.contains(&format!("\n+{name} ")), "{taken_apart}");
    }
}

#[test]
fn json_gives_every_card() {
    let all: Value =
        serde_json::from_str(&anabranch(&["schemes", "--json"]).with_status(0).out).expect("JSON");
    let all = all.as_array().expect("an array");
    let cmt = all.iter().find(|scheme| scheme["name"] == "cmt").expect("cmt");
    assert_eq!((&cmt["kind"], &cmt["multipath"]), (&"scheme".into(), &true.into()));
    assert!(cmt["about"].is_string() && cmt["source"].is_string() && cmt["components"].is_array());
    assert!(cmt["summary"].as_array().is_some_and(|lines| lines.iter().all(Value::is_string)));
    let rule = cmt["equations"].as_array().and_then(|rules| rules.first()).expect("a rule");
    assert!(["name", "rule", "place"].iter().all(|part| rule[part].is_string()), "{rule}");
    let choices = cmt["choices"].as_array().expect("an array");
    assert!(choices.iter().any(|choice| choice["parameters"][0] == "cuc"), "{choices:?}");
    assert!(choices.iter().any(|choice| choice["parameters"][0].is_null()), "{choices:?}");
    let parameters = cmt["parameters"].as_array().expect("an array");
    let parameter = |name: &str| parameters.iter().find(|p| p["name"] == name).expect("a parameter");
    assert_eq!(parameter("rtx")["kind"], "choice");
    let routes = parameter("rtx")["choices"].as_array().expect("an array");
    assert!(["rtx-same", "rtx-cwnd", "rtx-cl"].iter().all(|name| routes.contains(&Value::from(*name))));
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
