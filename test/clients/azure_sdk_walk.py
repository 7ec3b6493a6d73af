"""Drives a customer's resources through their life with Microsoft's Python SDKs, unmodified, under Azure's own host names.

Usage: azure_sdk_walk.py sync|async, in the environment that `aro env` prints. One walk serves both: what the asynchronous
clients return is awaited. Prints one line per step; any surprise is an exception and a non-zero exit.
"""

import asyncio
import inspect
import os
import sys
import uuid
from datetime import datetime, timedelta, timezone

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError
from azure.storage.blob import BlobSasPermissions, generate_blob_sas

GROUP = "sdk"
SUBSCRIPTION = os.environ["AZURE_SUBSCRIPTION_ID"]
SCOPE = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}"
LOCATION = "westus3"


def step(text):
    print(text, flush=True)


async def value(result):
    """The result of a call of either kind of client."""
    return await result if inspect.isawaitable(result) else result


async def done(poller):
    """The result of a long-running operation."""
    return await value((await value(poller)).result())


async def every(pages):
    """Everything that a list returns."""
    return [item async for item in pages] if hasattr(pages, "__aiter__") else list(pages)


async def refused(code, call):
    """Makes a call that is refused with this code; a synchronous client refuses while it is made."""
    try:
        result = await value(call())
        if hasattr(result, "result"):
            await value(result.result())
    except HttpResponseError as error:
        assert error.error and error.error.code == code, error
        return str(error)
    raise AssertionError(f"not refused with {code}")


class Clients:
    """The same clients, synchronous or asynchronous."""

    def __init__(self, mode):
        if mode == "async":
            from azure.identity.aio import ClientSecretCredential, EnvironmentCredential
            from azure.keyvault.secrets.aio import SecretClient
            from azure.mgmt.authorization.aio import AuthorizationManagementClient
            from azure.mgmt.dns.aio import DnsManagementClient
            from azure.mgmt.msi.aio import ManagedServiceIdentityClient
            from azure.mgmt.network.aio import NetworkManagementClient
            from azure.mgmt.resource.resources.aio import ResourceManagementClient
            from azure.storage.blob.aio import BlobClient, BlobServiceClient
        else:
            from azure.identity import ClientSecretCredential, EnvironmentCredential
            from azure.keyvault.secrets import SecretClient
            from azure.mgmt.authorization import AuthorizationManagementClient
            from azure.mgmt.dns import DnsManagementClient
            from azure.mgmt.msi import ManagedServiceIdentityClient
            from azure.mgmt.network import NetworkManagementClient
            from azure.mgmt.resource.resources import ResourceManagementClient
            from azure.storage.blob import BlobClient, BlobServiceClient
        self.mode = mode
        self.credential = EnvironmentCredential()
        self.client_secret = ClientSecretCredential
        self.resources = ResourceManagementClient(self.credential, SUBSCRIPTION)
        self.network = NetworkManagementClient(self.credential, SUBSCRIPTION)
        self.identities = ManagedServiceIdentityClient(self.credential, SUBSCRIPTION)
        self.authorization = AuthorizationManagementClient(self.credential, SUBSCRIPTION)
        self.dns = DnsManagementClient(self.credential, SUBSCRIPTION)
        self.secrets = lambda vault: SecretClient(f"https://{vault}.vault.azure.net", self.credential)
        self.account = lambda name, credential: BlobServiceClient(f"https://{name}.blob.core.windows.net", credential)
        self.blob = lambda url: BlobClient.from_blob_url(url)
        self.opened = [self.resources, self.network, self.identities, self.authorization, self.dns, self.credential]

    async def close(self):
        for client in self.opened:
            await value(client.close())


async def groups(clients):
    made = await value(
        clients.resources.resource_groups.create_or_update(GROUP, {"location": LOCATION, "tags": {"a": "b"}})
    )
    assert made.id == SCOPE and made.properties.provisioning_state == "Succeeded", made
    assert [group.name for group in await every(clients.resources.resource_groups.list())] == [GROUP]
    assert await value(clients.resources.resource_groups.check_existence(GROUP))
    assert not await value(clients.resources.resource_groups.check_existence("none"))
    provider = await value(clients.resources.providers.get("Microsoft.Network"))
    assert provider.registration_state == "Registered", provider
    step("group created")


async def network(clients):
    net = clients.network
    group = await done(
        net.network_security_groups.begin_create_or_update(
            GROUP,
            "nsg",
            {
                "location": LOCATION,
                "properties": {
                    "securityRules": [
                        {
                            "name": "https",
                            "properties": {
                                "priority": 100,
                                "direction": "Inbound",
                                "access": "Allow",
                                "protocol": "Tcp",
                                "sourceAddressPrefix": "*",
                                "sourcePortRange": "*",
                                "destinationAddressPrefix": "*",
                                "destinationPortRange": "443",
                            },
                        }
                    ]
                },
            },
        )
    )
    vnet = await done(
        net.virtual_networks.begin_create_or_update(
            GROUP,
            "vnet",
            {"location": LOCATION, "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]}}},
        )
    )
    assert vnet.name == "vnet"
    subnet = await done(
        net.subnets.begin_create_or_update(
            GROUP,
            "vnet",
            "nodes",
            {"properties": {"addressPrefix": "10.0.1.0/24", "networkSecurityGroup": {"id": group.id}}},
        )
    )
    assert subnet.id.endswith("/subnets/nodes"), subnet.id
    assert [item.name for item in await every(net.subnets.list(GROUP, "vnet"))] == ["nodes"]
    code = "InUseNetworkSecurityGroupCannotBeDeleted"
    await refused(code, lambda: net.network_security_groups.begin_delete(GROUP, "nsg"))
    address = await done(
        net.public_ip_addresses.begin_create_or_update(
            GROUP,
            "ip",
            {
                "location": LOCATION,
                "sku": {"name": "Standard"},
                "properties": {"publicIPAllocationMethod": "Static"},
            },
        )
    )
    frontend = {"name": "f", "properties": {"publicIPAddress": {"id": address.id}}}
    await done(
        net.load_balancers.begin_create_or_update(
            GROUP,
            "lb",
            {
                "location": LOCATION,
                "sku": {"name": "Standard"},
                "properties": {
                    "frontendIPConfigurations": [frontend],
                    "backendAddressPools": [{"name": "pool"}],
                },
            },
        )
    )
    shown = await value(net.load_balancers.get(GROUP, "lb"))
    assert shown.name == "lb" and shown.id.endswith("/loadBalancers/lb"), shown
    usages = await every(net.usages.list(LOCATION))
    assert any(usage.current_value == 1 for usage in usages), usages
    step("network created")


async def names(clients):
    zone = await value(clients.dns.zones.create_or_update(GROUP, "sdk.example.com", {"location": "global"}))
    servers = zone.name_servers if hasattr(zone, "name_servers") else zone.properties.name_servers
    assert servers, zone
    record = {"properties": {"TTL": 60, "ARecords": [{"ipv4Address": "192.0.2.9"}]}}
    await value(clients.dns.record_sets.create_or_update(GROUP, "sdk.example.com", "www", "A", record))
    listed = await every(clients.dns.record_sets.list_by_dns_zone(GROUP, "sdk.example.com"))
    assert "www" in [item.name for item in listed], listed
    step("zone created")


async def identities(clients):
    msi = clients.identities
    identity = await value(
        msi.user_assigned_identities.create_or_update(GROUP, "operator", {"location": LOCATION})
    )
    principal = getattr(identity, "principal_id", None) or identity.properties.principal_id
    credential = {
        "properties": {
            "issuer": "https://issuer.example.com",
            "subject": "system:serviceaccount:ns:name",
            "audiences": ["openshift"],
        }
    }
    await value(
        msi.federated_identity_credentials.create_or_update(GROUP, "operator", "token", credential)
    )
    listed = await every(msi.federated_identity_credentials.list(GROUP, "operator"))
    assert [item.name for item in listed] == ["token"], listed
    step("identity created")
    return principal


async def roles(clients, principal):
    auth = clients.authorization
    found = await every(auth.role_definitions.list(SCOPE, filter="roleName eq 'Reader'"))
    assert len(found) == 1, found
    body = {
        "properties": {
            "roleDefinitionId": f"/subscriptions/{SUBSCRIPTION}{found[0].id}",
            "principalId": str(principal),
            "principalType": "ServicePrincipal",
        }
    }
    name = str(uuid.uuid4())
    made = await value(auth.role_assignments.create(SCOPE, name, body))
    assert made.name == name, made
    again = str(uuid.uuid4())
    await refused("RoleAssignmentExists", lambda: auth.role_assignments.create(SCOPE, again, body))
    listed = await every(auth.role_assignments.list_for_scope(SCOPE, filter=f"principalId eq '{principal}'"))
    assert [item.name for item in listed] == [name], listed
    step("role assigned")


async def assign_self(clients, role):
    """Gives the customer's own principal a role for data."""
    auth = clients.authorization
    owners = await every(auth.role_definitions.list(SCOPE, filter=f"roleName eq '{role}'"))
    token = await value(clients.credential.get_token("https://management.azure.com/.default"))
    import base64
    import json

    payload = token.token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    body = {
        "properties": {
            "roleDefinitionId": f"/subscriptions/{SUBSCRIPTION}{owners[0].id}",
            "principalId": claims["oid"],
            "principalType": "ServicePrincipal",
        }
    }
    await value(auth.role_assignments.create(SCOPE, str(uuid.uuid4()), body))


async def vaults(clients):
    name = f"kv-sdk-{clients.mode}"
    body = {
        "location": LOCATION,
        "properties": {
            "tenantId": os.environ["AZURE_TENANT_ID"],
            "sku": {"family": "A", "name": "standard"},
            "enableRbacAuthorization": True,
        },
    }
    arguments = (GROUP, "Microsoft.KeyVault", "", "vaults", name, body)
    await done(clients.resources.resources.begin_create_or_update(*arguments, api_version="2023-07-01"))
    client = clients.secrets(name)
    clients.opened.append(client)
    try:
        await value(client.set_secret("s", "hidden"))
        raise AssertionError("the owner of a subscription is not the owner of its data")
    except HttpResponseError as error:
        assert error.status_code == 403, error
    await assign_self(clients, "Key Vault Administrator")
    await value(client.set_secret("s", "first"))
    second = await value(client.set_secret("s", "second"))
    assert (await value(client.get_secret("s"))).value == "second"
    assert (await value(client.get_secret("s", second.properties.version))).value == "second"
    assert len(await every(client.list_properties_of_secret_versions("s"))) == 2
    if clients.mode == "async":
        await client.delete_secret("s")
    else:
        client.begin_delete_secret("s").wait()
    try:
        await value(client.get_secret("s"))
        raise AssertionError("a deleted secret is still there")
    except ResourceNotFoundError:
        pass
    await value(client.purge_deleted_secret("s"))
    step("secrets written")


async def blobs(clients):
    name = f"arosdk{clients.mode}"
    body = {"location": LOCATION, "sku": {"name": "Standard_LRS"}, "kind": "StorageV2", "properties": {}}
    arguments = (GROUP, "Microsoft.Storage", "", "storageAccounts", name, body)
    await done(clients.resources.resources.begin_create_or_update(*arguments, api_version="2023-05-01"))
    await assign_self(clients, "Storage Blob Data Contributor")
    account = clients.account(name, clients.credential)
    clients.opened.append(account)
    await value(account.create_container("docs"))
    blob = account.get_blob_client("docs", "a.txt")
    await value(blob.upload_blob(b"content"))
    # Signed by the roles of the principal, used without them.
    now = datetime.now(timezone.utc)
    key = await value(account.get_user_delegation_key(now - timedelta(minutes=5), now + timedelta(hours=1)))
    signature = generate_blob_sas(
        name, "docs", "a.txt", user_delegation_key=key, permission=BlobSasPermissions(read=True),
        expiry=now + timedelta(hours=1),
    )
    signed = clients.blob(f"https://{name}.blob.core.windows.net/docs/a.txt?{signature}")
    clients.opened.append(signed)
    content = await value((await value(signed.download_blob())).readall())
    assert content == b"content", content
    try:
        await value(signed.delete_blob())
        raise AssertionError("a signature for reading deleted a blob")
    except HttpResponseError as error:
        assert error.status_code == 403, error
    step("blobs written")


async def mistakes(clients):
    message = await refused(
        "ResourceGroupNotFound", lambda: clients.network.virtual_networks.get("none", "vnet")
    )
    assert "none" in message, message
    wrong = clients.client_secret(os.environ["AZURE_TENANT_ID"], os.environ["AZURE_CLIENT_ID"], "wrong")
    clients.opened.append(wrong)
    try:
        await value(wrong.get_token("https://management.azure.com/.default"))
        raise AssertionError("a wrong secret was accepted")
    except ClientAuthenticationError as error:
        assert "AADSTS7000215" in str(error), error
    step("mistakes refused")


async def walk(mode):
    clients = Clients(mode)
    try:
        await groups(clients)
        await network(clients)
        await names(clients)
        principal = await identities(clients)
        await roles(clients, principal)
        await vaults(clients)
        await blobs(clients)
        await mistakes(clients)
        types = {item.type for item in await every(clients.resources.resources.list_by_resource_group(GROUP))}
        assert "Microsoft.Network/loadBalancers" in types and "Microsoft.KeyVault/vaults" in types, types
        await done(clients.resources.resource_groups.begin_delete(GROUP))
        assert await every(clients.resources.resource_groups.list()) == []
        step("group deleted")
    finally:
        await clients.close()


if __name__ == "__main__":
    asyncio.run(walk(sys.argv[1]))
    print("walk complete")
