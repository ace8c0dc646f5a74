"""What a statement reads: pages, each of which holds many rows, and tables from end to end."""

from __future__ import annotations

import psycopg

# Pages that a statement may look at beside those of its rows, and for each row: the paths through
# the indexes of all that it reads and writes.
FEW, OF_A_ROW = 80, 60


def pages(connection, call):
    """Execute a statement and return how many pages it looked at."""
    return looked_at(plan(connection, call))


def pages_as_kept(connection, call):
    """Execute a statement as a prepared one, and return how many pages it looked at."""
    return looked_at(kept_plan(connection, call))


def plan(connection, call):
    """Execute a statement and return its plan, made for its parameters."""
    query = b"explain (analyze, buffers, format json) " + call.query
    return connection.execute(query, call.params).fetchone()[0][0]["Plan"]


def kept_plan(connection, call):
    """Execute a statement as a prepared one and return its plan."""
    names = list(call.params)
    numbered = call.query
    for number, name in enumerate(names, start=1):
        numbered = numbered.replace(f"%({name})s".encode(), f"${number}".encode())
    values = ", ".join("%s" for _ in names).encode()
    connection.execute(b"prepare kept as " + numbered)
    query = b"explain (analyze, buffers, format json) execute kept (" + values + b")"
    with psycopg.ClientCursor(connection) as cursor:
        found = cursor.execute(query, list(call.params.values())).fetchone()[0][0]["Plan"]
    connection.execute("deallocate kept")
    return found


def looked_at(plan):
    """Return how many pages a statement with this plan looked at."""
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


def read_whole(plan):
    """Return the tables that a plan reads from end to end."""
    own = {plan["Relation Name"]} if plan["Node Type"] == "Seq Scan" else set()
    return own.union(*map(read_whole, plan.get("Plans", ())))
