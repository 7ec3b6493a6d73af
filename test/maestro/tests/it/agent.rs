//! The agent, with a broker and a cluster; the test plays the server by hand.

mod play;

use anyhow::{Context as _, Result};
use aro_bundle::{
    Action, Delivery, EventType, KnownStatus, KnownVersion, SequenceId, SpecResync, StatusResync, Subresource,
};
use aro_fixtures::wait;
use aro_maestro_e2e::world::{World, config_map};
use serde_json::json;

use play::{CONSUMER, Play, applied_and_available, condition};

const ID: &str = "55c61e54-a3f6-563d-9fec-b1fe297bdfdb";

/// One cluster and one broker for each scenario: they stop and start things.
macro_rules! scenarios {
    ($($name:ident),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() -> Result<()> {
            let world = World::ours().await?;
            let play = Play::start(&world).await?;
            scenario::$name(&world, play).await?;
            world.stop().await
        })*
    };
}

scenarios!(
    a_bundle_is_applied_reported_and_deleted,
    a_restart_with_nothing_changed_sends_only_what_is_known,
    statuses_are_coalesced_while_the_broker_is_away_and_none_is_lost,
    what_is_known_is_enforced_while_the_service_cluster_is_away,
    a_status_resync_is_answered_with_what_differs,
    what_cannot_be_applied_is_told_and_what_is_not_for_us_is_dropped,
    a_delete_of_what_nobody_knows_is_acknowledged,
    an_older_version_changes_nothing,
);

mod scenario {
    use super::*;

    pub async fn a_bundle_is_applied_reported_and_deleted(world: &World, play: Play) -> Result<()> {
        let namespace = world.namespace("bundle").await?;
        let hello = play.hears(EventType::spec(Action::ResyncRequest)).await?;
        assert_eq!(hello.payload::<SpecResync>()?, SpecResync::default(), "a new agent knows nothing");
        assert_eq!(hello.original_source.as_deref(), Some(""));

        let event = Play::spec(ID, 1, &[config_map(&namespace, "m", "1")])?;
        play.send(&event).await?;
        let told = play.settles(ID, 1).await?;
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

        play.send(&Play::spec(ID, 2, &[config_map(&namespace, "m", "2")])?).await?;
        let next = play.settles(ID, 2).await?;
        let later =
            SequenceId::parse(next.sequence_id.as_deref().unwrap_or_default()).context("a sequence")?;
        assert!(later > sequence);
        assert_eq!(world.config_maps(&namespace).get("m").await?.data["data"]["a"], "2");

        play.send(&Play::delete(ID, 3)?).await?;
        let gone = play.hears_of(ID, |event| condition(event, "Deleted") == Some("True".to_owned())).await?;
        assert_eq!(gone.resource_version, Some(3));
        assert!(world.config_maps(&namespace).get_opt("m").await?.is_none(), "gone means gone");
        wait::until("the agent to forget it", || async {
            Ok(play.metrics().contains("maestro_agent_works 0").then_some(()))
        })
        .await?;
        play.stop().await
    }

    pub async fn a_restart_with_nothing_changed_sends_only_what_is_known(
        world: &World,
        mut play: Play,
    ) -> Result<()> {
        let namespace = world.namespace("restart").await?;
        play.send(&Play::spec(ID, 4, &[config_map(&namespace, "m", "1")])?).await?;
        play.settles(ID, 4).await?;
        play.stop_agent().await?;
        play.forget();
        play.start_agent(world).await?;
        let hello = play.hears(EventType::spec(Action::ResyncRequest)).await?;
        let known = SpecResync { resource_versions: vec![KnownVersion { id: ID.to_owned(), version: 4 }] };
        assert_eq!(hello.payload::<SpecResync>()?, known);
        // Something else goes all the way and back; so would have a status of the first.
        let other = "00000000-0000-5000-8000-000000000001";
        play.send(&Play::spec(other, 1, &[config_map(&namespace, "n", "1")])?).await?;
        play.settles(other, 1).await?;
        let of_first = play.heard().iter().filter(|event| event.resource_id.as_deref() == Some(ID)).count();
        assert_eq!(of_first, 0, "{:#?}", play.heard());
        play.stop().await
    }

    pub async fn statuses_are_coalesced_while_the_broker_is_away_and_none_is_lost(
        world: &World,
        mut play: Play,
    ) -> Result<()> {
        let namespace = world.namespace("away").await?;
        let bundle = Play::reporting(ID, 1, config_map(&namespace, "m", "1"))?;
        play.send(&bundle).await?;
        play.settles(ID, 1).await?;
        play.stop_broker().await?;
        let maps = world.config_maps(&namespace);
        for turn in 0..5 {
            let status = json!({"metadata": {"annotations": {"turn": format!("turn-{turn}")}}});
            maps.patch("m", &kube::api::PatchParams::default(), &kube::api::Patch::Merge(status)).await?;
        }
        wait::until("the status to wait", || async {
            Ok(play.metrics().contains("maestro_agent_statuses_waiting 1").then_some(()))
        })
        .await?;
        play.forget();
        play.start_broker().await?;
        play.hears_of(ID, |event| String::from_utf8_lossy(&event.data).contains("turn-4")).await?;
        play.stop().await
    }

    pub async fn what_is_known_is_enforced_while_the_service_cluster_is_away(
        world: &World,
        mut play: Play,
    ) -> Result<()> {
        let namespace = world.namespace("enforced").await?;
        play.send(&Play::spec(ID, 1, &[config_map(&namespace, "m", "1")])?).await?;
        play.settles(ID, 1).await?;
        play.stop_agent().await?;
        play.stop_broker().await?;
        let maps = world.config_maps(&namespace);
        maps.delete("m", &kube::api::DeleteParams::default()).await?;
        play.start_agent(world).await?;
        wait::until("the object to be back", || async { Ok(maps.get_opt("m").await?) }).await?;
        play.stop().await
    }

    pub async fn a_status_resync_is_answered_with_what_differs(world: &World, mut play: Play) -> Result<()> {
        let namespace = world.namespace("resync").await?;
        play.send(&Play::spec(ID, 1, &[config_map(&namespace, "m", "1")])?).await?;
        let told = play.settles(ID, 1).await?;
        let same = KnownStatus { id: ID.to_owned(), hash: told.status_hash.clone().unwrap_or_default() };
        play.forget();
        play.send(&Play::status_resync(&StatusResync { status_hashes: vec![same] })?).await?;
        let other = KnownStatus { id: ID.to_owned(), hash: "another".to_owned() };
        play.send(&Play::status_resync(&StatusResync { status_hashes: vec![other] })?).await?;
        let answer = play.hears(EventType::status(Action::ResyncResponse)).await?;
        assert_eq!((answer.resource_id.as_deref(), answer.status_hash), (Some(ID), told.status_hash));
        play.send(&Play::status_resync(&StatusResync::default())?).await?;
        wait::until("the second answer", || async { Ok((play.heard().len() > 1).then_some(())) }).await?;
        assert_eq!(play.heard().len(), 2, "the first request was answered with nothing");
        play.stop().await
    }

    pub async fn what_cannot_be_applied_is_told_and_what_is_not_for_us_is_dropped(
        world: &World,
        play: Play,
    ) -> Result<()> {
        let namespace = world.namespace("refused").await?;
        play.send(&Play::spec(ID, 1, &[])?).await?;
        let told = play.hears_of(ID, |event| condition(event, "Applied") == Some("False".to_owned())).await?;
        assert_eq!(told.resource_version, Some(1));
        assert!(String::from_utf8_lossy(&told.data).contains("holds no manifests"));
        let mut other = Play::spec(ID, 2, &[config_map(&namespace, "m", "1")])?;
        "c2".clone_into(&mut other.cluster_name);
        play.send(&other).await?;
        play.send_bytes(b"not json").await?;
        play.send(&Play::spec(ID, 3, &[config_map(&namespace, "m", "3")])?).await?;
        play.settles(ID, 3).await?;
        assert!(play.metrics().contains("maestro_agent_events_dropped_total 2"), "{}", play.metrics());
        play.stop().await
    }

    pub async fn a_delete_of_what_nobody_knows_is_acknowledged(_: &World, mut play: Play) -> Result<()> {
        play.send(&Play::delete(ID, 7)?).await?;
        let gone = play.hears_of(ID, |event| condition(event, "Deleted") == Some("True".to_owned())).await?;
        assert_eq!(gone.kind.subresource, Subresource::Status);
        // And again, should the answer have been lost.
        play.forget();
        play.send(&Play::delete(ID, 7)?).await?;
        play.hears_of(ID, |event| condition(event, "Deleted") == Some("True".to_owned())).await?;
        play.stop().await
    }

    pub async fn an_older_version_changes_nothing(world: &World, mut play: Play) -> Result<()> {
        let namespace = world.namespace("older").await?;
        play.send(&Play::spec(ID, 5, &[config_map(&namespace, "m", "5")])?).await?;
        play.settles(ID, 5).await?;
        play.send(&Play::spec(ID, 4, &[config_map(&namespace, "m", "4")])?).await?;
        // The same again is answered with what is known: the server may have lost it.
        play.forget();
        play.send(&Play::spec(ID, 5, &[config_map(&namespace, "m", "5")])?).await?;
        let again = play.hears_of(ID, applied_and_available).await?;
        assert_eq!(again.resource_version, Some(5));
        assert_eq!(world.config_maps(&namespace).get("m").await?.data["data"]["a"], "5");
        play.stop().await
    }
}
