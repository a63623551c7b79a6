"""The pytest plugin: its report, its failures and its baseline, with and without workers."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from subprocess import CompletedProcess

import pytest

from tests.runtime.testing.conftest import ROOT, Project

SCALES = """
    import numpy as np

    def halves(x):
        return x / 2

    def scale(x, factor):
        y = halves(x)
        return y * factor
    """

TESTS = """
    import numpy as np
    from lab.scales import scale

    def test_scale():
        assert scale(np.ones(3, np.float32), 2.0)[0] == 1

    def test_scale_of_integers():
        assert scale(np.ones(3, np.int64), 2.0)[0] == 1
    """

WIDENED = SCALES.replace("y * factor", "y * np.float64(factor)")

WORKERS = ("-p", "xdist", "-n", "2")


def assert_reports_each_cast_once(report: str) -> None:
    lines = report.splitlines()
    assert "lab: 1 cast, 1 can lose something; 2 functions recorded" in lines
    rows = [line.split() for line in lines if line.startswith("lab/")]
    assert rows == [
        [
            *("lab/scales.py:5:12", "lhs", "of", "divide", "int64", "float64"),
            *("loses", "9007199254740993", "test_scales.py::test_scale_of_integers"),
        ]
    ]


def assert_forbids(run: CompletedProcess[str]) -> None:
    assert run.returncode == 1
    assert "1 cast forbidden by --casts-fail:" in run.stdout
    assert "lab/scales.py:5:12: lhs of divide int64 -> float64" in run.stdout


def assert_names_the_widening(run: CompletedProcess[str], line: int) -> None:
    assert run.returncode == 1
    assert "1 line changed dtypes since casts.json:" in run.stdout
    assert f"lab/scales.py:{line}: return y * np.float64(factor)" in run.stdout
    assert "lab.scales:scale(float32[:], float) returns float64, was float32" in run.stdout


def test_the_report_has_each_cast_once_with_its_tests(project: Project) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    assert_reports_each_cast_once(project.report("-vv"))


def test_a_forbidden_cast_fails_the_run(project: Project) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    assert project.run("--casts-fail", "float32->float64").returncode == 0
    assert_forbids(project.run("--casts-fail", "lossy,to:bool"))
    accepting = SCALES.replace("x / 2", "x / 2  # graphir: ignore[cast/precision]")
    project.write(scales=accepting, test_scales=TESTS)
    run = project.run("--casts-fail", "lossy,to:bool", "--casts-baseline", "casts.json")
    assert run.returncode == 0 and "; 2 functions recorded; 1 line accepted" in run.stdout


PADS = """
    import numpy as np

    def unit(image):
        low = np.percentile(image, 30)
        return np.pad(image, 2), image / 255
    """

TESTS_OF_PADS = """
    import numpy as np
    from lab.pads import unit

    def test_unit():
        assert unit(np.ones(8, np.uint8))[1].max() < 1
    """


def test_what_widens_is_before_what_numpy_casts_and_no_edit_is_forbidden(project: Project) -> None:
    project.write(pads=PADS, test_pads=TESTS_OF_PADS)
    run = project.run("--casts-fail", "to:float64")
    table = run.stdout.partition("where ")[2].splitlines()
    rows = [line.split()[:3] for line in table if line.startswith("lab/")]
    assert rows[0] == ["lab/pads.py:6:30", "lhs", "of"] and len(rows) > 1
    assert 'write: image.astype("float32") / 255' in run.stdout
    assert 'astype("float64")' not in run.stdout


@pytest.mark.parametrize(
    "workers", [(), pytest.param(WORKERS, marks=pytest.mark.exhaustive)], ids=["alone", "workers"]
)
def test_a_baseline_names_the_line_that_widened_a_result(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    baseline = ("--casts-baseline", "casts.json", *workers)
    assert "wrote the baseline casts.json" in project.report(*baseline)
    assert "no dtype is wider" in project.report(*baseline)
    # An unrelated edit, then one that widens.
    project.write(scales=SCALES.replace("import numpy as np", "import numpy as np\n\n    TWO = 2"))
    assert "no dtype is wider" in project.report(*baseline)
    project.write(scales=WIDENED)
    assert_names_the_widening(project.run(*baseline), 9)
    assert project.run(*baseline, "--casts-update").returncode == 0
    assert "no dtype is wider" in project.report(*baseline)


def test_workers_give_the_same_report_baseline_and_failures(project: Project) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    options = ("-vv", "--casts-baseline", "casts.json", *WORKERS)
    report = project.report(*options, "--casts-fail", "float32->float64")
    assert_reports_each_cast_once(report)
    assert "wrote the baseline casts.json" in report
    project.write(scales=WIDENED)
    run = project.run(*options, "--casts-fail", "lossy,to:bool")
    assert_forbids(run)
    assert_names_the_widening(run, 9)


def test_other_rules_are_compared(project: Project) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    report = project.report("--casts-against", "jax_x32")
    assert "under jax_x32, 1 step differs" in report
    assert "lab/scales.py:5  divide  float64  float32  return x / 2" in report


def test_tests_have_the_effects_of_their_functions_once(project: Project) -> None:
    project.write(
        effects="""
        import warnings
        import numpy as np

        CALLS = []

        def log(path, x):
            CALLS.append(x.dtype)
            x += 1
            with open(path, "a") as file:
                file.write("line")
            warnings.warn("once", stacklevel=2)
            return np.random.random() + np.random.default_rng().random()
        """,
        test_effects="""
        import inspect
        import numpy as np
        import pytest
        from lab import effects

        def test_effects(tmp_path, capfd):
            np.random.seed(0)
            expected = np.random.RandomState(0).random()
            x = np.zeros(2, np.float32)
            with pytest.warns(UserWarning) as warned:
                effects.log(tmp_path / "log", x)
            print("printed")
            assert [each.filename for each in warned] == [__file__]
            assert effects.CALLS == [np.float32] and x.tolist() == [1, 1]
            assert (tmp_path / "log").read_text() == "line"
            np.random.seed(0)
            assert np.random.random() == expected
            assert capfd.readouterr().out == "printed\\n"
            assert list(inspect.signature(effects.log).parameters) == ["path", "x"]
        """,
    )
    project.report("-vv")


def test_tests_do_not_see_what_the_plugin_imports(project: Project) -> None:
    project.python = sys.executable
    project.write(
        scales=SCALES,
        test_hidden="""
        import sys
        import numpy as np
        from lab.scales import scale

        def test_hidden():
            assert scale(np.ones(3, np.float32), 2.0)[0] == 1
            assert "bfloat16" not in np.sctypeDict and "ml_dtypes" not in sys.modules
            import ml_dtypes
            assert np.dtype("bfloat16") == ml_dtypes.bfloat16
        """,
    )
    assert "2 functions recorded" in project.report()


def test_methods_properties_decorated_functions_and_generators(project: Project) -> None:
    project.write(
        model="""
        import functools
        import numpy as np

        def logged(function):
            @functools.wraps(function)
            def wrapper(*args, **kwargs):
                return function(*args, **kwargs)
            return wrapper

        class Model:
            def __init__(self, n):
                self.weights = np.ones(n, np.float32)

            @logged
            def fit(self, x, *, rate):
                self.weights += x.mean(axis=0) * rate
                return self

            @property
            def total(self):
                return self.weights.sum()

            @classmethod
            def of(cls, x):
                return cls(len(x)).fit(x, rate=1.0)

            @staticmethod
            def mixed(x, y):
                return x + y

        def steps(n):
            for i in range(n):
                yield np.float32(i)
        """,
        test_model="""
        import numpy as np
        from lab.model import Model, steps

        def test_model():
            model = Model.of(np.ones((2, 2)))
            assert model.total == 4 and model.weights.dtype == np.float32
            assert type(model.weights) is np.ndarray
            assert Model.mixed(np.ones(2, np.float32), np.ones(2)).tolist() == [2, 2]
            assert list(steps(2)) == [0, 1]
        """,
    )
    report = project.report("-vv")
    assert "lab.model:steps: it is a generator, and no function" in report
    rows = [line.split()[0:6] for line in report.splitlines() if line.startswith("lab/")]
    assert rows == [
        ["lab/model.py:17:9", "result", "of", "add", "float64", "float32"],
        ["lab/model.py:17:9", "lhs", "of", "add", "float32", "float64"],
        ["lab/model.py:30:16", "lhs", "of", "add", "float32", "float64"],
    ]


def test_the_package_is_that_of_the_project(project: Project) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    (project.folder / "pytest.ini").unlink()
    (project.folder / "pyproject.toml").write_text(
        '[project]\nname = "Lab"\n[tool.pytest.ini_options]\ncasts_fail = ["lossy"]\n'
    )
    run = project.run(package="")
    assert run.returncode == 1
    assert "lab: 1 cast, 1 can lose something" in run.stdout


def test_a_baseline_follows_its_schema_and_is_the_same_again(project: Project) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    path = project.folder / "casts.json"
    project.report("--casts-baseline", "casts.json")
    text = path.read_text()
    project.report("--casts-baseline", "casts.json", "--casts-update")
    assert path.read_text() == text
    schema = json.loads((ROOT / "runtime/testing/baseline.schema.json").read_text())
    calls = json.loads(text)["functions"]["lab.scales:scale"]["calls"]
    assert calls["float32[:], float"]["results"] == {"result": ["float32"]}
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator(schema).validate(json.loads(text))


@pytest.mark.skipif(find_spec("jax") is None, reason="not installed: jax")
def test_functions_of_jax(project: Project) -> None:
    project.write(
        scales="""
        import jax.numpy as jnp

        def mixed(x, y):
            return x * y
        """,
        test_scales="""
        import jax.numpy as jnp
        from lab.scales import mixed

        def test_mixed():
            assert mixed(jnp.ones(2, "int32"), jnp.ones(2, "bfloat16")).tolist() == [1, 1]
        """,
    )
    assert "lab/scales.py:5:12  lhs of multiply  int32  bfloat16" in project.report()


def test_the_plugin_alone_imports_nothing() -> None:
    code = "import sys, graphir.pytest_plugin; print(*sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = run.stdout.split()
    assert not {"numpy", "runtime", "passes", "ml_dtypes", "graphir.public"} & {*loaded}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--casts-fail", "lossi"), "'lossi' is no kind of cast; near it are 'lossy'"),
        (("--casts-against", "jaxx"), "jaxx"),
        (("--casts-baseline", "pytest.ini"), "pytest.ini is no baseline of casts"),
    ],
)
def test_a_wrong_option_is_told(project: Project, arguments: tuple[str, ...], problem: str) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    run = project.run(*arguments)
    assert run.returncode == 4
    assert problem in run.stderr + run.stdout
