//! Many writes of one pass: side by side, and carefully at first.

use futures::StreamExt as _;

/// Calls under way at once.
const AT_ONCE: usize = 32;

/// How a row of calls went.
#[derive(Debug)]
pub struct Batch<T, E> {
    /// What succeeded.
    pub done: Vec<T>,
    /// The first that went wrong. What was not tried yet is left alone.
    pub failed: Option<E>,
}

/// Makes calls in groups of 1, 2, 4 and so on, and stops after a group in which one failed: what is refused for all,
/// by a quota say, is asked once or twice and not a thousand times.
pub async fn slow_start<I, T, E, F>(items: Vec<I>, call: impl Fn(I) -> F) -> Batch<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut left = items.into_iter();
    let (mut done, mut group) = (Vec::new(), 1);
    loop {
        let now: Vec<I> = left.by_ref().take(group).collect();
        if now.is_empty() {
            return Batch { done, failed: None };
        }
        let mut failed = None;
        let mut calls = futures::stream::iter(now).map(&call).buffer_unordered(AT_ONCE);
        while let Some(ended) = calls.next().await {
            match ended {
                Ok(made) => done.push(made),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if failed.is_some() {
            return Batch { done, failed };
        }
        group *= 2;
    }
}

/// Makes all calls, whatever becomes of the others.
pub async fn all<I, T, E, F>(items: Vec<I>, call: impl Fn(I) -> F) -> Batch<T, E>
where
    F: Future<Output = Result<T, E>>,
{
    let mut calls = futures::stream::iter(items).map(call).buffer_unordered(AT_ONCE);
    let mut batch = Batch { done: Vec::new(), failed: None };
    while let Some(ended) = calls.next().await {
        match ended {
            Ok(made) => batch.done.push(made),
            Err(error) => batch.failed = batch.failed.or(Some(error)),
        }
    }
    batch
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test]
    async fn all_calls_are_made_when_none_fails() {
        let batch = slow_start((0..100).collect(), |n| async move { Ok::<_, ()>(n) }).await;
        assert_eq!((batch.done.len(), batch.failed), (100, None));
    }

    #[tokio::test]
    async fn what_is_refused_is_not_asked_a_thousand_times() {
        let asked = Cell::new(0);
        let call = |_: i32| {
            asked.set(asked.get() + 1);
            async { Err::<(), _>("quota") }
        };
        assert_eq!(slow_start((0..1000).collect(), call).await.failed, Some("quota"));
        assert_eq!(asked.get(), 1);
        asked.set(0);
        assert_eq!(all((0..10).collect(), call).await.failed, Some("quota"));
        assert_eq!(asked.get(), 10);
    }

    #[tokio::test]
    async fn it_stops_after_the_group_with_a_failure() {
        let call = |n: i32| async move { if n == 4 { Err("full") } else { Ok(n) } };
        let batch = slow_start((0..100).collect(), call).await;
        assert_eq!(
            (batch.done.len(), batch.failed),
            (6, Some("full")),
            "1, 2 and 4 minus the one that failed"
        );
    }
}
