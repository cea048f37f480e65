"""
A private classifier of shapes, and a grid search
=================================================

This example classifies clouds with one loop or with two loops. ``DTMFiltration`` and
``PrivatePersistence`` turn them into private diagrams, then into features for a linear
classifier. ``GridSearchCV`` chooses the mass and shows how the accuracy depends on epsilon.

Each point of a cloud is protected. The labels are not: the classifier learns them
without noise, and its accuracy depends on them.

Every cloud is one sample of the search and its own group, so no cloud is in the training
set and in the test set at once. Tuning on private data has a privacy cost, because each
candidate and each fold releases new diagrams. Here, the search runs on simulated clouds
that resemble the private ones. Only the best candidate is used on the private clouds.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from gudhi.representations import Landscape
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_dptda import DiagramFeatures, DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_loops

n_clouds, n_points, n_folds, epsilons = 60, 800, 5, [0.5, 2.0, 5.0, 20.0]
# sphinx_gallery_start_ignore
import os

if os.environ.get("SKLEARN_DPTDA_QUICK"):
    n_clouds, n_points, n_folds, epsilons = 12, 200, 3, [1.0, 20.0]
# sphinx_gallery_end_ignore

simulated, labels = make_loops(n_clouds, n_points, random_state=0)
pipeline = make_pipeline(
    DTMFiltration(bounds=(-2.2, 2.2), resolution=31),
    PrivatePersistence(homology_dimensions=1, random_state=0),
    DiagramFeatures(Landscape(2, resolution=30), homology_dimensions=1, value_range=(0, 1.6)),
    StandardScaler(),
    LogisticRegression(),
)
search = GridSearchCV(
    pipeline,
    {"dtmfiltration__m": [0.1, 0.2, 0.4], "privatepersistence__epsilon": epsilons},
    cv=GroupKFold(n_folds),
    n_jobs=2,
)
search.fit(simulated, labels, groups=np.arange(n_clouds))

# %%
# Accuracy over the grid
# ----------------------
scores = search.cv_results_["mean_test_score"].reshape(3, len(epsilons))
figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
for m, row, line in zip((0.1, 0.2, 0.4), scores, ("-o", "--s", ":^"), strict=True):
    ax.semilogx(epsilons, row, line, label=f"m = {m}")
ax.axhline(0.5, color="#999999", lw=1)
ax.set(xlabel="epsilon per cloud", ylabel="cross-validated accuracy", ylim=(0.3, 1.02))
_ = ax.legend(frameon=False)

# %%
# The best candidate on the private clouds
# ----------------------------------------
# One release for each private cloud, with random bits from the operating system. The
# coefficients of the classifier and its accuracy are exact statistics of the labels.
# Publish them only if the labels are public.
private, truth = make_loops(n_clouds, n_points, random_state=1)
best = search.best_params_
winner = pipeline.set_params(**best, privatepersistence__random_state=None)
half = n_clouds // 2
winner.fit(private[:half], truth[:half])
print(best)
print(winner[1].privacy_guarantee_)
accuracy = winner.score(private[half:], truth[half:])
print(f"accuracy on held-out private clouds, not private itself: {accuracy:.2f}")
plt.show()
