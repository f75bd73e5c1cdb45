"""How many blocks of a kernel fit on a streaming multiprocessor at once, and what limits them.

The limits are those of the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; registers are
given to whole warps in units of 256, and warps in fours, as NVIDIA's occupancy calculator counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_REGISTERS: Final = 65_536  # 32-bit registers of a multiprocessor, of every capability below
_WARP: Final = 32
_REGISTER_UNIT: Final = 256  # registers are handed out to a warp in these
_WARP_UNIT: Final = 4  # and to as many warps at a time, one for each part of the multiprocessor
_KIB: Final = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What one multiprocessor holds.

    Attributes:
        threads: resident threads.
        blocks: resident blocks.
        shared_bytes: shared memory for all blocks.
        reserved_bytes: shared memory that the system takes of it for each block.
    """

    threads: int
    blocks: int
    shared_bytes: int
    reserved_bytes: int = _KIB


LIMITS: Final[dict[tuple[int, int], Limits]] = {
    (7, 0): Limits(2048, 32, 96 * _KIB, 0),
    (7, 2): Limits(2048, 32, 96 * _KIB, 0),
    (7, 5): Limits(1024, 16, 64 * _KIB, 0),
    (8, 0): Limits(2048, 32, 164 * _KIB),
    (8, 6): Limits(1536, 16, 100 * _KIB),
    (8, 7): Limits(1536, 16, 164 * _KIB),
    (8, 9): Limits(1536, 24, 100 * _KIB),
    (9, 0): Limits(2048, 32, 228 * _KIB),
    (10, 0): Limits(2048, 32, 228 * _KIB),
    (10, 3): Limits(2048, 32, 228 * _KIB),
    (12, 0): Limits(1536, 24, 100 * _KIB),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Blocks that a multiprocessor holds of one kernel, and which of its limits that is."""

    blocks: int
    limited_by: str
    share: float  # of the warps that it could hold


def occupancy(
    capability: tuple[int, int], threads: int, registers: int | None, shared_bytes: int | None
) -> Occupancy | None:
    """Occupancy of a kernel; None where the capability is not in the table, or the block has no threads.

    Args:
        capability: (major, minor) of the device.
        threads: of a block.
        registers: of a thread; None leaves them out of account.
        shared_bytes: of a block; None leaves it out of account.
    """
    limits = LIMITS.get(capability)
    if limits is None or threads <= 0:
        return None
    warps = -(-threads // _WARP)
    fits = {"threads": limits.threads // (warps * _WARP), "blocks": limits.blocks}
    if registers:
        of_warp = -(-registers * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
        fits["registers"] = _REGISTERS // of_warp // _WARP_UNIT * _WARP_UNIT // warps
    if shared_bytes and (taken := shared_bytes + limits.reserved_bytes):
        fits["shared memory"] = limits.shared_bytes // taken
    least = min(fits.values())
    limited_by = " and ".join(what for what, blocks in fits.items() if blocks == least)
    return Occupancy(least, limited_by, least * warps * _WARP / limits.threads)


def waves(blocks: int, per_multiprocessor: int, multiprocessors: int) -> float | None:
    """How often the device must be filled to run a grid; a fraction is a last wave that leaves some idle."""
    room = per_multiprocessor * multiprocessors
    return blocks / room if room else None
