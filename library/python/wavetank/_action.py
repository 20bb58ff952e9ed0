"""What all actions have in common."""
import dataclasses
from typing import Any, ClassVar, Dict, Mapping


@dataclasses.dataclass(frozen=True)
class Action:
    _kind: ClassVar[str] = ""
    _names: ClassVar[Mapping[str, str]] = {}

    def value(self) -> Dict[str, Any]:
        """As a scenario has it under `do`: {"scale": {...}}."""
        fields = {self._names[f.name]: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {self._kind: {name: value for name, value in fields.items() if value is not None}}
