//! When a file that is there counts as the one that is offered.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use anabranch_transfer::{OnClash, ServerOptions, Source};

use crate::support::{Serving, noise, run};

fn date_back(path: &Path) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::File::open(path).expect("open").set_modified(time).expect("set");
}

#[test]
fn a_file_of_the_same_size_and_time_is_not_taken_for_the_same() {
    run(async {
        let serving = Serving::start(OnClash::Overwrite, ServerOptions::default());
        let from = tempfile::tempdir().expect("a folder");
        let (file, there) = (from.path().join("file"), serving.dir.path().join("file"));
        let content = noise(1, 100_000);
        fs::write(&file, &content).expect("written");
        // Somebody else's, made to look the same.
        fs::write(&there, noise(2, 100_000)).expect("written");
        for path in [&file, &there] {
            date_back(path);
        }
        serving.send(vec![Source::path(&file)]).await.0.expect("sent");
        assert!(fs::read(&there).expect("there") == content, "another content counts as present");
    });
}
