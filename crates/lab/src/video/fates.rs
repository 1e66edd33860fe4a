//! Outcome of each frame, from the arrival of its packets and of the frames that it is predicted from. The book defines the rule
//! (chapter "Real-time video"). A late frame is discarded, as in EvalVid, even if a decoder could have used it for others.

use crate::video::{Frame, FrameType};

/// Outcome of a frame: the first of these that applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A packet did not arrive.
    Lost,
    /// The last packet arrived after the playout.
    Late,
    /// A frame that it is predicted from is not good.
    Undecodable,
    /// All packets and references arrived in time.
    Good,
}

impl Fate {
    /// All fates, in the order in which they are checked.
    pub const ALL: [Fate; 4] = [Fate::Lost, Fate::Late, Fate::Undecodable, Fate::Good];

    /// Returns the name in tables.
    pub fn word(self) -> &'static str {
        match self {
            Fate::Lost => "lost",
            Fate::Late => "late",
            Fate::Undecodable => "undecodable",
            Fate::Good => "good",
        }
    }
}

/// Outcome of a frame, and the arrival of its last packet if all arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delivery {
    /// Frame of the trace.
    pub frame: Frame,
    /// Outcome of the frame.
    pub fate: Fate,
    /// Time of completion on the clock of the trace, in ms.
    pub complete_ms: Option<f64>,
}

impl Delivery {
    /// Returns the time from the transmission of the frame to its last packet, in ms.
    pub fn delay_ms(&self) -> Option<f64> {
        self.complete_ms.map(|complete_ms| complete_ms - self.frame.time_ms)
    }
}

/// Times at which frames are shown. The intervals between transmissions are those of the display: frame *d* of the display order is
/// shown `deadline_ms` and the reordering after the *d*-th transmission. The reordering is the longest time by which coding order
/// delays a frame, so each frame has at least the deadline from its own transmission.
#[derive(Clone, Debug, PartialEq)]
pub struct Playout {
    deadline_ms: f64,
    reordering_ms: f64,
    /// Times of transmission, in their order.
    times_ms: Vec<f64>,
}

impl Playout {
    /// Returns the playout of these frames, which are in coding order.
    pub fn of(frames: &[Frame], deadline_ms: f64) -> Playout {
        let times_ms: Vec<f64> = frames.iter().map(|frame| frame.time_ms).collect();
        let at = |display: usize| times_ms.get(display).or(times_ms.last()).copied().unwrap_or(0.0);
        let delays = frames.iter().map(|frame| frame.time_ms - at(frame.display));
        let reordering_ms = delays.fold(0.0, f64::max);
        Playout { deadline_ms, reordering_ms, times_ms }
    }

    /// Returns the time at which a frame is due, rounded to the microsecond.
    pub fn due_ms(&self, frame: &Frame) -> f64 {
        let time_ms = self.times_ms.get(frame.display).or(self.times_ms.last()).copied().unwrap_or(0.0);
        ((self.deadline_ms + time_ms + self.reordering_ms) * 1000.0).round() / 1000.0
    }

    /// Returns the time for which a frame of the display order is shown: until the next one, and the last as long as the one
    /// before.
    pub fn shown_for_ms(&self, display: usize) -> f64 {
        let Some(last) = self.times_ms.len().checked_sub(2) else { return 0.0 };
        let from = display.min(last);
        self.times_ms[from + 1] - self.times_ms[from]
    }
}

/// Returns the outcome of each frame in coding order, from its time of completion.
pub fn deliveries(frames: &[Frame], complete_ms: &[Option<f64>], playout: &Playout) -> Vec<Delivery> {
    // State of the last two references in coding order. Before two references exist, none is good.
    let (mut older, mut newer) = (false, false);
    let judge = |(frame, &complete_ms): (&Frame, &Option<f64>)| {
        let decodable = match frame.kind {
            FrameType::I => true,
            FrameType::P => newer,
            FrameType::B => older && newer,
        };
        let fate = match complete_ms {
            None => Fate::Lost,
            Some(complete) if complete > playout.due_ms(frame) => Fate::Late,
            Some(_) if decodable => Fate::Good,
            Some(_) => Fate::Undecodable,
        };
        if frame.kind.is_reference() {
            (older, newer) = (newer, fate == Fate::Good);
        }
        Delivery { frame: *frame, fate, complete_ms }
    };
    frames.iter().zip(complete_ms).map(judge).collect()
}

/// Returns the arrival of the last packet of each frame. A frame without packets is never complete.
pub fn completions(
    frames: usize,
    packet_frames: impl Iterator<Item = usize>,
    arrivals_ms: &[Option<f64>],
) -> Vec<Option<f64>> {
    // Flag for missing packets, and the last arrival. A frame without packets has no arrival.
    let mut found: Vec<(bool, Option<f64>)> = vec![(false, None); frames];
    for (packet, frame) in packet_frames.enumerate() {
        let Some((missing, last)) = found.get_mut(frame) else { continue };
        match arrivals_ms.get(packet).copied().flatten() {
            Some(arrival) => *last = Some(last.map_or(arrival, |last| last.max(arrival))),
            None => *missing = true,
        }
    }
    found.into_iter().map(|(missing, last)| last.filter(|_| !missing)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::video::frame::display_order;

    fn frames(letters: &str) -> Vec<Frame> {
        let kinds: Vec<FrameType> = letters.split("").filter_map(FrameType::of).collect();
        let display = display_order(&kinds);
        let frame = |(number, kind): (usize, &FrameType)| Frame {
            display: display[number],
            kind: *kind,
            size_bytes: 100,
            time_ms: number as f64 * 100.0,
        };
        kinds.iter().enumerate().map(frame).collect()
    }

    /// Returns outcomes as letters in coding order, with some lost and some late frames.
    fn fates(letters: &str, lost: &[usize], late: &[usize]) -> String {
        let frames = frames(letters);
        let playout = Playout::of(&frames, 50.0);
        let complete = |(number, frame): (usize, &Frame)| {
            let after = if late.contains(&number) { 0.5 } else { 0.0 };
            (!lost.contains(&number)).then(|| playout.due_ms(frame) + after)
        };
        let complete: Vec<Option<f64>> = frames.iter().enumerate().map(complete).collect();
        let letter = |each: Delivery| each.fate.word().chars().next().filter(|_| each.fate != Fate::Late);
        deliveries(&frames, &complete, &playout).into_iter().map(|each| letter(each).unwrap_or('t')).collect()
    }

    #[test]
    fn a_lost_i_frame_costs_its_group_and_the_b_frames_before_it() {
        // Display order IBBPBBPBB IBBPBBPBB I; coding order has the second I before the B frames that end the first group.
        let stream = "IPBBPBBIBBPBBPBBIBB";
        assert_eq!(fates(stream, &[], &[]), "g".repeat(19));
        assert_eq!(fates(stream, &[7], &[]), "gggggggluuuuuuuuguu");
    }

    #[test]
    fn a_lost_last_p_frame_costs_the_b_frames_on_both_sides() {
        assert_eq!(fates("IPBBPBBIBBPBB", &[4], &[]), "gggglu".to_owned() + "uguuggg");
    }

    #[test]
    fn late_frame_is_discarded_and_late_b_frame_affects_no_other() {
        assert_eq!(fates("IPBBPBBIBB", &[], &[1]), "gtuuuuuguu");
        assert_eq!(fates("IPBBPBBIBB", &[2], &[3]), "gglt".to_owned() + "gggggg");
    }

    #[test]
    fn frame_is_complete_on_its_last_packet_and_never_without_packets() {
        let complete = completions(3, [0, 0, 1, 1].into_iter(), &[Some(5.0), Some(3.0), Some(1.0), None]);
        assert_eq!(complete, [Some(5.0), None, None]);
    }

    #[test]
    fn a_frame_that_is_complete_exactly_when_it_is_due_is_in_time() {
        let frames = frames("IPBB");
        let playout = Playout::of(&frames, 50.0);
        // B frame 2 of coding order is displayed as number 1: coding delays it by one interval.
        assert_eq!(playout.due_ms(&frames[2]), 250.0);
        assert_eq!(playout.due_ms(&frames[0]), 150.0);
    }

    #[test]
    fn frames_at_varying_intervals_are_due_at_their_own_times() {
        let mut frames = frames("IPPP");
        for (frame, time_ms) in frames.iter_mut().zip([0.0, 20.0, 1020.0, 1040.0]) {
            frame.time_ms = time_ms;
        }
        let playout = Playout::of(&frames, 50.0);
        assert_eq!(
            frames.iter().map(|frame| playout.due_ms(frame)).collect::<Vec<f64>>(),
            [50.0, 70.0, 1070.0, 1090.0]
        );
        assert_eq!([0, 1, 2, 3].map(|display| playout.shown_for_ms(display)), [20.0, 1000.0, 20.0, 20.0]);
    }

    #[test]
    fn reordering_across_a_long_interval_leaves_each_frame_its_deadline() {
        let mut frames = frames("IPBB");
        for (frame, time_ms) in frames.iter_mut().zip([0.0, 500.0, 510.0, 520.0]) {
            frame.time_ms = time_ms;
        }
        let playout = Playout::of(&frames, 50.0);
        for frame in &frames {
            assert!(playout.due_ms(frame) >= frame.time_ms + 50.0, "{frame:?}");
        }
    }
}
