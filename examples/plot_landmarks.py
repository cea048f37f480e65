"""
Topology in nine columns: the circle of edges in a photograph
=============================================================

Patches of 3 x 3 pixels with much contrast lie near a circle in nine columns:
most of them show an edge, and edges have a direction. A. Carlsson, T.
Ishkhanov, V. de Silva and A. Zomorodian found it without privacy ("On the
local behavior of spaces of natural images", 2008). No grid has nine
coordinates. :class:`~sklearn_dptda.cluster.PrivateLandmarks` are places near
the patches that a private mixture knows, and the distance-to-measure is
computed on the triangles between them.

One record is one patch. A patch is as good as public, but a row of nine
measurements of a patient would not be.
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


def patches_of(name, n=8000):
    """Patches of much contrast, as vectors of length one without a mean."""
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
# Half of the budget goes to the mixture that the landmarks follow from, half to
# the number of loops. The bounds are public: no coordinate of a vector of
# length one is beyond one. The seed makes this page repeatable; without one the
# draws are private.
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
# Landmarks are private output, and so are pictures of them. Here they are drawn
# as the patches that they are, in their own principal plane: along the circle
# the direction of the edge turns once.
landmarks = pipeline[0].complex_.landmarks
plane = PCA(2).fit(landmarks)
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.8), layout="constrained")
for patch, (x, y) in zip(landmarks, plane.transform(landmarks), strict=True):
    box = [x - 0.07, x + 0.07, y - 0.07, y + 0.07]
    left.imshow(patch.reshape(3, 3), cmap="gray", extent=box, vmin=-0.5, vmax=0.5)
_ = left.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), title="Private: the landmarks")

# %%
# The function on them is exact, so that its picture is *not* private: landmarks
# by their value, and a cycle of the loop that lives longest.
(filtration,) = pipeline[0].transform([X])
FiltrationDisplay(filtration, points=X[:1000]).plot(right, title="Not private: function and loop")
plt.show()

# %%
# What the landmarks do not cover is not seen. The share of such patches can be
# released with a diagram, by ``PrivatePersistence(clipped_share=True)``; here
# is its exact value, which is *not* private.
print("beyond the reach of the landmarks:", filtration.n_clipped)
