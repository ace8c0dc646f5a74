"""Expected texts in files. `JOBSPEC_UPDATE_GOLDEN=1 pytest` writes what is there now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def agrees(text: str, file: Path) -> bool:
    """Tell whether a text is what a file expects."""
    if os.environ.get("JOBSPEC_UPDATE_GOLDEN"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8"), f"{file.name} expects something else"
    return True
