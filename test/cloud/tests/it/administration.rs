//! The administration of the cloud: who may use it, what the log of mutations and the inventory hold.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use aro_arm::ResourceId;
use aro_azure_local::{AdminAccess, AzureLocalConfig, Fault, MutationPage, Rule};
use aro_cloud::resources::{GroupSpec, SubnetSpec, Tags, VnetSpec};
use aro_cloud::{ArmClient, Precondition, Transport, api_version};
use aro_cloud_e2e::Site;
use aro_runtime::ByteSize;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

const WITHIN: Duration = Duration::from_secs(10);

fn group_spec() -> GroupSpec {
    GroupSpec { location: "westus3".to_owned(), managed_by: None, tags: Tags::new() }
}

fn arm(site: &Site) -> Result<ArmClient> {
    let cloud = site.cloud(site.transport()?)?;
    Ok(cloud.arm(site.customer(&cloud)).with_correlation_id("the-test"))
}

fn group_id(site: &Site, name: &str) -> ResourceId {
    ResourceId::from_parts(Some(&site.subscription()), Some(name), None, [])
}

#[tokio::test]
async fn only_this_machines_operator_is_admitted() -> Result<()> {
    let site = Site::start().await?;
    let transport = site.transport()?;
    let key = AdminAccess::read(&site.files())?.key;
    let wrong = key.replace(|c: char| c.is_ascii_digit(), "0");
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    for path in ["faults", "mutations", "resources", "nothing"] {
        for (host, authorization, expected) in [
            ("localhost", None, 401),
            ("localhost", bearer(&wrong), 401),
            ("localhost", bearer(""), 401),
            ("localhost", Some(format!("Basic {key}")), 401),
            ("management.azure.com", bearer(&key), 421),
            ("login.microsoftonline.com", None, 421),
            ("v.vault.azure.net", bearer(&key), 421),
            ("localhost", bearer(&key), if path == "nothing" { 404 } else { 200 }),
        ] {
            let mut request = Request::get(format!("https://{host}/_aro/cloud/{path}"));
            if let Some(authorization) = &authorization {
                request = request.header("authorization", authorization);
            }
            let reply = transport.send(request.body(Bytes::new())?, WITHIN).await?;
            ensure!(
                reply.status().as_u16() == expected,
                "{host} {path} {}: expected {expected}",
                reply.status()
            );
        }
    }
    site.stop().await
}

#[tokio::test]
async fn rules_are_checked_and_bodies_are_bounded() -> Result<()> {
    let site = Site::start().await?;
    let admin = site.administration(site.transport()?);
    let huge = json!({"fault": "cut", "resource": "x".repeat(100_000)});
    for (body, expected) in [
        (json!({"fault": "cut"}), StatusCode::CREATED),
        (json!({"fault": "cut", "probability": 2.0}), StatusCode::BAD_REQUEST),
        (json!({"fault": "flood"}), StatusCode::BAD_REQUEST),
        (json!([]), StatusCode::BAD_REQUEST),
        (huge, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let (status, answer) = admin.call(Method::POST, "faults", Some(&body)).await?;
        ensure!(status == expected, "{status}: {answer}");
    }
    let (status, _) = admin.call(Method::DELETE, "faults/77", None).await?;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = admin.call(Method::PUT, "faults", None).await?;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    let (_, cleared) = admin.call(Method::DELETE, "faults", None).await?;
    assert_eq!(cleared["rules"].as_array().map(Vec::len), Some(1), "{cleared}");
    site.stop().await
}

/// The outcomes that the log holds of a resource, in order.
fn outcomes(page: &MutationPage, id: &ResourceId) -> Vec<String> {
    let of_id = page.entries.iter().filter(|entry| entry.resource_id.eq_ignore_ascii_case(id.as_str()));
    of_id.map(|entry| format!("{} {}", entry.method, entry.outcome)).collect()
}

#[tokio::test]
async fn the_log_tells_created_updated_noop_and_deleted_apart() -> Result<()> {
    let site = Site::start().await?;
    let (arm, admin) = (arm(&site)?, site.admin_client()?);
    let group = group_id(&site, "g");
    arm.ensure_resource_group(&site.subscription(), "g", &group_spec()).await?;
    let zone =
        ResourceId::in_group(&site.subscription(), "g", "Microsoft.Network", &[("dnsZones", "example.com")]);
    let body = json!({"location": "global", "tags": {"a": "b"}});
    for _ in 0..2 {
        arm.put(&zone, api_version::DNS, &body, &Precondition::None).await?;
    }
    arm.patch(&zone, api_version::DNS, &json!({"tags": {"a": "c"}})).await?;
    arm.delete_zone(&zone).await?;
    arm.delete_zone(&zone).await?;
    let page = admin.mutations(None).await?;
    assert_eq!(outcomes(&page, &group), ["PUT created"]);
    let expected = ["PUT created", "PUT noop", "PATCH updated", "DELETE deleted", "DELETE noop"];
    assert_eq!(outcomes(&page, &zone), expected);
    let last = page.entries.last().context("entries")?;
    assert_eq!((last.sequence, last.correlation_id.as_deref()), (page.cursor, Some("the-test")));
    assert!(page.entries.iter().all(|entry| entry.caller.is_some()), "{page:?}");
    assert!(admin.mutations(Some((page.instance, page.cursor))).await?.entries.is_empty());
    site.stop().await
}

#[tokio::test]
async fn a_reader_that_is_too_late_learns_of_the_gap_and_can_go_on() -> Result<()> {
    let config = AzureLocalConfig { mutation_log: ByteSize::bytes(4096), ..AzureLocalConfig::default() };
    let site = Site::start_with(config).await?;
    let (arm, admin) = (arm(&site)?, site.admin_client()?);
    let before = admin.mutations(None).await?;
    for n in 0..40 {
        arm.ensure_resource_group(&site.subscription(), &format!("g{n}"), &group_spec()).await?;
    }
    let gap = admin.mutations(Some((before.instance, before.cursor))).await.err().context("a gap")?;
    assert!(gap.is_gap(), "{gap}");
    let kept = admin.mutations(None).await?;
    ensure!(!kept.entries.is_empty() && kept.entries.len() < 40, "{} entries", kept.entries.len());
    let other = uuid::Uuid::new_v4();
    assert!(admin.mutations(Some((other, kept.cursor))).await.is_err_and(|error| error.is_gap()));
    site.stop().await
}

#[tokio::test]
async fn the_inventory_spans_subscriptions_and_shows_children_of_documents() -> Result<()> {
    let site = Site::start().await?;
    let (arm, admin) = (arm(&site)?, site.admin_client()?);
    arm.ensure_resource_group(&site.subscription(), "g", &group_spec()).await?;
    let vnet =
        ResourceId::in_group(&site.subscription(), "g", "Microsoft.Network", &[("virtualNetworks", "v")]);
    let address_prefixes = vec!["10.0.0.0/16".to_owned()];
    let spec = VnetSpec { location: "westus3".to_owned(), address_prefixes, tags: Tags::new() };
    arm.ensure_vnet(&vnet, &spec).await?;
    let subnet = vnet.child("subnets", "s");
    let spec = SubnetSpec { address_prefix: "10.0.1.0/24".to_owned(), ..SubnetSpec::default() };
    arm.ensure_subnet(&subnet, &spec).await?;
    let all = admin.resources(None, None, None).await?;
    let types: Vec<&str> = all.resources.iter().filter_map(|resource| resource["type"].as_str()).collect();
    let subscriptions = types.iter().filter(|known| **known == "Microsoft.Resources/subscriptions").count();
    assert!(subscriptions >= 2, "{types:?}");
    let in_group = admin.resources(Some(&site.subscription()), Some("g"), None).await?;
    let ids: Vec<&Value> = in_group.resources.iter().map(|resource| &resource["id"]).collect();
    assert_eq!(ids, [vnet.as_str()]);
    let shown = admin.resource(&subnet.to_lower()).await?;
    assert_eq!(shown["properties"]["addressPrefix"], "10.0.1.0/24");
    let absent = admin.resource(vnet.child("subnets", "none").as_str()).await;
    assert!(absent.is_err_and(|error| error.to_string().contains("NotFound")));
    site.stop().await
}

#[tokio::test]
async fn rules_end_with_the_process_that_held_them() -> Result<()> {
    let site = Site::start().await?;
    let admin = site.admin_client()?;
    let added = admin.add_fault(&Rule { count: Some(1), ..Rule::of(Fault::Cut) }).await?;
    let faults = admin.faults().await?;
    assert_eq!((faults.seed, faults.rules.first().map(|rule| rule.id)), (1, Some(added.id)));
    let files = site.files();
    site.stop().await?;
    assert!(AdminAccess::read(&files).is_err(), "nothing is left to reach");
    Ok(())
}
