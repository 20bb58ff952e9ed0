"""An event log as it lies there: what happened, and what followed from it, read piece by piece."""
import pathlib
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Union

from wavetank._program import Process, WavetankError
from wavetank.tables import _library
from wavetank.world import TraceEvent

PIECE = 20_000  # rows that are in memory at once


@dataclass
class Input:
    """Something that changed the world from outside; `number` is how events name it."""

    number: int
    at_ns: int
    kind: str
    body: Dict[str, Any]


class Log:
    """Nothing of it runs, and no more of it is in memory than what is looked at."""

    def __init__(self, path: Union[str, pathlib.Path]):
        self.path = str(path)
        with _Reading(self.path) as reading:
            header = reading.header
        self.seed: int = header["seed"]
        self.profile: str = header["profile"]
        self.scenario: str = header["scenario"]
        self.version: str = header["version"]
        self.recording: bool = header["recording"]  # of real clusters: it holds inputs alone
        self.beginning_ns: int = header["beginningNs"]

    def inputs(self, kind: str = "") -> Iterator[Input]:
        """In order; of one kind ("apply", "patch", "link", ...), or all."""
        for piece in self._pieces("inputs", kind, ""):
            for row in piece["inputs"]:
                yield Input(row["number"], row["atNs"], row["kind"], row["body"])

    def events(self, kind: str = "", subject: str = "") -> Iterator[TraceEvent]:
        """In order; of one kind ("XdsSent", ...), of one subject, or all."""
        for piece in self._pieces("events", kind, subject):
            for row in piece["events"]:
                yield TraceEvent.of(row)

    def tables(self, kind: str = "", subject: str = "") -> Iterator[Any]:
        """The same events as Arrow tables, a piece each."""
        pyarrow = _library("pyarrow")
        for piece in self._pieces("events", kind, subject):
            if piece["events"]:
                yield pyarrow.Table.from_pylist(piece["events"])

    def _pieces(self, only: str, kind: str, subject: str) -> Iterator[Dict[str, Any]]:
        with _Reading(self.path) as reading:
            end = False
            while not end:
                piece = reading.process.ask("read", only=only, kind=kind, subject=subject, limit=PIECE)
                end = piece["end"]
                yield piece


class _Reading:
    """A process that reads the log, for as long as somebody looks at it."""

    def __init__(self, path: str):
        self.process = Process.start()
        try:
            self.header = self.process.ask("read", path=path)["header"]
        except WavetankError:
            self.process.close()
            raise

    def __enter__(self) -> "_Reading":
        return self

    def __exit__(self, *_: Any) -> None:
        self.process.close()
