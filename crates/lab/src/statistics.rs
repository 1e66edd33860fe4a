//! Means with their confidence intervals.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Mean of a sample and half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Sample size.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Half-width by Student's t. `None` for a single value, and for values that are all equal.
    pub half_width: Option<f64>,
}

impl Summary {
    /// Summarises a sample. Returns `None` if it is empty.
    ///
    /// ```
    /// let summary = anabranch_lab::statistics::Summary::of([1.0, 2.0, 3.0]).unwrap();
    /// assert_eq!(summary.mean, 2.0);
    /// assert!((summary.half_width.unwrap() - 2.484).abs() < 1e-3);
    /// ```
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Summary> {
        let values: Vec<f64> = values.into_iter().collect();
        let n = values.len();
        if n == 0 {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let all_equal = values.iter().all(|v| *v == values[0]);
        let half_width = (n > 1 && !all_equal).then(|| {
            let deviation = (squares / (n - 1) as f64).sqrt();
            t_quantile(n - 1) * deviation / (n as f64).sqrt()
        });
        Some(Summary { n, mean, half_width })
    }
}

/// Returns the sum of `values`. [`Iterator::sum`] returns a negative zero for no values, which is printed with its sign.
///
/// ```
/// use anabranch_lab::statistics::total;
/// assert_eq!(format!("{:.2}", total([])), "0.00");
/// assert_eq!(total([1.5, 2.0]), 3.5);
/// ```
pub fn total(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |sum, value| sum + value)
}

/// Returns Jain's fairness index (Jain, Chiu, Hawe 1984): (sum of x)^2 / (n sum of x^2). The index is 1 if all values are equal,
/// and 1/n if all but one are zero. Returns `None` if all values are zero.
///
/// ```
/// use anabranch_lab::statistics::jain_index;
/// assert_eq!(jain_index([5.0, 5.0]), Some(1.0));
/// assert_eq!(jain_index([2.0, 1.0]), Some(0.9));
/// ```
pub fn jain_index(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (mut n, mut sum, mut squares) = (0_u32, 0.0, 0.0);
    for value in values {
        n += 1;
        sum += value;
        squares += value * value;
    }
    (squares > 0.0).then(|| sum * sum / (f64::from(n) * squares))
}

/// Returns the 97.5 % quantile of Student's t.
fn t_quantile(degrees: usize) -> f64 {
    StudentsT::new(0.0, 1.0, degrees as f64).map_or(f64::NAN, |t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identical_values_and_single_ones_have_no_interval() {
        assert_eq!(Summary::of([5.0; 4]).and_then(|s| s.half_width), None);
        assert_eq!(Summary::of([5.0]).and_then(|s| s.half_width), None);
        assert_eq!(Summary::of([]), None);
    }

    #[test]
    fn jain_finds_the_fair_and_the_unfair() {
        // (1 + 1 + 1)^2 / (3 * 3), 4^2 / (2 * 16), (3 + 1)^2 / (2 * 10).
        assert_eq!(jain_index([1.0; 3]), Some(1.0));
        assert_eq!(jain_index([4.0, 0.0]), Some(0.5));
        assert_eq!(jain_index([3.0, 1.0]), Some(0.8));
        assert_eq!(jain_index([0.0, 0.0]), None);
        assert_eq!(jain_index([]), None);
    }

    #[test]
    fn the_interval_narrows_to_the_normal_one() {
        assert!((t_quantile(9) - 2.262_157).abs() < 1e-5);
        assert!((t_quantile(100_000) - 1.959_988).abs() < 1e-4);
    }
}
