//! Types of frames of a coded video.

/// Prediction of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameType {
    /// No prediction.
    I,
    /// Prediction from the reference, I or P, before it in coding order.
    P,
    /// Prediction from the two references before it in coding order, between which it is displayed.
    B,
}

impl FrameType {
    /// All types, in the order of results.
    pub const ALL: [FrameType; 3] = [FrameType::I, FrameType::P, FrameType::B];

    /// Returns the type with this letter.
    pub fn of(letter: &str) -> Option<FrameType> {
        FrameType::ALL.into_iter().find(|kind| kind.letter() == letter)
    }

    /// Returns the letter of the type.
    pub fn letter(self) -> &'static str {
        match self {
            FrameType::I => "I",
            FrameType::P => "P",
            FrameType::B => "B",
        }
    }

    /// Returns `true` if other frames are predicted from this type.
    pub fn is_reference(self) -> bool {
        self != FrameType::B
    }
}
