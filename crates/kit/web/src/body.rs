//! Reading request bodies: up to a size, within a deadline, and within a byte budget that many requests share.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many bytes of request bodies may be in memory at once.
///
/// Bytes are reserved as they arrive and not by the announced length: a client that sends slowly reserves little.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    own: Arc<Semaphore>,
    /// What this is a share of.
    whole: Option<Arc<Semaphore>>,
}

impl BodyBudget {
    /// A budget of so many bytes.
    pub fn of_bytes(bytes: u64) -> Self {
        Self { own: semaphore(bytes), whole: None }
    }

    /// No limit: for callers that are part of this program.
    pub fn unlimited() -> Self {
        Self::of_bytes(u64::MAX)
    }

    /// A part of this budget. What it reserves counts here as well, and it never reserves more than `bytes`: one tenant cannot
    /// use up the whole.
    pub fn share(&self, bytes: u64) -> Self {
        Self { own: semaphore(bytes), whole: Some(self.own.clone()) }
    }

    /// Bytes that can still be reserved.
    pub fn available(&self) -> usize {
        let whole = self.whole.as_ref().map_or(usize::MAX, |whole| whole.available_permits());
        self.own.available_permits().min(whole)
    }

    fn reserve(&self, bytes: usize) -> Option<Reservation> {
        let bytes = u32::try_from(bytes).ok()?;
        let own = self.own.clone().try_acquire_many_owned(bytes).ok()?;
        let whole = match &self.whole {
            Some(whole) => Some(whole.clone().try_acquire_many_owned(bytes).ok()?),
            None => None,
        };
        Some(Reservation { own, whole })
    }
}

fn semaphore(bytes: u64) -> Arc<Semaphore> {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)))
}

#[derive(Debug)]
struct Reservation {
    own: OwnedSemaphorePermit,
    whole: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Both are of the same budget.
    fn merge(&mut self, other: Self) {
        self.own.merge(other.own);
        if let (Some(whole), Some(more)) = (&mut self.whole, other.whole) {
            whole.merge(more);
        }
    }
}

/// What the request bodies of a server are read by.
#[derive(Debug, Clone)]
pub struct BodyLimits {
    /// The size of the largest body that is read.
    pub max: usize,
    /// How many bytes of a larger one are received and dropped: a client whose connection ends while it sends may never read
    /// the answer.
    pub discard: usize,
    /// How long the whole body may take.
    pub timeout: Duration,
    /// The bytes of all bodies in flight.
    pub budget: BodyBudget,
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// It is larger than the limit.
    #[error("the body is too large")]
    TooLarge,
    /// It did not arrive in time.
    #[error("the body did not arrive in time")]
    TimedOut,
    /// The bodies of other requests take the whole budget.
    #[error("the budget of request bodies is used up")]
    OverBudget,
    /// The client went away, or sent a body that breaks the protocol.
    #[error("the body cannot be read")]
    Unreadable,
}

impl BodyError {
    /// The status to answer with.
    pub fn status(self) -> StatusCode {
        match self {
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Self::OverBudget => StatusCode::TOO_MANY_REQUESTS,
            Self::Unreadable => StatusCode::BAD_REQUEST,
        }
    }
}

/// A body in memory. Its bytes count against the budget until this is dropped.
#[derive(Debug, Default)]
pub struct HeldBody {
    bytes: Bytes,
    _reservation: Option<Reservation>,
}

impl HeldBody {
    /// The body. Keep `self` for as long as it is in use.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }
}

impl BodyLimits {
    /// Reads a body.
    ///
    /// # Errors
    ///
    /// When a limit is reached, or the body cannot be read.
    pub async fn read<B>(&self, body: B) -> Result<HeldBody, BodyError>
    where
        B: Body<Data = Bytes>,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > self.max.saturating_add(self.discard) {
            return Err(BodyError::TooLarge);
        }
        // A body without bytes needs no timer.
        if body.is_end_stream() {
            return Ok(HeldBody::default());
        }
        let read = tokio::time::timeout(self.timeout, self.collect(body)).await;
        read.unwrap_or(Err(BodyError::TimedOut))
    }

    async fn collect<B>(&self, body: B) -> Result<HeldBody, BodyError>
    where
        B: Body<Data = Bytes>,
    {
        let mut body = std::pin::pin!(body);
        let mut held = Collected::default();
        let mut total = 0_usize;
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| BodyError::Unreadable)?.into_data() else { continue };
            total = total.saturating_add(data.len());
            if total > self.max {
                held = Collected::default();
                if total > self.max.saturating_add(self.discard) {
                    break;
                }
                continue;
            }
            let reserved = self.budget.reserve(data.len()).ok_or(BodyError::OverBudget)?;
            held.push(data, reserved);
        }
        if total > self.max { Err(BodyError::TooLarge) } else { Ok(held.finish()) }
    }
}

/// The frames so far. Most bodies are one frame, which is not copied.
#[derive(Default)]
struct Collected {
    first: Bytes,
    all: Option<BytesMut>,
    reservation: Option<Reservation>,
}

impl Collected {
    fn push(&mut self, data: Bytes, reserved: Reservation) {
        match &mut self.reservation {
            Some(reservation) => reservation.merge(reserved),
            None => self.reservation = Some(reserved),
        }
        match &mut self.all {
            Some(all) => all.extend_from_slice(&data),
            None if self.first.is_empty() => self.first = data,
            None => {
                let mut all = BytesMut::with_capacity((self.first.len() + data.len()) * 2);
                all.extend_from_slice(&self.first);
                all.extend_from_slice(&data);
                self.first = Bytes::new();
                self.all = Some(all);
            }
        }
    }

    fn finish(self) -> HeldBody {
        let bytes = self.all.map_or(self.first, BytesMut::freeze);
        HeldBody { bytes, _reservation: self.reservation }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures::stream;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    use super::*;

    fn limits(max: usize, budget: BodyBudget) -> BodyLimits {
        BodyLimits { max, discard: 0, timeout: Duration::from_secs(5), budget }
    }

    /// A body in frames of these sizes, without an announced length.
    fn frames(sizes: &[usize]) -> impl Body<Data = Bytes, Error = Infallible> + use<> {
        let frames: Vec<_> =
            sizes.iter().map(|size| Ok(Frame::data(Bytes::from(vec![b'x'; *size])))).collect();
        StreamBody::new(stream::iter(frames))
    }

    #[tokio::test]
    async fn bodies_in_flight_never_exceed_the_budget_and_give_it_back() {
        let budget = BodyBudget::of_bytes(100);
        let limits = limits(80, budget.clone());
        let first = limits.read(frames(&[30, 30])).await.unwrap();
        assert_eq!((first.bytes().len(), budget.available()), (60, 40));
        assert_eq!(limits.read(frames(&[30, 30])).await.unwrap_err(), BodyError::OverBudget);
        assert_eq!(budget.available(), 40, "a refused body keeps nothing");
        drop(first);
        assert_eq!(budget.available(), 100);
        assert_eq!(limits.read(frames(&[80])).await.unwrap().bytes().len(), 80);
    }

    #[tokio::test]
    async fn one_share_cannot_use_up_the_whole_budget() {
        let whole = BodyBudget::of_bytes(100);
        let (greedy, other) = (limits(100, whole.share(60)), limits(100, whole.share(60)));
        let held = greedy.read(frames(&[60])).await.unwrap();
        assert_eq!(greedy.read(frames(&[1])).await.unwrap_err(), BodyError::OverBudget);
        assert!(other.read(frames(&[40])).await.is_ok());
        assert_eq!(
            other.read(frames(&[41])).await.unwrap_err(),
            BodyError::OverBudget,
            "the whole holds too"
        );
        assert_eq!(whole.available(), 40);
        drop(held);
        assert_eq!(whole.available(), 100);
    }

    #[tokio::test]
    async fn a_body_that_is_too_large_is_refused_by_its_announced_length() {
        let limits = limits(10, BodyBudget::of_bytes(100));
        let refused = limits.read(Full::new(Bytes::from(vec![b'x'; 11]))).await;
        assert_eq!(refused.unwrap_err(), BodyError::TooLarge);
        assert_eq!(limits.read(frames(&[10, 1])).await.unwrap_err(), BodyError::TooLarge);
        assert_eq!(limits.budget.available(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stalls_times_out_and_frees_its_bytes() {
        let limits = limits(10, BodyBudget::of_bytes(100));
        let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"abc")))]);
        let stalled = StreamBody::new(futures::StreamExt::chain(first, stream::pending()));
        assert_eq!(limits.read(stalled).await.unwrap_err(), BodyError::TimedOut);
        assert_eq!(limits.budget.available(), 100);
    }
}
