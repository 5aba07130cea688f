"""Rounds of damaged input through every C function, in a process under sanitizers.

``python -m tests.sanitize.drive MODULES PROGRESS FIRST SECONDS ROUNDS``, started by
tools/sanitize.py. Every buffer is a separate allocation of exactly its size (``array`` with
PYTHONMALLOC=malloc), so that any access beyond its end is found. Where both accept the input, C
must return what its Python twin returns.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import time
from array import array
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from skylog.kernel.native import MODULES
from tests.sanitize.inputs import TIMES, Inputs, drawn_bytes


def load(folder: Path) -> None:
    """Put the instrumented modules where kernel/native.py finds them first."""
    for name in MODULES.values():
        path = str(folder / f"{name.rpartition('.')[2]}.abi3.so")
        loader = importlib.machinery.ExtensionFileLoader(name, path)
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        sys.modules[name] = module


def exact(data: Any) -> array[int]:
    return array("B", bytes(data))[:]  # a slice has no spare capacity


def said(call: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
    """What it returns, or its error."""
    try:
        return call(*arguments, **more)
    except (ValueError, OverflowError) as error:
        return type(error), str(error)


def same(what: str, ours: Any, theirs: Any) -> None:
    if ours != theirs:
        raise AssertionError(f"{what}: C returns {ours}, Python {theirs}")


class Walks:
    """walker.c"""

    def __init__(self) -> None:
        from skylog.wire import walker, walker_reference

        assert walker.NATIVE is not None
        self._native, self._python = walker.NATIVE, walker_reference

    def __call__(self, rng: Random, inputs: Inputs) -> None:
        native, python = self._native, self._python
        body, count = inputs.body(rng), rng.choice((-1, 0, 1, 2, 5, 20, 2**31 - 1))
        base, target = rng.choice(TIMES), rng.choice(TIMES)
        within = sorted((rng.choice(TIMES), rng.choice(TIMES)))
        for dense in (True, False):
            walked = python.walk_python(body, count, base, *within, dense=dense)
            same("walk", native.walk(exact(body), count, base, *within, dense=dense), walked)
        ours = said(native.locate, exact(body), count, base)
        same("locate", ours, said(python.locate_python, body, count, base))
        ours = said(native.find_timestamp, exact(body), count, base, target, 1)
        same("time", ours, said(python.find_timestamp_python, body, count, base, target, 1))
        rules: Any = {"keyed": rng.random() < 0.5, "faults_max": rng.choice((1, 2, 100))}
        ours = native.find_faults(exact(body), count, base, (within[0], within[1]), **rules)
        theirs = python.find_faults_python(body, count, base, (within[0], within[1]), **rules)
        same("faults", ours, theirs)
        batch = inputs.batch(rng)
        limits: Any = (rng.choice((0, 100, 1 << 20)), *within)
        ours = native.is_plain(exact(batch), *limits, keyed=rules["keyed"])
        same("plain", ours, python.is_plain_python(batch, *limits, keyed=rules["keyed"]))


class Compactions:
    """compact.c: its functions directly, because the map's buffers have spare capacity."""

    def __init__(self) -> None:
        from skylog.log import offset_map

        assert offset_map.NATIVE is not None
        self._library, self._structs = offset_map.NATIVE, offset_map

    def __call__(self, rng: Random, inputs: Inputs) -> None:
        structs, library = self._structs, self._library
        slots = rng.choice((2, 3, 50))
        state = exact(structs._MAP.pack(0, slots, 0, slots - 1, rng.getrandbits(64), 7))
        table = exact(bytes(slots * structs.SLOT_BYTES))
        log = b"".join(inputs.batch(rng) for _ in range(rng.randrange(5)))
        log = log[: len(log) - rng.choice((0, 0, 1, 2, 62))]  # a read may end within a batch
        start = rng.choice((0, 5, 2**40, -(2**63)))
        library.note_batches(state, table, exact(log), start)
        library.note(state, table, exact(inputs.body(rng)), rng.choice((1, 3, 20)), start, 0)
        rule = exact(structs._RULE.pack(*(rng.choice(TIMES) for _ in range(3))))
        marks, out = exact(bytes(len(log))), exact(bytes(3 * len(log)))
        rows = exact(bytes(len(log) // 61 * structs._ROW.size))
        listed = array("q", sorted(rng.choice(TIMES) for _ in range(rng.randrange(3))))
        library.filter_batches(state, table, rule, listed, exact(log), marks, out, rows)
        body = inputs.body(rng)
        times = [rng.choice(TIMES) for _ in range(3)]
        facts = exact(structs._FACTS.pack(*times, rng.choice((1, 5, 20)), rng.random() < 0.3))
        marks, out = exact(bytes(len(body))), exact(bytes(3 * len(body)))
        library.filter(state, table, rule, facts, exact(body), marks, out)


class Columns:
    """columns.c, with buffers of exactly the size that it needs."""

    def __init__(self) -> None:
        import pyarrow as pa

        from skylog.bulk import columns, columns_reference
        from skylog.bulk.schema import COLUMNS

        assert columns.NATIVE is not None
        columns._room = lambda size: pa.py_buffer(exact(bytes(size)))
        columns._cut = lambda buffer, size: buffer.slice(0, size)
        self._names = COLUMNS
        self._native, self._python = columns.NATIVE, columns_reference

    def __call__(self, rng: Random, inputs: Inputs) -> None:
        python = self._python
        names = {name for name in self._names if rng.random() < 0.7}
        within = python.Within(rng.choice((0, 3)), rng.choice((5, 2**62)), -(2**63), 2**63 - 1)
        given = []
        for _ in range(rng.randrange(4)):
            count = rng.choice((-1, 0, 1, 2, 5, 20))
            facts: Any = (rng.choice((0, 2**63 - 2)), rng.choice(TIMES), rng.choice(TIMES), count)
            last, appended = rng.choice((0, 4, 19, 2**31 - 1)), rng.random() < 0.3
            given.append((inputs.body(rng), *facts, last, appended))
        ours = [python.RecordsOfBatch(exact(one[0]), *one[1:]) for one in given]
        theirs = [python.RecordsOfBatch(*one) for one in given]
        found = said(self._native.build_columns, ours, within, names)
        same("columns", found, said(python.build_columns_python, theirs, within, names))


class Rows:
    """rows.c; columns are copied into buffers of exactly their size."""

    def __init__(self) -> None:
        import numpy as np
        import pyarrow as pa

        from skylog.bulk import rows, rows_reference

        assert rows.NATIVE is not None
        self._numpy, self._arrow = np, pa
        self._rows, self._python = rows, rows_reference

    def __call__(self, rng: Random, inputs: Inputs) -> None:
        np, python = self._numpy, self._python
        count = rng.randrange(1, 20)
        given = python.Rows(
            self._column([drawn_bytes(rng) for _ in range(count)]),
            self._column([drawn_bytes(rng) for _ in range(count)]),
            self._headers(rng, count),
            np.array([rng.choice(TIMES) + rng.choice((0, 0, 1, -1)) for _ in range(count)], object)
            .clip(-(2**63), 2**63 - 1)
            .astype(np.int64),
        )
        native = self._rows.NativeRows(self._rows.NATIVE, given)
        twin = python.PythonRows(given)
        topic_of = np.array([rng.randrange(2) for _ in range(count)], np.int32)
        size = rng.choice((1, 100, 5000))
        for each in (native, twin):
            states = [python.TopicState(3, 1), python.TopicState(7, 6, 50)]
            answer = each.partition(topic_of, states, None, size)
            said_of_all = (answer[0], answer[1].tolist(), states)
            if each is native:
                ours = said_of_all
        same("partitions", ours, said_of_all)
        order = np.array(rng.sample(range(count), count), np.int64)
        at = 0
        while at < count:
            room = exact(bytes(size))
            self._rows.NATIVE.write(native._rows, order, room, at, count, size)
            wrote = native.write(order, at, count, size)
            same("records", wrote, twin.write(order, at, count, size))
            at = wrote.next

    def _column(self, values: list[bytes | None]) -> Any:
        return self._copied(self._arrow.array(values, self._arrow.binary()))

    def _headers(self, rng: Random, count: int) -> Any:
        pa = self._arrow
        kind = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
        values = [
            None
            if rng.random() < 0.3
            else [{"key": b"k", "value": drawn_bytes(rng)} for _ in range(rng.randrange(3))]
            for _ in range(count)
        ]
        return self._copied(pa.array(values, kind))

    def _copied(self, column: Any) -> Any:
        pa = self._arrow
        children = []
        if pa.types.is_list(column.type):
            children = [self._copied(column.values)]
        elif pa.types.is_struct(column.type):
            children = [self._copied(column.field(i)) for i in range(column.type.num_fields)]
        own = column.buffers()[: column.type.num_buffers]
        buffers = [None if one is None else pa.py_buffer(exact(one)) for one in own]
        return pa.Array.from_buffers(column.type, len(column), buffers, children=children)


def main() -> None:
    modules, progress, first, seconds, rounds = sys.argv[1:]
    load(Path(modules))
    targets = (Walks(), Compactions(), Columns(), Rows())
    inputs, end = Inputs(), time.monotonic() + float(seconds)
    number = int(first)
    with Path(progress).open("wb", buffering=0) as told:
        while time.monotonic() < end and number < int(first) + int(rounds):
            told.seek(0)
            told.write(b"%d\n" % number)  # the process may crash
            for target in targets:
                target(Random(f"{number} {type(target).__name__}"), inputs)
            number += 1
    print(f"{number - int(first)} rounds")


if __name__ == "__main__":
    main()
