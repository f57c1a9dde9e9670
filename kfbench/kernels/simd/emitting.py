"""Turn functions that emit LLVM IR into Numba intrinsics, which kernels can call.

`emitted` makes an intrinsic from a function that takes an LLVM builder and the operands. Intrinsics check no bounds:
their callers must. Most intrinsics have an equivalent in plain Python in `kfbench.kernels.interpreted`.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
INT64X8 = ir.VectorType(I64, 8)
ARRAY = None  # as the type of an operand: any array
VOID, i64, u64 = types.void, types.int64, types.uint64


class ArrayOperand:
    """An array argument of an intrinsic. Positions are item indexes, not bytes."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any) -> None:
        self.builder, self.bits = builder, array_type.dtype.bitwidth
        self._struct = lambda: context.make_array(array_type)(context, builder, array)

    def pointer(self, position: Any, kind: Any = None) -> Any:
        """Return a pointer to the item at `position`, cast to a pointer to `kind` if given."""
        pointer = self.builder.gep(self._struct().data, [position])
        return pointer if kind is None else self.builder.bitcast(pointer, kind.as_pointer())

    def load(self, position: Any, kind: Any, align: int = 1) -> Any:
        return self.builder.load(self.pointer(position, kind), align=align)

    def store(self, position: Any, value: Any, align: int = 1) -> None:
        self.builder.store(value, self.pointer(position, value.type), align=align)


def emitted(result: Any, *kinds: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a Numba intrinsic from a function that emits LLVM IR: emit(builder, *operands).

    Args:
        result: Numba type of the result, VOID if the function returns None; a tuple type if it returns a list
        kinds: Numba type of each operand, or ARRAY; an array is passed as an ArrayOperand
    """

    def decorate(emit: Callable[..., Any]) -> Any:
        @wraps(emit)
        def typed(typingctx: Any, *given: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
                operands = [
                    ArrayOperand(context, builder, array_type, arg) if kind is ARRAY else arg
                    for kind, array_type, arg in zip(kinds, signature.args, args, strict=True)
                ]
                value = emit(builder, *operands)
                if value is None:
                    return context.get_dummy_value()
                if isinstance(value, list):
                    return context.make_tuple(builder, signature.return_type, value)
                return value

            return result(*(own if kind is ARRAY else kind for kind, own in zip(kinds, given, strict=True))), codegen

        return intrinsic(typed)

    return decorate


def call(builder: Any, name: str, result: Any, *operands: Any) -> Any:
    """Emit a call of the LLVM function `name`. Return its result."""
    kind = ir.FunctionType(result, [operand.type for operand in operands])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), operands)


class looping:
    """Context manager that emits a `while` loop in LLVM IR. The code emitted inside is the loop body."""

    def __init__(self, builder: Any, condition: Callable[[], Any]) -> None:
        self.builder, self.condition = builder, condition

    def __enter__(self) -> None:
        self.test, body, self.end = (self.builder.append_basic_block(name) for name in ("while", "do", "done"))
        self.builder.branch(self.test)
        self.builder.position_at_end(self.test)
        self.builder.cbranch(self.condition(), body, self.end)
        self.builder.position_at_end(body)

    def __exit__(self, *_: object) -> None:
        self.builder.branch(self.test)
        self.builder.position_at_end(self.end)
