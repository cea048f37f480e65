"""The compiled part of the package; pyproject.toml has everything else."""

from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "sklearn_dptda.filtration._nearest_kernel",
            ["sklearn_dptda/filtration/_nearest_kernel.c"],
            # Other compilers ignore these options. The second one keeps a * b + c two operations.
            extra_compile_args=["-O3", "-ffp-contract=off"],
            # Without a compiler, the package is installed without this part: the same integers
            # then come from NumPy, more slowly.
            optional=True,
            py_limited_api=True,
        )
    ],
    # One wheel for a platform serves all versions of Python.
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
