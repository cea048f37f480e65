from sklearn_dptda._typing import FloatArray, IntArray

def sums_at_places(
    points: FloatArray,
    places: FloatArray,
    tops: FloatArray,
    sums: IntArray,
    n: int,
    d: int,
    n_places: int,
    n_caps: int,
    k: int,
    p: int,
    cap: float,
    scale: float,
    unit: float,
    blur: float,
    /,
) -> None: ...
def weighted_sums_at_places(
    points: FloatArray,
    weights: FloatArray,
    places: FloatArray,
    tops: FloatArray,
    sums: IntArray,
    n: int,
    d: int,
    n_places: int,
    n_caps: int,
    p: int,
    target: float,
    cap: float,
    scale: float,
    unit: float,
    /,
) -> None: ...
def smallest_first(rows: FloatArray, n_rows: int, n: int, k: int, /) -> None: ...
