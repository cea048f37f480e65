"""Graphs with labelled nodes, read from local files."""

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from sklearn.utils import Bunch

from sklearn_dptda._typing import PathLike
from sklearn_dptda.datasets._walkers import _data_folder

_NEEDED = ("edges", "y", "classes", "node_names")


def load_polblogs(data_home: PathLike | None = None, *, largest_component: bool = True) -> Bunch:
    """Load the political blogs: links between weblogs on American politics in 2004.

    Parameters
    ----------
    data_home : str or path, default=None
        Folder that holds ``polblogs.npz``. None: the folder named by the
        environment variable ``SKLEARN_DPTDA_DATA``, else scikit-learn's data
        folder.
    largest_component : bool, default=True
        Whether to leave out the 268 blogs that are not linked to the others.
        Which blogs those are depends on the links: a choice that no guarantee
        covers.

    Returns
    -------
    Bunch
        ``adjacency``, a csr_array of shape (n_nodes, n_nodes) of zeros and
        ones, symmetric, without loops; ``target`` of shape (n_nodes,), 0 for
        liberal and 1 for conservative; ``target_names``, ``node_names``.

    Raises
    ------
    FileNotFoundError
        If the file is not there; the message says where it is to be had.
    ValueError
        If the file lacks an array.

    References
    ----------
    L. Adamic, N. Glance, "The political blogosphere and the 2004 US election:
    divided they blog", 2005; M. Newman's network data.
    """
    arrays = _read(_data_folder(data_home) / "polblogs.npz")
    n, (sources, targets) = len(arrays["y"]), arrays["edges"].T
    linked = sources != targets
    rows = np.r_[sources[linked], targets[linked]]
    columns = np.r_[targets[linked], sources[linked]]
    A = csr_array(coo_array((np.ones(len(rows), np.float32), (rows, columns)), (n, n)))
    A.data[:] = 1.0
    kept = np.arange(n)
    if largest_component:
        _, component = connected_components(A, directed=False)
        kept = np.flatnonzero(component == np.bincount(component).argmax())
    return Bunch(
        adjacency=csr_array(A[kept][:, kept]),
        target=arrays["y"][kept],
        target_names=arrays["classes"].astype(str),
        node_names=arrays["node_names"].astype(str)[kept],
    )


def _read(path):
    if not path.is_file():
        raise FileNotFoundError(
            f"The political blogs are not in {path}. The original is polblogs.gml of M. Newman's "
            "network data, http://www-personal.umich.edu/~mejn/netdata/. Save it as polblogs.npz "
            f"with numpy.savez, as arrays {', '.join(_NEEDED)} (links from 0, labels 0 and 1), and "
            "pass the folder as data_home or in the environment variable SKLEARN_DPTDA_DATA."
        )
    with np.load(path, allow_pickle=False) as archive:
        missing = [key for key in _NEEDED if key not in archive]
        if missing:
            raise ValueError(f"{path} lacks the arrays {', '.join(missing)}.")
        return {key: archive[key] for key in _NEEDED}
