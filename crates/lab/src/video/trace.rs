//! Frame trace as a file: CSV with a row for each frame in coding order, which is the order of transmission.
//!
//! Columns: `number` from 0; `type`; `size_bytes`; `time_ms`, the time of the frame's transmission. Further columns are ignored,
//! and the display order follows from the types.

use std::io::Read;

use thiserror::Error;

use crate::video::frame::display_order;
use crate::video::{Frame, FrameType};

/// Maximum number of frames: an hour at 30 per second.
pub const MOST_FRAMES: usize = 108_000;
/// Maximum number of bytes of all frames.
const MOST_STREAM_BYTES: u64 = 1 << 30;
/// Latest time in ms, about the maximum duration of a scenario.
const LATEST_MS: f64 = 4e9;
/// Maximum number of bytes that are read of a file. Valid traces are shorter.
const MOST_FILE_BYTES: u64 = 64 << 20;
/// Number of characters of an invalid value that an error shows.
const SHOWN_CHARACTERS: usize = 24;

const COLUMNS: [&str; 4] = ["number", "type", "size_bytes", "time_ms"];

/// Frames in coding order.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameTrace {
    frames: Vec<Frame>,
}

/// Error in a trace, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}{message}; {remedy}", line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct TraceFault {
    /// Number of the line, if the error is in one.
    pub line: Option<u64>,
    /// Description of the error.
    pub message: String,
    /// Remedy for the user.
    pub remedy: String,
}

impl FrameTrace {
    /// Reads a trace.
    ///
    /// # Errors
    /// Returns the first error in the trace.
    pub fn read(file: impl Read) -> Result<FrameTrace, TraceFault> {
        Self::read_up_to(file, MOST_FILE_BYTES)
    }

    fn read_up_to(file: impl Read, most_bytes: u64) -> Result<FrameTrace, TraceFault> {
        let limited = file.take(most_bytes + 1);
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(limited);
        let headers = reader.headers().map_err(|error| unreadable(&error))?.clone();
        let columns = columns(&headers)?;
        let mut frames: Vec<Frame> = Vec::new();
        let mut total_bytes: u64 = 0;
        let mut record = csv::StringRecord::new();
        while reader.read_record(&mut record).map_err(|error| unreadable(&error))? {
            let row = Row { record: &record, columns, line: record.position().map(csv::Position::line) };
            if frames.len() == MOST_FRAMES || reader.position().byte() > most_bytes {
                return Err(too_long(row.line, most_bytes));
            }
            let frame = row.frame(frames.len(), frames.last())?;
            total_bytes += frame.size_bytes;
            if total_bytes > MOST_STREAM_BYTES {
                let message = format!("frames up to here have more than {MOST_STREAM_BYTES} bytes");
                return Err(row.fault(message, "cut the clip into shorter ones, or code it with fewer bits"));
            }
            frames.push(frame);
        }
        // Empty lines are no rows, so data may follow them.
        if reader.position().byte() > most_bytes {
            return Err(too_long(None, most_bytes));
        }
        Self::of(frames)
    }

    fn of(mut frames: Vec<Frame>) -> Result<FrameTrace, TraceFault> {
        let kinds: Vec<FrameType> = frames.iter().map(|frame| frame.kind).collect();
        let display = display_order(&kinds);
        frames.iter_mut().zip(display).for_each(|(frame, display)| frame.display = display);
        let Some(first) = frames.first() else {
            let message = "it has no frame".to_owned();
            return Err(TraceFault { line: None, message, remedy: "write a row for each frame".to_owned() });
        };
        let from_ms = first.time_ms;
        frames.iter_mut().for_each(|frame| frame.time_ms -= from_ms);
        Ok(FrameTrace { frames })
    }

    /// Returns the frames in coding order. The first one has time 0.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }
}

/// Returns the indices of the columns.
fn columns(headers: &csv::StringRecord) -> Result<[usize; 4], TraceFault> {
    let mut columns = [0; 4];
    for (place, name) in columns.iter_mut().zip(COLUMNS) {
        let Some(found) = headers.iter().position(|header| header.trim() == name) else {
            let message = format!("no column `{name}`");
            let remedy = format!("begin the file with a line of names: {}", COLUMNS.join(","));
            return Err(TraceFault { line: Some(1), message, remedy });
        };
        *place = found;
    }
    Ok(columns)
}

fn too_long(line: Option<u64>, most_bytes: u64) -> TraceFault {
    let message = format!("it has more than {MOST_FRAMES} frames or {most_bytes} bytes");
    TraceFault { line, message, remedy: "cut the clip into shorter ones".to_owned() }
}

fn unreadable(error: &csv::Error) -> TraceFault {
    let line = error.position().map(csv::Position::line);
    let message = match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "this is not text in UTF-8".to_owned(),
        csv::ErrorKind::Io(error) => format!("it cannot be read: {error}"),
        _ => "this is not a row of CSV".to_owned(),
    };
    TraceFault { line, message, remedy: "write the trace as CSV in UTF-8".to_owned() }
}

struct Row<'a> {
    record: &'a csv::StringRecord,
    columns: [usize; 4],
    line: Option<u64>,
}

impl Row<'_> {
    fn fault(&self, message: String, remedy: impl Into<String>) -> TraceFault {
        TraceFault { line: self.line, message, remedy: remedy.into() }
    }

    fn text(&self, column: usize) -> &str {
        self.record.get(self.columns[column]).unwrap_or("").trim()
    }

    /// Returns the value of a column, or an error with the expected value.
    fn read<T>(&self, column: usize, value: Option<T>, expected: &str) -> Result<T, TraceFault> {
        value.ok_or_else(|| {
            let shown: String = self.text(column).chars().take(SHOWN_CHARACTERS).collect();
            self.fault(format!("`{}` is {shown:?}", COLUMNS[column]), format!("it has to be {expected}"))
        })
    }

    /// Returns the frame of this row, without its index in the display order.
    fn frame(&self, number: usize, before: Option<&Frame>) -> Result<Frame, TraceFault> {
        let counted = self.text(0).parse::<usize>().ok().filter(|given| *given == number);
        self.read(0, counted, &format!("{number}: frames are numbered from 0 in coding order"))?;
        let kind = self.read(1, FrameType::of(self.text(1)), "I, P or B")?;
        let size = self.text(2).parse::<u64>().ok().filter(|size| (1..=MOST_STREAM_BYTES).contains(size));
        let size_bytes =
            self.read(2, size, &format!("a whole number of bytes from 1 to {MOST_STREAM_BYTES}"))?;
        let earliest = before.map_or(0.0, |frame| frame.time_ms);
        let time = self.text(3).parse::<f64>().ok().filter(|time| (earliest..=LATEST_MS).contains(time));
        let expected =
            format!("milliseconds from {earliest} on, when the frame before is handed over, to {LATEST_MS}");
        let time_ms = self.read(3, time, &expected)?;
        Ok(Frame { display: 0, kind, size_bytes, time_ms })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<FrameTrace, TraceFault> {
        FrameTrace::read(text.as_bytes())
    }

    const HEAD: &str = "number,type,size_bytes,time_ms,display\n";

    #[test]
    fn trace_gives_frames_from_time_zero() {
        let trace = read(&format!("{HEAD}0,I,900,5,0\n1,P,300,45,2\n2,B,100,85,1\n")).expect("a trace");
        let display: Vec<usize> = trace.frames().iter().map(|frame| frame.display).collect();
        assert_eq!(display, [0, 2, 1]);
        assert_eq!(trace.frames()[2].time_ms, 80.0);
    }

    #[test]
    fn columns_may_stand_in_any_order_among_others() {
        let trace = read("time_ms,note,type,number,size_bytes\n0,x,I,0,7\n").expect("a trace");
        assert_eq!(trace.frames()[0].size_bytes, 7);
    }

    #[test]
    fn invalid_trace_is_refused_with_line_and_remedy() {
        for (text, expected) in [
            ("", "line 1: no column `number`; begin the file with"),
            (HEAD, "it has no frame; write a row"),
            ("number,type,size_bytes\n", "line 1: no column `time_ms`"),
            (&format!("{HEAD}1,I,9,0,0\n"), "line 2: `number` is \"1\"; it has to be 0"),
            (&format!("{HEAD}0,I,9,0,0\n0,I,9,0,0\n"), "line 3: `number` is \"0\"; it has to be 1"),
            (
                &format!("{HEAD}0,X\u{1b}[2J,9,0,0\n"),
                "line 2: `type` is \"X\\u{1b}[2J\"; it has to be I, P or B",
            ),
            (&format!("{HEAD}0,I,0,0,0\n"), "line 2: `size_bytes` is \"0\"; it has to be a whole number"),
            (&format!("{HEAD}0,I,-4,0,0\n"), "line 2: `size_bytes` is \"-4\""),
            (&format!("{HEAD}0,I,9,NaN,0\n"), "line 2: `time_ms` is \"NaN\""),
            (&format!("{HEAD}0,I,9,inf,0\n"), "line 2: `time_ms` is \"inf\""),
            (
                &format!("{HEAD}0,I,9,40,0\n1,P,9,39,0\n"),
                "line 3: `time_ms` is \"39\"; it has to be milliseconds from 40",
            ),
            (&format!("{HEAD}0,I\n"), "line 2: `size_bytes` is \"\""),
            (
                &format!("{HEAD}0,I,1073741824,0,0\n1,P,1,0,0\n"),
                "line 3: frames up to here have more than 1073741824 bytes",
            ),
        ] {
            let error = read(text).expect_err(text).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        let error = FrameTrace::read(&b"number,type\xff\n"[..]).expect_err("no text").to_string();
        assert!(error.contains("not text in UTF-8"), "{error}");
    }

    #[test]
    fn frames_beyond_the_bound_are_refused() {
        let mut text = HEAD.to_owned();
        (0..=MOST_FRAMES).for_each(|number| text += &format!("{number},B,1,0,0\n"));
        let error = read(&text).expect_err("one too many").to_string();
        assert!(error.starts_with("line 108002: it has more than 108000 frames"), "{error}");
    }

    #[test]
    fn a_file_beyond_the_bound_is_refused_and_not_cut() {
        let rows = format!("{HEAD}0,I,9,0,0\n1,P,9,40,1\n");
        let read = |text: &str| FrameTrace::read_up_to(text.as_bytes(), rows.len() as u64);
        assert_eq!(read(&rows).expect("as long as may be").frames().len(), 2);
        for more in ["2,P,9,80,2\n", "2", "\n"] {
            let error = read(&format!("{rows}{more}")).expect_err(more).to_string();
            assert!(error.contains("more than 108000 frames or 60 bytes"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_trace_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = FrameTrace::read(&bytes[..]);
            let mut text = HEAD.as_bytes().to_vec();
            text.extend_from_slice(&bytes);
            let _ = FrameTrace::read(&text[..]);
        }

        #[test]
        fn written_trace_is_read_unchanged(
            rows in proptest::collection::vec((0usize..3, 1u64..100_000, 0u32..100), 1..60)
        ) {
            let mut text = HEAD.to_owned();
            let mut time_ms = 0.0;
            for (number, (kind, size, gap)) in rows.iter().enumerate() {
                text += &format!("{number},{},{size},{time_ms},\n", FrameType::ALL[*kind].letter());
                time_ms += f64::from(*gap);
            }
            let trace = read(&text).expect("a trace");
            let found: Vec<(usize, u64)> =
                trace.frames().iter().map(|f| (FrameType::ALL.iter().position(|k| *k == f.kind).unwrap_or(9), f.size_bytes)).collect();
            let written: Vec<(usize, u64)> = rows.iter().map(|(kind, size, _)| (*kind, *size)).collect();
            prop_assert_eq!(found, written);
            let mut display: Vec<usize> = trace.frames().iter().map(|frame| frame.display).collect();
            display.sort_unstable();
            prop_assert!(display.into_iter().eq(0..rows.len()));
        }
    }
}
