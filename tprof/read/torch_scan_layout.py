"""Where the scanner of `torch_scan` puts what it finds: one block of memory, in cells of 8 bytes.

Apart from it, so that the layout can be read without numba.
"""

from __future__ import annotations

from typing import Final

import numpy as np

PAD: Final = 32  # zero bytes behind the text: they stop every loop, and may be loaded with it

# ---- a row: numbers, the first ten of one cell, then two of three cells; then one number of a text of each kind

TS, DUR, CORRELATION, EXTERNAL, EXTERNAL_OLD, DEVICE, CONTEXT, STREAM, REGISTERS, SHARED, BYTES, NODE = range(12)
GRID, BLOCK, TEXTS = 12, 15, 18
CATEGORY, NAME, THREAD, SHAPE, EXTRA = range(5)
ROW: Final = TEXTS + 5
NEW_ROW: Final = (int(np.iinfo(np.int64).min), 0, *[-1] * (ROW - 2))  # BAD_TIME, no length, nothing else known

# ---- stretches of text (address of the first byte, and behind the last) of one event, by field; -1 if not given

PHASE, CAT, TITLE, PID, TID, DIMS, TYPES, STRIDES, BACKEND, HASH, FILE, LABEL = range(12)
FIELDS: Final = 12
# Kind of text -> its first stretch, and how many there are.
STRETCHES: Final = ((CAT, 1), (TITLE, 1), (PID, 2), (DIMS, 3), (BACKEND, 3))
LABELLED: Final = (TITLE, PID, TID, LABEL)  # what is kept of a metadata event that names something

ENTRY: Final = 8  # cells of a distinct text: kind, hash, up to three stretches
LABEL_ROW: Final = 8  # cells of a metadata event: four stretches

# ---- capacities: a block of 2 MB has some 9,000 events; one that has more than fits is refused

MOST_ROWS: Final = 1 << 15
MOST_ENTRIES: Final = 1 << 14
SLOTS: Final = 1 << 15  # of the hash table; a power of two
MOST_LABELS: Final = 1 << 12
PHASES: Final = 128

# ---- the memory

# Distinct texts, metadata events; of one event: a text is not plain, a number is given as text, `args` was there.
ENTRY_COUNT, LABEL_COUNT, ODD, LOOSE, SEEN_ARGS = range(5)
SPANS_AT: Final = 8
PHASES_AT: Final = 64  # per letter: events, number of the first
SLOTS_AT: Final = PHASES_AT + 2 * PHASES
ENTRIES_AT: Final = SLOTS_AT + SLOTS
LABELS_AT: Final = ENTRIES_AT + ENTRY * MOST_ENTRIES
ROWS_AT: Final = LABELS_AT + LABEL_ROW * MOST_LABELS
CELLS: Final = ROWS_AT + ROW * MOST_ROWS
