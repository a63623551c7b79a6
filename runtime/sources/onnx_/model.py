"""Safe reading of ONNX models: files, initializers, external data.

The reader trusts no file. It opens the model and regular files below the model's folder, through no
link, and maps them into memory without reading them. `scanned` replaces the bytes of large tensors
by marks of their places in the file, and protobuf parses the rest. An array exists only after its
size has been compared with its data. Nothing is executed or unpickled.
Source of the format: onnx.proto.
"""

# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false
# (ONNX is no part of the project's own environment, and its messages have no types there.)

from __future__ import annotations

import math
import os
import stat
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from mmap import ACCESS_READ
from pathlib import Path
from reprlib import repr as brief
from types import MappingProxyType
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from graphir.import_names import optional
from graphir.ops.attributes import FrozenFile
from graphir.public import DType, GraphError, GraphirError
from graphir.runtime.sources.onnx_.wire_format import (
    TYPED_FIELDS,
    Buffer,
    GraphProto,
    Message,
    NodeProto,
    Onnx,
    Place,
    TensorProto,
    scanned,
    typed,
    unpacked,
)
from graphir.source_text import displayed_path

DEEPEST = 100
"""The most nested messages, as in protobuf's parsers."""

_RANK = 64
"""The most axes of a NumPy array."""

_LEVELS, _NODES = 32, 50_000
"""The most graphs and functions inside each other, and the most nodes with those of all calls."""

_FIRST_OPSET = 7
"""The first opset of ai.onnx whose nodes have rows."""

LARGEST = 1 << 24
"""The most elements of an array that an import makes without having read them."""

_PLACES = 3
"""The most places that an error names between the outermost node and the problem."""

_NAMES = """
    - float32 uint8 int8 uint16 int16 int32 int64 - bool float16 float64 uint32 uint64
    complex64 complex128 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
    uint4 int4 float4_e2m1fn float8_e8m0fnu uint2 int2 float6_e2m3fn float6_e3m2fn
"""
DTYPES = {i: DType(name) for i, name in enumerate(_NAMES.split()) if name != "-"}
"""The dtypes by their numbers in TensorProto.DataType; 0 is undefined, and 8 is text."""


def read_model(source: Any, folder: str | os.PathLike[str] | None = None) -> OnnxModel:
    """Return the model of a path, of the bytes of a file, or of an onnx.ModelProto or OnnxModel.

    `folder` has the external data; the default is the folder of the path. Raises GraphError for
    anything but an ONNX model of a version that the installed onnx package has. Raises OSError for
    a path that cannot be opened.
    """
    onnx = optional("onnx", "onnx", "from_onnx")
    if isinstance(source, OnnxModel):
        return source
    if isinstance(source, onnx.ModelProto):
        return OnnxModel(onnx, source, "model", folder)
    if isinstance(source, (bytes, bytearray, memoryview)):
        data, name = bytes(source), "model"
    else:
        path = Path(source)
        folder, name = path.parent if folder is None else folder, path.name
        try:
            data = _mapped(os.open(path, _FLAGS))
        except GraphError as error:
            raise error.within(name) from None
    proto, places = onnx.ModelProto(), dict[bytes, Place]()
    try:
        proto.ParseFromString(scanned(data, 0, len(data), proto.DESCRIPTOR, places, DEEPEST))
    except Exception as error:  # each implementation of protobuf has exceptions of its own
        start = f"a file that begins with {bytes(data[:8])!r}"
        raise GraphError(f"not an ONNX model: {error}", got=start, context=(name,)) from None
    model = OnnxModel(onnx, proto, name, folder, data, places)
    if not isinstance(source, (bytes, bytearray, memoryview)):
        model.file = displayed_path(os.fspath(source))
    return model


def input_names(model: OnnxModel) -> list[str]:
    """Return the names of a model's inputs that have no initializer, in order."""
    graph = model.proto.graph
    constants = {text_of(tensor.name) for tensor in graph.initializer}
    return [text_of(info.name) for info in graph.input if text_of(info.name) not in constants]


class OnnxModel:
    """A model and its data. `proto` lacks the bytes of large tensors: read tensors by `array`.

    `name` is the file's, `opsets` are the versions of the operator sets by domain, and `onnx` is
    the module. `file` is the path of the file, or "".
    """

    file = ""

    def __init__(
        self,
        onnx: Onnx,
        proto: GraphProto,
        name: str,
        folder: str | os.PathLike[str] | None,
        data: Buffer = b"",
        places: Mapping[bytes, Place] = MappingProxyType({}),
    ) -> None:
        self.onnx, self.proto, self.name = onnx, proto, name
        self.folder = None if folder is None else Path(folder).resolve()
        self._data, self._places = data, places
        self._files: dict[str, Buffer] = {}
        with self.place():
            if not proto.HasField("graph"):
                raise GraphError("not an ONNX model: it has no graph")
            self._require_version("IR version", proto.ir_version, int(onnx.IR_VERSION))
            self.opsets = self.versions(proto.opset_import)
            keys = [function_key(function) for function in proto.functions]
            require_distinct([":".join(key) for key in keys], "functions")
            self.functions = dict(zip(keys, proto.functions, strict=True))

    @contextmanager
    def place(self, place: str | tuple[Any, int] = "") -> Generator[None]:
        """Name the file, and a place in it, in the errors of a block; blocks may be nested.

        The place is a text, or a node and its number.
        """
        try:
            yield
        except GraphirError as error:
            places = _texts_of(place)
            inner = error.context[1:] if error.context[:1] == (self.name,) else error.context
            raise error.having(context=(self.name, *places, *inner[-_PLACES:])) from None
        except _RAW_ERRORS as error:  # of the onnx package, or a case that nobody foresaw
            places = _texts_of(place)
            problem, got = "this has no import", f"{type(error).__name__}: {error}"
            raise GraphError(problem, got=brief(got), context=(self.name, *places)) from error

    def versions(self, imports: Iterable[Any]) -> dict[str, int]:
        """Return the versions of the operator sets that a model or function imports, by domain.

        Raises GraphError for a newer version than the installed package's.
        """
        latest = _latest(self.onnx)
        versions: dict[str, int] = {}
        for opset in imports:
            domain = domain_of(opset)
            versions[domain] = opset.version
            what = f"version of the operator set {domain or 'ai.onnx'!r}"
            self._require_version(what, opset.version, latest.get(domain) or 2**31 - 1)
            if not domain and opset.version < _FIRST_OPSET:
                raise GraphError(
                    f"opsets before {_FIRST_OPSET} of 'ai.onnx' have another broadcasting",
                    got=f"opset {opset.version}",
                    fix=f"onnx.version_converter.convert_version(model, {latest['']})",
                )
        return versions

    def is_defined(self, domain: str) -> bool:
        """Answer whether the onnx package defines the operator set."""
        return domain in _latest(self.onnx)

    def _require_version(self, what: str, version: int, last: int) -> None:
        if not 1 <= version <= last:
            raise GraphError(
                f"onnx {self.onnx.__version__} has each {what} from 1 to {last}",
                got=str(version),
                fix="install a newer onnx" if version > last else "",
            )

    def require_bounded(self) -> None:
        """Raise GraphError, with the node, where functions have too many nodes or no end.

        No function is expanded: each function and graph is counted once.
        """
        memo: dict[FunctionKey, tuple[int, int] | None] = {}
        total, most = 0, max(_NODES, 4 * len(self.proto.graph.node))
        names = {name for _, name, _ in self.functions}
        for place, node in enumerate(self.proto.graph.node, 1):
            if node.op_type not in names and not (node.attribute and any(graphs_of(node))):
                total += 1
                continue
            with self.place((node, place)):
                total += self._extent([node], 1, memo)[0]
                if total > most:
                    problem = f"a model has at most {most} nodes, with those of its functions"
                    raise GraphError(problem, got=f"{total} up to here")

    def _extent(
        self, nodes: Iterable[Any], level: int, memo: dict[FunctionKey, tuple[int, int] | None]
    ) -> tuple[int, int]:
        """Return the number of nodes that an import adds for nodes, and how deep they are nested.

        `memo` has the answers for functions, None for those that are being counted.
        """
        count = depth = 0
        for node in nodes:
            repeats = 2 if node.op_type == "Loop" else 1  # as a scan, then as a while loop
            key = function_key(node)
            function = self.functions.get(key)
            extents = [self._extent(graph.node, level + 1, memo) for graph in graphs_of(node)]
            if function is not None and key not in memo:
                memo[key] = None
                memo[key] = self._extent(function.node, level + 1, memo)
            if function is not None:
                extent = memo[key]
                if extent is None:
                    raise GraphError(f"the function {text_of(function.name)!r} calls itself")
                extents.append(extent)
            count += 1 + repeats * sum(size for size, _ in extents)
            depth = max(depth, 1 + max((deep for _, deep in extents), default=0))
            if level + depth > _LEVELS + 1:
                raise GraphError(f"graphs and functions are nested more than {_LEVELS} deep")
        return count, depth

    def check_node(self, node: NodeProto, opsets: Mapping[str, int]) -> None:
        """Raise GraphError unless a node has the inputs, outputs and attributes of its op.

        The graphs and tensors among the attributes are left out; the importer reads them itself.
        """
        context = self.onnx.checker.C.CheckerContext()
        context.ir_version, context.opset_imports = self.proto.ir_version, dict(opsets)
        try:
            self.onnx.checker.check_node(_bare(node), context)
        except Exception as error:  # of the checker, and of texts that are not UTF-8
            raise GraphError(str(error).partition("\n")[0]) from None

    # -- tensors

    def whole(self, message: Message) -> Any:
        """Return a copy of a node or function with the data of its tensors in itself."""
        message = type(message).FromString(message.SerializeToString())
        for tensor in _tensors(message):
            if tensor.data_location == 1 or tensor.raw_data in self._places:
                _, array = self.array(tensor)
                tensor.CopyFrom(self.onnx.numpy_helper.from_array(array, tensor.name))
        return message

    def array(self, tensor: TensorProto, name: str = "") -> tuple[DType, NDArray[Any]]:
        """Return the dtype and the array of an onnx.TensorProto.

        `name` is the place for messages. An array of data in a file is a read-only view of the
        file's map, unless the elements are narrower than a byte. Raises GraphError for text, for
        data of another size than the dims say, and for values that the dtype does not have.
        """
        with self.place(name or f"tensor {text_of(tensor.name)!r}"):
            dtype, shape = DTYPES.get(tensor.data_type), tuple(tensor.dims)
            if dtype is None:
                raise GraphError("the elements are not numbers", got=f"type {tensor.data_type}")
            if any(dim < 0 for dim in shape):
                raise GraphError("dims are at least 0", got=f"dims={list(shape)}")
            require_size(shape)
            width = dtype.bits if dtype.narrow else dtype.storage.itemsize * 8
            count = math.prod(shape)
            data = self._bytes(tensor, -(-count * width // 8), f"{dtype}{list(shape)}")
            if data is None:
                array = typed(tensor, dtype, count, width)
            elif width < 8:
                array = unpacked(data, count, width)
            else:
                array = data.view(dtype.storage.newbyteorder("<")).astype(dtype.storage, copy=False)
            if dtype is DType.bool and array.view(np.uint8).max(initial=0) > 1:
                raise GraphError("a bool is 0 or 1", got=str(array.view(np.uint8).max()))
            return dtype, array.view(dtype.storage).reshape(shape)

    def dense(self, sparse: TensorProto) -> tuple[DType, NDArray[Any]]:
        """Return the dtype and the array of an onnx.SparseTensorProto; GraphError as `array`."""
        with self.place(f"tensor {text_of(sparse.values.name)!r}"):
            dtype, values = self.array(sparse.values)
            _, indices = self.array(sparse.indices)
            shape, count = tuple(sparse.dims), values.size
            require_size(shape)
            size = math.prod(shape)
            if any(dim < 0 for dim in shape) or size > LARGEST:
                raise GraphError(f"a sparse tensor has at most {LARGEST} elements", got=str(size))
            columns = indices.reshape(count, -1) if indices.dtype == np.int64 and count else indices
            limits = (size,) if indices.ndim == 1 else shape
            is_inside = np.all((columns >= 0) & (columns < np.array(limits, np.int64)))
            if count and (columns.shape != (count, len(limits)) or not is_inside):
                raise GraphError("the indices of a sparse tensor are inside it")
            result = np.zeros(shape, values.dtype)
            if count:
                places = (
                    columns[:, 0]
                    if indices.ndim == 1
                    else np.ravel_multi_index([*columns.T], shape)
                )
                result.reshape(-1)[places] = values.ravel()
            return dtype, result

    def _bytes(self, tensor: TensorProto, size: int, what: str) -> NDArray[np.uint8] | None:
        """Return the bytes of a tensor, `size` of them; None where it has typed data."""
        fields = [field for field in (*TYPED_FIELDS, "raw_data") if len(getattr(tensor, field))]
        fields += ["external_data"] * (tensor.data_location == 1 or len(tensor.external_data) > 0)
        fields += ["segment"] * tensor.HasField("segment")
        if len(fields) > 1 or "segment" in fields:
            raise GraphError("a tensor has its data in one field", got=", ".join(fields))
        if fields[:1] == ["external_data"]:
            data = self._external(tensor)
        elif tensor.raw_data in self._places:
            first, length = self._places[tensor.raw_data]
            data = np.frombuffer(self._data, np.uint8, length, first)
        elif fields == ["raw_data"] or (not fields and tensor.HasField("raw_data")):
            fields, data = ["raw_data"], np.frombuffer(tensor.raw_data, np.uint8)
        else:
            return None
        if data.size != size:
            raise GraphError(f"{what} has {size} bytes", got=f"{data.size} of {fields[0]}")
        return data

    def _external(self, tensor: TensorProto) -> NDArray[np.uint8]:
        """Return the bytes of external data."""
        fields = {entry.key: entry.value for entry in tensor.external_data}
        if len(fields) != len(tensor.external_data) or tensor.data_location != 1:
            raise GraphError(
                "external data has one location",
                got=brief([(entry.key, entry.value) for entry in tensor.external_data]),
            )
        location = text_of(fields.get("location", ""))
        offset, length = (_natural(fields, key) for key in ("offset", "length"))
        data = self._files.get(location)
        if data is None:
            data = self._files[location] = self._open(location)
        offset = offset or 0
        length = max(0, len(data) - offset) if length is None else length
        if offset + length > len(data):
            raise GraphError(
                f"{brief(location)} has {len(data)} bytes", got=f"offset {offset}, length {length}"
            )
        return np.frombuffer(data, np.uint8, length, offset) if length else np.empty(0, np.uint8)

    def _open(self, location: str) -> Buffer:
        """Map external data: a regular file below the model's folder, reached through no link.

        Each folder of the path is opened within the one before, so that a folder cannot be replaced
        after its check.
        """
        if self.folder is None:
            raise GraphError("external data needs the model's folder", fix="pass the model's path")
        parts = location.split("/")
        if not {"", ".", ".."}.isdisjoint(parts) or "\0" in location or "\\" in location:
            raise GraphError("external data lies below the model's folder", got=brief(location))
        try:
            at = os.open(self.folder, _FLAGS | os.O_DIRECTORY)
            for i, part in enumerate(parts, 1):
                try:
                    mode = os.stat(part, dir_fd=at, follow_symlinks=False).st_mode
                    is_last = i == len(parts)
                    if not (stat.S_ISREG if is_last else stat.S_ISDIR)(mode):
                        raise GraphError(
                            "external data is in regular files, without links", got=brief(location)
                        )
                    flags = _FLAGS | os.O_NOFOLLOW | (0 if is_last else os.O_DIRECTORY)
                    below = os.open(part, flags, dir_fd=at)
                finally:
                    os.close(at)
                at = below
            self._require_inside(os.fstat(at), location)
            return _mapped(at)
        except OSError as error:
            raise GraphError(f"external data: {error.strerror}", got=brief(location)) from None

    def _require_inside(self, status: os.stat_result, location: str) -> None:
        """Raise GraphError for a file that has another name outside the model's folder."""
        if status.st_nlink == 1:
            return
        inside = entries = 0
        for path, _, names in os.walk(cast("Path", self.folder)):
            entries += len(names)
            for name in names if entries <= _ENTRIES else ():
                other = os.lstat(os.path.join(path, name))
                inside += (other.st_dev, other.st_ino) == (status.st_dev, status.st_ino)
        if inside < status.st_nlink:
            problem = "external data is in files without hard links outside the model's folder"
            raise GraphError(problem, got=brief(location), fix="copy the file")


_ENTRIES = 10_000
"""The most files of the model's folder among which the links of a file are looked for."""

_RAW_ERRORS = ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
"""Flags of os.open; a named pipe would block without the last one."""


@cache
def _latest(onnx: Onnx) -> dict[str, int]:
    """Return the latest version of each operator set of the onnx package."""
    latest = {"": onnx.defs.onnx_opset_version()}
    for schema in onnx.defs.get_all_schemas():
        latest[schema.domain] = max(latest.get(schema.domain, 0), schema.since_version)
    return latest


def domain_of(message: Message) -> str:
    """Return the domain of an operator set, node or function; "" for ai.onnx."""
    domain = text_of(message.domain)
    return "" if domain == "ai.onnx" else domain


FunctionKey: TypeAlias = tuple[str, str, str]


def function_key(message: Message) -> FunctionKey:
    """Return the domain, name and overload of a function, or of the function that a node calls."""
    name = message.op_type if hasattr(message, "op_type") else message.name
    return domain_of(message), text_of(name), text_of(getattr(message, "overload", ""))


def described(node: NodeProto, place: int) -> str:
    """Return a node's name, or its place, and its op, for messages."""
    return f"node {text_of(node.name) or place!r} ({text_of(node.op_type)})"


def _texts_of(place: str | tuple[Any, int]) -> tuple[str, ...]:
    """Return a place of `OnnxModel.place` as text; none for no place."""
    if isinstance(place, tuple):
        return (described(*place),)
    return (place,) if place else ()


def graphs_of(node: NodeProto) -> Iterator[Any]:
    """Yield the graphs among the attributes of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        if attribute.graphs:
            yield from attribute.graphs


def require_distinct(names: Sequence[str], what: str) -> None:
    """Raise GraphError for a name that several values or functions have."""
    for name, count in Counter(names).items():
        if count > 1:
            raise GraphError(f"two {what} have the name {name!r}")


def require_size(shape: Sequence[Any]) -> None:
    """Raise GraphError for a shape that no array can have; dims that are no ints count as 1."""
    sizes = [size for size in shape if isinstance(size, int)]
    if len(shape) > _RANK or math.prod(size or 1 for size in sizes) >= 2**56:
        raise GraphError("the dims are too large", got=brief(shape))


def text_of(value: Any) -> str:
    """Return a text of a model; GraphError for bytes that are not UTF-8."""
    if isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise GraphError("the text is not UTF-8", got=brief(value)) from None


def _natural(fields: Mapping[str, Any], key: str) -> int | None:
    """Return an entry of external data that is a number of bytes; None where it is absent."""
    if key not in fields:
        return None
    text = text_of(fields[key])
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise GraphError(f"{key} is a number of bytes", got=brief(text))
    return int(text)


def _mapped(file: int) -> Buffer:
    """Map an open regular file into memory, read-only, and close it."""
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise GraphError("the path is not a regular file")
        return FrozenFile(file, 0, access=ACCESS_READ) if status.st_size else b""
    finally:
        os.close(file)


def _bare(node: NodeProto) -> Any:
    """Return a node with placeholders for graphs and tensors."""
    if not any(each.HasField("g") or each.HasField("t") for each in node.attribute):
        return node
    bare = type(node)(op_type=node.op_type, input=node.input, output=node.output)
    bare.name, bare.domain = node.name, node.domain
    for attribute in node.attribute:
        new = bare.attribute.add()
        if attribute.HasField("g"):
            new.name, new.type, new.g.name = attribute.name, attribute.type, "graph"
        elif attribute.HasField("t"):
            new.name, new.type, new.t.data_type = attribute.name, attribute.type, 1
            new.t.dims.append(0)
        else:
            new.CopyFrom(attribute)
    return bare


def _tensors(message: Message) -> Iterator[Any]:
    """Yield the tensors in a message."""
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "DESCRIPTOR") else value:
                is_tensor = field.message_type.name == "TensorProto"
                yield from (part,) if is_tensor else _tensors(part)
