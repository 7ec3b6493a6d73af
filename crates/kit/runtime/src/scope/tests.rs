use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::oneshot;

use super::*;
use crate::Fault;

const GRACE: Duration = Duration::from_secs(30);

#[tokio::test]
async fn phases_stop_in_order_and_each_waits_for_the_one_before() {
    let root = Scope::root("stack");
    let order = Arc::new(Mutex::new(Vec::new()));
    // Spawned in the reverse of the order they must stop in.
    for phase in Phase::ALL.into_iter().rev() {
        let scope = root.child(phase, "part");
        let (order, inner) = (order.clone(), scope.clone());
        scope.spawn(TaskKind::Worker, "part", async move {
            inner.cancelled().await;
            // Give a wrong implementation every chance to run the next phase first.
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            order.lock().unwrap().push(phase);
            Ok::<_, Fault>(())
        });
    }
    root.close(GRACE).await.unwrap();
    assert_eq!(*order.lock().unwrap(), Phase::ALL);
}

#[tokio::test(start_paused = true)]
async fn laggards_are_named_counted_and_aborted() {
    let root = Scope::root("stack");
    let requests = root.role("frontend").child(Phase::Requests, "requests");
    let (alive, dropped) = oneshot::channel::<()>();
    requests.spawn(TaskKind::Connection, "connection", async move {
        let _alive = alive;
        std::future::pending::<Result<(), Fault>>().await
    });
    requests.spawn(TaskKind::Connection, "connection", std::future::pending::<Result<(), Fault>>());
    let laggards = root.close(GRACE).await.unwrap_err();
    assert_eq!(
        laggards.to_string(),
        "did not stop within the grace period: stack/frontend/requests/connection (x2)"
    );
    assert!(dropped.await.is_err(), "the task's future was dropped");
}

#[tokio::test(start_paused = true)]
async fn those_who_stop_at_once_are_not_blamed_for_a_laggard_before_them() {
    let root = Scope::root("stack");
    let role = root.role("frontend");
    let requests = role.child(Phase::Requests, "requests");
    requests.spawn(TaskKind::Connection, "connection", std::future::pending::<Result<(), Fault>>());
    let inside = role.clone();
    role.spawn(TaskKind::Role, "run", async move {
        inside.cancelled().await;
        Ok::<_, Fault>(())
    });
    let laggards = root.close(GRACE).await.unwrap_err();
    assert_eq!(laggards.names().collect::<Vec<_>>(), [("stack/frontend/requests/connection", 1)]);
}

#[tokio::test]
async fn helpers_are_aborted_and_do_not_hold_up_the_close() {
    let root = Scope::root("stack");
    root.spawn(TaskKind::Helper, "refresh", std::future::pending::<Result<(), Fault>>());
    root.close(GRACE).await.unwrap();
    assert_eq!(root.task_count(), 0);
}

#[tokio::test]
async fn an_error_of_a_worker_is_reported_by_its_role_and_not_by_the_root() {
    let root = Scope::root("stack");
    let role = root.role("frontend");
    let loops = role.child(Phase::Reconcilers, "loops");
    loops.spawn(TaskKind::Worker, "feed", async { Err(Fault::new("the feed is gone")) });
    let failure = role.failed().await;
    assert_eq!(
        aro_base::chain(&*failure).to_string(),
        "task `stack/frontend/loops/feed` failed: the feed is gone"
    );
    assert!(root.0.failure.borrow().is_none());
}

#[tokio::test]
async fn an_error_of_a_critical_task_is_reported_by_the_root() {
    let root = Scope::root("stack");
    root.role("frontend").spawn(TaskKind::Critical, "journal", async { Err(Fault::new("disk is full")) });
    assert!(root.failed().await.to_string().contains("stack/frontend/journal"));
}

#[tokio::test]
async fn a_panic_is_an_error_of_its_kind() {
    let root = Scope::root("stack");
    let role = root.role("frontend");
    role.spawn(TaskKind::Connection, "connection", async { explode("one caller") });
    role.spawn(TaskKind::Worker, "feed", async { explode("the feed") });
    let failure = role.failed().await;
    assert_eq!(failure.to_string(), "task `stack/frontend/feed` panicked: the feed");
    root.close(GRACE).await.unwrap();
}

fn explode(why: &str) -> Result<(), Fault> {
    panic!("{why}")
}

#[tokio::test]
async fn nothing_starts_in_a_closed_scope() {
    let root = Scope::root("stack");
    root.close(GRACE).await.unwrap();
    let late = root.child(Phase::Requests, "late");
    assert!(late.is_cancelled());
    let (started, heard) = oneshot::channel();
    late.spawn(TaskKind::Job, "late", async move {
        let _ = started.send(());
        Ok::<_, Fault>(())
    });
    assert!(heard.await.is_err());
}

#[tokio::test]
async fn a_task_spawned_while_its_phase_drains_is_waited_for() {
    let root = Scope::root("stack");
    let requests = root.child(Phase::Requests, "requests");
    let (done, finished) = (Arc::new(Mutex::new(false)), requests.clone());
    let flag = done.clone();
    requests.spawn(TaskKind::Connection, "first", async move {
        finished.cancelled().await;
        finished.spawn(TaskKind::Job, "second", async move {
            tokio::task::yield_now().await;
            *flag.lock().unwrap() = true;
            Ok::<_, Fault>(())
        });
        Ok::<_, Fault>(())
    });
    root.close(GRACE).await.unwrap();
    assert!(*done.lock().unwrap());
}

#[tokio::test]
async fn closing_one_role_leaves_its_neighbour_running() {
    let root = Scope::root("stack");
    let (one, two) = (root.role("one"), root.role("two"));
    two.spawn(TaskKind::Worker, "loop", std::future::pending::<Result<(), Fault>>());
    one.close(GRACE).await.unwrap();
    assert!(one.is_cancelled());
    assert!(!two.is_cancelled());
    assert_eq!(two.task_count(), 1);
}
