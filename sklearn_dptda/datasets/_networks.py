"""Loaders of graphs with labelled nodes from local files."""

import numpy as np
from scipy.sparse.csgraph import connected_components
from sklearn.utils import Bunch

from sklearn_dptda._docs import fill_doc
from sklearn_dptda._typing import PathLike
from sklearn_dptda.datasets._local_files import data_folder, read_published
from sklearn_dptda.graph._adjacency import of_pairs


@fill_doc
def load_polblogs(data_home: PathLike | None = None, *, largest_component: bool = True) -> Bunch:
    """Load the political blogs: links between weblogs on American politics in 2004.

    Parameters
    ----------
    %(data_home)s
    largest_component : bool, default=True
        Whether to leave out the 268 blogs that are not linked to the others. This choice
        depends on the links, so no privacy guarantee covers it.

    Returns
    -------
    Bunch
        Dictionary-like object, with the following attributes.

        adjacency : csr_array of shape (n_nodes, n_nodes)
            Symmetric adjacency matrix of zeros and ones, without self-loops.
        target : ndarray of shape (n_nodes,)
            0 for liberal and 1 for conservative blogs.
        target_names : ndarray of str
            Names of the two classes.
        node_names : ndarray of str
            Names of the blogs.

    %(file_errors)s

    References
    ----------
    L. Adamic, N. Glance, "The political blogosphere and the 2004 US election: divided they
    blog", 2005; M. Newman's network data, http://www-personal.umich.edu/~mejn/netdata/.

    Examples
    --------
    >>> from sklearn_dptda.datasets import load_polblogs
    >>> graph = load_polblogs()  # doctest: +SKIP
    >>> graph.adjacency.shape  # doctest: +SKIP
    (1222, 1222)
    """
    arrays = read_published(
        data_folder(data_home) / "polblogs.npz",
        contents="political blogs",
        source="polblogs.gml of M. Newman's network data, "
        "http://www-personal.umich.edu/~mejn/netdata/",
        layout="links from 0, labels 0 and 1",
        needed=("edges", "y", "classes", "node_names"),
        sha256="a9277be7db8e8a662b2e4a667b8f6e7746a7b467d0e27b3f22b7ed9c8f760e1c",
    )
    n, (sources, targets) = len(arrays["y"]), arrays["edges"].T
    linked = sources != targets
    A = of_pairs(sources[linked], targets[linked], (n, n), symmetric=True)
    # Links that occur twice, or in both directions, are one link.
    A.data[:] = 1.0
    kept = np.arange(n)
    if largest_component:
        _, component = connected_components(A, directed=False)
        kept = np.flatnonzero(component == np.bincount(component).argmax())
    return Bunch(
        adjacency=A[kept][:, kept],
        target=arrays["y"][kept],
        target_names=arrays["classes"].astype(str),
        node_names=arrays["node_names"].astype(str)[kept],
    )
