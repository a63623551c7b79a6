"""The pytest plugin: its report, its failures and its baseline, with and without workers."""

from __future__ import annotations

import subprocess
import sys

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

WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "workers"])


@WORKERS
def test_the_report_has_each_cast_once_with_its_tests(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    lines = project.report("-vv", *workers).splitlines()
    assert "lab: 1 cast, 1 can lose something; 2 functions recorded" in lines
    rows = [line.split() for line in lines if line.startswith("lab/")]
    assert rows == [
        [
            *("lab/scales.py:5:12", "lhs", "of", "divide", "int64", "float64"),
            *("loses", "9007199254740993", "test_scales.py::test_scale_of_integers"),
        ]
    ]


@WORKERS
def test_a_forbidden_cast_fails_the_run(project: Project, workers: tuple[str, ...]) -> None:
    project.write(scales=SCALES, test_scales=TESTS)
    assert project.run("--casts-fail", "float32->float64", *workers).returncode == 0
    run = project.run("--casts-fail", "lossy,to:bool", *workers)
    assert run.returncode == 1
    assert "1 cast forbidden by --casts-fail:" in run.stdout
    assert "lab/scales.py:5:12: lhs of divide int64 -> float64" in run.stdout


@WORKERS
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
    project.write(scales=SCALES.replace("y * factor", "y * np.float64(factor)"))
    run = project.run(*baseline)
    assert run.returncode == 1
    assert "1 line changed dtypes since casts.json:" in run.stdout
    assert "lab/scales.py:9: return y * np.float64(factor)" in run.stdout
    assert "lab.scales:scale(float32[:], float) returns float64, was float32" in run.stdout
    assert project.run(*baseline, "--casts-update").returncode == 0
    assert "no dtype is wider" in project.report(*baseline)


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
    report = project.report("-vv")
    assert "not seen: 1 of 1 function called" in report
    assert "lab.effects:log: it opens a file for writing" in report


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
