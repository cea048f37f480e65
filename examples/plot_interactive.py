"""
A private diagram to point at
=============================

``PersistenceDiagramDisplay.to_plotly`` makes a figure that tells birth, death and
persistence of each point, in notebooks and on pages such as this one. It needs plotly:
``pip install 'sklearn-dptda[interactive]'``.
"""

# %%
# What is drawn is the release, and nothing else: the figure may be handed on.
import matplotlib.pyplot as plt

from sklearn_dptda import DTMFiltration, PrivatePersistence
from sklearn_dptda.datasets import make_two_circles
from sklearn_dptda.plotting import PersistenceDiagramDisplay

X = make_two_circles(8000, random_state=0)
functions = DTMFiltration(m=0.2, bounds=(-2.5, 3)).fit_transform([X])
private = PrivatePersistence(epsilon=2.0)
diagrams = private.fit_transform(functions)[0]
display = PersistenceDiagramDisplay(
    diagrams, error_bound=private.error_bound_, noise_floor=private.noise_floor_, upper=2.2
)
_ = display.plot(title="private, epsilon = 2")
plt.show()

# %%
# The same, to point at.
display.to_plotly(title="private, epsilon = 2")

# %%
# A fitted estimator that ends a cell of a notebook shows its parameters, and below them its
# promise, what its release can show, and what is left of its budget.
private
