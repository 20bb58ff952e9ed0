"""`wavetank swarm` on a Dask cluster: seeds in tasks, and one answer, the same as without (docs/swarm.md).

    python3 -m wavetank.swarm --seeds 1-5000 [--dask tcp://scheduler:8786 | --dask 4] [--invariants all] ...

Each seed is a function of its number, so it does not matter which worker runs it. Logs of failures (`logs`) go to a folder that
all workers must see.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from wavetank._program import WavetankError, program
from wavetank.sweeps import _connected

Result = Dict[str, Any]


def _range(seeds: str) -> Tuple[int, int]:
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", seeds)
    if found is None or int(found.group(2) or found.group(1)) < int(found.group(1)):
        raise WavetankError(f"seeds '{seeds}': write 412 or 1-5000")
    return int(found.group(1)), int(found.group(2) or found.group(1))


def _part(executable: str, first: int, last: int, more: Sequence[str]) -> Result:
    """On a worker, or here: some of the seeds."""
    done = subprocess.run([executable, "swarm", "--seeds", f"{first}-{last}", "--json", *more], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: a seed failed, which the answer says
        wrong = done.stderr.strip().removeprefix("wavetank: ")
        raise WavetankError(wrong or f"wavetank swarm ended with code {done.returncode}")
    return json.loads(done.stdout)


def merge(parts: Sequence[Result]) -> Result:
    """What `wavetank swarm --json` says of all seeds of `parts`, which are in their order and have none twice."""
    out: Result = {"seeds": 0, "held": 0, "runTwice": 0, "virtualSeconds": 0.0, "failures": [], "expected": {}, "sometimes": {},
                   "buggify": {}}
    failures: Dict[str, Result] = {}
    for part in parts:
        for name in ("seeds", "held", "runTwice", "virtualSeconds"):
            out[name] += part[name]
        for name in ("expected", "sometimes", "buggify"):
            for row, count in part[name].items():
                out[name][row] = out[name].get(row, 0) + count
        for failure in part["failures"]:
            known = failures.get(failure["signature"])
            if known is None:
                failures[failure["signature"]] = dict(failure)  # of its first seed
            else:
                known["seeds"] = known["seeds"] + failure["seeds"]
    out["virtualSeconds"] = round(out["virtualSeconds"], 9)
    out["failures"] = sorted((failures[name] for name in sorted(failures)), key=lambda each: -len(each["seeds"]))
    return out


def run(seeds: str = "1-100", *, dask: Union[None, str, int, Any] = None, mesh: Optional[str] = None,
        profile: Optional[str] = None, invariants: Optional[str] = None, buggify: Optional[str] = None, faults: bool = True,
        logs: Optional[str] = None, jobs: Optional[int] = None, task: int = 50) -> Result:
    """What `wavetank swarm --json` says, of processes of this machine or (`dask`: an address, a number of local workers, a
    Client) of a Dask cluster, `task` seeds at a time. WavetankError: the call is wrong, or a worker cannot run the program."""
    first, last = _range(seeds)
    more: List[str] = [] if faults else ["--no-faults"]
    for option, value in (("--mesh", mesh and os.path.abspath(mesh)), ("--profile", profile), ("--invariants", invariants),
                          ("--buggify", buggify), ("--logs", logs and os.path.abspath(logs))):
        if value is not None:
            more += [option, value]
    if dask is None:
        return merge([_part(program(), first, last, more + ([] if jobs is None else ["--jobs", str(jobs)]))])
    client, cluster = _connected(dask)
    try:
        starts = range(first, last + 1, task)
        futures = [client.submit(_part, program(), start, min(start + task - 1, last), [*more, "--jobs", "1"], pure=False,
                                 retries=3) for start in starts]
        return merge(client.gather(futures))
    finally:
        if client is not dask:
            client.close()
        if cluster is not None:
            cluster.close()


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m wavetank.swarm", description="Seeds on a Dask cluster.")
    parser.add_argument("--seeds", default="1-100")
    parser.add_argument("--dask", help="the scheduler's address, or how many workers here")
    for name in ("--mesh", "--profile", "--invariants", "--buggify", "--logs"):
        parser.add_argument(name)
    parser.add_argument("--task", type=int, default=50, help="seeds of a task")
    a = parser.parse_args(arguments)
    dask: Union[None, str, int] = int(a.dask) if a.dask is not None and a.dask.isdigit() else a.dask
    try:
        result = run(a.seeds, dask=dask, mesh=a.mesh, profile=a.profile, invariants=a.invariants, buggify=a.buggify,
                     logs=a.logs, task=a.task)
    except WavetankError as error:
        print(f"wavetank: {error}", file=sys.stderr)
        return 2
    print(json.dumps(result, indent=1))
    return 1 if result["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
