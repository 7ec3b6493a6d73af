//! Runs the items of a plan: each as soon as those before it are done, a bounded number at once.

use std::collections::VecDeque;

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use crate::plan::{Item, Key};

/// How the items of a plan ended.
#[derive(Debug)]
pub(crate) struct Ended<T, E> {
    /// By place; `None` for what failed or was not tried.
    pub done: Vec<Option<T>>,
    /// What failed, in the order in which it failed.
    pub failed: Vec<(Key, E)>,
}

/// Runs every item whose predecessors succeed. `act` gets an item and what its predecessors returned, in their order.
pub(crate) async fn run<'p, T, E, F, A>(items: &'p [Item], at_once: usize, act: A) -> Ended<T, E>
where
    T: Clone,
    F: Future<Output = Result<T, E>>,
    A: Fn(&'p Item, Vec<T>) -> F,
{
    let mut open: Vec<usize> = items.iter().map(|item| item.after.len()).collect();
    let mut successors: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for (place, item) in items.iter().enumerate() {
        for key in &item.after {
            if let Some(followers) = successors.get_mut(key.index()) {
                followers.push(place);
            }
        }
    }
    let mut ready: VecDeque<usize> =
        open.iter().enumerate().filter(|(_, open)| **open == 0).map(|(place, _)| place).collect();
    let mut ended = Ended { done: vec![None; items.len()], failed: Vec::new() };
    let mut running = FuturesUnordered::new();
    loop {
        while running.len() < at_once.max(1)
            && let Some(place) = ready.pop_front()
        {
            let Some(item) = items.get(place) else { continue };
            let before = item.after.iter().filter_map(|key| ended.done.get(key.index())?.clone()).collect();
            let acting = act(item, before);
            running.push(async move { (place, acting.await) });
        }
        let Some((place, result)) = running.next().await else { return ended };
        match result {
            Ok(value) => {
                if let Some(slot) = ended.done.get_mut(place) {
                    *slot = Some(value);
                }
                for &next in successors.get(place).into_iter().flatten() {
                    if let Some(left) = open.get_mut(next) {
                        *left -= 1;
                        if *left == 0 {
                            ready.push_back(next);
                        }
                    }
                }
            }
            Err(error) => ended.failed.push((Key::at(place), error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::time::Duration;

    use super::*;
    use crate::layout::tests::layout;
    use crate::plan::{Plan, plan};

    fn whole() -> Plan {
        plan(&layout(&["1", "2"]))
    }

    #[tokio::test(start_paused = true)]
    async fn an_item_runs_after_those_it_needs_and_others_run_at_once() {
        let plan = whole();
        let (finished, running, most) = (RefCell::new(Vec::new()), Cell::new(0), Cell::new(0_usize));
        let ended: Ended<usize, ()> = run(plan.items(), 8, |item, before| {
            let (finished, running, most, place) =
                (&finished, &running, &most, plan.items().iter().position(|known| std::ptr::eq(known, item)));
            assert_eq!(before, item.after.iter().map(|key| key.index()).collect::<Vec<_>>());
            running.set(running.get() + 1);
            most.set(most.get().max(running.get()));
            async move {
                assert!(item.after.iter().all(|key| finished.borrow().contains(&key.index())));
                tokio::time::sleep(Duration::from_millis(10)).await;
                running.set(running.get() - 1);
                let place = place.unwrap();
                finished.borrow_mut().push(place);
                Ok(place)
            }
        })
        .await;
        assert!(ended.failed.is_empty() && ended.done.iter().all(Option::is_some));
        assert_eq!(most.get(), 8);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_stops_what_depends_on_it_and_nothing_else() {
        let plan = whole();
        let stamp = plan.layout.management[1].group.clone();
        let ended: Ended<(), ()> = run(plan.items(), 8, |item, _| {
            let fails = *item.spec.target() == stamp;
            async move { if fails { Err(()) } else { Ok(()) } }
        })
        .await;
        assert_eq!(ended.failed.len(), 1);
        // An item comes after everything that it depends on.
        let mut stopped: Vec<bool> = Vec::new();
        for item in plan.items() {
            let depends = item.after.iter().any(|key| stopped[key.index()]);
            stopped.push(depends || *item.spec.target() == stamp);
        }
        assert_eq!(ended.done.iter().map(Option::is_none).collect::<Vec<_>>(), stopped);
        let of_others = plan.items().iter().zip(&stopped);
        let of_others = of_others.filter(|(item, _)| !item.spec.target().same_subscription(&stamp));
        let (missing, made): (Vec<_>, Vec<_>) = of_others.partition(|(_, stopped)| **stopped);
        assert!(missing.len() < 5 && made.len() > 50, "{} {}", missing.len(), made.len());
    }
}
