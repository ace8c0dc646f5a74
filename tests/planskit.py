"""What a statement reads: pages, each of which holds many rows, and tables from end to end."""

from __future__ import annotations

import psycopg

from jobspec_engine.calls import numbered
from jobspec_engine.database import set_up_session

# Pages that a statement may look at beside those of its rows, and for each row: the paths through
# the indexes of all that it reads and writes.
FEW, OF_A_ROW = 80, 60

# Pages that a claim looks at for each lane, one job at one priority: two or three probes.
OF_A_LANE = 9

EXPLAIN = b"explain (analyze, buffers, format json) "


def pages(connection, call):
    """Execute a statement and return how many pages it looked at."""
    return looked_at(plan(connection, call))


def plan(connection, call):
    """Execute a statement and return its plan, made for its parameters."""
    return connection.execute(EXPLAIN + call.query, call.params).fetchone()[0][0]["Plan"]


def kept_plan(connection, call):
    """Execute a statement as a prepared one and return its plan."""
    prepare(connection, "kept", call)
    found = execute(connection, EXPLAIN, "kept", call)[0][0]["Plan"]
    connection.execute("deallocate kept")
    return found


class Kept:
    """Statements as a worker's connection has them: prepared, their plans made at the first use."""

    def __init__(self, connection):
        set_up_session(connection)
        self._connection = connection

    def prepare(self, name, call):
        """Prepare a statement under a name, and have its plan made."""
        prepare(self._connection, name, call)
        execute(self._connection, b"", name, call)

    def pages(self, name, call):
        """Execute a statement that was prepared; return how many pages it looked at."""
        return looked_at(execute(self._connection, EXPLAIN, name, call)[0][0]["Plan"])


def prepare(connection, name, call):
    """Prepare a statement under a name."""
    query, _ = numbered(call.query)
    connection.execute(f"prepare {name} as ".encode() + query)


def execute(connection, before, name, call):
    """Execute a statement that was prepared, with some words before it."""
    _, names = numbered(call.query)
    values = ", ".join("%s" for _ in names)
    query = before + f"execute {name} ({values})".encode()
    given = [call.params[name] for name in names]
    params = [list(one) if isinstance(one, list) else one for one in given]
    with psycopg.ClientCursor(connection) as cursor:  # its lists are text, and ours are binary
        return cursor.execute(query, params).fetchone()


def looked_at(plan):
    """Return how many pages a statement with this plan looked at."""
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def read_whole(plan):
    """Return the tables that a statement with this plan read from end to end."""
    whole = plan["Node Type"] == "Seq Scan" and plan["Actual Loops"]
    own = {plan["Relation Name"]} if whole else set()
    return own.union(*map(read_whole, plan.get("Plans", ())))
