"""
An interactive private diagram
==============================

``PersistenceDiagramDisplay.to_plotly`` makes a figure that shows the birth, the death and
the persistence of each point when you hover over it. It works in notebooks and on pages
such as this one, and needs plotly: ``pip install 'sklearn-dptda[interactive]'``.
"""

# %%
# The figure contains only the release, so you can share it.
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
_ = display.plot().ax_.set_title("private, epsilon = 2")
plt.show()

# %%
# The same diagram as an interactive figure.
display.to_plotly().update_layout(title="private, epsilon = 2")

# %%
# A fitted estimator in the last line of a notebook cell shows its parameters. Below them it
# shows its guarantee, what its release can show, and the remaining budget.
private
