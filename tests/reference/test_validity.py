"""Every expression that the reference was asked to register: the same verdict."""

from __future__ import annotations

from jobspec.cel import check_expression
from vectors import rows


def disagreements(recorded):
    """The rows where `check_expression` and the reference differ, as a person reads them."""
    for row in recorded:
        found = check_expression(row["expr"])
        if (not found) is not row["valid"]:
            ours = found[0].message if found else "accepted"
            yield f"{row['expr']!r}: we say {ours!r}, the reference {row['message'] or 'valid'!r}"


def test_an_expression_is_accepted_exactly_where_the_reference_accepts_it():
    recorded = rows("validity")
    assert len(recorded) == 1652
    assert list(disagreements(recorded)) == []
