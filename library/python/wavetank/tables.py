"""Rows as tables and pictures, where pandas, pyarrow or Altair are installed."""
import dataclasses
from typing import Any, Dict, List, Sequence


def rows(items: Sequence[Any]) -> List[Dict[str, Any]]:
    return [dataclasses.asdict(item) for item in items]


def frame(items: Sequence[Any]) -> Any:
    """A pandas DataFrame of endpoints, trace events, ...: one row each."""
    import pandas

    return pandas.DataFrame(rows(items))


def arrow(items: Sequence[Any]) -> Any:
    """An Arrow table of the same."""
    import pyarrow

    return pyarrow.Table.from_pylist(rows(items))


def plot(requests: Any) -> Any:
    """An Altair chart of what answered, by version and time."""
    import altair

    values = [{"ms": i * requests.all["bucketMs"], "version": version, "requests": count}
              for i, bucket in enumerate(requests.all["series"]) for version, count in bucket["byVersion"].items()]
    return altair.Chart(altair.Data(values=values)).mark_area().encode(x="ms:Q", y="requests:Q", color="version:N")
