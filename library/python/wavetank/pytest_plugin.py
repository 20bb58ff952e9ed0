"""Scenarios as tests: each scenario.yaml is collected, one test per expectation. And the fixture `mesh`."""
import os
import pathlib
import shlex
from typing import Any, Iterator, List, Optional

import pytest

from wavetank import _program, world


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("wavetank")
    group.addoption("--wavetank-seed", type=int, help="seed of all scenarios and meshes, instead of their own")
    group.addoption("--wavetank-profile", default="", help="behaviour profile of all scenarios and meshes")


def pytest_configure(config: Any) -> None:
    config.addinivalue_line("markers", "wavetank(seeds, profiles): a test with the fixture `mesh` runs for each of these")


def pytest_collect_file(file_path: pathlib.Path, parent: Any) -> Optional[Any]:
    if file_path.name == "scenario.yaml" or file_path.name.endswith(".scenario.yaml"):
        return ScenarioFile.from_parent(parent, path=file_path)
    return None


def _failures(config: Any) -> pathlib.Path:
    return pathlib.Path(os.environ.get("WAVETANK_FAILURES") or config.rootpath / ".wavetank")


class ScenarioFile(pytest.File):
    """Its run happens once, with the first of its tests."""

    result: Optional[world.RunResult] = None
    broken: Optional[Exception] = None

    def collect(self) -> Iterator[Any]:
        process = _program.Process.start()
        try:
            outline = process.ask("outline", scenario=str(self.path))["expectations"]
        except _program.WavetankError as error:
            raise self.CollectError(str(error)) from None
        finally:
            process.close()
        yield RunItem.from_parent(self, name="runs")
        for index, row in enumerate(outline):
            name = f"{row['step']}: {row['text']}"
            yield ExpectationItem.from_parent(self, name=name.replace("\n", " "), index=index)

    def run_once(self) -> world.RunResult:
        if self.broken is not None:
            raise self.broken
        if self.result is None:
            try:
                self.result = world.run(self.path, seed=self.config.getoption("--wavetank-seed"),
                                        profile=self.config.getoption("--wavetank-profile"))
            except _program.WavetankError as error:
                self.broken = error
                raise
        return self.result

    def again(self) -> str:
        seed = self.config.getoption("--wavetank-seed")
        profile = self.config.getoption("--wavetank-profile")
        return (f"wavetank run {shlex.quote(str(self.path))}" + (f" --seed {seed}" if seed is not None else "") +
                (f" --profile {profile}" if profile else ""))

    def report(self) -> str:
        """A report of the failed run, made when it is wanted."""
        folder = _failures(self.config) / _program.file_name(self.nodeid)
        folder.mkdir(parents=True, exist_ok=True)
        world.run(self.path, seed=self.config.getoption("--wavetank-seed"),
                  profile=self.config.getoption("--wavetank-profile"), report=folder, log=folder / "run.wtlog")
        return f"report: {folder / 'report.html'}; log: {folder / 'run.wtlog'}"


class NotHeld(Exception):
    pass


class ScenarioItem(pytest.Item):
    def repr_failure(self, excinfo: Any, style: Any = None) -> Any:
        if isinstance(excinfo.value, (NotHeld, _program.WavetankError)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> Any:
        return self.path, 0, self.name


class RunItem(ScenarioItem):
    """That the scenario runs to its end."""

    def runtest(self) -> None:
        self.parent.run_once()


class ExpectationItem(ScenarioItem):
    def __init__(self, *, index: int, **rest: Any):
        super().__init__(**rest)
        self.index = index

    def runtest(self) -> None:
        found: List[world.Expectation] = self.parent.run_once().expectations
        if self.index >= len(found):
            raise NotHeld("the run ended before this was judged")
        e = found[self.index]
        if not e.held:
            raise NotHeld(f"{self.path}:{e.line}: {e.text}\n{e.explanation}\nagain: {self.parent.again()}\n{self.parent.report()}")


def pytest_generate_tests(metafunc: Any) -> None:
    mark = metafunc.definition.get_closest_marker("wavetank")
    if "mesh" not in metafunc.fixturenames or mark is None:
        return
    seeds, profiles = mark.kwargs.get("seeds", [None]), mark.kwargs.get("profiles", [""])
    metafunc.parametrize("mesh", [(s, p) for s in seeds for p in profiles], indirect=True,
                         ids=lambda each: "-".join(str(x) for x in each if x not in (None, "")) or "own")


@pytest.fixture
def mesh(request: Any) -> Iterator[Any]:
    """mesh(MESH_OR_SCENARIO): an open world, closed after the test; where that fails, its log is written."""
    opened: List[world.World] = []
    seed, profile = getattr(request, "param", (None, ""))
    if seed is None:
        seed = request.config.getoption("--wavetank-seed")

    def open_one(what: Any, **options: Any) -> world.World:
        options.setdefault("seed", seed)
        options.setdefault("profile", profile or request.config.getoption("--wavetank-profile"))
        opened.append(world.World.open(what, **options))
        return opened[-1]

    yield open_one
    failed = getattr(request.node, "wavetank_failed", False)
    for i, each in enumerate(opened):
        if failed:
            folder = _failures(request.config)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{_program.file_name(request.node.nodeid)}-{i}.wtlog"
            try:
                each.write_log(path)
                print(f"again: wavetank replay {shlex.quote(str(path))}  (seed {each.seed})")
            except _program.WavetankError as error:  # the test closed it, or it came to grief
                print(f"no log: {error}")
        each.close()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Iterator[None]:
    outcome = yield
    if call.when == "call" and outcome.get_result().failed:
        item.wavetank_failed = True
