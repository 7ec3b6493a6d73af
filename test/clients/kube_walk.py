"""Drives an API server with the official Python client, unmodified. Usage: kube_walk.py <kubeconfig> <context>"""

import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException


def expect(condition, message):
    if not condition:
        raise SystemExit(f"FAILED: {message}")


def refused(call, status, reason):
    try:
        call()
    except ApiException as error:
        expect(error.status == status, f"{error.status} instead of {status}: {error.body}")
        expect(reason in str(error.body), f"{reason} is not in {error.body}")
        return error
    raise SystemExit(f"FAILED: {reason} was expected")


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"walk": "yes"}), data=data)


def objects(core):
    made = core.create_namespaced_config_map("default", config_map("py", x="1"))
    expect(made.metadata.uid and made.metadata.creation_timestamp.tzinfo, "metadata is filled in")
    refused(lambda: core.create_namespaced_config_map("default", config_map("py")), 409, "AlreadyExists")
    refused(lambda: core.read_namespaced_config_map("nope", "default"), 404, "NotFound")
    refused(lambda: core.create_namespaced_config_map("default", config_map("Not_Good")), 422, "Invalid")
    changed = core.patch_namespaced_config_map("py", "default", {"data": {"y": "2"}})
    expect(changed.data == {"x": "1", "y": "2"}, changed.data)
    patched = core.patch_namespaced_config_map("py", "default", [{"op": "remove", "path": "/data/x"}])
    expect(patched.data == {"y": "2"}, patched.data)
    made.data = {"z": "3"}
    refused(lambda: core.replace_namespaced_config_map("py", "default", made), 409, "Conflict")
    for index in range(5):
        core.create_namespaced_config_map("default", config_map(f"page-{index}"))
    first = core.list_namespaced_config_map("default", label_selector="walk=yes", limit=2)
    expect(len(first.items) == 2 and first.metadata._continue, "a first page")
    rest = core.list_namespaced_config_map("default", label_selector="walk=yes", _continue=first.metadata._continue)
    expect(len(rest.items) == 4, "the rest")


def watching(core):
    # A new cluster makes some objects by itself; what follows begins after that.
    for _ in watch.Watch().stream(core.list_namespaced_config_map, "default", field_selector="metadata.name=kube-root-ca.crt", timeout_seconds=20):
        break
    listed = core.list_namespaced_config_map("default")
    version = listed.metadata.resource_version
    core.create_namespaced_config_map("default", config_map("w-1"))
    core.delete_namespaced_config_map("w-1", "default")
    seen = []
    watcher = watch.Watch()
    for event in watcher.stream(core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=1):
        seen.append((event["type"], event["object"].metadata.name))
    expect(seen == [("ADDED", "w-1"), ("DELETED", "w-1")], seen)
    # The watcher goes on from where it was.
    threading.Timer(0.2, lambda: core.create_namespaced_config_map("default", config_map("w-2"))).start()
    for event in watcher.stream(core.list_namespaced_config_map, "default", resource_version=watcher.resource_version, timeout_seconds=20):
        expect((event["type"], event["object"].metadata.name) == ("ADDED", "w-2"), event)
        watcher.stop()


def definition():
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "pythons.test.aro.dev"},
        "spec": {
            "group": "test.aro.dev", "scope": "Namespaced", "names": {"plural": "pythons", "kind": "Python"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


def custom(api):
    extensions = client.ApiextensionsV1Api(api)
    extensions.create_custom_resource_definition(definition())
    for event in watch.Watch().stream(extensions.list_custom_resource_definition, timeout_seconds=20):
        conditions = event["object"].status.conditions or [] if event["object"].status else []
        if any(c.type == "Established" and c.status == "True" for c in conditions):
            break
    else:
        raise SystemExit("FAILED: the definition is not established")
    dynamic_client = dynamic.DynamicClient(api)
    pythons = dynamic_client.resources.get(api_version="test.aro.dev/v1", kind="Python")
    made = pythons.create(body={"apiVersion": "test.aro.dev/v1", "kind": "Python", "metadata": {"name": "p"}, "spec": {"size": 3}}, namespace="default")
    expect(made.spec.size == 3, made)
    wanted = {"apiVersion": "test.aro.dev/v1", "kind": "Python", "metadata": {"name": "p"}, "spec": {"size": 5}}
    try:
        dynamic_client.server_side_apply(pythons, body=wanted, namespace="default", field_manager="walk")
        raise SystemExit("FAILED: a conflict was expected")
    except ApiException as error:
        expect(error.status == 409 and "Apply failed with 1 conflict" in str(error.body), error.body)
    applied = dynamic_client.server_side_apply(pythons, body=wanted, namespace="default", field_manager="walk", force_conflicts=True)
    expect(applied.spec.size == 5, applied)
    wanted["spec"]["size"] = 0
    try:
        dynamic_client.server_side_apply(pythons, body=wanted, namespace="default", field_manager="walk")
        raise SystemExit("FAILED: it is too small")
    except ApiException as error:
        expect(error.status == 422 and "should be greater than or equal to 1" in str(error.body), error.body)
    owner = pythons.get(name="p", namespace="default")
    core = client.CoreV1Api(api)
    owned = config_map("owned")
    owned.metadata.owner_references = [client.V1OwnerReference(
        api_version="test.aro.dev/v1", kind="Python", name="p", uid=owner.metadata.uid, block_owner_deletion=True)]
    core.create_namespaced_config_map("default", owned)
    version = core.list_namespaced_config_map("default").metadata.resource_version
    pythons.delete(name="p", namespace="default", body={"propagationPolicy": "Foreground"})
    for event in watch.Watch().stream(core.list_namespaced_config_map, "default", resource_version=version, timeout_seconds=20):
        if event["type"] == "DELETED" and event["object"].metadata.name == "owned":
            break
    else:
        raise SystemExit("FAILED: what it owned is still there")
    extensions.delete_custom_resource_definition("pythons.test.aro.dev")


def main():
    config.load_kube_config(config_file=sys.argv[1], context=sys.argv[2])
    api = client.ApiClient()
    core = client.CoreV1Api(api)
    expect(client.VersionApi(api).get_code().git_version.startswith("v1."), "a version")
    expect(any(group.name == "apps" for group in client.ApisApi(api).get_api_versions().groups), "groups")
    objects(core)
    watching(core)
    custom(api)
    deployments = client.AppsV1Api(api)
    refused(lambda: deployments.create_namespaced_deployment("default", {
        "metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "c"}}, "spec": {"containers": []}}},
    }), 422, "`selector` does not match template `labels`")
    core.delete_collection_namespaced_config_map("default", label_selector="walk=yes")
    expect(not core.list_namespaced_config_map("default", label_selector="walk=yes").items, "all are gone")
    print("walk complete")


main()
