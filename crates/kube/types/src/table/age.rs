//! How long ago, in few letters.

use aro_base::{SignedDuration, Timestamp};

/// As upstream shortens durations: `5s`, `3m20s`, `2h5m`, `3d4h`, `2y10d`.
pub fn human_duration(duration: SignedDuration) -> String {
    let pair = |large: i64, unit: &str, small: i64, sub: &str| {
        if small == 0 { format!("{large}{unit}") } else { format!("{large}{unit}{small}{sub}") }
    };
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match () {
        // Clocks differ a little; more than that is a mistake.
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => pair(days, "d", hours % 24, "h"),
        () if days < 365 * 2 => format!("{days}d"),
        () if days < 365 * 8 => pair(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

/// The time since then; absent and unreadable times are unknown.
pub fn since(then: &str, now: Timestamp) -> String {
    match then.parse::<Timestamp>() {
        Ok(then) => human_duration(now.duration_since(then)),
        Err(_) => "<unknown>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        const M: i64 = 60;
        const H: i64 = 60 * M;
        const D: i64 = 24 * H;
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (10 * M, "10m"),
            (3 * H, "3h"),
            (3 * H + M, "3h1m"),
            (8 * H, "8h"),
            (47 * H, "47h"),
            (2 * D, "2d"),
            (2 * D + 3 * H, "2d3h"),
            (8 * D, "8d"),
            (400 * D, "400d"),
            (731 * D, "2y1d"),
            (3000 * D, "8y"),
        ] {
            assert_eq!(human_duration(SignedDuration::from_secs(seconds)), text, "{seconds}");
        }
    }
}
