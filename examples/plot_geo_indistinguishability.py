"""
Hiding a person's location: geo-indistinguishability
====================================================

The records are places of people in a city, in a public bounding box. Under metric privacy, a
release makes it hard to distinguish places that are a few hundred metres apart, but reveals
roughly which part of the city a place is in. ``alpha`` is the privacy loss per kilometre.
"""

# %%
# Simulated people near the stations of a city of 8 by 6 kilometres.
import matplotlib.pyplot as plt
import numpy as np

from sklearn_dptda.metric_privacy import KNormMechanism, MetricExponentialMechanism
from sklearn_dptda.synthetic import PrivateMeasure

LOW, HIGH = np.array([0.0, 0.0]), np.array([8.0, 6.0])
rng = np.random.default_rng(0)
stations = rng.uniform(LOW + 0.8, HIGH - 0.8, (9, 2))
people = stations[rng.integers(9, size=400)] + rng.normal(scale=0.25, size=(400, 2))
people = np.clip(people, LOW, HIGH)

# %%
# Two mechanisms: noise that decreases with the distance (the planar Laplace mechanism), and a
# choice among the corners of a public grid of streets. The second one always releases a place
# where a person can be.
streets = np.stack(np.meshgrid(np.arange(0, 8.01, 0.25), np.arange(0, 6.01, 0.25)), axis=-1)
streets = streets.reshape(-1, 2)
ALPHAS = (1.0, 4.0, 16.0)
print(f"{'alpha per km':>13}{'noise, km':>11}{'streets, km':>13}{'loss at 100 m':>15}")
released = {}
for alpha in ALPHAS:
    noise = KNormMechanism(alpha, "l2", bounds=(LOW, HIGH), random_state=0).fit(people)
    choice = MetricExponentialMechanism(alpha, candidates=streets, random_state=0).fit(people)
    released[alpha] = noise.transform(people), choice.transform(people)
    errors = [np.linalg.norm(places - people, axis=1).mean() for places in released[alpha]]
    loss = noise.privacy_guarantee_.at_distance(0.1)
    print(f"{alpha:13g}{errors[0]:11.2f}{errors[1]:13.2f}{loss:15.2f}")
print(noise.privacy_guarantee_)

# %%
# A map of where people are does not require a release of each person. A private measure of all
# people, under ordinary differential privacy for persons, is far sharper.
measure = PrivateMeasure(1.0, (LOW, HIGH), random_state=0).fit(people)
synthetic = measure.sample(400, random_state=0)

figure, axes = plt.subplots(1, 4, figsize=(15, 3.6), layout="constrained")
panels = [(f"noise, alpha = {alpha:g} per km", released[alpha][0]) for alpha in ALPHAS[1:]]
panels.insert(1, (f"streets, alpha = {ALPHAS[1]:g} per km", released[ALPHAS[1]][1]))
panels.append(("private measure, epsilon = 1", synthetic))
for ax, (name, places) in zip(axes, panels, strict=True):
    ax.scatter(*stations.T, s=260, marker="o", facecolors="none", edgecolors="0.6", linewidths=1)
    ax.scatter(*people.T, s=3, color="0.75", linewidths=0, label="people")
    ax.scatter(*places.T, s=6, color="#D55E00", marker="^", linewidths=0, label="released")
    ax.set(xlim=(LOW[0], HIGH[0]), ylim=(LOW[1], HIGH[1]), aspect="equal", xlabel="km")
    ax.set_title(name, fontsize=10)
axes[0].legend(frameon=True, fontsize=8, loc="upper left")
plt.show()
