"""A controller written with the Python client: follows ConfigMaps of "default" through broken watches, and says of each
that it saw it by making "seen-NAME". Run with the URL of a served cluster; prints "all well" once it saw "last"."""
import sys
import time

import urllib3
from kubernetes import client, watch
from kubernetes.client.rest import ApiException

configuration = client.Configuration()
configuration.host = sys.argv[1]
core = client.CoreV1Api(client.ApiClient(configuration))


def see(name):
    if name.startswith("seen-"):
        return
    try:
        core.create_namespaced_config_map("default", {"metadata": {"name": "seen-" + name}})
    except ApiException as error:
        assert error.status == 409, error  # it was seen in an earlier life of the watch
    if name == "last":
        print("all well")
        sys.exit(0)


deadline = time.time() + 120
while time.time() < deadline:
    try:
        listed = core.list_namespaced_config_map("default")
        for item in listed.items:
            see(item.metadata.name)
        for event in watch.Watch().stream(core.list_namespaced_config_map, "default",
                                          resource_version=listed.metadata.resource_version, _request_timeout=120):
            if event["type"] == "ADDED":
                see(event["object"].metadata.name)
    except (ApiException, urllib3.exceptions.HTTPError):
        time.sleep(0.05)
print("the last one was never seen")
sys.exit(1)
