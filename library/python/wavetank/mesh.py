"""A mesh as a value: clusters with their networks, applications, further objects; or a scenario's."""
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional


@dataclass
class Node:
    name: str
    region: str = "region1"
    zone: str = "zone1"


@dataclass
class Deployment:
    """Pods of one version of an application, in one cluster."""

    cluster: str
    version: str = "v1"
    replicas: int = 1
    name: str = ""  # of the object; empty: the app's name and the version, "web-v1"


@dataclass
class App:
    """Its Service stands in every cluster that has a Deployment of it, and in `also_in`."""

    name: str
    deployments: List[Deployment]
    ns: str = "sample"
    port: int = 80
    also_in: List[str] = field(default_factory=list)
    port_name: str = "http"  # by which Istio knows what is spoken: "http", "http2", "grpc", "tcp", ...


@dataclass
class Cluster:
    name: str
    network: str = "network1"
    control_plane: str = ""  # the cluster whose istiod serves this one; empty: its own
    istiods: int = 1
    gateway: str = "load-balancer"  # load-balancer-hostname, node-port, none
    gateways: int = 1
    nodes: List[Node] = field(default_factory=list)


@dataclass
class Object:
    """Of any kind, there from the start: a DestinationRule, a Sidecar."""

    cluster: str
    object: Dict[str, Any]


@dataclass
class Mesh:
    """Each cluster has a client besides: the app `sleep` in namespace `sample`."""

    clusters: List[Cluster] = field(default_factory=list)
    apps: List[App] = field(default_factory=list)
    objects: List[Object] = field(default_factory=list)
    seed: int = 1
    profile: str = ""
    scenario: Optional[str] = None  # instead of all that: a file, or a folder with a scenario.yaml

    @classmethod
    def from_scenario(cls, path: Any) -> "Mesh":
        return cls(scenario=str(path))

    def several_networks(self) -> bool:
        return len({cluster.network for cluster in self.clusters}) > 1
