import json
import os
import random
import shutil
import signal
import threading
import time

import pytest

from wavetank import WavetankError, sweeps


@pytest.fixture
def folder(tmp_path):
    source = os.path.join(os.path.dirname(__file__), "..", "..", "..", "capacity", "fleets", "small.yaml")
    shutil.copy(source, tmp_path / "small.yaml")
    return tmp_path


def write(folder, seeds, over):
    path = folder / "sweep.yaml"
    path.write_text(f"fleet: small.yaml\nseeds: {seeds}\nover:\n" + "".join(f"  {k}: {v}\n" for k, v in over.items()))
    return path


SETTINGS = {"istiod.debounceAfter": '["50ms", "100ms", "200ms", "500ms"]', "istiod.replicas": '["1", "2"]',
            "churn": '["1", "2", "4", "8", "16"]'}


def test_a_sweep_on_dask_has_the_same_table_though_half_of_its_workers_are_killed(folder):
    distributed = pytest.importorskip("distributed")
    sweep = write(folder, 5, SETTINGS)  # 200 tasks
    local = sweeps.run(sweep, folder / "local", jobs=2)
    assert (local.rows, local.failed) == (200, 0)
    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            chosen = random.Random(7).sample(sorted(client.run(os.getpid).values()), 2)

            def kill():
                for pid in chosen:
                    while len(list((folder / "dask" / "rows").glob("*"))) < 20:
                        time.sleep(0.01)
                    os.kill(pid, signal.SIGKILL)

            killer = threading.Thread(target=kill)
            killer.start()
            done = sweeps.run(sweep, folder / "dask", dask=client)
            killer.join()
    assert (done.rows, done.failed) == (200, 0)
    assert done.csv.read_bytes() == local.csv.read_bytes()


def test_what_is_there_does_not_run_again(folder):
    sweep = write(folder, 1, {"churn": '["1", "2"]'})
    sweeps.run(sweep, folder / "out")
    before = {p: p.stat().st_mtime_ns for p in (folder / "out" / "rows").iterdir()}
    write(folder, 1, {"churn": '["1", "2", "4"]'})
    assert sweeps.run(sweep, folder / "out").rows == 3
    after = {p: p.stat().st_mtime_ns for p in (folder / "out" / "rows").iterdir()}
    assert len(after) == 3 and all(after[path] == when for path, when in before.items())


def test_parquet_holds_numbers_and_settings_as_they_were_written(folder):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    sweep = write(folder, 2, {"istiod.debounceAfter": '["50ms", "100ms"]'})
    done = sweeps.run(sweep, folder / "out", parquet=True)
    table = pyarrow.read_table(done.parquet).to_pylist()
    rows = sweeps.read(done.csv)
    assert [r["istiod.debounceAfter"] for r in table] == [r["istiod.debounceAfter"] for r in rows]
    assert [r["p99_ms"] for r in table] == [float(r["p99_ms"]) for r in rows]
    assert [r["seed"] for r in table] == [0, 1, 0, 1]


def test_a_sweep_of_a_scenario_is_judged_by_what_it_names(tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    story = os.path.join(os.path.dirname(__file__), "..", "..", "..", "scenarios", "push-storm")
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(f"scenario: {os.path.abspath(story)}\nuntil: 12s\nseeds: 2\n"
                     "over: {timing.istiod.debounce_after: [10ms, 100ms]}\n"
                     "columns:\n  - {name: eds, metric: pilot_xds_pushes, labels: {type: eds}}\n"
                     "  - {name: story, result: scenario}\nobjectives: [pushes, eds]\n")
    done = sweeps.run(sweep, tmp_path / "out", parquet=True)
    assert (done.rows, done.failed) == (4, 0)
    assert sweeps.objectives(done.csv) == ("pushes", "eds")
    rows = pyarrow.read_table(done.parquet).to_pylist()
    assert [row["seed"] for row in rows] == [1, 2, 1, 2]
    assert all(isinstance(row["eds"], float) and row["story"] == "A push storm" for row in rows)
    entries = sweeps.combinations(sweeps.read(done.csv), sweeps.objectives(done.csv))
    assert [entry["settings"] for entry in entries] == [{"timing.istiod.debounce_after": "10ms"}, {"timing.istiod.debounce_after": "100ms"}]
    assert sweeps.report(tmp_path / "out").exists()


def test_the_front_has_what_no_other_beats():
    entries = [{"p99_ms": p, "cpus": c} for p, c in ((10, 5), (5, 10), (10, 10), (7, 7), (5, 12))]
    best = sweeps.pareto(entries, ("p99_ms", "cpus"))
    assert [(e["p99_ms"], e["cpus"]) for e in best] == [(10, 5), (5, 10), (7, 7)]


def test_the_report_is_the_programs_and_has_the_same_front(folder):
    sweep = write(folder, 2, {"istiod.debounceAfter": '["50ms", "500ms"]', "churn": '["1", "4"]'})
    sweeps.run(sweep, folder / "out")
    page = sweeps.report(folder / "out").read_text()
    drawn = json.loads(page.split('id="results">')[1].split("</script>")[0])
    assert drawn["settings"] == ["istiod.debounceAfter", "churn"]
    best = sweeps.pareto(sweeps.combinations(sweeps.read(folder / "out" / "sweep.csv")))
    told = [(row["p99_ms"], row["cpus"], row["memory_mb"], row["values"]) for row in drawn["best"]]
    assert sorted(told) == sorted((e["p99_ms"], e["cpus"], e["memory_mb"], list(e["settings"].values())) for e in best)


def test_mistakes_are_told_in_one_line(folder, capsys):
    with pytest.raises(WavetankError, match="no Dask scheduler answers at tcp://127.0.0.1:1 "):
        pytest.importorskip("distributed")
        sweeps.run(write(folder, 1, {"churn": '["1"]'}), folder / "out", dask="tcp://127.0.0.1:1")
    with pytest.raises(WavetankError, match="istiod.replicaz"):
        sweeps.run(write(folder, 1, {"istiod.replicaz": '["1"]'}), folder / "out")
    with pytest.raises(WavetankError, match="run the sweep first"):
        sweeps.report(folder / "nowhere")
    assert sweeps.main(["report", str(folder / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
