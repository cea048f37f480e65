"""Private names that tests share, which are imported only here.

Tests use public names where these are sufficient. The names below are needed because their objects
cannot be attacked, enumerated or replaced from outside. If one of them is renamed or moved, only
this file changes. Tests of a single file of the package import from that file.
"""

# The program reads all points and graphs with these two functions before anything is paid. Their
# results are compared entry by entry, which no release can show.
from sklearn_dptda._cli._graph_command import read_graph
from sklearn_dptda._cli._read_points import read_points

# The density whose critical points a merge tree names, its parameters from any mixture, and the
# heights along ridges, which no barrier may exceed.
from sklearn_dptda.cluster._barriers import ridgeline_barriers
from sklearn_dptda.cluster._mixture_density import MixtureDensity, mixture_parameters

# Exact laws of finite mechanisms: floors of log-probabilities, and integers proportional to the
# probabilities of the outputs.
from sklearn_dptda.metric_privacy._finite_laws import floored, integer_weights

# Nets by farthest-point traversal, which packings bound, and the largest ultrametric below a
# metric.
from sklearn_dptda.metric_privacy._finite_metrics import Traversal, subdominant

# The values to which a private measure adds noise. Random points attack their sensitivity.
from sklearn_dptda.metric_privacy._smooth_measure import hat_means, integrals

# Weights of the levels of a private diagram, from which its law is enumerated, and the sampler that
# must draw from this law.
from sklearn_dptda.persistence._exact_sampler import (
    BirthBall,
    DiagramBall,
    ExactSampler,
    decay_table,
)

# Scores of counts at one threshold.
from sklearn_dptda.persistence._found_threshold import threshold_scores

# The statistic of profiles and Betti numbers, which neighbours attack, and its lattice.
from sklearn_dptda.persistence._lifetimes import longest_lifetimes, make_lattice

# The base measure of diagrams, and the mechanism for the parameters of an estimator.
from sklearn_dptda.persistence._mechanisms import make_base_measure, mechanism_of

# How much each cap hides, of which one record changes no more than a unit.
from sklearn_dptda.persistence._private_cap import gates_of_caps

# A private choice, whose exact law is tested and which tests replace.
from sklearn_dptda.privacy._choice import choose_member

# Digests of records, parameters and code, which decide whether a key is used for the same release.
from sklearn_dptda.privacy._digest import digest_of

# The package's own rule for private estimators, which uses their tags.
from sklearn_dptda.privacy._estimator import is_private

# Lines of a ledger and the rule that adds them up. They contain more than the remaining budget.
from sklearn_dptda.privacy._guarantee import Charge, Sums, ZCDPComposition

# Noise on a lattice, whose exact law is tested.
from sklearn_dptda.privacy._lattice_noise import lattice_noise

# The marks of a ledger on this machine. Attacks restore an older ledger.
from sklearn_dptda.privacy._ledger import Payment, last_mark

# Seeds and flips of the honest prototypes in tests/privacy, which tests break on purpose.
from sklearn_dptda.privacy._noise import flip_numerator, spawn_seeds

# All released attributes of an estimator, and the seeds of its copies, which are compared bit by
# bit.
from sklearn_dptda.privacy._release import as_arrays, learnt, seeded_clone

# The key of a block, as release_once sets it.
from sklearn_dptda.privacy._release_key import under

# Conversion of releases to bytes. A ledger only shows what it reads back.
from sklearn_dptda.privacy._stored_release import from_bytes, to_bytes

# Assignments of rows to clusters, in the form that moments use.
from sklearn_dptda.rows._assignments import clip_norm, hard_assignment, nearest_to

# Sparse counts, whose sums must not depend on the order.
from sklearn_dptda.rows._intervals import CellCounts

# Budgets, which convert a loss to a scale of noise. Audits lower that scale to make broken twins,
# and tests add up the payments. Moments of one step are released only by budgets.
from sklearn_dptda.rows._moments import (
    FitBudget,
    GaussianBudget,
    LaplaceBudget,
    MomentWeights,
    release_outer_products,
)

# Rows in any place, and sums over them. Workers return only a Tally. All rows of a person have the
# total weight MASS.
from sklearn_dptda.rows._rows import MASS, Rows, Tally

# The raw solution of the linear program, which is not a private law, and its cost.
from sklearn_dptda.theory._optimal_mechanism import solve

# The functions with which the prototypes check their parameters and bounds.
from sklearn_dptda.utils._bounds import bounds_from_data, check_bounds

# The privacy checks by name, each of which must catch a broken twin, and their data.
from sklearn_dptda.utils._privacy_checks import CHECKS, make_check_data

# Draws of a release, which are replayed for a neighbour, and their losses together.
from sklearn_dptda.utils._privacy_checks._border_checks import (
    composed,
    recorded,
    replayed,
    within_promise,
)

# A release in the form that the checks use, by fit or by transform.
from sklearn_dptda.utils._privacy_checks._check_tools import released

# Constraints of the parameters of the prototypes, in the same form as in the package.
from sklearn_dptda.utils._sklearn import Interval, StrOptions, _fit_context

# Tasks that survive the death of a worker. Tests kill workers.
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
    "StrOptions",
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
    "composed",
    "decay_table",
    "digest_of",
    "flip_numerator",
    "floored",
    "from_bytes",
    "gates_of_caps",
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
    "recorded",
    "release_outer_products",
    "released",
    "replayed",
    "ridgeline_barriers",
    "run",
    "seeded_clone",
    "solve",
    "spawn_seeds",
    "subdominant",
    "threshold_scores",
    "to_bytes",
    "under",
    "within_promise",
]
