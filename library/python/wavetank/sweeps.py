"""`wavetank sweep` on a Dask cluster, its table as Parquet, and a page of what it found (docs/capacity.md).

    python3 -m wavetank.sweeps run SWEEP.yaml -o DIR [--dask tcp://scheduler:8786 | --dask 4] [--parquet]
    python3 -m wavetank.sweeps report DIR

A task's result is a file in DIR named by all that it depends on, so DIR must be a folder that all workers see. What a killed
worker has done stays done; what it was doing runs again; nothing is counted twice.
"""
import argparse
import csv
import html
import os
import pathlib
import re
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from wavetank._program import WavetankError, program

# Rows by what they cost and what they give: smaller is better for each.
OBJECTIVES = ("p99_ms", "cpus", "memory_mb")
_RESULTS_FROM = "p50_ms"  # the first column that is no setting


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
    """sweep.parquet beside a sweep.csv, by Arrow's own writer: settings as text, results as numbers."""
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError:
        raise WavetankError("Arrow is not installed: pip install pyarrow") from None
    with open(table, newline="") as file:
        names = next(csv.reader(file))
    text = set(names[:names.index(_RESULTS_FROM)]) - {"seed"} | {"extrapolates", "error"}
    whole = {"seed", "changes", "missing", "most_waiting"}
    types = {name: pyarrow.string() if name in text else pyarrow.int64() if name in whole else pyarrow.float64()
             for name in names}
    options = pyarrow.csv.ConvertOptions(column_types=types, strings_can_be_null=False, null_values=[""])
    out = pathlib.Path(table).with_suffix(".parquet")
    pyarrow.parquet.write_table(pyarrow.csv.read_csv(table, convert_options=options), out)
    return out


def combinations(rows: Sequence[Dict[str, str]]) -> List[Dict[str, Any]]:
    """One entry for each combination of settings: the worst of its seeds, since all of them may happen."""
    out: Dict[Tuple[str, ...], Dict[str, Any]] = {}
    for row in rows:
        if row["error"]:
            continue
        settings = {name: row[name] for name in _settings(rows)}
        entry = out.setdefault(tuple(settings.values()), {"settings": settings, "seeds": 0})
        entry["seeds"] += 1
        for name in OBJECTIVES:
            entry[name] = max(entry.get(name, float("-inf")), float(row[name]))
    return list(out.values())


def pareto(entries: Sequence[Dict[str, Any]], objectives: Sequence[str] = OBJECTIVES) -> List[Dict[str, Any]]:
    """Those that no other is at least as good as in everything and better than in something."""
    def beats(a: Dict[str, Any], b: Dict[str, Any]) -> bool:
        return all(a[o] <= b[o] for o in objectives) and any(a[o] < b[o] for o in objectives)

    return [entry for entry in entries if not any(beats(other, entry) for other in entries)]


def _settings(rows: Sequence[Dict[str, str]]) -> List[str]:
    names = list(rows[0]) if rows else []
    return [name for name in names[:names.index(_RESULTS_FROM)] if name != "seed"] if names else []


# Pictures of 420 x 260; the frame leaves room for numbers.
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 420, 260, 60, 34, 12


def _scale(values: Sequence[float], low: float, high: float) -> Any:
    least, most = min(values), max(values)
    span = (most - least) or 1.0
    return lambda value: low + (value - least) / span * (high - low)


def _picture(title: str, x_name: str, y_name: str, xs: Sequence[float], ys: Sequence[float], marks: str,
             x_ticks: Sequence[Tuple[float, str]]) -> str:
    y = _scale(ys, _HEIGHT - _BOTTOM, _EDGE + 14)
    ticks = "".join(f'<text x="{at:.1f}" y="{_HEIGHT - _BOTTOM + 14}" text-anchor="middle">{html.escape(text)}</text>'
                    for at, text in x_ticks)
    for value in sorted({min(ys), max(ys)}):
        ticks += f'<text x="{_LEFT - 4}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.4g}</text>'
    return (f'<svg width="{_WIDTH}" height="{_HEIGHT}" font-family="sans-serif" font-size="10">'
            f'<text x="{_LEFT}" y="12" font-size="12">{html.escape(title)}</text>'
            f'<path d="M{_LEFT} {_EDGE + 8}V{_HEIGHT - _BOTTOM}H{_WIDTH - _EDGE}" fill="none" stroke="#888"/>{ticks}{marks}'
            f'<text x="{_WIDTH - _EDGE}" y="{_HEIGHT - 4}" text-anchor="end">{html.escape(x_name)}</text>'
            f'<text x="{_LEFT}" y="{_HEIGHT - 4}" text-anchor="end">{html.escape(y_name)}</text></svg>')


def _front(entries: Sequence[Dict[str, Any]], x_name: str, y_name: str) -> str:
    xs, ys = [e[x_name] for e in entries], [e[y_name] for e in entries]
    x, y = _scale(xs, _LEFT + 6, _WIDTH - _EDGE - 6), _scale(ys, _HEIGHT - _BOTTOM, _EDGE + 14)
    best = sorted(pareto(entries, (x_name, y_name)), key=lambda e: e[x_name])
    marks = "".join(f'<circle cx="{x(e[x_name]):.1f}" cy="{y(e[y_name]):.1f}" r="2.5" fill="#999"/>' for e in entries)
    line = " ".join(f"{x(e[x_name]):.1f},{y(e[y_name]):.1f}" for e in best)
    marks += f'<polyline points="{line}" fill="none" stroke="#06c" stroke-width="1.5"/>'
    for e in best:
        told = ", ".join(f"{name}={value}" for name, value in e["settings"].items())
        marks += (f'<circle cx="{x(e[x_name]):.1f}" cy="{y(e[y_name]):.1f}" r="4" fill="#06c">'
                  f"<title>{html.escape(told)}</title></circle>")
    ticks = [(x(value), f"{value:.4g}") for value in sorted({min(xs), max(xs)})]
    return _picture(f"{y_name} against {x_name}", x_name, y_name, xs, ys, marks, ticks)


def _response(entries: Sequence[Dict[str, Any]], setting: str, objective: str) -> str:
    """Least, middle and greatest of an objective for each value of a setting, all other settings as they come."""
    values = list(dict.fromkeys(e["settings"][setting] for e in entries))
    ys = [e[objective] for e in entries]
    x = _scale(range(len(values)), _LEFT + 30, _WIDTH - _EDGE - 30)
    y = _scale(ys, _HEIGHT - _BOTTOM, _EDGE + 14)
    marks, middles = "", []
    for i, value in enumerate(values):
        own = sorted(e[objective] for e in entries if e["settings"][setting] == value)
        middles.append(f"{x(i):.1f},{y(own[len(own) // 2]):.1f}")
        marks += f'<path d="M{x(i):.1f} {y(own[0]):.1f}V{y(own[-1]):.1f}" stroke="#bbb" stroke-width="6"/>'
    marks += f'<polyline points="{" ".join(middles)}" fill="none" stroke="#c40" stroke-width="1.5"/>'
    return _picture(f"{objective} by {setting}", setting, objective, [0.0], ys, marks,
                    [(x(i), value) for i, value in enumerate(values)])


def report(folder: Union[str, os.PathLike]) -> pathlib.Path:
    """DIR/report.html of DIR/sweep.csv: Pareto fronts, what each setting does, the best rows. WavetankError: no row has a result."""
    folder = pathlib.Path(folder)
    table = folder / "sweep.csv"
    if not table.exists():
        raise WavetankError(f"{table} is not there: run the sweep first")
    rows = read(table)
    entries = combinations(rows)
    if not entries:
        raise WavetankError(f"{table}: no row has a result; the column `error` says why")
    best = sorted(pareto(entries), key=lambda e: tuple(e[o] for o in OBJECTIVES))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in [*best[0]["settings"], *OBJECTIVES])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(v))}</td>" for v in e["settings"].values()) +
                   "".join(f"<td>{e[o]:.5g}</td>" for o in OBJECTIVES) + "</tr>" for e in best)
    pictures = "".join(_front(entries, x_name, "p99_ms") for x_name in ("cpus", "memory_mb"))
    responses = "".join(_response(entries, setting, objective) for setting in best[0]["settings"]
                        for objective in ("p99_ms", "cpus"))
    failed = sum(1 for row in rows if row["error"])
    out = folder / "report.html"
    out.write_text(
        "<!doctype html><meta charset=utf-8><title>A sweep</title><style>body{font:14px sans-serif;margin:2em}"
        "td,th{padding:2px 10px;text-align:right}svg{margin:6px}</style><h1>A sweep</h1>"
        f"<p>{len(rows)} rows, {failed} without a result; {len(entries)} combinations of settings, each with the worst of its "
        f"seeds. {len(best)} of them are beaten by no other in {', '.join(OBJECTIVES)} together.</p>"
        f"<h2>Pareto fronts</h2>{pictures}<h2>What each setting does</h2><p>Grey: from least to greatest over all other "
        f"settings; the line: the middle one.</p>{responses}<h2>The best</h2><table><tr>{head}</tr>{body}</table>\n")
    return out


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
