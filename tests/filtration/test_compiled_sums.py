"""The compiled sums are safe by themselves, whatever finite numbers they are given."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import sklearn_dptda.filtration
from sklearn_dptda.filtration import _nearest_sums
from tests.filtration import _kernel_calls

SOURCE = Path(sklearn_dptda.filtration.__file__).with_name("_nearest_kernel.c")


@pytest.mark.skipif(_nearest_sums.compiled is None, reason="the sums were not compiled here")
def test_compiled_sums_equal_brute_force_even_if_squares_overflow():
    assert _kernel_calls.check(_nearest_sums.compiled, 300) == 300


def sanitized(source, folder):
    """Compile a source with sanitizers; return the module and the library to load before it."""
    compiler = shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("the sanitizers of gcc are used on Linux, and there is none here")
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not os.path.isabs(library):
        pytest.skip("gcc has no sanitizers here: install its package libasan")
    module = folder / "_nearest_kernel.so"
    options = ["-O1", "-g", "-ffp-contract=off", "-shared", "-fPIC", "-fno-sanitize-recover=all"]
    options += ["-fsanitize=address,undefined", "-DPy_LIMITED_API=0x030B0000"]
    include = sysconfig.get_path("include")
    subprocess.run(
        [compiler, *options, f"-I{include}", str(source), "-o", str(module), "-lm"], check=True
    )
    return module, library


def run_sanitized(source, folder, n_calls):
    module, library = sanitized(source, folder)
    environment = {**os.environ, "LD_PRELOAD": library, "ASAN_OPTIONS": "detect_leaks=0"}
    return subprocess.run(
        [sys.executable, _kernel_calls.__file__, str(module), str(n_calls)],
        env=environment, capture_output=True, text=True, timeout=1200,
    )  # fmt: skip


@pytest.mark.nightly
def test_compiled_sums_pass_sanitizers(tmp_path):
    run = run_sanitized(SOURCE, tmp_path, 3000)
    assert run.returncode == 0 and "3000 calls agree" in run.stdout, run.stderr[-3000:]


@pytest.mark.nightly
def test_sanitizers_detect_a_write_beyond_an_array(tmp_path):
    source = SOURCE.read_text(encoding="utf-8")
    right = "work = PyMem_Malloc(3 * t.n * sizeof *work);"
    assert source.count(right) == 1
    twin = tmp_path / "twin.c"
    wrong = "work = malloc((3 * t.n - 1) * sizeof *work);"
    twin.write_text(f"#include <stdlib.h>\n{source.replace(right, wrong)}", encoding="utf-8")
    run = run_sanitized(twin, tmp_path, 50)
    assert run.returncode != 0 and "AddressSanitizer" in run.stderr
