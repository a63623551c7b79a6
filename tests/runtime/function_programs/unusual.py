"""Statements that ask more of a front end: exceptions, probes, layouts, windows, callbacks."""

from __future__ import annotations

from collections.abc import Callable

from tests.runtime.function_programs.arguments import words
from tests.runtime.function_programs.draft import Draft
from tests.runtime.function_programs.ordinary import SOLVES, index_text
from tests.runtime.function_programs.programs import Statement
from tests.runtime.function_programs.signatures import any_call, unknown_keyword

HANDLERS = (
    "except:",
    "except Exception:",
    "except Exception:",
    "except Exception as error:",
    "except BaseException:",
    "except (TypeError, ValueError):",
    "except (ValueError, IndexError, np.linalg.LinAlgError):",
)
# Expressions that raise in NumPy for these types and shapes, whatever the values
RAISING = {
    "{0}.reshape(7, -1, 11)": "ValueError",
    "{0}[{big}]": "IndexError",
    "{0}.missing": "AttributeError",
    "{0}.shape[9]": "IndexError",
    "np.sum({0}, axis=5)": "np.exceptions.AxisError",
    "np.add({0}, {0}, bar=1)": "TypeError",
    "np.concatenate([{0}, np.zeros((2, 2, 2, 2))])": "ValueError",
    "1 // 0": "ZeroDivisionError",
    "{{}}['key']": "KeyError",
    "int('x')": "ValueError",
    "np.ones(3, np.int8) + 300": "OverflowError",
    "{0}.astype(np.int8) + 300": "OverflowError",
    "np.ones(2) @ np.ones(3)": "ValueError",
    "{0} + np.ones(({big},))": "ValueError",
    "np.linalg.inv(np.zeros((2, 2)))": "np.linalg.LinAlgError",
    "np.linalg.inv(np.ones((2, 3)))": "np.linalg.LinAlgError",
    "np.zeros(3).reshape(2, 2)": "ValueError",
    "np.float64({0}, 1, 2)": "TypeError",
    "len(3)": "TypeError",
    "{0}.astype('no_such')": "TypeError",
    "np.stack([{0}, {0}[..., None]])": "ValueError",
    "{0}.transpose(0, 0, 0, 0, 0)": "ValueError",
    "np.einsum('ij->k', {0})": "ValueError",
    "np.add({0}, 1, out=np.zeros({0}.shape, bool))": "TypeError",
    "setattr({0}, 'shape', (3, 5, 7, 11))": "Exception",
    "{0}.no_method()": "AttributeError",
    "np.split({0}, 0)": "Exception",
    "np.no_such_function({0})": "AttributeError",
}
VALUE_DEPENDENT = (
    "np.unique({0})",
    "{0}[{0} > 0]",
    "np.nonzero({0})[0]",
    "{0}[np.nonzero({0})]",
    "np.where({0} > 0)[0]",
    "float({0}.sum())",
    "{0}.tolist()",
    "np.bincount(np.abs({0}).astype(np.int64).ravel() % 5)",
    "{0}.astype(str)",
    "np.choose(np.abs({0}).astype(int) % 2, [{0}, 1.0])",
    "np.polyfit(np.arange({0}.size), {0}.ravel(), 1)",
    "np.piecewise({0}, [{0} > 0], [lambda x: x * 2, 0])",
    "{0}.sum().item()",
    "'%.3f' % {0}.sum()",
    "np.median({0}, overwrite_input=True)",
)


def _risky(draft: Draft, name: str) -> tuple[str, bool]:
    """An expression that may raise, and whether its result depends on values."""
    value, drawn = draft.live[name], draft.random.random()
    if drawn < 0.4:
        pattern = draft.choice(RAISING)
        return pattern.format(name, big=len(value) + 7 if value.ndim else 9), False
    if drawn < 0.65:
        return draft.expression(2, name), False
    if drawn < 0.85 and value.ndim == 2 and value.shape[0] <= 64:
        square = f"({name} @ {name}.T + np.eye({value.shape[0]}))"
        return draft.choice(SOLVES).format(s=square if draft.chance(0.7) else name), True
    if drawn < 0.92:
        return draft.choice(VALUE_DEPENDENT).format(name), True
    return f"{name}[{index_text(draft, name)}]" if value.ndim else f"{name} + 1", False


def _handler(draft: Draft, risky: str) -> str:
    for pattern, error in RAISING.items():
        if pattern[3:9] and pattern[3:12] in risky and draft.chance(0.5):
            return f"except {error}:"
    return draft.choice(HANDLERS)


def try_except(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    risky, depends = _risky(draft, name)
    fallback = draft.expression(1, name)
    target, handler = draft.name(), _handler(draft, risky)
    forms = [
        ("try:", f"    {target} = {risky}", handler, f"    {target} = {fallback}"),
        ("try:", f"    {target} = {risky}", handler, f"    {target} = {fallback}"),
        (
            f"{target} = {fallback}",
            "with contextlib.suppress(Exception):",
            f"    {target} = {risky}",
        ),
        (
            "try:",
            f"    {target} = {risky}",
            handler,
            f"    {target} = {fallback}",
            "else:",
            f"    {target} = ({target}, 1)",
        ),
        (
            f"{target} = 0",
            "try:",
            "    try:",
            f"        {target} = {risky}",
            "    finally:",
            f"        {target} = {target} + 1",
            handler,
            f"    {target} = {target} + 2",
        ),
        (
            "try:",
            f"    {target} = {risky}",
            "except Exception as error:",
            f"    {target} = type(error).__name__",
        ),
        (
            f"{target} = {fallback}",
            "for k in range(3):",
            "    try:",
            f"        {target} = {target} + [1, 2][k]",
            f"        {name}.shape[k]",
            "    except IndexError:",
            "        break",
        ),
        (
            "try:",
            f"    if {name}.ndim > 0:",
            "        raise ValueError('no')",
            f"    {target} = {risky}",
            "except ValueError:",
            f"    {target} = {fallback}",
        ),
    ]
    return draft.attempt("try/except", *draft.choice(forms), value_dependent=depends)


def guarded_helper(draft: Draft) -> bool:
    """A helper that returns a fallback when a function of NumPy raises."""
    helper, name = draft.name("h"), draft.array(min_ndim=1)
    lines = draft.choice(
        [
            (f"def {helper}(f, *args):", "    try:", "        return f(*args)",
             "    except Exception:", "        return args[0] * 0.5"),
            (f"def {helper}(f, *args):", "    with contextlib.suppress(Exception):",
             "        return f(*args)", "    return None"),
            (f"def {helper}(f, *args):", "    for g in (f, np.negative):", "        try:",
             "            return g(*args)", "        except (TypeError, ValueError):",
             "            pass"),
        ]
    )  # fmt: skip
    functions = ["np.sqrt", "np.add", "np.linalg.det", "np.sum", "np.linalg.inv", "len", "np.sort"]
    functions += ["np.mean", "lambda x: x.reshape(3, 3)", "lambda x: x[2]", "np.cumsum"]
    if not draft.declare("try/except", *lines):
        return False
    function = draft.choice(functions)
    depends = "linalg" in function
    text = f"{helper}({function}, {name})"
    return bool(draft.assign("try/except", text, value_dependent=depends))


ATTRIBUTES = words(
    "T data ctypes shape strides dtype ndim size itemsize nbytes flat real imag base flags mT"
    " rank graph location weak cast broadcast_to permute rebind type name value op id node"
    " __array_interface__ __array__ __array_ufunc__ __array_function__ __array_priority__"
    " __len__ __iter__ __dlpack__ __array_namespace__ __float__ __index__ __hash__ __cuda__"
    " tofile device to_device byteswap partition dump getfield setfield resize tolist item"
    " numpy detach cpu todense toarray values index columns iloc units fill_value mask"
    " conjugate searchsorted put choose argpartition newbyteorder ptp itemset __matmul__"
)
PROBES = (
    "hasattr({0}, '{a}')",
    "hasattr({0}, '{a}')",
    "{0} * 2 if hasattr({0}, '{a}') else {0} - 1",
    "getattr({0}, '{a}', 5.0) is not None",
    "callable(getattr({0}, '{a}', None))",
    "'{a}' in dir({0})",
    "getattr({0}, '{a}', None) is None",
    "hasattr({0}[0], '{a}')",
    "hasattr({0}.sum(), '{a}')",
)
SAFE_PROBES = (
    "getattr({0}, 'ndim', 0)",
    "getattr({0}, 'units', 1.5) * {0}",
    "getattr({0}, 'shape', ())",
    "getattr({0}, 'dtype', None)",
    "getattr({0}, 'weak', 5.0)",
    "getattr({0}, 'rank', 7)",
    "getattr(np, 'mean')({0})",
    "getattr({0}, 'sum')(axis=0)",
    "{0}.__class__.__name__",
    "type({0}).__name__",
    "type({0}) is np.ndarray",
    "type({0}.ravel()[0]) is {0}.dtype.type",
    "isinstance({0}, (np.ndarray, list))",
    "isinstance({0}, np.generic)",
    "isinstance({0}, (int, float))",
    "type({0}.sum()).__name__",
    "{0}.sum().__class__.__mro__[1].__name__",
    "{0}.flags.writeable",
    "{0}.flags.owndata",
    "{0}.__len__()",
    "{0}.dtype.itemsize * {0}.size == {0}.nbytes",
    "np.asarray({0}) is {0}",
    "{0}.dtype.fields",
    "{0}.dtype.char",
    "{0}.itemsize",
    "operator.attrgetter('ndim')({0})",
    "bool({0}.flags.aligned)",
    "{0}.strides",
    "{0}.__array_priority__",
    "{0}.device",
    "id({0}) == id({0})",
    "{0}.__add__(1)",
    "{0}.mT.shape",
    "{0}.flat[0]",
    "memoryview({0}).ndim",
    "hash({0}.dtype)",
    "{0}.size == np.prod({0}.shape)",
    "isinstance({0}.size, int)",
    "isinstance({0}.shape[0], int)",
    "isinstance({0}.size, np.integer)",
)


def probe(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    if draft.chance(0.5):
        text = draft.choice(PROBES).format(name, a=draft.choice(ATTRIBUTES))
    else:
        text = draft.choice(SAFE_PROBES).format(name)
    return bool(draft.assign("probe", text))


LAYOUT_FORMS = (
    "{0} {o} {1}",
    "({0} {o} {1}) {o} {2}",
    "{2} {o} ({0} {o} {1})",
    "np.sum({0} {o} {1}, axis=0)",
    "({0} {o} {1}).sum(axis=-1)",
    "({0} {o} {1}).ravel()",
    "np.sqrt(np.abs({0} {o} {1}))",
    "np.exp({0}) {o} {1}",
    "np.where({0} > 0, {0}, {1})",
    "({0} {o} {1}).astype(np.float32)",
    "({0} {o} {1}).copy()",
    "({0} {o} {1}).mean(axis=0)",
    "np.cumsum({0} {o} {1}, axis=0)",
    "np.zeros_like({0})",
    "np.ones_like({0}) {o} {1}",
    "np.sort({0}, axis=-1)",
    "{0}.reshape(-1)",
    "-{0}",
    "np.cbrt({0})",
    "np.sum({0})",
    "{0}.mean()",
    "np.add.reduce({0}, axis=0)",
    "np.concatenate([{0}, {1}])",
    "np.stack([{0}, {1}], axis=1)",
    "np.clip({0}, -1, {1})",
    "{0}.dot({1})",
    "np.take({0}, [0, 0, -1], axis=0)",
    "np.abs({0} {o} {1}) {o} 2",
    "np.full_like({0}, 2.0) {o} {1}",
    "np.array({0}, copy=True, order='K')",
    "({0} > {1})",
    "np.hypot({0}, {1})",
    "np.maximum({0}, {1}).var(axis=0)",
    "np.arctan2({0}, {1})",
    "np.diff({0}, axis=0)",
    "np.repeat({0}, 2, axis=0)",
    "np.power({0}, 2.0)",
    "np.linalg.norm({0}, axis=0)",
)


def layouts(draft: Draft) -> bool:
    """Operands in other layouts, many of them unnamed: the layout and the bits of the result."""
    name = draft.array("biuf", min_ndim=1)
    operands: list[str] = []
    for _ in range(3):
        operand = other = draft.pick_like(name)
        shape = draft.live[name].shape
        for _ in range(3):
            other = draft.relayout(operand)
            if draft.evaluate(other).shape == shape or draft.chance(0.1):
                break
        operands.append(other)
    text = draft.choice(LAYOUT_FORMS).format(*operands, o=draft.choice("+-**/"))
    return draft.is_valid(text) and bool(draft.assign("layouts", text))


def windows(draft: Draft) -> bool:
    name = draft.array("biuf", min_ndim=1)
    value = draft.live[name]
    if not value.size:
        return False  # `as_strided` would read what is not the array's
    window = draft.choice([1, 2, 3, 5, min(512, max(len(value) // 4, 1))])
    if value.ndim == 1:
        step = draft.choice([1, 2, max(len(value) // 8, 1)])
        view = f"sliding_window_view({name}, {window})[::{step}]"
        strided = (
            f"as_strided({name}, ({max(len(value) // (2 * window), 1)}, {window}),"
            f" ({name}.strides[0] * {window}, {name}.strides[0]))"
        )
    else:
        view = draft.choice(
            [
                f"sliding_window_view({name}, (2,) * {value.ndim})",
                f"sliding_window_view({name}, 2, axis=0)",
                f"sliding_window_view({name}, 2, axis=-1)[..., ::-1]",
            ]
        )
        strided = f"as_strided({name}, {name}.shape[:1], {name}.strides[:1])"
    text = view if draft.chance(0.7) else strided
    pattern = draft.choice(
        ["{}", "{}.sum(axis=-1)", "({} ** 2).sum(-1)", "{}.mean(axis=-1)", "{}.max(axis=-1)",
         "{} * 2", "np.median({}, axis=-1)", "{}[0]", "{}.copy()", "{} @ np.ones({}.shape[-1])",
         "np.einsum('...i->...', {})", "np.sort({}, axis=-1)", "{}.std(-1)"]
    )  # fmt: skip
    return bool(draft.assign("windows", pattern.replace("{}", text)))


CONSTRUCTORS = (
    "np.ndarray(({n}, 2)).shape",
    "np.ndarray(3).size",
    "np.ndarray({0}.shape, {0}.dtype, {0}.copy())",
    "np.ndarray(2, np.uint8, b'abcd', 1)",
    "np.ndarray((2,), buffer=np.arange(4.0), offset=8)",
    "np.require({0}, requirements='C')",
    "np.require({0}, np.float64, ['F', 'A', 'W'])",
    "np.require({0}, 'f4', 'O')",
    "np.require({0}[..., ::-1], requirements=['C', 'W'])",
    "np.asarray_chkfinite({0})",
    "np.ascontiguousarray({0}[..., ::-1])",
    "np.asfortranarray({0})",
    "np.float64({0})",
    "np.float32({0})",
    "np.int64({0})",
    "np.array({0}, ndmin=3)",
    "np.array([{0}, {0}])",
    "np.array(({0}[0], {0}[0]), dtype=np.float32)",
    "np.array({0}, copy=False)",
    "np.array({0}, dtype=complex, order='F')",
    "np.asarray({0}, order='F')",
    "np.asanyarray({0}, dtype='f4')",
    "np.array({0}.sum())",
    "{0}.sum().reshape(())",
    "np.array(3)[()]",
    "np.frombuffer(b'\\0' * 16, 'f4', offset=4) + 1",
    "np.frombuffer(bytes(range(33)), 'f4', offset=1).sum()",
    "np.fromiter((i * 2 for i in range(3)), float)",
    "np.fromstring('1 2 3', sep=' ')",
    "np.matrix([[1, 2], [3, 4]]) * 1",
    "np.mgrid[0:2, 0:3]",
    "np.ogrid[0:2, 0:3][1]",
    "np.r_[{0}[0], 1.0, 2.0]",
    "np.c_[{0}, {0}]",
    "np.s_[1:3]",
    "np.ix_([0, 1], [0])[0]",
    "{0}[np.s_[::2]]",
    "{0}[np.ix_([0])]",
    "list(np.ndindex(2, 2))",
    "[i for i, _ in np.ndenumerate(np.zeros((2, 2)))]",
    "np.dtype('f4').type(3)",
    "np.broadcast({0}, 1).shape",
    "np.copy({0}, order='K')",
    "np.array({0}[::-1], order='K')",
    "np.array(list({0}))",
    "np.array([float(i) for i in range({n})])",
    "np.zeros({0}.shape, order='F') + 1",
    "np.zeros_like({0}, order='F', dtype=np.float32)",
    "np.empty_like({0}).shape",
)


def constructor(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    length = min(len(draft.live[name]), 6)
    return bool(draft.assign("constructor", draft.choice(CONSTRUCTORS).format(name, n=length)))


CALLBACKS = (
    "np.apply_along_axis(lambda r: r.sum(), 0, {0})",
    "np.apply_along_axis(lambda r: r * 2, -1, {0})",
    "np.apply_along_axis(np.sort, 0, {0})",
    "np.apply_over_axes(np.sum, {0}, [0])",
    "np.fromfunction(lambda i, j: i * 2 + j, (2, 3))",
    "np.fromfunction(lambda i: i ** 2, (4,), dtype=int)",
    "np.vectorize(lambda v: v * 2)({0})",
    "np.vectorize(lambda v, w: v + w, otypes=[float])({0}, 1.5)",
    "np.vectorize(lambda r: r.sum(), signature='(n)->()')({0})",
    "np.frompyfunc(lambda v: v + 1, 1, 1)({0}).astype(float)",
    "np.piecewise({0}, [{0} > 0, {0} <= 0], [lambda v: v * 2, 0])",
    "list(map(lambda r: r * 2, {0}))",
    "list(map(np.sum, {0}))",
    "functools.reduce(np.add, [{0}, {0}, {0}])",
    "(lambda f, v: f(f(v)))(np.negative, {0})",
    "(lambda *v: v[0] + v[-1])({0}, 1, {0})",
    "[f({0}) for f in (np.sin, np.cos)]",
    "{{'s': np.sum, 'm': np.mean}}['m']({0})",
    "functools.partial(np.sum, axis=0)({0})",
    "operator.itemgetter(0)({0})",
    "operator.mul({0}, 2)",
    "sum(f({0}) for f in (np.min, np.max))",
    "sorted([{0}.shape, (1,)], key=len)",
    "next(iter({0}))",
    "list(zip({0}, range(2)))",
    "max(len({0}), 3)",
    "max({0}.shape)",
    "np.add.reduce(list(itertools.islice({0}, 2)))",
    "list(itertools.accumulate([{0}, {0}]))[-1]",
    "[np.full(2, k) for k in range(2)][1] * {0}.ndim",
    "getattr(np, ['sum', 'max'][{0}.ndim % 2])({0})",
)
CALLBACK_HELPERS = (
    ("def {h}(f, x):", "    return f(x) + 1"),
    ("def {h}(f, x):", "    return np.apply_along_axis(f, 0, x)"),
    ("def {h}(f, x):", "    return [f(row) for row in x[:3]]"),
    ("def {h}(f, x):", "    return f(f(x))"),
)


def callback(draft: Draft) -> bool:
    name = draft.array("biuf", min_ndim=1)
    if draft.live[name].size > 3000:
        name = draft.new_array((draft.random.randint(1, 4), draft.random.randint(1, 4)))
    if draft.chance(0.25):
        helper = draft.name("h")
        lines = [line.replace("{h}", helper) for line in draft.choice(CALLBACK_HELPERS)]
        draft.declare("callback", *lines)
        function = draft.choice(["np.sum", "np.cumsum", "lambda v: v * 3", "np.abs", "np.sort"])
        return bool(draft.assign("callback", f"{helper}({function}, {name})"))
    return bool(draft.assign("callback", draft.choice(CALLBACKS).format(name)))


def lambdas(draft: Draft) -> bool:
    """Two or three lambdas on one line, chosen by index."""
    name, helpers = draft.array(min_ndim=1), draft.name("h")
    bodies = draft.choice(
        [
            ["x + 1", "x + 2", "x + 3"],
            ["x * 2", "x * 0.5"],
            ["x + 1", "x - 1"],
            ["np.sum(x)", "np.max(x)"],
            ["x[0]", "x[-1]"],
            ["x[:1]", "x[:2]", "x[1:]"],
            ["x.sum(axis=0)", "x.sum(axis=-1)"],
            ["np.sin(x)", "np.cos(x)"],
        ]
    )
    functions = ", ".join(f"lambda x: {body}" for body in bodies)
    if draft.chance(0.5):
        draft.declare("lambdas", f"{helpers} = [{functions}]")
        text = f"[{helpers}[i]({name}) for i in {draft.choice(['(0, 1)', '(1, 0)', '(1,)'])}]"
    elif draft.chance(0.5):
        text = f"[f({name}) for f in ({functions})]"
    else:
        text = f"({functions})[{draft.choice([0, 1])}]({name})"
    return bool(draft.assign("lambdas", text))


CLOSURES = (
    (
        ("def {h}(k):", "    def inner(x):", "        return x * k", "    return inner"),
        "{h}(2)({0}) + {h}(3)({0})",
    ),
    (
        ("{h} = [lambda x, k=k: x + k for k in range(3)]",),
        "[f({0}) for f in {h}]",
    ),
    (
        ("def {h}(x):", "    return x * 2", "{h}b = {h}",
         "def {h}(x):", "    return x * 3"),
        "{h}({0}) - {h}b({0})",
    ),
    (
        ("def {h}(kind):", "    if kind:", "        def inner(x): return x + 1",
         "    else:", "        def inner(x): return x + 2", "    return inner"),
        "({h}(0)({0}), {h}(1)({0}))",
    ),
    (
        ("def {h}(x, *, power=2):", "    return x ** power"),
        "{h}({0}) + {h}({0}, power=3)",
    ),
    (
        ("def {h}():", "    total = 0", "    def add(x):", "        nonlocal total",
         "        total = total + x", "        return total", "    return add"),
        "[add := {h}(), add({0}), add({0})][2]",
    ),
    (
        ("{h}, {h}b = (lambda x: x * 2.0), (lambda x: x * 4.0)",),
        "{h}({0}) / ({h}b({0}) + 0.5)",
    ),
)  # fmt: skip


def closures(draft: Draft) -> bool:
    lines, text = draft.choice(CLOSURES)
    helper, name = draft.name("h"), draft.array(min_ndim=1)
    if not draft.declare("closures", *(line.replace("{h}", helper) for line in lines)):
        return False
    if ":=" in text:
        target = draft.name()
        local = draft.name("g")
        return draft.attempt(
            "closures", f"{local} = {helper}()", f"{local}({name})", f"{target} = {local}({name})"
        )
    return bool(draft.assign("closures", text.replace("{h}", helper).format(name)))


def changed_defaults(draft: Draft) -> bool:
    """A helper, or the program, whose defaults or code change between calls."""
    name = draft.array(min_ndim=1)
    if draft.chance(0.4):
        parameter = draft.name("d")
        draft.defaults[parameter] = "2"
        draft.live[parameter] = 2
        if draft.chance(0.7):
            values = ", ".join(["5"] * len(draft.defaults))
            draft.changes.append(f"program.__defaults__ = ({values},)")
        return bool(draft.assign("changed defaults", f"{name} * {parameter}"))
    helper = draft.name("h")
    draft.declare(
        "changed defaults",
        f"def {helper}(x, k=2):",
        "    return x * k",
        f"def {helper}_other(x, k=2):",
        "    return x - k",
    )
    draft.changes.append(
        draft.choice(
            [
                f"{helper}.__defaults__ = (7,)",
                f"{helper}.__code__ = {helper}_other.__code__",
                f"{helper} = {helper}_other",
            ]
        )
    )
    return bool(draft.assign("changed defaults", f"{helper}({name})"))


ITERATORS = (
    "itertools.count(2)",
    "iter([2, 3, 4, 5, 6, 7, 8, 9])",
    "itertools.cycle([1, 2, 3])",
    "(k * 2 for k in range(1, 99))",
    "iter(range(5, 99))",
    "map(abs, range(-50, 0))",
    "zip(range(9), range(9))",
    "iter({1: 2, 3: 4, 5: 6, 7: 8, 9: 9})",
    "iter(np.arange(3.0, 40.0))",
)


def iterators(draft: Draft) -> bool:
    """`next` of an iterator that outlives the call."""
    iterator, name = draft.name("G"), draft.array(min_ndim=1)
    drawn = draft.choice(ITERATORS)
    draft.declare("iterators", f"{iterator} = {drawn}")
    step = f"next({iterator})" + ("[0]" if drawn.startswith("zip") else "")
    return bool(draft.assign("iterators", f"{name} * {step}"))


GLOBALS = (
    (("{g} = 3",), "{0} * {g}", "{g} = 4"),
    (("{g} = 2.5",), "{0} + {g}", "{g} = 0.5"),
    (("{g} = np.array([1.0, 2.0])",), "{0} * {g}[0]", "{g}[0] = 9"),
    (("{g} = np.array([1.0, 2.0])",), "{0} + {g}.sum()", "{g} = np.array([1.0, 5.0, 6.0])"),
    (("{g} = {{'k': 2}}",), "{0} * {g}['k']", "{g}['k'] = 5"),
    (("{g} = [1, 2, 3]",), "{0} * len({g})", "{g}.append(4)"),
    (("{g} = [1, 2, 3]",), "{0} + {g}[-1]", "{g}.append(4)"),
    (("{g} = 'mean'",), "getattr(np, {g})({0})", "{g} = 'sum'"),
    (("{g} = np.float32",), "{0}.astype({g})", "{g} = np.float64"),
    (("{g} = types.SimpleNamespace(scale=2, w=np.ones(1))",), "{0} * {g}.scale * {g}.w",
     "{g}.scale = 3"),
    (("{g} = types.SimpleNamespace(scale=2, w=np.ones(1))",), "{0} * {g}.w",
     "{g}.w[0] = 3"),
    (("class {g}:", "    factor = 2", "    def __call__(self, x):",
      "        return x * self.factor", "{g}_one = {g}()"), "{g}_one({0})", "{g}.factor = 7"),
    (("{g} = np.sum",), "{g}({0})", "{g} = np.max"),
    (("{g} = True",), "{0} if {g} else -{0}", "{g} = False"),
    (("{g} = 0",), "{0} + 1 if {g} == 0 else {0} + 2", "{g} = 1"),
    (("{g} = (1, 2)",), "np.roll({0}, {g}[0])", "{g} = (2, 1)"),
    (("{g} = {{1, 2}}",), "{0} + (3 in {g})", "{g}.add(3)"),
)  # fmt: skip


def changed_globals(draft: Draft) -> bool:
    lines, text, change = draft.choice(GLOBALS)
    name, variable = draft.array(min_ndim=1), draft.name("G")
    declared = [line.format(g=variable) if "{g}" in line else line for line in lines]
    if not draft.declare("changed globals", *declared):
        return False
    if draft.chance(0.85):
        draft.changes.append(change.format(g=variable))
    return bool(draft.assign("changed globals", text.format(name, g=variable)))


VIEW_WRITES = (
    ("{v} = {0}.T", "{v}[0] = 7"),
    ("{v} = {0}[::2]", "{v}[...] = {v} * 2"),
    ("{v} = {0}.reshape(-1)", "{v}[:2] = 0"),
    ("{v} = {0}.ravel()", "{v}[0] = 5"),
    ("{v} = {0}.ravel(order='K')", "{v}[0] = 5"),
    ("{v} = {0}[1:]", "{v} += 1"),
    ("{v} = {0}[::-1]", "{v}[:1] *= 3"),
    ("np.einsum('ii->i', {0})[:] = 0", "{v} = {0}.sum()"),
    ("np.einsum('...ii->...i', {0})[...] = 1", "{v} = {0}.sum()"),
    ("np.einsum('ij->ji', {0})[0] = 2", "{v} = {0}[0]"),
    ("np.fill_diagonal({0}, 9)", "{v} = {0} * 1"),
    ("np.place({0}, [1, 0] * ({0}.size // 2) + [1] * ({0}.size % 2), [3, 4])", "{v} = {0} + 0"),
    ("np.place({0}, {0} > 0, [1.5])", "{v} = {0} + 0"),
    ("np.putmask({0}, {0} > 1, [1, 2])", "{v} = {0} + 0"),
    ("np.put({0}, [0, -1], [8, 9])", "{v} = {0} + 0"),
    ("{0}.put(0, 3)", "{v} = {0} + 0"),
    ("{0}.flat[0] = 3", "{v} = {0} + 0"),
    ("{0}.flat = 2", "{v} = {0} + 0"),
    ("{0}.flat[::2] = [1, 2]", "{v} = {0} + 0"),
    ("{0}.real[...] = 1", "{v} = {0} + 0"),
    ("{0}.real = 1", "{v} = {0} + 0"),
    ("{v} = {0}.view(); {v}[0] = 1", "{v} = {v} + {0}"),
    ("{v} = np.broadcast_to({0}, (2,) + {0}.shape).copy()", "{v}[0] = 0"),
    ("{v} = {0}.copy(); {v}[::2] = 0", "{v} = np.where({v} > 1, {v}, 1.0).astype(np.int64)"),
    ("{v} = {0}.copy(); {v}[0] = 3", "{v} = np.where({v} > 1, {v}, 1.0).astype(np.int64)"),
    ("{v} = {0}.copy(); {v}[1:-1] = {0}[2:]", "{v} = np.count_nonzero(np.where({v} > 1, {v}, 0))"),
    ("{v} = np.split({0}, [1])", "{v}[0][...] = 4"),
    ("{v} = {0}.swapaxes(0, -1)", "{v}[..., 0] = -1"),
    ("for row in {0}[:3]: row[...] = 1", "{v} = {0} * 2"),
    ("{0}[0] = {0}[-1]", "{v} = {0} * 2"),
    ("{0}[...] = {0}[::-1]", "{v} = {0} * 2"),
    ("{0}[..., 1:] += {0}[..., :-1]", "{v} = {0} * 2"),
    ("{v} = np.lib.stride_tricks.as_strided({0}, {0}.shape[:1], {0}.strides[:1])", "{v}[0] = 6"),
    ("{v} = np.diagonal({0})", "{v} = {v} * 2"),
    ("np.put_along_axis({0}, np.zeros({0}.shape[:-1] + (1,), int), 5, axis=-1)", "{v} = {0} + 0"),
    ("np.add.at({0}, [0, 0], 1)", "{v} = {0} + 0"),
    ("{0}[[0, 0]] += 1", "{v} = {0} + 0"),
    ("{0}.sort(axis=0)", "{v} = {0} + 0"),
    ("{0}.partition(1)", "{v} = {0}[..., :1] + 0"),
    ("{0}.shape = (-1,)", "{v} = {0} + 0"),
    ("{v} = np.nditer({0}).itersize", "{v} = {v} + 0"),
    ("{v} = {0}.copy(); {v}.flags.writeable = False", "{v} = {v} * 2"),
    ("{v} = {0}.copy(); {v}[{v} > 0] = {v}[{v} > 0] * 2", "{v} = {v} + 0"),
    ("{0}[..., 0] = 1; {0}[..., -1] = 2", "{v} = {0}.sum(axis=0)"),
    ("np.copyto({0}, 3, where={0} > 0)", "{v} = {0} + 0"),
    ("np.copyto({0}, {0} * 1.5, casting='unsafe')", "{v} = {0} + 0"),
)


def view_write(draft: Draft) -> bool:
    name = draft.array("iuf", min_ndim=1 if draft.chance(0.5) else 2)
    if draft.chance(0.4):
        copied = draft.assign("view write", f"{name}.copy()")
        name = copied or name
    target = draft.name()
    first, second = draft.choice(VIEW_WRITES)
    lines = [line.replace("{v}", target).format(name) for line in (first, second)]
    size = draft.live[name].size
    if (size > 50000 and "[1, 0]" in first) or (not size and "as_strided" in first):
        return False
    return draft.attempt("view write", *(part for line in lines for part in line.split("; ")))


def ufunc_keywords(draft: Draft) -> bool:
    """A ufunc with `out=`, `where=`, `casting=`, `dtype=`, `order=`."""
    name = draft.array("biuf", min_ndim=1)
    other = draft.pick_like(name)
    is_unary = draft.chance(0.35)
    if is_unary:
        ufunc = draft.choice(words("sqrt exp negative absolute floor rint square sin isnan"))
        call = f"np.{ufunc}({name}"
    else:
        ufunc = draft.choice(
            words(
                "add subtract multiply divide maximum minimum power hypot greater less_equal"
                " logical_and arctan2 floor_divide remainder copysign bitwise_and left_shift"
            )
        )
        call = f"np.{ufunc}({name}, {draft.choice([other, other, draft.literal()])}"
    keywords: list[str] = []
    before: list[str] = []
    if draft.chance(0.55):
        buffer = draft.name()
        dtype = draft.choice([f"{name}.dtype", "float", "np.float32", "np.int64", "bool"])
        order = draft.choice(["", "", ", order='F'"])
        shape = f"{name}.shape"
        before.append(f"{buffer} = np.zeros({shape}, {dtype}{order})")
        keywords.append(f"out={buffer}" if draft.chance(0.8) else f"out=({buffer},)")
        if draft.chance(0.5):
            keywords.append(f"where={draft.mask(name)}")
    if draft.chance(0.4):
        keywords.append(f"casting='{draft.choice(['unsafe', 'unsafe', 'same_kind', 'safe'])}'")
    if draft.chance(0.3):
        keywords.append(f"dtype={draft.choice(['np.float64', 'np.float32', 'int', 'bool'])}")
    if draft.chance(0.25):
        keywords.append(f"order='{draft.choice('CFAK')}'")
    if draft.chance(0.1):
        keywords.append("subok=False")
    target = draft.name()
    line = f"{target} = {', '.join([call, *keywords])})"
    return draft.attempt("ufunc keywords", *before, line)


UFUNC_METHODS = (
    "np.{u}.reduce({0})",
    "np.{u}.reduce({0}, axis=-1)",
    "np.{u}.reduce({0}, axis=None)",
    "np.{u}.reduce({0}, axis=0, keepdims=True)",
    "np.{u}.reduce({0}, initial=2)",
    "np.{u}.reduce({0}, dtype=np.float64)",
    "np.{u}.reduce({0}, axis=0, where={m}, initial=1)",
    "np.{u}.accumulate({0})",
    "np.{u}.accumulate({0}, axis=-1)",
    "np.{u}.accumulate({0}, dtype=np.float32)",
    "np.{u}.outer({0}[:3], {1}[:2])",
    "np.{u}.outer({0}[:2], [1, 2.0])",
    "np.{u}.reduceat({0}, [0, 1])",
    "np.{u}.reduceat({0}, [0, 1, 0], axis=-1)",
    "np.{u}.identity",
    "np.{u}.nin",
    "np.{u}.reduce([{0}, {1}])",
)


def ufunc_method(draft: Draft) -> bool:
    name = draft.array("biuf", min_ndim=1)
    ufunc = draft.choice(
        words(
            "add add multiply maximum minimum subtract logical_or logical_and bitwise_xor hypot"
            " logaddexp divide fmax arctan2 power greater"
        )
    )
    pattern = draft.choice(UFUNC_METHODS).replace("{m}", draft.mask(name))
    return bool(draft.assign("ufunc method", pattern.format(name, draft.pick_like(name), u=ufunc)))


TRANSFORMS = (
    "np.fft.fft({0})",
    "np.abs(np.fft.fft({0}))",
    "np.fft.rfft({0}, axis=0)",
    "np.fft.irfft(np.fft.rfft({0}))",
    "np.fft.ifft(np.fft.fft({0})).real",
    "np.fft.fft2({0})",
    "np.fft.fftshift({0})",
    "np.fft.rfft({0}, n=8)",
    "np.fft.fftfreq(len({0}), 0.5)",
    "np.fft.fft({0}, norm='ortho')",
    "np.angle(np.fft.rfft({0}))",
    "np.fft.rfftn({0})",
    "np.fft.hfft({0})",
)


def transform(draft: Draft) -> bool:
    name = draft.array("iufc", min_ndim=1, max_ndim=2)
    return bool(draft.assign("fft", draft.choice(TRANSFORMS).format(name)))


RANDOM = (
    "np.random.default_rng(3).normal(size={0}.shape) + {0}",
    "np.random.RandomState(1).rand(3)",
    "{0} + np.random.default_rng(0).integers(0, 5)",
    "np.random.default_rng(5).permutation(4)",
)


def random_numbers(draft: Draft) -> bool:
    name = draft.array(min_ndim=1)
    return bool(draft.assign("random", draft.choice(RANDOM).format(name)))


SETS = (
    "np.unique({0})",
    "np.unique({0}, return_counts=True)",
    "np.union1d({0}, [0, 1])",
    "np.intersect1d({0}, [0, 1, 2])",
    "np.setdiff1d({0}, [1])",
    "np.isin({0}, [1, 2], invert=True)",
    "np.isin({0}, {0}[:2])",
    "np.nonzero({0})",
    "np.argwhere({0})",
    "{0}[{0} > 0]",
    "np.flatnonzero({0} > 0)",
    "len(np.unique({0}))",
)


def sets(draft: Draft) -> bool:
    """Results whose size depends on values."""
    name = draft.array(min_ndim=1)
    text = draft.choice(SETS).format(name)
    return bool(draft.assign("value-sized", text, value_dependent=True))


TEXTS = (
    "np.char.upper({s})",
    "np.strings.str_len({s})",
    "{s} == 'ab'",
    "np.strings.add({s}, 'x')",
    "{s}.astype('U3')",
    "np.sort({s})",
    "{s}[0]",
    "np.strings.startswith({s}, 'a').sum()",
    "np.where({s} == 'c', 1.0, 2.0)",
    "np.array(['a', 'b'])",
    "{s}.shape",
    "np.char.find({s}, 'b')",
    "{r}['x'] * 2",
    "{r}['n'].sum()",
    "{r}[['x', 'n']].dtype",
    "{r}[0]",
    "{r}[::2]['x']",
    "np.sort({r}, order='n')['n']",
    "{r}['x'] + {r}['n']",
    "{r}.dtype.names",
    "np.zeros(2, {r}.dtype)",
)


def texts_and_records(draft: Draft) -> bool:
    """String dtypes and structured dtypes."""
    pattern = draft.choice(TEXTS)
    dtype = "str" if "{s}" in pattern or "'a', 'b'" in pattern else "record"
    name = draft.new_array((draft.random.randint(1, 5),), dtype)
    tag = "strings" if dtype == "str" else "records"
    return bool(draft.assign(tag, pattern.format(s=name, r=name)))


ERROR_STATES = (
    ("with np.errstate(all='ignore'):", "    {t} = {e}"),
    ("with np.errstate(divide='ignore', invalid='ignore'):", "    {t} = {0} / {1}"),
    ("with warnings.catch_warnings():", "    warnings.simplefilter('ignore')", "    {t} = {e}"),
    ("with np.errstate(divide='ignore'):", "    {t} = np.where({0} == 0, 0, 1 / {0})"),
    ("with contextlib.ExitStack() as stack:", "    stack.enter_context(np.errstate(over='ignore'))",
     "    {t} = {e}"),
    ("with np.printoptions(precision=3):", "    {t} = {e}"),
)  # fmt: skip
ERROR_TRAPS = (
    ("try:", "    with np.errstate(divide='raise'):", "        {t} = 1 / {0}",
     "except FloatingPointError:", "    {t} = {0} * 2"),
    ("with warnings.catch_warnings():", "    warnings.simplefilter('error')", "    try:",
     "        {t} = np.sqrt({0})", "    except RuntimeWarning:", "        {t} = {0} * 0"),
    ("with np.errstate(all='raise'):", "    {t} = {0} + 1"),
)  # fmt: skip


def error_state(draft: Draft) -> bool:
    name = draft.array("f", min_ndim=1)
    is_trap = draft.chance(0.25)
    lines = draft.choice(ERROR_TRAPS if is_trap else ERROR_STATES)
    text, other, target = draft.expression(1, name), draft.pick_like(name), draft.name()
    filled = [line.format(name, other, t=target, e=text) for line in lines]
    return draft.attempt("error state", *filled, value_dependent=is_trap)


VALUE_DECISIONS = (
    ("{t} = {0} * 2 if {0}.sum() > 0 else -{0}",),
    ("{t} = float({0}.sum())",),
    ("{t} = f'{{{0}.sum():.3f}}'",),
    ("{t} = int({0}.argmax())",),
    ("{t} = round({0}.sum(), 1)",),
    ("{t} = str({0}.shape)",),
    ("{t} = {0}.tolist()",),
    ("{t} = {{{0}.sum(): 1}}",),
    ("{t} = json.dumps({{'n': len({0})}})",),
    ("{t} = json.dumps(float({0}.sum()))",),
    ("assert ({0} == {0}).shape", "{t} = {0} + 1"),
    ("if np.any({0} > 100):", "    {t} = {0}", "else:", "    {t} = {0} + 1"),
    ("{t} = {0}", "while {t}.max() > 1:", "    {t} = {t} * 0.5"),
    ("{t} = [k for k in range(3) if {0}.ravel()[0] > k]",),
    ("{t} = max({0}[:3].sum(), 1.0)",),
    ("{t} = repr({0}.dtype)",),
    ("{t} = divmod({0}.sum(), 2)",),
    ("{t} = math.floor({0}.sum())",),
    ("{t} = math.sqrt(abs({0}.sum()))",),
    ("{t} = bool(({0} == {0}).all())",),
    ("{t} = sum({0}.ravel()[:4])",),
    ("{t} = 0 < {0}.sum() < 10",),
    ("{t} = sorted({0}.ravel()[:3])",),
    ("{t} = {0}.sum() in (1, 2)",),
    ("{t} = range(len({0}))[{0}.argmin() % 1]",),
)


def value_decision(draft: Draft) -> bool:
    """Python decisions and conversions by values."""
    name, target = draft.array("biuf", min_ndim=1), draft.name()
    lines = [line.format(name, t=target) for line in draft.choice(VALUE_DECISIONS)]
    return draft.attempt("value decision", *lines, value_dependent=True)


ZERO_DIMENSIONAL = (
    "np.sqrt(np.sum({0} * {0}))",
    "isinstance({0}.sum(), float)",
    "isinstance(np.sqrt({0}.sum()), np.floating)",
    "{0}.argmax() + 1",
    "{0}.sum() * 1.0",
    "{0}.sum() ** 2",
    "divmod({0}.sum(), 2)",
    "{0}.mean().astype(np.float32)",
    "{0}.sum().dtype",
    "{0}.sum().shape",
    "{0}.sum().ndim + {0}.size",
    "{0}.sum()[()]",
    "{0}.sum()[None]",
    "np.array({0}.sum())",
    "np.asarray({0}.mean())",
    "np.float32({0}.sum())",
    "{0}.sum().reshape(1)",
    "np.where({0}.sum() > 0, 1, 0)",
    "np.maximum({0}.max(), 1)",
    "abs({0}.min())",
    "-{0}.max()",
    "({0} > 0).any()",
    "not isinstance({0}.any(), bool)",
    "{0}.ravel()[0] + {0}.ravel()[-1]",
    "{0}.ravel()[0] * 2.5",
    "np.add({0}.ravel()[0], 1)",
    "{0}.sum().real",
    "np.clip({0}.mean(), 0, 1)",
    "np.dot({0}.ravel(), {0}.ravel())",
    "np.dot(np.array(2.0), {0}.sum())",
    "np.linalg.norm({0}) > 1",
    "(lambda s: s)({0}.prod())",
    "np.squeeze({0}.sum(keepdims=True))",
    "np.sum({0}) / {0}.size",
    "{0}.std() // 0.5",
    "np.exp(-{0}.var())",
    "np.round({0}.mean(), 2)",
    "np.stack([{0}.min(), {0}.max()])",
    "[{0}.sum(), {0}.size, len({0})]",
    "np.full(3, {0}.mean())",
    "{0}.sum().copy()",
    "{0}.sum().T",
    "np.isscalar({0}.max())",
    "{0}.reshape(-1)[:1].reshape(())",
    "{0}.reshape(-1)[:1].squeeze() * 2",
    "np.array(2.0) * np.array(3)",
    "{0}.trace()",
    "np.ptp({0})",
    "np.median({0})",
    "np.nan_to_num({0}.mean())",
    "complex(1, 2) * {0}.sum()",
    "{0}.sum(axis=0)[0]",
    "np.count_nonzero({0})",
    "np.count_nonzero({0}) / {0}.size",
)


def zero_dimensional(draft: Draft) -> bool:
    name = draft.array("biuf", min_ndim=1)
    return bool(draft.assign("0-d", draft.choice(ZERO_DIMENSIONAL).format(name)))


def raises(draft: Draft) -> bool:
    """An error of types and shapes that ends the program."""
    name = draft.array(min_ndim=1)
    pattern = draft.choice(RAISING)
    text = pattern.format(name, big=len(draft.live[name]) + 7)
    if draft.is_valid(text):
        return False
    draft.body.append(Statement((f"t = {text}",), "raises"))
    draft.ends = True
    return True


UNUSUAL: dict[str, tuple[float, Callable[[Draft], bool]]] = {
    "any_call": (22, any_call),
    "layouts": (16, layouts),
    "try_except": (9, try_except),
    "guarded_helper": (2, guarded_helper),
    "view_write": (9, view_write),
    "zero_dimensional": (8, zero_dimensional),
    "ufunc_keywords": (7, ufunc_keywords),
    "probe": (5, probe),
    "constructor": (5, constructor),
    "callback": (5, callback),
    "windows": (4, windows),
    "ufunc_method": (4, ufunc_method),
    "lambdas": (3, lambdas),
    "closures": (4, closures),
    "changed_globals": (4, changed_globals),
    "changed_defaults": (2.5, changed_defaults),
    "iterators": (1.5, iterators),
    "unknown_keyword": (2.5, unknown_keyword),
    "error_state": (3, error_state),
    "transform": (2.5, transform),
    "value_decision": (3, value_decision),
    "sets": (1.5, sets),
    "texts_and_records": (2, texts_and_records),
    "random_numbers": (0.4, random_numbers),
    "raises": (3, raises),
}
