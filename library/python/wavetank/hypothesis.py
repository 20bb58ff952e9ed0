"""Strategies for Hypothesis: meshes and histories that shrink, and a base class for state machines."""
import os
import tempfile
from typing import Any, Dict, List, Tuple

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from wavetank.mesh import App, Cluster, Deployment, Mesh
from wavetank.world import World

GATEWAY = "istio-system/istio-eastwestgateway"
Event = Tuple[Dict[str, Any], float]  # an action, and the seconds that pass after it


@st.composite
def meshes(draw: Any, *, clusters: int = 3, networks: int = 2, apps: int = 2, replicas: int = 3) -> Mesh:
    """A mesh whose requests are all answered as long as nothing happens."""
    mesh = Mesh()
    for i in range(draw(st.integers(1, clusters))):
        mesh.clusters.append(Cluster(
            name=f"c{i + 1}", network=f"net{draw(st.integers(1, min(networks, i + 1)))}",
            gateway=draw(st.sampled_from(["load-balancer", "load-balancer-hostname"])),
            gateways=draw(st.integers(1, 2)), istiods=draw(st.integers(1, 2))))
    names = [cluster.name for cluster in mesh.clusters]
    for i in range(draw(st.integers(1, apps))):
        where = draw(st.lists(st.sampled_from(names), min_size=1, max_size=len(names), unique=True))
        deployments = [Deployment(cluster, f"v{k + 1}", draw(st.integers(1, replicas))) for k, cluster in enumerate(where)]
        mesh.apps.append(App(f"app{i + 1}", deployments, port=8080, also_in=names))
    return mesh


def waves(mesh: Mesh) -> st.SearchStrategy[Dict[str, Any]]:
    """What happens on any day."""
    places = [(d.cluster, f"{app.ns}/{app.name}-{d.version}") for app in mesh.apps for d in app.deployments]
    place = st.sampled_from(places)
    return st.one_of(
        st.builds(lambda p, n: {"scale": {"cluster": p[0], "deployment": p[1], "replicas": n}}, place, st.integers(0, 4)),
        st.builds(lambda p: {"restart": {"cluster": p[0], "deployment": p[1]}}, place),
        st.builds(lambda c: {"restart": {"cluster": c, "deployment": "istio-system/istiod"}},
                  st.sampled_from([c.name for c in mesh.clusters if c.control_plane in ("", c.name)])))


def faults(mesh: Mesh) -> st.SearchStrategy[Dict[str, Any]]:
    """What must not happen, and does."""
    names = [cluster.name for cluster in mesh.clusters]
    cluster = st.sampled_from(names)
    out = [st.builds(lambda c, f: {"apiServer": {"cluster": c, "fault": f}}, cluster,
                     st.sampled_from(["none", "watches-dropped", "history-gone", "unreachable", "stale-reads"]))]
    if len(names) > 1:
        pair = st.lists(cluster, min_size=2, max_size=2, unique=True)
        out.append(st.builds(lambda p, s: {"link": {"between": p, "state": s}}, pair, st.sampled_from(["healed", "cut"])))
        out.append(st.builds(lambda p, s: {"remoteSecret": {"of": p[0], "in": p[1], "state": s}}, pair,
                             st.sampled_from(["restored", "rotated", "deleted"])))
    if mesh.several_networks():
        out.append(st.builds(lambda c, a: {"loadBalancer": {"cluster": c, "service": GATEWAY, "address": a}}, cluster,
                             st.sampled_from(["new", "none"])))
    return st.one_of(out)


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
    """What may happen to the mesh, in order; each can be done when its turn comes."""
    action = st.one_of(waves(mesh), faults(mesh)) if with_faults else waves(mesh)
    return st.lists(st.tuples(action, st.sampled_from([0.0, 0.05, 0.12, 1.0, 5.0, 40.0])), max_size=events).map(_in_order)


def heal(history: List[Event]) -> List[Dict[str, Any]]:
    """The actions that end what of `history` has not ended."""
    ends: Dict[str, Any] = {}
    for action, _ in history:
        (kind, f), = action.items()
        if kind == "apiServer":
            ends[f"{kind} {f['cluster']}"] = f["fault"] != "none" and {kind: {"cluster": f["cluster"], "fault": "none"}}
        elif kind == "link":
            ends[f"{kind} {sorted(f['between'])}"] = f["state"] == "cut" and {kind: {**f, "state": "healed"}}
        elif kind == "remoteSecret":
            ends[f"{kind} {f['of']} {f['in']}"] = f["state"] == "deleted" and {kind: {**f, "state": "restored"}}
        elif kind == "loadBalancer":
            ends[f"{kind} {f['cluster']}"] = f["address"] == "none" and {kind: {**f, "address": "new"}}
        elif kind == "scale":
            ends[f"{kind} {f['cluster']} {f['deployment']}"] = f["replicas"] == 0 and {kind: {**f, "replicas": 1}}
    return [action for action in ends.values() if action]


def reproduction(world: World) -> str:
    """Writes the world's log; says the command that runs it again, and the seed."""
    folder = os.environ.get("WAVETANK_FAILURES", tempfile.gettempdir())
    path = os.path.join(folder, f"wavetank-{os.getpid()}.wtlog")
    world.write_log(path)
    return f"wavetank replay {path}  (seed {world.seed})"


def what_does_not_recover(world: World, history: List[Event]) -> str:
    """What is wrong after all of it has happened and was healed; empty: nothing."""
    for action, seconds in history:
        world.do(action)
        world.step(seconds)
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
        self.world.do(action)
        self.world.step(seconds)
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
