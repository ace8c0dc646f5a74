"""Event schemas from the user's own code: pydantic models, and whatever else pydantic reads."""

from __future__ import annotations

from jobspec.imports import NotImportedError, imported, told


def model_schema(name: str) -> object:
    """Import a model by its `module:Class` and return its JSON Schema.

    This runs the code of that module, which is looked for in the working directory, too. Field
    names are those that events are sent with: their aliases, where they have any.

    Raises `NotImportedError`, also for what has no JSON Schema.
    """
    model = imported(name)
    from pydantic import TypeAdapter  # noqa: PLC0415  slow, and few checks import models

    try:
        schema: object = TypeAdapter(model).json_schema(by_alias=True)
    except Exception as error:  # pydantic has no common class for what it can't read
        raise NotImportedError(f"`{name}` has no JSON Schema: {told(error)}") from error
    return schema
