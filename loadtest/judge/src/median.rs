//! The middle one of some numbers.

/// Of an even number of them the mean of the two in the middle; `None` of none.
#[must_use]
pub fn median(mut numbers: Vec<f64>) -> Option<f64> {
    numbers.sort_by(f64::total_cmp);
    let (low, high) = (numbers.len().checked_sub(1)? / 2, numbers.len() / 2);
    Some(f64::midpoint(*numbers.get(low)?, *numbers.get(high)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_told() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
