"""
Topology in nine columns: the circle of edges in a photograph
=============================================================

Patches of 3 x 3 pixels with high contrast lie near a circle in nine columns, because
most of them show an edge, and edges have a direction. G. Carlsson, T. Ishkhanov,
V. de Silva and A. Zomorodian found this circle without privacy ("On the local behavior
of spaces of natural images", 2008). A grid in nine columns is too large.
:class:`~sklearn_dptda.cluster.PrivateLandmarks` are places near the patches, which follow
from a private mixture. The distance-to-measure is computed on the triangles between them.

One record is one patch. A patch hardly needs protection, but nine measurements of a
patient would.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.datasets import load_sample_image
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from sklearn_dptda import DTMFiltration, PrivacyAccountant, PrivateBettiNumbers
from sklearn_dptda.cluster import PrivateLandmarks
from sklearn_dptda.model_selection import pipeline_guarantee
from sklearn_dptda.plotting import FiltrationDisplay

N_PATCHES = 8000
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    N_PATCHES = 5000
# sphinx_gallery_end_ignore


def patches_of(name, n=N_PATCHES):
    """Patches with high contrast, as vectors of length one with mean zero."""
    pixels = np.log1p(load_sample_image(name).mean(axis=2))
    patches = sliding_window_view(pixels, (3, 3)).reshape(-1, 9)
    patches = patches - patches.mean(axis=1, keepdims=True)
    contrast = np.linalg.norm(patches, axis=1)
    kept = contrast > np.quantile(contrast, 0.9)
    patches = patches[kept] / contrast[kept, None]
    return patches[np.random.default_rng(0).permutation(len(patches))[:n]]


X = patches_of("flower.jpg")
X.shape

# %%
# Half of the budget is for the mixture that the landmarks follow from, and half is for
# the number of loops. The bounds are public, because no coordinate of a vector of length
# one exceeds one. The seed makes this page repeatable. Without a seed, the draws are
# private.
with PrivacyAccountant(epsilon=1.0, delta=1e-5):
    pipeline = make_pipeline(
        DTMFiltration(
            m=0.1, landmarks=PrivateLandmarks(epsilon=0.5, bounds=(-1, 1), random_state=0)
        ),
        PrivateBettiNumbers(epsilon=0.5, homology_dimensions=1, random_state=0),
    )
    loops = pipeline.fit_transform([X])
print("loops:", int(loops[0, 0]))
print(pipeline_guarantee(pipeline))

# %%
# The landmarks are private output, and so are pictures of them. Here we draw them as
# patches, in their own principal plane. Along the circle, the direction of the edge makes
# one full turn.
landmarks = pipeline[0].complex_.landmarks
plane = PCA(2).fit(landmarks)
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for patch, (x, y) in zip(landmarks, plane.transform(landmarks), strict=True):
    box = [x - 0.07, x + 0.07, y - 0.07, y + 0.07]
    left.imshow(patch.reshape(3, 3), cmap="gray", extent=box, vmin=-0.5, vmax=0.5)
_ = left.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), title="Private: the landmarks")
# sphinx_gallery_start_ignore
if os.environ.get("SKLEARN_DPTDA_QUICK"):
    X = X[:1000]
# sphinx_gallery_end_ignore

# %%
# The function on the landmarks is exact, so its picture is *not* private. It shows the
# landmarks with their values, and a cycle of the loop with the largest persistence.
(filtration,) = pipeline[0].transform([X])
FiltrationDisplay(filtration, points=X[:1000]).plot(right)
right.set_title("Not private: function and loop")
plt.show()

# %%
# The result cannot show patches that are far from all landmarks. You can release the
# share of such patches together with a diagram, by
# ``PrivatePersistence(clipped_share=True)``. Here we print its exact value, which is *not*
# private.
print("beyond the reach of the landmarks:", filtration.n_clipped)
