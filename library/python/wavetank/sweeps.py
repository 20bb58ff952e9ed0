"""`wavetank sweep` on a Dask cluster, its table as Parquet, and a page of what it found (docs/capacity.md).

    python3 -m wavetank.sweeps run SWEEP.yaml -o DIR [--dask tcp://scheduler:8786 | --dask 4] [--parquet]
    python3 -m wavetank.sweeps report DIR

A task's result is a file in DIR named by all that it depends on, so DIR must be a folder that all workers see. What a killed
worker has done stays done; what it was doing runs again; nothing is counted twice.
"""
import argparse
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Union

from wavetank._program import WavetankError, program

# Rows of fleets by what they cost and what they give: smaller is better for each. Of others, `objectives` says it.
OBJECTIVES = ("p99_ms", "cpus", "memory_mb")
_TEXTS = {"extrapolates", "error", "digest"}
_WHOLE = {"seed", "changes", "missing", "most_waiting", "passed", "not_held", "sent", "failed", "retried", "pushes", "nacks"}


@dataclass
class SweepResult:
    """Where the table is, and how many of its rows have no result (their column `error` says why)."""
    csv: pathlib.Path
    rows: int
    failed: int
    parquet: Optional[pathlib.Path] = None


def _call(sweep: str, out: str, *more: str) -> Tuple[int, str, str]:
    done = subprocess.run([program(), "sweep", sweep, "-o", out, *more], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout, done.stderr.strip()


def _checked(sweep: str, out: str, *more: str) -> int:
    """Runs it and says how many rows the table has."""
    code, said, wrong = _call(sweep, out, *more)
    rows = re.search(r": (\d+) rows;", said)
    if rows is None:
        raise WavetankError(wrong.removeprefix("wavetank: ") or f"wavetank sweep ended with code {code}")
    return int(rows.group(1))


def _share(executable: str, sweep: str, out: str, number: int, of: int, more: Sequence[str]) -> None:
    """On a worker: one task. Its result is a file, so there is nothing to send back."""
    os.environ["WAVETANK_PROGRAM"] = executable
    _checked(sweep, out, "--jobs", "1", "--share", f"{number}/{of}", *more)


def _on_dask(client: Any, sweep: str, out: str, tasks: int, more: Sequence[str], attempts: int) -> None:
    from distributed import KilledWorker, as_completed

    executable = program()

    def submit(number: int) -> Any:
        return client.submit(_share, executable, sweep, out, number, tasks, list(more), pure=False,
                             key=f"wavetank-{os.getpid()}-{number}-{tried[number]}")

    tried = dict.fromkeys(range(tasks), 0)
    futures = [submit(number) for number in tried]
    numbers = {future.key: number for number, future in enumerate(futures)}
    waiting = as_completed(futures)
    for future in waiting:
        number = numbers[future.key]
        error = future.exception()
        if error is None:
            continue
        if not isinstance(error, KilledWorker) and future.status != "cancelled":
            raise WavetankError(f"task {number} of {tasks}: {error}") from None
        tried[number] += 1
        if tried[number] >= attempts:
            raise WavetankError(f"task {number} of {tasks}: its worker was killed {attempts} times; does a task need more memory "
                                "than a worker has?")
        again = submit(number)
        numbers[again.key] = number
        waiting.add(again)


def _connected(dask: Union[str, int, Any]) -> Tuple[Any, Any]:
    """A client, and what is to be closed after it."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise WavetankError("Dask is not installed: pip install distributed, or leave dask out") from None
    if isinstance(dask, int):
        cluster = LocalCluster(n_workers=dask, threads_per_worker=1, dashboard_address=None)
        return Client(cluster), cluster
    if not isinstance(dask, str):
        return dask, None
    try:
        return Client(dask, timeout="10s"), None
    except (OSError, TimeoutError, ValueError) as error:
        raise WavetankError(f"no Dask scheduler answers at {dask} ({type(error).__name__}): start one (`dask scheduler`), or say "
                            "how many workers this machine shall have") from None


def run(sweep: Union[str, os.PathLike], out: Union[str, os.PathLike], *, dask: Union[None, str, int, Any] = None,
        jobs: Optional[int] = None, memory: Optional[str] = None, parameters: Optional[str] = None, parquet: bool = False,
        attempts: int = 5) -> SweepResult:
    """Runs a sweep, in processes of this machine or (`dask`: an address, a number of local workers, a Client) on Dask.

    The table is the same, byte for byte. WavetankError: the sweep is wrong, no scheduler answers, or one task's worker was killed
    `attempts` times; run it again then, and only the rest runs.
    """
    sweep, out = str(pathlib.Path(sweep).resolve()), str(pathlib.Path(out).resolve())
    os.makedirs(os.path.join(out, "rows"), exist_ok=True)
    more: List[str] = []
    for option, value in (("--memory", memory), ("--parameters", parameters)):
        if value is not None:
            more += [option, value]
    if dask is None:
        rows = _checked(sweep, out, *([] if jobs is None else ["--jobs", str(jobs)]), *more)
    else:
        rows = _checked(sweep, out, "--share", "0/0", *more)  # also finds out what is wrong with it
        client, cluster = _connected(dask)
        try:
            _on_dask(client, sweep, out, rows, more, attempts)
        finally:
            if client is not dask:
                client.close()
            if cluster is not None:
                cluster.close()
        _checked(sweep, out, "--share", "0/0", *more)
    table = pathlib.Path(out) / "sweep.csv"
    failed = sum(1 for row in read(table) if row["error"])
    result = SweepResult(table, rows, failed)
    if parquet:
        result.parquet = write_parquet(table)
    return result


def read(table: Union[str, os.PathLike]) -> List[Dict[str, str]]:
    """The rows of a sweep.csv."""
    with open(table, newline="") as file:
        return list(csv.DictReader(file))


def write_parquet(table: Union[str, os.PathLike]) -> pathlib.Path:
    """sweep.parquet beside a sweep.csv, by Arrow's own writer: settings as text, results as numbers where all of a column are."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise WavetankError("Arrow is not installed: pip install pyarrow") from None
    with open(table, newline="") as file:
        names = next(csv.reader(file))
    text = set(names[:names.index("seed")]) | _TEXTS | _words(read(table), names)
    types = {name: pyarrow.string() if name in text else pyarrow.int64() if name in _WHOLE else pyarrow.float64()
             for name in names}
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False, null_values=[""])
    out = pathlib.Path(table).with_suffix(".parquet")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(table, convert_options=options), out)
    return out


def _words(rows: Sequence[Dict[str, str]], names: Sequence[str]) -> Set[str]:
    """The columns in which something is no number: what a scenario's sweep asks for may be text."""
    def number(text: str) -> bool:
        try:
            float(text)
        except ValueError:
            return False
        return True

    return {name for name in names if any(row[name] and not number(row[name]) for row in rows)}


def objectives(table: Union[str, os.PathLike]) -> Tuple[str, ...]:
    """What the rows of a sweep.csv are judged by: smaller is better for each."""
    beside = pathlib.Path(table).with_suffix(".json")
    return tuple(json.loads(beside.read_text())["objectives"]) if beside.exists() else OBJECTIVES


def combinations(rows: Sequence[Dict[str, str]], by: Sequence[str] = OBJECTIVES) -> List[Dict[str, Any]]:
    """One entry for each combination of settings: in each of `by` the worst of its seeds, since all of them may happen."""
    out: Dict[Tuple[str, ...], Dict[str, Any]] = {}
    for row in rows:
        if row["error"]:
            continue
        settings = {name: row[name] for name in _settings(rows)}
        entry = out.setdefault(tuple(settings.values()), {"settings": settings, "seeds": 0})
        entry["seeds"] += 1
        for name in by:
            entry[name] = max(entry.get(name, float("-inf")), float(row[name]))
    return list(out.values())


def pareto(entries: Sequence[Dict[str, Any]], objectives: Sequence[str] = OBJECTIVES) -> List[Dict[str, Any]]:
    """Those that no other is at least as good as in everything and better than in something."""
    def beats(a: Dict[str, Any], b: Dict[str, Any]) -> bool:
        return all(a[o] <= b[o] for o in objectives) and any(a[o] < b[o] for o in objectives)

    return [entry for entry in entries if not any(beats(other, entry) for other in entries)]


def _settings(rows: Sequence[Dict[str, str]]) -> List[str]:
    names = list(rows[0]) if rows else []
    return names[:names.index("seed")] if names else []


def report(folder: Union[str, os.PathLike]) -> pathlib.Path:
    """DIR/report.html of DIR/sweep.csv, as `wavetank sweep -o DIR --report DIR` draws it: Pareto fronts, what each setting does,
    the best rows. WavetankError: there is no table, or no row of it has a result."""
    folder = str(folder)
    done = subprocess.run([program(), "sweep", "-o", folder, "--report", folder], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise WavetankError(done.stderr.strip().removeprefix("wavetank: ") or f"wavetank sweep ended with code {done.returncode}")
    return pathlib.Path(folder) / "report.html"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m wavetank.sweeps", description="wavetank sweep on Dask, as Parquet, as a page")
    verbs = parser.add_subparsers(dest="verb", required=True)
    running = verbs.add_parser("run", help="run a sweep")
    running.add_argument("sweep")
    running.add_argument("-o", "--out", required=True)
    running.add_argument("--dask", help="a scheduler's address, or how many local workers; without it, processes of this machine")
    running.add_argument("-j", "--jobs", type=int)
    running.add_argument("--memory")
    running.add_argument("--parameters")
    running.add_argument("--parquet", action="store_true", help="write sweep.parquet, too")
    reporting = verbs.add_parser("report", help="report.html of a sweep's folder")
    reporting.add_argument("folder")
    a = parser.parse_args(arguments)
    try:
        if a.verb == "report":
            print(report(a.folder))
            return 0
        dask = int(a.dask) if a.dask and a.dask.isdigit() else a.dask
        done = run(a.sweep, a.out, dask=dask, jobs=a.jobs, memory=a.memory, parameters=a.parameters, parquet=a.parquet)
        print(f"{done.parquet or done.csv}: {done.rows} rows, {done.failed} failed")
        return 1 if done.failed else 0
    except WavetankError as error:
        print(f"wavetank: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
