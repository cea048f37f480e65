"""Peers on their own examples and on ours, each in an environment of its own.

``DIFFPRIVLIB_PYTHON``, ``GIOTTO_PYTHON``, ``POT_PYTHON`` and ``TUMULT_PYTHON`` name interpreters.
Three peers are source, and need a folder as well: ``GOOGLE_DP_PYTHON`` and ``GOOGLE_DP_FOLDER``
(``learning`` of google/differential-privacy), ``DPM_PYTHON`` and ``DPM_FOLDER``
(UzL-PrivSec/dp-mondrian-clustering), ``DP_DBSCAN_PYTHON`` and ``DP_DBSCAN_FOLDER``
(QiuTedYuan/DpDBSCAN). Who is missing is left out, with a line that says so.
"""

from benchmarks._peer_clusters import cluster_tables
from benchmarks._peer_diagrams import diagram_tables
from benchmarks._peer_releases import release_tables


def tables(quick):
    """Yield the tables of this benchmark."""
    yield from cluster_tables(quick)
    yield from release_tables(quick)
    yield from diagram_tables(quick)
