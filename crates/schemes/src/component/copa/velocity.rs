//! Velocity of the window (Arun and Balakrishnan 2018, section 2.1, step 3).

use crate::definition::{Equation, text};

pub(super) const RULES: &[Equation] = &[Equation {
    name: "section 2.1, velocity",
    rule: text!(
        "v doubles in each round in which the window moves in the same direction as in {} rounds; after \
         a change of direction, v = 1",
        STEADY_ROUNDS,
    ),
    file: file!(),
}];

/// Number of rounds in one direction before the window moves faster.
const STEADY_ROUNDS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// Velocity of a path's window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Velocity {
    value: f64,
    direction: Direction,
    rounds: u32,
    cwnd_before: f64,
}

impl Velocity {
    /// Starts at this window.
    pub(super) fn at(cwnd: f64) -> Self {
        Velocity { value: 1.0, direction: Direction::Up, rounds: 0, cwnd_before: cwnd }
    }

    pub(super) fn get(&self) -> f64 {
        self.value
    }

    /// Ends a round with this window.
    pub(super) fn end_round(&mut self, cwnd: f64, most: f64) {
        let direction = if cwnd > self.cwnd_before { Direction::Up } else { Direction::Down };
        self.cwnd_before = cwnd;
        if direction != self.direction {
            *self = Velocity { direction, ..Velocity::at(cwnd) };
            return;
        }
        self.rounds += 1;
        if self.rounds >= STEADY_ROUNDS {
            self.value = (2.0 * self.value).min(most).max(1.0);
        }
    }

    /// Changes direction, because the rate has crossed its target.
    pub(super) fn turn(&mut self, up: bool) {
        let direction = if up { Direction::Up } else { Direction::Down };
        if direction != self.direction && self.value > 1.0 {
            *self = Velocity { direction, ..Velocity::at(self.cwnd_before) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn velocity_doubles_from_round_three_and_resets_on_direction_change() {
        let mut velocity = Velocity::at(10.0);
        let mut after = |cwnd| {
            velocity.end_round(cwnd, 6.0);
            velocity.get()
        };
        let values = [12.0, 14.0, 16.0, 20.0, 30.0, 29.0, 28.0].map(&mut after);
        assert_eq!(values, [1.0, 1.0, 2.0, 4.0, 6.0, 1.0, 1.0]);
    }

    #[test]
    fn velocity_does_not_carry_the_window_beyond_its_target() {
        let mut velocity = Velocity::at(10.0);
        (0..5).for_each(|round| velocity.end_round(20.0 + f64::from(round), 100.0));
        velocity.turn(true);
        assert_eq!(velocity.get(), 8.0);
        velocity.turn(false);
        assert_eq!(velocity.get(), 1.0);
    }
}
