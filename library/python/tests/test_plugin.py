"""The plugin, in a pytest of its own."""
import pytest

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def beside_the_tests(monkeypatch):
    monkeypatch.delenv("WAVETANK_FAILURES", raising=False)


SCENARIO = """
name: One cluster
clusters:
  - name: c1
    manifests:
      - objects:
          - {apiVersion: v1, kind: Namespace, metadata: {name: sample}}
steps:
  - name: at rest
    expect: [{converged: {proxies: 0}}, {converged: {proxies: %s}}]
"""


def test_each_expectation_is_a_test(pytester):
    (pytester.path / "scenario.yaml").write_text(SCENARIO % 0)
    result = pytester.runpytest()
    result.assert_outcomes(passed=3)


def test_a_failure_says_how_to_run_it_again_and_where_its_report_is(pytester):
    (pytester.path / "scenario.yaml").write_text(SCENARIO % 7)
    result = pytester.runpytest("--wavetank-seed", "5")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*scenario.yaml:10: *", "again: wavetank run *scenario.yaml --seed 5", "report: *report.html; log: *"])
    assert list(pytester.path.rglob("report.html")) and list(pytester.path.rglob("run.wtlog"))


def test_a_scenario_with_a_mistake_is_an_error_with_its_place(pytester):
    (pytester.path / "scenario.yaml").write_text("name: x\nclusterz: []\n")
    result = pytester.runpytest()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*scenario.yaml:2:*clusterz*"])


def test_a_failed_test_leaves_its_log(pytester):
    pytester.makepyfile("""
        from wavetank import Cluster, Mesh
        def test_it(mesh):
            mesh(Mesh(clusters=[Cluster("c1")]))
            assert False
    """)
    result = pytester.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*again: wavetank replay *test_it-0.wtlog  (seed 1)"])
    assert list(pytester.path.rglob("*test_it-0.wtlog"))


def test_failures_of_several_tests_lie_side_by_side(pytester):
    for name in ("a", "b"):
        (pytester.path / f"{name}.scenario.yaml").write_text(SCENARIO % 7)
    pytester.makepyfile("""
        import pytest
        from wavetank import Cluster, Mesh
        @pytest.mark.wavetank(seeds=[1, 2], profiles=["istio-1.18"])
        def test_it(mesh):
            mesh(Mesh(clusters=[Cluster("c1")]))
            closed = mesh(Mesh(clusters=[Cluster("c1")]))
            closed.close()
            assert False
    """)
    result = pytester.runpytest()
    result.assert_outcomes(passed=4, failed=4)
    result.stdout.fnmatch_lines(["*no log: *closed*"])
    assert len(list(pytester.path.rglob("report.html"))) == 2
    logs = [path.name for path in pytester.path.rglob("*-0.wtlog")]
    assert len(logs) == 2 and not any(c in name for name in logs for c in "[] ")
