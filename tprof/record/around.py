"""The usual wrap of a foreign method: the call is a cold span, described before it and reported on after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tprof.record import session as live
from tprof.record.spans import Cold

Method = Callable[..., Any]


def around(
    kind: str, describe: Method, report: Method | None = None, *, hook: str = "", unless: Method | None = None
) -> Callable[[Method], Method]:
    """A wrap for `patches.wrap`; while nothing is recorded, the call passes through.

    Args:
        kind: of the span: one of `spans.PHASES`.
        describe: of (session, the call's arguments): name and attributes of the span.
        report: of (cold span, result, the call's arguments): attributes of its end.
        hook: what is switched off should one of these fail; the kind, if not given.
        unless: of the call's arguments: whether there is nothing cold in it.
    """

    def wrap(original: Method) -> Method:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            session = live.active
            if session is None or (unless is not None and unless(*args, **kwargs)):
                return original(*args, **kwargs)
            with Cold(session, hook or kind, kind, lambda: describe(session, *args, **kwargs)) as cold:
                result = original(*args, **kwargs)
                if report is not None:
                    cold.report(lambda: report(cold, result, *args, **kwargs))
            return result

        return recorded

    return wrap
