"""Comparison with peers on their examples and on ours, each in a separate environment.

``DIFFPRIVLIB_PYTHON``, ``GIOTTO_PYTHON``, ``POT_PYTHON`` and ``TUMULT_PYTHON`` name interpreters.
Three peers are not packages and need the folder of their source as well: ``GOOGLE_DP_PYTHON`` and
``GOOGLE_DP_FOLDER`` (``learning`` of google/differential-privacy), ``DPM_PYTHON`` and
``DPM_FOLDER`` (UzL-PrivSec/dp-mondrian-clustering), ``DP_DBSCAN_PYTHON`` and ``DP_DBSCAN_FOLDER``
(QiuTedYuan/DpDBSCAN). A missing peer is left out, and a message says so.
"""

from benchmarks._peer_clusters import cluster_tables
from benchmarks._peer_diagrams import diagram_tables
from benchmarks._peer_releases import release_tables


def tables(quick):
    """Yield the tables of this benchmark."""
    yield from cluster_tables(quick)
    yield from release_tables(quick)
    yield from diagram_tables(quick)
