"""May this kernel go online? Seven parts and a verdict about any function that has a `KernelSpec`.

`run.judge` starts a process per kind of work (`worker`): Triton decides at import whether it interprets, and only a
fresh process has a cold start: numbers (`numbers`), compiling (`cost`, twice on one cache) and speed (`speed`).
"""
