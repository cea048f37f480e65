"""The compiled part of the package; pyproject.toml has everything else."""

import os
import sysconfig

from setuptools import Extension, setup

# One wheel for a platform serves all versions of Python, except those without a global lock.
limited = not sysconfig.get_config_var("Py_GIL_DISABLED")

setup(
    ext_modules=[
        Extension(
            "sklearn_dptda.filtration._nearest_kernel",
            [f"sklearn_dptda/filtration/{name}_kernel.c" for name in ("_nearest", "_lattice")],
            depends=["sklearn_dptda/filtration/_kernel.h"],
            # Other compilers ignore these options. The second one keeps a * b + c two operations.
            # With the third one, roots set no error number, so that several are taken at a time.
            extra_compile_args=["-O3", "-ffp-contract=off", "-fno-math-errno"],
            define_macros=[("Py_LIMITED_API", "0x030B0000")] if limited else [],
            # Without a compiler, the package is installed without this part: the same integers
            # then come from NumPy, more slowly. A wheel of a release must contain it.
            optional=os.environ.get("CIBUILDWHEEL") != "1",
            py_limited_api=limited,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if limited else {},
)
