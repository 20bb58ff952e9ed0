"""Rows as tables and pictures, where pandas, pyarrow or Altair are installed."""
import dataclasses
import importlib
from typing import Any, Dict, Iterable, List

from wavetank._program import WavetankError


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise WavetankError(f"{name} is not installed: pip install {name}") from None


def rows(items: Iterable[Any]) -> List[Dict[str, Any]]:
    return [dataclasses.asdict(item) for item in items]


def frame(items: Iterable[Any]) -> Any:
    """A pandas DataFrame of endpoints, trace events, ...: one row each."""
    return _library("pandas").DataFrame(rows(items))


def arrow(items: Iterable[Any]) -> Any:
    """An Arrow table of the same."""
    return _library("pyarrow").Table.from_pylist(rows(items))


def plot(of: Any) -> Any:
    """An Altair chart: of requests, what answered by version and time; of a settled world, convergence by proxy and stage."""
    settled, requests = hasattr(of, "proxies"), hasattr(of, "all")
    if not settled and not requests:
        raise WavetankError(f"plot() draws requests and what settle() answers, no {type(of).__name__}; frame() and arrow() make tables of rows")
    altair = _library("altair")
    if settled:
        values = [{"proxy": p.proxy, "stage": stage, "ms": ms} for p in of.proxies for stage, ms in p.stages_ms.items()]
        return altair.Chart(altair.Data(values=values)).mark_bar().encode(
            x="sum(ms):Q", y=altair.Y("proxy:N", sort="-x"), color="stage:N")
    values = [{"ms": i * of.all["bucketMs"], "version": version, "requests": count}
              for i, bucket in enumerate(of.all["series"]) for version, count in bucket["byVersion"].items()]
    return altair.Chart(altair.Data(values=values)).mark_area().encode(x="ms:Q", y="requests:Q", color="version:N")
