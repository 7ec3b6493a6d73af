//! Numbers that may be given as a share of a whole.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Which way a share is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Round {
    Up,
    Down,
}

/// A number, or a share of `whole` such as `25%`. `None`: it is neither.
pub fn of_whole(value: &IntOrString, whole: i32, round: Round) -> Option<i32> {
    match value {
        IntOrString::Int(number) => Some(*number),
        IntOrString::String(text) => {
            let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
            let hundredfold = percent.checked_mul(whole.into())?;
            let share = match round {
                Round::Up => hundredfold.checked_add(99)?.div_euclid(100),
                Round::Down => hundredfold.div_euclid(100),
            };
            i32::try_from(share).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_rounded_as_asked() {
        let percent =
            |text: &str, whole, round| of_whole(&IntOrString::String(text.to_owned()), whole, round);
        assert_eq!(of_whole(&IntOrString::Int(3), 10, Round::Up), Some(3));
        assert_eq!(percent("25%", 10, Round::Up), Some(3));
        assert_eq!(percent("25%", 10, Round::Down), Some(2));
        assert_eq!(percent("100%", 7, Round::Down), Some(7));
        assert_eq!(percent("0%", 7, Round::Up), Some(0));
        assert_eq!(percent("x%", 7, Round::Up), None);
        assert_eq!(percent("7", 7, Round::Up), None);
        assert_eq!(percent("9223372036854775807%", i32::MAX, Round::Up), None);
    }
}
