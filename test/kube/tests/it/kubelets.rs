//! The virtual kubelet itself, on our API server and on a real one. Nobody else acts here: pods are bound by hand.
//!
//! A scenario is a function of a [`Server`] and must not care which one it is. Each works in a namespace and on nodes of
//! its own, so that all of them share a server and run at once.

mod image;
mod joining;
mod real_images;
mod scripts;
mod server;

use anyhow::Result;
use futures::future::try_join_all;

use server::Server;

async fn all(server: &Server) -> Result<()> {
    let scripts: [futures::future::BoxFuture<'_, Result<()>>; 10] = [
        Box::pin(scripts::pods_go_through_the_states_their_scripts_tell(server)),
        Box::pin(scripts::what_runs_first_and_what_runs_beside(server)),
        Box::pin(scripts::what_pods_refer_to_may_come_late(server)),
        Box::pin(scripts::a_restart_leaves_pretending_pods_alone_and_starts_real_ones_again(server)),
        Box::pin(real_images::a_container_gets_its_files_and_variables(server)),
        Box::pin(real_images::pod_that_may_not_run_an_image_gets_an_error_and_never_a_container(server)),
        Box::pin(real_images::host_path_that_is_not_allowed_is_not_mounted(server)),
        Box::pin(real_images::probes_are_asked_and_believed(server)),
        Box::pin(real_images::containers_have_time_to_stop_and_no_more(server)),
        Box::pin(joining::a_machine_with_a_token_becomes_a_node(server)),
    ];
    try_join_all(scripts).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_work_on_ours() -> Result<()> {
    server::on_ours(all).await
}

#[tokio::test(flavor = "multi_thread")]
async fn kubelets_work_on_a_real_api_server() -> Result<()> {
    server::on_real(all).await
}
