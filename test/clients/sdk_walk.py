"""Drives all three resources through their life with the official Python SDK, unmodified.

Usage: sdk_walk.py BASE_URL SUBSCRIPTION BODIES, where BODIES is a JSON file with the resources to create.
Prints one line per step; any surprise is an exception and a non-zero exit.
"""

import json
import sys

from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.pipeline.policies import SansIOHTTPPolicy
from azure.mgmt.redhatopenshifthcp import RedHatOpenShiftHcpMgmtClient

GROUP = "rg-sdk"
CLUSTER = "sdk-cluster"


class NoToken(SansIOHTTPPolicy):
    """The front end is behind the ingress; reached directly it asks for no token."""


class NoCredential:
    def get_token(self, *scopes, **kwargs):
        raise AssertionError("no token is needed on loopback")


def step(text):
    print(text, flush=True)


def main(base_url, subscription, bodies):
    client = RedHatOpenShiftHcpMgmtClient(
        NoCredential(),
        subscription,
        base_url=base_url,
        authentication_policy=NoToken(),
    )
    headers = {"X-Ms-Identity-Url": "https://identity.example.com/credentials"}
    clusters, pools, auths = client.hcp_open_shift_clusters, client.node_pools, client.external_auths

    created = clusters.begin_create_or_update(GROUP, CLUSTER, bodies["cluster"], headers=headers).result()
    assert created.properties.provisioning_state == "Succeeded", created.properties.provisioning_state
    assert created.properties.api.url.startswith("https://api."), created.properties.api.url
    assert created.system_data.created_at is not None
    step("cluster created")

    pool = pools.begin_create_or_update(GROUP, CLUSTER, "np-1", bodies["nodePool"]).result()
    assert pool.properties.replicas == 2 and pool.properties.platform.subnet_id
    auth = auths.begin_create_or_update(GROUP, CLUSTER, "auth-1", bodies["externalAuth"]).result()
    assert auth.properties.issuer.url == "https://issuer.example.com"
    step("children created")

    assert clusters.get(GROUP, CLUSTER).name == CLUSTER
    assert [c.name for c in clusters.list_by_resource_group(GROUP)] == [CLUSTER]
    assert [c.name for c in clusters.list_by_subscription()] == [CLUSTER]
    assert [p.name for p in pools.list_by_parent(GROUP, CLUSTER)] == ["np-1"]
    assert [a.name for a in auths.list_by_parent(GROUP, CLUSTER)] == ["auth-1"]
    step("all listed")

    # PATCH, with the type of the whole object where the SDK has no other.
    updated = clusters.begin_update(
        GROUP, CLUSTER, {"tags": {"from": "sdk"}, "properties": {"nodeDrainTimeoutMinutes": 11}}
    ).result()
    assert updated.properties.node_drain_timeout_minutes == 11 and updated.tags == {"from": "sdk"}
    assert pools.begin_update(GROUP, CLUSTER, "np-1", {"properties": {"replicas": 3}}).result().properties.replicas == 3
    changed = {"properties": {"issuer": {"url": "https://other.example.com", "audiences": ["audience-1"]}}}
    updated = auths.begin_update(GROUP, CLUSTER, "auth-1", changed).result()
    assert updated.properties.issuer.url == "https://other.example.com"
    step("all updated with PATCH")

    # Read, change, write back: what the command line does.
    whole = clusters.get(GROUP, CLUSTER)
    whole.properties.node_drain_timeout_minutes = 12
    written = clusters.begin_create_or_update(GROUP, CLUSTER, whole).result()
    assert written.properties.node_drain_timeout_minutes == 12
    whole = pools.get(GROUP, CLUSTER, "np-1")
    whole.properties.replicas = 4
    assert pools.begin_create_or_update(GROUP, CLUSTER, "np-1", whole).result().properties.replicas == 4
    step("all updated with PUT")

    csr = {"certificateSigningRequest": bodies["certificateSigningRequest"]}
    credential = clusters.begin_request_admin_credential(GROUP, CLUSTER, csr).result()
    assert credential.kubeconfig and credential.expiration_timestamp
    clusters.begin_revoke_credentials(GROUP, CLUSTER).result()
    step("credential issued and revoked")

    assert len(list(client.hcp_open_shift_versions.list("uksouth"))) == 119
    assert client.hcp_open_shift_versions.get("uksouth", "4.22.11").properties.enabled
    assert len(list(client.hcp_operator_identity_role_sets.list("uksouth"))) == 4
    assert len(list(client.operations.list())) == 26
    step("versions, role sets and operations read")

    try:
        pools.begin_create_or_update(GROUP, CLUSTER, "np-2", {"location": "uksouth", "properties": {"platform": {}}})
        raise AssertionError("a node pool without a size was accepted")
    except HttpResponseError as error:
        assert error.status_code == 400 and error.error.code, error
    try:
        pools.begin_delete(GROUP, CLUSTER, "np-1")
        raise AssertionError("the last node pool was deleted")
    except HttpResponseError as error:
        assert error.error.code == "InvalidRequestContent", error
    step("mistakes are told")

    pools.begin_create_or_update(GROUP, CLUSTER, "np-2", bodies["nodePool"]).result()
    pools.begin_delete(GROUP, CLUSTER, "np-2").result()
    auths.begin_delete(GROUP, CLUSTER, "auth-1").result()
    clusters.begin_delete(GROUP, CLUSTER).result()
    try:
        clusters.get(GROUP, CLUSTER)
        raise AssertionError("a deleted cluster is still there")
    except ResourceNotFoundError:
        pass
    clusters.begin_delete(GROUP, CLUSTER).result()
    step("all deleted")


if __name__ == "__main__":
    with open(sys.argv[3], encoding="utf-8") as file:
        main(sys.argv[1], sys.argv[2], json.load(file))
    print("walk complete")
