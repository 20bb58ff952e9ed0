"""What programs written with the Python client do: run with the URL of a served cluster. Prints "all well"."""
import sys
import threading
import time

from kubernetes import client, watch
from kubernetes.client.rest import ApiException

configuration = client.Configuration()
configuration.host = sys.argv[1]
api = client.ApiClient(configuration)
core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
custom, extensions = client.CustomObjectsApi(api), client.ApiextensionsV1Api(api)


def refused(code, reason, call):
    try:
        call()
    except ApiException as error:
        assert (error.status, error.reason) == (code, reason), error
        assert '"kind":"Status"' in error.body, error.body
        return
    raise AssertionError(f"not refused with {code}")


# Objects.
core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="python")))
made = core.create_namespaced_config_map("python", {"metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"k": "1"}})
assert made.metadata.uid and made.metadata.creation_timestamp
assert [m.metadata.name for m in core.list_namespaced_config_map("python", label_selector="app=x").items] == ["a"]
patched = core.patch_namespaced_config_map("a", "python", {"data": {"k": "2"}})
assert patched.data == {"k": "2"}
made.data = {"k": "3"}
refused(409, "Conflict", lambda: core.replace_namespaced_config_map("a", "python", made))
patched.data = {"k": "4"}
assert core.replace_namespaced_config_map("a", "python", patched).data == {"k": "4"}
refused(404, "Not Found", lambda: core.read_namespaced_config_map("b", "python"))

# Pages.
for i in range(25):
    core.create_namespaced_config_map("python", {"metadata": {"name": f"page-{i:02}"}})
names, token = [], None
while True:
    page = core.list_namespaced_config_map("python", limit=10, _continue=token)
    names += [m.metadata.name for m in page.items]
    token = page.metadata._continue
    if not token:
        break
assert len(names) == len(set(names)) == 26, names

# Watches: from nothing, from a version, with a timeout, from a version that is gone.
told = [(e["type"], e["object"].metadata.name) for e in
        watch.Watch().stream(core.list_namespaced_config_map, "python", label_selector="app=x", timeout_seconds=1)]
assert told == [("ADDED", "a")], told
version = core.list_namespaced_config_map("python").metadata.resource_version


def write():
    time.sleep(0.3)
    core.patch_namespaced_config_map("a", "python", {"metadata": {"labels": {"app": "y"}}})
    core.delete_namespaced_config_map("a", "python")


writer = threading.Thread(target=write)
writer.start()
told = []
follower = watch.Watch()
for e in follower.stream(core.list_namespaced_config_map, "python", resource_version=version, timeout_seconds=120,
                         allow_watch_bookmarks=True):
    told.append((e["type"], e["object"].metadata.name))
    if e["type"] == "DELETED":
        follower.stop()
writer.join()
assert told == [("MODIFIED", "a"), ("DELETED", "a")], told
try:
    list(watch.Watch().stream(core.list_namespaced_config_map, "python", resource_version="1", timeout_seconds=1))
    raise AssertionError("a version that is gone")
except ApiException as error:
    assert error.status == 410, error

# Workloads.
labels = {"app": "web"}
apps.create_namespaced_deployment("python", {
    "metadata": {"name": "web"},
    "spec": {"replicas": 2, "selector": {"matchLabels": labels},
             "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "x"}]}}}})
core.create_namespaced_service("python", {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80}]}})
deadline = time.time() + 120
while not (s := apps.read_namespaced_deployment_status("web", "python").status) or (s.ready_replicas or 0) < 2:
    assert time.time() < deadline, "the deployment does not come up"
    time.sleep(0.05)
assert apps.read_namespaced_deployment_scale("web", "python").spec.replicas == 2
apps.patch_namespaced_deployment_scale("web", "python", {"spec": {"replicas": 3}})
while len([s for s in (core.read_namespaced_endpoints("web", "python").subsets or []) for _ in (s.addresses or [])]) < 3:
    assert time.time() < deadline, "the endpoints do not follow"
    time.sleep(0.05)

# Refusals.
refused(422, "Unprocessable Entity", lambda: core.create_namespaced_config_map("python", {"metadata": {"name": "A_B"}}))
refused(404, "Not Found", lambda: core.create_namespaced_config_map("nowhere", {"metadata": {"name": "a"}}))
refused(409, "Conflict", lambda: core.create_namespace({"metadata": {"name": "python"}}))
refused(403, "Forbidden", lambda: core.delete_namespace("kube-system"))
refused(422, "Unprocessable Entity", lambda: apps.patch_namespaced_deployment(
    "web", "python", {"spec": {"selector": {"matchLabels": {"app": "other"}}}}))
refused(422, "Unprocessable Entity", lambda: apps.patch_namespaced_deployment("web", "python", {"spec": {"replicas": "two"}}))
refused(422, "Unprocessable Entity", lambda: core.patch_namespaced_service("web", "python", {"spec": {"clusterIP": "10.9.9.9"}}))
refused(400, "Bad Request", lambda: core.list_namespaced_pod("python", label_selector="a in"))

# A kind of one's own.
extensions.create_custom_resource_definition({
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "crontabs.stable.example.com"},
    "spec": {"group": "stable.example.com", "scope": "Namespaced",
             "names": {"plural": "crontabs", "singular": "crontab", "kind": "CronTab", "listKind": "CronTabList"},
             "versions": [{"name": "v1", "served": True, "storage": True,
                           "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}})
custom.create_namespaced_custom_object("stable.example.com", "v1", "python", "crontabs",
                                       {"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "c"}})
items = custom.list_namespaced_custom_object("stable.example.com", "v1", "python", "crontabs")["items"]
assert [i["metadata"]["name"] for i in items] == ["c"]

# Tokens and rights.
token = core.create_namespaced_service_account_token("default", "python", {"spec": {"audiences": ["a"]}}).status.token
review = client.AuthenticationV1Api(api).create_token_review({"spec": {"token": token, "audiences": ["a"]}})
assert review.status.user.username == "system:serviceaccount:python:default"
access = client.AuthorizationV1Api(api).create_self_subject_access_review(
    {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}})
assert access.status.allowed

# Leases, as leader election writes them.
coordination = client.CoordinationV1Api(api)
lease = coordination.create_namespaced_lease("python", {"metadata": {"name": "leader"}, "spec": {"holderIdentity": "me"}})
lease.spec.holder_identity = "you"
second = coordination.replace_namespaced_lease("leader", "python", lease)
refused(409, "Conflict", lambda: coordination.replace_namespaced_lease("leader", "python", lease))
assert second.spec.holder_identity == "you"
core.delete_namespace("python")
print("all well")
