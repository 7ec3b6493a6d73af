//! Each fault does what its name says, over real connections.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_arm::ResourceId;
use aro_azure_local::{Fault, Operation, Rule, Service};
use aro_base::Secret;
use aro_cloud::resources::{GroupSpec, NsgSpec, Tags};
use aro_cloud::{ArmClient, Failure, Transport, TransportError, api_version};
use aro_cloud_e2e::{Administration, Site};
use aro_fixtures::wait;
use aro_runtime::Period;
use bytes::Bytes;
use http::{Method, Request, Response};
use serde_json::{Value, json};

const WITHIN: Duration = Duration::from_secs(10);

/// A cloud with a client that repeats nothing, and one that does.
struct Fixture {
    site: Site,
    arm: ArmClient,
    admin: Administration,
    token: Secret<String>,
}

impl Fixture {
    async fn start() -> Result<Self> {
        let site = Site::start().await?;
        let transport = site.transport()?;
        let cloud = site.cloud(transport.clone())?;
        let customer = site.customer(&cloud);
        let token = customer.token(&aro_cloud::Scope::new("https://management.azure.com/")).await?.secret;
        let (arm, admin) = (cloud.arm(customer), site.administration(transport));
        Ok(Self { site, arm, admin, token })
    }

    fn group(&self, name: &str) -> ResourceId {
        ResourceId::from_parts(Some(&self.site.subscription()), Some(name), None, [])
    }

    fn nsg(&self, name: &str) -> ResourceId {
        let pairs = [("networkSecurityGroups", name)];
        ResourceId::in_group(&self.site.subscription(), "g", "Microsoft.Network", &pairs)
    }

    async fn make_group(&self) -> Result<()> {
        let spec = GroupSpec { location: "westus3".to_owned(), managed_by: None, tags: Tags::new() };
        self.arm.ensure_resource_group(&self.site.subscription(), "g", &spec).await?;
        Ok(())
    }

    /// One attempt.
    async fn put_group(&self, name: &str) -> Result<Result<Response<Bytes>, TransportError>> {
        let url = format!(
            "https://management.azure.com{}?api-version={}",
            self.group(name),
            api_version::RESOURCES
        );
        let request = Request::put(url)
            .header("authorization", format!("Bearer {}", self.token.expose()))
            .header("content-type", "application/json")
            .body(Bytes::from(json!({"location": "westus3"}).to_string()))?;
        Ok(self.site.transport()?.send(request, WITHIN).await)
    }

    async fn exists(&self, id: &ResourceId) -> Result<bool> {
        Ok(self.arm.find::<Value>(id, api_version::RESOURCES).await?.is_some())
    }

    fn nsg_spec() -> NsgSpec {
        NsgSpec { location: "westus3".to_owned(), rules: Vec::new(), tags: Tags::new() }
    }
}

fn once(fault: Fault) -> Rule {
    Rule { count: Some(1), operation: Some(Operation::Write), ..Rule::of(fault) }
}

#[tokio::test]
async fn a_cut_connection_leaves_nothing_and_a_lost_reply_leaves_its_effect() -> Result<()> {
    let cloud = Fixture::start().await?;
    for (fault, name, expected) in [(Fault::Cut, "cut", false), (Fault::LostReply, "lost", true)] {
        cloud.admin.add(&once(fault)).await?;
        let reply = cloud.put_group(name).await?;
        ensure!(matches!(reply, Err(TransportError::Lost { .. })), "{fault:?}: {reply:?}");
        ensure!(cloud.exists(&cloud.group(name)).await? == expected, "{fault:?}");
    }
    cloud.site.stop().await
}

#[tokio::test]
async fn refusals_carry_azures_status_and_code_and_leave_nothing() -> Result<()> {
    let cloud = Fixture::start().await?;
    for (fault, status, code) in [
        (Fault::Throttle, 429, "SubscriptionRequestsThrottled"),
        (Fault::ServerError, 500, "InternalServerError"),
        (Fault::PermissionMissing, 403, "AuthorizationFailed"),
    ] {
        cloud.admin.add(&once(fault)).await?;
        let reply = cloud.put_group("g").await??;
        let body: Value = serde_json::from_slice(reply.body())?;
        ensure!(
            reply.status().as_u16() == status && body["error"]["code"] == code,
            "{} {body}",
            reply.status()
        );
        ensure!(reply.headers().contains_key("retry-after") == (status == 429));
        ensure!(!cloud.exists(&cloud.group("g")).await?);
    }
    cloud.site.stop().await
}

#[tokio::test]
async fn latency_delays_what_it_matches() -> Result<()> {
    let cloud = Fixture::start().await?;
    let delay = Duration::from_millis(300);
    cloud.admin.add(&Rule { delay: Some(Period::millis(300)), ..once(Fault::Latency) }).await?;
    let began = tokio::time::Instant::now();
    cloud.put_group("g").await??;
    assert!(began.elapsed() >= delay);
    cloud.site.stop().await
}

#[tokio::test]
async fn an_exhausted_quota_refuses_creations_and_lets_updates_pass() -> Result<()> {
    let cloud = Fixture::start().await?;
    cloud.make_group().await?;
    let (old, new) = (cloud.nsg("old"), cloud.nsg("new"));
    cloud.arm.ensure_nsg(&old, &Fixture::nsg_spec()).await?;
    let rule = cloud.admin.add(&Rule::of(Fault::QuotaExhausted)).await?;
    let refused = cloud.arm.ensure_nsg(&new, &Fixture::nsg_spec()).await.err().context("refused")?;
    assert_eq!(refused.code(), Some("NetworkSecurityGroupCountLimitReached"));
    let spec = NsgSpec { tags: Tags::from([("a".to_owned(), "b".to_owned())]), ..Fixture::nsg_spec() };
    cloud.arm.ensure_nsg(&old, &spec).await?;
    let status = cloud.admin.clear(rule.id).await?;
    assert_eq!((status.matched, status.fired), (1, 1));
    cloud.arm.ensure_nsg(&new, &Fixture::nsg_spec()).await?;
    cloud.site.stop().await
}

#[tokio::test]
async fn a_stuck_operation_is_in_progress_in_every_view_until_its_rule_is_cleared() -> Result<()> {
    let cloud = Fixture::start().await?;
    cloud.make_group().await?;
    let rule = cloud.admin.add(&Rule::of(Fault::StuckOperation)).await?;
    let nsg = cloud.nsg("n");
    let impatient = cloud.arm.with_operation_deadline(Duration::from_millis(200));
    let late = impatient.ensure_nsg(&nsg, &Fixture::nsg_spec()).await.err().context("it sticks")?;
    ensure!(matches!(late.failure(), Failure::Deadline(_)), "{late:?}");
    let state = |resource: &Value| resource["properties"]["provisioningState"].clone();
    let shown: Value = cloud.arm.get(&nsg, api_version::NETWORK).await?;
    ensure!(state(&shown) != "Succeeded", "{shown}");
    cloud.admin.clear(rule.id).await?;
    let shown: Value = cloud.arm.get(&nsg, api_version::NETWORK).await?;
    assert_eq!(state(&shown), "Succeeded");
    cloud.site.stop().await
}

#[tokio::test]
async fn stuck_deletions_go_on_when_the_rule_is_cleared() -> Result<()> {
    let cloud = Fixture::start().await?;
    cloud.make_group().await?;
    let nsg = cloud.nsg("n");
    cloud.arm.ensure_nsg(&nsg, &Fixture::nsg_spec()).await?;
    cloud.admin.add(&Rule { operation: Some(Operation::Delete), ..Rule::of(Fault::StuckOperation) }).await?;
    let impatient = cloud.arm.with_operation_deadline(Duration::from_millis(200));
    assert!(impatient.delete_nsg(&nsg).await.is_err());
    assert!(impatient.delete_resource_group(&cloud.site.subscription(), "g").await.is_err());
    ensure!(cloud.exists(&cloud.group("g")).await?, "the group is still there");
    let (_, cleared) = cloud.admin.call(Method::DELETE, "faults", None).await?;
    assert_eq!(cleared["rules"][0]["fired"], 2, "{cleared}");
    wait::until("the group to go", || async { Ok((!cloud.exists(&cloud.group("g")).await?).then_some(())) })
        .await?;
    cloud.site.stop().await
}

#[tokio::test]
async fn faults_of_the_token_endpoint_are_survived() -> Result<()> {
    let cloud = Fixture::start().await?;
    for fault in [Fault::Cut, Fault::LostReply, Fault::ServerError, Fault::Throttle] {
        let rule = Rule { service: Service::Login, count: Some(2), ..Rule::of(fault) };
        let rule = match fault {
            Fault::Throttle => Rule { delay: Some(Period::millis(5)), ..rule },
            _ => rule,
        };
        let rule = cloud.admin.add(&rule).await?;
        // A credential that has no token yet.
        let fresh = cloud.site.cloud(cloud.site.transport()?)?;
        let arm = fresh.arm(cloud.site.customer(&fresh));
        arm.find_resource_group(&cloud.site.subscription(), "none").await?;
        let status = cloud.admin.clear(rule.id).await?;
        assert_eq!(status.fired, 2, "{fault:?}");
    }
    cloud.site.stop().await
}
