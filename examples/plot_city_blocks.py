"""
The blocks of a town, from where its people were
================================================

8,000 people walk in the streets of a small town, and each has one position. The map of the blocks
between the streets is useful to planners, and no position may be published. `PrivateCloud` releases
a weighted cloud once. What follows costs nothing: loops of every size, the block that each of them
encloses, and how sure each block is.
"""

# %%
# The town is made up: five streets one way, and five the other way. One record is one person with
# one position. The box is a rectangle on the map, and thus public.
import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda import CubicalPersistence, DTMFiltration, PrivacyAccountant, PrivateCloud
from sklearn_dptda.persistence import CloudResamples, feature_regions
from sklearn_dptda.plotting import FiltrationDisplay

rng = np.random.default_rng(7)
across, along = (0.1, 0.8, 1.3, 1.6, 1.9), (0.1, 0.4, 0.8, 1.1, 1.4)
streets = [((x, 0.1), (x, 1.4)) for x in across] + [((0.1, y), (1.9, y)) for y in along]
streets = np.array(streets)
lengths = np.linalg.norm(streets[:, 1] - streets[:, 0], axis=1)
street = rng.choice(len(streets), size=8000, p=lengths / lengths.sum())
how_far = rng.random((8000, 1))
positions = streets[street, 0] * (1 - how_far) + streets[street, 1] * how_far
positions += 0.012 * rng.normal(size=positions.shape)

# %%
# One payment
# -----------
# The budget allows for one release at epsilon 1. There is no second payment below.
accountant = PrivacyAccountant(epsilon=1.0)
private = PrivateCloud(1.0, bounds=([0, 0], [2, 1.5]), accountant=accountant, random_state=0)
(cloud,) = clouds = private.fit_transform([positions])
print(private.privacy_guarantee_)
print("cells:", cloud.counts.shape, " left:", accountant.remaining().epsilon)

# %%
# Three questions
# ---------------
# A larger mass `m` smooths more. Every `m` is free, so that we look at three of them. The share of
# a block says how often it survives new noise of the same size. It is not a probability.
fig, axes = plt.subplots(1, 3, figsize=(13, 3.8), sharey=True, layout="constrained")
for m, ax in zip((0.01, 0.02, 0.05), axes, strict=True):
    filtration = DTMFiltration(m, resolution=(121, 91))
    resamples = CloudResamples(cloud, filtration.fit(clouds), random_state=0)
    function = resamples.function
    (loops,) = CubicalPersistence(1).fit_transform([function])
    long = loops[loops[:, 1] - loops[:, 0] > cloud.lattice_loop]
    blocks = feature_regions(function, long, dimension=1)
    shares = resamples.shares(blocks)
    FiltrationDisplay(function, regions=blocks, shares=shares).plot(ax)
    ax.set(title=f"m = {m}: {sum(shares >= 0.9)} sure blocks of {len(blocks)}")
plt.show()

# %%
# All of these blocks are in at least nine of ten resamples; other outlines would be dotted. The
# exact positions have this many blocks:
(exact,) = DTMFiltration(0.01, bounds=([0, 0], [2, 1.5]), resolution=(121, 91)).fit_transform(
    [positions]
)
(loops,) = CubicalPersistence(1).fit_transform([exact])
print("blocks in the exact cloud:", int((loops[:, 1] - loops[:, 0] > cloud.lattice_loop).sum()))
