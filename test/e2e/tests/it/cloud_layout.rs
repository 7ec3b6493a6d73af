//! The region's resources in its cloud, the accounts, and the way of OIDC documents: seen from outside, by unmodified clients.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use aro_arm::ResourceId;
use aro_auth::{Issuer, PublishedKeys, Rules, StaticKeys, TokenVerifier};
use aro_base::{Secret, SignedDuration};
use aro_cloud::resources::{PrincipalType, RecordData, RecordSet, RoleAssignment, Tags};
use aro_cloud::{ArmClient, Cloud, CloudConfig, Scope, SharedCredential, api_version};
use aro_harness::{Process, StoreChoice};
use aro_net::SystemResolve;
use aro_pki::jws::{Algorithm, SigningKey};
use aro_pki::{Authority, Validity};
use aro_region_layout::{RegionConfig, RegionLayout};
use aro_runtime::{Section as _, SystemClock};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use crate::clients;

/// The longest that a command may take.
const DEADLINE: Duration = Duration::from_secs(90);
/// The role `Storage Blob Data Contributor`.
const BLOB_DATA_CONTRIBUTOR: Uuid = Uuid::from_u128(0xba92_f5b4_2d11_453d_a403_e96b_0029_c9fe);
/// The role `Owner`.
const OWNER: &str = "8e3af657-a8ff-443c-a75c-2fe8c4bcb635";

/// A principal of the cloud, by the file that the cloud wrote.
struct Account {
    cloud: Cloud,
    credential: SharedCredential,
    file: Value,
}

impl Account {
    fn of(region: &Process, name: &str) -> Result<Self> {
        let dir = region.data_dir().join("azure-local");
        let path = dir.join(name);
        ensure!(std::fs::metadata(&path)?.permissions().mode() & 0o777 == 0o600, "{name} is for its owner");
        let file: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        let config = CloudConfig {
            connect_to: region.addr("azure-local"),
            ca_file: Some(dir.join("ca.pem")),
            ..CloudConfig::default()
        };
        let cloud = Cloud::new(&config.check()?, Arc::new(SystemResolve), SystemClock::shared())?;
        let text = |name: &str| file[name].as_str().context("a member of the account");
        let secret = Secret::new(text("clientSecret")?.to_owned());
        let credential = cloud.client_secret(text("tenantId")?, text("clientId")?, secret);
        Ok(Self { cloud, credential, file })
    }

    fn arm(&self) -> ArmClient {
        self.cloud.arm(self.credential.clone())
    }

    fn tenant(&self) -> Result<Uuid> {
        Ok(Uuid::try_parse(self.file["tenantId"].as_str().unwrap_or_default())?)
    }

    /// The assignment that makes it the owner of a subscription.
    async fn ownership(&self, subscription: &str) -> Result<RoleAssignment> {
        let path = format!("/subscriptions/{subscription}/providers/Microsoft.Authorization/roleAssignments");
        let all: Vec<RoleAssignment> = self.arm().list(&path, api_version::AUTHORIZATION, &[]).await?;
        let principal = self.principal().await?;
        let owner = |one: &RoleAssignment| {
            one.properties.role_definition_id.ends_with(OWNER)
                && one.properties.principal_id.eq_ignore_ascii_case(&principal)
        };
        all.into_iter().find(owner).context("an owner")
    }

    /// The object id in a token of the account.
    async fn principal(&self) -> Result<String> {
        let token = self.credential.token(&Scope::new("https://management.azure.com/")).await?;
        let claims = token.secret.expose().split('.').nth(1).context("a JWT")?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims)?)?;
        Ok(claims["oid"].as_str().context("an object id")?.to_owned())
    }
}

fn layout(service: &Account) -> Result<RegionLayout> {
    Ok(RegionLayout::new(RegionConfig::default().params(service.tenant()?, vec!["1".to_owned()])))
}

/// What `aro env` prints.
fn environment(region: &Process) -> Result<BTreeMap<String, String>> {
    let printed = region.second("env")?;
    ensure!(printed.status.success(), "aro env: {}", String::from_utf8_lossy(&printed.stderr));
    let text = String::from_utf8(printed.stdout)?;
    let exports = text.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
    Ok(exports.map(|(name, value)| (name.to_owned(), value.trim_matches('\'').to_owned())).collect())
}

/// Runs a command in the region's environment; returns what it printed.
async fn run(environment: &BTreeMap<String, String>, program: &str, arguments: &[&str]) -> Result<String> {
    let output = Command::new(program)
        .args(arguments)
        .envs(environment)
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(DEADLINE, output).await.context("the command does not end")??;
    ensure!(
        output.status.success(),
        "{program} {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// Asks the region's DNS server alone, without recursion; returns the whole response.
async fn dig(region: &Process, name: &str, kind: &str) -> Result<String> {
    let server = region.addr("dns").context("the DNS server listens")?;
    let (at, port) = (format!("@{}", server.ip()), server.port().to_string());
    run(&BTreeMap::new(), "dig", &[&at, "-p", &port, "+norecurse", "+time=5", name, kind]).await
}

/// The fields of the log line about the layout.
fn applied(region: &Process) -> Result<String> {
    let log = region.log_text();
    let line = log.lines().find(|line| line.contains("cloud layout applied"));
    Ok(line.context("the layout is logged")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_region_is_laid_out_once_and_a_restart_writes_nothing() -> Result<()> {
    let mut region = Process::start(StoreChoice::Embedded).await?;
    let first = applied(&region)?;
    let service = Account::of(&region, "service.json")?;
    let (layout, arm) = (layout(&service)?, service.arm());
    let stamp = &layout.management[0];
    for id in [
        &layout.global.service_zone,
        &layout.global.cluster_zone,
        &layout.global.issuer_zone,
        &layout.global.service_registry,
        &layout.global.ocp_registry,
        &layout.global.front_door,
        &layout.global.vault,
        &layout.regional.service_zone,
        &layout.regional.vault,
        &layout.regional.oidc_storage,
        &layout.regional.cosmos,
        &layout.regional.event_grid,
        &layout.regional.maestro_database,
        &layout.regional.clusters_service_database,
        &layout.service.cluster,
        &layout.service.vnet,
        &layout.service.etcd_vault,
        &layout.service_identity("clusters-service"),
        &stamp.cluster,
        &stamp.vaults.clusters,
        &stamp.vaults.identities,
        &stamp.vaults.services,
        &stamp.vaults.etcd,
        &stamp.identity("maestro-consumer"),
    ] {
        let (subscription, group) = (id.subscription().context("a subscription")?, id.resource_group());
        let listed = arm.list_resources(subscription, group.context("a group")?).await?;
        ensure!(listed.iter().any(|found| found.id.to_lower() == id.to_lower()), "{id} is missing");
    }
    ensure!(!first.contains("\"created\":0") && !first.contains("created=0"), "{first}");
    region.interrupt()?;
    region.start_again().await?;
    let second = applied(&region)?;
    ensure!(second.contains("\"created\":0") || second.contains("created=0"), "{second}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_delegated_from_the_parent_zone_to_the_region() -> Result<()> {
    let region = Process::start(StoreChoice::Embedded).await?;
    let service = Account::of(&region, "service.json")?;
    let (layout, arm) = (layout(&service)?, service.arm());
    let zone = layout.regional.service_zone.name();
    let child = dig(&region, zone, "NS").await?;
    ensure!(child.contains("flags: qr aa") && child.contains("azure-local"), "{child}");
    let delegation = layout.global.service_zone.child("NS", &layout.params.subdomain);
    let delegation: Value = arm.get(&delegation, api_version::DNS).await?;
    let servers = delegation.pointer("/properties/NSRecords").and_then(Value::as_array).map(Vec::len);
    ensure!(servers.is_some_and(|count| count > 0), "{delegation}");

    let rp = dig(&region, &format!("rp.{zone}"), "A").await?;
    let address: Value = arm.get(&layout.service.ingress, api_version::NETWORK).await?;
    let address = address.pointer("/properties/ipAddress").and_then(Value::as_str).context("an address")?;
    ensure!(rp.contains("flags: qr aa") && rp.contains(address), "{rp}");
    let issuer = dig(&region, &layout.issuer_host(), "A").await?;
    let lines: Vec<Vec<&str>> = issuer.lines().map(|line| line.split_whitespace().collect()).collect();
    let has = |kind: &str, value: &str| lines.iter().any(|line| line.ends_with(&[kind, value]));
    ensure!(has("CNAME", "arohcpdev.azurefd.net.") && has("A", "198.51.100.1"), "{issuer}");

    // A zone that another server has: the parent refers to it.
    let data = RecordData::Ns(vec!["ns1.elsewhere.example.".to_owned()]);
    let set = RecordSet { name: "elsewhere".to_owned(), ttl: 60, data, metadata: Tags::new() };
    arm.ensure_record_set(&layout.global.service_zone, &set).await?;
    let below = format!("rp.elsewhere.{}", layout.global.service_zone.name());
    aro_fixtures::wait::until("the referral", || async {
        let response = dig(&region, &below, "A").await?;
        let refers = response.contains("AUTHORITY SECTION")
            && response.contains("ns1.elsewhere.example.")
            && response.contains("ANSWER: 0")
            && !response.contains("flags: qr aa");
        Ok(refers.then_some(()))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_a_cluster_are_verified_by_the_keys_behind_front_door() -> Result<()> {
    let region = Process::start(StoreChoice::Embedded).await?;
    let service = Account::of(&region, "service.json")?;
    let layout = layout(&service)?;
    let (storage, arm) = (&layout.regional.oidc_storage, service.arm());
    let owner = service.ownership(storage.subscription().context("a subscription")?).await?;
    let owner = Uuid::try_parse(&owner.properties.principal_id)?;
    arm.ensure_role_assignment(storage, &owner, PrincipalType::ServicePrincipal, &BLOB_DATA_CONTRIBUTOR)
        .await?;

    let (tenant, cluster) = (service.tenant()?, "2abc");
    let issuer = layout.issuer(tenant, cluster);
    let now = SystemClock::shared().now();
    let authority = Authority::generate("cluster", Validity::from_now(now, SignedDuration::from_hours(1)))?;
    let key = SigningKey::from_pem(&authority.key(), Algorithm::Es256)?;
    let keys = json!({ "keys": [key.jwk()] });
    let discovery = json!({ "issuer": issuer, "jwks_uri": format!("{issuer}/openid/v1/jwks") });
    let blobs = service.cloud.blobs(service.credential.clone(), arm.blob_endpoint(storage).await?);
    for (path, document) in [("openid/v1/jwks", &keys), (".well-known/openid-configuration", &discovery)] {
        let name = format!("{tenant}/{cluster}/{path}");
        blobs.put("$web", &name, "application/json", document.to_string().into()).await?;
    }

    let environment = environment(&region)?;
    let ca = environment.get("SSL_CERT_FILE").context("the authority")?;
    let fetch = |url: String| {
        let environment = &environment;
        // A bundle in the surroundings of the test would hide that of the region.
        async move { run(environment, "curl", &["-sS", "--fail", "--cacert", ca, &url]).await }
    };
    let found: Value =
        serde_json::from_str(&fetch(format!("{issuer}/.well-known/openid-configuration")).await?)?;
    assert_eq!(found["issuer"], issuer.as_str());
    let published = fetch(found["jwks_uri"].as_str().context("a link")?.to_owned()).await?;
    ensure!(
        fetch(format!("https://{}/index.html", layout.issuer_host())).await.is_err(),
        "the rest is closed"
    );

    let claims = json!({
        "iss": issuer, "aud": "api://AzureADTokenExchange", "sub": "system:serviceaccount:a:b",
        "iat": now.as_second(), "exp": now.as_second() + 600,
    });
    let token = key.sign(&claims)?;
    let verifier = |keys: &str| {
        let keys = aro_pki::jws::KeySet::from_json(keys.as_bytes()).context("a key set")?;
        let rules = Rules::new([Issuer::Exact(issuer.clone())], ["api://AzureADTokenExchange"]);
        anyhow::Ok(TokenVerifier::new(rules, Arc::new(StaticKeys::new(keys))))
    };
    ensure!(PublishedKeys::from_json(published.as_bytes()).is_some(), "{published}");
    let verified = verifier(&published)?.verify(&token, now).await?;
    assert_eq!(verified.subject.as_deref(), Some("system:serviceaccount:a:b"));
    let other = Authority::generate("other", Validity::from_now(now, SignedDuration::from_hours(1)))?;
    let other = SigningKey::from_pem(&other.key(), Algorithm::Es256)?.sign(&claims)?;
    ensure!(verifier(&published)?.verify(&other, now).await.is_err(), "a key that is not published");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_the_customer_removed_stays_removed() -> Result<()> {
    let mut region = Process::start(StoreChoice::Embedded).await?;
    let customer = Account::of(&region, "customer.json")?;
    let subscription = customer.file["subscriptionId"].as_str().context("a subscription")?.to_owned();
    let assignment = customer.ownership(&subscription).await?;
    customer.arm().delete(&assignment.id, api_version::AUTHORIZATION).await?;
    for restarted in [false, true] {
        if restarted {
            region.interrupt()?;
            region.start_again().await?;
        }
        let arm = Account::of(&region, "customer.json")?.arm();
        let group = ResourceId::from_parts(Some(&subscription), Some("g"), None, []);
        let refused = arm.find::<Value>(&group, api_version::RESOURCES).await;
        let refused = refused.err().context("a caller without any role")?;
        ensure!(refused.is_forbidden(), "{refused:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn az_logs_in_with_the_certificate_of_the_environment() -> Result<()> {
    let az = clients::installed("az")?.join("az/bin/az").display().to_string();
    let region = Process::start(StoreChoice::Embedded).await?;
    let environment = environment(&region)?;
    let variable =
        |name: &str| environment.get(name).map(String::as_str).with_context(|| format!("{name} is exported"));
    for name in [
        "HTTPS_PROXY",
        "NO_PROXY",
        "REQUESTS_CA_BUNDLE",
        "SSL_CERT_FILE",
        "AZURE_CONFIG_DIR",
        "AZURE_CLIENT_SECRET",
        "KUBECONFIG",
    ] {
        variable(name)?;
    }
    let certificate = variable("AZURE_CLIENT_CERTIFICATE_PATH")?;
    ensure!(std::fs::metadata(certificate)?.permissions().mode() & 0o777 == 0o600, "only its owner reads it");
    let login = ["login", "--service-principal", "--only-show-errors", "--output", "json"];
    let who = ["-u", variable("AZURE_CLIENT_ID")?, "--tenant", variable("AZURE_TENANT_ID")?];
    run(&environment, &az, &[&login[..], &who, &["--certificate", certificate]].concat()).await?;
    let shown = run(&environment, &az, &["account", "show", "--output", "json"]).await?;
    let shown: Value = serde_json::from_str(&shown)?;
    assert_eq!(shown["id"], variable("AZURE_SUBSCRIPTION_ID")?);
    Ok(())
}
