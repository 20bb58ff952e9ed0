"""Strategies for Hypothesis: meshes and histories that shrink, and a base class for state machines."""
import os
import shlex
import tempfile
from typing import Any, Dict, List, Set, Tuple

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from wavetank._program import WavetankError, file_name
from wavetank.mesh import App, Cluster, Deployment, Mesh, Node, Object
from wavetank.world import World

GATEWAY = "istio-system/istio-eastwestgateway"
Event = Tuple[Dict[str, Any], float]  # an action, and the seconds that pass after it


def _primary(cluster: Cluster) -> bool:
    return cluster.control_plane in ("", cluster.name)


def _serves_others(mesh: Mesh, cluster: Cluster) -> bool:
    return any(other.control_plane == cluster.name and other.name != cluster.name for other in mesh.clusters)


def _has_gateway(mesh: Mesh, cluster: Cluster) -> bool:
    return (mesh.several_networks() and cluster.gateway != "none") or _serves_others(mesh, cluster)


def _istio(group: str, kind: str, name: str, spec: Dict[str, Any]) -> Dict[str, Any]:
    return {"apiVersion": f"{group}.istio.io/v1beta1", "kind": kind, "metadata": {"name": name, "namespace": "sample"}, "spec": spec}


def _objects(mesh: Mesh, number: int) -> st.SearchStrategy[Dict[str, Any]]:
    """Configuration under which every request is still answered."""
    apps = st.sampled_from([app.name for app in mesh.apps])
    return st.one_of(
        st.builds(lambda app, how: _istio("networking", "DestinationRule", app, {
            "host": f"{app}.sample.svc.cluster.local", "trafficPolicy": {"loadBalancer": {"simple": how}}}),
            apps, st.sampled_from(["LEAST_REQUEST", "ROUND_ROBIN", "RANDOM"])),
        st.builds(lambda mode: _istio("security", "PeerAuthentication", "default", {"mtls": {"mode": mode}}),
                  st.sampled_from(["PERMISSIVE", "STRICT"])),
        st.just(_istio("networking", "Sidecar", "default", {"egress": [{"hosts": ["./*", "istio-system/*"]}]})),
        st.just(_istio("networking", "ServiceEntry", f"object{number + 1}", {
            "hosts": [f"object{number + 1}.example"], "location": "MESH_EXTERNAL", "resolution": "STATIC",
            "ports": [{"number": 443, "name": "tls", "protocol": "TLS"}], "endpoints": [{"address": "198.51.100.7"}]})))


@st.composite
def meshes(draw: Any, *, clusters: int = 3, networks: int = 2, apps: int = 2, replicas: int = 3, objects: int = 2,
           remotes: bool = True) -> Mesh:
    """A mesh whose requests are all answered as long as nothing happens; up to so many of each. `remotes`: clusters without an
    istiod of their own are among them. The same as wavetank/rapidcheck.h makes."""
    mesh = Mesh()
    for i in range(draw(st.integers(1, clusters))):
        name = f"c{i + 1}"
        # The first may have to lead remote clusters to their istiod, which node ports do not.
        kinds = ["load-balancer", "load-balancer-hostname"] + (["node-port"] if i > 0 else [])
        remote = remotes and i > 0 and draw(st.integers(0, 3)) == 3
        zones = draw(st.integers(1, 2))
        mesh.clusters.append(Cluster(
            name, f"net{draw(st.integers(1, min(networks, i + 1)))}", control_plane="c1" if remote else "",
            istiods=1 if remote else draw(st.integers(1, 2)), gateway=draw(st.sampled_from(kinds)), gateways=draw(st.integers(1, 2)),
            nodes=[Node(f"{name}-node{zone}", "region1", f"zone{zone}") for zone in range(1, zones + 1)] if zones > 1 else []))
    names = [cluster.name for cluster in mesh.clusters]
    for i in range(draw(st.integers(1, apps))):
        where = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
        deployments = [Deployment(cluster, f"v{k + 1}", draw(st.integers(1, replicas))) for k, cluster in enumerate(where)]
        mesh.apps.append(App(f"app{i + 1}", deployments, port=8080, also_in=names))
    taken: Set[Tuple[str, str]] = set()
    for i in range(draw(st.integers(0, objects))):
        made = draw(_objects(mesh, i))
        if (made["kind"], made["metadata"]["name"]) not in taken:
            taken.add((made["kind"], made["metadata"]["name"]))
            mesh.objects += [Object(name, made) for name in names]
    return mesh


def waves(mesh: Mesh) -> st.SearchStrategy[Dict[str, Any]]:
    """What happens on any day."""
    places = [(d.cluster, f"{app.ns}/{d.name or f'{app.name}-{d.version}'}") for app in mesh.apps for d in app.deployments]
    place = st.sampled_from(places)
    return st.one_of(
        st.builds(lambda p, n: {"scale": {"cluster": p[0], "deployment": p[1], "replicas": n}}, place, st.integers(0, 4)),
        st.builds(lambda p: {"restart": {"cluster": p[0], "deployment": p[1]}}, place),
        st.builds(lambda c: {"restart": {"cluster": c, "deployment": "istio-system/istiod"}},
                  st.sampled_from([c.name for c in mesh.clusters if _primary(c)])))


def faults(mesh: Mesh) -> st.SearchStrategy[Dict[str, Any]]:
    """What must not happen, and does."""
    names = [cluster.name for cluster in mesh.clusters]
    primaries = [cluster.name for cluster in mesh.clusters if _primary(cluster)]
    cluster = st.sampled_from(names)
    more: Dict[str, Dict[str, str]] = {"slow": {"latency": "500ms"}, "too-many-requests": {"retryAfter": "1s"}}
    out = [st.builds(lambda c, f: {"apiServer": {"cluster": c, "fault": f, **more.get(f, {})}}, cluster,
                     st.sampled_from(["none", "watches-dropped", "history-gone", "unreachable", "slow", "too-many-requests",
                                      "stale-reads"])),
           st.builds(lambda p: {"kill": {"cluster": p[0], "namespace": p[1], "app": p[2]}},
                     st.sampled_from([(d.cluster, app.ns, app.name) for app in mesh.apps for d in app.deployments])),
           st.builds(lambda c: {"kill": {"cluster": c, "namespace": "istio-system", "app": "istiod"}}, st.sampled_from(primaries))]
    if len(names) > 1:
        pair = st.lists(cluster, min_size=2, max_size=2, unique=True)
        out.append(st.builds(lambda p, s: {"link": {"between": p, "state": s}}, pair, st.sampled_from(["healed", "cut"])))
        readers = [(of, reader) for of in names for reader in primaries if of != reader]
        out.append(st.builds(lambda p, s: {"remoteSecret": {"of": p[0], "in": p[1], "state": s}}, st.sampled_from(readers),
                             st.sampled_from(["restored", "rotated", "deleted", "broken"])))
    # Remote clusters were told once at which address their istiod is: another one is nothing that heals.
    addressed = [c.name for c in mesh.clusters
                 if _has_gateway(mesh, c) and c.gateway != "node-port" and not _serves_others(mesh, c)]
    if addressed:
        out.append(st.builds(lambda c, a: {"loadBalancer": {"cluster": c, "service": GATEWAY, "address": a}},
                             st.sampled_from(addressed), st.sampled_from(["new", "none"])))
    led = [c.name for c in mesh.clusters if _has_gateway(mesh, c)]
    if led:
        out.append(st.builds(lambda c, n: {"scale": {"cluster": c, "deployment": GATEWAY, "replicas": n}}, st.sampled_from(led),
                             st.integers(0, 2)))
    return st.one_of(out)


def may_be_refused(action: Dict[str, Any]) -> bool:
    """When its turn comes there may be no pod to kill, and no Secret to delete where it is gone already."""
    return "kill" in action or "remoteSecret" in action


def can_happen(action: Dict[str, Any], history: List[Event]) -> bool:
    """Whether a world in which `history` has happened lets the action in: a Secret that is deleted can only come back."""
    fields = action.get("remoteSecret")
    if fields is None or fields["state"] == "restored":
        return True
    states = [f["state"] for f in (before.get("remoteSecret") for before, _ in history)
              if f is not None and (f["of"], f["in"]) == (fields["of"], fields["in"])]
    return not states or states[-1] != "deleted"


def _in_order(drawn: List[Event]) -> List[Event]:
    out: List[Event] = []
    for action, seconds in drawn:
        if can_happen(action, out):
            out.append((action, seconds))
    return out


def histories(mesh: Mesh, *, events: int = 6, with_faults: bool = True) -> st.SearchStrategy[List[Event]]:
    """What may happen to the mesh, in order; each can be done when its turn comes, or may_be_refused()."""
    action = st.one_of(waves(mesh), faults(mesh)) if with_faults else waves(mesh)
    return st.lists(st.tuples(action, st.sampled_from([0.0, 0.05, 0.12, 1.0, 5.0, 40.0])), max_size=events).map(_in_order)


def heal(history: List[Event]) -> List[Dict[str, Any]]:
    """The actions that end what of `history` has not ended."""
    ends: Dict[str, Any] = {}
    blind: Set[str] = set()  # remote Secrets that were broken, and not rotated since
    for action, _ in history:
        (kind, f), = action.items()
        if kind == "apiServer":
            ends[f"{kind} {f['cluster']}"] = f["fault"] != "none" and {kind: {"cluster": f["cluster"], "fault": "none"}}
        elif kind == "link":
            ends[f"{kind} {sorted(f['between'])}"] = f["state"] == "cut" and {kind: {**f, "state": "healed"}}
        elif kind == "remoteSecret":
            key = f"{kind} {f['of']} {f['in']}"
            # 1.18.2 stays blind where the broken one is put right again, until another token comes.
            if f["state"] == "broken":
                blind.add(key)
            elif f["state"] == "rotated":
                blind.discard(key)
            end = "rotated" if key in blind else "restored" if f["state"] == "deleted" else ""
            ends[key] = end and {kind: {**f, "state": end}}
        elif kind == "loadBalancer":
            ends[f"{kind} {f['cluster']}"] = f["address"] == "none" and {kind: {**f, "address": "new"}}
        elif kind == "scale":
            ends[f"{kind} {f['cluster']} {f['deployment']}"] = f["replicas"] == 0 and {kind: {**f, "replicas": 1}}
    return [action for action in ends.values() if action]


def reproduction(world: World) -> str:
    """Writes the world's log, and its story if it has one; says the commands that run them again, and the seed. The files are
    named by the test (outside of pytest by the process), so a property that shrinks leaves those of its last failure."""
    folder = os.environ.get("WAVETANK_FAILURES") or tempfile.gettempdir()
    os.makedirs(folder, exist_ok=True)
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    path = os.path.join(folder, f"wavetank-{file_name(test) or os.getpid()}")
    world.write_log(f"{path}.wtlog")
    again = f"wavetank replay {shlex.quote(path)}.wtlog  (seed {world.seed})"
    story = world.story()
    if not story:
        return again
    with open(f"{path}.scenario.yaml", "w") as file:
        file.write(story)
    return f"{again}\nas a scenario, a step for each action: wavetank run {shlex.quote(path)}.scenario.yaml"


def _live(world: World, action: Dict[str, Any], seconds: float) -> bool:
    """Whether it was let in."""
    done = True
    try:
        world.do(action)
    except WavetankError:
        if not may_be_refused(action):
            raise
        done = False
    world.step(seconds)
    return done


def what_does_not_recover(world: World, history: List[Event]) -> str:
    """What is wrong after all of it has happened and was healed; empty: nothing."""
    for action, seconds in history:
        _live(world, action, seconds)
    for action in heal(history):
        world.do(action)
    settled = world.settle(1200, connected=True)
    if not settled.settled:
        return f"does not come to rest: {settled.at_work} {settled.disconnected}"
    world.until(lambda now: not now.check(), 600, every=10)  # what waits to try again is at rest, and not done
    for breach in world.check():
        return f"{breach.invariant}: {breach.what}"
    for app in world.mesh.apps:
        for cluster in world.mesh.clusters:
            requests = world.send(cluster.name, f"{app.name}.{app.ns}:{app.port}", 20)
            if requests.failed:
                return f"{app.name} from {cluster.name}: {requests.failed} of 20 failed: {requests.failures}"
    return ""


def require_recovery(mesh: Mesh, history: List[Event]) -> None:
    """Whatever happened, when all is healed nothing is wrong. Fails with what is, and the command that runs it again."""
    with World.open(mesh) as world:
        wrong = what_does_not_recover(world, history)
        if wrong:
            again = reproduction(world)
            note(f"again: {again}")
            raise AssertionError(f"{wrong}\nagain: {again}")


class MeshMachine(RuleBasedStateMachine):
    """A world and what may happen to it; add rules and invariants of your own. `mesh_strategy` may be another one."""

    mesh_strategy: Any = meshes(clusters=2, apps=1, replicas=2)

    @initialize(data=st.data())
    def open_world(self, data: Any) -> None:
        self.mesh: Mesh = data.draw(self.mesh_strategy)
        self.world = World.open(self.mesh)
        self.history: List[Event] = []

    def _happen(self, action: Dict[str, Any], seconds: float) -> None:
        if not can_happen(action, self.history):
            return
        if _live(self.world, action, seconds):
            self.history.append((action, seconds))

    @rule(data=st.data(), seconds=st.sampled_from([0.0, 0.12, 2.0]))
    def wave(self, data: Any, seconds: float) -> None:
        self._happen(data.draw(waves(self.mesh)), seconds)

    @rule(data=st.data(), seconds=st.sampled_from([0.0, 0.12, 2.0]))
    def fault(self, data: Any, seconds: float) -> None:
        self._happen(data.draw(faults(self.mesh)), seconds)

    @rule()
    def recovers(self) -> None:
        with self.world.fork() as copy:  # the world itself goes on with its faults
            for action in heal(self.history):
                copy.do(action)
            wrong = what_does_not_recover(copy, [])
            assert not wrong, f"{wrong}\nagain: {reproduction(copy)}"

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.close()
