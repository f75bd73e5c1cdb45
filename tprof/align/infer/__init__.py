"""Why device work ran, and what was cold, deduced from a trace without a recorder's own rows. All of it is `inferred`.

Rules and their measured confusions: docs/inference.md. Load evidence is required: a name, a first use or a long
duration alone makes nothing cold.
"""

from tprof.align.infer.run import Inference, infer

__all__ = ["Inference", "infer"]
