"""Which events a step waits for: paths into an event's data, and the values they must have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jobspec_engine.errors import StepError
from jobspec_engine.payload import encode, is_object

if TYPE_CHECKING:
    from jobspec_engine.received import ReceivedEvent

Match = str | Mapping[str, str | float | bool | None] | None

_ROOT = "data."

_MAX_PATHS = 1000  # bytes; waits are found by them, and an index entry has no room for much more


def match_text(step: str, match: Match, event: ReceivedEvent) -> str | None:
    """Return `match` as JSON: paths below `data` and the values that they must have.

    A path alone takes its value from `event`, the run's own. Raises `StepError` for what is no
    path, for a value that is no text, number, boolean or null, and for too many paths.
    """
    if match is None:
        return None
    wanted = {match: _value(step, match, event)} if isinstance(match, str) else match
    pairs = [[_path(step, path), _plain(step, path, value)] for path, value in wanted.items()]
    if len("".join(wanted).encode(errors="replace")) > _MAX_PATHS:
        raise StepError(f"step `{step}` matches paths of more than {_MAX_PATHS:,} bytes in all")
    return encode(pairs, f"the match of step `{step}`", StepError)


def _path(step: str, path: str) -> str:
    if not path.startswith(_ROOT) or not all(path.split(".")) or not _is_readable(path):
        raise StepError(f"step `{step}` matches `{path}`: write the path of a field, `data.id` say")
    return path.removeprefix(_ROOT)


def _is_readable(path: str) -> bool:
    """Tell whether the database can look for a path."""
    return not any(char == "\0" or "\ud800" <= char <= "\udfff" for char in path)


def _value(step: str, path: str, event: ReceivedEvent) -> Any:
    value = event.data
    for field in _path(step, path).split("."):
        if not is_object(value) or field not in value:
            raise StepError(
                f"step `{step}` matches `{path}`, which the run's own event does not have"
            )
        value = value[field]
    return value


def _plain(step: str, path: str, value: object) -> object:
    if isinstance(value, str):
        halves = value.encode("utf-16-le", "surrogatepass")
        whole = halves.decode("utf-16-le", "replace")
        return whole.replace("\0", "\N{REPLACEMENT CHARACTER}")
    if value is None or isinstance(value, bool | int | float):
        return value
    raise StepError(
        f"step `{step}` matches `{path}` with a value that is no text, number or boolean"
    )
