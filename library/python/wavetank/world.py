"""A mesh that lives, in virtual time: it is told what to do, time passes, and it is asked what became of it."""
import dataclasses
import json
import math
import pathlib
import subprocess
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Union

from wavetank._action import Action
from wavetank._program import Process, WavetankError, complaint, program
from wavetank.mesh import Mesh


@dataclass
class Failure:
    flags: str
    upstream: str
    cause: str
    code: int
    count: int


@dataclass
class Requests:
    """What became of requests; `all` is the whole answer (docs/results.md)."""

    sent: int
    failed: int
    retried: int
    by_version: Dict[str, int]
    by_cluster: Dict[str, int]
    by_pod: Dict[str, int]
    by_flags: Dict[str, int]  # Envoy's response flags; where there are none "-", or what Envoy says of a failure
    remote: int  # answered in another cluster than the client's
    mtls_verified: int
    p50_ms: float
    p99_ms: float
    failures: List[Failure]
    all: Dict[str, Any] = field(repr=False, compare=False)


@dataclass
class ProxyConvergence:
    proxy: str
    total_ms: float
    stages_ms: Dict[str, float]


@dataclass
class Settled:
    settled: bool
    at_work: List[str]
    disconnected: List[str]
    complaints: List[str]
    total_ms: float
    proxies: List[ProxyConvergence]


@dataclass
class Endpoint:
    cluster: str
    proxy: str
    address: str
    status: str
    outlier_check: str
    upstream: str


@dataclass
class Service:
    cluster: str
    ns: str
    name: str
    type: str
    cluster_ip: str
    external: str
    ports: str


@dataclass
class TraceEvent:
    index: int
    at_ns: int
    kind: str
    subject: str
    object: str
    detail: str
    a: int
    b: int
    inputs: List[int]

    @classmethod
    def of(cls, row: Dict[str, Any]) -> "TraceEvent":
        return cls(row["index"], row["atNs"], row["kind"], row["subject"], row["object"], row["detail"], row["a"], row["b"],
                   row["inputs"])


@dataclass
class Breach:
    invariant: str
    what: str


@dataclass
class Expectation:
    text: str
    held: bool
    explanation: str
    line: int
    step: str


@dataclass
class RunResult:
    """Of a scenario; `all` is the whole answer (docs/results.md)."""

    scenario: str
    passed: bool
    digest: str
    seed: int
    profile: str
    expectations: List[Expectation]
    all: Dict[str, Any] = field(repr=False, compare=False)


def _requests(answer: Dict[str, Any]) -> Requests:
    failures = [Failure(f["flags"], f["upstream"], f["cause"], f["code"], f["count"]) for f in answer["failures"]
                if not f["retried"]]
    return Requests(answer["sent"], answer["failed"], answer["retried"], answer["byVersion"], answer["byCluster"],
                    answer["byPod"], answer["byFlags"], answer["remote"], answer["mtlsVerified"], answer["latencyMs"]["p50"], answer["latencyMs"]["p99"], failures, answer)


def _nanoseconds(seconds: float) -> int:
    if not math.isfinite(seconds):
        raise WavetankError(f"{seconds} is no time; write seconds, 0 to a year")
    return round(seconds * 1e9)


class World:
    """One thread at a time may use a world; worlds in several threads are independent, and run at once."""

    def __init__(self, process: Process, mesh: Mesh, seed: int, notes: List[str], actions: List[Dict[str, Any]],
                 profile: str = ""):
        self._process, self.mesh, self.seed, self.notes, self.actions = process, mesh, seed, notes, actions
        self.profile = profile or mesh.profile

    @classmethod
    def open(cls, mesh: Union[Mesh, str, pathlib.Path], *, seed: Optional[int] = None, profile: str = "",
             trace: bool = False) -> "World":
        """The mesh is up and at rest when this returns."""
        if not isinstance(mesh, Mesh):
            mesh = Mesh.from_scenario(mesh)
        process = Process.start()
        request: Dict[str, Any] = {"trace": trace}
        if seed is not None:
            request["seed"] = seed
        if profile:
            request["profile"] = profile
        if mesh.scenario is not None:
            request["scenario"] = mesh.scenario
        else:
            request["mesh"] = dataclasses.asdict(mesh)
        try:
            answer = process.ask("open", **request)
        except WavetankError:
            process.close()
            raise
        return cls(process, mesh, answer["seed"], answer["notes"], [], profile)

    def close(self) -> None:
        self._process.close()

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    @property
    def now(self) -> float:
        """Virtual seconds since the world's beginning."""
        return self._process.now_ns / 1e9

    def do(self, action: Union[Action, Dict[str, Any]]) -> None:
        """Now; what follows needs time to pass."""
        value = action.value() if isinstance(action, Action) else action
        self._process.ask("do", action=value)
        self.actions.append(value)

    def step(self, seconds: float) -> None:
        self._process.ask("run", forNs=_nanoseconds(seconds))

    def settle(self, limit: float = 600, *, connected: bool = False) -> Settled:
        """Until nothing happens any more; `connected`: and until every proxy has its istiod."""
        answer = self._process.ask("settle", limitNs=_nanoseconds(limit), connected=connected)
        convergence = answer["convergence"]
        proxies = [ProxyConvergence(p["proxy"], p["totalMs"], p["stagesMs"]) for p in convergence["proxies"]]
        return Settled(answer["settled"], answer["atWork"], answer["disconnected"], answer["complaints"],
                       convergence["totalMs"], proxies)

    def until(self, holds: Callable[["World"], bool], limit: float = 600, every: float = 0.1) -> bool:
        """In steps of `every`, until `holds` says so; False: it never did within `limit`."""
        if every <= 0:
            raise WavetankError("in steps of no time nothing comes; until() takes `every` above zero")
        end = self.now + limit
        while not holds(self):
            if self.now >= end:
                return False
            self.step(min(every, end - self.now))
        return True

    def start(self, cluster: str, host: str, *, app: str = "sleep", ns: str = "sample", rate: str = "100/s",
              requests: int = 0, **flow: Any) -> str:
        """Requests of an app's pods, until finish(), while other things are done."""
        whole = {"from": {"cluster": cluster, "namespace": ns, "app": app}, "to": host, "rate": rate, **flow}
        return self._process.ask("start", flow=whole, requests=requests)["traffic"]

    def finish(self, traffic: str) -> Requests:
        return _requests(self._process.ask("finish", traffic=traffic)["requests"])

    def send(self, cluster: str, host: str, count: int, **more: Any) -> Requests:
        """So many, 1 or more, and what became of them."""
        if count < 1:
            raise WavetankError("how many requests? send() takes 1 or more; start() goes on until finish()")
        return self.finish(self.start(cluster, host, requests=count, **more))

    def services(self) -> List[Service]:
        rows = self._process.ask("services")["services"]
        return [Service(r["cluster"], r["namespace"], r["name"], r["type"], r["clusterIP"], r["external"], r["ports"])
                for r in rows]

    def proxies(self) -> List[str]:
        return self._process.ask("proxies")["proxies"]

    def endpoints(self, proxy: str = "") -> List[Endpoint]:
        rows = self._process.ask("endpoints", proxy=proxy)["endpoints"]
        return [Endpoint(r["cluster"], r["proxy"], r["endpoint"], r["status"], r["outlierCheck"], r["upstream"])
                for r in rows]

    def config(self, proxy: str, type: str) -> List[Dict[str, Any]]:
        """What the proxy was sent: cds, eds, lds, rds or ecds."""
        return self._process.ask("config", proxy=proxy, type=type)["config"]

    def trace(self, kind: str = "", subject: str = "") -> List[TraceEvent]:
        """Of a world that was opened with trace=True."""
        rows = self._process.ask("trace", kind=kind, subject=subject, limit=10**8)["events"]
        return [TraceEvent.of(row) for row in rows]

    def check(self) -> List[Breach]:
        """The invariants of a mesh at rest that do not hold; empty: all is well."""
        return [Breach(**row) for row in self._process.ask("check")["breaches"]]

    def fork(self) -> "World":
        """A copy that goes its own way from here."""
        return World(self._process.fork(), self.mesh, self.seed, self.notes, list(self.actions), self.profile)

    def digest(self) -> str:
        return self._process.ask("digest")["digest"]

    def write_log(self, path: Union[str, pathlib.Path]) -> None:
        """Of all that was done, for `wavetank replay`."""
        self._process.ask("log", path=str(path))

    def story(self) -> str:
        """What was done so far as a scenario: the mesh and a step for each action. Empty if the mesh is a scenario's."""
        if self.mesh.scenario is not None:
            return ""
        mesh = {**dataclasses.asdict(self.mesh), "seed": self.seed, "profile": self.profile}
        return self._process.ask("story", mesh=mesh, actions=self.actions)["text"]


def run(scenario: Union[str, pathlib.Path], *, seed: Optional[int] = None, profile: str = "",
        report: Optional[Union[str, pathlib.Path]] = None, log: Optional[Union[str, pathlib.Path]] = None) -> RunResult:
    """Runs a scenario and judges its expectations."""
    command = [program(), "run", str(scenario), "--json"]
    for option, value in (("--seed", seed), ("--profile", profile or None), ("--report", report), ("-o", log)):
        if value is not None:
            command += [option, str(value)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode not in (0, 1):
        raise complaint(done.stderr, done.returncode)
    answer = json.loads(done.stdout)["runs"][0]
    expectations = [Expectation(e["text"], e["held"], e["explanation"], e["line"], step["name"])
                    for step in answer["steps"] for e in step["expectations"]]
    return RunResult(answer["scenario"], answer["passed"], answer["digest"], answer["seed"], answer["profile"],
                     expectations, answer)


def replay(log: Union[str, pathlib.Path]) -> Dict[str, Any]:
    """Runs a log again: {"identical": True, "digest": ...}."""
    done = subprocess.run([program(), "replay", "--json", str(log)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode not in (0, 1):
        raise complaint(done.stderr, done.returncode)
    return json.loads(done.stdout)
