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
    result.stdout.fnmatch_lines(["*again: wavetank replay *test_it-0.wtlog"])
    assert list(pytester.path.rglob("test_it-0.wtlog"))
