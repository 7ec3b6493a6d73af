//! Whether pods may be moved away from lost nodes, and how fast.
//!
//! When nearly all nodes seem lost at once, it is more likely that we are cut off than that they are all dead. Then
//! moving pods would make things worse.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::plan::Moving;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Normal,
    /// Many nodes of a large cluster are lost.
    Slow,
    /// Many nodes of a small cluster are lost.
    Halted,
    /// All nodes are lost.
    Full,
}

/// From this share of lost nodes on, in percent, moving slows down.
const MANY: usize = 55;
/// A cluster with more nodes is large.
const LARGE: usize = 50;
/// One node after the other.
const NORMAL_PAUSE: Duration = Duration::from_secs(10);
const SLOW_PAUSE: Duration = Duration::from_secs(100);
/// How often a halted cluster is looked at, beside changes.
const LOOK: Duration = Duration::from_secs(20);

impl Mode {
    /// How bad it is when so many of all nodes are lost.
    pub fn of(lost: usize, all: usize) -> Self {
        if lost == 0 {
            Self::Normal
        } else if lost == all {
            Self::Full
        } else if lost > 2 && lost * 100 >= all * MANY {
            if all > LARGE { Self::Slow } else { Self::Halted }
        } else {
            Self::Normal
        }
    }
}

/// Lets one node after the other be emptied.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    mode: Mode,
    /// When a node was last let through.
    last: Option<Instant>,
}

impl Gate {
    /// Notes how bad it is. Returns whether that is news.
    pub fn set(&self, mode: Mode) -> bool {
        std::mem::replace(&mut self.state.lock().mode, mode) != mode
    }

    pub fn mode(&self) -> Mode {
        self.state.lock().mode
    }

    /// Whether a node that wants to be emptied may be, and if not, when to ask again.
    pub fn ask(&self, wants: bool, now: Instant) -> (Moving, Option<Duration>) {
        let mut state = self.state.lock();
        let pause = match state.mode {
            Mode::Normal => NORMAL_PAUSE,
            Mode::Slow => SLOW_PAUSE,
            Mode::Halted => return (Moving::Later, wants.then_some(LOOK)),
            Mode::Full => return (Moving::Stopped, None),
        };
        if !wants {
            return (Moving::Later, None);
        }
        let since = state.last.map_or(pause, |last| now.saturating_duration_since(last));
        if since < pause {
            return (Moving::Later, Some(pause.saturating_sub(since)));
        }
        state.last = Some(now);
        (Moving::Allowed, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_lost_nodes_decides() {
        for (lost, all, mode) in [
            (0, 0, Mode::Normal),
            (0, 5, Mode::Normal),
            (1, 2, Mode::Normal),
            (2, 3, Mode::Normal),
            (1, 1, Mode::Full),
            (5, 5, Mode::Full),
            (3, 5, Mode::Halted),
            (2, 5, Mode::Normal),
            (60, 100, Mode::Slow),
            (50, 100, Mode::Normal),
        ] {
            assert_eq!(Mode::of(lost, all), mode, "{lost} of {all}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn nodes_are_emptied_one_after_the_other() {
        let (gate, start) = (Gate::default(), Instant::now());
        assert_eq!(gate.ask(true, start), (Moving::Allowed, None));
        let soon = start + Duration::from_secs(4);
        assert_eq!(gate.ask(true, soon), (Moving::Later, Some(Duration::from_secs(6))));
        assert_eq!(gate.ask(false, soon), (Moving::Later, None));
        assert_eq!(gate.ask(true, start + NORMAL_PAUSE), (Moving::Allowed, None));
        assert!(gate.set(Mode::Full) && !gate.set(Mode::Full));
        assert_eq!(gate.ask(true, start + NORMAL_PAUSE * 9).0, Moving::Stopped);
        gate.set(Mode::Halted);
        assert_eq!(gate.ask(true, start + NORMAL_PAUSE * 9).0, Moving::Later);
    }
}
