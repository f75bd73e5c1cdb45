"""Nodes of CUDA graphs in an Nsight export: when and on which thread each was made, and of which it is a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof import model
from tprof.read import nsight_schema as ns
from tprof.read.nsight_rows import numbers

if TYPE_CHECKING:
    from tprof.read.nsight_rows import Reading


def nodes(reading: Reading, threads: np.ndarray) -> pa.Table:
    """The table `graph_nodes`.

    Args:
        reading: the export.
        threads: globalTid of each row of the table `threads`, sorted; nodes made on others are left out.
    """
    data = pa.concat_tables([reading.db.fetch(table, ns.KNOWN[table]) for table in ns.GRAPHS])
    gtid, node = numbers(data, "globalTid", model.NULL), pc.coalesce(data["graphNodeId"], data["graphId"])
    thread = np.searchsorted(threads, gtid)
    known = (np.append(threads, model.NULL)[thread] == gtid) & (gtid != model.NULL)
    columns = {
        "start_ns": data["start"],
        "thread": thread.astype(np.int32),
        "node": node,
        "original": pc.coalesce(data["originalGraphNodeId"], data["originalGraphId"]),
    }
    whole = pc.and_(pa.array(known), pc.and_(pc.is_valid(data["start"]), pc.is_valid(node)))
    return model.table("graph_nodes", columns, len(data)).filter(whole)
