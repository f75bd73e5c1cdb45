"""JSON and memory for `torch_scan`, as machine code: numba compiles what is marked, with the code that calls it.

Positions are addresses, since numba counts and checks an array at every call. A text ends in `PAD` zero bytes, which
are no JSON: they stop every loop, so that none looks for the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from llvmlite import ir
from numba import extending, njit, types

if TYPE_CHECKING:
    from collections.abc import Callable

    F = Callable[..., Any]

BAD: Final = -1
DIGITS: Final = 18  # that surely fit an int64
MASKS: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64).view(np.int64)  # the first n bytes of a word
_DEPTH: Final = 60  # of nested values: a bit of an integer says of each whether it is an object

_MOST_US: Final = 9_200_000_000_000_000  # whose ns fit an int64
_EXACT: Final = 28  # characters of a number that `torch_numbers` reads exactly, whatever they are

compiled: F = njit(nogil=True)
_intrinsic: F = extending.intrinsic

# ---- memory


def _pointer(builder: Any, address: Any, kind: Any) -> Any:
    return builder.inttoptr(address, kind.as_pointer())


@_intrinsic
def byte(_: Any, p: Any) -> Any:
    """A byte, as an integer."""

    def generate(__: Any, builder: Any, ___: Any, args: Any) -> Any:
        return builder.zext(builder.load(_pointer(builder, args[0], ir.IntType(8))), ir.IntType(64))

    return types.int64(p), generate


@_intrinsic
def word(_: Any, p: Any) -> Any:
    """8 bytes, aligned or not; of a text, the first is the lowest."""

    def generate(__: Any, builder: Any, ___: Any, args: Any) -> Any:
        return builder.load(_pointer(builder, args[0], ir.IntType(64)), align=1)

    return types.int64(p), generate


@_intrinsic
def _store(_: Any, p: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        whole = context.cast(builder, args[1], signature.args[1], types.int64)
        builder.store(whole, _pointer(builder, args[0], ir.IntType(64)), align=8)
        return context.get_dummy_value()

    return types.void(p, value), generate


def _first_of(test: F) -> F:
    """Intrinsic: how many of the 16 bytes at an address come before the first that passes a test; 16: none does."""

    def generate(_: Any, builder: Any, __: Any, args: Any) -> Any:
        vector, wide = ir.VectorType(ir.IntType(8), 16), ir.IntType(64)
        loaded = builder.load(_pointer(builder, args[0], vector), align=1)

        def compare(how: Any, sign: str, byte: int) -> Any:
            return how(sign, loaded, vector([byte] * 16))

        hits = builder.zext(builder.bitcast(test(builder, compare), ir.IntType(16)), wide)
        return builder.cttz(builder.or_(hits, wide(1 << 16)), ir.IntType(1)(1))

    def typed(_: Any, p: Any) -> Any:
        return types.int64(p), generate

    return _intrinsic(typed)


def _no_space(builder: Any, compare: F) -> Any:
    space, line, end, tab = (compare(builder.icmp_signed, "==", ord(byte)) for byte in " \n\r\t")
    return builder.not_(builder.or_(builder.or_(space, line), builder.or_(end, tab)))


def _in_text(builder: Any, compare: F, below: Any) -> Any:
    quote, escape = (compare(builder.icmp_signed, "==", ord(byte)) for byte in '"\\')
    return builder.or_(builder.or_(quote, escape), compare(below, "<", 32))


_solid: F = _first_of(_no_space)
special: F = _first_of(lambda builder, compare: _in_text(builder, compare, builder.icmp_unsigned))
_not_plain: F = _first_of(
    lambda builder, compare: _in_text(builder, compare, builder.icmp_signed)
)  # above 127 is below 0


@compiled
def cell(base: int, n: int) -> int:
    """Cell of 8 bytes."""
    return word(base + 8 * n)


@compiled
def put(base: int, n: int, content: int) -> None:
    """Fill a cell."""
    _store(base + 8 * n, content)


# ---- JSON: every function takes a position and returns the one behind what it read, or BAD


@compiled
def space(p: int) -> int:
    """White space, if there is any."""
    while byte(p) <= 32:
        step = _solid(p)
        p += step
        if step < 16:
            break
    return p


@compiled
def _is_hex(c: int) -> bool:
    return 48 <= c <= 57 or 97 <= c | 32 <= 102


@compiled
def _escape(p: int) -> int:
    """An escape from its backslash on; halves of surrogate pairs are left to the decoder."""
    c = byte(p + 1)
    if c != 117:  # u
        return p + 2 if c in (34, 47, 92, 98, 102, 110, 114, 116) else BAD
    for n in range(2, 6):
        if not _is_hex(byte(p + n)):
            return BAD
    half = byte(p + 2) | 32 == 100 and byte(p + 3) | 32 > 55  # D8 to DF
    return BAD if half else p + 6


@compiled
def string(p: int) -> int:
    """A string from behind its opening quote on; bytes above 127 may be anything, as for the decoder."""
    while True:
        step = special(p)
        p += step
        if step < 16:
            c = byte(p)
            if c == 34:
                return p + 1
            p = _escape(p) if c == 92 else BAD
            if p < 0:
                return BAD


@compiled
def plain(p: int) -> int:
    """A string of ASCII without escapes, from behind its opening quote on."""
    while True:
        step = _not_plain(p)
        p += step
        if step < 16:
            return p + 1 if byte(p) == 34 else BAD


@compiled
def _digits(p: int) -> int:
    while 48 <= byte(p) <= 57:
        p += 1
    return p


@compiled
def _whole(p: int) -> int:
    """Digits as JSON wants them: at least one, no leading zero."""
    end = _digits(p)
    return BAD if end == p or (byte(p) == 48 and end > p + 1) else end


@compiled
def _number(p: int) -> int:
    p = _whole(p + (byte(p) == 45))
    if p < 0:
        return BAD
    if byte(p) == 46:
        begin = p + 1
        p = _digits(begin)
        if p == begin:
            return BAD
    if byte(p) | 32 == 101:
        begin = p + 1 + (byte(p + 1) in (43, 45))
        p = _digits(begin)
        if p == begin:
            return BAD
    return p


@compiled
def _literal(p: int) -> int:
    found = word(p)
    if found & 0xFFFFFFFF == 0x65757274 or found & 0xFFFFFFFF == 0x6C6C756E:  # true, null
        return p + 4
    return p + 5 if found & 0xFFFFFFFFFF == 0x65736C6166 else BAD  # false


@compiled
def _scalar(p: int) -> int:
    c = byte(p)
    if c == 34:
        return string(p + 1)
    return _number(p) if c == 45 or 48 <= c <= 57 else _literal(p)


@compiled
def colon(p: int) -> int:
    """From behind a key to its value."""
    p = space(p)
    return space(p + 1) if byte(p) == 58 else BAD


@compiled
def _key(p: int) -> int:
    """A key and its colon."""
    p = string(p + 1) if byte(p) == 34 else BAD
    return colon(p) if p > 0 else BAD


@compiled
def _open(p: int, objects: int) -> int:
    """From behind an opening bracket up to the first value, or to the closing one."""
    p = space(p)
    c = byte(p)
    return _key(p) if objects & 1 and c != 125 else p


@compiled
def _next(p: int, objects: int, depth: int) -> tuple[int, int, int]:
    """From behind a value: past the brackets that close there, and up to the next value."""
    while True:
        p = space(p)
        c = byte(p)
        if c == 44:
            p = space(p + 1)
            return _key(p) if objects & 1 else p, objects, depth
        if c != (125 if objects & 1 else 93):
            return BAD, objects, depth
        objects, depth, p = objects >> 1, depth - 1, p + 1
        if depth == 0:
            return p, objects, depth


@compiled
def skip(p: int) -> int:
    """Any value."""
    objects = depth = 0
    while True:
        c = byte(p)
        if c in (91, 123):
            if depth == _DEPTH:
                return BAD
            objects, depth = objects << 1 | (c == 123), depth + 1
            p = _open(p + 1, objects)
            if p < 0:
                return BAD
            if byte(p) != c + 2:
                continue
        else:
            p = _scalar(p)
            if p < 0 or depth == 0:
                return p
        p, objects, depth = _next(p, objects, depth)
        if p < 0 or depth == 0:
            return p


# ---- numbers: (position behind, number)


@compiled
def _count(p: int, so_far: int) -> tuple[int, int]:
    """Digits of a number, after others."""
    while 48 <= byte(p) <= 57:
        so_far = so_far * 10 + byte(p) - 48
        p += 1
    return p, so_far


@compiled
def integer(p: int) -> tuple[int, int]:
    """An integer of up to 64 bits; one that needs the last bit without a sign keeps its bit pattern."""
    negative = byte(p) == 45
    begin = p + negative
    p, found = _count(begin, 0)
    digits = p - begin
    if digits == 0 or (byte(begin) == 48 and digits > 1):
        return BAD, 0
    if digits > DIGITS:
        fits = digits == DIGITS + 1 or (digits == DIGITS + 2 and byte(begin) == 49 and found < 0)
        if negative or not fits:  # 20 digits of which the first is 1 look negative if they are below 2**64
            return BAD, 0
    return p, -found if negative else found


@compiled
def nanoseconds(p: int) -> tuple[int, int]:
    """Microseconds to ns; what is finer is cut, towards minus infinity."""
    negative = byte(p) == 45
    begin = p + negative
    p, found = _count(begin, 0)
    if p == begin or (byte(begin) == 48 and p > begin + 1) or p - begin > DIGITS or found > _MOST_US:
        return BAD, 0
    dot = p
    if byte(p) == 46:
        p = _digits(dot + 1)
        if p == dot + 1 or p - begin > _EXACT:
            return BAD, 0
    finer = 0
    for at in range(dot + 1, max(p, dot + 4)):
        digit = byte(at) - 48 if at < p else 0
        if at <= dot + 3:
            found = found * 10 + digit
        else:
            finer |= digit
    return p, -found - (finer != 0) if negative else found
