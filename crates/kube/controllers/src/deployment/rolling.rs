//! How far a rollout goes in one pass, within what may be too many and what may be missing. Pure.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::sets::Set;
use crate::pods::share::{Round, of_whole};

/// What a deployment wants and allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub desired: i32,
    /// Pods there may be above `desired`.
    pub surge: i32,
    /// Pods of `desired` that may be missing.
    pub unavailable: i32,
    pub recreate: bool,
}

impl Limits {
    pub fn of(deployment: &Deployment) -> Self {
        let spec = deployment.spec.as_ref();
        let desired = spec.and_then(|spec| spec.replicas).unwrap_or(1).max(0);
        let strategy = spec.and_then(|spec| spec.strategy.as_ref());
        let recreate = strategy.and_then(|strategy| strategy.type_.as_deref()) == Some("Recreate");
        if recreate {
            return Self { desired, surge: 0, unavailable: 0, recreate };
        }
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let resolve = |value: Option<&IntOrString>, round| {
            value.and_then(|value| of_whole(value, desired, round)).unwrap_or(0).max(0)
        };
        let surge = resolve(rolling.and_then(|rolling| rolling.max_surge.as_ref()), Round::Up);
        let mut unavailable =
            resolve(rolling.and_then(|rolling| rolling.max_unavailable.as_ref()), Round::Down);
        if surge == 0 && unavailable == 0 {
            // Rounding must not bring a rollout to a halt.
            unavailable = 1;
        }
        Self { desired, surge, unavailable: unavailable.min(desired), recreate }
    }

    /// The most pods there may be.
    pub fn most(&self) -> i32 {
        self.desired.saturating_add(self.surge)
    }

    /// The fewest pods that have to be available.
    pub fn least(&self) -> i32 {
        self.desired - self.unavailable
    }

    /// How many pods the set of the current template may have when all have `total` together.
    pub fn room_for_new(&self, current: i32, total: i32) -> i32 {
        if self.recreate {
            return self.desired;
        }
        let room = self.most().saturating_sub(total);
        if room <= 0 { current } else { current + room.min(self.desired - current) }
    }
}

fn total<'a>(sets: impl IntoIterator<Item = &'a Set>) -> i32 {
    sets.into_iter().map(|set| set.replicas).fold(0, i32::saturating_add)
}

/// Grows the new set as far as there is room, or shrinks it to what is wanted. Says whether it did.
pub fn scale_new(limits: &Limits, new: &mut Set, old: &[Set]) -> bool {
    let to = if new.replicas > limits.desired {
        limits.desired
    } else {
        limits.room_for_new(new.replicas, total(old.iter().chain([&*new])))
    };
    if to == new.replicas {
        return false;
    }
    new.resize(to, limits.desired, limits.surge);
    true
}

/// Shrinks old sets as far as enough pods stay available: first by pods that are not, then by those that are. `old` is
/// in the order in which they were made. Says whether it did.
pub fn scale_old(limits: &Limits, new: &Set, old: &mut [Set]) -> bool {
    if total(&*old) == 0 {
        return false;
    }
    let all = total(old.iter().chain([new]));
    // Pods of the new set that are not there yet are not made up for by taking more of the old.
    let spare = all - limits.least() - (new.replicas - new.available());
    if spare <= 0 {
        return false;
    }
    let mut shrunk = 0;
    for set in old.iter_mut() {
        let sick = (set.replicas - set.available()).min(spare - shrunk);
        if sick > 0 {
            set.resize(set.replicas - sick, limits.desired, limits.surge);
            shrunk += sick;
        }
    }
    let available: i32 = old.iter().chain([new]).map(Set::available).sum();
    let mut left = (available - limits.least()).min(spare - shrunk);
    for set in old.iter_mut() {
        let fewer = set.replicas.min(left);
        if fewer > 0 {
            set.resize(set.replicas - fewer, limits.desired, limits.surge);
            left -= fewer;
            shrunk += fewer;
        }
    }
    shrunk > 0
}
