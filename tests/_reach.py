"""Private names that tests share: they are imported here and nowhere else in the tests.

A test goes through public names where these show what it is about. The names below are what
cannot be attacked, enumerated or stood in for from outside; who moves or renames one of them
changes this file alone. Tests that take a single file of the package apart import from that.
"""

# The whole program reads points and graphs by these two before anything is paid: what they make
# of a file is compared entry by entry, which no release can show.
from sklearn_dptda._cli._graph_command import read_graph
from sklearn_dptda._cli._read_points import read_points

# The density whose critical points a merge tree names, its parameters in full from any mixture,
# and heights along ridges, which no barrier may exceed.
from sklearn_dptda.cluster._barriers import ridgeline_barriers
from sklearn_dptda.cluster._mixture_density import MixtureDensity, mixture_parameters

# Exact laws of finite mechanisms: floors of log-probabilities, and integers in proportion to which
# outputs are drawn.
from sklearn_dptda.metric_privacy._finite_laws import floored, integer_weights

# Nets by farthest-point traversal, which packings bound, and the ultrametric below a metric.
from sklearn_dptda.metric_privacy._finite_metrics import Traversal, subdominant

# What a private measure adds noise to: attacked by random points, to find its sensitivity.
from sklearn_dptda.metric_privacy._smooth_measure import hat_means, integrals

# Weights of the levels of a private diagram, from which its law is enumerated, and the sampler that
# has to draw from it.
from sklearn_dptda.persistence._exact_sampler import (
    BirthBall,
    DiagramBall,
    ExactSampler,
    decay_table,
)

# Scores of counts at one threshold.
from sklearn_dptda.persistence._found_threshold import threshold_scores

# The statistic of profiles and Betti numbers, attacked by neighbours, and the lattice it lies on.
from sklearn_dptda.persistence._lifetimes import longest_lifetimes, make_lattice

# The measure that diagrams are weighed by, and the mechanism of the parameters of an estimator.
from sklearn_dptda.persistence._mechanisms import make_base_measure, mechanism_of

# A private choice, of which the exact law is tested and stood in for.
from sklearn_dptda.privacy._choice import choose_member

# Estimators of the package and of others are told apart by their tags as the package does it.
from sklearn_dptda.privacy._estimator import is_private

# Lines of a ledger and the rule that adds them up, which hold more than what can still be spent.
from sklearn_dptda.privacy._guarantee import Charge, Sums, ZCDPComposition

# Noise on a lattice, of which the exact law is tested.
from sklearn_dptda.privacy._lattice_noise import lattice_noise

# What is remembered of a ledger on this machine: attacks put an older ledger back.
from sklearn_dptda.privacy._ledger import Payment, last_mark

# Seeds and flips of the honest prototypes in tests/privacy, which are broken on purpose there.
from sklearn_dptda.privacy._noise import flip_numerator, spawn_seeds

# All that an estimator has released, and how copies of it are seeded: compared bit by bit.
from sklearn_dptda.privacy._release import as_arrays, learnt, seeded_clone

# The key that stands over a block, as release_once sets it.
from sklearn_dptda.privacy._release_key import under

# Bytes of releases, of which a ledger shows only what it reads back.
from sklearn_dptda.privacy._stored_release import from_bytes, to_bytes

# Assignments of rows to clusters, as their moments take them.
from sklearn_dptda.rows._assignments import clip_norm, hard_assignment, nearest_to

# Sparse counts, which must add up in any order.
from sklearn_dptda.rows._intervals import CellCounts

# Budgets, which turn a loss into a scale of noise: audits lower that scale to make broken twins,
# and spies add up what is paid. Moments of one step are released by them alone.
from sklearn_dptda.rows._moments import (
    FitBudget,
    GaussianBudget,
    LaplaceBudget,
    MomentWeights,
    release_outer_products,
)

# Rows wherever they lie, and sums over them: what leaves a worker is a Tally and nothing else. Of
# people all rows weigh MASS together.
from sklearn_dptda.rows._rows import MASS, Rows, Tally

# The raw solution of the linear program, which is no private law, and its cost.
from sklearn_dptda.theory._optimal_mechanism import solve

# What the prototypes check their parameters and bounds by.
from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds

# The privacy checks by name, each of which must catch a twin, and the data that they run on.
from sklearn_dptda.utils._privacy_checks import CHECKS, make_check_data

# A release as the checks take it, by fit or by transform.
from sklearn_dptda.utils._privacy_checks._check_tools import released

# Constraints of the parameters of the prototypes, as the package states its own.
from sklearn_dptda.utils._sklearn import Interval, _fit_context

# Tasks that survive the death of a worker: tests kill workers.
from sklearn_dptda.utils._tasks import run

__all__ = [
    "CHECKS",
    "MASS",
    "BirthBall",
    "CellCounts",
    "Charge",
    "DiagramBall",
    "ExactSampler",
    "FitBudget",
    "GaussianBudget",
    "Interval",
    "LaplaceBudget",
    "MixtureDensity",
    "MomentWeights",
    "Payment",
    "Rows",
    "Sums",
    "Tally",
    "Traversal",
    "ZCDPComposition",
    "_fit_context",
    "as_arrays",
    "bounds_from_data",
    "check_bounds",
    "choose_member",
    "clip_norm",
    "decay_table",
    "flip_numerator",
    "floored",
    "from_bytes",
    "hard_assignment",
    "hat_means",
    "integer_weights",
    "integrals",
    "is_private",
    "last_mark",
    "lattice_noise",
    "learnt",
    "longest_lifetimes",
    "make_base_measure",
    "make_check_data",
    "make_lattice",
    "mechanism_of",
    "mixture_parameters",
    "nearest_to",
    "read_graph",
    "read_points",
    "release_outer_products",
    "released",
    "ridgeline_barriers",
    "run",
    "seeded_clone",
    "solve",
    "spawn_seeds",
    "subdominant",
    "threshold_scores",
    "to_bytes",
    "under",
]
