//! Outcome of the frames of a coded video, for arrivals from other sources than simulated runs.

use anabranch_lab::video::{Delivery, Fate, Frame, FrameType, Playout, VideoResult, completions};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Frames in coding order: type, index in the display order, and time of transmission in milliseconds.
type Frames = Vec<(String, usize, f64)>;

fn frames_of(frames: Frames) -> PyResult<Vec<Frame>> {
    let frame = |(letter, display, time_ms): (String, usize, f64)| {
        let kind = FrameType::of(&letter).ok_or_else(|| PyValueError::new_err("a frame is I, P or B"))?;
        Ok(Frame { display, kind, size_bytes: 0, time_ms })
    };
    frames.into_iter().map(frame).collect()
}

/// Returns the time at which each frame is due, in milliseconds after the transmission of the first one.
#[pyfunction]
pub fn video_due_ms(frames: Frames, deadline_ms: f64) -> PyResult<Vec<f64>> {
    let frames = frames_of(frames)?;
    let playout = Playout::of(&frames, deadline_ms);
    Ok(frames.iter().map(|frame| playout.due_ms(frame)).collect())
}

/// Returns the outcome of each frame in coding order and its time of completion, from the frame and the arrival of each packet.
#[pyfunction]
pub fn video_fates(
    frames: Frames,
    packet_frames: Vec<usize>,
    arrivals_ms: Vec<Option<f64>>,
    deadline_ms: f64,
) -> PyResult<Vec<(&'static str, Option<f64>)>> {
    let frames = frames_of(frames)?;
    let playout = Playout::of(&frames, deadline_ms);
    let complete = completions(frames.len(), packet_frames.into_iter(), &arrivals_ms);
    let found = anabranch_lab::video::deliveries(&frames, &complete, &playout);
    Ok(found.into_iter().map(|each| (each.fate.word(), each.complete_ms)).collect())
}

/// Returns the measures of delivery as JSON, in the form of runs, from the outcome of each frame and its time of completion.
#[pyfunction]
pub fn video_measures(frames: Frames, fates: Vec<(String, Option<f64>)>) -> PyResult<String> {
    let delivery = |(frame, (word, complete_ms)): (Frame, (String, Option<f64>))| {
        let fate = Fate::ALL.into_iter().find(|fate| fate.word() == word);
        let fate = fate.ok_or_else(|| PyValueError::new_err("a fate is good, lost, late or undecodable"))?;
        Ok(Delivery { frame, fate, complete_ms })
    };
    let frames = frames_of(frames)?;
    let playout = Playout::of(&frames, 0.0);
    let due: PyResult<Vec<Delivery>> = frames.into_iter().zip(fates).map(delivery).collect();
    let result = VideoResult::of(due?, 0, &playout);
    serde_json::to_string(&result).map_err(|error| PyValueError::new_err(error.to_string()))
}
