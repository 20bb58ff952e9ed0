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
    @given(mesh=wt.meshes(clusters=2, apps=1, replicas=2))
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


class Machine(wt.MeshMachine):
    pass


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=4, stateful_step_count=4, deadline=None, derandomize=True,
                                suppress_health_check=QUIET)
