//! A change of a deployment's size while several of its replica sets have pods: each takes its share. Pure.

use super::rolling::Limits;
use super::sets::{DESIRED, MAXIMUM, Set, number};

/// Whether the deployment was given another size since its sets were last told.
pub fn is_due(limits: &Limits, sets: &[&Set]) -> bool {
    let told =
        |set: &&&Set| number::<i32>(&set.annotations, DESIRED).is_some_and(|told| told != limits.desired);
    let active: Vec<&&Set> = sets.iter().filter(|set| set.replicas > 0).collect();
    // Without rolling there are no shares: what is old goes first anyway.
    let several = limits.recreate && active.len() > 1;
    !several && active.iter().any(told)
}

/// Gives the sets their sizes. `shown` is how many pods the deployment's status tells of.
pub fn scale(limits: &Limits, new: Option<&mut Set>, old: &mut [Set], shown: i32) {
    let saturated = new.as_ref().is_some_and(|new| is_saturated(limits, new));
    let is_new = new.is_some();
    // Newest first; the one of the current template before all.
    let mut all: Vec<&mut Set> = new.into_iter().chain(old.iter_mut().rev()).collect();
    let active = all.iter().filter(|set| set.replicas > 0).count();
    if active <= 1 {
        // The only one with pods, or else the newest.
        let position = all.iter().position(|set| set.replicas > 0).unwrap_or(0);
        if let Some(one) = all.get_mut(position) {
            one.resize(limits.desired, limits.desired, limits.surge);
        }
        return;
    }
    if saturated {
        for set in all.iter_mut().skip(usize::from(is_new)).filter(|set| set.replicas > 0) {
            set.resize(0, limits.desired, limits.surge);
        }
        return;
    }
    if !limits.recreate {
        let active = all.into_iter().filter(|set| set.replicas > 0).collect();
        proportionally(limits, active, shown);
    }
}

/// Whether the new set has all pods it can have, and all of them are available.
fn is_saturated(limits: &Limits, new: &Set) -> bool {
    new.replicas == limits.desired
        && number::<i32>(&new.annotations, DESIRED) == Some(limits.desired)
        && new.status().available_replicas.unwrap_or(0) == limits.desired
}

/// Spreads what is to be added or taken over the sets by their sizes, so that the rollout stays as far as it is.
fn proportionally(limits: &Limits, mut active: Vec<&mut Set>, shown: i32) {
    let allowed = if limits.desired > 0 { limits.most() } else { 0 };
    let change = allowed - active.iter().map(|set| set.replicas).fold(0, i32::saturating_add);
    // The larger before the smaller; of the same size, the newer grows first and the older shrinks first.
    if change > 0 {
        active.sort_by(|a, b| b.replicas.cmp(&a.replicas).then(b.made().cmp(&a.made())));
    } else {
        active.sort_by(|a, b| b.replicas.cmp(&a.replicas).then(a.made().cmp(&b.made())));
    }
    let mut added = 0;
    let mut sizes: Vec<i32> = Vec::new();
    for set in &active {
        let share = if change == added { 0 } else { share(limits, set, shown) };
        let share = if change > 0 { share.min(change - added) } else { share.max(change - added) };
        sizes.push(set.replicas + share);
        added += share;
    }
    // What rounding left over goes to the largest.
    if let Some(largest) = sizes.first_mut() {
        *largest = (*largest + change - added).max(0);
    }
    for (set, size) in active.into_iter().zip(sizes) {
        set.resize(size, limits.desired, limits.surge);
    }
}

/// By how much one set would change if all changed alike.
fn share(limits: &Limits, set: &Set, shown: i32) -> i32 {
    if limits.desired == 0 {
        return -set.replicas;
    }
    let before = number::<i32>(&set.annotations, MAXIMUM).filter(|before| *before > 0).unwrap_or(shown);
    if before <= 0 {
        return 0;
    }
    let size = f64::from(set.replicas) * f64::from(limits.most()) / f64::from(before);
    // Half rounds away from zero, and sizes are far from the end of the range.
    (size.round() as i32).saturating_sub(set.replicas)
}
