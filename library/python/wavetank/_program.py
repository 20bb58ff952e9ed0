"""The program, and a world's process as its user sees it: a line of JSON there, a line back (docs/library.md)."""
import array
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
from typing import Any, Dict, Optional


class WavetankError(Exception):
    """Something could not be done; says the place and the remedy."""


def program() -> str:
    """$WAVETANK_PROGRAM, the one that came with this package, or that of $PATH."""
    named = os.environ.get("WAVETANK_PROGRAM")
    if named:
        return named
    own = pathlib.Path(__file__).with_name("bin") / "wavetank"
    found = str(own) if own.exists() else shutil.which("wavetank")
    if found is None:
        raise WavetankError("the program wavetank is not installed; name it in WAVETANK_PROGRAM")
    return found


def file_name(test: str) -> str:
    """A test's own name for files and for a shell: "stories/a.scenario.yaml" and "stories/b.scenario.yaml" are two."""
    return re.sub(r"[^\w.-]+", "_", test)[-150:]


def main() -> None:
    os.execv(program(), [program()] + sys.argv[1:])


ENDED = "the world's process has ended, or the world was closed; open another"


def complaint(said: str, code: int) -> WavetankError:
    """Of what the program said on standard error before it ended."""
    return WavetankError(said.strip().removeprefix("wavetank: ") or f"wavetank ended with code {code}")


class Process:
    def __init__(self, channel: socket.socket, child: Optional[subprocess.Popen] = None):
        self._channel, self._child, self._text = channel, child, b""
        self.now_ns = 0

    @classmethod
    def start(cls) -> "Process":
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                child = subprocess.Popen([program(), "session", "--fd", str(theirs.fileno())], pass_fds=[theirs.fileno()],
                                         stdin=subprocess.DEVNULL)
            except OSError as error:
                ours.close()
                raise WavetankError(f"{program()}: {error.strerror}; name the program in WAVETANK_PROGRAM") from None
        return cls(ours, child)

    def close(self) -> None:
        self._channel.close()
        if self._child is not None:
            self._child.wait()
            self._child = None

    def _line(self) -> Dict[str, Any]:
        while b"\n" not in self._text:
            try:
                more = self._channel.recv(1 << 16)  # other threads run meanwhile
            except OSError:
                more = b""
            if not more:
                raise WavetankError("the world's process has ended; what it said last is on standard error")
            self._text += more
        line, _, self._text = self._text.partition(b"\n")
        answer = json.loads(line)
        self.now_ns = answer.get("nowNs", self.now_ns)
        if "error" in answer:
            raise WavetankError(answer["error"])
        return answer

    def ask(self, op: str, **fields: Any) -> Dict[str, Any]:
        try:
            self._channel.sendall(json.dumps({"op": op, **fields}).encode() + b"\n")
        except OSError:
            raise WavetankError(ENDED) from None
        return self._line()

    def fork(self) -> "Process":
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._channel.sendmsg([b'{"op": "fork"}\n'],
                                      [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
            except OSError:
                ours.close()
                raise WavetankError(ENDED) from None
            self._line()
        copy = Process(ours)
        copy._line()
        return copy
