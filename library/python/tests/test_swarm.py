import os

import pytest

from wavetank import WavetankError, swarm

SHARED = os.path.join(os.path.dirname(__file__), "..", "..", "..", "scenarios", "shared-network-name")


def test_parts_together_say_what_the_whole_says():
    whole = swarm.run("3-14", jobs=2)
    parts = [swarm.run("3-6"), swarm.run("7-13"), swarm.run("14")]
    assert swarm.merge(parts) == whole
    assert whole["seeds"] == 12


def test_a_failure_of_many_parts_is_one(tmp_path):
    whole = swarm.run("1-3", mesh=SHARED, faults=False)
    parts = [swarm.run(str(seed), mesh=SHARED, faults=False) for seed in (1, 2, 3)]
    assert len(whole["failures"]) == 1
    assert swarm.merge(parts) == whole


def test_seeds_on_dask_say_the_same():
    pytest.importorskip("distributed")
    assert swarm.run("1-8", dask=2, task=3) == swarm.run("1-8", jobs=2)


def test_a_wrong_call_is_an_error_with_a_remedy():
    with pytest.raises(WavetankError, match="write 412 or 1-5000"):
        swarm.run("9-3")
    with pytest.raises(WavetankError, match="nothing-such"):
        swarm.run("1", buggify="nothing-such")
