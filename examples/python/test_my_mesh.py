"""Tests of one's own mesh, with the installed package: pytest examples/python"""
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wavetank import App, Cluster, Deployment, Mesh, actions
from wavetank import hypothesis as wt


def my_mesh() -> Mesh:
    return Mesh(clusters=[Cluster("east", "net-east"), Cluster("west", "net-west")],
                apps=[App("web", [Deployment("east"), Deployment("west", "v2")], port=8080)])


def test_nothing_is_lost_while_it_is_scaled(mesh):
    world = mesh(my_mesh())
    traffic = world.start("east", "web.sample:8080")
    world.do(actions.Scale(cluster="west", deployment="sample/web-v2", replicas=3))
    assert world.settle().settled
    assert world.finish(traffic).failed == 0


def test_capacity_the_push_after_a_wave_takes_less_than_a_second(mesh):
    settled = mesh(my_mesh())
    for pods in (10, 40):
        with settled.fork() as world:
            world.do(actions.Scale(cluster="west", deployment="sample/web-v2", replicas=pods))
            slowest = world.settle().proxies[0]
            assert slowest.total_ms - slowest.stages_ms["Kubernetes"] < 1000


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_my_mesh_recovers(data):
    mesh = my_mesh()
    wt.require_recovery(mesh, data.draw(wt.histories(mesh, events=3)))
