"""
A filtration of more points than fit into memory
================================================

The distance-to-measure of a cloud only needs counts on a lattice, and counts add up. You can
compute them in chunks on one machine, or with Dask where the data are stored. The data that are
sent and kept have the size of the lattice.
"""

# %%
# A stream of chunks, which are generated as they are read. The memory is that of one chunk.
import os
import sys
import time

import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.plotting import FiltrationDisplay, PersistenceDiagramDisplay

CHUNK = 1_000_000
N_CHUNKS = int(os.environ.get("SKLEARN_DPTDA_CHUNKS", "20"))
# sphinx_gallery_start_ignore
if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_CHUNKS = 3
# sphinx_gallery_end_ignore


def chunk(seed):
    return make_two_circles(CHUNK, random_state=seed)


def peak_gigabytes():
    """Peak memory of this process so far; NaN on Windows, which does not report it."""
    try:
        import resource
    except ImportError:
        return float("nan")
    unit = 2**30 if sys.platform == "darwin" else 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


filtration = DTMFiltration(0.05, bounds=(-3, 3.5), resolution=65, method="lattice")
filtration.fit([chunk(0)])
start = time.perf_counter()
histogram = filtration.make_histogram(chunk(seed) for seed in range(N_CHUNKS))
seconds = time.perf_counter() - start
function = filtration.transform([histogram])
peak = peak_gigabytes()
print(
    f"{histogram.n_points:,} points: {seconds:.1f} s to count, {time.perf_counter() - start:.1f} s"
)
print(f"in all; largest memory of this process {peak:.2f} GB")

# %%
# The diagram of so many points needs hardly any noise.
private = PrivatePersistence(0.1, max_points=5, random_state=0).fit(function)
diagrams = private.transform(function)[0]
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.2), layout="constrained")
FiltrationDisplay(function[0]).plot(axes[0])
axes[0].set_title(f"{histogram.n_points:,} points", fontsize=10)
PersistenceDiagramDisplay(diagrams, upper=3.0).plot(axes[1])
_ = axes[1].set_title("private, epsilon = 0.1")

# %%
# The same with Dask: each worker counts the parts that it holds. Here, two threads represent the
# machines of a cluster. With the ``Client`` of a real cluster, the rest of the code is the same.
try:
    import dask.array as da
    from dask import delayed
    from distributed import Client
except ImportError:
    print("skipped Dask: pip install 'sklearn-dptda[dask]'")
else:
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None):
        parts = [
            da.from_delayed(delayed(make_two_circles)(CHUNK, random_state=s), (CHUNK, 2), float)
            for s in range(N_CHUNKS)
        ]
        start = time.perf_counter()
        counted = filtration.make_histogram(da.concatenate(parts))
        print(f"Dask, two workers: {time.perf_counter() - start:.1f} s")
        assert np.array_equal(counted.counts, histogram.counts)
plt.show()
