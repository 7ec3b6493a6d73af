//! The gRPC service for sources: `Publish` stores specs, `Subscribe` streams statuses.
//!
//! A publish is answered when its row is stored; from then on the server is responsible for its delivery. Rejections are
//! Kubernetes statuses as JSON in the error message: existing clients parse them to distinguish a conflict from a failure.

pub(crate) mod access;

use std::sync::Arc;
use std::time::Duration;

use aro_base::{SharedClock, Timestamp, chain};
use aro_bundle::grpc::{CloudEvent, PublishRequest, SubscriptionRequest, read};
use aro_bundle::{Action, DATA_TYPE, Event, MAX_MANIFESTS, MAX_PROPERTY, StatusResync, Subresource};
use aro_event_service::{CloudEvents, EventStream, SUBSCRIPTION_ID};
use aro_runtime::reached;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tonic::{Code as Rpc, Request, Response, Status};
use uuid::Uuid;

use crate::fault::{Code, Fault};
use crate::metrics::ServerMetrics;
use crate::rows::{Deletion, Rows, Update};
use crate::spec_queue::SpecQueue;
use crate::streams::{NotSubscribed, Streams};
use access::{Caller, Grants};

/// The service.
pub struct SourceService {
    pub rows: Rows,
    pub queue: Arc<SpecQueue>,
    pub streams: Arc<Streams>,
    pub metrics: ServerMetrics,
    pub clock: SharedClock,
    /// Bytes of one event to an agent.
    pub max_event: usize,
    pub grants: Grants,
    pub heartbeat: Duration,
    pub stop: CancellationToken,
}

impl SourceService {
    async fn accept(&self, caller: Option<&Caller>, event: CloudEvent) -> Result<(), Status> {
        let event = read(event).map_err(|error| invalid(&error.to_string()))?;
        self.allow(caller, &event.source, "publish for")?;
        if event.kind.action == Action::ResyncRequest {
            let known: StatusResync = event.payload().map_err(|error| invalid(&error.to_string()))?;
            return self
                .streams
                .request_resync(&event.source, known.status_hashes)
                .await
                .map_err(|fault| rejected(&event, &fault));
        }
        if event.kind.subresource == Subresource::Status {
            return Err(invalid(&format!("sources do not send {}", event.kind)));
        }
        if event.kind.action == Action::Create {
            self.check_not_agent(caller, &event).await.map_err(|fault| rejected(&event, &fault))?;
        }
        self.store(&event).await.map_err(|fault| rejected(&event, &fault))
    }

    /// Rejects a source that is a consumer, or was one. One authority may issue the certificates of agents and sources, and an
    /// agent's has its consumer's name: as a source of that name it could write to every other cluster. The certificate
    /// outlives a consumer that is removed.
    async fn check_not_agent(&self, caller: Option<&Caller>, event: &Event) -> Result<(), Fault> {
        let source = &event.source;
        if self.grants.is_granted(caller, source)
            || (self.rows.consumer_by_name(source).await?.is_none()
                && !self.rows.was_consumer(source).await?)
        {
            return Ok(());
        }
        let reason = format!(
            "`{source}` is or was a consumer, and its certificate an agent's; if it is a source too, grant it in maestro.grpc_sources"
        );
        Err(Fault::new(Code::Forbidden, reason))
    }

    async fn store(&self, event: &Event) -> Result<(), Fault> {
        match event.kind.action {
            Action::Create => {
                self.check_size(event)?;
                let row = self.rows.create(event).await?;
                self.queue.enqueue_stored(row.value);
            }
            Action::Update => {
                self.check_size(event)?;
                if let Update::Changed(row) = self.rows.update(event).await? {
                    self.queue.enqueue_stored(row.value);
                }
            }
            Action::Delete => {
                let id = event.resource().map_err(|error| Fault::new(Code::Validation, error.to_string()))?;
                if let Deletion::Marked(row) = self.rows.delete(id, Some(&event.source)).await? {
                    self.queue.enqueue_stored(row.value);
                }
            }
            Action::ResyncRequest | Action::ResyncResponse => {
                return Err(Fault::new(
                    Code::BadRequest,
                    format!("unsupported action {}", event.kind.action.word()),
                ));
            }
        }
        Ok(())
    }

    /// Rejects an event that could not be delivered.
    fn check_size(&self, event: &Event) -> Result<(), Fault> {
        let too_large = |what: &str, size: usize, limit: usize| {
            let reason = format!("{what} has {size} bytes, and at most {limit} can be delivered");
            Err(Fault::new(Code::Validation, reason))
        };
        let metadata = event.metadata.as_ref().map_or(0, String::len);
        // The server adds names and times.
        const ADDED: usize = 512;
        if metadata + ADDED > MAX_PROPERTY {
            return too_large("the work's metadata", metadata, MAX_PROPERTY - ADDED);
        }
        let texts = [
            ("`id`", Some(&event.id)),
            ("`source`", Some(&event.source)),
            ("`resourceid`", event.resource_id.as_ref()),
            ("`logtracing`", event.log_tracing.as_ref()),
        ];
        for (name, text) in texts {
            let size = text.map_or(0, String::len);
            if size > MAX_PROPERTY {
                return too_large(name, size, MAX_PROPERTY);
            }
        }
        let limit = MAX_MANIFESTS.min(self.max_event);
        if event.data.len() > limit {
            return too_large("the bundle", event.data.len(), limit);
        }
        if event.size() + ADDED > self.max_event {
            return too_large("the event", event.size(), self.max_event - ADDED);
        }
        Ok(())
    }

    fn allow(&self, caller: Option<&Caller>, source: &str, what: &str) -> Result<(), Status> {
        if source.is_empty() {
            return Err(invalid("the source is not named"));
        }
        if self.grants.allow(caller, source) {
            return Ok(());
        }
        let who = caller.map_or("caller without a certificate", |caller| &*caller.name);
        let reason = format!("`{who}` may not {what} the source `{source}`");
        Err(Status::permission_denied(status_error(403, "Forbidden", &reason)))
    }

    async fn open(&self, request: Request<SubscriptionRequest>) -> Result<Response<EventStream>, Status> {
        let caller = request.extensions().get::<Caller>().cloned();
        let SubscriptionRequest { source, cluster_name, data_type } = request.into_inner();
        if !cluster_name.is_empty() && source.is_empty() {
            return Err(invalid("agents are served over the broker"));
        }
        self.allow(caller.as_ref(), &source, "subscribe to")?;
        if !data_type.is_empty() && data_type != DATA_TYPE {
            return Err(invalid(&format!("no events of data type `{data_type}`")));
        }
        let subscription = self.streams.subscribe(&source).await.map_err(|error| match error {
            NotSubscribed::Failed(fault) => unavailable(&fault),
            full @ NotSubscribed::TooMany => Status::resource_exhausted(full.to_string()),
        })?;
        let over = self.over(caller.map(|caller| caller.until));
        let stream: EventStream = Box::pin(subscription.into_stream(self.heartbeat, over));
        let mut answer = Response::new(stream);
        let id = Uuid::new_v4().to_string();
        tracing::info!(source, subscription = id, "source subscribed");
        if let Ok(id) = id.parse() {
            answer.metadata_mut().insert(SUBSCRIPTION_ID, id);
        }
        Ok(answer)
    }
}

impl SourceService {
    /// Resolves when a subscription has to end, with its status.
    fn over(&self, until: Option<Timestamp>) -> BoxFuture<'static, Status> {
        let (stop, clock) = (self.stop.clone(), self.clock.clone());
        let expired = async move {
            match until {
                Some(until) => reached(&clock, until).await,
                None => std::future::pending().await,
            }
        };
        async move {
            tokio::select! {
                biased;
                () = stop.cancelled() => Status::unavailable("the server stops; subscribe again"),
                () = expired => Status::unauthenticated(
                    "the certificate of this connection has expired; connect again with a new one",
                ),
            }
        }
        .boxed()
    }
}

impl CloudEvents for SourceService {
    fn publish(&self, request: Request<PublishRequest>) -> BoxFuture<'_, Result<(), Status>> {
        async move {
            let call = self.metrics.called("Publish");
            let caller = request.extensions().get::<Caller>().cloned();
            let answer = match request.into_inner().event {
                Some(event) => self.accept(caller.as_ref(), event).await,
                None => Err(invalid("the request has no event")),
            };
            let code = answer.as_ref().err().map_or(Rpc::Ok, Status::code);
            self.metrics.answered(&call, code);
            answer
        }
        .boxed()
    }

    fn subscribe(
        &self,
        request: Request<SubscriptionRequest>,
    ) -> BoxFuture<'_, Result<Response<EventStream>, Status>> {
        async move {
            let call = self.metrics.called("Subscribe");
            let answer = self.open(request).await;
            let code = answer.as_ref().err().map_or(Rpc::Ok, Status::code);
            self.metrics.answered(&call, code);
            answer
        }
        .boxed()
    }
}

fn invalid(reason: &str) -> Status {
    Status::invalid_argument(status_error(400, "BadRequest", reason))
}

fn unavailable(fault: &Fault) -> Status {
    tracing::error!(error = %chain(fault), "source request failed");
    Status::unavailable(fault.to_string())
}

/// A rejection in the form that existing clients parse. Failures of the server stay plain text: clients retry those.
fn rejected(event: &Event, fault: &Fault) -> Status {
    let verb = match event.kind.action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
        _ => "resync",
    };
    let text = format!("failed to {verb} resource: {fault}");
    match fault.code {
        Code::General | Code::Unreadable | Code::Overloaded | Code::NotImplemented => unavailable(fault),
        Code::NotFound => Status::not_found(status_error(404, "NotFound", &text)),
        Code::Forbidden => Status::permission_denied(status_error(403, "Forbidden", &text)),
        Code::Conflict if event.kind.action == Action::Create => {
            Status::already_exists(status_error(409, "AlreadyExists", &text))
        }
        Code::Conflict => Status::aborted(status_error(409, "Conflict", &text)),
        Code::Validation | Code::Malformed | Code::BadRequest => {
            Status::invalid_argument(status_error(422, "Invalid", &text))
        }
    }
}

fn status_error(code: u16, reason: &str, message: &str) -> String {
    json!({"ErrStatus": {
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "message": message, "reason": reason, "code": code,
    }})
    .to_string()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use aro_bundle::EventType;
    use aro_runtime::Scope;

    use super::*;
    use crate::testing;

    fn service(directory: &std::path::Path, scope: &Scope) -> SourceService {
        let (rows, clock) = testing::rows(directory);
        let metrics = ServerMetrics::new(&aro_runtime::Metrics::default());
        SourceService {
            streams: Streams::start(
                rows.clone(),
                Arc::default(),
                metrics.clone(),
                "replica".to_owned(),
                scope,
            ),
            queue: Arc::default(),
            rows,
            metrics,
            clock,
            max_event: 512 * 1024,
            grants: Grants::new(&["both:both".to_owned()], true),
            heartbeat: Duration::from_secs(1),
            stop: scope.token().clone(),
        }
    }

    fn create(source: &str) -> CloudEvent {
        let mut event = Event::new("e", source, EventType::spec(Action::Create), "victim");
        event.resource_id = Some(format!("bundle-of-{source}"));
        event.resource_version = Some(0);
        event.metadata = Some("{}".to_owned());
        let manifest = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        aro_bundle::grpc::write(&event.with_payload(&json!({"manifests": [manifest]})).unwrap())
    }

    #[tokio::test]
    async fn the_certificate_of_an_agent_makes_no_bundles_unless_it_was_granted() {
        let (directory, scope) = (tempfile::tempdir().unwrap(), Scope::root("test"));
        let service = service(directory.path(), &scope);
        for name in ["victim", "agent", "both"] {
            service.rows.create_consumer(Some(name), BTreeMap::new()).await.unwrap();
        }
        for (name, code) in [("agent", Rpc::PermissionDenied), ("both", Rpc::Ok), ("source", Rpc::Ok)] {
            let taken = service.accept(Some(&Caller::named(name)), create(name)).await;
            assert_eq!(taken.err().map_or(Rpc::Ok, |status| status.code()), code, "{name}");
        }
        assert!(service.rows.find_bundle("bundle-of-agent").await.unwrap().is_none());
        scope.close(Duration::from_secs(5)).await.unwrap();
    }

    #[tokio::test]
    async fn the_certificate_of_a_removed_consumer_makes_no_bundles_unless_it_was_granted() {
        let (directory, scope) = (tempfile::tempdir().unwrap(), Scope::root("test"));
        let service = service(directory.path(), &scope);
        service.rows.create_consumer(Some("victim"), BTreeMap::new()).await.unwrap();
        // Twice: a name can be a consumer's again, and be removed again.
        for _ in 0..2 {
            for name in ["agent", "both"] {
                let consumer = service.rows.create_consumer(Some(name), BTreeMap::new()).await.unwrap();
                service.rows.delete_consumer(&consumer.value.id).await.unwrap();
                assert!(service.rows.consumer_by_name(name).await.unwrap().is_none());
            }
            let refused = service.accept(Some(&Caller::named("agent")), create("agent")).await.unwrap_err();
            assert_eq!(refused.code(), Rpc::PermissionDenied);
        }
        assert!(service.rows.find_bundle("bundle-of-agent").await.unwrap().is_none());
        service.accept(Some(&Caller::named("both")), create("both")).await.expect("granted");
        scope.close(Duration::from_secs(5)).await.unwrap();
    }

    #[tokio::test]
    async fn what_no_broker_carries_is_not_taken() {
        let (directory, scope) = (tempfile::tempdir().unwrap(), Scope::root("test"));
        let service = service(directory.path(), &scope);
        service.rows.create_consumer(Some("victim"), BTreeMap::new()).await.unwrap();
        let mut event = read(create("source")).unwrap();
        event.log_tracing = Some("a\0b".to_owned());
        let taken = service.accept(Some(&Caller::named("source")), aro_bundle::grpc::write(&event)).await;
        assert_eq!(taken.unwrap_err().code(), Rpc::InvalidArgument);
        scope.close(Duration::from_secs(5)).await.unwrap();
    }

    #[tokio::test]
    async fn a_caller_that_goes_while_it_is_brought_what_it_missed_leaves_nothing_behind() {
        let (directory, scope) = (tempfile::tempdir().unwrap(), Scope::root("test"));
        let service = service(directory.path(), &scope);
        service.streams.loaded().await;
        assert!(service.streams.subscribe("source").now_or_never().is_none(), "the store takes a moment");
        assert_eq!(service.metrics.subscribers.get(), 0);
        let subscription = service.streams.subscribe("source").await.unwrap();
        assert_eq!(service.metrics.subscribers.get(), 1);
        drop(subscription);
        assert_eq!(service.metrics.subscribers.get(), 0);
        scope.close(Duration::from_secs(5)).await.unwrap();
    }
}
