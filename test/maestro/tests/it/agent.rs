//! The agent with a broker and a cluster; the test acts as the server.

mod fixture;

use anyhow::{Context as _, Result};
use aro_bundle::{
    Action, Delivery, EventType, KnownStatus, KnownVersion, SequenceId, SpecResync, StatusResync, Subresource,
};
use aro_fixtures::wait;
use aro_maestro_e2e::world::{World, config_map};
use serde_json::json;

use fixture::{CONSUMER, Fixture, applied_and_available, condition};

const ID: &str = "55c61e54-a3f6-563d-9fec-b1fe297bdfdb";

/// One cluster and one broker per scenario, since scenarios stop and start them.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            let world = World::ours().await?;
            let fixture = Fixture::start(&world).await?;
            scenario::$name(&world, fixture).await?;
            world.stop().await
        })*
    };
}

scenarios!(
    bundle_is_applied_reported_and_deleted,
    restart_without_changes_publishes_only_versions,
    statuses_are_coalesced_while_the_broker_is_down_and_none_is_lost,
    known_works_are_enforced_while_the_service_cluster_is_down,
    status_resync_is_answered_with_what_differs,
    rejected_bundle_is_reported_and_a_foreign_event_dropped,
    deletion_of_an_unknown_bundle_is_reported,
    stale_version_changes_nothing,
);

mod scenario {
    use super::*;

    pub async fn bundle_is_applied_reported_and_deleted(world: &World, fixture: Fixture) -> Result<()> {
        let namespace = world.namespace("bundle").await?;
        let hello = fixture.wait_for(EventType::spec(Action::ResyncRequest)).await?;
        assert_eq!(hello.payload::<SpecResync>()?, SpecResync::default(), "a new agent knows nothing");
        assert_eq!(hello.original_source.as_deref(), Some(""));

        let event = Fixture::spec(ID, 1, &[config_map(&namespace, "m", "1")])?;
        fixture.send(&event).await?;
        let told = fixture.wait_settled(ID, 1).await?;
        assert_eq!(told.original_source.as_deref(), Some("maestro"));
        assert_eq!((told.source.as_str(), told.cluster_name.as_str()), ("c1-work-agent", CONSUMER));
        let sequence =
            SequenceId::parse(told.sequence_id.as_deref().unwrap_or_default()).context("a sequence")?;
        assert_eq!(sequence.node(), 1);
        assert_eq!(told.metadata_object()?["uid"], ID);
        let delivery = Delivery::of(&told).context("the delivery ledger")?;
        assert_eq!(delivery.hash, aro_bundle::content_hash(&event.data));
        assert!(delivery.applied.is_some() && delivery.observed.is_some());
        assert_eq!(world.config_maps(&namespace).get("m").await?.data["data"]["a"], "1");

        fixture.send(&Fixture::spec(ID, 2, &[config_map(&namespace, "m", "2")])?).await?;
        let next = fixture.wait_settled(ID, 2).await?;
        let later =
            SequenceId::parse(next.sequence_id.as_deref().unwrap_or_default()).context("a sequence")?;
        assert!(later > sequence);
        assert_eq!(world.config_maps(&namespace).get("m").await?.data["data"]["a"], "2");

        fixture.send(&Fixture::delete(ID, 3)?).await?;
        let gone =
            fixture.hears_of(ID, |event| condition(event, "Deleted") == Some("True".to_owned())).await?;
        assert_eq!(gone.resource_version, Some(3));
        assert!(world.config_maps(&namespace).get_opt("m").await?.is_none(), "gone means gone");
        wait::until("the agent to clear it", || async {
            Ok(fixture.metrics().contains("maestro_agent_works 0").then_some(()))
        })
        .await?;
        fixture.stop().await
    }

    pub async fn restart_without_changes_publishes_only_versions(
        world: &World,
        mut fixture: Fixture,
    ) -> Result<()> {
        let namespace = world.namespace("restart").await?;
        fixture.send(&Fixture::spec(ID, 4, &[config_map(&namespace, "m", "1")])?).await?;
        fixture.wait_settled(ID, 4).await?;
        fixture.stop_agent().await?;
        fixture.clear();
        fixture.start_agent(world).await?;
        let hello = fixture.wait_for(EventType::spec(Action::ResyncRequest)).await?;
        let known = SpecResync { resource_versions: vec![KnownVersion { id: ID.to_owned(), version: 4 }] };
        assert_eq!(hello.payload::<SpecResync>()?, known);
        // Another bundle makes a full round trip; a status of the first would have arrived before.
        let other = "00000000-0000-5000-8000-000000000001";
        fixture.send(&Fixture::spec(other, 1, &[config_map(&namespace, "n", "1")])?).await?;
        fixture.wait_settled(other, 1).await?;
        let of_first =
            fixture.received().iter().filter(|event| event.resource_id.as_deref() == Some(ID)).count();
        assert_eq!(of_first, 0, "{:#?}", fixture.received());
        fixture.stop().await
    }

    pub async fn statuses_are_coalesced_while_the_broker_is_down_and_none_is_lost(
        world: &World,
        mut fixture: Fixture,
    ) -> Result<()> {
        let namespace = world.namespace("away").await?;
        let bundle = Fixture::reporting(ID, 1, config_map(&namespace, "m", "1"))?;
        fixture.send(&bundle).await?;
        fixture.wait_settled(ID, 1).await?;
        fixture.stop_broker().await?;
        let maps = world.config_maps(&namespace);
        for turn in 0..5 {
            let status = json!({"metadata": {"annotations": {"turn": format!("turn-{turn}")}}});
            maps.patch("m", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(status)).await?;
        }
        wait::until("the status to wait", || async {
            Ok(fixture.metrics().contains("maestro_agent_statuses_waiting 1").then_some(()))
        })
        .await?;
        fixture.clear();
        fixture.start_broker().await?;
        fixture.hears_of(ID, |event| String::from_utf8_lossy(&event.data).contains("turn-4")).await?;
        fixture.stop().await
    }

    pub async fn known_works_are_enforced_while_the_service_cluster_is_down(
        world: &World,
        mut fixture: Fixture,
    ) -> Result<()> {
        let namespace = world.namespace("enforced").await?;
        fixture.send(&Fixture::spec(ID, 1, &[config_map(&namespace, "m", "1")])?).await?;
        fixture.wait_settled(ID, 1).await?;
        fixture.stop_agent().await?;
        fixture.stop_broker().await?;
        let maps = world.config_maps(&namespace);
        maps.delete("m", &kube::api::DeleteParams::default()).await?;
        fixture.start_agent(world).await?;
        wait::until("the object to be back", || async { Ok(maps.get_opt("m").await?) }).await?;
        fixture.stop().await
    }

    pub async fn status_resync_is_answered_with_what_differs(
        world: &World,
        mut fixture: Fixture,
    ) -> Result<()> {
        let namespace = world.namespace("resync").await?;
        fixture.send(&Fixture::spec(ID, 1, &[config_map(&namespace, "m", "1")])?).await?;
        let told = fixture.wait_settled(ID, 1).await?;
        let same = KnownStatus { id: ID.to_owned(), hash: told.status_hash.clone().unwrap_or_default() };
        fixture.clear();
        fixture.send(&Fixture::status_resync(&StatusResync { status_hashes: vec![same] })?).await?;
        let other = KnownStatus { id: ID.to_owned(), hash: "another".to_owned() };
        fixture.send(&Fixture::status_resync(&StatusResync { status_hashes: vec![other] })?).await?;
        let answer = fixture.wait_for(EventType::status(Action::ResyncResponse)).await?;
        assert_eq!((answer.resource_id.as_deref(), answer.status_hash), (Some(ID), told.status_hash));
        fixture.send(&Fixture::status_resync(&StatusResync::default())?).await?;
        wait::until("the second answer", || async { Ok((fixture.received().len() > 1).then_some(())) })
            .await?;
        assert_eq!(fixture.received().len(), 2, "the first request was answered with nothing");
        fixture.stop().await
    }

    pub async fn rejected_bundle_is_reported_and_a_foreign_event_dropped(
        world: &World,
        fixture: Fixture,
    ) -> Result<()> {
        let namespace = world.namespace("refused").await?;
        fixture.send(&Fixture::spec(ID, 1, &[])?).await?;
        let told =
            fixture.hears_of(ID, |event| condition(event, "Applied") == Some("False".to_owned())).await?;
        assert_eq!(told.resource_version, Some(1));
        assert!(String::from_utf8_lossy(&told.data).contains("holds no manifests"));
        let mut other = Fixture::spec(ID, 2, &[config_map(&namespace, "m", "1")])?;
        "c2".clone_into(&mut other.cluster_name);
        fixture.send(&other).await?;
        fixture.send_bytes(b"not json").await?;
        fixture.send(&Fixture::spec(ID, 3, &[config_map(&namespace, "m", "3")])?).await?;
        fixture.wait_settled(ID, 3).await?;
        assert!(fixture.metrics().contains("maestro_agent_events_dropped_total 2"), "{}", fixture.metrics());
        fixture.stop().await
    }

    pub async fn deletion_of_an_unknown_bundle_is_reported(_: &World, mut fixture: Fixture) -> Result<()> {
        fixture.send(&Fixture::delete(ID, 7)?).await?;
        let gone =
            fixture.hears_of(ID, |event| condition(event, "Deleted") == Some("True".to_owned())).await?;
        assert_eq!(gone.kind.subresource, Subresource::Status);
        // Repeated, since the response may be lost.
        fixture.clear();
        fixture.send(&Fixture::delete(ID, 7)?).await?;
        fixture.hears_of(ID, |event| condition(event, "Deleted") == Some("True".to_owned())).await?;
        fixture.stop().await
    }

    pub async fn stale_version_changes_nothing(world: &World, mut fixture: Fixture) -> Result<()> {
        let namespace = world.namespace("older").await?;
        fixture.send(&Fixture::spec(ID, 5, &[config_map(&namespace, "m", "5")])?).await?;
        fixture.wait_settled(ID, 5).await?;
        fixture.send(&Fixture::spec(ID, 4, &[config_map(&namespace, "m", "4")])?).await?;
        // A duplicate is answered with the known status: the server may have lost it.
        fixture.clear();
        fixture.send(&Fixture::spec(ID, 5, &[config_map(&namespace, "m", "5")])?).await?;
        let again = fixture.hears_of(ID, applied_and_available).await?;
        assert_eq!(again.resource_version, Some(5));
        assert_eq!(world.config_maps(&namespace).get("m").await?.data["data"]["a"], "5");
        fixture.stop().await
    }
}
