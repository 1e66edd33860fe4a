//! Scenarios and plans that are part of the program.

/// File in the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File {
    /// Name without the extension, which commands accept.
    pub(crate) name: &'static str,
    /// Content, with comments.
    pub(crate) text: &'static str,
}

impl File {
    /// Returns the name of the file that is written.
    pub(crate) fn file_name(&self) -> String {
        format!("{}.toml", self.name)
    }

    /// Returns the first sentence of its comment.
    pub(crate) fn about(&self) -> String {
        let lines: Vec<&str> = self.text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        let text = lines.join(" ");
        let end = text.find(". ").into_iter().chain(text.find("? ")).min();
        text[..end.map_or(text.len(), |end| end + 1)].to_owned()
    }
}

macro_rules! files {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(File { name: $name, text: include_str!(concat!("../../../", $folder, "/", $name, ".toml")) }),*]
    };
}

/// Scenarios of `anabranch run NAME`.
pub(crate) const SCENARIOS: &[File] = files!(
    "scenarios": "one-path", "two-path", "bad-path", "outage", "handover", "file", "forward", "shared-bottleneck", "three-path-qa",
    "db-cmt-fig6",
);

/// Plans of `anabranch sweep`, which refer to the scenarios.
pub(crate) const PLANS: &[File] = files!("scenarios/sweeps": "second-path", "until-exact");

/// Returns the scenario with this name.
pub(crate) fn scenario(name: &str) -> Option<&'static File> {
    SCENARIOS.iter().find(|file| file.name == name)
}

/// Returns the text of a plan in the same folder as its scenario.
pub(crate) fn with_local_scenario(plan: &File) -> String {
    plan.text.replace("scenario = \"../", "scenario = \"").replace("scenarios/sweeps/", "")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use anabranch_scenario::Scenario;

    use super::*;

    fn stems(folder: &str) -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let files = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        files
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .map(|path| path.file_stem().expect("a name").to_str().expect("text").to_owned())
            .collect()
    }

    #[test]
    fn every_scenario_and_plan_of_the_repository_is_built_in() {
        let names = |files: &[File]| files.iter().map(|file| file.name.to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(names(SCENARIOS), stems("scenarios"));
        assert_eq!(names(PLANS), stems("scenarios/sweeps"));
    }

    #[test]
    fn source_distribution_contains_built_in_files() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pyproject.toml");
        let text = std::fs::read_to_string(file).expect("pyproject.toml");
        assert!(text.contains(r#"{ path = "scenarios/**/*.toml", format = "sdist" }"#));
    }

    #[test]
    fn every_scenario_is_valid_and_has_a_description() {
        for file in SCENARIOS {
            Scenario::parse(file.text, file.name, &[]).expect(file.name);
            let about = file.about();
            assert!(about.len() > 20 && about.ends_with(['.', '?']), "{}: {about}", file.name);
        }
    }

    #[test]
    fn a_plan_names_a_scenario_beside_it() {
        for plan in PLANS {
            let text = with_local_scenario(plan);
            let named = text.lines().find_map(|line| line.strip_prefix("scenario = \"")).expect("a scenario");
            let name = named.split(".toml\"").next().expect("a name");
            assert!(scenario(name).is_some(), "{}: {named}", plan.name);
            assert!(!text.contains("../") && !text.contains("scenarios/"), "{text}");
        }
    }
}
