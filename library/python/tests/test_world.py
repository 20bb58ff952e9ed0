import sys
import threading

import pytest

import wavetank
from wavetank import App, Cluster, Deployment, Mesh, World, actions


def two_networks() -> Mesh:
    return Mesh(clusters=[Cluster("east", "net-east"), Cluster("west", "net-west")],
                apps=[App("web", [Deployment("east"), Deployment("west", "v2")], port=8080)])


def test_requests_split_over_versions(mesh):
    world = mesh(two_networks())
    requests = world.send("east", "web.sample:8080", 400)
    assert requests.failed == 0 and set(requests.by_version) == {"v1", "v2"}
    assert requests.by_cluster["west"] == requests.by_version["v2"]


def test_actions_are_dataclasses_of_the_scenario_language(mesh):
    world = mesh(two_networks(), trace=True)
    world.do(actions.Scale(cluster="west", deployment="sample/web-v2", replicas=3))
    settled = world.settle()
    assert settled.settled and settled.proxies[0].stages_ms["debounce"] > 90
    assert world.trace("XdsSent")[-1].inputs
    assert len([e for e in world.endpoints("sleep@west") if e.upstream == "outbound|8080||web.sample.svc.cluster.local"]) == 4
    with pytest.raises(TypeError):
        actions.Scale(cluster="west", deployment="sample/web-v2", replica=3)


def test_forks_go_their_own_ways(mesh):
    world = mesh(two_networks())
    with world.fork() as other:
        assert other.digest() == world.digest()
        other.do({"kill": {"cluster": "west", "namespace": "sample", "app": "web"}})
        other.step(1)
        assert other.digest() != world.digest()


def test_a_log_replays(mesh, tmp_path):
    world = mesh(two_networks())
    world.do(actions.Restart(cluster="east", deployment="istio-system/istiod"))
    world.settle()
    world.write_log(tmp_path / "run.wtlog")
    answer = wavetank.replay(tmp_path / "run.wtlog")
    assert answer["identical"] and answer["digest"] == world.digest()


def test_a_log_is_read_piece_by_piece(mesh, tmp_path, monkeypatch):
    world = mesh(two_networks(), trace=True)
    world.do(actions.Scale(cluster="west", deployment="sample/web-v2", replicas=2))
    world.settle()
    world.write_log(tmp_path / "run.wtlog")
    monkeypatch.setattr("wavetank.log.PIECE", 100)
    log = wavetank.Log(tmp_path / "run.wtlog")
    assert log.profile == "istio-1.18" and log.seed == world.seed and not log.recording

    def told(events):  # a world's own numbers count what happened before its trace began, too
        return [(e.at_ns, e.kind, e.subject, e.object, e.detail, e.a, e.b, e.inputs) for e in events]

    assert told(log.events()) == told(world.trace())
    subject = world.trace("XdsSent")[0].subject
    assert told(log.events("XdsSent", subject)) == told(world.trace("XdsSent", subject)) != []
    scaled = [i for i in log.inputs("patch") if i.body["name"] == "web-v2"]
    assert len(scaled) == 1 and any(scaled[0].number in e.inputs for e in log.events("XdsSent"))
    first = next(log.events())  # and no further
    assert first.index == 0


def test_a_log_that_is_none_is_one_error(tmp_path):
    (tmp_path / "no.wtlog").write_text("no log")
    for name in ("no.wtlog", "missing.wtlog"):
        with pytest.raises(wavetank.WavetankError, match=name):
            wavetank.Log(tmp_path / name)


def test_worlds_in_threads_are_independent():
    def digest() -> str:
        with World.open(two_networks()) as world:
            world.do(actions.Kill(cluster="west", ns="sample", app="web"))
            world.settle()
            return world.digest()

    alone, together = digest(), []
    threads = [threading.Thread(target=lambda: together.append(digest())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == [alone] * 4


def test_other_threads_run_while_a_world_does():
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.wait(0.001):
            ticks.append(1)

    with World.open(two_networks()) as world:
        thread = threading.Thread(target=tick)
        thread.start()
        world.send("east", "web.sample:8080", 20_000, rate="1000/s")  # one call, which takes a second or so
        done.set()
        thread.join()
    assert len(ticks) > 20


def test_mistakes_have_a_remedy(mesh):
    with pytest.raises(wavetank.WavetankError, match="no such scenario"):
        mesh("/nowhere/scenario.yaml")
    with pytest.raises(wavetank.WavetankError, match=r"mesh.clusters\[0\].gateway"):
        mesh(Mesh(clusters=[Cluster("a", gateway="bridge")]))
    with pytest.raises(wavetank.WavetankError, match=r"mesh.apps\[0\].deployments\[0\].cluster: no cluster is named 'b'"):
        mesh(Mesh(clusters=[Cluster("a")], apps=[App("web", [Deployment("b")])]))
    with pytest.raises(wavetank.WavetankError, match="'seed' is no whole number"):
        mesh(two_networks(), seed=1 << 70)
    world = mesh(two_networks())
    with pytest.raises(wavetank.WavetankError, match="did you mean 'scale'"):
        world.do({"scael": {}})
    with pytest.raises(wavetank.WavetankError, match="every"):
        world.until(lambda now: False, every=0)
    with pytest.raises(wavetank.WavetankError, match="a flow is a mapping"):
        world._process.ask("start", flow=7)
    assert world.check() == []


def test_what_is_no_time_and_no_number_of_requests_is_an_error(mesh):
    world = mesh(two_networks())
    for seconds in (float("nan"), float("inf")):
        with pytest.raises(wavetank.WavetankError, match="is no time"):
            world.step(seconds)
    for count in (0, -4):  # 0 would go on until finish()
        with pytest.raises(wavetank.WavetankError, match="1 or more"):
            world.send("east", "web.sample:8080", count)
    with pytest.raises(wavetank.WavetankError, match="no kind of event is called 'XdsSend'"):
        mesh(two_networks(), trace=True).trace("XdsSend")


def test_a_closed_world_says_so():
    world = World.open(two_networks())
    world.close()
    for ask in (world.digest, world.fork, lambda: world.step(1)):
        with pytest.raises(wavetank.WavetankError, match="closed"):
            ask()


def test_a_mesh_has_any_seed_and_a_story(mesh, tmp_path):
    whole = two_networks()
    whole.seed, whole.apps[0].port_name = 31_000_000, "grpc"
    whole.apps[0].deployments[0].name = "own"
    world = mesh(whole)
    assert world.seed == 31_000_000
    world.do(actions.Scale(cluster="east", deployment="sample/own", replicas=2))
    world.settle()
    requests = world.send("east", "web.sample:8080", 60, protocol="grpc")
    assert requests.failed == 0 and requests.remote == requests.by_cluster["west"] and requests.by_flags == {"-": 60}
    (tmp_path / "story.scenario.yaml").write_text(world.story())
    result = wavetank.run(tmp_path / "story.scenario.yaml")
    assert result.seed == 31_000_000 and [step["name"] for step in result.all["steps"]][-1] == "1: scale"


def test_tables_and_pictures_say_what_they_lack(mesh, monkeypatch):
    world = mesh(two_networks())
    with pytest.raises(wavetank.WavetankError, match="no list; frame"):
        wavetank.plot(world.endpoints())
    for name, make in (("pandas", wavetank.frame), ("pyarrow", wavetank.arrow)):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(wavetank.WavetankError, match=f"pip install {name}"):
            make(world.endpoints())


@pytest.mark.wavetank(seeds=[1, 2])
def test_the_fixture_has_a_world_per_seed(mesh):
    assert mesh(two_networks()).check() == []


def test_a_run_is_a_dataclass(request):
    result = wavetank.run(request.config.rootpath / "scenarios" / "two-roots")
    assert result.passed and result.expectations and result.all["scenario"] == result.scenario
