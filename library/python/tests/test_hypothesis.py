import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import wavetank
from wavetank import hypothesis as wt

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@settings(max_examples=10, deadline=None, derandomize=True, suppress_health_check=QUIET)
@given(data=st.data())
def test_a_mesh_recovers_from_what_happened_to_it(data):
    mesh = data.draw(wt.meshes(clusters=2, apps=1, replicas=2))
    wt.require_recovery(mesh, data.draw(wt.histories(mesh, events=3)))


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=QUIET)
@given(data=st.data())
def test_a_history_holds_only_what_can_happen(data):
    history = data.draw(wt.histories(data.draw(wt.meshes(clusters=2)), events=12))
    states = {}
    for action, _ in history:
        if "remoteSecret" in action:
            f = action["remoteSecret"]
            assert f["state"] == "restored" or states.get((f["of"], f["in"])) != "deleted"
            states[f["of"], f["in"]] = f["state"]


def test_a_planted_fault_shrinks_and_replays(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVETANK_FAILURES", str(tmp_path))
    smallest = []

    @settings(max_examples=30, deadline=None, derandomize=True, database=None, suppress_health_check=QUIET)
    @given(mesh=wt.meshes(clusters=2, apps=1, replicas=2, remotes=False))
    def everything_is_answered(mesh):
        with wavetank.World.open(mesh) as world:
            if mesh.several_networks():  # the planted fault: a gateway without address, and istiods that start without it
                world.do({"loadBalancer": {"cluster": "c1", "service": wt.GATEWAY, "address": "none"}})
                for cluster in mesh.clusters:
                    world.do({"kill": {"cluster": cluster.name, "namespace": "istio-system", "app": "istiod"}})
            smallest[:] = [mesh]
            wrong = wt.what_does_not_recover(world, [])
            assert not wrong, f"{wrong}\nagain: {wt.reproduction(world)}"

    with pytest.raises(AssertionError) as failure:
        everything_is_answered()
    text = str(failure.value)
    assert "again: wavetank replay " in text
    assert len(smallest[0].clusters) == 2 and len(smallest[0].apps[0].deployments) == 1
    assert smallest[0].apps[0].deployments[0].replicas == 1
    assert wavetank.replay(text.split("wavetank replay ")[1].split()[0])["identical"]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=QUIET)
@given(mesh=wt.meshes())
def test_a_mesh_has_what_its_parts_need(mesh):
    primaries = [c.name for c in mesh.clusters if c.control_plane in ("", c.name)]
    assert primaries[0] == "c1" and mesh.clusters[0].gateway != "node-port"
    assert all(c.control_plane in ("", "c1") for c in mesh.clusters)
    assert len({(o.cluster, o.object["kind"], o.object["metadata"]["name"]) for o in mesh.objects}) == len(mesh.objects)


def test_arbitrary_meshes_have_gateways_of_all_kinds_remotes_zones_and_objects():
    seen = set()

    @settings(max_examples=200, deadline=None, derandomize=True, database=None, suppress_health_check=QUIET)
    @given(mesh=wt.meshes())
    def look(mesh):
        seen.update(c.gateway for c in mesh.clusters)
        seen.update("remote" for c in mesh.clusters if c.control_plane)
        seen.update("zones" for c in mesh.clusters if c.nodes)
        seen.update(o.object["kind"] for o in mesh.objects)

    look()
    assert seen == {"load-balancer", "load-balancer-hostname", "node-port", "remote", "zones", "DestinationRule",
                    "PeerAuthentication", "Sidecar", "ServiceEntry"}


def test_a_broken_secret_is_healed_with_another_token():
    broken = {"remoteSecret": {"of": "c2", "in": "c1", "state": "broken"}}
    restored = {"remoteSecret": {"of": "c2", "in": "c1", "state": "restored"}}
    rotated = {"remoteSecret": {"of": "c2", "in": "c1", "state": "rotated"}}
    assert wt.heal([(broken, 1.0)]) == [rotated]
    assert wt.heal([(broken, 1.0), (restored, 1.0)]) == [rotated]
    assert wt.heal([(broken, 1.0), (rotated, 1.0)]) == []


def test_each_failing_test_leaves_a_log_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("WAVETANK_FAILURES", str(tmp_path / "made"))
    with wavetank.World.open(wavetank.Mesh(clusters=[wavetank.Cluster("c1")], seed=7)) as world:
        said = wt.reproduction(world)
    assert "test_each_failing_test_leaves_a_log_of_its_own.wtlog  (seed 7)" in said
    assert {path.suffix for path in (tmp_path / "made").iterdir()} == {".wtlog", ".yaml"}


class Machine(wt.MeshMachine):
    pass


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=4, stateful_step_count=4, deadline=None, derandomize=True,
                                suppress_health_check=QUIET)
